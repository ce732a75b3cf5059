"""Several passes at a time, each on few threads, instead of one pass on all of them.

The products of a pass over 64 rows are too small to be divided: two threads on one pass step 314 rows a second on two
cores, two passes side by side 386 (SmolLM2, docs/performance.md). Which pass runs on which lane, and when, changes no
number: lanes share nothing that they write to, and every pass has the same number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST = 8
"""Lanes at most; with more cores than that, a lane has several threads."""


class Lanes:
    """Threads that run passes of a model.

    Args:
        torch: the module; its number of threads is divided, and set back after every call.
        device: on others than "cpu" passes run one after the other.
    """

    def __init__(self, torch: Any, device: str) -> None:
        self._torch = torch
        self.threads = torch.get_num_threads()
        self.count = min(MOST, self.threads) if device == "cpu" else 1
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what work gives for each item, in their order. An item has the threads of a lane, also when alone."""
        if self.count == 1:
            return [work(item) for item in items]
        share = self.threads // self.count

        def narrow(item: T) -> R:
            self._torch.set_num_threads(share)  # holds for the thread that calls it
            return work(item)

        try:
            if len(items) == 1:
                return [narrow(items[0])]
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="stillroom-lane")
            return list(self._pool.map(narrow, items))
        finally:
            self._torch.set_num_threads(self.threads)
