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

from stillroom.errors import CertificateMismatch, FileMissing, StillroomError
from stillroom.release.folder import canonical, certify, seal, write
from stillroom.release.schema import (
    CERTIFICATE,
    TEXTS,
    TOPICS,
    Certificate,
)
from stillroom.release.verify import verify
from tests.releases import made, plan, statistics, texts


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


def test_a_name_given_twice_in_a_text_is_refused_whatever_the_hashes_say(release: Path) -> None:
    contents = {name: (release / name).read_bytes() for name in (TEXTS, TOPICS, CERTIFICATE)}
    contents[TEXTS] = contents[TEXTS].replace(b'"part": 1', b'"part": 7, "part": 1', 1)
    certificate = Certificate.model_validate_json(contents[CERTIFICATE])
    _, contents[CERTIFICATE] = seal(certificate, contents)
    for name, content in contents.items():
        (release / name).write_bytes(content)
    with pytest.raises(CertificateMismatch, match="not in the form that stillroom writes"):
        verify(release)


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
FREE = {
    CERTIFICATE: """
        run ledger ledger.population ledger.epsilon ledger.delta ledger.head
        assumptions models models.lm models.embedder public_inputs public_inputs.form software software.stillroom
        plan.method plan.preset plan.task plan.chunk_words plan.selffilter plan.epsilon plan.conversion
        plan.keywords.extractor plan.keywords.word_list plan.keywords.released plan.keywords.least_count
        plan.topics.merge plan.topics.highest_zipf plan.topics.smallest plan.topics.part plan.topics.most
        plan.cut.keep plan.cut.steps plan.cokeywords.published
        plan.text.candidates plan.text.top_k plan.text.floor plan.text.completion plan.text.document_tokens
        plan.text.votes plan.text.form plan.text.form.name plan.text.form.about plan.text.calibration
        plan.text.form.slots.hint plan.text.form.slots.list plan.text.form.slots.names plan.text.abstain plan.text.prose
    """,
    TOPICS: """
        words words.word words.count words.listed left_out left_out.word left_out.reason
        topics topics.words topics.size topics.together topics.together.count
    """,
    TEXTS: "",
}
"""What a forger who recomputes the hashes can change within bounds: words, noise, and parameters from which no cost
follows (bounds stay bounds: more released words than planned are refused). A ledger tells the run and its head."""


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
def test_a_forger_who_recomputes_the_hashes_can_change_nothing_with_a_cost(release: Path, name: str) -> None:
    kept = {each: (release / each).read_bytes() for each in (TEXTS, TOPICS, CERTIFICATE)}
    missed = set()
    for place, document in mutations(load(release, name)):
        for each, content in kept.items():
            (release / each).write_bytes(content)
        if forged(release, name, document) and not refused(release):
            missed.add(".".join(key for key in place if isinstance(key, str)))
    assert sorted(missed ^ set(FREE[name].split())) == []


def rewritten(release: Path, **changes: Any) -> Path:
    """Write a consistent release beside the first, with other certificate fields, and return its path."""
    out = release.with_name(release.name + "-forged")
    certificate = certify(plan(), run="run-5f2c", ledger={"head": "cd" * 32}).model_copy(update=changes)
    return write(out, certificate_without_files=certificate, statistics=statistics(), texts=texts()).path


def test_events_with_more_noise_than_the_plan_has_are_refused(release: Path) -> None:
    louder = plan(keywords=plan().keywords.model_copy(update={"sigma": 9.5, "threshold": 90.0}))
    cheaper = certify(louder, run="r")
    given = {"events": cheaper.events, "rho": cheaper.rho, "epsilon": cheaper.epsilon, "meaning": cheaper.meaning}
    with pytest.raises(CertificateMismatch, match="events are not those of its plan"):
        verify(rewritten(release, **given))


def test_a_plan_that_costs_more_than_its_epsilon_is_refused(release: Path) -> None:
    with pytest.raises(CertificateMismatch, match="more than the 8 it says"):
        verify(rewritten(release, plan=plan(epsilon=8.0)))


