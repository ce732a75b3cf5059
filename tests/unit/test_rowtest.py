"""The row test finds the least that one row may move of another; models whose rows are not apart are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.model
pytest.importorskip("torch")
pytest.importorskip("transformers")

from stillroom.lm import alike, attention, huggingface, pool  # noqa: E402
from stillroom.lm.head import Head  # noqa: E402
from stillroom.lm.huggingface import HuggingFaceLM  # noqa: E402
from stillroom.lm.rowtest import rows_independent  # noqa: E402
from tests.unit.small import its_lm, prompts, small_blocks  # noqa: E402, F401 - fixtures


def leaning(where: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what makes a model's rows lean on what is beside them, or was in their slot, by the least bit."""

    def forward(patch: pytest.MonkeyPatch) -> None:
        plain = HuggingFaceLM.forward

        def leans(self: HuggingFaceLM, ids: Any, *rest: Any) -> Any:
            states = plain(self, ids, *rest)
            if (ids.shape[1] > 1) != (where == "several tokens"):
                return states
            return states + 1e-6 * states.abs().sum(dim=(0, 1), keepdim=True)

        patch.setattr(HuggingFaceLM, "forward", leans)

    def slots(patch: pytest.MonkeyPatch) -> None:
        plain = pool.Block.put

        def leans(self: pool.Block, *row: Any) -> pool.Place:
            before = self.own.abs().sum(dim=(0, 1, 3, 4, 5))
            place = plain(self, *row)
            self.hidden[place.slot] += 1e-6 * before[place.slot]
            return place

        patch.setattr(pool.Block, "put", leans)
        patch.setattr(pool.Block, "clear", lambda self, slot: (self.held.pop(slot), self.free.insert(0, slot)))

    def moves(patch: pytest.MonkeyPatch) -> None:
        plain = pool.Block.move

        def leans(self: pool.Block, place: pool.Place, other: pool.Block) -> None:
            plain(self, place, other)
            other.own[:, :, place.slot] *= 1 + 1e-6

        patch.setattr(pool.Block, "move", leans)

    def buckets(patch: pytest.MonkeyPatch) -> None:
        plain = pool.Block.put

        def leans(self: pool.Block, keys: Any, hidden: Any, bucket: int) -> pool.Place:
            return plain(self, keys, hidden * (1 + 1e-6 * (self.bucket - bucket)), bucket)

        patch.setattr(pool.Block, "put", leans)

    def head(patch: pytest.MonkeyPatch) -> None:
        plain = Head.__call__

        def leans(self: Head, hidden: Any, vocabulary: Sequence[int] | None) -> Any:
            return plain(self, hidden + (1e-6 * hidden.abs().sum() if vocabulary is not None else 0), vocabulary)

        patch.setattr(Head, "__call__", leans)

    def scored(patch: pytest.MonkeyPatch) -> None:
        plain = Head.of_blocks

        def leans(self: Head, blocks: Any, vocabulary: Any, *, public: bool) -> Any:
            if vocabulary is None:
                blocks = [block + 1e-6 * block.abs().sum() for block in blocks]
            return plain(self, blocks, vocabulary, public=public)

        patch.setattr(Head, "of_blocks", leans)

    def product(concerned: Callable[[Any, Any], bool]) -> Callable[[pytest.MonkeyPatch], None]:
        functional = pytest.importorskip("torch.nn.functional")
        plain = functional.linear

        def leans(rows: Any, weight: Any, bias: Any = None) -> Any:
            out = plain(rows, weight, bias)
            if concerned(rows, weight):
                out[-1] *= 1 + 1e-6
            return out

        return lambda patch: patch.setattr(functional, "linear", leans)

    def attended(patch: pytest.MonkeyPatch) -> None:
        plain = alike.attend

        def leans(module: Any, query: Any, *rest: Any) -> Any:
            out, none = plain(module, query, *rest)
            if query.shape[2] == 200:
                out[1:] *= 1 + 1e-6
            return out, none

        patch.setattr(alike, "attend", leans)

    def read(patch: pytest.MonkeyPatch) -> None:
        plain = HuggingFaceLM._fresh

        def leans(self: HuggingFaceLM, ids: Any, memory: Any) -> Any:
            states, keys = plain(self, ids, memory)
            keys = keys.clone()
            keys[:, :, 1:] *= 1 + 1e-6
            return states, keys

        patch.setattr(HuggingFaceLM, "_fresh", leans)

    return {
        "slots": slots,
        "candidates": head,
        "moves": moves,
        "buckets": buckets,
        "all tokens": scored,
        "read": read,
        "a length": product(lambda rows, _: len(rows) == 2 * 200),
        "a number of candidates": product(lambda _, weight: len(weight) == 333),
        "attention to a length": attended,
    }.get(where, forward)


WHERE = ("one token", "several tokens", "slots", "moves", "buckets", "candidates", "all tokens", "read")


@pytest.mark.parametrize("where", WHERE)
def test_the_row_test_finds_the_least_leaning(lm: HuggingFaceLM, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows_independent(lm, 64)
    leaning(where)(monkeypatch)
    assert not rows_independent(lm, 64)


@pytest.mark.parametrize("where", ["one token", "several tokens", "slots"])
def test_also_where_rows_keep_to_their_bucket(lm: HuggingFaceLM, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other devices than a CPU."""
    monkeypatch.setattr(HuggingFaceLM, "mixes", lambda *_: False)
    assert rows_independent(lm, 64)
    leaning(where)(monkeypatch)
    assert not rows_independent(lm, 64)


@pytest.mark.parametrize("where", ["a length", "a number of candidates", "attention to a length"])
def test_parts_are_tried_in_every_shape(lm: HuggingFaceLM, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lm._independent.clear()
    assert lm._parts_alike(64)
    leaning(where)(monkeypatch)
    assert rows_independent(lm, 64)  # the whole model is tried in few shapes
    assert not lm.rows_independent(64)
    lm._independent.clear()


def test_attention_that_sums_otherwise_at_another_width_keeps_rows_in_their_bucket(
    lm: HuggingFaceLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = lm.read(prompts()).memory
    assert lm.mixes(memory, 304)
    plain = alike.attend
    lm._mixes.clear()

    def leans(module: Any, query: Any, key: Any, *rest: Any, **named: Any) -> Any:
        out, none = plain(module, query, key, *rest, **named)
        return out + 1e-6 * (key.shape[2] == 304), none

    monkeypatch.setattr(alike, "attend", leans)
    assert not lm.mixes(memory, 304)
    lm._mixes.clear()


def test_control_several_queries_at_once_are_cut_by_the_width() -> None:
    """Why each token of a pass has products of its own (MKL; elsewhere nothing may be found)."""
    torch = pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "FEW", 0)
        together = alike.widths_alike(torch, torch.zeros(2, 3, 9, 64), 9, 64, [4], 304, 16)
    if together:
        pytest.skip("this machine's products of several rows are alike at all widths")
    assert alike.widths_alike(torch, torch.zeros(2, 3, 9, 64), 9, 64, [4], 304, 16)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"num_local_experts": 8}, "experts"),
        ({"n_routed_experts": 64}, "experts"),
        ({"rope_scaling": {"type": "dynamic"}}, "dynamic"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "longrope"),
        ({"rope_parameters": {"rope_type": "default"}, "num_experts": None}, ""),
    ],
)
def test_models_whose_rows_move_each_other_are_refused(fields: dict[str, Any], why: str) -> None:
    told = huggingface._coupled(SimpleNamespace(**fields))
    assert why in told and bool(told) == bool(why)
