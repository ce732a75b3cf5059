"""What an auditor broke once: units, resuming with something else, and what is found before anything is spent."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stillroom.distil import certificates, run
from stillroom.documents import Document, Documents
from stillroom.embed.hashing import HashEmbedder
from stillroom.errors import BadOption, LedgerMismatch, RunChanged, StillroomError
from stillroom.readers import read
from stillroom.release.verify import verify
from stillroom.testing.noise import NoNoise
from tests.e2e.whole import PRESET, Desk, Logged, Rough, draws, lm, plan
from tests.privacy.mechanics import collection


class Stopped(Exception):
    pass


def stop() -> None:
    raise Stopped


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.ledger().close()
    return made


# -- units -------------------------------------------------------------------------------------------------------------
def test_a_ledger_counts_by_one_unit(desk: Desk) -> None:
    """A patient's thirty notes move thirty times what one note moves: their costs do not add up."""
    path = desk.folder / "notes.jsonl"
    rows = [json.dumps({"id": d.id, "text": d.text, "patient": d.unit}) for d in collection()]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    desk.release(read(path), plan=plan(unit="document"))
    with pytest.raises(LedgerMismatch, match="counted by the unit 'document', but 'patient'"):
        desk.release(read(path, unit="patient"), plan=plan(unit="patient"), out=desk.folder / "second")
    assert [kind for kind, _ in desk.entries()] == ["open", "reserve", "complete"]
    with desk.ledger() as ledger:
        assert [e.get("unit") for e in ledger.export()["entries"] if e["kind"] == "reserve"] == ["document"]
        verify(desk.out, ledger=ledger)


def test_documents_of_larger_units_are_not_certified_as_single_ones(desk: Desk) -> None:
    shared = Documents([Document.of("Zonkitis", "d1", "p1"), Document.of("Tea", "d2", "p1")])
    with pytest.raises(BadOption, match="the plan's unit is 'document'"):
        desk.release(shared, plan=plan(unit="document"))
    desk.nothing_happened()
    named = desk.release(shared, plan=plan(unit="patient"), noise=NoNoise())
    assert named.certificate.plan.unit == "patient"


# -- going on ----------------------------------------------------------------------------------------------------------
def _salted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(certificates, "SALT", b"another")
    return {}


def _upgraded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(certificates, "software", lambda: {"stillroom": "9.9"})
    return {}


def _moved(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    model = lm()
    model.placed = "cuda, bfloat16"
    return {"lm": model}


def _embedded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    other = HashEmbedder(16)
    other.name = "another"
    return {"embedder": other}


CHANGES = {"public inputs": _salted, "software": _upgraded, "device or type": _moved, "models": _embedded}


@pytest.mark.parametrize("what", CHANGES)
def test_a_run_goes_on_with_nothing_else_than_it_was_begun_with(
    desk: Desk, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other lists, another salt or another model units would vote again in another part, and pay once."""
    given = {"plan": plan(preset=replace(PRESET, cut=True, keep=3))}
    with pytest.raises(Stopped):
        desk.release(noise=Logged(Rough(), desk.folder / "log", 9, stop), **given)
    with monkeypatch.context() as patch, pytest.raises(RunChanged, match=f"begun with another {what}: go on"):
        desk.release(noise=Rough(), **given, **CHANGES[what](patch))
    desk.release(noise=Rough(), **given)
    assert [kind for kind, _ in desk.entries()] == ["open", "reserve", "complete"]


def test_a_rehearsal_leaves_a_run_of_the_same_place_alone(desk: Desk) -> None:
    with pytest.raises(Stopped):
        desk.release(noise=Logged(Rough(), desk.folder / "log", 9, stop))
    kept = draws(desk.run_folder)
    run.rehearse(collection(), plan(), lm=lm(), embedder=HashEmbedder(16), out=desk.out, noise=Rough())
    assert draws(desk.run_folder) == kept and len(kept) > 2
    shutil.rmtree(desk.out)
    desk.release(noise=Rough())
    desk.spent_once()
    assert {p.name for p in desk.folder.iterdir()} == {"clinic.ledger", "notes.release", "log"}


def test_texts_go_before_the_journal_that_leads_to_them(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(folder: Path, **_: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(run.shutil, "rmtree", killed)
        desk.release(noise=Rough())
    assert not (desk.run_folder / run.SPOOL).exists()
    desk.release(noise=Rough())
    assert not desk.run_folder.exists()
    desk.spent_once()


# -- before anything is spent ------------------------------------------------------------------------------------------
def _record(**changes: Any) -> Any:
    return plan().record.model_copy(update=changes)


BEFORE: dict[str, Any] = {
    "a plan that costs more than it says": lambda: _record(epsilon=1.0),
    "partition selection takes all of δ": lambda: _record(delta=1e-9),
    "a word list that nobody has": lambda: _record(
        keywords=plan().record.keywords.model_copy(update={"word_list": "nope"})
    ),
    "a task that is no Unicode": lambda: plan(task="caf\udce9"),
    "a task put in by hand that is no Unicode": lambda: _record(task="caf\udce9"),
    "a label that is no Unicode": lambda: plan(form="caf\udce9: 3"),
    "longer free texts than there are": lambda: plan(
        form=None, preset=replace(PRESET, form=False, draws=300, cokeywords=None)
    ),
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_would_stop_a_run_is_found_before_it_pays(desk: Desk, name: str) -> None:
    with pytest.raises((StillroomError, ValueError)):
        desk.release(plan=BEFORE[name](), noise=NoNoise())
    desk.nothing_happened()


def test_a_form_about_nothing_is_refused(desk: Desk) -> None:
    path = desk.folder / "form.toml"
    path.write_text('name = "x"\nabout = ""\n[[slots]]\nlabel = "Diagnosis"\ndraws = 2\n', encoding="utf-8")
    with pytest.raises(BadOption, match="about"):
        plan(form=str(path))
