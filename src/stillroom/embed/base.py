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
        digest: what its bytes are, for the certificate; empty where nobody looked.
        dimensions: length of a vector.
    """

    name: str
    digest: str = ""
    dimensions: int

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float64 vectors of shape (texts, dimensions) with norm at most 1."""


def clip(vectors: npt.ArrayLike) -> Vectors:
    """Return the vectors with norm at most 1 in float64; a vector with NaN or infinity becomes zero (rule 20)."""
    rows = np.array(vectors, dtype=np.float64, ndmin=2)
    rows[~np.isfinite(rows).all(axis=1)] = 0.0
    # Divided by its largest number first, a vector has a norm that neither overflows nor underflows: 1 to √dimensions.
    peaks = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(peaks > 0, peaks, 1.0)
    # The factor keeps rounding from ending above 1.
    norms = np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1.0) * (1 + 1e-12)
    clipped: Vectors = np.where(peaks <= 1 / norms, rows, scaled / norms)
    return clipped
