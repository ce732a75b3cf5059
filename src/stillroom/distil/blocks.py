"""Documents in blocks that go to the workers of Ray as plain tasks: keywords and vectors are found wherever a block is.

Nothing is drawn there (rule 24). A block that is lost with its worker is done again; each unit and each text gives the
same whatever is beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from stillroom.distil.keywords import Extractor
from stillroom.distil.workers import ATTEMPTS, SHARE, Failed, quietly, ray_of
from stillroom.documents import Unit
from stillroom.embed.base import Embedder, Vectors
from stillroom.errors import WorkersLost
from stillroom.loading import load_embedder

UNITS = 20_000
"""Units that are handed to the cluster at a time: a public number."""
BLOCK = 256
"""Units or texts that a worker takes at a time."""


class BlockExtractor:
    """An extractor whose `extract_many` runs on the cluster; the words are the same, in the same order."""

    def __init__(self, inner: Extractor) -> None:
        self.inner, self.name = inner, inner.name

    def extract(self, unit: Unit) -> tuple[str, ...]:
        return self.inner.extract(unit)

    def extract_many(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        return _mapped(units, _words, self.inner)


class BlockEmbedder(Embedder):
    """An embedder whose texts are embedded on the cluster.

    Args:
        here: the embedder in this process.
        source: the same for the workers: itself, or its name.
    """

    def __init__(self, here: Embedder, source: Embedder | str) -> None:
        self._source = source
        self.name, self.digest, self.dimensions = here.name, here.digest, here.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = _mapped(texts, _vectors, self._source)
        return np.array(rows, dtype=np.float64).reshape(len(texts), self.dimensions)


def _words(extractor: Extractor, units: Sequence[Unit]) -> list[tuple[str, ...]]:
    return extractor.extract_many(units)


def _vectors(source: Embedder | str, texts: Sequence[str]) -> list[Any]:
    return [*(_loaded(source) if isinstance(source, str) else source).embed(texts)]


@lru_cache(maxsize=1)
def _loaded(name: str) -> Embedder:
    return load_embedder(name)


def _mapped(rows: Sequence[Any], do: Callable[[Any, Sequence[Any]], list[Any]], tool: Any) -> list[Any]:
    """Return what a function makes of all rows with a tool, in their order."""
    ray = ray_of()
    task = ray.remote(quietly(do)).options(num_cpus=SHARE, max_retries=ATTEMPTS - 1, scheduling_strategy="SPREAD")
    there = tool if isinstance(tool, str) else ray.put(tool)
    calls = [task.remote(there, list(rows[at : at + BLOCK])) for at in range(0, len(rows), BLOCK)]
    found: list[Any] = []
    for call in calls:
        try:
            made = ray.get(call)
        except ray.exceptions.RayTaskError as wrong:
            raise WorkersLost(1, type(wrong.cause).__name__) from None
        except ray.exceptions.RayError:
            raise WorkersLost(ATTEMPTS) from None
        if isinstance(made, Failed):
            raise WorkersLost(1, made.kind)
        found += made
    return found
