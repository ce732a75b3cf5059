"""Texts by words and by meaning at once, or none where neither fits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stillroom.embed.base import Embedder
from stillroom.index.bm25 import Bm25Index
from stillroom.index.exact import ExactIndex, order

LEAST_COSINE = 0.3
"""Below it MiniLM's sentences have nothing to do with each other."""

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
        if not len(self):
            return []
        bm25 = self._words.scores(question)
        telling = self._words.scores(question, without=self._common) > 0
        cosine = self._meaning.scores(_unit_length(self._embedder.embed([question]))[0])
        word_rank = {int(row): rank for rank, row in enumerate(order(bm25), start=1) if bm25[row] > 0}
        meaning_rank = {int(row): rank for rank, row in enumerate(order(cosine), start=1)}

        fused = np.array(
            [
                1 / (_SMOOTHING + meaning_rank[row]) + (1 / (_SMOOTHING + word_rank[row]) if row in word_rank else 0.0)
                for row in range(len(self))
            ]
        )
        found = telling | (cosine >= self._least)
        return [
            Hit(
                row=int(row),
                score=float(fused[row]),
                bm25=float(bm25[row]),
                cosine=float(cosine[row]),
                word_rank=word_rank.get(int(row)),
                meaning_rank=meaning_rank[int(row)],
            )
            for row in order(fused)
            if found[row]
        ][:k]


def _unit_length(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0), dtype=np.float64)
