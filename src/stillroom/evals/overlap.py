"""How much texts have in common: BLEU and ROUGE-L, on words of letters and digits in small letters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from stillroom.text import normalise

_ORDER = 4


def bleu(candidates: Sequence[str], references: Sequence[str]) -> float:
    """Return the corpus BLEU of candidates, each against one reference, in [0, 1].

    Papineni et al. 2002: the geometric mean of the clipped precisions of 1- to 4-grams, summed over all pairs, times
    the brevity penalty; 0 where one of the sums is. Raises ValueError for lists of different lengths.
    """
    hits, of = [0] * _ORDER, [0] * _ORDER
    said = meant = 0
    for candidate, reference in zip(map(_words, candidates), map(_words, references), strict=True):
        said, meant = said + len(candidate), meant + len(reference)
        for n in range(1, _ORDER + 1):
            have, want = _grams(candidate, n), _grams(reference, n)
            hits[n - 1] += (have & want).total()
            of[n - 1] += have.total()
    if not all(hits):
        return 0.0
    mean = sum(math.log(hit / total) for hit, total in zip(hits, of, strict=True)) / _ORDER
    return math.exp(min(0.0, 1 - meant / said) + mean)


def rouge_l(candidates: Sequence[str], references: Sequence[str]) -> float:
    """Return the mean ROUGE-L F1 of candidates, each against one reference, in [0, 1].

    Lin 2004: the longest common subsequence of words over the length of either, their harmonic mean. Two empty texts
    count as 1. Raises ValueError for lists of different lengths, or empty ones.
    """
    pairs = list(zip(candidates, references, strict=True))
    if not pairs:
        raise ValueError("there is nothing to compare")
    return math.fsum(_rouge(_words(one), _words(other)) for one, other in pairs) / len(pairs)


def _rouge(candidate: Sequence[str], reference: Sequence[str]) -> float:
    if not candidate and not reference:
        return 1.0
    return 2 * _common(candidate, reference) / (len(candidate) + len(reference))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for i, each in enumerate(other, 1):
            before, row[i] = row[i], before + 1 if word == each else max(row[i], row[i - 1])
    return row[-1]


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _words(text: str) -> list[str]:
    kept = "".join(c if c.isalnum() else " " for c in normalise(text).casefold())
    return kept.split()
