"""The row test: on this device, in this dtype, does a row's every bit stay when the other rows change?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    Built-in public texts only. Rows of three lengths once have the model to themselves. Then they are read at every
    place of a block that is read; stand in every slot of a block, and are scored at every place of the head's; stand in
    blocks of other buckets where the pool mixes them, in slots that other rows left, and beside the rows of another
    session, which says something else in the same passes and leaves, so that some of them move to another block. All is
    tried with passes of one token and of several, over all tokens and over few candidates.
    """
    texts = [" ".join((SHORT.split() * 4)[:n]) + f" {i}" for i, n in enumerate(WORDS)]
    alone_in = lm.pool(lm.read(_prompts(texts), body_tokens))
    alone = list(_go_on(lm, alone_in, alone_in.open()))

    # Each text at all four places of a block that is read, where it stood beside dummies before; then two others.
    notes = [text for text in texts for _ in range(4)]
    where = [range(4 * i, 4 * i + 4) for i in range(len(texts))]
    other, long = len(notes), len(notes) + 1
    readings = lm.read(_prompts([*notes, OTHER, LONG]), body_tokens)

    pool = lm.pool(readings)
    # One block where rows of all lengths share blocks; else as many of each bucket as fill a block of its own.
    order = (2, 0, 2, 1) * (SLOTS // 4) * (1 if getattr(pool, "mixed", True) else 2)
    everywhere = [(text, where[text][i // 4 % 4]) for i, text in enumerate(order)]
    if not _alike(alone, _go_on(lm, pool, pool.open([row for _, row in everywhere])), [text for text, _ in everywhere]):
        return False

    pool = lm.pool(readings)
    leaves, beside = pool.open([other, other]), pool.open([*([other] * (SLOTS - 1)), long])
    for session in (leaves, beside):
        session.push(lm.encode(OTHER)[:1])
    pool.step()
    leaves.scores()
    leaves.close()
    some = [(text, where[text][i % 4]) for i, text in enumerate((0, 1, 2, 2, 1, 0, 2))]
    return _alike(alone, _go_on(lm, pool, pool.open([row for _, row in some]), beside), [text for text, _ in some])


def _alike(alone: Sequence[Scores], seen: Iterator[Scores], texts: Sequence[int]) -> bool:
    """Return whether every row scores, at every step, what its text scores alone."""
    return all(np.array_equal(a[texts], each) for a, each in zip(alone, seen, strict=True))


def _prompts(texts: Sequence[str]) -> list[Prompt]:
    return [Prompt("Rewrite the note in one sentence.\n\n", text, "\n") for text in texts]


def _go_on(lm: LanguageModel, pool: Pool, session: Session, beside: Session | None = None) -> Iterator[Scores]:
    """Yield a session's scores after reading and after one, four and one tokens, and those of a few candidates.

    The other session leaves before the last token.
    """
    yield session.scores()
    ours, theirs = lm.encode(SHORT), lm.encode(LONG)
    for first, last in ((0, 1), (1, 5), (5, 6)):
        session.push(ours[first:last])
        if beside is not None and last > 5:
            beside.close()
        elif beside is not None:
            beside.push(theirs[first:last])
        pool.step()
        yield session.scores()
    few = sorted(set(ours + theirs))
    for count in CANDIDATES:
        yield session.scores(few[:count])
    session.close()
