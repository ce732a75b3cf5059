"""Placeholders: the category in place of the value."""

from __future__ import annotations

from stillroom.guarantee import Guarantee
from stillroom.guard.mechanisms.base import Mechanism
from stillroom.privacy.noise import Noise


class Placeholder(Mechanism):
    """Answers with the category in brackets, "[PERSON]": ε is 0, as the answer is the same for all values."""

    def __init__(self, category: str) -> None:
        self.category, self.epsilon, self.guarantee = category, 0.0, Guarantee.LDP_PER_VALUE
        self.version = "placeholder-1"

    def draw(self, value: str, noise: Noise) -> str:
        return placeholder(self.category)


def placeholder(category: str, index: int | None = None) -> str:
    """Return "[PERSON]", or "[PERSON_2]" for the second person of a document."""
    return f"[{category.upper()}]" if index is None else f"[{category.upper()}_{index}]"
