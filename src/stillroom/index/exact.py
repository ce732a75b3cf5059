"""Nearest vectors by trying them all: roughly at first, and to the last bit where it matters."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_AT_ONCE = 4096
"""Rows that are gone through at a time, so that a product needs little memory."""


class ExactIndex:
    """Rows by inner product.

    An inner product is the sum over one row in float64, so it does not depend on where the row stands, and equal rows
    are equal. All rows are tried in float32 first, in a quarter of the time; those are exact that decide.

    Args:
        vectors: float of shape (rows, dimensions); rows may be none. Held twice: 12 bytes a number.
    """

    def __init__(self, vectors: npt.ArrayLike) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float64)
        if self._vectors.ndim != 2:
            raise ValueError(f"vectors have {self._vectors.ndim} axes, but an index takes 2: rows and dimensions")
        self._coarse = self._vectors.astype(np.float32)
        self._longest = float(np.sqrt((self._vectors**2).sum(axis=1)).max(initial=0.0))

    def __len__(self) -> int:
        return len(self._vectors)

    def near(self, query: npt.ArrayLike) -> Near:
        """Return how near all rows are to a query (dimensions,)."""
        asked = np.asarray(query, dtype=np.float64).reshape(-1)
        # A float32 sum of n products errs by less than (n + 4)·2⁻²⁴·Σ|xᵢyᵢ|, rounding of the inputs included, in any
        # order (Higham 2002, § 3.1). Four more are for thresholds, rounded to float32 where they are compared, and the
        # last term is for what underflows.
        error = (len(asked) + 8) * 2.0**-24 * self._longest * float(np.sqrt((asked**2).sum())) + 1e-30
        return Near(self._vectors, asked, self._coarse @ asked.astype(np.float32), error)

    def scores(self, query: npt.ArrayLike) -> Vectors:
        """Return the inner product of the query (dimensions,) with every row."""
        return self.near(query).exact(np.arange(len(self)))

    def search(self, query: npt.ArrayLike, k: int) -> list[tuple[int, float]]:
        """Return the k best (row, inner product), best first; of equal ones the lower row comes first."""
        near = self.near(query)
        rows = near.first(k)
        found = near.exact(rows)
        return [(int(rows[i]), float(found[i])) for i in np.lexsort((rows, -found))[:k]]


class Near:
    """How near the rows of an index are to one query. Ranks count from 1; of equal rows the lower one comes first."""

    def __init__(self, vectors: Vectors, query: Vectors, coarse: npt.NDArray[np.float32], error: float) -> None:
        self._vectors, self._query, self._coarse, self._error = vectors, query, coarse, error

    def exact(self, rows: Rows) -> Vectors:
        """Return the inner products of some rows."""
        parts = [rows[at : at + _AT_ONCE] for at in range(0, len(rows), _AT_ONCE)]
        # Row by row: a matrix product may round a row differently at another place.
        found = [(self._vectors[part] * self._query).sum(axis=1) for part in parts]
        return np.concatenate(found) if found else np.zeros(0)

    def coarse(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Return the inner products of some rows, roughly."""
        return self._coarse[rows]

    def first(self, n: int) -> Rows:
        """Return rows among which the n nearest are, in no order."""
        if n >= len(self._coarse):
            return np.arange(len(self._coarse))
        least = float(self._ascending[len(self._coarse) - n]) if n > 0 else np.inf
        return np.flatnonzero(self._coarse >= least - 2 * self._error)

    def at_least(self, least: float) -> npt.NDArray[np.bool_]:
        """Return which rows have an inner product of `least` or more."""
        found = self._coarse >= least + self._error
        unsure = np.flatnonzero(np.abs(self._coarse - least) <= self._error)
        found[unsure] = self.exact(unsure) >= least
        return found

    def bounds(self, rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the best and the worst rank that each row can have."""
        coarse, twice = self._coarse[rows].astype(np.float64), 2 * self._error
        ascending, size = self._ascending64, len(self._coarse)
        best = 1 + size - np.searchsorted(ascending, coarse + twice, side="right")
        worst = size - np.searchsorted(ascending, coarse - twice, side="left")
        return best.astype(np.int64), worst.astype(np.int64)

    def ranks(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Return the ranks of some rows."""
        found = np.empty(len(rows), np.int64)
        for i, (row, value) in enumerate(zip(rows, self.exact(rows).tolist(), strict=True)):
            better = self._coarse > value + self._error
            unsure = np.flatnonzero(np.abs(self._coarse - value) <= self._error)
            values = self.exact(unsure)
            before = (values > value) | ((values == value) & (unsure < row))
            found[i] = 1 + np.count_nonzero(better) + np.count_nonzero(before)
        return found

    @cached_property
    def _ascending(self) -> npt.NDArray[np.float32]:
        return np.sort(self._coarse)

    @cached_property
    def _ascending64(self) -> Vectors:
        return self._ascending.astype(np.float64)
