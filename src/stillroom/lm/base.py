"""The seam to language models: next-token scores of many prompts that all receive the same tokens."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stillroom.errors import ModelUnfit

Scores = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]

CHUNK = 4
"""Tokens of a pass in which every session that waits has as many: two lengths of passes are all that there are."""


@dataclass(frozen=True)
class Prompt:
    """A user turn in three parts that are tokenised apart, so that `before` is shared and read once.

    Attributes:
        before: the instruction, the same for many prompts.
        body: what differs: one document.
        after: what closes the turn, the same for many prompts.
        reply: the beginning of the model's own turn, already spoken.
        public: nothing in it is private, so that shapes may follow it.
    """

    before: str
    body: str = ""
    after: str = ""
    reply: str = ""
    public: bool = False


class Readings(ABC):
    """Prompts that a model has read, ready to be opened as often as wanted."""

    @abstractmethod
    def __len__(self) -> int: ...

    def forget(self, rows: Sequence[int]) -> None:  # noqa: B027 - a hint, which a model may ignore
        """Say that these rows are not opened again soon, so that their memory may go. They can be, all the same."""


def columns_of(count: Callable[[Scores], Counts]) -> tuple[int, ...] | None:
    """Return the tokens whose scores a count takes, in order; None: all."""
    found: tuple[int, ...] | None = getattr(count, "columns", None)
    return found


class Session(ABC):
    """Rows that go on from their prompts in lock-step. A row never depends on the other rows.

    Attributes:
        rows: how many.
        ready: whether scores are there without another pass of the model; see `Pool`.
    """

    rows: int

    @property
    def ready(self) -> bool:
        return True

    @abstractmethod
    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        """Return next-token scores (logits), float32 of shape (rows, |vocabulary|), or over all token ids."""

    @abstractmethod
    def push(self, tokens: Sequence[int]) -> None:
        """Append the same tokens to every row."""

    def run(self) -> None:  # noqa: B027 - nothing waits where what is pushed is run at once
        """Run what was pushed and waits for a pass."""

    def tally(self, count: Callable[[Scores], Counts]) -> Counts:
        """Return the sum over all rows of what `count` makes of their scores: whole numbers, so exact in any order.

        Where rows live in other processes `count` travels there, and only its sums come back: it can be pickled, treats
        each row by itself, and takes any number of rows. Its attribute `columns`, if it has one, says which tokens'
        scores it takes.
        """
        total: Counts = count(self.scores(columns_of(count))).sum(axis=0, dtype=np.int64)
        return total

    def close(self) -> None:  # noqa: B027 - most sessions hold nothing that has to be given back
        """Give back what the session holds; it is not used afterwards."""


def tokens_of_a_pass(waiting: Iterable[int]) -> int:
    """Return how many tokens the next pass runs, where sessions have so many waiting: a rule of released text alone."""
    return CHUNK if min(waiting, default=0) >= CHUNK else 1


class Pool(ABC):
    """Sessions on the same readings that may share passes of the model. What one of them scores depends on no other.

    A session of a pool takes what is pushed at once, but may run it only with the next pass. Whoever drives many
    sessions lets each go on while it is `ready`, then calls `step`.

    Attributes:
        machines: over how many the rows are spread, so that so many times as many may be open.
    """

    machines = 1

    @abstractmethod
    def open(self, rows: Sequence[int] | None = None) -> Session:
        """Return a session on all readings, or on the given rows of them. Zero rows are allowed."""

    def step(self, beside: Pool | None = None, pushed: int = 0) -> None:
        """Run one pass for all sessions that wait for one, and one of another pool of the same model beside it.

        Args:
            pushed: tokens pushed to any session so far, if these are not all that there are: widths follow from it.
        """
        if beside is not None:
            beside.step()


class Apart(Pool):
    """Sessions that share nothing: the pool of a model that has no better one."""

    def __init__(self, lm: LanguageModel, readings: Readings, public: bool) -> None:
        self.lm, self.readings, self.public = lm, readings, public
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()

    def open(self, rows: Sequence[int] | None = None) -> Session:
        session = self.lm.open(self.readings, rows, public=self.public)
        self._sessions.add(session)
        return session

    def step(self, beside: Pool | None = None, pushed: int = 0) -> None:
        for session in self._sessions:
            if not session.ready:
                session.run()
        super().step(beside)


class LanguageModel(ABC):
    """A language model behind the seam.

    Attributes:
        name: what a certificate calls it.
        digest: what its bytes are, for the certificate; empty where nobody looked.
        placed: device and dtype, for the certificate.
        capabilities: "scores" (private prediction) and "generate" (free text).
        shares_passes: whether sessions of a pool share passes of the model, so that it pays to have many open.
    """

    shares_passes = False

    name: str
    digest: str = ""
    placed: str = ""
    capabilities: frozenset[str]

    def need(self, capability: str) -> None:
        """Raise ModelUnfit when the capability is missing; call it before anything is spent."""
        if capability not in self.capabilities:
            what = {"scores": "next-token scores, which private prediction needs"}.get(capability, capability)
            raise ModelUnfit(self.name, what, "choose a local model, such as --lm smollm2")

    # -- tokens (only with "scores") --------------------------------------------------------------------------
    vocabulary_size: int = 0
    stop_tokens: frozenset[int] = frozenset()
    """Tokens that end a text or a turn."""

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens."""
        raise ModelUnfit(self.name, "tokens", "choose a local model")

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids, special tokens left out."""
        raise ModelUnfit(self.name, "tokens", "choose a local model")

    # -- scores -----------------------------------------------------------------------------------------------
    def read(self, prompts: Sequence[Prompt], body_tokens: int = 192) -> Readings:
        """Read prompts that share `before`; what is returned may be opened many times.

        A body is cut after `body_tokens` tokens. Nothing a row gives later depends on the other prompts.
        """
        raise ModelUnfit(self.name, "next-token scores", "choose a local model")

    def open(self, readings: Readings, rows: Sequence[int] | None = None, *, public: bool = False) -> Session:
        """Open a session on all readings, or on the given rows of them. Zero rows are allowed.

        Shapes are fixed and public, whatever the number and length of the rows; only where `public` says that
        the prompts are public may they follow them.
        """
        raise ModelUnfit(self.name, "next-token scores", "choose a local model")

    def pool(self, readings: Readings, *, public: bool = False, size: int = 1) -> Pool:
        """Return a pool of sessions on these readings.

        Args:
            public: as for `open`.
            size: rows at a time at most, where that is public; ignored otherwise.
        """
        return Apart(self, readings, public)

    def rows_independent(self, body_tokens: int = 128) -> bool:
        """Say whether a row's scores are equal bit for bit whatever the other rows are, by trying it here.

        Args:
            body_tokens: the length at which bodies will be cut, so that it is tried in the shapes that will run.
        """
        raise ModelUnfit(self.name, "next-token scores", "choose a local model")

    # -- text -------------------------------------------------------------------------------------------------
    @abstractmethod
    def generate(self, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        """Return the greedy continuation of each prompt (its reply not repeated), cut before any stop string.

        Each continuation depends on its own prompt alone.
        """
