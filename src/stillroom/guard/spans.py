"""What a detector found in a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A place in `normalise(text)`, and what stands there.

    Attributes:
        start, end: the characters [start:end].
        category: name of a category of the policy, such as "person", "phone" or "unknown".
        detector: who found it.
        score: the detector's own confidence in [0, 1]; never used to lower protection.
    """

    start: int
    end: int
    category: str
    detector: str
    score: float
