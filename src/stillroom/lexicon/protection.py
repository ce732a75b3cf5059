"""Words in which a wrong letter does harm: drugs, doses, laboratory values. Nothing is completed inside them."""

from __future__ import annotations

from functools import cache

from stillroom.lexicon.wordlist import lines

_SHORTEST = 6


def protected(word: str) -> bool:
    """Say whether a lower-case word is a drug, dose or laboratory word, by public lists and drug-name endings.

    A word with a digit in it counts as one ("b12", "hba1c"). Rather too many words than too few: a protected word
    costs a few more draws, an unprotected one could be completed to another drug.
    """
    exact, endings, plain = _lists()
    if word in exact or any(c.isdigit() for c in word):
        return True
    return len(word) >= _SHORTEST and word not in plain and _singular(word).endswith(endings)


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


@cache
def _lists() -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in ("unit", "lab", "drug", "ending", "plain")}
    for kind, *words in lines("protected.txt"):
        found[kind] += words
    exact = frozenset(found["unit"] + found["lab"] + found["drug"])
    return exact, tuple(found["ending"]), frozenset(found["plain"])
