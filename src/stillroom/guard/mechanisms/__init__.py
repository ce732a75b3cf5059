"""Mechanisms: what a private value is answered with. `make` finds one by the words of a policy."""

from __future__ import annotations

from stillroom.errors import BadOption, UnknownName
from stillroom.guard.mechanisms.base import NEVER_SWAPPED, Mechanism
from stillroom.guard.mechanisms.laplace import Bound, Laplace
from stillroom.guard.mechanisms.placeholder import Placeholder, placeholder
from stillroom.guard.mechanisms.surrogate import Surrogate
from stillroom.guard.mechanisms.tree import TreeChoice

NAMES = ("laplace", "placeholder", "surrogate", "tree")


def make(
    name: str,
    category: str,
    *,
    epsilon: float | None = None,
    low: Bound | None = None,
    high: Bound | None = None,
    step: float | None = None,
    metric: float | None = None,
    dictionary: str | None = None,
) -> Mechanism:
    """Return the mechanism of a category as a policy has it. What a mechanism does not use may be None.

    Raises: UnknownName, BadOption.
    """
    match name:
        case "placeholder":
            return Placeholder(category)
        case "surrogate":
            return Surrogate(category)
        case "laplace":
            return Laplace(category, low=low, high=high, step=step, epsilon=epsilon, metric=metric)
        case "tree":
            if dictionary is None:
                raise BadOption(f"dictionary of {category!r}", dictionary, "'places', 'countries' or 'organisations'")
            return TreeChoice(category, dictionary_name=dictionary, epsilon=epsilon)
    raise UnknownName("mechanism", name, NAMES)


__all__ = [
    "NAMES",
    "NEVER_SWAPPED",
    "Laplace",
    "Mechanism",
    "Placeholder",
    "Surrogate",
    "TreeChoice",
    "make",
    "placeholder",
]
