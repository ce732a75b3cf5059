"""Whether a sentence is in a language that the detectors read; if not, it is withheld whole."""

from __future__ import annotations

import unicodedata
from functools import cache

from stillroom import lexicon
from stillroom.guard.detect.lists import medical
from stillroom.text import words_with_spans

LEAST_WORDS = 3
"""Lower-case words that it takes to tell a language by their frequency; of fewer, the closed-world rule takes each."""

LEAST_ZIPF = 4.0
"""Mean public frequency (`lexicon.zipf`) of a sentence's lower-case words below which it is not English."""

LEAST_LATIN = 0.5
"""Share of the letters that are Latin below which no detector here reads a sentence."""


def readable(sentence: str) -> bool:
    """Say whether a normalised sentence reads as English: mostly Latin letters, and words that English uses.

    Words with a capital are left out, as names tell no language, unless all have one. A sentence without letters is
    readable: there is nothing but numbers and signs in it.
    """
    letters = [c for c in sentence if c.isalpha()]
    if not letters:
        return True
    if sum(map(_latin, letters)) < LEAST_LATIN * len(letters):
        return False
    plain = [word for word in words_with_spans(sentence) if word.text.isascii() or word.text.isalpha()]
    lower = [word.text for word in plain if sentence[word.start].islower() and word.text not in _terms()]
    if len(lower) < LEAST_WORDS:
        return True
    return sum(min(lexicon.zipf(word), 6.5) for word in lower) / len(lower) >= LEAST_ZIPF


@cache
def _terms() -> frozenset[str]:
    """Return words that are rare in any language: a drug and its dose do not make a sentence foreign."""
    units = {"mg", "mcg", "ml", "iu", "mmol", "meq", "kg", "cm", "mm", "bpm"}
    phrases = (phrase for kind in ("diagnosis", "treatment", "drug") for phrase in medical()[kind])
    return frozenset(word for phrase in phrases for word in phrase.split()) | units


@cache
def _latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN")
