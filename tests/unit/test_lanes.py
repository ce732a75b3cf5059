"""Lanes give every pass its share of the threads, keep the order, and set the number of threads back."""

from __future__ import annotations

import threading

import pytest

from stillroom.lm.lanes import MOST, Lanes


class Torch:
    """Counts threads as torch does: the number holds for the thread that sets it."""

    def __init__(self, threads: int) -> None:
        self.seen = threading.local()
        self.threads = threads

    def get_num_threads(self) -> int:
        return getattr(self.seen, "threads", self.threads)  # a new thread starts with the process's number

    def set_num_threads(self, count: int) -> None:
        self.seen.threads = count


@pytest.mark.parametrize(
    ("threads", "lanes", "each"), [(1, 1, 1), (2, 2, 1), (8, 8, 1), (11, 5, 2), (15, 5, 3), (64, MOST, 8)]
)
@pytest.mark.parametrize("items", [1, 7])
def test_each_item_has_the_threads_of_a_lane(threads: int, lanes: int, each: int, items: int) -> None:
    torch = Torch(threads)
    made = Lanes(torch, "cpu")
    assert made.count == lanes
    assert made.map(lambda item: (item, torch.get_num_threads()), range(items)) == [(i, each) for i in range(items)]
    assert torch.get_num_threads() == threads


def test_lanes_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=10)  # passed only by two at once
    assert len(Lanes(Torch(2), "cpu").map(lambda _: both.wait(), [0, 1])) == 2


def test_what_the_caller_has_set_is_what_it_finds_again() -> None:
    torch = Torch(4)
    made = Lanes(torch, "cpu")
    torch.set_num_threads(3)
    made.map(str, [0, 1])
    assert torch.get_num_threads() == 3


def test_an_error_comes_out_when_nobody_works_any_more() -> None:
    done: list[int] = []
    started = threading.Event()

    def work(item: int) -> None:
        if item == 0:
            started.wait(10)
            raise ValueError
        started.set()
        threading.Event().wait(0.3)
        done.append(item)

    with pytest.raises(ValueError):
        Lanes(Torch(2), "cpu").map(work, [0, 1])
    assert done == [1]


def test_the_row_test_fills_a_block_as_large_as_the_pool_s() -> None:
    pool = pytest.importorskip("stillroom.lm.pool")
    rowtest = pytest.importorskip("stillroom.lm.rowtest")
    assert rowtest.SLOTS == pool.STEP_ROWS


def test_other_devices_run_one_after_the_other() -> None:
    made = Lanes(Torch(2), "cuda")
    assert made.map(lambda _: threading.current_thread(), [0, 1]) == [threading.main_thread()] * 2


@pytest.mark.parametrize("items", [1, 3])
def test_an_error_comes_out_and_the_threads_are_set_back(items: int) -> None:
    torch = Torch(2)

    def fails(item: int) -> int:
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        Lanes(torch, "cpu").map(fails, range(items))
    assert torch.get_num_threads() == 2
