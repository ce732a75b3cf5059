"""Noise: the only door to randomness that matters, over OpenDP.

Every other random choice in stillroom is public. OpenDP samples exactly (no gaps of floats, PRIVACY rule 2) and
cannot be seeded: whatever must be permanent is drawn once and kept in the journal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from stillroom.privacy.events import Gaussian, NoisyMax, ThresholdedGaussian
from stillroom.privacy.zcdp import Cost, cost

dp.enable_features("contrib")

TOLERANCE = 1e-9
"""How far, relatively, a measurement's own ρ may lie from the closed form that is claimed."""

TAIL_TOLERANCE, TAIL_ROUNDING = 1e-5, 3e-16
"""The same for δ_ps, relatively and once per key. The closed form, by `erfc`, is exact to the last digits (scipy agrees
to 1e-14); OpenDP bounds the normal tail from above, and lay 0 to 6e-6 above it in a scan of δ_ps from 1e-8 to .4."""


_LARGEST = 2**61


@runtime_checkable
class Noise(Protocol):
    """Draws noise. Wrong types, shapes, NaN and infinities are programming errors: ValueError, without values."""

    def gaussian(self, values: NDArray[np.float64], *, sensitivity: float, sigma: float) -> NDArray[np.float64]:
        """Return the values, shape (n,), each with Gaussian noise of standard deviation `sigma`.

        `sensitivity` is the L2 sensitivity of the whole vector; ρ = sensitivity²/2σ².
        """
        ...

    def histogram(
        self,
        listed: NDArray[np.float64],
        unlisted: Mapping[str, float],
        *,
        keys: int,
        sigma: float,
        threshold: float | None,
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """Return noisy counts of all listed keys, shape (n,), and of the unlisted ones strictly above `threshold`.

        A unit adds 1 to at most `keys` keys, listed and unlisted together. The two parts cost keys/2σ² once, not
        twice: a unit with k₁ listed and k₂ unlisted keys moves disjoint coordinates with independent noise, so the
        Rényi divergences add up to α·k₁/2σ² + α·k₂/2σ², and k₁ + k₂ ≤ keys. Only an unlisted key that nobody else
        has can tell by its presence: δ_ps = 1 − Φ((threshold − 1)/σ)^keys.

        With `threshold` None no unlisted key is looked at and none is returned.
        """
        ...

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        """Return the index of the largest of the integer scores, shape (m,), after Gumbel noise of scale `scale`.

        The exponential mechanism: index i with probability ∝ exp(scores[i]/scale); ρ = (range/scale)²/8.
        `monotonic`: a unit moves all scores the same way, each by 0…range. Otherwise each moves by at most
        range/2 either way. The largest step must be a whole number, as the scores are.
        """
        ...

    def choose(self, scores: NDArray[np.int64], *, sensitivity: int, scale: float) -> int:
        """Return an index of the integer scores, shape (m,), by the exponential mechanism (McSherry & Talwar 2007).

        Index i with probability ∝ exp(scores[i]/scale). Where one value is exchanged for another, each score moves by
        at most `sensitivity` either way: pure ε = 2·sensitivity/scale. It is `noisy_max` with its cost in pure ε.
        """
        ...

    def laplace(self, value: int, *, sensitivity: int, scale: float) -> int:
        """Return the whole number with discrete Laplace noise: x is added with probability ∝ exp(−|x|/scale).

        Where one value is exchanged for another it moves by at most `sensitivity`: pure ε = sensitivity/scale.
        """
        ...


class OpenDPNoise:
    """Noise from OpenDP. Before every draw the measurement's own map is held against the claimed cost."""

    def gaussian(self, values: NDArray[np.float64], *, sensitivity: float, sigma: float) -> NDArray[np.float64]:
        check_floats("values", values)
        return _gaussian(values, sensitivity, sigma, cost(Gaussian("draw", sensitivity, sigma)).rho)

    def histogram(
        self,
        listed: NDArray[np.float64],
        unlisted: Mapping[str, float],
        *,
        keys: int,
        sigma: float,
        threshold: float | None,
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        check_floats("listed", listed)
        root = math.sqrt(keys)
        if threshold is None:
            return _gaussian(listed, root, sigma, cost(Gaussian("draw", root, sigma)).rho), {}
        check_counts("unlisted", unlisted)
        claimed = cost(ThresholdedGaussian("draw", keys, sigma, threshold))
        measurement = thresholded_measurement(sigma, threshold)
        _hold(claimed, Cost(*measurement.map((keys, root, 1.0))), keys)
        noisy = _gaussian(listed, root, sigma, claimed.rho)
        # OpenDP cuts a key at its first NUL and refuses lone surrogates; hexadecimal tells all keys apart.
        released: dict[str, float] = measurement({_hex(key): float(count) for key, count in unlisted.items()})
        survivors = {_unhex(name): count for name, count in released.items() if count > threshold}
        # In the order of the keys: the order of insertion would be that of the collection.
        return noisy, dict(sorted(survivors.items()))

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        check_scores(scores)
        step = largest_step(range, monotonic)
        measurement = max_measurement(scale, monotonic)
        _hold(cost(NoisyMax("draw", range, scale)), Cost(measurement.map(step)))
        return int(measurement(scores))

    def choose(self, scores: NDArray[np.int64], *, sensitivity: int, scale: float) -> int:
        check_scores(scores)
        check_sensitivity(sensitivity)
        # With Gumbel noise the index has the density of the exponential mechanism, whose range η is its pure ε; OpenDP
        # states it as ρ = η²/8. Under max-divergence it would run another mechanism, permute-and-flip.
        measurement = max_measurement(scale, False)
        _hold_pure(2 * sensitivity / scale, math.sqrt(8 * measurement.map(sensitivity)))
        return int(measurement(scores))

    def laplace(self, value: int, *, sensitivity: int, scale: float) -> int:
        check_whole(value)
        check_sensitivity(sensitivity)
        measurement = laplace_measurement(scale)
        _hold_pure(sensitivity / scale, measurement.map(sensitivity))
        return int(measurement(int(value)))


def gaussian_measurement(sigma: float) -> Any:
    """Return OpenDP's Gaussian measurement on float vectors, under L2 distance."""
    return dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float), scale=float(sigma)
    )


