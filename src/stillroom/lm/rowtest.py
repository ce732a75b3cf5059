"""The row test: on this device, in this dtype, does a row's every bit stay when the other rows change?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stillroom.lm.base import Prompt, Scores

if TYPE_CHECKING:
    from stillroom.lm.base import LanguageModel, Pool, Session

SHORT = "The visitor asked about opening hours and left a note for the manager at the desk."
OTHER = "Please bring two chairs to the room upstairs before noon."
LONG = "A long report on the garden, the trees and the old wall follows. " * 40
CANDIDATES = (1, 2, 3, 8, 28)
"""Numbers of tokens whose scores are computed alone."""
SLOTS, WORDS = 80, (4, 9, 60)
"""Slots of a block, and words of the rows that are compared."""


def rows_independent(lm: LanguageModel, body_tokens: int = 128) -> bool:
    """Return whether rows keep every bit when others are added, removed, moved or exchanged for a long one.

    Built-in public texts only. Rows of three lengths have a pool to themselves. Others are read at every
    place of a block that is read; stand in every slot of a block, and are scored at every place of the head's; stand in
    blocks of other buckets where the pool mixes them, in slots that other rows left, and beside the rows of another
    session, which says something else in the same passes and leaves, so that some of them move to another block. All is
    tried with passes of one token and of several, over all tokens and over few candidates.
    """
    texts = [" ".join((SHORT.split() * 4)[:n]) + f" {i}" for i, n in enumerate(WORDS)]
    alone_in = lm.pool(lm.read(_prompts(texts), body_tokens))

    # Each text at all places of a block that is read, where it stood beside dummies before; then two others.
    places = getattr(lm, "read_rows", 1)
    notes = [text for text in texts for _ in range(places)]
    other, long = len(notes), len(notes) + 1
    readings = lm.read(_prompts([*notes, OTHER, LONG]), body_tokens)

    def placed(order: Sequence[int], every: int) -> list[int]:
        """Return rows of these texts, the next place of each after so many."""
        return [text * places + i // every % places for i, text in enumerate(order)]

    pool = lm.pool(readings)
    # One block where rows of all lengths share blocks; else as many of each bucket as fill a block of its own.
    order = (2, 0, 2, 1) * (SLOTS // 4) * (1 if getattr(pool, "mixed", True) else 2)
    alone: list[Scores] = []
    own, everywhere = Going(alone_in, alone_in.open()), Going(pool, pool.open(placed(order, 4)))
    for a, seen in _go_on(lm, own, everywhere):
        alone.append(a)
        if not np.array_equal(a[[*order]], seen):
            return False

    pool = lm.pool(readings)
    leaves, beside = pool.open([other, other]), pool.open([*([other] * (SLOTS - 1)), long])
    for session in (leaves, beside):
        session.push(lm.encode(OTHER)[:1])
    pool.step()
    leaves.scores()
    leaves.close()
    some = (0, 1, 2, 2, 1, 0, 2)
    seen_beside = (seen for (seen,) in _go_on(lm, Going(pool, pool.open(placed(some, 1)), beside)))
    return all(np.array_equal(a[[*some]], seen) for a, seen in zip(alone, seen_beside, strict=True))


@dataclass(frozen=True)
class Going:
    """A session that is followed, and one beside it that says something else and leaves before the last token."""

    pool: Pool
    session: Session
    beside: Session | None = None


def _prompts(texts: Sequence[str]) -> list[Prompt]:
    return [Prompt("Rewrite the note in one sentence.\n\n", text, "\n") for text in texts]


def _go_on(lm: LanguageModel, *goings: Going) -> Iterator[tuple[Scores, ...]]:
    """Yield each session's scores after reading and after one, four and one tokens, and those of few candidates."""
    yield tuple(going.session.scores() for going in goings)
    ours, theirs = lm.encode(SHORT), lm.encode(LONG)
    for first, last in ((0, 1), (1, 5), (5, 6)):
        for going in goings:
            going.session.push(ours[first:last])
            if going.beside is not None and last > 5:
                going.beside.close()
            elif going.beside is not None:
                going.beside.push(theirs[first:last])
        goings[0].pool.step(goings[1].pool if len(goings) > 1 else None)
        yield tuple(going.session.scores() for going in goings)
    few = sorted(set(ours + theirs))
    for count in CANDIDATES:
        yield tuple(going.session.scores(few[:count]) for going in goings)
    for going in goings:
        going.session.close()
