"""`stillroom ledger` shows the book to the operator, and to others only what may be published."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stillroom.cli.ledger import app
from stillroom.errors import LedgerExists, LedgerMissing, LedgerTampered, StillroomError
from stillroom.privacy.events import RELATION, Gaussian
from stillroom.privacy.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.ledger"
    with Ledger.open(path, epsilon=10, delta=1e-6, population="clinic") as ledger:
        ledger.reserve("run1", [Gaussian("keywords", 1.0, 1.0)], purpose="first release")
        ledger.not_private("baseline", 3)
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def fails(*arguments: object) -> StillroomError:
    error = call(*arguments).exception
    assert isinstance(error, StillroomError), error
    return error


def test_open_makes_a_ledger_with_the_default_delta(tmp_path: Path) -> None:
    result = call("open", tmp_path / "new.ledger", "--epsilon", 3, "--population", "ward", "--json")
    assert result.exit_code == 0
    state = json.loads(result.stdout)
    assert (state["population"], state["epsilon"], state["delta"], state["spent"]) == ("ward", 3.0, 1e-6, 0.0)
    assert call("open", tmp_path / "new.ledger", "--epsilon", 3).exit_code == 0
    assert isinstance(fails("open", tmp_path / "new.ledger", "--epsilon", 4), LedgerExists)


def test_open_warns_above_epsilon_10(tmp_path: Path) -> None:
    assert "above 10" in call("open", tmp_path / "a", "--epsilon", 12).stderr
    assert "above 10" not in call("open", tmp_path / "b", "--epsilon", 10).stderr


def test_show_gives_epsilon_with_its_relation_and_the_column_of_what_is_not_private(path: Path) -> None:
    shown = call("show", path).stdout
    for part in ("of 10 at δ = 1e-06", RELATION, "3 events that no ε covers", "clinic"):
        assert part in shown
    state = json.loads(call("show", path, "--json").stdout)
    assert state["rho"] == pytest.approx(0.5) and state["not_private"] == 3 and state["relation"] == RELATION
    assert 0 < state["spent"] < 10


def test_history_lists_every_entry(path: Path) -> None:
    shown = call("history", path).stdout
    for part in ("open", "reserve", "run1", "first release", "not-private", "0.5"):
        assert part in shown
    assert [entry["kind"] for entry in json.loads(call("history", path, "--json").stdout)] == [
        "open",
        "reserve",
        "not-private",
    ]


def test_check_prints_the_head(path: Path) -> None:
    with Ledger.open(path) as ledger:
        head = ledger.check()
    assert head in call("check", path).stdout
    assert json.loads(call("check", path, "--json").stdout) == {"entries": 3, "head": head}


def test_check_finds_a_change(path: Path) -> None:
    import sqlite3

    raw = sqlite3.connect(path)
    raw.execute("DROP TRIGGER entries_no_delete")
    raw.execute("DELETE FROM entries WHERE number = 2")
    raw.commit()
    raw.close()
    assert isinstance(fails("check", path), LedgerTampered)


def test_export_may_be_published(path: Path) -> None:
    text = call("export", path).stdout
    export = json.loads(text)
    assert export["spent"]["rho"] == pytest.approx(0.5) and export["not_private"] == 3
    assert "first release" not in text and str(path) not in text and '"time"' not in text


@pytest.mark.parametrize("verb", ["show", "history", "check", "export"])
def test_a_missing_ledger_is_told_with_what_to_type(verb: str, tmp_path: Path) -> None:
    error = fails(verb, tmp_path / "none.ledger")
    assert isinstance(error, LedgerMissing) and "stillroom ledger open" in str(error)
    assert not (tmp_path / "none.ledger").exists()
