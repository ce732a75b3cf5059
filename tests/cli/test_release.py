"""stillroom release: exit codes that scripts can trust, one sentence an error, and nothing private on either stream."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import stillroom.cli.app as app
from stillroom.distil import run as runs
from stillroom.lm.base import LanguageModel, Prompt, Scores
from stillroom.privacy.ledger import Ledger
from stillroom.release.verify import verify
from stillroom.testing.toylm import ToyDocument, ToyLM

SECRET = "Quaxbertine"
NOTES = [f"Zonkitis, treated with Blergon; seen by {SECRET}{chr(97 + i)}." for i in range(14)]


class Desk:
    """A folder with a collection and a ledger, and the model that the command gets."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.notes = folder, folder / "notes.jsonl"
        self.ledger, self.out = folder / "clinic.ledger", folder / "notes.release"
        self.lm: LanguageModel = ToyLM(answer=lambda prompt: "Disease\nCure\n")
        rows = [json.dumps({"id": str(i), "text": text, "patient": f"p{i}"}) for i, text in enumerate(NOTES)]
        self.notes.write_text("\n".join(rows) + "\n")
        for module in ("stillroom.distil.run", "stillroom.cli.release"):
            monkeypatch.setattr(f"{module}.load_lm", lambda name: self.lm)
        monkeypatch.setenv("STILLROOM_HOME", str(folder / "home"))
        monkeypatch.setenv("COLUMNS", "200")
        Ledger.open(self.ledger, epsilon=3000, delta=1e-6).close()

    def run(self, *arguments: str, source: Path | None = None, form: str | None = "clinic") -> int:
        given = ["release", str(source or self.notes), "--ledger", str(self.ledger), "--out", str(self.out)]
        given += ["--epsilon", "2000"] if "--epsilon" not in arguments else []
        given += ["--form", form] if form else []
        with pytest.raises(SystemExit) as end:
            app.main([*given, *arguments])
        assert isinstance(end.value.code, int)
        return end.value.code

    def kinds(self) -> list[str]:
        with Ledger.open(self.ledger) as ledger:
            return [entry.kind for entry in ledger.history()]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def test_a_release_is_written_and_what_it_means_and_cost_is_said(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.run("--unit", "patient", "--task", "Find cures") == 0
    shown = capsys.readouterr()
    told = " ".join(shown.out.split())
    written = verify(desk.out).release
    assert written.certificate.plan.unit == "patient" and written.certificate.plan.task == "Find cures"
    assert f"{len(written.texts)} texts in" in told and "Whatever anyone concludes" in told
    assert "ε = 2e+03 of 3000 spent at δ = 1e-06" in told and "warning: ε = 2000 is above 10" in told
    stages = [json.loads(line)["stage"] for line in shown.err.splitlines()]
    assert {"keywords", "topics", "texts"} <= set(stages)
    assert desk.kinds() == ["open", "reserve", "complete"]
    for name in [SECRET, *NOTES]:
        assert name not in shown.out + shown.err


def test_the_same_command_again_is_refused_with_code_2(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.run() == 0
    assert desk.run() == 2
    assert "is already there and is never overwritten: choose another path." in capsys.readouterr().err
    assert desk.kinds() == ["open", "reserve", "complete"]


def test_a_second_release_beyond_the_ledger_is_refused_with_code_3(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.run() == 0
    assert desk.run("--out", str(desk.folder / "second")) == 3
    told = capsys.readouterr().err
    assert "The ledger refuses: asked for ρ" in told and "there are no refunds" in told
    assert desk.kinds() == ["open", "reserve", "complete"] and not (desk.folder / "second.run").exists()


def test_a_form_may_be_proposed_from_the_task_alone(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.run("--propose-form", "--task", "Find cures", form=None) == 0
    told = capsys.readouterr().out
    assert "nothing spent" in told
    assert desk.kinds() == ["open"] and not desk.out.exists()
    (proposed,) = re.findall("--form '(.*)'", told)
    assert desk.run("--task", "Find cures", form=proposed) == 0
    form = verify(desk.out).release.certificate.plan.text.form
    assert form is not None and [slot.label for slot in form.slots] == ["Disease", "Cure"]


def test_a_model_that_proposes_nothing_is_said_to(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.lm = ToyLM(answer=lambda prompt: "???")
    assert desk.run("--propose-form", "--task", "Find cures", form=None) == 0
    assert "proposed nothing that could be a form" in capsys.readouterr().out
    assert desk.kinds() == ["open"]


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (("--unit", "nobody"), 2, "the unit field 'nobody' is missing"),
        (("--text-field", "note"), 2, "no field 'note' (fields there: id, patient, text)"),
        (("--epsilon", "0"), 2, "ε"),
        (("--epsilon", "0.0001"), 2, "plan a larger ε"),
        (("--epsilon", "3500"), 3, "The ledger refuses"),
        (("--preset", "best"), 2, "There is no preset 'best'"),
        (("--without", "noise"), 2, "There is no part 'noise'"),
        (("--form", "nothing"), 2, "nothing"),
        (("--propose-form",), 2, "--task is empty"),
        (("--ledger", "nowhere.ledger"), 1, "stillroom ledger open nowhere.ledger"),
        (("--out", "none/x.release"), 2, "check the path"),
        (("--topics-per-unit", "0"), 2, "topics-per-unit"),
        (("--no-such-option",), 2, "no-such-option"),
    ],
)
def test_a_wrong_call_ends_in_one_sentence_and_its_code(
    desk: Desk, arguments: Sequence[str], code: int, message: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(desk.folder)
    assert desk.run(*arguments) == code
    told = capsys.readouterr()
    assert message in told.err and "Traceback" not in told.err and told.out == ""
    assert desk.kinds() == ["open"]
    assert {path.name for path in desk.folder.iterdir()} <= {"notes.jsonl", "clinic.ledger", "home"}


@pytest.mark.parametrize(
    "content, message", [("", "holds no documents"), ("{", "line 1"), ("[1]\n", "write one object a line")]
)
def test_a_wrong_file_is_told_by_its_name_and_line(
    desk: Desk, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.notes.write_text(content)
    assert desk.run() == 2
    told = capsys.readouterr().err
    assert message in told and "notes.jsonl" in told
    assert desk.run(source=desk.folder / "nothing.jsonl") == 2
    assert desk.kinds() == ["open"]


def test_without_a_collection_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        app.main(["release"])
    assert end.value.code == 2 and "COLLECTION is missing" in capsys.readouterr().err


class Failing(ToyLM):
    """Fails in the middle of a text, with private text in its error."""

    calls = 0

    def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
        if SECRET in prompt.body and len(said) > 2:
            raise ValueError(f"cannot read {prompt.body}")
        return super().row_scores(prompt, document, said)


def test_an_unexpected_failure_says_nothing_private_and_the_same_command_goes_on(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.lm = Failing()
    assert desk.run() == 1
    told = capsys.readouterr()
    assert "an unexpected ValueError ended the command" in told.err
    assert SECRET not in told.err + told.out and "Zonkitis" not in told.err + told.out
    assert desk.kinds() == ["open", "reserve"] and not desk.out.exists()
    desk.lm = ToyLM()
    assert desk.run() == 0
    assert desk.kinds() == ["open", "reserve", "complete"]
    verify(desk.out)


class Panic(BaseException):
    """What a library in Rust raises: no Exception."""


class Panicking(ToyLM):
    def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
        raise Panic(f"byte index 3 is not a char boundary of {prompt.body}")


def test_a_panic_says_nothing_private_either(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.lm = Panicking()
    assert desk.run() == 1
    told = capsys.readouterr()
    assert "an unexpected Panic ended the command" in told.err
    assert SECRET not in told.err + told.out and "Zonkitis" not in told.err + told.out


def test_giving_up_keeps_the_budget_spent(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.lm = Failing()
    assert desk.run() == 1
    assert desk.run("--abandon") == 0
    assert "given up" in capsys.readouterr().out
    assert desk.kinds() == ["open", "reserve", "abandon"] and not runs.run_folder(desk.out).exists()
    assert desk.run("--abandon") == 2  # nothing left to give up
    desk.lm = ToyLM()
    assert desk.run() == 3


def test_a_changed_plan_does_not_go_on(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.lm = Failing()
    assert desk.run() == 1
    desk.lm = ToyLM()
    assert desk.run("--epsilon", "1999") == 1
    told = capsys.readouterr().err
    assert "was begun with another plan: go on" in told and "--abandon" in told
    assert desk.run() == 0
