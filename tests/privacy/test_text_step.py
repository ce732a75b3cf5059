"""The text step keeps its word, by enumerating every text it could write: exact ratios and Rényi divergences.

Divergences are of whole texts, between neighbouring collections, at fixed released words and sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stillroom.distil import votes
from stillroom.distil.synthesise import Synthesis
from stillroom.distil.votes import Votes
from stillroom.documents import Document, Documents
from stillroom.lm.base import Scores
from stillroom.privacy.events import NoisyMax
from stillroom.privacy.zcdp import cost
from stillroom.release.costs import events_of
from stillroom.release.schema import CoKeywordPlan, Form, PlanRecord, Slot, TopicPlan, Word
from stillroom.testing.neighbours import Neighbour, neighbours
from stillroom.testing.toylm import NaNLM
from tests.privacy.mechanics import Call, plan
from tests.privacy.walk import Tree, divergences, softmax, walk

ORDERS = (1.5, 2.0, 8.0, 32.0)
LM = NaNLM(words=("Zonk", "Rest", "Tea"), labels=("A:", "B:"), letters="its,")
NOTES = Documents(
    [
        Document.of("Zonkitis Rest Tea", "1", "u1"),
        Document.of("Zonkitis Tea A: Tea", "2", "u2"),
        Document.of("Zonkitis Tea Rest Rest", "3a", "u3"),
        Document.of("Rest Zonktis", "3b", "u3"),
        Document.of("Zonktis Tea Zonkitis", "4", "u4"),
        Document.of("xpoisonx Zonkitis Rest", "5", "u5"),
    ]
)
RELEASED = (Word(word="zonktis", count=9.0, listed=False), Word(word="zonkitis", count=9.5, listed=False))
TOGETHER = {"zonkitis": (RELEASED[1], RELEASED[0]), "zonktis": (RELEASED[0],)}
ONE_TOPIC, TWO_TOPICS = (0.0, 30.0), (30.0, 30.0)  # zonktis, the rarer, and zonkitis
TOKENS = Form(name="toy", slots=(Slot(label="A", draws=2), Slot(label="B", draws=1)))
LIST = Form(name="toy", slots=(Slot(label="A", draws=1), Slot(label="B", draws=3, list=True)))
TOPICS = TopicPlan(per_unit=1, merge=False, size_sigma=1.0, smallest=5.0)


def text_plan(topics: TopicPlan = TOPICS, **text: object) -> PlanRecord:
    values: dict[str, object] = {"form": None, "draws": 3, "top_k": 4, "levels": 20, "clip": 0.3, **text}
    if isinstance(values["form"], Form):
        values["draws"] = values["form"].draws
    return plan(values, topics=topics, cokeywords=CoKeywordPlan(per_unit=2, sigma=1.0, published=2))


ALL = {"candidates": "all", "floor": None, "completion": False}
PLANS = {
    "free text": text_plan(),
    "a form": text_plan(form=TOKENS),
    "a form without completion": text_plan(form=TOKENS, completion=False),
    "a form of any words": text_plan(form=TOKENS, lists="free"),
    "a list of released words": text_plan(form=LIST, lift=0.3),
    "calibrated": text_plan(form=LIST, calibration=0.7),
    "a list of any words": text_plan(form=LIST, lists="free", lift=0.3),
    "released words lifted": text_plan(lift=0.5),
    "nobody abstains": text_plan(form=TOKENS, abstain=False),
    "no prior": text_plan(floor=None),
    "hot": text_plan(temperature=1.7, clip=0.9),
    "centred": text_plan(votes="centred"),
    "all tokens": text_plan(**ALL, draws=2),
    "the paper's": text_plan(**ALL, draws=2, votes="centred", clip=0.1057),
}


def trees(
    documents: Documents,
    record: PlanRecord,
    folder: Path,
    sizes: tuple[float, ...] = ONE_TOPIC,
    kind: type[Synthesis] = Synthesis,
) -> dict[str, Tree]:
    return walk(documents, record, LM, folder, words=RELEASED, together=TOGETHER, sizes=sizes, kind=kind)


def others() -> Iterator[Neighbour]:
    """Yield every neighbour: each unit removed, and added a 500-token note, 50 documents, a note of NaN, and more."""
    yield from neighbours(NOTES)
    for name, text in {"a broken note": "xpoisonx Zonkitis", "a loud note": "Zonkitis" + " Tea" * 80}.items():
        yield Neighbour(name, "new", Documents([*NOTES, Document.of(text, "new", "new")]), removed=False)


def hold(one: Tree, other: Tree, record: PlanRecord, density: object = softmax) -> float:
    """Raise AssertionError unless two exact distributions are as near as one topic's share of the plan says."""
    text = record.text
    most = text.draws * 2 * text.clip / text.temperature
    rho = text.draws * text.clip**2 / (2 * text.temperature**2)
    (event,) = (e for e in events_of(record) if isinstance(e, NoisyMax))
    assert cost(event).rho == pytest.approx(rho * record.topics.per_unit)
    ratio, renyi = divergences(one, other, ORDERS, density)  # type: ignore[arg-type]
    if ratio > most * (1 + 1e-9):
        raise AssertionError(f"a text is e^{ratio:.3f} times as likely, claimed was e^{most:.3f}")
    for order, divergence in renyi.items():
        if divergence > order * rho * (1 + 1e-9):
            raise AssertionError(f"Rényi divergence of order {order} is {divergence:.3f}, claimed {order * rho:.3f}")
    return ratio


