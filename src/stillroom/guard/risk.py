"""How much a query and a sentence together give away: the score of PA-HDP, and what it may do here: raise a tier.

S = λ·S_rel + (1−λ)·S_sen (arXiv 2607.14811, λ = .6), with S_rel the relevance of the sentence to the query and S_sen
the largest weight of what was found in it. The paper adds noise to S and hands out low scores verbatim; here the score
is of the *template*, has no noise, and nothing in it can lower a tier (rule 28 of PRIVACY.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stillroom.embed.base import Embedder
from stillroom.guard.policy import Policy, Tier, stricter
from stillroom.guard.template import Template


def relevance(cosine: float, *, gate: bool = True) -> float:
    """Return S_rel in [0, 1]: the cosine of query and sentence, 0 below 0 and where the gate is shut.

    The paper's gate is open when the query holds a sensitive entity; strict mode keeps it open, as attack prompts hold
    none. A cosine that is no number counts as 1.
    """
    if not gate:
        return 0.0
    return 1.0 if math.isnan(cosine) else min(1.0, max(0.0, cosine))


def sensitivity(categories: Iterable[str], policy: Policy) -> float:
    """Return S_sen in [0, 1]: the largest weight of the categories found; 0 where nothing was."""
    return max((policy.rule(name).weight for name in categories), default=0.0)


def score(s_rel: float, s_sen: float, share: float = 0.6) -> float:
    """Return S = share·S_rel + (1−share)·S_sen."""
    return share * s_rel + (1 - share) * s_sen


def raised(category: str, base: Tier, risk: float, policy: Policy) -> Tier:
    """Return the tier of a category at a risk: the base tier or a stricter one, never a looser.

    From `risk.surrogate` of the policy up nothing stays noisy or raw; from `risk.placeholder` up, and where the risk is
    no number, all become placeholders. What cannot have a surrogate gets a placeholder. A raw base stays where the
    policy says so (`risk.raw`).
    """
    rule = policy.risk
    if base == "raw" and not rule.raw:
        return base
    if math.isnan(risk) or risk >= rule.placeholder:
        return "placeholder"
    return policy.at_least(category, stricter(base, "surrogate")) if risk >= rule.surrogate else base


class Risk:
    """Scores queries against templates.

    Args:
        policy: its weights, and the share of relevance.
        embedder: turns query and template into vectors, each from its own text alone.
    """

    def __init__(self, policy: Policy, embedder: Embedder) -> None:
        self._policy, self._embedder = policy, embedder

    def of(self, query: str, templates: Sequence[Template]) -> list[float]:
        """Return the risk of each template for a query, in [0, 1]; no value of a slot goes into it."""
        if not templates:
            return []
        vectors = self._embedder.embed([query, *(template.text for template in templates)])
        cosines = vectors[1:] @ vectors[0]
        share = self._policy.risk.relevance
        return [
            score(relevance(float(c)), sensitivity((slot.category for slot in t.slots), self._policy), share)
            for c, t in zip(cosines, templates, strict=True)
        ]
