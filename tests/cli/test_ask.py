"""stillroom ask prints an answer, what it stands on, and that it cost nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stillroom.cli.ask as module
from tests.cli.test_app import run
from tests.releases import made
from tests.unit.test_index import Themes
from tests.unit.test_rag import Writer


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "load_lm", lambda name: Writer(f"Giggle Drops, says {name}."))
    monkeypatch.setattr(module, "load_embedder", lambda name: Themes())
    return str(made(tmp_path / "a").path)


def test_the_answer_comes_first_then_its_sources_and_its_price(
    release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ask", release, "Which treatment helps Snurflepox?") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "Giggle Drops, says smollm2."
    assert lines[1].startswith("  [1] snurflepox/1: Diagnosis: Snurflepox; Treatment: Giggle Drops")
    assert lines[-1] == "guarantee: dp; spent: nothing"
    assert [json.loads(line)["stage"] for line in err.splitlines()] == ["loading the models", "answering"]


def test_json_holds_answer_citations_and_price(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ask", release, "Snurflepox?", "--json", "--lm", "other") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["answer"], shown["citations"], shown["spent"]) == (
        "Giggle Drops, says other.",
        ["snurflepox/1"],
        0.0,
    )
    assert shown["passages"][0]["number"] == 1


def test_nothing_found_is_an_answer_too(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ask", release, "What is the capital of France?") == 0
    assert capsys.readouterr().out.startswith("The release has nothing on this.\n")


def test_wrong_use_exits_2(release: str, tmp_path: Path) -> None:
    assert run("ask", release, " ") == 2
    assert run("ask", release, "x", "--top-k", "0") == 2
    assert run("ask", str(tmp_path / "no"), "x") == 2
