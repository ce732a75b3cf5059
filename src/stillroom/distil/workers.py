"""Workers of Ray, each with a model: rows stay there, sums of votes come back.

Workers may repeat, draws may not (rule 24): a worker holds no noise, no journal and no ledger. It is told all that it
needs in one call, so a lost one is replaced by a new one that is told it again; what it counts is the same, and the
process that holds the ledger draws once.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stillroom.errors import BadOption, MissingExtra, WorkersLost
from stillroom.lm.base import Counts, LanguageModel, Pool, Prompt, Readings, Scores, Session
from stillroom.loading import load_lm
from stillroom.threads import use

ATTEMPTS = 4
"""Workers that are tried one after the other for one piece of work, before the run stops; it can go on later."""

SHARE = 0.5
"""CPUs of a model and of a worker on blocks: they never work at the same time, so one of each shares a CPU."""


@dataclass(frozen=True)
class Failed:
    """What a worker says of an exception: its type alone, as message and traceback may hold a text (rule 10)."""

    kind: str


@dataclass(frozen=True)
class About:
    """A worker's model, and whether its rows are independent there."""

    name: str
    digest: str
    placed: str
    independent: bool


def quietly(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return work for another process: nothing printed there gets out from then on, and of an exception its type."""

    @functools.wraps(work)
    def done(*given: Any) -> Any:
        # Ray keeps what a worker prints in files and may show it elsewhere, and libraries print what they choke on.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        os.close(nowhere)
        try:
            return work(*given)
        except BaseException as wrong:  # a panic of a library in Rust is no Exception
            return Failed(type(wrong).__name__)

    return done


@dataclass(frozen=True)
class Pass:
    """What a session runs in one pass: its tokens, and how many were pushed to any session so far, these included."""

    tokens: tuple[int, ...]
    pushed: int


@dataclass(frozen=True)
class Told:
    """All that a worker needs to know of a session.

    Attributes:
        session: its number, never used twice.
        rows: which of the prompts of this worker.
        passes: every pass so far; sessions that run in one pass have as many tokens there.
    """

    session: int
    rows: tuple[int, ...]
    passes: tuple[Pass, ...]


@dataclass
class Open:
    """A session on a worker, and how many passes it has run."""

    session: Session
    passes: int = 0


class Worker:
    """One model in a process of its own. It keeps the prompts that it read last, and the sessions on them.

    Args:
        source: the model, its name, or what Ray calls it, in a list: Ray would fetch it before the threads are set.
        threads: of the model; 0 leaves them as they are.
    """

    def __init__(self, source: LanguageModel | str | list[Any], threads: int = 0) -> None:
        self._source, self._threads = source, threads
        self._tried: dict[int, About] = {}
        self._reading: int | None = None
        self._readings: Readings | None = None
        self._pool: Pool | None = None
        self._open: dict[int, Open] = {}

    @functools.cached_property
    def _lm(self) -> LanguageModel:
        if self._threads:
            use(self._threads)
        if isinstance(self._source, str):
            return load_lm(self._source)
        lm: LanguageModel = ray_of().get(self._source[0]) if isinstance(self._source, list) else self._source
        return lm

    def _about(self, body_tokens: int) -> About:
        if body_tokens not in self._tried:
            lm = self._lm
            self._tried[body_tokens] = About(lm.name, lm.digest, lm.placed, lm.rows_independent(body_tokens))
        return self._tried[body_tokens]

    @quietly
    def about(self, body_tokens: int) -> About:
        """Return what the model is, its row test tried once."""
        return self._about(body_tokens)

    @quietly
    def read(self, reading: int, prompts: Sequence[Prompt], body_tokens: int) -> About:
        """Read prompts, to be opened by number; return what the model is, as this worker may be a new one."""
        about = self._about(body_tokens)
        self._reading = self._readings = self._pool = None  # the memory is needed for the next
        self._open.clear()
        if about.independent:
            self._readings = self._lm.read(prompts, body_tokens)
            self._reading, self._pool = reading, self._lm.pool(self._readings)
        return about

    @quietly
    def step(self, reading: int, told: Sequence[Told]) -> bool | None:
        """Run the last pass of these sessions, in one if they share passes; None where the prompts were not read here.

        A session that is not there, or that lacks earlier passes, runs those first, each while no other waits: it has
        then what a worker has that was there all the time, as its rows depend on no other session.
        """
        pool = self._pool
        if reading != self._reading or pool is None:
            return None
        here = [self._opened(pool, each, len(each.passes) - 1) for each in told]
        for each, there in zip(told, here, strict=True):
            if there.passes < len(each.passes):
                there.session.push(each.passes[-1].tokens)
                there.passes += 1
        while not all(there.session.ready for there in here):
            pool.step(pushed=max(each.passes[-1].pushed for each in told))
        return True

    @quietly
    def tally(self, reading: int, told: Told, count: Callable[[Scores], Counts]) -> Counts | None:
        """Return the votes of a session's rows after its passes, summed; None where the prompts were not read here."""
        if reading != self._reading or self._pool is None:
            return None
        return self._opened(self._pool, told, len(told.passes)).session.tally(count)

    @quietly
    def close(self, session: int) -> bool:
        """Give back what a session holds, if it is here."""
        if session in self._open:
            self._open.pop(session).session.close()
        return True

    @quietly
    def forget(self, reading: int, rows: Sequence[int]) -> bool:
        """Let the memory of rows go that are not opened again soon."""
        if reading == self._reading and self._readings is not None:
            self._readings.forget(rows)
        return True

    def _opened(self, pool: Pool, told: Told, passes: int) -> Open:
        """Return a session after so many of its passes. No other session may wait for one."""
        here = self._open.get(told.session)
        if here is None:
            here = self._open[told.session] = Open(pool.open(told.rows))
        for each in told.passes[here.passes : max(0, passes)]:
            here.session.push(each.tokens)
            while not here.session.ready:
                pool.step(pushed=each.pushed)
            here.passes += 1
        return here


class Workers:
    """Workers of one model, each replaced when it is lost.

    Args:
        source: the model, or its name where every machine of the cluster has it.
        count: how many.

    Attributes:
        machines: over how many they are spread.

    Raises: BadOption for more than the cluster has CPUs for, MissingExtra without Ray.
    """

    def __init__(self, source: LanguageModel | str, count: int) -> None:
        self.ray = ray_of()
        # Ray would wait for more, for ever.
        most = int(self.ray.cluster_resources().get("CPU", 0))
        if not 1 <= count <= most:
            raise BadOption("workers", count, f"from 1 to {most}, the CPUs of the cluster")
        self._source = source if isinstance(source, str) else [self.ray.put(source)]
        nodes = [int(node["Resources"].get("CPU", 0)) for node in self.ray.nodes() if node["Alive"]]
        cpus = [n for n in nodes if n]
        self.machines, self._threads = min(count, len(cpus)), threads_of(cpus, count)
        self._class = self.ray.remote(Worker)
        self._actors = [self._new() for _ in range(count)]

    def __len__(self) -> int:
        return len(self._actors)

    def ask(
        self,
        asked: dict[int, tuple[Any, ...]],
        method: str,
        again: Callable[[int], None] | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Any:
        """Return what each asked worker answers to `method`, called with its arguments, by its number.

        Args:
            again: told the number of a worker that answers None: it forgot what it was told, as it is a new one.
            meanwhile: done here once, while the workers work.
        """
        answers: dict[int, Any] = {}
        for _ in range(ATTEMPTS):
            left = {at: given for at, given in asked.items() if at not in answers}
            calls = {at: getattr(self._actors[at], method).remote(*given) for at, given in left.items()}
            if meanwhile is not None:
                meanwhile()
                meanwhile = None
            for at, call in calls.items():
                try:
                    answer = self._get(call)
                    if answer is None and again is not None:
                        again(at)
                        answer = self._get(getattr(self._actors[at], method).remote(*left[at]))
                except self.ray.exceptions.RayError:  # lost, ended for want of memory, or never begun
                    self._actors[at] = self._new()
                    continue
                if answer is not None or again is None:
                    answers[at] = answer
            if len(answers) == len(asked):
                return answers
        raise WorkersLost(ATTEMPTS)

    def close(self) -> None:
        """End the workers."""
        for actor in self._actors:
            self.ray.kill(actor)

    def _get(self, call: Any) -> Any:
        try:
            answer = self.ray.get(call)
        except self.ray.exceptions.RayTaskError as wrong:
            raise WorkersLost(1, type(wrong.cause).__name__) from None
        if isinstance(answer, Failed):
            raise WorkersLost(1, answer.kind)
        return answer

    def _new(self) -> Any:
        # It asks for less than its threads, so that one that takes the place of a lost one finds a machine.
        how = self._class.options(num_cpus=SHARE, scheduling_strategy="SPREAD")
        return how.remote(self._source, self._threads)


def threads_of(cpus: Sequence[int], workers: int) -> int:
    """Return how many threads each of the workers may have, on machines of so many CPUs: at least one."""
    return max(
        (threads for threads in range(1, max(cpus, default=1) + 1) if sum(n // threads for n in cpus) >= workers),
        default=1,
    )


def ray_of() -> Any:
    """Return the module ray. Raises MissingExtra."""
    try:
        import ray
    except ImportError as missing:
        raise MissingExtra("the engine ray", "ray") from missing
    return ray
