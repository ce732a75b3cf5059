"""What names the public lists in a certificate: their sha256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache

from stillroom.lexicon.lemmas import lemma
from stillroom.lexicon.wordlist import lines, word_list, zipf


@cache
def digests(name: str) -> dict[str, str]:
    """Return the sha256 of a word list by name, and of what is known about its words: a line each, in its order."""
    known = word_list(name)
    return {
        "word list": known.sha256,
        "lemmas": _sha256(map(lemma, known.words)),
        "frequencies": _sha256(f"{zipf(word):.2f}" for word in known.words),
        "stop words": _sha256(map(" ".join, lines("stopwords.txt"))),
        "protected words": _sha256(map(" ".join, lines("protected.txt"))),
    }


def _sha256(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
