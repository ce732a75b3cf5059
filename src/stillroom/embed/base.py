"""The seam to embedders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float64]


class Embedder(ABC):
    """Turns texts into vectors, each from its own text alone.

    Attributes:
        name: what a certificate calls it.
        dimensions: length of a vector.
    """

    name: str
    dimensions: int

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float64 vectors of shape (texts, dimensions) with norm at most 1."""


def clip(vectors: npt.ArrayLike) -> Vectors:
    """Return the vectors with norm at most 1 in float64; a vector with NaN or infinity becomes zero (rule 20)."""
    rows = np.array(vectors, dtype=np.float64, ndmin=2)
    rows[~np.isfinite(rows).all(axis=1)] = 0.0
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        # A norm that overflows makes its vector zero; the factor keeps rounding from ending above 1.
        clipped: Vectors = rows / np.maximum(norms * (1 + 1e-12), 1.0)
    return clipped
