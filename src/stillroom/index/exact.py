"""Nearest vectors by trying them all."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float64]


class ExactIndex:
    """Top rows by inner product. A release has hundreds of texts, so all are tried.

    Args:
        vectors: float of shape (rows, dimensions); rows may be none.
    """

    def __init__(self, vectors: npt.ArrayLike) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float64)
        if self._vectors.ndim != 2:
            raise ValueError(f"vectors have {self._vectors.ndim} axes, but an index takes 2: rows and dimensions")

    def __len__(self) -> int:
        return len(self._vectors)

    def scores(self, query: npt.ArrayLike) -> Vectors:
        """Return the inner product of the query (dimensions,) with every row."""
        return np.asarray(self._vectors @ np.asarray(query, dtype=np.float64).reshape(-1), dtype=np.float64)

    def search(self, query: npt.ArrayLike, k: int) -> list[tuple[int, float]]:
        """Return the k best (row, inner product), best first; of equal ones the lower row comes first."""
        scores = self.scores(query)
        return [(int(row), float(scores[row])) for row in order(scores)[:k]]


def order(scores: npt.NDArray[np.floating]) -> npt.NDArray[np.intp]:
    """Return the rows from the highest score to the lowest, equal ones in the order of rows."""
    return np.argsort(-scores, kind="stable")
