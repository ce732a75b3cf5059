"""Zero-concentrated differential privacy: what events cost, and what it is in ε and δ.

(ρ, δ_ps) adds up, ε does not. Sources: Bun & Steinke 2016 (zCDP); Dong, Durfee & Rogers 2020 and Cesar & Rogers
2021 (bounded range η gives ρ = η²/8); Canonne, Kamath & Steinke, arXiv 2004.00010, Prop. 12 (conversion).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from stillroom.errors import BadOption
from stillroom.privacy.events import Event, Gaussian, NoisyMax, NotPrivate, ThresholdedGaussian

_NORMAL = NormalDist()


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
    return sensitivity**2 / (2 * sigma**2)


def gaussian_sigma(sensitivity: float, rho: float) -> float:
    """Return the σ at which Gaussian noise costs ρ."""
    return sensitivity / math.sqrt(2 * rho)


def upper_tail(z: float) -> float:
    """Return P(N(0, 1) > z), exact in the far tail."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def threshold_delta(keys: int, sigma: float, threshold: float) -> float:
    """Return δ_ps = 1 − Φ((t − 1)/σ)^keys of a histogram in which a unit adds 1 to at most `keys` keys."""
    return -math.expm1(keys * math.log1p(-upper_tail((threshold - 1) / sigma)))


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
            return Cost((event.range / event.scale) ** 2 / 8).times(event.times)
        case NotPrivate():
            return Cost(math.inf, 1.0)


def total(events: Iterable[Event]) -> Cost:
    """Return the sum of the costs of the events."""
    return sum((cost(event) for event in events), Cost(0.0))


def delta_of(rho: float, epsilon: float) -> float:
    """Return the smallest δ that the optimal conversion gives for ρ at ε (Prop. 12 of 2004.00010)."""
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return 1.0

    def log_delta(alpha: float) -> float:
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    # log_delta is convex in alpha; find its minimum by ternary search in log(alpha - 1).
    low, high = math.log(1e-9), math.log(max(10.0, 10 * (epsilon + 1) / rho))
    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if log_delta(1 + math.exp(a)) < log_delta(1 + math.exp(b)):
            high = b
        else:
            low = a
    return min(1.0, math.exp(log_delta(1 + math.exp((low + high) / 2))))


def epsilon_of(rho: float, delta: float) -> float:
    """Return the smallest ε, rounded up, with which ρ-zCDP is (ε, δ)-DP. Infinite where δ ≤ 0 or ρ is infinite."""
    if rho == 0:
        return 0.0
    if delta <= 0 or math.isinf(rho):
        return math.inf
    if delta >= 1:
        return 0.0
    low, high = 0.0, rho + math.sqrt(4 * rho * math.log(1 / delta)) + 1
    for _ in range(200):
        middle = (low + high) / 2
        if delta_of(rho, middle) > delta:
            low = middle
        else:
            high = middle
    return high


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ, rounded down, that is (ε, δ)-DP by the optimal conversion."""
    check_budget(epsilon, delta)
    low, high = 0.0, epsilon + 1
    for _ in range(200):
        middle = (low + high) / 2
        if delta_of(middle, epsilon) > delta:
            high = middle
        else:
            low = middle
    return low


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
