"""The real detectors, loaded once for all tests of a process."""

from __future__ import annotations

from functools import cache

from stillroom.guard.build import build
from stillroom.guard.categories import category
from stillroom.guard.detect.presidio import PresidioDetector
from stillroom.guard.detect.union import Union
from stillroom.guard.policy import Policy
from stillroom.text import normalise


@cache
def presidio() -> PresidioDetector:
    return PresidioDetector()


@cache
def union() -> Union:
    """Return the detectors of a policy that says nothing."""
    return build(Policy(name="plain"), presidio())


def covered(text: str, with_union: Union | None = None) -> str:
    """Return the normalised text with █ for every character that a private span covers."""
    plain = list(normalise(text))
    for span in (with_union or union()).find(text):
        if category(span.category).private:
            plain[span.start : span.end] = "█" * (span.end - span.start)
    return "".join(plain)


def found(text: str, with_union: Union | None = None) -> dict[str, str]:
    """Return the category of every surface that is found."""
    plain = normalise(text)
    return {plain[span.start : span.end]: span.category for span in (with_union or union()).find(text)}
