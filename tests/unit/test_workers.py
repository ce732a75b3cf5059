"""A worker that is lost, for whatever reason, is replaced and told the same again; without Ray."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stillroom.distil.workers import ATTEMPTS, Workers
from stillroom.errors import WorkersLost


class RayError(Exception):
    pass


class RayTaskError(RayError):
    cause = ValueError("Anna Nkemelu")


class OutOfMemoryError(RayError):
    """Not an error of an actor in Ray, but it ends one."""


class Actor:
    """Answers one call with what comes next: a value, or an error to raise."""

    def __init__(self, answers: list[Any]) -> None:
        self.step = SimpleNamespace(remote=lambda *given: (answers.pop(0), given))


def workers(answers: list[Any], began: list[int]) -> Workers:
    def get(call: Any) -> Any:
        answer, given = call
        if isinstance(answer, Exception):
            raise answer
        return answer, given

    made = Workers.__new__(Workers)
    made.ray = SimpleNamespace(get=get, exceptions=SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError))
    new = lambda: began.append(1) or Actor(answers)  # type: ignore[func-returns-value]  # noqa: E731
    made._new = new  # type: ignore[method-assign]
    made._actors = [made._new()]
    return made


def test_want_of_memory_is_a_loss_like_any_other_and_the_call_is_told_again() -> None:
    began: list[int] = []
    done = workers([OutOfMemoryError(), OutOfMemoryError(), "votes"], began).ask({0: (7, "told")}, "step")
    assert done == {0: ("votes", (7, "told"))}
    assert len(began) == 3


def test_after_so_many_losses_the_run_stops() -> None:
    with pytest.raises(WorkersLost):
        workers([OutOfMemoryError() for _ in range(ATTEMPTS)], []).ask({0: ()}, "step")


def test_an_error_of_the_work_itself_is_not_tried_again_and_tells_its_type_alone() -> None:
    began: list[int] = []
    with pytest.raises(WorkersLost, match="ValueError") as lost:
        workers([RayTaskError()], began).ask({0: ()}, "step")
    assert "Nkemelu" not in str(lost.value) and len(began) == 1


def test_something_else_is_done_once_meanwhile() -> None:
    meanwhile: list[int] = []
    answers = [OutOfMemoryError(), "votes"]
    workers(answers, []).ask({0: ()}, "step", meanwhile=lambda: meanwhile.append(1))
    assert meanwhile == [1]
