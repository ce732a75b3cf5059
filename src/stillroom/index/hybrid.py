"""Texts by words and by meaning at once, or none where neither fits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stillroom.embed.base import Embedder
from stillroom.index.bm25 import Bm25Index
from stillroom.index.exact import ExactIndex, Near, Rows

LEAST_COSINE = 0.3
"""Below it MiniLM's sentences have nothing to do with each other."""

Ranks = npt.NDArray[np.int64]

WIDE = 64
"""Rows by meaning, and by words, that are looked at closely at first."""

_SMOOTHING = 60  # k of reciprocal-rank fusion (Cormack, Clarke & Büttcher 2009)


@dataclass(frozen=True)
class Hit:
    """A text that was found: its row, its fused score, and what it was found by. Ranks count from 1."""

    row: int
    score: float
    bm25: float
    cosine: float
    word_rank: int | None
    meaning_rank: int


class HybridIndex:
    """Reciprocal-rank fusion of BM25 and cosine similarity.

    A text is a hit only when it shares a content word with the question, or its cosine is `least_cosine` at least:
    there is always a nearest text, but it need not be near.

    Args:
        texts: what is searched; each is embedded once.
        embedder: the seam to a model of meaning.
        least_cosine: in −1…1; what it must be depends on the embedder.
        common: words that stand in every text, such as the labels of a form: they rank, but make no hit.
    """

    def __init__(
        self,
        texts: Sequence[str],
        embedder: Embedder,
        *,
        least_cosine: float = LEAST_COSINE,
        common: Collection[str] = (),
    ) -> None:
        self._embedder = embedder
        self._least = least_cosine
        self._common = frozenset(common)
        self._words = Bm25Index(texts)
        vectors = embedder.embed(texts) if texts else np.zeros((0, embedder.dimensions))
        self._meaning = ExactIndex(_unit_length(vectors))

    def __len__(self) -> int:
        return len(self._words)

    def search(self, question: str, k: int = 5) -> list[Hit]:
        """Return at most k hits, best first; of equal ones the lower row comes first."""
        if not len(self) or k < 1:
            return []
        scores, telling = self._words.found(question, self._common)
        near = self._meaning.near(_unit_length(self._embedder.embed([question]))[0])
        word_rank = _word_ranks(scores)
        rows = np.flatnonzero(telling | near.at_least(self._least))
        rows = _may_win(rows, near, word_rank, k)
        ranks = near.ranks(rows)
        fused = _fused(ranks, word_rank[rows])
        best = np.lexsort((rows, -fused))[:k]
        cosine = near.exact(rows[best])
        return [
            Hit(
                row=int(rows[i]),
                score=float(fused[i]),
                bm25=float(scores[rows[i]]),
                cosine=float(similar),
                word_rank=int(word_rank[rows[i]]) or None,
                meaning_rank=int(ranks[i]),
            )
            for i, similar in zip(best, cosine, strict=True)
        ]


def _word_ranks(scores: npt.NDArray[np.float32]) -> Ranks:
    """Return the rank by BM25 of every row, 0 where it shares no word."""
    rows = np.flatnonzero(scores > 0)
    # Scores above 0 are ordered as their bits are, so one sort of whole numbers orders by score, then by row.
    keys = (~scores[rows].view(np.uint32)).astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64)
    ranks = np.zeros(len(scores), np.int64)
    ranks[(np.sort(keys) & np.uint64(0xFFFFFFFF)).astype(np.intp)] = np.arange(1, len(rows) + 1)
    return ranks


def _fused(meaning: Ranks, word: Ranks) -> npt.NDArray[np.float64]:
    by_word = np.divide(1.0, _SMOOTHING + word, out=np.zeros(len(word)), where=word > 0)
    return np.asarray(1.0 / (_SMOOTHING + meaning) + by_word, dtype=np.float64)


def _may_win(rows: Rows, near: Near, word_rank: Ranks, k: int) -> Rows:
    """Return those of the rows that can be among the k best ones: to rank all of them exactly takes long.

    A row that is neither among the `wide` nearest nor among the `wide` best by words can win less than the worst of
    both; where the k-th best is above that, it is out. The others are held against each other by the ranks that they
    can have at best and at worst.
    """
    if len(rows) <= k:
        return rows
    wide = max(WIDE, 2 * k)
    while True:
        tried, outside = _widened(rows, near, word_rank, wide)
        best, worst = near.bounds(tried)
        least = np.sort(_fused(worst, word_rank[tried]))[-k]
        if len(tried) == len(rows) or least > outside:
            won: Rows = tried[_fused(best, word_rank[tried]) >= least]
            return won
        wide *= 4


def _widened(rows: Rows, near: Near, word_rank: Ranks, wide: int) -> tuple[Rows, float]:
    """Return the rows that come first by meaning or by words, and the most that any other one can score."""
    if wide >= len(rows):
        return rows, 0.0
    coarse, words = near.coarse(rows), word_rank[rows]
    nearest = np.argpartition(coarse, -wide)[-wide:]
    by_word = np.where(words > 0, words, np.iinfo(np.int64).max)
    spoken = np.argpartition(by_word, wide)[:wide]
    edge = rows[nearest[[np.argmin(coarse[nearest])]]]
    meaning = near.bounds(edge)[0]
    last = by_word[spoken].max()
    next_word = np.array([last + 1 if last < np.iinfo(np.int64).max else 0])
    outside = float(_fused(meaning, next_word)[0])
    return rows[np.union1d(nearest, spoken)], outside


def _unit_length(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0), dtype=np.float64)
