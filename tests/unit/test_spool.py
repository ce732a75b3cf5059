"""The working copy on disk: whole or not there, private, and the same in whatever order the file was."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.documents import Document, Documents, Unit
from stillroom.errors import BadOption, FileEmpty, FileFormat, FileMissing, UnitMissing
from stillroom.readers import Spool, read

LONG = " ".join(f"word{i}." for i in range(25))
COLLECTION = [
    Document("1", "first note", "a"),
    Document("2", LONG, "a"),
    Document("1", "another text, same id", "a"),
    Document("x", "", "b"),
    Document("y", "alone\x00 \ud800", "c"),
]


def spooled(path: Path, documents: list[Document], chunk_words: int = 10, most_chunks: int = 64) -> Spool:
    return Spool.build(Documents(documents), path, chunk_words=chunk_words, most_chunks=most_chunks)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_units_come_in_order_with_all_their_documents(tmp_path: Path) -> None:
    with spooled(tmp_path / "s", COLLECTION) as spool:
        units = list(spool.units())
        assert [u.id for u in units] == list(spool.unit_ids()) == ["a", "b", "c"]
        assert [d.id for d in units[0].documents] == ["1", "1", "2", "2#1", "2#2"]
        assert {d.unit for d in units[0].documents} == {"a"}
        assert [d.text for d in units[1].documents] == [""]
        assert all(spool.documents_of(u.id) == u.documents for u in units)
        assert spool.documents_of("nobody") == ()


def test_long_documents_are_cut_at_public_lengths(tmp_path: Path) -> None:
    with spooled(tmp_path / "s", [Document("1", LONG, "a")], chunk_words=10, most_chunks=2) as spool:
        (unit,) = spool.units()
        assert " ".join(d.text for d in unit.documents) == " ".join(LONG.split()[:20])


def test_the_order_of_the_input_changes_nothing(tmp_path: Path) -> None:
    with spooled(tmp_path / "s", COLLECTION) as first:
        expected = list(first.fingerprint_parts())
    for seed in range(10):
        shuffled = random.Random(seed).sample(COLLECTION, len(COLLECTION))
        with spooled(tmp_path / "t", shuffled) as spool:
            assert list(spool.fingerprint_parts()) == expected


@pytest.mark.parametrize("unit", ["a", "b", "c"])
def test_without_one_unit_all_others_stay_as_they_are(tmp_path: Path, unit: str) -> None:
    with (
        spooled(tmp_path / "s", COLLECTION) as whole,
        spooled(tmp_path / "t", [d for d in COLLECTION if d.unit != unit]) as less,
    ):
        assert list(less.units()) == [u for u in whole.units() if u.id != unit]


def test_without_line_one_of_a_file_without_ids_all_others_stay_as_they_are(tmp_path: Path) -> None:
    lines = [json.dumps({"note": f"note number {i}"}) + "\n" for i in range(20)]

    def units(lines: list[str]) -> list[Unit]:
        (tmp_path / "a.jsonl").write_text("".join(lines))
        with Spool.build(read(tmp_path / "a.jsonl"), tmp_path / "s", chunk_words=10) as spool:
            return list(spool.units())

    gone = "note number 0"
    assert units(lines[1:]) == [u for u in units(lines) if u.documents[0].text != gone]


def test_identical_documents_of_a_unit_are_kept_once(tmp_path: Path) -> None:
    copies = [Document.of("the same", unit=who) for who in ("a", "b") for _ in range(1000)]
    with spooled(tmp_path / "s", copies) as spool:
        assert [len(u.documents) for u in spool.units()] == [1, 1]


def test_two_spellings_of_a_unit_are_one_unit(tmp_path: Path) -> None:
    with spooled(tmp_path / "s", [Document("1", "x", "P 1"), Document("2", "y", " p  1\u200b")]) as spool:
        assert list(spool.unit_ids()) == ["p 1"]


@pytest.mark.parametrize(
    "change",
    [
        {"documents": COLLECTION[:-1]},
        {"documents": [*COLLECTION[:-1], Document("y", "alone\x00 x", "c")]},
        {"documents": [*COLLECTION[:-1], Document("z", "alone\x00 \ud800", "c")]},
        {"documents": [*COLLECTION[:-1], Document("y", "alone\x00 \ud800", "d")]},
        {"chunk_words": 11},
        {"most_chunks": 63},
    ],
)
def test_any_change_changes_the_fingerprint(tmp_path: Path, change: dict[str, object]) -> None:
    with (
        spooled(tmp_path / "s", COLLECTION) as one,
        spooled(
            tmp_path / "t",
            **{"documents": COLLECTION, **change},  # type: ignore[arg-type]
        ) as other,
    ):
        assert b"".join(one.fingerprint_parts()) != b"".join(other.fingerprint_parts())


def test_only_its_owner_may_read_it_and_it_is_one_file(tmp_path: Path) -> None:
    with spooled(tmp_path / "s", COLLECTION) as spool:
        list(spool.units())
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
        assert names(tmp_path) == ["s"]


def test_a_spool_opens_again_and_nothing_else_does(tmp_path: Path) -> None:
    with spooled(tmp_path / "s", COLLECTION) as built, Spool(tmp_path / "s") as again:
        assert list(again.units()) == list(built.units())
        assert (again.chunk_words, again.most_chunks) == (10, 64)
    (tmp_path / "t").write_text("no spool " * 1000)
    with pytest.raises(FileFormat, match="no spool"):
        Spool(tmp_path / "t")
    with pytest.raises(FileMissing):
        Spool(tmp_path / "u")


class Failing:
    """A collection that fails after some documents."""

    def __iter__(self) -> Iterator[Document]:
        yield from COLLECTION
        raise FileFormat("x", "it ends early")


def test_a_failed_build_leaves_nothing_and_an_older_spool_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(FileFormat, match="ends early"):
        Spool.build(Failing(), tmp_path / "s", chunk_words=10)
    assert names(tmp_path) == []
    with spooled(tmp_path / "s", COLLECTION[:1]) as spool:
        before = list(spool.units())
    with pytest.raises(FileFormat):
        Spool.build(Failing(), tmp_path / "s", chunk_words=10)
    with Spool(tmp_path / "s") as spool:
        assert list(spool.units()) == before


def test_what_a_killed_run_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "s.part").write_text("half")
    spooled(tmp_path / "s", COLLECTION).close()
    assert names(tmp_path) == ["s"]


def test_nothing_to_spool_no_unit_and_empty_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileEmpty):
        spooled(tmp_path / "s", [])
    with pytest.raises(UnitMissing):
        spooled(tmp_path / "s", [Document("1", "x", " ")])
    with pytest.raises(BadOption):
        spooled(tmp_path / "s", COLLECTION, chunk_words=0)
    assert names(tmp_path) == []


def test_progress_hears_of_each_document_but_of_no_number(tmp_path: Path) -> None:
    calls: list[tuple[object, ...]] = []
    Spool.build(
        Documents(COLLECTION), tmp_path / "s", chunk_words=10, progress=lambda *given: calls.append(given)
    ).close()
    assert calls == [()] * len(COLLECTION)


FILL = """
import os, sys
from stillroom.documents import Document, Documents
from stillroom.errors import DiskFull
from stillroom.readers import Spool
folder = sys.argv[1]
many = Documents(Document.of(f"{i} " + "text " * 200) for i in range(5000))
try:
    Spool.build(many, folder + "/s", chunk_words=50)
except DiskFull as error:
    assert folder in str(error) and os.listdir(folder) == [], os.listdir(folder)
    sys.exit(77)
"""


def test_a_full_disk_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=1m none "$1" || exit 99; exec "$2" -c "$3" "$1"'
    command = ["unshare", "-rm", "sh", "-c", script, "-", str(tmp_path), sys.executable, FILL]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=env)
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if done.returncode in (1, 99) and "Traceback" not in done.stderr:
        pytest.skip("this user may not mount a small disk")
    assert done.returncode == 77, done.stderr
