"""The seam to mechanisms: what a value is answered with, and what one answer costs."""

from __future__ import annotations

from abc import ABC, abstractmethod

from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.privacy.noise import Noise

NEVER_SWAPPED = frozenset({"diagnosis", "dose", "drug", "laboratory", "treatment"})
"""Another plausible one would be believed, and somebody treated by it: such values are shown, or left out, never
changed."""


class Mechanism(ABC):
    """Answers a value with another text.

    An answer is a draw: the caller makes it once, stores it and pays for it (`memo`). Which text comes out depends on
    the value only with the density that `epsilon` is about, never on how the value is written: its letters, length or
    script (rule 30). No value stops a mechanism.

    Attributes:
        category: of the values.
        epsilon: what one draw costs: for any two values v, w and any answer, P(answer | v) ≤ e^ε · P(answer | w).
        guarantee: the label that goes with it.
        version: the mechanism and all its public parameters: with another version a value is drawn anew, and paid anew.
    """

    category: str
    epsilon: float
    guarantee: Guarantee
    version: str

    @abstractmethod
    def draw(self, value: str, noise: Noise) -> str:
        """Return one answer to the canonical value. Of randomness it uses `noise` alone."""


def check_category(category: str, mechanism: str) -> None:
    """Raise BadOption where a mechanism would swap what must never be swapped."""
    if category in NEVER_SWAPPED:
        raise BadOption(
            f"the mechanism of {category!r}",
            repr(mechanism),
            "'placeholder': doses, drugs and findings are never swapped for other plausible ones",
        )


def check_epsilon(category: str, epsilon: float | None) -> float:
    """Return ε; BadOption unless it is a number above 0 and at most 100."""
    if epsilon is None or not 0 < epsilon <= 100:
        raise BadOption(f"ε of {category!r}", epsilon, "a number above 0, 100 at most")
    return float(epsilon)
