"""A language model on several workers of Ray, as one language model: the process that holds the ledger drives it.

Which worker a row goes to follows from its own text by a public hash: rows never move each other. Which tokens share a
pass is decided here, by the rule of a pool in one process, and told to the workers, so that a new one can do the same.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from stillroom.distil.workers import About, Pass, Told, Workers
from stillroom.errors import RowsNotIndependent, WorkersUnlike
from stillroom.lm.base import (
    Counts,
    LanguageModel,
    Pool,
    Prompt,
    Readings,
    Scores,
    Session,
    columns_of,
    tokens_of_a_pass,
)


class ClusterLM(LanguageModel):
    """A language model whose private rows are on workers; public rows, tokens and free text stay in this process.

    Args:
        here: the model in this process.
        source: the same for the workers: the model itself, or its name.
        count: workers, at least 1.
    """

    def __init__(self, here: LanguageModel, source: LanguageModel | str, count: int) -> None:
        self.here = here
        self.name, self.digest, self.placed = here.name, here.digest, here.placed
        self.capabilities = here.capabilities
        self.vocabulary_size, self.stop_tokens = here.vocabulary_size, here.stop_tokens
        self.workers = Workers(source, count)
        self.shares_passes = here.shares_passes
        self.numbers = itertools.count()

    def encode(self, text: str) -> list[int]:
        return self.here.encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.here.decode(tokens)

    def generate(self, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        return self.here.generate(prompts, max_tokens, stop)

    def rows_independent(self, body_tokens: int = 128) -> bool:
        """Say whether rows are independent here and on every worker.

        Raises WorkersUnlike where a worker has another model, or the same on another device or in another type.
        """
        home: list[bool] = []
        asked = {at: (body_tokens,) for at in range(len(self.workers))}
        answers = self.workers.ask(
            asked, "about", meanwhile=lambda: home.append(self.here.rows_independent(body_tokens))
        )
        return all([self._like(about) for about in answers.values()]) and home == [True]

    def accept(self, about: About) -> None:
        """Raise RowsNotIndependent or WorkersUnlike unless a worker may vote: a new one in mid-run is asked, too."""
        if not self._like(about):
            device, _, dtype = about.placed.partition(", ")
            raise RowsNotIndependent(about.name, device, dtype)

    def _like(self, about: About) -> bool:
        if (about.name, about.digest, about.placed) != (self.name, self.digest, self.placed):
            raise WorkersUnlike(self.name, self.placed, about.name, about.placed)
        return about.independent

    def read(self, prompts: Sequence[Prompt], body_tokens: int = 192) -> Readings:
        if prompts and all(prompt.public for prompt in prompts):
            return self.here.read(prompts, body_tokens)
        readings = ClusterReadings(self, next(self.numbers), tuple(prompts), body_tokens)
        readings.read()
        return readings

    def pool(self, readings: Readings, *, public: bool = False, size: int = 1) -> Pool:
        if not isinstance(readings, ClusterReadings):
            return self.here.pool(readings, public=public, size=size)
        return ClusterPool(readings)

    def open(self, readings: Readings, rows: Sequence[int] | None = None, *, public: bool = False) -> Session:
        if not isinstance(readings, ClusterReadings):
            return self.here.open(readings, rows, public=public)
        return ClusterPool(readings).open(rows)

    def close(self) -> None:
        """End the workers."""
        self.workers.close()


class ClusterReadings(Readings):
    """Prompts, each read by the worker that its own text says."""

    def __init__(self, lm: ClusterLM, number: int, prompts: tuple[Prompt, ...], body_tokens: int) -> None:
        self.lm, self.number, self.body_tokens = lm, number, body_tokens
        self._shares: list[list[Prompt]] = [[] for _ in range(len(lm.workers))]
        self.places: list[tuple[int, int]] = []
        for prompt in prompts:
            at = _worker_of(prompt, len(lm.workers))
            self.places.append((at, len(self._shares[at])))
            self._shares[at].append(prompt)

    def __len__(self) -> int:
        return len(self.places)

    def forget(self, rows: Sequence[int]) -> None:
        asked: dict[int, tuple[int, list[int]]] = {}
        for row in rows:
            at, place = self.places[row]
            asked.setdefault(at, (self.number, []))[1].append(place)
        self.lm.workers.ask(asked, "forget")

    def read(self, only: int | None = None) -> None:
        """Have the prompts read; or those of one worker again."""
        chosen = range(len(self._shares)) if only is None else [only]
        asked = {at: (self.number, self._shares[at], self.body_tokens) for at in chosen}
        for about in self.lm.workers.ask(asked, "read").values():
            self.lm.accept(about)


class ClusterPool(Pool):
    """Sessions whose rows are on workers. Scores never leave them; sums do."""

    def __init__(self, readings: ClusterReadings) -> None:
        self.readings, self.workers = readings, readings.lm.workers
        self.machines = self.workers.machines
        self.sessions: list[ClusterSession] = []

    def open(self, rows: Sequence[int] | None = None) -> ClusterSession:
        chosen = range(len(self.readings)) if rows is None else rows
        session = ClusterSession(self, chosen, next(self.readings.lm.numbers))
        self.sessions.append(session)
        self._run([session])  # now, so that what is forgotten next has been opened
        return session

    def step(self, beside: Pool | None = None, pushed: int = 0) -> None:
        waiting = [session for session in self.sessions if session.pending]
        n = tokens_of_a_pass(len(session.pending) for session in waiting)
        pushed = max(pushed, *(session.pushed + n for session in self.sessions), 0)
        for session in waiting:
            session.passes.append(Pass(tuple(session.pending.popleft() for _ in range(n)), pushed))
            session.pushed += n
        self._run(waiting, beside)

    def _run(self, sessions: Sequence[ClusterSession], beside: Pool | None = None) -> None:
        """Have the workers run what these sessions were told, and another pool's pass here meanwhile."""
        asked = {}
        for at in range(len(self.workers)):
            told = [session.told(at) for session in sessions if at in session.chosen]
            if told:
                asked[at] = self.readings.number, told
        again = self.readings.read
        self.workers.ask(asked, "step", again, meanwhile=beside.step if beside is not None else None)


