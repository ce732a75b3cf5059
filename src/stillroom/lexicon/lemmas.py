"""Which words are counted as one: a small public rule for English plurals, -ing and -ed, and a list of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from stillroom.lexicon.wordlist import is_stopword, lines, word_list, zipf

_SHORTEST = 3
_RARER = {"s": 2.0, "ing": 1.0, "ed": 1.0}
"""How much rarer than its form a lemma may be, in zipf: "morn" is too rare to be the lemma of "morning"."""
_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=200_000)
def lemma(word: str) -> str:
    """Return the public word that a lower-case word is counted as; itself where no rule applies.

    A rule applies only if its result stands in the public word list, so a made-up name keeps its form ("glibblewarts"
    stays) unless it is a listed word with a plain plural -s. Applying it twice changes nothing more.
    """
    seen = {word}
    while (shorter := _step(word)) not in seen:
        seen.add(shorter)
        word = shorter
    return word


def _step(word: str) -> str:
    pair = _pairs().get(word)
    if pair is not None:
        return pair
    frequency = zipf(word)
    if frequency == 0.0:
        return word[:-1] if word.endswith("s") and word[:-1] in word_list() else word
    for suffix, allowed in _RARER.items():
        if word.endswith(suffix):
            fit = [w for w in _stems(word, suffix) if _may_stand(w) and zipf(w) >= frequency - allowed]
            return max(fit, key=zipf, default=word)
    return word


def _stems(word: str, suffix: str) -> Iterator[str]:
    if suffix == "s":
        if word.endswith(("ss", "us", "is")):
            return
        if word.endswith("ies") and len(word) > 4:
            yield word[:-3] + "y"
        elif word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
            yield word[:-2]
        yield word[:-1]
        return
    stem = word[: -len(suffix)]
    if not _VOWELS.intersection(stem) or word.endswith("eed"):
        return
    yield stem
    yield stem + "e"
    if len(stem) > 2 and stem[-1] == stem[-2]:
        yield stem[:-1]
    if suffix == "ed" and stem.endswith("i"):
        yield stem[:-1] + "y"


def _may_stand(word: str) -> bool:
    return len(word) >= _SHORTEST and word in word_list() and not is_stopword(word)


@cache
def _pairs() -> dict[str, str]:
    return {form: word for form, word in lines("lemmas.txt")}