@pytest.mark.parametrize("name", PLANS)
def test_no_text_tells_of_one_unit_more_than_the_events_say(name: str, tmp_path: Path) -> None:
    record = PLANS[name]
    (first,) = trees(NOTES, record, tmp_path).values()
    assert len(first.leaves) > 12
    ratios = []
    for neighbour in others():
        (tree,) = trees(neighbour.documents, record, tmp_path).values()
        ratios.append(hold(first, tree, record))
    assert max(ratios) > 0.2 * record.text.draws * 2 * record.text.clip / record.text.temperature  # no idle bound
    assert min(ratios) == 0.0  # one that is not in the topic changes nothing


def test_a_text_takes_at_most_the_draws_that_are_charged(tmp_path: Path) -> None:
    for record in (PLANS["free text"], PLANS["a form"], PLANS["all tokens"]):
        (tree,) = trees(NOTES, record, tmp_path).values()
        assert max(map(len, tree.leaves)) == record.text.draws
        if record.text.form is None:
            assert min(map(len, tree.leaves)) < record.text.draws  # some end early, and are charged all the same


def test_every_candidate_can_be_drawn(tmp_path: Path) -> None:
    (tree,) = trees(NOTES, PLANS["free text"], tmp_path).values()
    assert all(np.isfinite(softmax(call)).all() for call in tree.nodes.values())


def test_completion_is_walked_too_and_stands_in_the_texts(tmp_path: Path) -> None:
    for name, longest in (("a form", 5), ("a form without completion", 2)):
        (tree,) = trees(NOTES, PLANS[name], tmp_path).values()
        assert max(len(value) for said in tree.leaves.values() for value in said) == longest


def test_a_unit_is_felt_in_at_most_l_topics_and_in_one_part_of_each(tmp_path: Path) -> None:
    record = text_plan(TopicPlan(per_unit=2, merge=False, size_sigma=1.0, smallest=5.0, part=15.0), form=TOKENS)
    first = trees(NOTES, record, tmp_path, TWO_TOPICS)
    assert sorted(first) == ["text/zonkitis/0", "text/zonkitis/1", "text/zonktis/0", "text/zonktis/1"]
    felt = []
    for neighbour in others():
        again = trees(neighbour.documents, record, tmp_path, TWO_TOPICS)
        ratios = {key: hold(tree, again[key], record) for key, tree in first.items()}
        felt.append([key for key, ratio in ratios.items() if ratio])
    assert all(len(keys) == len({key.split("/")[1] for key in keys}) <= 2 for keys in felt)
    assert max(map(len, felt)) == 2


