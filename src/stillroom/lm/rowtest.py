"""The row test: on this device, in this dtype, does a row's every bit stay when the other rows change?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stillroom.lm.base import Prompt, Scores

if TYPE_CHECKING:
    from stillroom.lm.base import LanguageModel

SHORT = "The visitor asked about opening hours and left a note for the manager at the desk."
OTHER = "Please bring two chairs to the room upstairs before noon."
LONG = "A long report on the garden, the trees and the old wall follows. " * 40


def rows_independent(lm: LanguageModel, body_tokens: int = 128) -> bool:
    """Return whether rows keep every bit when others are added, removed, moved or exchanged for a long one.

    Built-in public texts only. Rows stand at other places, in other blocks, and beside other rows.
    """
    lengths = (4, 9, 60)
    words = SHORT.split() * 4
    texts = [" ".join(words[:n]) + f" {i}" for i, n in enumerate(lengths)]
    alone = _run(lm, texts, body_tokens)
    moved = _run(lm, [*([OTHER] * 11), texts[2], LONG, texts[0], *([OTHER] * 70), texts[1]], body_tokens)
    return all(np.array_equal(a, moved[i]) for a, i in zip(alone, (13, 84, 11), strict=True))


def _run(lm: LanguageModel, texts: Sequence[str], body_tokens: int) -> list[Scores]:
    """Return each row's scores after reading, after one token and after several at once."""
    prompts = [Prompt("Rewrite the note in one sentence.\n\n", text, "\n") for text in texts]
    session = lm.open(lm.read(prompts, body_tokens))
    seen = [session.scores()]
    for tokens in (lm.encode(SHORT)[:1], lm.encode(OTHER)[:5]):
        session.push(tokens)
        seen.append(session.scores())
    return [np.concatenate([s[i] for s in seen]) for i in range(len(texts))]
