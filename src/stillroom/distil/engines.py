"""Where a run's work is done: in this process, or on a cluster of Ray. The mechanisms and their cost are the same.

The process that holds the ledger makes every draw, whatever the engine (rule 24).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

from stillroom.distil.keywords import Extractor, FastExtractor
from stillroom.distil.tools import BATCH
from stillroom.embed.base import Embedder
from stillroom.errors import BadOption, NoCluster, UnknownName
from stillroom.lm.base import LanguageModel

ENGINES = ("local", "ray")

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""What Ray is told unless the operator says otherwise: report nothing to its makers, hide no device from workers."""


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
    """On a cluster of Ray: one model a worker, documents in blocks."""

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
        # A language model that extracts writes free text, which stays in this process. Only the class itself travels.
        return self._blocks.BlockExtractor(inner) if type(inner) is FastExtractor else inner

    def close(self) -> None:
        self._close.close()


@contextlib.contextmanager
def engine(name: str = "local", workers: int = 2) -> Iterator[Engine]:
    """Yield an engine by name.

    Args:
        workers: models on the cluster of "ray"; see `connected` for which that is.

    Raises: UnknownName, BadOption, MissingExtra, NoCluster.
    """
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if name == "local":
        yield Engine()
        return
    if workers < 1:
        raise BadOption("workers", workers, "at least 1")
    with connected(workers):
        at_work = RayEngine(workers)
        try:
            yield at_work
        finally:
            at_work.close()


@contextlib.contextmanager
def connected(workers: int) -> Iterator[None]:
    """Be on a cluster: the one that this process is on, else that of RAY_ADDRESS, else one started here and ended.

    Raises: MissingExtra, NoCluster.
    """
    from stillroom.distil.workers import ray_of

    ray = ray_of()
    if ray.is_initialized():
        yield
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    address = os.environ.get("RAY_ADDRESS", "")
    how = {"address": address} if address else {"address": "local", "num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, logging_level=logging.CRITICAL, **how)
    except Exception as wrong:  # Ray raises a plain Exception where its processes do not come up in time
        ray.shutdown()
        raise NoCluster(address, type(wrong).__name__) from wrong
    try:
        yield
    finally:
        ray.shutdown()
