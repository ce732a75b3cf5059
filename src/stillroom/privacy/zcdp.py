"""Zero-concentrated differential privacy: what events cost, and what it is in ε and δ.

(ρ, δ_ps) adds up, ε does not. Sources: Bun & Steinke 2016 (zCDP); Dong, Durfee & Rogers 2020 and Cesar & Rogers
2021 (bounded range η gives ρ = η²/8); Canonne, Kamath & Steinke, arXiv 2004.00010, Prop. 12 (conversion).

The optimal conversion: for every x > 0 (α = 1 + x), ρ-zCDP is (ε, δ)-DP with

    log δ = x((1 + x)ρ − ε − log(1 + 1/x)) − log(1 + x).

Any x gives a true statement, so an x that is not quite the best one costs a little and claims nothing false; solved for
δ, ε or ρ, the best x is where one rising function passes zero. What floats round is put on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from stillroom.errors import BadOption
from stillroom.privacy.events import Event, Gaussian, NoisyMax, NotPrivate, ThresholdedGaussian

_NORMAL = NormalDist()

LEAST_X, MOST_X = 1e-150, 1e300
ROUNDING = 1e-14
"""Relative error that a sum of a few logarithms may have; far more than it has."""


@dataclass(frozen=True)
class Cost:
    """ρ of zero-concentrated DP, and the δ of partition selection; both add up."""

    rho: float
    delta_ps: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.rho + other.rho, self.delta_ps + other.delta_ps)

    def times(self, n: int) -> Cost:
        return Cost(self.rho * n, self.delta_ps * n)


def gaussian_rho(sensitivity: float, sigma: float) -> float:
    """Return ρ = Δ²/2σ²."""
    ratio = sensitivity / sigma
    return ratio * ratio / 2


def gaussian_sigma(sensitivity: float, rho: float) -> float:
    """Return the σ at which Gaussian noise costs ρ."""
    return sensitivity / math.sqrt(2 * rho)


def upper_tail(z: float) -> float:
    """Return P(N(0, 1) > z), exact in the far tail."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def threshold_delta(keys: int, sigma: float, threshold: float) -> float:
    """Return δ_ps = 1 − Φ((t − 1)/σ)^keys of a histogram in which a unit adds 1 to at most `keys` keys."""
    tail = upper_tail((threshold - 1) / sigma)
    return -math.expm1(keys * math.log1p(-tail)) if tail < 1 else 1.0


def threshold_for(keys: int, sigma: float, delta_ps: float) -> float:
    """Return the threshold 1 + σ Φ⁻¹((1 − δ_ps)^(1/keys)), rounded up so that its δ is at most δ_ps."""
    tail = -math.expm1(math.log1p(-delta_ps) / keys)
    threshold = 1 + sigma * -_NORMAL.inv_cdf(tail)
    while threshold_delta(keys, sigma, threshold) > delta_ps:
        threshold *= 1 + 1e-9
    return threshold


def cost(event: Event) -> Cost:
    """Return what one event costs, all its repetitions included."""
    match event:
        case Gaussian():
            return Cost(gaussian_rho(event.sensitivity, event.sigma)).times(event.times)
        case ThresholdedGaussian():
            rho = gaussian_rho(math.sqrt(event.keys), event.sigma)
            return Cost(rho, threshold_delta(event.keys, event.sigma, event.threshold)).times(event.times)
        case NoisyMax():
            eta = event.range / event.scale
            return Cost(eta * eta / 8).times(event.times)
        case NotPrivate():
            return Cost(math.inf, 1.0)


def total(events: Iterable[Event]) -> Cost:
    """Return the sum of the costs of the events."""
    return sum((cost(event) for event in events), Cost(0.0))


def delta_of(rho: float, epsilon: float) -> float:
    """Return the smallest δ, rounded up, with which ρ-zCDP is (ε, δ)-DP by the optimal conversion."""
    if not (0 <= rho < math.inf and epsilon > -math.inf):
        return 1.0
    if rho == 0 or epsilon == math.inf:
        return 0.0
    x = _crossing(lambda x: (1 + 2 * x) * rho - epsilon - math.log1p(1 / x))
    parts = (x * ((1 + x) * rho - epsilon), -x * math.log1p(1 / x), -math.log1p(x))
    return math.exp(min(0.0, _above(parts)))


def epsilon_of(rho: float, delta: float) -> float:
    """Return the smallest ε, rounded up, with which ρ-zCDP is (ε, δ)-DP. Infinite where δ ≤ 0 or ρ is infinite."""
    if rho == 0:
        return 0.0
    if not (delta > 0 and 0 < rho < math.inf):
        return math.inf
    if delta >= 1:
        return 0.0
    log = -math.log(delta)
    x = _crossing(lambda x: rho * x * x + math.log1p(x) - log)
    return max(0.0, _above((rho, rho * x, log / x, -math.log1p(x) / x, -math.log1p(1 / x))))


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ, rounded down, that is (ε, δ)-DP by the optimal conversion."""
    check_budget(epsilon, delta)
    log = -math.log(delta)
    # Of all x, the best one for ρ is also the best for ε and δ, so ρ = (log 1/δ − log(1 + x))/x² there.
    x = _crossing(lambda x: epsilon + math.log1p(1 / x) - (1 + 2 * x) * ((log - math.log1p(x)) / x / x))
    less = _above((-epsilon, log / x, -math.log1p(x) / x, -math.log1p(1 / x)))
    return max(0.0, -less / (1 + x) * (1 - ROUNDING))


def _crossing(rising: Callable[[float], float]) -> float:
    """Return the x > 0 at which a rising function passes zero, as close as floats come, by bisection of log x."""
    low, high = math.log(LEAST_X), math.log(MOST_X)
    for _ in range(64):
        middle = (low + high) / 2
        if rising(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return math.exp(high)


def _above(parts: Sequence[float]) -> float:
    """Return the sum of the parts and more than rounding can have taken from them."""
    return math.fsum(parts) + ROUNDING * math.fsum(map(abs, parts))


def rho_of_paper(epsilon: float, delta: float) -> float:
    """Return ρ with ε = ρ + √(4ρ ln 1/δ), the looser conversion of Theorem 1 of arXiv 2510.06719."""
    check_budget(epsilon, delta)
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def check_budget(epsilon: float, delta: float) -> None:
    """Raise BadOption unless ε is finite and above 0 and 0 < δ < 1."""
    if not (0 < epsilon < math.inf):
        raise BadOption("ε", epsilon, "a finite number above 0, such as 10")
    if not (0 < delta < 1):
        raise BadOption("δ", delta, "between 0 and 1, such as 1e-6")
