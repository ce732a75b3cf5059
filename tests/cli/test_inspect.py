"""stillroom inspect shows topics, samples, what was left out, and the bill, and lets no text command the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_app import run
from tests.releases import made, texts


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_tables_hold_topics_sizes_co_keywords_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = made(tmp_path / "a")
    assert run("inspect", str(release.path)) == 0
    out = capsys.readouterr().out
    for shown in ("zonkitis", "80", "blergonolaser", "noisy size below 15", "co-keywords", release.certificate.meaning):
        assert shown in " ".join(out.split())
    assert "Treatment: Giggle Drops" in out


def test_the_number_of_samples_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a")
    assert run("inspect", str(tmp_path / "a"), "--samples", "0") == 0
    assert "Giggle" not in capsys.readouterr().out
    assert run("inspect", str(tmp_path / "a"), "--samples", "-1") == 2


def test_json_is_the_whole_view(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a")
    assert run("inspect", str(tmp_path / "a"), "--json", "--samples", "1") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [text["id"] for text in shown["samples"]] == ["zonkitis/1"]
    assert shown["relation"] == "add or remove all documents of one unit"


def test_a_text_is_neither_markup_nor_a_command_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wild = [each.model_copy(update={"text": "[bold]loud[/bold] [/] \x1b]0;title\x07 \x1b[2J end"}) for each in texts()]
    made(tmp_path / "a", texts=wild)
    assert run("inspect", str(tmp_path / "a")) == 0
    out = capsys.readouterr().out
    assert "[bold]loud[/bold] [/]" in out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_a_damaged_release_exits_4(tmp_path: Path) -> None:
    (made(tmp_path / "a").path / "topics.json").unlink()
    assert run("inspect", str(tmp_path / "a")) == 4
