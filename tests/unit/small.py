"""What tests of the real engine share: the small model in small blocks, and notes for it to read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stillroom.distil.votes import Votes, one_sided
from stillroom.errors import StillroomError
from stillroom.lm.base import Prompt
from stillroom.models import default_cache, resolve

if TYPE_CHECKING:
    from stillroom.lm.huggingface import HuggingFaceLM
    from stillroom.lm.pool import HuggingFaceSession

NOTES = ("Zonkitis, helped by tea.", "A cough and a fever", "pain", "Snurflepox with a rash on both arms", "Rest")


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    from stillroom.lm import huggingface, pool, rowtest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huggingface, "STEP_ROWS", 16)
        patch.setattr(pool, "HEAD_ROWS", 16)
        patch.setattr(rowtest, "SLOTS", 16)
        yield


def smollm2() -> Path | str:
    """Return where the packaged small model is, or skip the test."""
    try:
        return resolve("smollm2", default_cache(os.environ), kind="lm", pull_missing=False)
    except StillroomError as missing:
        pytest.skip(f"{missing} (stillroom models pull smollm2)")


@pytest.fixture(scope="module", name="lm")
def its_lm() -> HuggingFaceLM:
    from stillroom.lm.huggingface import HuggingFaceLM

    return HuggingFaceLM(smollm2(), name="smollm2")


def prompts(notes: Sequence[str] = NOTES) -> list[Prompt]:
    return [Prompt("Note: ", note, "\n") for note in notes]


def votes(session: HuggingFaceSession) -> Votes:
    return one_sided(session.scores(), 1000)
