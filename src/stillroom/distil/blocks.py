"""Documents as blocks of Ray Data: keywords and vectors are found wherever a block is.

Nothing is drawn there (rule 24). A block that is lost with its worker is made again; each unit and each text gives the
same whatever is beside it.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stillroom.distil.cluster import SHARE, ray_of
from stillroom.distil.keywords import Extractor
from stillroom.documents import Unit
from stillroom.embed.base import Embedder, Vectors
from stillroom.errors import WorkersLost
from stillroom.loading import load_embedder

UNITS = 20_000
"""Units that are handed to the cluster at a time: a public number."""
BLOCK = 256
"""Units or texts that a worker takes at a time."""
MOST = 64
"""Workers that go through blocks at once, where the cluster has room."""


class BlockExtractor:
    """An extractor whose `extract_many` runs on the cluster; the words are the same, in the same order."""

    def __init__(self, inner: Extractor) -> None:
        self.inner, self.name = inner, inner.name

    def extract(self, unit: Unit) -> tuple[str, ...]:
        return self.inner.extract(unit)

    def extract_many(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = _mapped(units, _Words, (self.inner,))
        return found


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
        rows = _mapped(texts, _Vectors, (self._source,))
        return np.array(rows, dtype=np.float64).reshape(len(texts), self.dimensions)


class _Words:
    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    def __call__(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        return self._extractor.extract_many(units)


class _Vectors:
    def __init__(self, source: Embedder | str) -> None:
        self._embedder = load_embedder(source) if isinstance(source, str) else source

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        return [*self._embedder.embed(texts)]


class _Block:
    """A block's rows through a function that its worker makes once.

    Rows keep their numbers, as blocks come back in any order, and travel as bytes: Ray Data would make arrays of tuples
    and fail at a lone surrogate.
    """

    def __init__(self, make: Callable[..., Callable[[Any], list[Any]]], given: tuple[Any, ...]) -> None:
        self._do = make(*given)

    def __call__(self, block: dict[str, Any]) -> dict[str, Any]:
        made = self._do([pickle.loads(row) for row in block["row"]])
        return {"number": block["number"], "made": [pickle.dumps(each) for each in made]}


def _mapped(rows: Sequence[Any], make: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Return what a function makes of all rows, in their order."""
    if not rows:
        return []
    ray_of()
    import ray.data as data

    # Both count rows, and how many there are is private (rule 10).
    data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL + 1)
    try:
        source = data.from_items(
            [{"number": number, "row": pickle.dumps(row)} for number, row in enumerate(rows)],
            override_num_blocks=max(1, -(-len(rows) // BLOCK)),
        )
        done = source.map_batches(
            _Block,
            fn_constructor_args=(make, given),
            batch_size=BLOCK,
            num_cpus=SHARE,
            compute=data.ActorPoolStrategy(min_size=1, max_size=MOST),
        )
        found: list[Any] = [None] * len(rows)
        for row in done.iter_rows():
            found[int(row["number"])] = pickle.loads(row["made"])
    except Exception as wrong:
        # Whatever it is: its message and traceback may hold a text (rule 10).
        raise WorkersLost(1, type(wrong).__name__) from None
    return found