class ClusterSession(Session):
    """Rows of one session on workers.

    Attributes:
        chosen: numbers of its rows on each worker that has some.
        passes: each pass so far.
        pushed: tokens in them.
        pending: tokens that wait for one.
    """

    def __init__(self, pool: ClusterPool, rows: Sequence[int], number: int) -> None:
        self.rows, self.pool, self.number = len(rows), pool, number
        self.passes: list[Pass] = []
        self.pushed = 0
        self.pending: deque[int] = deque()
        chosen: dict[int, list[int]] = {}
        for row in rows:
            at, place = pool.readings.places[row]
            chosen.setdefault(at, []).append(place)
        self.chosen = {at: tuple(places) for at, places in chosen.items()}

    @property
    def ready(self) -> bool:
        return not self.pending

    def told(self, at: int) -> Told:
        """Return what the worker of this number is told."""
        return Told(self.number, self.chosen[at], tuple(self.passes))

    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        raise TypeError("scores of rows on workers never leave them: ask for a tally")

    def push(self, tokens: Sequence[int]) -> None:
        self._there()
        self.pending.extend(int(token) for token in tokens)

    def run(self) -> None:
        while self.pending:
            self.pool.step()

    def tally(self, count: Callable[[Scores], Counts]) -> Counts:
        self._there()
        self.run()
        readings = self.pool.readings
        columns = columns_of(count)
        width = readings.lm.vocabulary_size if columns is None else len(columns)
        nobody = count(np.zeros((0, width), np.float32)).sum(axis=0, dtype=np.int64)
        asked = {at: (readings.number, self.told(at), count) for at in self.chosen}
        total: Counts = sum(self.pool.workers.ask(asked, "tally", readings.read).values(), start=nobody)
        return total

    def close(self) -> None:
        if self in self.pool.sessions:
            self.pool.sessions.remove(self)
            self.pending.clear()
            self.pool.workers.ask({at: (self.number,) for at in self.chosen}, "close")

    def _there(self) -> None:
        if self not in self.pool.sessions:
            raise ValueError("this session was closed: its rows are gone")


def _worker_of(prompt: Prompt, workers: int) -> int:
    digest = hashlib.sha256(prompt.body.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % workers
