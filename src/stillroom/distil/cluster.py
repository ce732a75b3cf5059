"""A language model on several workers of Ray: rows stay there, sums of votes come back.

Workers may repeat, draws may not (rule 24): a worker holds no noise, no journal and no ledger. It is told all that it
needs in one call, so a lost one is replaced by a new one that is told it again; what it counts is the same, and the
process that holds the ledger draws once.

Which worker a row goes to follows from its own text by a public hash: rows never move each other.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillroom.errors import BadOption, MissingExtra, RowsNotIndependent, WorkersLost, WorkersUnlike
from stillroom.lm.base import Counts, LanguageModel, Prompt, Readings, Scores, Session, columns_of
from stillroom.loading import load_lm

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


class Worker:
    """One model in a process of its own. It keeps the prompts it was told to read, and the one session it is at."""

    def __init__(self, source: LanguageModel | str) -> None:
        self._source = source
        self._tried: dict[int, About] = {}
        self._readings: dict[int, Readings] = {}
        self._at: tuple[int, int] | None = None
        self._session: Session | None = None
        self._pushed = 0

    @functools.cached_property
    def _lm(self) -> LanguageModel:
        return load_lm(self._source) if isinstance(self._source, str) else self._source

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
        self._session = self._at = None
        self._readings[reading] = self._lm.read(prompts, body_tokens)
        return about

    @quietly
    def tally(
        self,
        reading: int,
        session: int,
        rows: Sequence[int],
        pushes: Sequence[Sequence[int]],
        count: Callable[[Scores], Counts],
    ) -> Counts | None:
        """Return the votes of the rows after these pushes, summed; None where the prompts were not read here.

        A session goes on where it is; a new worker opens it and pushes the same tokens in the same steps.
        """
        if reading not in self._readings:
            return None
        if self._session is None or self._at != (reading, session) or self._pushed > len(pushes):
            self._session = None  # the memory of the last one is needed for the next
            self._session = self._lm.open(self._readings[reading], rows)
            self._at, self._pushed = (reading, session), 0
        for tokens in pushes[self._pushed :]:
            self._session.push(tokens)
            self._session.run()  # each in passes of its own, as a worker ran them that was there all the time
            self._pushed += 1
        return self._session.tally(count)


class Workers:
    """Workers of one model, each replaced when it is lost.

    Args:
        source: the model, or its name where every machine of the cluster has it.
        count: how many.

    Raises: BadOption for more than the cluster has CPUs for, MissingExtra without Ray.
    """

    def __init__(self, source: LanguageModel | str, count: int) -> None:
        self.ray = ray_of()
        # Ray would wait for more, for ever.
        most = int(self.ray.cluster_resources().get("CPU", 0))
        if not 1 <= count <= most:
            raise BadOption("workers", count, f"from 1 to {most}, the CPUs of the cluster")
        self._source = source if isinstance(source, str) else self.ray.put(source)
        self._class = self.ray.remote(Worker)
        self._actors = [self._new() for _ in range(count)]

    def __len__(self) -> int:
        return len(self._actors)

    def ask(self, asked: dict[int, tuple[Any, ...]], method: str, again: Callable[[int], None] | None = None) -> Any:
        """Return what each asked worker answers to `method`, called with its arguments, by its number.

        Args:
            again: told the number of a worker that answers None: it forgot what it was told, as it is a new one.
        """
        answers: dict[int, Any] = {}
        for _ in range(ATTEMPTS):
            left = {at: given for at, given in asked.items() if at not in answers}
            calls = {at: getattr(self._actors[at], method).remote(*given) for at, given in left.items()}
            for at, call in calls.items():
                try:
                    answer = self._get(call)
                    if answer is None and again is not None:
                        again(at)
                        answer = self._get(getattr(self._actors[at], method).remote(*left[at]))
                except self.ray.exceptions.RayActorError:
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
        return self._class.options(num_cpus=SHARE, scheduling_strategy="SPREAD").remote(self._source)


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
        self._numbers = itertools.count()

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
        if not self.here.rows_independent(body_tokens):
            return False
        answers = self.workers.ask({at: (body_tokens,) for at in range(len(self.workers))}, "about")
        return all([self._like(about) for about in answers.values()])

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
        readings = ClusterReadings(self, next(self._numbers), tuple(prompts), body_tokens)
        readings.read()
        return readings

    def open(self, readings: Readings, rows: Sequence[int] | None = None, *, public: bool = False) -> Session:
        if not isinstance(readings, ClusterReadings):
            return self.here.open(readings, rows, public=public)
        return ClusterSession(readings, range(len(readings)) if rows is None else rows, next(self._numbers))

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

    def read(self, only: int | None = None) -> None:
        """Have the prompts read; or those of one worker again."""
        chosen = range(len(self._shares)) if only is None else [only]
        asked = {at: (self.number, self._shares[at], self.body_tokens) for at in chosen}
        for about in self.lm.workers.ask(asked, "read").values():
            self.lm.accept(about)


class ClusterSession(Session):
    """Rows on workers. Scores never leave them; sums do."""

    def __init__(self, readings: ClusterReadings, rows: Sequence[int], number: int) -> None:
        self.rows, self._readings, self._number = len(rows), readings, number
        self._pushes: list[tuple[int, ...]] = []
        self._chosen: dict[int, list[int]] = {}
        for row in rows:
            at, place = readings.places[row]
            self._chosen.setdefault(at, []).append(place)

    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        raise TypeError("scores of rows on workers never leave them: ask for a tally")

    def push(self, tokens: Sequence[int]) -> None:
        if len(tokens):
            self._pushes.append(tuple(tokens))

    def tally(self, count: Callable[[Scores], Counts]) -> Counts:
        readings = self._readings
        columns = columns_of(count)
        width = readings.lm.vocabulary_size if columns is None else len(columns)
        nobody = count(np.zeros((0, width), np.float32)).sum(axis=0, dtype=np.int64)
        asked = {
            at: (readings.number, self._number, chosen, self._pushes, count) for at, chosen in self._chosen.items()
        }
        answers = readings.lm.workers.ask(asked, "tally", again=readings.read)
        total: Counts = sum(answers.values(), start=nobody)
        return total


def ray_of() -> Any:
    """Return the module ray. Raises MissingExtra."""
    try:
        import ray
    except ImportError as missing:
        raise MissingExtra("the engine ray", "ray") from missing
    return ray


def _worker_of(prompt: Prompt, workers: int) -> int:
    digest = hashlib.sha256(prompt.body.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % workers
