"""A span: a stretch of a normalised text that somebody says may identify."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """What a detector found, in coordinates of `text.normalise(text)`: that text's [start:end].

    Args:
        start, end: characters, 0 ≤ start < end.
        category: a name of `categories`; one that no policy knows is treated as "unknown".
        detector: who found it.
        score: the detector's own confidence in [0, 1]; it never lowers the protection of a span.
    """

    start: int
    end: int
    category: str
    detector: str
    score: float