def test_without_budget_texts_are_the_same_whatever_the_collection_says(tmp_path: Path) -> None:
    record = text_plan(clip=1e-7, floor=None)
    (first,) = trees(NOTES, record, tmp_path).values()
    (other,) = trees(Documents([Document.of("Zonkitis Tea Tea", str(i)) for i in range(40)]), record, tmp_path).values()
    ratio, _ = divergences(first, other, ORDERS)
    assert 0 < ratio < 1e-4


# -- the check sees mistakes -----------------------------------------------------------------------------------------
def caught(
    record: PlanRecord, folder: Path, message: str, kind: type[Synthesis] = Synthesis, density: object = softmax
) -> None:
    """Assert that the check above would fail for some neighbour."""
    (first,) = trees(NOTES, record, folder, kind=kind).values()
    with pytest.raises(AssertionError, match=message):
        for neighbour in others():
            (tree,) = trees(neighbour.documents, record, folder, kind=kind).values()
            hold(first, tree, record, density)


def test_it_catches_the_best_k_of_aggregated_votes(tmp_path: Path) -> None:
    """What `transformers.generate` does after custom processors, with k = 50 (here 3, of 12 tokens)."""

    def best_three(call: Call) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        told = call.told.astype(np.float64)
        told[np.lexsort((np.arange(len(told)), -told))[3:]] = -np.inf
        scaled = told / float(call.parameters["scale"] or 0.0)
        with np.errstate(divide="ignore"):
            return np.log(np.exp(scaled - scaled.max()) / np.exp(scaled - scaled.max()).sum())

    caught(PLANS["all tokens"], tmp_path, r"e\^inf times", density=best_three)


def test_it_catches_votes_that_are_not_clipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unclipped(scores: Scores, levels: int, clip: float) -> Votes:
        share = np.exp(np.nan_to_num(scores.astype(np.float64), nan=-np.inf))
        share /= np.maximum(share.max(axis=1, keepdims=True), 1e-300)
        return np.floor(share * levels / (2 * clip)).astype(np.int64)

    monkeypatch.setattr(votes, "centred", unclipped)
    caught(PLANS["the paper's"], tmp_path, "claimed")


def test_it_catches_candidates_taken_from_private_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mixed(Synthesis):
        def _offered(self, key, prefix, slot, public, spelling):  # type: ignore[no-untyped-def]
            return super()._offered(key, prefix, slot, self.private, spelling)

        def values(self, key, private, public, spelling, progress=lambda n: None):  # type: ignore[no-untyped-def]
            self.private = private
            return super().values(key, private, public, spelling, progress)

    caught(PLANS["free text"], tmp_path, "candidates or prior", kind=Mixed)


def test_it_catches_calibration_by_the_rows_themselves(tmp_path: Path) -> None:
    """What "calibrate before use" does with the scores of the batch at hand."""

    class Own(Synthesis):
        def _lean(self, public, *others):  # type: ignore[no-untyped-def]
            return super()._lean(self.private, *others)

        def values(self, key, private, public, spelling, progress=lambda n: None):  # type: ignore[no-untyped-def]
            self.private = private
            return super().values(key, private, public, spelling, progress)

    caught(PLANS["calibrated"], tmp_path, "candidates or prior", kind=Own)


def test_it_catches_a_draw_more_than_is_charged(tmp_path: Path) -> None:
    class Longer(Synthesis):
        def _value(self, key, slot, *others):  # type: ignore[no-untyped-def]
            return super()._value(key, slot.model_copy(update={"draws": slot.draws + 1}), *others)

    (tree,) = trees(NOTES, PLANS["all tokens"], tmp_path, kind=Longer).values()
    assert max(map(len, tree.leaves)) > PLANS["all tokens"].text.draws