def test_the_looser_conversion_of_the_papers_is_held_where_a_plan_names_it(release: Path) -> None:
    paid = certify(plan(), run="r")
    assert paid.epsilon < 8.6  # by the optimal conversion; by the papers' it is above
    verify(rewritten(release, plan=plan(epsilon=8.6)))
    with pytest.raises(CertificateMismatch, match=r"more than the 8\.6 it says"):
        verify(rewritten(release.with_name("second"), plan=plan(epsilon=8.6, conversion="paper")))


def test_a_form_that_takes_more_draws_than_are_paid_is_refused(release: Path) -> None:
    certificate = load(release, CERTIFICATE)
    certificate["plan"]["text"]["draws"] = 15
    (release / CERTIFICATE).write_bytes(dump(CERTIFICATE, certificate))
    with pytest.raises(CertificateMismatch, match="takes 16 draws, but 15 are paid"):
        verify(release)


def test_partition_selection_that_takes_all_of_delta_is_refused(release: Path) -> None:
    keywords = plan().keywords.model_copy(update={"threshold": 20.0})
    with pytest.raises(CertificateMismatch, match="nothing is left"):
        verify(rewritten(release, plan=plan(keywords=keywords)))


def test_a_rehearsal_that_claims_a_guarantee_is_refused(release: Path) -> None:
    with pytest.raises(CertificateMismatch, match="a rehearsal gives no guarantee"):
        verify(rewritten(release, rehearsal=True))


def test_a_plan_whose_numbers_break_the_arithmetic_is_refused_and_not_an_accident(release: Path) -> None:
    huge = plan(keywords=plan().keywords.model_copy(update={"sigma": 1e-300}))
    with pytest.raises(StillroomError):
        verify(rewritten(release, plan=huge))


# -- the ledger -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Line:
    run: str
    events: tuple[dict[str, Any], ...]
    hash: str
    kind: str = "reserve"
    purpose: str = ""
    unit: str = "patient_id"


@dataclass(frozen=True)
class Terms:
    """What the ledger of `tests.releases` was opened with."""

    population: str = "clinic"
    epsilon: float = 10
    delta: float = 1e-6


class Book:
    """A ledger that says what it is told."""

    def __init__(self, *lines: Line, terms: Terms = Terms(), certificate: str = "") -> None:
        self._lines, self._terms = lines, terms
        self._last = Line("run-5f2c", (), "ff" * 32, "complete", f"certificate sha256:{certificate}")

    def history(self) -> tuple[Line, ...]:
        return (Line("", (), "00" * 32), *self._lines, self._last)

    def state(self) -> Terms:
        return self._terms


def test_the_ledger_tells_a_run_that_it_never_paid(release: Path) -> None:
    events, sealed = verify(release).certificate.events, verify(release).certificate.files[CERTIFICATE]
    paid = Line("run-5f2c", events, "cd" * 32)
    report = verify(release, ledger=Book(paid, certificate=sealed))
    assert any("ledger holds this run" in line for line in report.checked)
    assert not any("--ledger" in line for line in report.cannot_prove)
    for book, reason in (
        (Book(), "spent nothing"),
        (Book(Line("other", events, "cd" * 32)), "spent nothing"),
        (Book(Line("run-5f2c", events[1:], "cd" * 32)), "other events"),
        (Book(Line("run-5f2c", events, "ab" * 32)), "head at the reservation"),
        (Book(Line("run-5f2c", events, "cd" * 32, unit="document")), "by another unit"),
        (Book(paid, certificate="ab" * 32), "another certificate, or has not completed it"),
        (Book(paid), "another certificate, or has not completed it"),
        (Book(paid, certificate=sealed, terms=Terms(population="other")), "another population"),
        (Book(paid, certificate=sealed, terms=Terms(epsilon=20)), "another population, ε or δ"),
        (Book(paid, certificate=sealed, terms=Terms(delta=1e-5)), "another population, ε or δ"),
    ):
        with pytest.raises(CertificateMismatch, match=reason):
            verify(release, ledger=book)


def test_a_head_known_from_elsewhere_is_compared(release: Path) -> None:
    verify(release, ledger_head="cd" * 32)
    with pytest.raises(CertificateMismatch, match="head is another one"):
        verify(release, ledger_head="ab" * 32)
