"""The packaged small model keeps the promises of the seam, in small blocks: blocks of full size take minutes here.

Before a release the shipped row test runs in blocks of full size on the device itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from stillroom.distil.votes import one_sided
from stillroom.lm.base import LanguageModel, Prompt, Scores
from stillroom.testing.conformance import LanguageModelConformance

pytestmark = pytest.mark.model
pytest.importorskip("torch")
pytest.importorskip("transformers")

from stillroom.lm import huggingface, pool  # noqa: E402
from stillroom.lm.huggingface import HuggingFaceLM, HuggingFaceReadings  # noqa: E402
from tests.unit.small import smollm2  # noqa: E402


class Short(HuggingFaceLM):
    """Cuts documents early: these tests are about rows, not about length."""

    def read(self, prompts: Sequence[Prompt], body_tokens: int = 16) -> HuggingFaceReadings:
        return super().read(prompts, min(body_tokens, 16))


@pytest.fixture(scope="module")
def folder() -> Path | str:
    return smollm2()


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huggingface, "READ_ROWS", 2)
        patch.setattr(huggingface, "STEP_ROWS", 4)
        patch.setattr(pool, "HEAD_ROWS", 4)
        yield


@pytest.fixture(scope="module")
def lm(folder: Path | str) -> LanguageModel:
    return Short(folder, name="smollm2")


@pytest.fixture(scope="module")
def half(folder: Path | str) -> HuggingFaceLM:
    return Short(folder, name="smollm2", dtype="bfloat16")


class TestSmolLM2(LanguageModelConformance):
    bodies = ("Diagnosis: Zonkitis. Treatment: Blergon", "Snurflepox with fever", "pain", "a cough")
    said = " Zonkitis"

    def prompt(self, body: str) -> Prompt:
        return Prompt(before="Note: ", body=body, after="\n", reply="")

    def _company(self, lm: LanguageModel) -> dict[str, list[Prompt]]:
        """Return fewer companies than the suite, with every kind of change in them: the blocks are small, too."""
        first, *others = self.prompts()
        return {
            "alone": [first],
            "many added, permuted, behind a long one": [*others[::-1], self.long_prompt(lm), first, *others],
            "one removed": [first, others[1]],
        }

    # Takes a minute: 88 rows, twice. The suite's test of a row in any company holds the same, bit for bit, with fewer.
    test_it_says_that_rows_are_independent = None  # type: ignore[assignment]


class TestBfloat16:
    """The same weights at half the precision."""

    def test_in_fixed_shapes_a_row_keeps_its_bits_or_the_model_is_refused(self, half: HuggingFaceLM) -> None:
        notes = [Prompt("Note: ", body, "\n") for body in TestSmolLM2.bodies]
        alone = half.open(half.read(notes[1:2])).scores()[0]
        beside = half.open(half.read([notes[0], notes[2], notes[1]])).scores()[2]
        assert np.array_equal(alone, beside) or not half.rows_independent()

    def test_padded_on_the_left_with_the_usual_attention_votes_depend_on_the_longest_note(
        self, half: HuggingFaceLM
    ) -> None:
        """What other code does. Here votes moved by 16 to 119 of 1000; the sensitivity claimed would be wrong."""
        half.model.set_attn_implementation("sdpa")
        longer = "Note: " + "a long walk by the sea and a fever " * 9
        moved = []
        for note in ("Note: pain\nDiagnosis:", "Note: Snurflepox with fever and rash, helped by tea\nDiagnosis:"):
            alone, beside = self.padded(half, [note])[0], self.padded(half, [note, longer])[0]
            moved.append(np.abs(one_sided(alone[None], 1000) - one_sided(beside[None], 1000)).max())
        assert max(moved) > 0

    def padded(self, lm: HuggingFaceLM, texts: Sequence[str]) -> Scores:
        """Return the scores of all rows, by the model's own forward pass on a batch as long as its longest row."""
        torch, rows = lm.torch, [lm.encode(text) for text in texts]
        longest = max(map(len, rows))
        ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        with torch.inference_mode():
            logits = lm.model(input_ids=ids, attention_mask=mask, position_ids=places, logits_to_keep=1).logits[:, -1]
        scores: Scores = logits.float().numpy()
        return scores
