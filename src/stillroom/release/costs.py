"""From a plan to the events it pays for: the one derivation, used to reserve and again to verify."""

from __future__ import annotations

import math
from collections.abc import Iterator

from stillroom.errors import BadOption
from stillroom.privacy.events import Event, Gaussian, NoisyMax, ThresholdedGaussian
from stillroom.release.schema import PlanRecord, TopicPlan


def events_of(plan: PlanRecord) -> tuple[Event, ...]:
    """Return every event of a release made by this plan, per unit (Theorem 1 of arXiv 2510.06719, extended).

    Steps inside topics are charged L times: a unit is in at most L topics, with one document and in one part of
    each, and which ones follows from the unit and released words alone (overlapping parallel composition).

    Raises BadOption where a number of the plan is too large or too small to reckon with.
    """
    try:
        return tuple(_events(plan))
    except ArithmeticError as wrong:
        raise BadOption("a number of the plan", "beyond what floating point holds", "one that can be paid") from wrong


def _events(plan: PlanRecord) -> Iterator[Event]:
    words, topics, text = plan.keywords, plan.topics, plan.text
    joins = topics.per_unit
    if words.threshold is None:
        yield Gaussian("keywords", math.sqrt(words.per_unit), words.sigma)
    else:
        yield ThresholdedGaussian("keywords", words.per_unit, words.sigma, words.threshold)
    if topics.size_sigma is not None:
        yield Gaussian("topic sizes", math.sqrt(joins), topics.size_sigma)
    if plan.cokeywords is not None:
        co = plan.cokeywords
        yield Gaussian("co-keywords", math.sqrt(co.per_unit), co.sigma, times=joins)
    if plan.cut is not None:
        yield Gaussian("topic mean", 1.0, plan.cut.mean_sigma, times=joins)
        # Counts move by at most 1 either way: range 2, and scale 2/ε_θ, which is ε_θ²/8.
        yield NoisyMax("similarity cut", 2.0, 2.0 / plan.cut.epsilon_theta, times=joins)
    yield NoisyMax("text", float(text.levels), vote_scale(plan), times=joins * text.draws)


def vote_scale(plan: PlanRecord) -> float:
    """Return the Gumbel scale in votes: one vote is worth 2c/levels, so τ is τ·levels/2c votes."""
    return plan.text.temperature * plan.text.levels / (2 * plan.text.clip)


def least_count(sigma: float, words: int) -> float:
    """Return about what the largest of so many noises reaches, σ √(2 ln R): a co-keyword's noisy count is above it."""
    return sigma * math.sqrt(2 * math.log(max(2, words)))


def parts_of(size: float, plan: TopicPlan) -> int:
    """Return into how many parts, of one text each, a topic of this noisy size is split."""
    return 1 if plan.part is None else max(1, int(size // plan.part))
