"""The categories of what may identify: one namespace of lower-case names for detectors, policies and receipts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Category:
    """One kind of value.

    Args:
        name: lower-case, as in a policy and, in capitals, in a template ("[PERSON_1]").
        rank: which category a stretch gets that several detectors claim: the lowest rank wins. Sure and narrow ones
            (a checked card number) come before guesses by context (a person), and "unknown" comes last.
        kind: "text", or "number" and "date", for which a policy may state bounds and a noisy mechanism.
        swap: whether another plausible value may stand in its place. Never for diagnoses, drugs, doses, laboratory
            values and treatments, where a reader would act on it.
        private: whether it is protected at all without a policy's word ("Dr." is not).
    """

    name: str
    rank: int
    kind: Literal["text", "number", "date"] = "text"
    swap: bool = True
    private: bool = True


_ALL = (
    Category("language_unknown", 0, swap=False),  # a whole sentence: no detector reads its language, or one failed
    Category("password", 5, swap=False),
    Category("email", 10),
    Category("url", 11),
    Category("ip", 12),
    Category("card", 15),
    Category("iban", 16),
    Category("national_id", 20),
    Category("record_number", 21),
    Category("licence", 22),
    Category("account", 23),
    Category("username", 24),
    Category("phone", 30),
    Category("age", 34, kind="number"),
    Category("date", 35, kind="date"),
    Category("time", 36),
    Category("period", 37),  # what is less than a day, or more: a weekday, a month, three weeks
    Category("amount", 38, kind="number"),
    Category("dose", 40, swap=False),
    Category("laboratory", 41, swap=False),
    Category("drug", 42, swap=False),
    Category("diagnosis", 43, swap=False),
    Category("treatment", 44, swap=False),
    Category("address", 50),
    Category("postcode", 51),
    Category("country", 55),
    Category("city", 56),
    Category("nationality", 57),
    Category("title", 58, private=False),
    Category("person", 60),
    Category("organisation", 61),
    Category("profession", 62),
    Category("number", 90, kind="number"),
    Category("unknown", 99, swap=False),
)

CATEGORIES: dict[str, Category] = {category.name: category for category in _ALL}
"""All categories by name."""


def category(name: str) -> Category:
    """Return a category by name; one that nobody knows counts as "unknown", the most protected."""
    return CATEGORIES.get(name, CATEGORIES["unknown"])