def thresholded_measurement(sigma: float, threshold: float) -> Any:
    """Return OpenDP's thresholded Gaussian measurement on maps of float counts.

    Floats, not integers: on i32 counts the δ that OpenDP claims is too small (PRIVACY rule 3).
    """
    return dp.m.make_gaussian_threshold(
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=float, nan=False)),
        dp.l02inf_distance(dp.absolute_distance(T=float)),
        scale=float(sigma),
        threshold=float(threshold),
    )


def max_measurement(scale: float, monotonic: bool) -> Any:
    """Return OpenDP's noisy maximum on integer vectors, with Gumbel noise.

    Under zero-concentrated divergence; with max-divergence OpenDP would run permute-and-flip, which is another
    mechanism with another density.
    """
    return dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64", monotonic=monotonic),
        dp.zero_concentrated_divergence(),
        scale=float(scale),
        negate=False,
    )


def laplace_measurement(scale: float) -> Any:
    """Return OpenDP's discrete Laplace measurement on whole numbers, under absolute distance."""
    return dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=float(scale))


def largest_step(range: float, monotonic: bool) -> int:
    """Return how far one unit moves one score at most; ValueError unless it is a whole number above 0."""
    step = range if monotonic else range / 2
    if not (step > 0 and math.isfinite(step) and float(step).is_integer()):
        raise ValueError(f"the largest step of a score is {step:g}, but integer scores move by whole numbers above 0")
    return int(step)


def check_floats(name: str, values: NDArray[np.float64]) -> None:
    """Raise ValueError unless `values` is a finite float64 vector. The message holds no value."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.ndim != 1:
        raise ValueError(f"{name} must be a numpy vector of float64")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite: clip and replace NaN before asking for noise")


def check_counts(name: str, counts: Mapping[str, float]) -> None:
    """Raise ValueError unless all counts are finite numbers. The message holds neither key nor count."""
    for key, count in counts.items():
        if not isinstance(key, str) or not isinstance(count, (int, float)) or not math.isfinite(count):
            raise ValueError(f"{name} must map strings to finite numbers")


def check_scores(scores: NDArray[np.int64]) -> None:
    """Raise ValueError unless `scores` is an int64 vector of at least one entry."""
    if not isinstance(scores, np.ndarray) or scores.dtype != np.int64 or scores.ndim != 1 or scores.size == 0:
        raise ValueError("scores must be a numpy vector of int64 with at least one entry")


def check_whole(value: int) -> None:
    """Raise ValueError unless `value` is a whole number far from where 64 bits end. The message holds no value."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not -_LARGEST <= value <= _LARGEST:
        raise ValueError("value must be a whole number of at most 61 bits")


def check_sensitivity(sensitivity: int) -> None:
    """Raise ValueError unless the sensitivity is a whole number above 0."""
    if not isinstance(sensitivity, int) or sensitivity < 1:
        raise ValueError("sensitivity must be a whole number above 0")


def _gaussian(values: NDArray[np.float64], sensitivity: float, sigma: float, claimed: float) -> NDArray[np.float64]:
    measurement = gaussian_measurement(sigma)
    _hold(Cost(claimed), Cost(measurement.map(float(sensitivity))))
    return np.asarray(measurement(np.ascontiguousarray(values)), dtype=np.float64)


def _hold(claimed: Cost, mapped: Cost, keys: int = 0) -> None:
    """Raise AssertionError unless the measurement costs what is claimed: a mechanism must not run uncharged."""
    if abs(mapped.rho - claimed.rho) > TOLERANCE * claimed.rho:
        raise AssertionError(f"the mechanism costs ρ = {mapped.rho!r}, but {claimed.rho!r} is claimed")
    if abs(mapped.delta_ps - claimed.delta_ps) > TAIL_TOLERANCE * claimed.delta_ps + TAIL_ROUNDING * keys:
        raise AssertionError(f"the mechanism costs δ = {mapped.delta_ps!r}, but {claimed.delta_ps!r} is claimed")


def _hold_pure(claimed: float, mapped: float) -> None:
    if not abs(mapped - claimed) <= TOLERANCE * claimed:
        raise AssertionError(f"the mechanism costs ε = {mapped!r}, but {claimed!r} is claimed")


def _hex(key: str) -> str:
    return key.encode("utf-8", "surrogatepass").hex()


def _unhex(name: str) -> str:
    return bytes.fromhex(name).decode("utf-8", "surrogatepass")
