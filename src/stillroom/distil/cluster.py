"""A language model on several workers of Ray: rows stay there, sums of votes come back.

Workers may repeat, draws may not (rule 24): a worker holds no noise, no journal and no ledger. It is told all that it
needs in one call, so a lost one is replaced by a new one that is told it again; what it counts is the same, and the
process that holds the ledger draws once.

Which worker a row goes to follows from its own text by a public hash: rows never move each other.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stillroom.errors import BadOption, MissingExtra, WorkersLost, WorkersUnlike
from stillroom.lm.base import Counts, LanguageModel, Prompt, Readings, Scores, Session, columns_of
from stillroom.loading import load_lm

ATTEMPTS = 4
"""Workers that are tried one after the other for one piece of work, before the run stops; it can go on later."""

SHARE = 0.5
"""CPUs of a model and of a worker on blocks: they never work at the same time, so one of each shares a CPU."""


class Worker:
    """One model in a process of its own. It keeps the prompts it was told to read, and the one session it is at."""

    def __init__(self, source: LanguageModel | str) -> None:
        self._lm = load_lm(source) if isinstance(source, str) else source
        self._readings: dict[int, Readings] = {}
        self._at: tuple[int, int] | None = None
        self._session: Session | None = None
        self._pushed = 0

    def about(self, body_tokens: int) -> tuple[str, str, str, bool]:
        """Return name, digest and place of the model, and whether its rows are independent here."""
        return self._lm.name, self._lm.digest, self._lm.placed, self._lm.rows_independent(body_tokens)

    def read(self, reading: int, prompts: Sequence[Prompt], body_tokens: int) -> None:
        """Read prompts, to be opened by number."""
        self._session = self._at = None
        self._readings[reading] = self._lm.read(prompts, body_tokens)

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
            self._pushed += 1
        return self._session.tally(count)


class Workers:
    """Workers of one model, each replaced when it is lost.

    Args:
        source: the model, or its name where every machine of the cluster has it.
        count: how many.

    Raises: MissingExtra without Ray.
    """

    def __init__(self, source: LanguageModel | str, count: int) -> None:
        self.ray = ray_of()
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
            return self.ray.get(call)
        except self.ray.exceptions.RayTaskError as wrong:
            # Its message and traceback may hold a text (rule 10).
            raise WorkersLost(1, type(wrong.cause).__name__) from None

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
        if count < 1:
            raise BadOption("workers", count, "at least 1")
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
        for name, digest, placed, _ in answers.values():
            if (name, digest, placed) != (self.name, self.digest, self.placed):
                raise WorkersUnlike(self.name, self.placed, name, placed)
        return all(good for *_, good in answers.values())

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
        self.lm.workers.ask({at: (self.number, self._shares[at], self.body_tokens) for at in chosen}, "read")


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
        raise NotImplementedError("scores of rows on workers stay there: ask for a tally")

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
