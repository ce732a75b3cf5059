"""Several passes at a time, each on few threads, instead of one pass on all of them.

The products of a pass over 64 rows are too small to be divided: two threads on one pass step 314 rows a second on two
cores, two passes side by side 386 (SmolLM2, decision 0021). Which pass runs on which lane, and when, changes no
number: lanes share nothing that they write to, and every pass has the same number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST = 8
"""Lanes at most; with more threads than that, a lane has several."""


def lanes_of(threads: int) -> int:
    """Return how many lanes leave the fewest threads idle, all having the same number; the more the better."""
    least = min(threads, MOST // 2)
    return max(range(least, min(threads, MOST) + 1), key=lambda lanes: (lanes * (threads // lanes), lanes))


class Lanes:
    """Threads that run passes of a model.

    Args:
        torch: the module; its number of threads is divided. After every call the caller's number is set back; a thread
            that uses torch for the first time meanwhile may keep a lane's number.
        device: on others than "cpu" passes run one after the other.
    """

    def __init__(self, torch: Any, device: str) -> None:
        self._torch = torch
        self.threads = torch.get_num_threads()
        self.on_cpu = device == "cpu"
        self.count = lanes_of(self.threads) if self.on_cpu else 1
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what work gives for each item, in their order. An item has the threads of a lane, also when alone.

        An error comes out when no lane works any more; items that were not begun are left.
        """
        if not self.on_cpu:
            return [work(item) for item in items]
        share, before = self.threads // self.count, self._torch.get_num_threads()

        def narrow(item: T) -> R:
            self._torch.set_num_threads(share)  # holds for the thread that calls it
            return work(item)

        try:
            if len(items) == 1 or self.count == 1:
                return [narrow(item) for item in items]
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="stillroom-lane")
            begun = [self._pool.submit(narrow, item) for item in items]
            try:
                return [each.result() for each in begun]
            except BaseException:
                for each in begun:
                    each.cancel()
                wait(begun)
                raise
        finally:
            self._torch.set_num_threads(before)
