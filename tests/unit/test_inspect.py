"""inspect shows what stands in a release, in an order that its reader can follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stillroom.release.inspect import inspect, printable
from tests.releases import FACTS, made, statistics


def test_the_bill_adds_up_to_the_certificate(tmp_path: Path) -> None:
    release = made(tmp_path / "a")
    view = inspect(release)
    assert [row.event for row in view.spent] == [
        "keywords",
        "topic sizes",
        "co-keywords",
        "topic mean",
        "similarity cut",
        "text",
    ]
    assert sum(row.rho for row in view.spent) == pytest.approx(release.certificate.rho)
    assert sum(row.delta_ps for row in view.spent) == pytest.approx(release.certificate.delta_ps)
    assert sum(row.share for row in view.spent) == pytest.approx(1)


def test_samples_are_first_parts_of_different_topics(tmp_path: Path) -> None:
    release = made(tmp_path / "a")
    assert [text.id for text in inspect(release, 3).samples] == [f"{topic}/1" for topic in FACTS]
    assert [text.id for text in inspect(release, 99).samples][-1] == "zonkitis/2"
    assert inspect(release, 0).samples == ()


def test_topics_words_and_what_was_left_out_are_all_there(tmp_path: Path) -> None:
    view = inspect(made(tmp_path / "a"))
    assert (view.topics, view.words, view.left_out) == (
        statistics().topics,
        statistics().words,
        statistics().left_out,
    )
    assert (view.texts, view.dropped, view.guarantee) == (4, 0, "dp")


def test_the_view_is_plain_json(tmp_path: Path) -> None:
    shown = json.loads(json.dumps(inspect(made(tmp_path / "a")).as_json()))
    assert shown["topics"][0]["together"][1]["word"] == "blergonolaser"
    assert shown["left_out"] == [{"word": "fever", "reason": "noisy size below 15"}]
    assert shown["spent"][-1]["times"] == 32


def test_what_commands_a_terminal_is_taken_out() -> None:
    assert printable("a\x1b[31mb\nc\x07\u202ed é") == "a [31mb\nc  d é"
