"""verify refuses every change of a release that matters, and says what it cannot know."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import stillroom.release.verify as module
from stillroom.errors import CertificateMismatch, FileMissing, StillroomError
from stillroom.privacy.zcdp import epsilon_of
from stillroom.release.folder import canonical, certify, seal, write
from stillroom.release.schema import (
    CERTIFICATE,
    TEXTS,
    TOPICS,
    Certificate,
    KeywordPlan,
    Statistics,
    TextPlan,
    Topic,
    TopicPlan,
    Word,
)
from stillroom.release.verify import verify
from tests.releases import made, plan, statistics, texts


@pytest.fixture(autouse=True)
def _same_numbers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # The same ε is asked for in hundreds of mutations; the function stays the shipped one.
    monkeypatch.setattr(module, "epsilon_of", _remembered)


_remembered = functools.cache(epsilon_of)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return made(tmp_path / "notes.release").path


def test_a_release_as_written_is_in_order_and_what_cannot_be_proved_is_said(release: Path) -> None:
    report = verify(release)
    assert report.certificate.run == "run-5f2c"
    assert any("mechanisms were run" in line for line in report.cannot_prove)
    assert any("--ledger" in line for line in report.cannot_prove)


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        verify(tmp_path / "no")


# -- mutations ------------------------------------------------------------------------------------------------
Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield the place of every leaf, and of every list and object."""
    if at:
        yield at
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from places(below, (*at, key))


CHOICES = {
    "stillroom": "paper",
    "fast": "lm",
    "optimal": "paper",
    "one-sided": "centred",
    "public": "all",
    "off": "task",
    "dp": "none",
}


def altered(value: Any) -> list[Any]:
    """Return other values that could stand in a value's place."""
    match value:
        case bool():
            return [not value, int(value), str(value)]
        case int():
            return [value + 1, value - 1, -value - 1, float(value), str(value), True, None]
        case float():
            return [value * (1 + 1e-6) + 1e-12, value / 2 - 1, -value - 1, str(value), None, 0.0 if value else 1.0]
        case str():
            return [value + "x", value[:-1] or "y", value.swapcase(), CHOICES.get(value, "z"), 7, None]
        case None:
            return [1, "x"]
        case list():
            longer = [*value, copy.deepcopy(value[-1])] if value else ["x"]
            return [longer, *([value[1:], value[::-1]] if value != value[::-1] else [value[1:]] if value else []), None]
        case dict():
            first = next(iter(value), None)
            return [{**value, "more": 1}, *([{k: v for k, v in value.items() if k != first}] if value else []), None]
    raise AssertionError(value)


def changed(document: Any, place: Place, value: Any) -> Any:
    document = copy.deepcopy(document)
    target = document
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return document


def load(release: Path, name: str) -> Any:
    content = (release / name).read_text()
    return [json.loads(line) for line in content.splitlines()] if name == TEXTS else json.loads(content)


def dump(name: str, document: Any) -> bytes:
    return b"".join(map(canonical, document)) if name == TEXTS else canonical(document, 1)


def mutations(document: Any) -> Iterator[tuple[Place, Any]]:
    for place in places(document):
        value = functools.reduce(lambda at, key: at[key], place, document)
        for other in altered(value):
            if json.dumps(other) != json.dumps(value):
                yield place, changed(document, place, other)


def refused(release: Path) -> bool:
    try:
        verify(release)
    except CertificateMismatch as wrong:
        assert wrong.exit_code == 4
        return True
    return False


@pytest.mark.parametrize(("name", "least"), [(CERTIFICATE, 600), (TOPICS, 150), (TEXTS, 100)])
def test_every_change_of_every_value_is_refused(release: Path, name: str, least: int) -> None:
    tried, missed = 0, set()
    for place, document in mutations(load(release, name)):
        (release / name).write_bytes(dump(name, document))
        tried += 1
        if not refused(release):
            missed.add(place)
    assert not missed
    assert tried >= least


@pytest.mark.parametrize("name", [CERTIFICATE, TOPICS, TEXTS])
def test_every_kind_of_byte_changed_added_or_lost_is_refused(release: Path, name: str) -> None:
    content = (release / name).read_bytes()
    kinds: dict[str, int] = {}
    for at, byte in enumerate(content):
        kind = "letter" if chr(byte).isalpha() and byte < 128 else "digit" if chr(byte).isdigit() else str(byte)
        kinds.setdefault(kind, at)
    assert len(kinds) >= 8
    for at in (*kinds.values(), 0, len(content) // 2, len(content) - 1):
        for other in (
            content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :],
            content[:at] + bytes([content[at] ^ 32]) + content[at + 1 :],
            content[:at] + b"\xff" + content[at + 1 :],
            content[:at] + content[at + 1 :],
            content[:at] + b" " + content[at:],
            content[:at] + b"\n" + content[at:],
            content[:at],
        ):
            if other != content:
                (release / name).write_bytes(other)
                assert refused(release), (name, at, other[max(0, at - 5) : at + 5])
    for other in (content + b"{}\n", content.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + content, content + content):
        (release / name).write_bytes(other)
        assert refused(release)


def test_a_name_given_twice_is_refused(release: Path) -> None:
    content = (release / CERTIFICATE).read_text()
    (release / CERTIFICATE).write_text(content.replace('{\n "', '{\n "rho": 0.001,\n "', 1))
    assert refused(release)


def test_a_missing_an_extra_and_a_linked_file_are_refused(release: Path, tmp_path: Path) -> None:
    (release / ".notes").write_text("")
    with pytest.raises(CertificateMismatch, match=r"'\.notes' does not belong"):
        verify(release)
    (release / ".notes").unlink()
    for name in (CERTIFICATE, TOPICS, TEXTS):
        moved = (release / name).rename(tmp_path / name)
        assert refused(release)
        (release / name).symlink_to(moved)
        assert refused(release)
        (release / name).unlink()
        moved.rename(release / name)
    verify(release)


# -- a forger who recomputes the hashes ------------------------------------------------------------------------
FREE: dict[str, set[str]] = {CERTIFICATE: set(), TOPICS: set(), TEXTS: set()}


def forged(release: Path, name: str, document: Any) -> bool:
    """Write the changed document with hashes that fit; False if no schema takes it."""
    contents = {each: (release / each).read_bytes() for each in (TEXTS, TOPICS, CERTIFICATE)}
    contents[name] = dump(name, document)
    try:
        certificate = Certificate.model_validate_json(contents[CERTIFICATE], strict=True)
    except ValueError:
        return False
    before = Certificate.model_validate_json((release / CERTIFICATE).read_bytes())
    if name == CERTIFICATE and certificate.model_copy(update={"files": before.files}) == before:
        return False  # the same in another spelling, or other hashes alone, which are made again
    _, contents[CERTIFICATE] = seal(certificate, contents)
    for each, content in contents.items():
        (release / each).write_bytes(content)
    return True


@pytest.mark.parametrize("name", [CERTIFICATE, TOPICS, TEXTS])
def test_a_forger_who_recomputes_the_hashes(release: Path, name: str) -> None:
    kept = {each: (release / each).read_bytes() for each in (TEXTS, TOPICS, CERTIFICATE)}
    missed = set()
    for place, document in mutations(load(release, name)):
        for each, content in kept.items():
            (release / each).write_bytes(content)
        if forged(release, name, document) and not refused(release):
            missed.add(".".join(key for key in place if isinstance(key, str)))
    assert sorted(missed ^ FREE[name]) == [], sorted(missed)
