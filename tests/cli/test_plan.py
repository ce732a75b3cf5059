"""stillroom plan says what an ε buys, for people and for programs, and opens no file of the collection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import stillroom.cli.app as app
from stillroom.distil.plan import plan
from stillroom.distil.run import rehearse
from stillroom.release.folder import Release
from stillroom.testing.toylm import ToyLM

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        app.main(["plan", *arguments])
    assert isinstance(end.value.code, int)
    return end.value.code


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(*arguments) == 0
    return " ".join(capsys.readouterr().out.split())


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_people_read_the_steps_their_costs_and_how_many_must_state_a_fact(capsys: pytest.CaptureFixture[str]) -> None:
    made = plan(form="clinic")
    shown = said(capsys, "--form", "clinic")
    assert "ε = 10, δ = 1e-06, neighbouring: add or remove all documents of one unit" in shown
    for step, rho in made.split.items():
        assert step in shown and f"{rho:.4f}" in shown
    assert f"{made.rho:.4f}" in shown
    assert f"a fact must be stated by about {made.least_units} units" in shown
    assert "Diagnosis (5); Treatment (6); Symptoms (12)" in shown
    assert "warning" not in shown


def test_programs_read_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    made = plan(form="clinic", epsilon=5.0, unit="patient_id", documents=300, words=60)
    found = as_json(capsys, "--form", "clinic", "--epsilon", "5", "--unit", "patient_id", "--documents", "300",
                    "--words", "60")  # fmt: skip
    assert found["plan"] == made.record.model_dump(mode="json")
    assert (found["rho"], found["delta_ps"], found["least_units"]) == (made.rho, made.delta_ps, made.least_units)
    assert found["split"] == dict(made.split) and found["seconds"] == made.seconds and found["warnings"] == []
    assert [each["condition"] for each in found["support"]] == [each.condition for each in made.support]


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("--epsilon", "20"), "above 10"),
        (("--delta", "1e-3", "--documents", "5000"), "δ = 0.001 is above 1/5000"),
        (("--words", "900"), "900 words are cut"),
    ],
)
def test_what_to_beware_of_is_said_to_both(
    arguments: Sequence[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = said(capsys, "--form", "clinic", *arguments)
    assert "warning:" in shown and sentence in shown
    (warning,) = as_json(capsys, "--form", "clinic", *arguments)["warnings"]
    assert sentence in warning


def test_free_text_is_said_to_need_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert "a public form (--form) needs far less support" in said(capsys)
    free, form = (as_json(capsys, *given)["support"] for given in ((), ("--form", "clinic")))
    assert free[0]["units"] > form[0]["units"]  # the text's own condition comes first


def test_time_is_told_only_for_public_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert "two cores" not in said(capsys, "--form", "clinic")
    assert "min with the small model on two cores" in said(capsys, "--form", "clinic", "--documents", "1000")


def test_parts_are_switched_off_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    off = as_json(capsys, "--form", "clinic", "--without", "cokeywords, sizes", "--topics-per-unit", "3")["plan"]
    assert off["cokeywords"] is None and off["topics"]["size_sigma"] is None and off["topics"]["per_unit"] == 3
    assert as_json(capsys, "--form", "Cause: 4, Cure: 6", "--self-filter", "task")["plan"]["selffilter"] == "task"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--epsilon", "0"), "ε"),
        (("--epsilon", "-2"), "ε"),
        (("--epsilon", "nan"), "ε"),
        (("--delta", "1.5"), "δ"),
        (("--epsilon", "0.0001"), "plan a larger ε"),
        (("--preset", "best"), "There is no preset 'best': choose one of default"),
        (("--form", "nothing"), "nothing"),
        (("--without", "noise"), "There is no part 'noise'"),
        (("--documents", "0"), "documents is 0"),
        (("--topics-per-unit", "0"), "topics-per-unit"),
        (("--self-filter", "maybe"), "There is no self-filter 'maybe'"),
        (("--rehearse", "x.jsonl"), "--out is missing"),
    ],
)
def test_a_wrong_option_ends_with_one_sentence_and_code_2(
    arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_it_opens_no_file_of_the_collection(tmp_path: Path) -> None:
    """Not even in a folder that is full of them: every file that is opened there would be told."""
    for name in ("notes.jsonl", "collection.csv", "clinic.ledger"):
        (tmp_path / name).write_text("{}")
    look = (
        "import os, sys\n"
        "here, opened = os.path.realpath(os.getcwd()), []\n"
        "def hook(event, arguments):\n"
        "    if event in ('open', 'os.listdir', 'os.scandir', 'sqlite3.connect') and isinstance(arguments[0], str):\n"
        "        if os.path.realpath(arguments[0]).startswith(here):\n"
        "            opened.append(arguments[0])\n"
        "from stillroom.cli.app import main\n"
        "sys.addaudithook(hook)\n"
        "try:\n"
        "    main(['plan', '--form', 'clinic', '--documents', '300', '--unit', 'patient_id', '--json'])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "sys.exit(f'opened {opened}' if opened else 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    end = subprocess.run(
        [sys.executable, "-P", "-c", look], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (end.returncode, end.stderr) == (0, "")


def test_a_rehearsal_is_written_without_a_ledger_and_says_that_it_guarantees_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rehearse.__doc__ and "not for private data" in rehearse.__doc__
    monkeypatch.setattr("stillroom.distil.run.load_lm", lambda name: ToyLM(name=name))
    notes, out = tmp_path / "notes.jsonl", tmp_path / "rehearsal"
    notes.write_text("".join(json.dumps({"story": f"Zonkitis with Blergon {i}"}) + "\n" for i in range(12)))
    assert run("--rehearse", str(notes), "--text-field", "story", "--out", str(out), "--form", "clinic",
               "--epsilon", "2000", "--lm", "toy") == 0  # fmt: skip
    assert "no guarantee" in " ".join(capsys.readouterr().out.split())
    release = Release.open(out)
    assert (release.guarantee.value, release.certificate.rehearsal, release.certificate.ledger) == ("none", True, {})
    assert {path.name for path in tmp_path.iterdir()} == {"notes.jsonl", "rehearsal"}
