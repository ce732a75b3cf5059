"""Costs and conversions, against the published numbers, OpenDP, scipy and Theorem 1 of DP-SynRAG."""

import math
import time

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from stillroom.errors import BadOption
from stillroom.privacy import zcdp
from stillroom.privacy.events import Gaussian, NotPrivate, ThresholdedGaussian
from stillroom.privacy.noise import gaussian_measurement
from stillroom.release.costs import events_of
from stillroom.release.schema import CutPlan, KeywordPlan, PlanRecord, TextPlan, TopicPlan

BUDGETS = [
    (10, 1e-3, 2.2012, 2.6068),
    (10, 1e-6, 1.3530, 1.5393),
    (5, 1e-5, 0.4496, 0.5510),
    (3, 1e-5, 0.1735, 0.2242),
]
epsilons = st.floats(0.05, 50)
deltas = st.floats(1e-12, 0.1)


@pytest.mark.parametrize("epsilon, delta, paper, optimal", BUDGETS)
def test_the_two_conversions_give_the_published_table(
    epsilon: float, delta: float, paper: float, optimal: float
) -> None:
    assert zcdp.rho_of_paper(epsilon, delta) == pytest.approx(paper, abs=5.1e-5)
    assert zcdp.rho_of(epsilon, delta) == pytest.approx(optimal, abs=5.1e-5)


@pytest.mark.parametrize("releases, epsilon", [(1, 10.0), (2, 15.2), (10, 43.0)])
def test_epsilon_of_several_releases_is_less_than_their_sum(releases: int, epsilon: float) -> None:
    assert zcdp.epsilon_of(releases * zcdp.rho_of(10, 1e-6), 1e-6) == pytest.approx(epsilon, abs=0.15)


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 1.5393, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_the_conversion_is_the_one_of_opendp(rho: float, delta: float) -> None:
    approximate = dp.c.make_zCDP_to_approxDP(gaussian_measurement(1.0))
    theirs = approximate.map(math.sqrt(2 * rho)).epsilon(delta)
    assert zcdp.epsilon_of(rho, delta) == pytest.approx(theirs, rel=1e-6)


@settings(max_examples=300, deadline=None)
@given(epsilon=epsilons, delta=deltas)
def test_rho_and_epsilon_never_round_in_favour_of_spending(epsilon: float, delta: float) -> None:
    rho = zcdp.rho_of(epsilon, delta)
    assert zcdp.delta_of(rho, epsilon) <= delta
    assert zcdp.epsilon_of(rho, delta) <= epsilon * (1 + 1e-12)
    assert zcdp.epsilon_of(rho * (1 + 1e-6), delta) > epsilon
    assert zcdp.rho_of_paper(epsilon, delta) < rho


@settings(max_examples=100, deadline=None)
@given(rho=st.floats(1e-3, 100), epsilon=epsilons)
def test_delta_is_the_least_of_proposition_12_over_all_orders(rho: float, epsilon: float) -> None:
    def log_delta(alpha: float) -> float:
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    least = min(0.0, *(log_delta(1 + math.exp(step / 50)) for step in range(-500, 1000)))
    delta = zcdp.delta_of(rho, epsilon)
    assert delta <= math.exp(least) * (1 + 1e-9)
    assert delta == 0 or math.log(delta) == pytest.approx(least, rel=1e-3, abs=1e-3)


def test_a_thousand_conversions_take_no_noticeable_time() -> None:
    start = time.process_time()
    for step in range(1, 1001):
        zcdp.epsilon_of(zcdp.rho_of(step / 50, 1e-6), 1e-6)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("rho", [5e-324, 1e-300, 1e300, 1.7e308, math.inf, math.nan, -1.0])
@pytest.mark.parametrize("other", [5e-324, 1e-300, 0.5, 1 - 1e-16, 1e300, math.inf, math.nan, -1.0])
def test_no_number_stops_a_conversion_and_what_is_none_claims_nothing(rho: float, other: float) -> None:
    epsilon, delta = zcdp.epsilon_of(rho, other), zcdp.delta_of(rho, other)
    assert epsilon >= 0 and 0 <= delta <= 1
    if not 0 <= rho < math.inf:
        assert epsilon == math.inf and delta == 1
    if not other > 0:
        assert epsilon == math.inf


@settings(max_examples=60, deadline=None)
@given(keys=st.integers(1, 50), sigma=st.floats(0.1, 100), delta=st.floats(1e-14, 0.4))
def test_the_threshold_spends_its_delta_and_no_more(keys: int, sigma: float, delta: float) -> None:
    threshold = zcdp.threshold_for(keys, sigma, delta)
    exact = -math.expm1(keys * math.log1p(-norm.sf((threshold - 1) / sigma)))
    assert zcdp.threshold_delta(keys, sigma, threshold) == pytest.approx(exact, rel=1e-9)
    assert 0.999 * delta < zcdp.threshold_delta(keys, sigma, threshold) <= delta


def test_rho_and_the_delta_of_partition_selection_add_up() -> None:
    events = [Gaussian("a", 2.0, 4.0, times=3), ThresholdedGaussian("b", 4, 2.0, 9.0, times=2)]
    total = zcdp.total(events)
    assert total.rho == pytest.approx(3 * 4 / 32 + 2 * 4 / 8)
    assert total.delta_ps == pytest.approx(2 * (1 - norm.cdf(4.0) ** 4))


def test_what_is_not_private_costs_infinitely_much() -> None:
    total = zcdp.total([Gaussian("a", 1.0, 1.0), NotPrivate("raw")])
    assert total.rho == math.inf and zcdp.epsilon_of(total.rho, 1e-6) == math.inf


def test_without_delta_left_no_epsilon_is_claimed() -> None:
    assert zcdp.epsilon_of(0.1, 0.0) == math.inf and zcdp.epsilon_of(0.1, -1e-9) == math.inf


@pytest.mark.parametrize("epsilon, delta", [(0, 1e-6), (-1, 1e-6), (math.inf, 1e-6), (math.nan, 1e-6), (1, 0), (1, 1)])
def test_a_budget_that_is_none_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(BadOption):
        zcdp.check_budget(epsilon, delta)


def test_theorem_1_of_dp_synrag_is_what_a_paper_plan_costs() -> None:
    K, L, T, sigma_h, sigma_mu, epsilon_theta, c, tau = 10, 5, 70, 7.07, 23.57, 0.4, 0.1057, 1.3
    theorem = K / (2 * sigma_h**2) + L * (epsilon_theta**2 / 8 + 1 / (2 * sigma_mu**2) + (T / 2) * (c / tau) ** 2)
    plan = PlanRecord(
        method="paper",
        preset="paper-medical",
        epsilon=10,
        delta=1e-3,
        conversion="paper",
        keywords=KeywordPlan(extractor="lm", per_unit=K, sigma=sigma_h, released=500, word_list="english"),
        topics=TopicPlan(per_unit=L, merge=False),
        cut=CutPlan(mean_sigma=sigma_mu, epsilon_theta=epsilon_theta, keep=80),
        text=TextPlan(draws=T, clip=c, temperature=tau, votes="centred", candidates="all"),
    )
    total = zcdp.total(events_of(plan))
    assert total.rho == pytest.approx(theorem, rel=1e-12)
    assert total.delta_ps == 0.0
    epsilon = theorem + math.sqrt(4 * theorem * math.log(1e3))
    assert zcdp.rho_of_paper(epsilon, 1e-3) == pytest.approx(theorem, rel=1e-12)
