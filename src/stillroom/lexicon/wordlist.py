"""The public word list, public frequencies and stop words."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from functools import cache, cached_property, lru_cache
from importlib.resources import files

import wordfreq

from stillroom.errors import UnknownName

NAME, SIZE, SHORTEST = "stillroom-en-1", 30_000, 3


class WordList:
    """A public list of words, in sorted order without repeats.

    Args:
        name: what a plan and a certificate call it. The name stands for these words for good.
        words: lower-case words, in any order.
    """

    def __init__(self, name: str, words: Iterable[str]) -> None:
        self.name = name
        self.words: tuple[str, ...] = tuple(sorted(set(words)))
        self.index: dict[str, int] = {word: i for i, word in enumerate(self.words)}

    @cached_property
    def sha256(self) -> str:
        """The sha256 of the words, one a line, each closed by \\n (hex)."""
        return hashlib.sha256("".join(f"{word}\n" for word in self.words).encode()).hexdigest()

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"WordList({self.name!r}, {len(self)} words)"


@cache
def word_list(name: str = NAME) -> WordList:
    """Return a word list by name. "stillroom-en-1" is the only one.

    It holds the 30,000 most frequent English words of wordfreq (large list) that are made of at least three letters
    a–z and are no stop words. Raises UnknownName.
    """
    if name != NAME:
        raise UnknownName("word list", name, [NAME])
    stop = _stopwords()
    found: list[str] = []
    for word in wordfreq.iter_wordlist("en", wordlist="large"):  # most frequent first
        if len(word) >= SHORTEST and word.isascii() and word.isalpha() and word not in stop:
            found.append(word)
            if len(found) == SIZE:
                break
    return WordList(name, found)


@lru_cache(maxsize=100_000)
def zipf(word: str) -> float:
    """Return how frequent a lower-case word is in public English: log10 of its count in 10⁹ words; 0 if unknown.

    "the" is 7.7, "treatment" 5.0, "itching" 3.4, "metformin" 2.6; the rarest known word is 1.0.
    """
    frequency = _frequencies().get(word, 0.0)
    return round(math.log10(frequency) + 9, 2) if frequency > 0 else 0.0


def is_stopword(word: str) -> bool:
    """Say whether a lower-case word carries no topic: function words, contractions, titles such as "dr"."""
    return word in _stopwords()


def lines(file: str) -> list[list[str]]:
    """Return the words of each line of a file of this package; # starts a comment line."""
    text = (files("stillroom.lexicon") / file).read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


@cache
def _stopwords() -> frozenset[str]:
    return frozenset(word for line in lines("stopwords.txt") for word in line)


@cache
def _frequencies() -> dict[str, float]:
    frequencies: dict[str, float] = wordfreq.get_frequency_dict("en", wordlist="large")
    return frequencies
