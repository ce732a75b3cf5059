"""With the outputs of the noise held equal, one unit more or less changes nothing that anybody could see."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stillroom.lm.base import Prompt, Scores
from stillroom.privacy.zcdp import total
from stillroom.release.costs import events_of
from stillroom.testing.neighbours import neighbours, permutations
from stillroom.testing.noise import NoNoise
from stillroom.testing.toylm import ToyDocument, ToyLM
from tests.privacy.mechanics import PLANS, Book, Run, Shown, Wild, collection, moved_in_all, run, same


@pytest.fixture(scope="module", params=PLANS)
def plan_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["no noise", "1"])
def first(request: pytest.FixtureRequest, plan_name: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    noise = NoNoise() if request.param == "no noise" else Wild(int(request.param))
    return run(collection(), PLANS[plan_name], tmp_path_factory.mktemp("first"), noise=Shown(noise))


def test_the_first_run_has_something_to_say(first: Run, plan_name: str) -> None:
    assert len(first.outcome.statistics.topics) >= 2
    assert any(text.text for text in first.outcome.texts)
    assert len(first.noise.calls) > 10


def test_no_neighbour_can_be_told_by_anything_public_nor_moves_more_than_is_paid(
    first: Run, plan_name: str, tmp_path: Path
) -> None:
    record = PLANS[plan_name]
    paid = total(events_of(record)).rho
    spent = []
    for neighbour in neighbours(collection()):
        again = run(neighbour.documents, record, tmp_path, noise=Shown(replay=first.noise.calls))
        same(first, again)
        spent.append(moved_in_all(first, again))
        assert spent[-1] <= paid, neighbour.name
    assert max(spent) > 0  # the noise was told different things


def test_the_order_of_a_file_changes_nothing_at_all(first: Run, plan_name: str, tmp_path: Path) -> None:
    for shuffled in permutations(collection(), random.Random(3), 1):
        again = run(shuffled, PLANS[plan_name], tmp_path, noise=Shown(replay=first.noise.calls))
        same(first, again)
        assert moved_in_all(first, again) == 0.0


def test_a_resume_replays_every_draw_and_asks_for_no_noise(first: Run, plan_name: str, tmp_path: Path) -> None:
    again = run(collection(), PLANS[plan_name], tmp_path, noise=Shown(), book=Book(first.book.committed))
    assert again.outcome == first.outcome and again.noise.calls == []


def test_a_resume_after_any_draw_goes_on_as_the_first_run_would_have(tmp_path: Path) -> None:
    record = PLANS["the default"]
    whole = run(collection(), record, tmp_path)
    committed = list(whole.book.committed.items())
    for kept in range(0, len(committed), 3):
        book = Book(dict(committed[:kept]))
        again = run(collection(), record, tmp_path, book=book)
        assert again.outcome == whole.outcome
        assert book.committed == whole.book.committed


def test_a_document_that_breaks_the_model_neither_stops_nor_changes_a_run(tmp_path: Path) -> None:
    class Broken(ToyLM):
        def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
            scores = super().row_scores(prompt, document, said)
            # Every note has capitals; the public row, made of released words, has none.
            return scores if prompt.body == prompt.body.lower() else np.full_like(scores, np.nan)

    broken = run(collection(), PLANS["the default"], tmp_path, lm=Broken())
    assert len(broken.outcome.statistics.topics) > 1
    one_sided = [call for call in broken.noise.calls if call.name == "noisy_max"]
    prior = [json.loads(value)["prior"] for key, value in broken.book.committed.items() if key.endswith("/offered")]
    assert [call.told.tolist() for call in one_sided] == prior  # nobody voted
