"""Greedy text from a local model: every row goes its own way, in the same fixed shapes as private prediction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stillroom.lm.base import Prompt

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
        found = _group(lm, [prompts[i] for i in members], max_tokens, stop)
        for i, text in zip(members, found, strict=True):
            texts[i] = text
    return texts


def _group(lm: HuggingFaceLM, prompts: list[Prompt], max_tokens: int, stop: Sequence[str]) -> list[str]:
    torch, public = lm.torch, prompts[0].public
    session = lm.open(lm.read(prompts, PUBLIC_BODY if public else PRIVATE_BODY), public=public)
    texts: list[str] = []
    for block in session.blocks:
        said: list[list[int]] = [[] for _ in range(block.count)]
        done = [False] * block.count
        for step in range(max_tokens):
            best = lm.head(block.hidden, None).argmax(axis=1)
            for i in range(block.count):
                if not done[i]:
                    said[i].append(int(best[i]))
                    ended = int(best[i]) in lm.stop_tokens
                    done[i] = ended or any(s in lm.decode(said[i]) for s in stop)
            if all(done) or step == max_tokens - 1:
                break
            block.push(torch.tensor(best, dtype=torch.long, device=lm.device)[:, None])
        texts.extend(_cut(lm.decode([t for t in row if t not in lm.stop_tokens]), stop) for row in said)
    return texts


def _cut(text: str, stop: Sequence[str]) -> str:
    ends = [text.find(s) for s in stop if s in text]
    return text[: min(ends)] if ends else text
