"""A small run with the packaged model itself: it verifies, spends once and gives nobody away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stillroom.distil.plan import plan
from stillroom.distil.presets import DEFAULT
from stillroom.distil.run import release
from stillroom.evals.facts import canaries_found
from stillroom.privacy.ledger import Ledger
from stillroom.readers import read
from stillroom.release.schema import Form, Slot
from stillroom.release.verify import verify
from stillroom.testing import clinic

EPSILON, DELTA, NOTES = 1000.0, 1e-6, 24
FORM = Form(
    name="small", about="clinic note",
    slots=(Slot(label="Diagnosis", draws=3, hint="name of the disease"),
           Slot(label="Treatment", draws=3, hint="name of the treatment")),
)  # fmt: skip
SMALL = replace(
    DEFAULT, name="small-1", keywords=6, released=20, published=6, top_k=30, document_tokens=48, most_topics=2,
    smallest=2.0, part=50.0, keyword_share=0.4,
)  # fmt: skip


@pytest.fixture
def made_up(tmp_path: Path) -> Iterator[list[dict[str, str]]]:
    yield clinic.write(tmp_path / "notes.jsonl", seed=4, notes=NOTES)


@pytest.mark.model
def test_a_small_real_run_verifies_spends_once_and_gives_nobody_away(
    tmp_path: Path, made_up: list[dict[str, str]]
) -> None:
    start = time.process_time()
    notes = read(tmp_path / "notes.jsonl", text="note", unit="patient_id")
    made = plan(epsilon=EPSILON, delta=DELTA, preset=SMALL, form=FORM, unit="patient_id")
    out = tmp_path / "notes.release"
    with Ledger.open(tmp_path / "clinic.ledger", epsilon=EPSILON, delta=DELTA) as ledger:
        release(notes, made, ledger=ledger, out=out, lm="smollm2")
        written = verify(out, ledger=ledger).release
        assert [entry.kind for entry in ledger.history()] == ["open", "reserve", "complete"]
        assert ledger.state().rho == pytest.approx(made.rho)
    assert written.statistics.topics and written.texts
    assert written.certificate.models["lm"].startswith("smollm2 ")
    assert canaries_found([path.read_text() for path in out.iterdir()], clinic.canaries(made_up)) == 0
    assert not (tmp_path / "notes.release.run").exists()
    assert time.process_time() - start < 120  # of two cores: within a minute
