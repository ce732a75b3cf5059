"""Progress of long work: bars on a terminal, JSON lines elsewhere. Only public totals are ever counted."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars


class Progress(Protocol):
    """Where long work says how far it is. Totals are of public things: topics, tokens, not documents."""

    def stage(self, name: str, total: int | None) -> None:
        """Begin a stage of `total` steps, or of an unknown number; it ends the one before."""
        ...

    def advance(self, n: int = 1) -> None:
        """Say that n more steps of the stage are done."""
        ...

    def done(self) -> None:
        """End the last stage."""
        ...


class Quiet:
    """Says nothing."""

    def stage(self, name: str, total: int | None) -> None: ...
    def advance(self, n: int = 1) -> None: ...
    def done(self) -> None: ...


class Lines:
    """One JSON object a line: {"stage": …, "done": …, "of": …}, a stage's first and last state always among them.

    Args:
        stream: where lines go.
        every: seconds between two lines of one stage, at least.
        clock: seconds that only grow.
    """

    def __init__(self, stream: TextIO, every: float = 2.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._every, self._clock = stream, every, clock
        self._name: str | None = None
        self._total: int | None = None
        self._count, self._said, self._last = 0, -1, 0.0

    def stage(self, name: str, total: int | None) -> None:
        self.done()
        self._name, self._total, self._count, self._said = name, total, 0, -1
        self._say()

    def advance(self, n: int = 1) -> None:
        self._count += n
        if self._clock() - self._last >= self._every:
            self._say()

    def done(self) -> None:
        if self._name is not None and self._said != self._count:
            self._say()
        self._name = None

    def _say(self) -> None:
        self._said, self._last = self._count, self._clock()
        line = {"stage": self._name, "done": self._count, "of": self._total}
        print(json.dumps(line, ensure_ascii=False), file=self._stream, flush=True)


class Terminal:
    """A bar a stage on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(file=stream),
        )
        self._task: TaskID | None = None

    def stage(self, name: str, total: int | None) -> None:
        self._end_stage()
        self._bars.start()
        self._task = self._bars.add_task(name, total=total)

    def advance(self, n: int = 1) -> None:
        if self._task is not None:
            self._bars.advance(self._task, n)

    def done(self) -> None:
        self._end_stage()
        self._bars.stop()

    def _end_stage(self) -> None:
        if self._task is None:
            return
        # A stage may end early (end of text) or be of unknown length: its bar is then full all the same.
        steps = next(task.completed for task in self._bars.tasks if task.id == self._task) or 1
        self._bars.update(self._task, total=steps, completed=steps)
        self._task = None


@contextmanager
def showing(stream: TextIO | None = None) -> Iterator[Progress]:
    """Give a Progress on stderr, bars on a terminal and JSON lines elsewhere, and end it whatever happens."""
    out = stream if stream is not None else sys.stderr
    progress: Progress = Terminal(out) if out.isatty() else Lines(out)
    try:
        yield progress
    finally:
        progress.done()
