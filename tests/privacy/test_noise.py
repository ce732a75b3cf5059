"""Every mechanism costs what is claimed and draws from the density that the claim is about.

OpenDP cannot be seeded: tests of frequencies fail by chance once in a million runs, each.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare, kstest

from stillroom.privacy import noise as module
from stillroom.privacy import zcdp
from stillroom.privacy.events import Gaussian, NoisyMax, ThresholdedGaussian
from stillroom.privacy.noise import (
    Noise,
    OpenDPNoise,
    gaussian_measurement,
    laplace_measurement,
    max_measurement,
    thresholded_measurement,
)
from stillroom.testing.noise import NoNoise, RecordedNoise

ALPHA = 1e-6
scales = st.floats(1e-2, 1e4)


@settings(max_examples=50, deadline=None)
@given(sensitivity=st.floats(1e-2, 1e3), sigma=scales)
def test_the_gaussian_costs_the_closed_form(sensitivity: float, sigma: float) -> None:
    claimed = zcdp.cost(Gaussian("x", sensitivity, sigma)).rho
    assert gaussian_measurement(sigma).map(sensitivity) == pytest.approx(claimed, rel=1e-9)
    assert claimed == pytest.approx(sensitivity**2 / (2 * sigma**2))


@settings(max_examples=50, deadline=None)
@given(keys=st.integers(1, 40), sigma=st.floats(0.3, 100), delta=st.floats(1e-10, 0.3))
def test_the_thresholded_histogram_costs_the_closed_form(keys: int, sigma: float, delta: float) -> None:
    threshold = zcdp.threshold_for(keys, sigma, delta)
    claimed = zcdp.cost(ThresholdedGaussian("x", keys, sigma, threshold))
    rho, delta_ps = thresholded_measurement(sigma, threshold).map((keys, math.sqrt(keys), 1.0))
    assert rho == pytest.approx(claimed.rho, rel=1e-9) and claimed.rho == pytest.approx(keys / (2 * sigma**2))
    assert delta_ps == pytest.approx(claimed.delta_ps, rel=1e-5, abs=3e-16 * keys)


@settings(max_examples=50, deadline=None)
@given(step=st.integers(1, 10_000), scale=scales)
def test_the_noisy_maximum_costs_the_closed_form(step: int, scale: float) -> None:
    one_sided = zcdp.cost(NoisyMax("x", step, scale)).rho
    two_sided = zcdp.cost(NoisyMax("x", 2 * step, scale)).rho
    assert max_measurement(scale, monotonic=True).map(step) == pytest.approx(one_sided, rel=1e-9)
    assert max_measurement(scale, monotonic=False).map(step) == pytest.approx(two_sided, rel=1e-9)
    assert two_sided == pytest.approx(4 * one_sided)  # what forgetting `monotonic` would cost


def test_a_mechanism_that_costs_other_than_claimed_does_not_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = OpenDPNoise()
    right: Callable[..., Any] = module.gaussian_measurement
    monkeypatch.setattr(module, "gaussian_measurement", lambda sigma: right(sigma * 0.999999))
    with pytest.raises(AssertionError, match="is claimed"):
        noise.gaussian(np.zeros(3), sensitivity=1.0, sigma=2.0)
    with pytest.raises(AssertionError, match="is claimed"):
        noise.histogram(np.zeros(3), {}, keys=2, sigma=2.0, threshold=9.0)
    wrong: Callable[..., Any] = module.thresholded_measurement
    monkeypatch.setattr(module, "thresholded_measurement", lambda sigma, threshold: wrong(sigma, threshold - 0.01))
    with pytest.raises(AssertionError, match="δ"):
        noise.histogram(np.zeros(0), {"a": 1.0}, keys=2, sigma=2.0, threshold=9.0)
    monkeypatch.setattr(module, "max_measurement", lambda scale, monotonic: max_measurement(scale, not monotonic))
    with pytest.raises(AssertionError, match="is claimed"):
        noise.noisy_max(np.zeros(3, dtype=np.int64), range=2.0, scale=1.0, monotonic=True)


# Far enough apart that permute-and-flip is told from softmax in all but 2e-10 of runs (exact power at 2,500 draws).
SCORES = np.array([0, 20, 40, 55, 130], dtype=np.int64)
SOFTMAX = np.exp(SCORES / 50) / np.exp(SCORES / 50).sum()
DRAWS = 2500


@pytest.mark.parametrize("monotonic", [True, False])
def test_the_noisy_maximum_draws_from_the_softmax(monotonic: bool) -> None:
    noise = OpenDPNoise()
    drawn = [noise.noisy_max(SCORES, range=100, scale=50.0, monotonic=monotonic) for _ in range(DRAWS)]
    assert chisquare(np.bincount(drawn, minlength=5), SOFTMAX * DRAWS).pvalue > ALPHA


def test_control_max_divergence_would_not_draw_from_the_softmax() -> None:
    wrong = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64", monotonic=True), dp.max_divergence(), 50.0
    )
    drawn = [wrong(SCORES) for _ in range(DRAWS)]
    assert chisquare(np.bincount(drawn, minlength=5), SOFTMAX * DRAWS).pvalue < ALPHA


# Pure ε: what the guard draws with


@settings(max_examples=50, deadline=None)
@given(sensitivity=st.integers(1, 100_000), scale=scales)
def test_the_discrete_laplace_costs_the_closed_form(sensitivity: int, scale: float) -> None:
    assert laplace_measurement(scale).map(sensitivity) == pytest.approx(sensitivity / scale, rel=1e-9)


@settings(max_examples=50, deadline=None)
@given(sensitivity=st.integers(1, 10_000), scale=scales)
def test_the_exponential_mechanism_costs_the_closed_form(sensitivity: int, scale: float) -> None:
    eta = 2 * sensitivity / scale
    assert math.sqrt(8 * max_measurement(scale, monotonic=False).map(sensitivity)) == pytest.approx(eta, rel=1e-9)
    # What OpenDP itself says of noisy maxima under pure DP, where the mechanism has another density but the same ε.
    pure = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64", monotonic=False),
        dp.max_divergence(),
        scale,
    )
    assert pure.map(sensitivity) == pytest.approx(eta, rel=1e-9)


def test_choosing_has_the_density_of_the_exponential_mechanism() -> None:
    noise = OpenDPNoise()
    drawn = [noise.choose(SCORES, sensitivity=130, scale=50.0) for _ in range(DRAWS)]
    assert chisquare(np.bincount(drawn, minlength=5), SOFTMAX * DRAWS).pvalue > ALPHA


def laplace_density(scale: float, reach: int) -> np.ndarray:
    """Return P(X = x) for x from −reach to reach, the tails added to the two ends."""
    a = math.exp(-1 / scale)
    inner = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    inner[[0, -1]] = a**reach / (1 + a)
    return inner


def test_laplace_noise_has_the_density_of_the_discrete_laplace() -> None:
    noise, reach = OpenDPNoise(), 8
    drawn = [noise.laplace(1000, sensitivity=1, scale=3.0) - 1000 for _ in range(5000)]
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)
    assert chisquare(counts, laplace_density(3.0, reach) * 5000).pvalue > ALPHA
    assert chisquare(counts, laplace_density(4.5, reach) * 5000).pvalue < ALPHA  # a scale that is off is seen


def test_a_pure_mechanism_that_costs_other_than_claimed_does_not_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = OpenDPNoise()
    monkeypatch.setattr(module, "laplace_measurement", lambda scale: laplace_measurement(scale * 0.999999))
    with pytest.raises(AssertionError, match="is claimed"):
        noise.laplace(0, sensitivity=1, scale=2.0)
    monkeypatch.setattr(module, "max_measurement", lambda scale, monotonic: max_measurement(scale, not monotonic))
    with pytest.raises(AssertionError, match="is claimed"):
        noise.choose(SCORES, sensitivity=1, scale=2.0)


def test_gaussian_noise_is_gaussian_with_its_sigma() -> None:
    noisy = OpenDPNoise().gaussian(np.full(6000, 100.0), sensitivity=1.0, sigma=3.0)
    assert noisy.dtype == np.float64 and noisy.shape == (6000,)
    assert kstest(noisy, "norm", args=(100.0, 3.0)).pvalue > ALPHA
    assert kstest(noisy, "norm", args=(100.0, 4.5)).pvalue < ALPHA  # the test could see a σ that is off by half


def test_listed_keys_get_the_noise_of_the_histogram_whether_or_not_anybody_has_them() -> None:
    noisy, _ = OpenDPNoise().histogram(np.zeros(6000), {}, keys=10, sigma=3.0, threshold=None)
    assert kstest(noisy, "norm", args=(0.0, 3.0)).pvalue > ALPHA


KEYS, DELTA = 20_000, 0.02


def test_a_word_of_one_unit_survives_no_more_often_than_its_delta() -> None:
    threshold = zcdp.threshold_for(1, 2.0, DELTA)
    unlisted = {f"word {i}": 1.0 for i in range(KEYS)}
    _, released = OpenDPNoise().histogram(np.zeros(0), unlisted, keys=1, sigma=2.0, threshold=threshold)
    assert binom.ppf(ALPHA, KEYS, DELTA) <= len(released) <= binom.isf(ALPHA, KEYS, DELTA)
    assert min(released.values()) > threshold


def test_control_on_integer_counts_the_claimed_delta_would_be_too_small() -> None:
    wrong = dp.m.make_gaussian_threshold(
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i32")),
        dp.l02inf_distance(dp.absolute_distance(T="i32")),
        scale=1.0,
        threshold=3,
    )
    _, claimed = wrong.map((1, 1, 1))
    released = wrong({str(i): 1 for i in range(KEYS)})
    assert len(released) > binom.isf(ALPHA, KEYS, claimed)


def test_unlisted_keys_come_in_an_order_of_their_own() -> None:
    names = ["b", "a", "c", "d"]
    for order in (names, names[::-1]):
        for noise in (OpenDPNoise(), NoNoise()):
            _, released = noise.histogram(np.zeros(1), dict.fromkeys(order, 1e6), keys=2, sigma=1.0, threshold=10.0)
            assert list(released) == ["a", "b", "c", "d"]


def test_any_string_is_a_key_of_its_own() -> None:
    odd = ["", "a", "a\0b", "a\0c", "\ud800", "é", "e\u0301"]
    _, released = OpenDPNoise().histogram(np.zeros(0), dict.fromkeys(odd, 1e6), keys=2, sigma=1.0, threshold=10.0)
    assert released.keys() == set(odd)


NOISES: list[Noise] = [OpenDPNoise(), NoNoise()]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_nothing_in_gives_nothing_out_and_one_score_is_the_largest(noise: Noise) -> None:
    listed, unlisted = noise.histogram(np.zeros(0), {}, keys=1, sigma=1.0, threshold=5.0)
    assert listed.shape == (0,) and listed.dtype == np.float64 and unlisted == {}
    assert noise.gaussian(np.zeros(0), sensitivity=1.0, sigma=1.0).shape == (0,)
    assert noise.noisy_max(np.array([7], dtype=np.int64), range=1.0, scale=1.0, monotonic=True) == 0


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_without_a_threshold_no_unlisted_key_is_released(noise: Noise) -> None:
    assert noise.histogram(np.zeros(1), {"secretword": 1e9}, keys=1, sigma=1.0, threshold=None)[1] == {}


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize(
    "call",
    [
        lambda noise: noise.gaussian(np.array([41.5, np.nan]), sensitivity=1.0, sigma=1.0),
        lambda noise: noise.gaussian(np.array([41.5, np.inf]), sensitivity=1.0, sigma=1.0),
        lambda noise: noise.gaussian(np.array([41.5], dtype=np.float32), sensitivity=1.0, sigma=1.0),
        lambda noise: noise.gaussian(np.array([[41.5]]), sensitivity=1.0, sigma=1.0),
        lambda noise: noise.gaussian([41.5], sensitivity=1.0, sigma=1.0),
        lambda noise: noise.histogram(np.array([-np.inf, 41.5]), {}, keys=1, sigma=1.0, threshold=None),
        lambda noise: noise.histogram(np.zeros(1), {"secret": np.nan}, keys=1, sigma=1.0, threshold=5.0),
        lambda noise: noise.histogram(np.zeros(1), {41.5: 1.0}, keys=1, sigma=1.0, threshold=5.0),
        lambda noise: noise.noisy_max(np.array([41.5]), range=1.0, scale=1.0, monotonic=True),
        lambda noise: noise.noisy_max(np.array([415], dtype=np.int32), range=1.0, scale=1.0, monotonic=True),
        lambda noise: noise.noisy_max(np.zeros(0, dtype=np.int64), range=1.0, scale=1.0, monotonic=True),
        lambda noise: noise.noisy_max(np.array([415]), range=1.5, scale=1.0, monotonic=True),
        lambda noise: noise.noisy_max(np.array([415]), range=1.0, scale=1.0, monotonic=False),
        lambda noise: noise.choose(np.array([41.5]), sensitivity=1, scale=1.0),
        lambda noise: noise.choose(np.array([415]), sensitivity=0, scale=1.0),
        lambda noise: noise.laplace(41.5, sensitivity=1, scale=1.0),
        lambda noise: noise.laplace(415, sensitivity=0, scale=1.0),
        lambda noise: noise.laplace(2**62 + 415, sensitivity=1, scale=1.0),
    ],
)
def test_wrong_input_is_told_without_its_values(noise: Noise, call: Callable[[Noise], Any]) -> None:
    with pytest.raises(ValueError) as told:
        call(noise)
    assert "41" not in str(told.value) and "secret" not in str(told.value)


def test_recorded_noise_gives_the_same_outputs_again_and_only_to_the_same_calls() -> None:
    recorded = RecordedNoise(OpenDPNoise())
    first = recorded.gaussian(np.zeros(3), sensitivity=1.0, sigma=2.0)
    second = recorded.noisy_max(np.array([1, 2]), range=1.0, scale=2.0, monotonic=True)
    third = recorded.laplace(5, sensitivity=1, scale=2.0)
    fourth = recorded.choose(np.array([1, 2]), sensitivity=1, scale=2.0)
    assert [draw.name for draw in recorded.draws] == ["gaussian", "noisy_max", "laplace", "choose"]
    again = RecordedNoise(replay=recorded.draws[2:])
    assert again.laplace(77, sensitivity=1, scale=2.0) == third
    assert again.choose(np.array([9, 9]), sensitivity=1, scale=2.0) == fourth
    replayed = RecordedNoise(replay=recorded.draws[:2])
    assert replayed.gaussian(np.ones(3), sensitivity=1.0, sigma=2.0) is first
    with pytest.raises(AssertionError, match="asked for"):
        replayed.noisy_max(np.array([1, 2]), range=1.0, scale=9.0, monotonic=True)
    with pytest.raises(AssertionError, match="no more"):
        replayed.noisy_max(np.array([1, 2]), range=1.0, scale=2.0, monotonic=True)
    assert second in (0, 1)


def test_no_noise_returns_the_truth_and_the_lowest_of_equal_maxima() -> None:
    noise = NoNoise()
    assert noise.noisy_max(np.array([1, 5, 5]), range=1.0, scale=1.0, monotonic=True) == 1
    assert noise.choose(np.array([1, 5, 5]), sensitivity=1, scale=1.0) == 1
    assert noise.laplace(7, sensitivity=1, scale=1.0) == 7
    assert noise.histogram(np.zeros(1), {"a": 5.0, "b": 5.1}, keys=1, sigma=1.0, threshold=5.0)[1] == {"b": 5.1}
