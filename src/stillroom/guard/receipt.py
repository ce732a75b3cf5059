"""A receipt: what was done to a context, what it cost, and what it does not cover. It holds no value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stillroom.guarantee import Guarantee
from stillroom.guard.policy import Tier

NOT_COVERED = (
    "what no detector found",
    "that a value was found, its category and its place: the template",
    "that two values of one subject are equal: the same stands in their place",
)
"""What no receipt covers (rule 25)."""

CUT = "the end of a passage, which was left out as too long"


@dataclass(frozen=True)
class Receipt:
    """What `Guard.sanitise` did.

    Attributes:
        policy, version, role, caller: by which policy, for whom.
        spans: by category, how many stand at each tier.
        raised: how many stand at a stricter tier than their base, because of the risk of the query.
        epsilon: ε newly spent by this call, over all subjects.
        subject_epsilon: Σε of the subject of whom most was ever drawn, among those in this context; None where the
            ledger cannot be read.
        subject_limit: the ε that may ever be spent on one subject; None without a ledger.
        refused: how many draws were refused, by "subject" or "caller": placeholders stand for them.
        ledger: whether the books could be kept; where not, all values are placeholders.
        not_covered: what the guarantee does not speak of.
        guarantee: the weakest of all spans: `none` where something stands raw, or nothing was found, or a value was
            given back.
        given_back: categories of which values were put back into an answer.
    """

    policy: str
    version: int
    role: str | None
    caller: str
    spans: Mapping[str, Mapping[Tier, int]]
    raised: int
    epsilon: float
    subject_epsilon: float | None
    subject_limit: float | None
    refused: Mapping[str, int]
    ledger: bool
    not_covered: tuple[str, ...]
    guarantee: Guarantee
    given_back: tuple[str, ...] = ()

    def with_values(self, categories: Iterable[str]) -> Receipt:
        """Return the receipt of an answer into which values of these categories were put back."""
        return replace(self, guarantee=Guarantee.NONE, given_back=tuple(sorted(set(categories))))

    def plain(self) -> dict[str, Any]:
        """Return what JSON can say of it."""
        return {
            **self.__dict__,
            "spans": {name: dict(tiers) for name, tiers in self.spans.items()},
            "refused": dict(self.refused),
            "guarantee": self.guarantee.value,
        }

    def says(self) -> str:
        """Return it in a few plain lines."""
        spans = "; ".join(
            f"{name}: {', '.join(f'{count} {tier}' for tier, count in tiers.items())}"
            for name, tiers in self.spans.items()
        )
        lines = [f"spans: {spans or 'none'}"]
        spent = f"ε newly spent: {self.epsilon:g}"
        if self.subject_epsilon is None:
            spent += "; of the subject drawn most of nothing is known, as the ledger cannot be read"
        elif self.subject_limit is not None:
            spent += f"; on the subject drawn most of: {self.subject_epsilon:g} of {self.subject_limit:g}"
        lines.append(spent)
        if self.raised:
            lines.append(f"raised by the risk of the question: {self.raised}")
        for why, count in self.refused.items():
            of = {"subject": "the subject's account", "caller": "the caller's quota"}[why]
            lines.append(f"refused: {count}, as {of} is empty; placeholders stand for them")
        if self.given_back:
            lines.append(f"values given back: {', '.join(self.given_back)}")
        if not self.ledger:
            lines.append("no ledger kept the books: every value is a placeholder")
        lines.append(f"guarantee: {self.guarantee.value}; not covered: {'; '.join(self.not_covered)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Line:
    """What was done to one span."""

    category: str
    tier: Tier
    guarantee: Guarantee


def spans_of(lines: Sequence[Line]) -> dict[str, dict[Tier, int]]:
    """Return how many spans stand at each tier, by category."""
    count = Counter((line.category, line.tier) for line in lines)
    spans: dict[str, dict[Tier, int]] = {}
    for (category, tier), number in sorted(count.items()):
        spans.setdefault(category, {})[tier] = number
    return spans


def not_covered(lines: Sequence[Line], cut: bool) -> tuple[str, ...]:
    """Return what the guarantee does not speak of."""
    raw = sorted({line.category for line in lines if line.tier == "raw"})
    left = (f"what the policy leaves as it stands: {', '.join(raw)}",) if raw else ()
    return (*left, *NOT_COVERED, *((CUT,) if cut else ()))
