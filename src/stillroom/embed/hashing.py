"""An embedder without a model, for tests: words hashed into buckets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from stillroom.embed.base import Embedder, Vectors, clip
from stillroom.errors import BadOption

_WORD = re.compile(r"\w+")


class HashEmbedder(Embedder):
    """Vectors of hashed words: texts that share words point the same way, nothing more.

    Each word adds +1 or −1 to one of `dimensions` buckets, which and with what sign by its sha256; the sum is
    scaled to norm 1 (a text without words stays zero). The same on every machine.
    """

    def __init__(self, dimensions: int = 64) -> None:
        if dimensions < 1:
            raise BadOption("dimensions", dimensions, "at least 1")
        self.dimensions = dimensions
        self.name = f"hashing-{dimensions}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions))
        for row, text in enumerate(texts):
            for word in _WORD.findall(text.lower()):
                digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
                vectors[row, int.from_bytes(digest[:8], "big") % self.dimensions] += 1 if digest[8] & 1 else -1
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return clip(vectors / np.where(norms > 0, norms, 1.0))
