"""Where a run's work is done: in this process, or on a cluster of Ray. What is released is the same.

The process that holds the ledger makes every draw, whatever the engine (rule 24).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from stillroom.distil.keywords import Extractor, FastExtractor
from stillroom.distil.tools import BATCH
from stillroom.embed.base import Embedder
from stillroom.errors import BadOption, UnknownName
from stillroom.lm.base import LanguageModel

ENGINES = ("local", "ray")


class Engine:
    """All in this process."""

    batch = BATCH

    def lm(self, here: LanguageModel, source: LanguageModel | str) -> LanguageModel:
        """Return the model by which rows are read: `here`, loaded from `source`, or one that has it elsewhere too."""
        return here

    def embedder(self, here: Embedder, source: Embedder | str) -> Embedder:
        return here

    def extractor(self, inner: Extractor) -> Extractor:
        return inner


class RayEngine(Engine):
    """On a cluster of Ray: one model a worker, documents as blocks of Ray Data."""

    def __init__(self, workers: int) -> None:
        from stillroom.distil import blocks

        self.batch = blocks.UNITS
        self._workers = workers
        self._blocks = blocks
        self._close = contextlib.ExitStack()

    def lm(self, here: LanguageModel, source: LanguageModel | str) -> LanguageModel:
        from stillroom.distil.cluster import ClusterLM

        model = ClusterLM(here, source, self._workers)
        self._close.callback(model.close)
        return model

    def embedder(self, here: Embedder, source: Embedder | str) -> Embedder:
        return self._blocks.BlockEmbedder(here, source)

    def extractor(self, inner: Extractor) -> Extractor:
        # A language model that extracts writes free text, which stays in this process.
        return self._blocks.BlockExtractor(inner) if isinstance(inner, FastExtractor) else inner

    def close(self) -> None:
        self._close.close()


@contextlib.contextmanager
def engine(name: str = "local", workers: int = 2) -> Iterator[Engine]:
    """Yield an engine by name; with "ray", a cluster that is there is used, else one is started here and ended.

    Args:
        workers: models on the cluster.

    Raises: UnknownName, BadOption, MissingExtra.
    """
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if name == "local":
        yield Engine()
        return
    if workers < 1:
        raise BadOption("workers", workers, "at least 1")
    from stillroom.distil.cluster import ray_of

    ray = ray_of()
    mine = not ray.is_initialized()
    if mine:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    at_work = RayEngine(workers)
    try:
        yield at_work
    finally:
        at_work.close()
        if mine:
            ray.shutdown()
