"""The example of the Python API runs as it stands, with a toy model in the place of a real one."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import stillroom
from stillroom.embed.hashing import HashEmbedder
from stillroom.privacy.ledger import Ledger
from stillroom.release.verify import verify
from stillroom.testing import clinic
from stillroom.testing.toylm import ToyLM

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart.py"


def test_the_quickstart_distils_once_and_asks_for_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def load_lm(name: str) -> ToyLM:
        asked.append(name)
        names = [word for fact in clinic.FACTS.values() for word in (fact.disease, *fact.treatment.split())]
        return ToyLM(words=[*dict.fromkeys(names)], labels=(), letters="", answer=lambda prompt: "Giggle Drops")

    monkeypatch.setattr("stillroom.distil.run.load_lm", load_lm)
    monkeypatch.setattr("stillroom.rag.release.load_lm", load_lm)
    monkeypatch.setattr("stillroom.rag.release.load_embedder", lambda name: HashEmbedder(64))
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), "toy", str(tmp_path / "here")])
    runpy.run_path(str(EXAMPLE), run_name="__main__")

    told = capsys.readouterr().out
    assert "a fact must be stated by about" in told and "ε = 10 spent" in told
    assert asked == ["toy", "toy"]
    with Ledger.open(tmp_path / "here" / "clinic.ledger") as ledger:
        assert [entry.kind for entry in ledger.history()] == ["open", "reserve", "complete"]
        report = verify(tmp_path / "here" / "notes.release", ledger=ledger)
    assert report.release.certificate.plan.unit == "patient_id"
    assert report.release.statistics.topics


def test_it_is_short_and_uses_the_public_surface_alone() -> None:
    code = EXAMPLE.read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 30
    assert set(re.findall(r"stillroom\.(\w+)", code)) - {"testing"} <= set(stillroom.__all__)
