"""The row test: on this device, in this dtype, does a row's every bit stay when the other rows change?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stillroom.lm.base import Prompt, Scores

if TYPE_CHECKING:
    from stillroom.lm.base import LanguageModel, Pool, Session

SHORT = "The visitor asked about opening hours and left a note for the manager at the desk."
OTHER = "Please bring two chairs to the room upstairs before noon."
LONG = "A long report on the garden, the trees and the old wall follows. " * 40
CANDIDATES = 40
"""Tokens of the candidates whose scores are computed alone."""


def rows_independent(lm: LanguageModel, body_tokens: int = 128) -> bool:
    """Return whether rows keep every bit when others are added, removed, moved or exchanged for a long one.

    Built-in public texts only. The rows once have the model to themselves; then they stand at other places, in blocks
    of other buckets where the pool mixes them, in slots that other rows left, and beside the rows of another session,
    which says something else in the same passes and leaves, so that some of them move to another block. Both are tried
    with passes of one token and of several.
    """
    words = SHORT.split() * 4
    texts = [" ".join(words[:n]) + f" {i}" for i, n in enumerate((4, 9, 60))]
    pool = lm.pool(lm.read(_prompts(texts), body_tokens))
    alone = _go_on(lm, pool, pool.open())

    others = [OTHER] * 11
    pool = lm.pool(lm.read(_prompts([*others, texts[2], LONG, texts[0], *others, texts[1]]), body_tokens))
    leaves, beside = pool.open([0, 1]), pool.open([*range(2, 11), *([0] * 54), 12])
    for session in (leaves, beside):
        session.push(lm.encode(OTHER)[:1])
    pool.step()
    leaves.scores()
    leaves.close()
    moved = _go_on(lm, pool, pool.open([0, 13, 25, 1, 11]), beside)
    return all(
        np.array_equal(a[i], m[j]) for a, m in zip(alone, moved, strict=True) for i, j in ((0, 1), (1, 2), (2, 4))
    )


def _prompts(texts: Sequence[str]) -> list[Prompt]:
    return [Prompt("Rewrite the note in one sentence.\n\n", text, "\n") for text in texts]


def _go_on(lm: LanguageModel, pool: Pool, session: Session, beside: Session | None = None) -> list[Scores]:
    """Return a session's scores after reading and after one, four and one tokens, and those of a few candidates.

    The other session leaves before the last token.
    """
    seen = [session.scores()]
    ours, theirs = lm.encode(SHORT), lm.encode(LONG)
    for first, last in ((0, 1), (1, 5), (5, 6)):
        session.push(ours[first:last])
        if beside is not None and last > 5:
            beside.close()
        elif beside is not None:
            beside.push(theirs[first:last])
        pool.step()
        seen.append(session.scores())
    return [*seen, session.scores(sorted(set(ours + theirs))[:CANDIDATES])]
