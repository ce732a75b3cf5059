"""An embedder that remembers: a text that comes again costs nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stillroom.embed.base import Embedder, Vectors


class RememberedEmbedder(Embedder):
    """Keeps, in memory, the vectors of the texts that it was last asked for.

    Args:
        inner: makes the vectors.
        most: texts to remember.
    """

    def __init__(self, inner: Embedder, most: int = 10_000) -> None:
        self._inner, self._most = inner, most
        self.name, self.digest, self.dimensions = inner.name, inner.digest, inner.dimensions
        self._vectors: OrderedDict[str, npt.NDArray[np.float64]] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            made = dict(zip(new, self._inner.embed(new), strict=True))
            self._vectors.update(made)
        answer = np.zeros((len(texts), self.dimensions))
        for row, text in enumerate(texts):
            self._vectors.move_to_end(text)
            answer[row] = self._vectors[text]
        while len(self._vectors) > self._most:
            self._vectors.popitem(last=False)
        return answer
