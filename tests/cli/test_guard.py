"""stillroom guard: texts made safe from the command line, policies shown and checked, keys made and changed."""

from __future__ import annotations

import io
import json
import stat
import sys
from pathlib import Path

import pytest

import stillroom.cli.ask as ask_module
import stillroom.cli.guard_paper as paper_module
import stillroom.guard.strict as strict
from stillroom.embed.hashing import HashEmbedder
from stillroom.guard.policy import BUILT_IN
from tests.cli.test_app import run
from tests.detection import presidio
from tests.guarding import real
from tests.unit.test_index import Themes
from tests.unit.test_rag import Writer

pytest.importorskip("cryptography")
TEXT = "Mr. Okonkwo came on 5 March 2021 with a fever. Call 555-867-5309, or john dot doe at example dot org."


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a key and a ledger, and models that are quick to load."""
    pytest.importorskip("presidio_analyzer")
    presidio()
    monkeypatch.setattr(strict, "build", real)
    monkeypatch.setattr(strict, "load_embedder", lambda name: HashEmbedder())
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STILLROOM_GUARD_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.chdir(tmp_path)
    assert run("guard", "key", "new", "key") == 0
    assert run("ledger", "open", "clinic.ledger", "--epsilon", "10", "--population", "clinic") == 0
    return tmp_path


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_the_published_mode_says_what_it_guarantees(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper_module, "load_embedder", lambda name: HashEmbedder())
    (here / "text.txt").write_text(TEXT + " The ward was quiet.")
    capsys.readouterr()
    assert run("guard", "rewrite", "text.txt", "--mode", "paper", "--query", "Who is Mr. Okonkwo?") == 0
    out, err = capsys.readouterr()
    assert "The ward was quiet." in out
    assert "Guarantee: none." in err and "of 3 sentences are given out verbatim" in err
    assert run("guard", "rewrite", "text.txt", "--mode", "paper", "--json") == 0
    report = json.loads(capsys.readouterr().out)["report"]
    assert report["guarantee"] == "none" and sum(report["tiers"].values()) == 3 and report["entities"]["person"] == 1
    assert run("guard", "score", "text.txt", "--mode", "paper", "--query", "Who is Mr. Okonkwo?", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["guarantee"] == "none"
    scored = shown["sentences"]
    assert [each["tier"] for each in scored] != ["low"] * 3 and scored[-1]["risk"] < scored[0]["risk"]
    assert run("guard", "score", "text.txt", "--mode", "paper") == 0
    assert "before noise" in capsys.readouterr().out


@pytest.mark.parametrize(
    "option",
    [
        ["--ledger", "clinic.ledger"],
        ["--unit", "Anna Nkemelu"],
        ["--role", "outside"],
        ["--policy", "hr"],
        ["--caller", "me"],
    ],
)
def test_the_published_mode_keeps_no_books(
    here: Path, option: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "text.txt").write_text(TEXT)
    assert run("guard", "rewrite", "text.txt", "--mode", "paper", *option) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{option[0]} is given, but it must be left out with --mode paper" in said and "Nkemelu" not in said


def test_a_text_is_rewritten_and_the_receipt_goes_elsewhere(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    piped(monkeypatch, TEXT.encode())
    assert run("guard", "rewrite", "--query", "Who?", "--ledger", "clinic.ledger", "--unit", "P7") == 0
    out, err = capsys.readouterr()
    for private in ("Okonkwo", "March", "867", "doe"):
        assert private not in out + err
    assert "fever" in out and "[PHONE_1]" in out
    assert "ε newly spent" in err and "not covered: " in err
    (here / "text.txt").write_text(TEXT)
    assert run("guard", "rewrite", "text.txt", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["receipt"]["ledger"] is False and shown["receipt"]["guarantee"] == "ldp-per-value"
    assert {tier for tiers in shown["receipt"]["spans"].values() for tier in tiers} == {"placeholder"}


def test_the_risk_is_shown_without_a_value(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    piped(monkeypatch, TEXT.encode())
    assert run("guard", "score", "--query", "Who had a fever?", "--json") == 0
    scored = json.loads(capsys.readouterr().out)
    assert len(scored) == 2 and all(0 <= each["risk"] <= 1 for each in scored)
    assert "PHONE_1" in scored[1]["template"] and "Okonkwo" not in json.dumps(scored)
    piped(monkeypatch, TEXT.encode())
    assert run("guard", "score") == 0
    assert "Okonkwo" not in capsys.readouterr().out


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_policies_are_shown_and_sound(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("guard", "policy", "show", name) == 0
    assert "per subject" in capsys.readouterr().out
    assert run("guard", "policy", "show", name, "--json") == 0
    assert json.loads(capsys.readouterr().out)["name"] == name
    assert run("guard", "policy", "check", name) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("[categories.shoe_size]\ntier = 'placeholder'", "categories.shoe_size"),
        ("[categories.person]\nweight = 1.5", "categories.person.weight"),
        ("[categories.person]\nweight = nan", "categories.person.weight"),
        ("[categories.drug]\ntier = 'surrogate'\nmechanism = 'surrogate'", "categories.drug"),
    ],
)
def test_a_policy_that_is_wrong_is_told_by_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, field: str
) -> None:
    (tmp_path / "mine.toml").write_text(f"name = 'mine'\n{body}\n")
    assert run("guard", "policy", "check", str(tmp_path / "mine.toml")) == 2
    assert field in capsys.readouterr().err


def test_a_mechanism_without_a_pool_is_found_by_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("name = 'mine'\n[categories.city]\ntier='noisy'\nmechanism='tree'\nepsilon=1\ndictionary='moons'\n")
    assert run("guard", "policy", "check", str(path)) == 2
    assert "moons" in capsys.readouterr().err


def test_documents_are_ingested_asked_and_accounted_for(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"note": TEXT.replace("Okonkwo", name), "patient": name} for name in ("Okonkwo", "Szymborska")]
    (here / "notes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert run("guard", "ingest", "notes.jsonl", "--vault", "clinic.vault", "--unit", "patient") == 0
    monkeypatch.setattr(ask_module, "load_lm", lambda name: Writer(lambda prompt: prompt.body))
    monkeypatch.setattr(ask_module, "load_embedder", lambda name: Themes())
    capsys.readouterr()
    for source in ("clinic.vault", "notes.jsonl"):
        options = ["--unit", "patient"] if source.startswith("notes") else []
        assert run("ask", source, "Who had a fever?", "--source", "raw", "--ledger", "clinic.ledger", *options) == 0
        out, err = capsys.readouterr()
        assert "fever" in out and "guarantee: " in out and "not covered" in out
        for private in ("Okonkwo", "Szymborska", "867", "2021"):
            assert private not in out + err
    assert run("ask", "clinic.vault", "Fever?", "--source", "raw", "--ledger", "clinic.ledger", "--json") == 0
    assert "receipt" in json.loads(capsys.readouterr().out)
    assert run("ledger", "show", "clinic.ledger") == 0
    assert "caller local" in capsys.readouterr().out
    assert run("ledger", "show", "clinic.ledger", "--json") == 0
    assert json.loads(capsys.readouterr().out)["guard"]["limit"] == 5.0


def test_a_second_ledger_is_no_way_to_a_fresh_draw(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "text.txt").write_text(TEXT)
    assert run("ledger", "open", "second.ledger", "--epsilon", "10", "--population", "clinic again") == 0
    rewrite = ("guard", "rewrite", "text.txt", "--query", "Who?", "--unit", "P7", "--ledger")
    assert run(*rewrite, "clinic.ledger") == 0
    capsys.readouterr()
    assert run(*rewrite, "second.ledger") == 3
    out, err = capsys.readouterr()
    assert (
        not out and "of population 'clinic'" in err and "use that ledger" in err and "P7" not in err and "p7" not in err
    )


def test_a_vault_without_source_raw_is_told_what_to_add(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "notes.jsonl").write_text(json.dumps({"note": TEXT, "patient": "7"}))
    assert run("guard", "ingest", "notes.jsonl", "--vault", "clinic.vault") == 0
    for path in ("clinic.vault", "notes.jsonl"):
        capsys.readouterr()
        assert run("ask", path, "Fever?") == 2
        assert "--source raw" in capsys.readouterr().err


def test_whoever_gets_values_back_is_told_that_nothing_is_guaranteed(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "notes.jsonl").write_text(json.dumps({"note": "Mr. Okonkwo came on 5 March 2021 to us.", "patient": "7"}))
    assert run("guard", "ingest", "notes.jsonl", "--vault", "clinic.vault", "--unit", "patient") == 0
    monkeypatch.setattr(ask_module, "load_lm", lambda name: Writer("It was [PERSON_1]."))
    monkeypatch.setattr(ask_module, "load_embedder", lambda name: Themes())
    ask = ("ask", "clinic.vault", "Who came to us?", "--source", "raw", "--ledger", "clinic.ledger")
    for role, given in (("clinician", True), ("outside", False)):
        capsys.readouterr()
        assert run(*ask, "--role", role) == 0
        out = capsys.readouterr().out
        assert ("Okonkwo" in out) is ("guarantee: none" in out) is ("values given back: person" in out) is given
    assert run(*ask, "--role", "clinician", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["guarantee"] == shown["receipt"]["guarantee"] == "none"
    assert shown["receipt"]["given_back"] == ["person"]


def test_keys_are_made_once_and_changed_whole(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stat.S_IMODE((here / "key").stat().st_mode) == 0o600
    assert run("guard", "key", "new", "key") == 2
    (here / "notes.jsonl").write_text(json.dumps({"note": TEXT, "patient": "7"}))
    assert run("guard", "ingest", "notes.jsonl", "--vault", "clinic.vault") == 0
    (here / "text.txt").write_text(TEXT)
    assert run("guard", "rewrite", "text.txt", "--query", "Who?", "--ledger", "clinic.ledger") == 0
    assert run("guard", "key", "new", "next") == 0
    change = (
        "guard",
        "key",
        "rotate",
        "--old",
        "key",
        "--new",
        "next",
        "--ledger",
        "clinic.ledger",
        "--vault",
        "clinic.vault",
    )
    for _ in range(2):
        assert run(*change) == 0
    assert run("ask", "clinic.vault", "Fever?", "--source", "raw") == 1
    assert "was retired" in capsys.readouterr().err
    assert run("guard", "rewrite", "text.txt", "--ledger", "clinic.ledger", "--key", "next") == 0


def test_wrong_use_exits_2(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("guard", "rewrite", "no.txt") == 2
    assert run("guard", "policy", "show", "hospital") == 2
    assert run("guard", "key", "rotate", "--old", "key", "--new", "key") == 2
    assert run("ask", "no.vault", "Fever?", "--source", "raw") == 2
    (here / "text.txt").write_text(TEXT)
    assert run("guard", "rewrite", "text.txt", "--role", "stranger") == 2
    monkeypatch.delenv("STILLROOM_GUARD_KEY_FILE")
    assert run("guard", "rewrite", "text.txt", "--ledger", "clinic.ledger") == 2
