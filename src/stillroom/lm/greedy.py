"""Greedy text from a local model: every row goes its own way, in the same fixed shapes as private prediction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stillroom.lm.base import Prompt
from stillroom.lm.pool import STEP_ROWS

if TYPE_CHECKING:
    from stillroom.lm.huggingface import HuggingFaceLM

PRIVATE_BODY, PUBLIC_BODY = 512, 4096
"""Tokens of a body at most."""


def generate(lm: HuggingFaceLM, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
    """Return the greedy continuation of each prompt, cut before any stop string.

    A private body is cut after PRIVATE_BODY tokens, as its rows all run at that public length.
    """
    groups: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for i, prompt in enumerate(prompts):
        groups[prompt.before, prompt.public].append(i)
    texts = [""] * len(prompts)
    for members in groups.values():
        for first in range(0, len(members), STEP_ROWS):
            chosen = members[first : first + STEP_ROWS]
            found = _group(lm, [prompts[i] for i in chosen], max_tokens, stop)
            for i, text in zip(chosen, found, strict=True):
                texts[i] = text
    return texts


def _group(lm: HuggingFaceLM, prompts: list[Prompt], max_tokens: int, stop: Sequence[str]) -> list[str]:
    public = prompts[0].public
    session = lm.open(lm.read(prompts, PUBLIC_BODY if public else PRIVATE_BODY), public=public)
    said: list[list[int]] = [[] for _ in prompts]
    done = [False] * len(prompts)
    for step in range(max_tokens):
        best = session.scores().argmax(axis=1)
        for i, token in enumerate(best):
            if not done[i]:
                said[i].append(int(token))
                done[i] = int(token) in lm.stop_tokens or any(s in lm.decode(said[i]) for s in stop)
        if all(done) or step == max_tokens - 1:
            break
        session.push_each([int(token) for token in best])
    return [_cut(lm.decode([t for t in row if t not in lm.stop_tokens]), stop) for row in said]


def _cut(text: str, stop: Sequence[str]) -> str:
    ends = [text.find(s) for s in stop if s in text]
    return text[: min(ends)] if ends else text
