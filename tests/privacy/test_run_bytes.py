"""Two collections that differ by one unit leave the same bytes behind when the outputs of the noise are the same.

Bytes of the release with names, modes and times; the ledger's export; log records; progress lines; certificates.
"""

from __future__ import annotations

import io
import logging
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stillroom.cli.progress import Lines
from stillroom.distil import certificates, run
from stillroom.documents import Collection, Documents
from stillroom.privacy.noise import Noise
from stillroom.release.verify import verify
from stillroom.testing.neighbours import neighbours, permutations
from stillroom.testing.noise import Draw, NoNoise, RecordedNoise
from tests.e2e.whole import Desk, Rough, fixed, lm, plan
from tests.privacy.mechanics import collection

PLANS = {
    "default": {},
    "free text": {"form": None},
    "without co-keywords": {"without": ("cokeywords", "lists")},
    "prose": {"prose": True},
    "rarest words first": {"without": ("order",)},
}


@dataclass(frozen=True)
class Left:
    """All that a run leaves where others may see it, and its draws."""

    files: dict[str, tuple[bytes, int, int]]
    export: dict[str, Any]
    logs: list[str]
    progress: str
    draws: list[Draw]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as folder:
        yield Path(folder)


def left(documents: Collection, place: Path, noise: Noise, caplog: pytest.LogCaptureFixture, **changes: Any) -> Left:
    """Run in an empty folder, with a clock that stands still, and return what is left; the folder is emptied again."""
    caplog.clear()
    said = io.StringIO()
    recorded = noise if isinstance(noise, RecordedNoise) else RecordedNoise(noise)
    with (
        tempfile.TemporaryDirectory(dir=place) as name,
        pytest.MonkeyPatch.context() as patch,
        caplog.at_level(logging.DEBUG),
    ):
        # The path may stand in no file, so it may differ; what is compared would show it.
        desk = Desk(Path(name))
        patch.setenv("STILLROOM_HOME", f"{name}/home")
        progress = Lines(said, clock=lambda: 0.0)
        with desk.ledger(**fixed()) as ledger:
            run.release(
                documents, plan(**changes), ledger=ledger, out=desk.out, lm=lm(), noise=recorded, progress=progress,
                run_id=lambda: "run-1",
            )  # fmt: skip
            export = ledger.export()
        progress.done()
        verify(desk.out)
        files = {
            str(path.relative_to(desk.out)): (
                b"" if path.is_dir() else path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns,
            )
            for path in (desk.out, *desk.out.rglob("*"))
        }  # fmt: skip
        assert {path.name for path in desk.folder.iterdir()} == {"clinic.ledger", "notes.release", "home"}
    return Left(files, export, [record.getMessage() for record in caplog.records], said.getvalue(), recorded.draws)


def same(one: Left, other: Left) -> None:
    """Raise AssertionError, naming it, where two runs left something different."""
    for what in ("files", "export", "logs", "progress"):
        if getattr(one, what) != getattr(other, what):
            raise AssertionError(f"{what} tell the two collections apart")
    assert len(one.draws) == len(other.draws)  # not one call more or less


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("noise", [NoNoise, Rough])
def test_no_neighbour_leaves_another_byte(
    name: str, noise: type[Noise], place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = left(collection(), place, noise(), caplog, **PLANS[name])
    assert len(first.files) == 4 and first.progress.count("\n") > 5
    assert len(first.files["topics.json"][0]) > 500 and (noise is Rough or first.files["texts.jsonl"][0])
    for neighbour in neighbours(collection()):
        again = left(neighbour.documents, place, RecordedNoise(replay=first.draws), caplog, **PLANS[name])
        same(first, again)


def test_nor_does_the_order_of_a_collection(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = left(collection(), place, Rough(), caplog)
    for shuffled in permutations(collection(), random.Random(5), 2):
        same(first, left(shuffled, place, RecordedNoise(replay=first.draws), caplog))


# -- the check sees mistakes -----------------------------------------------------------------------------------------
def test_it_sees_a_count_in_a_log_and_in_progress(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = run._spool

    def counting(documents: Collection, *others: Any) -> Any:
        logging.getLogger("stillroom").debug("read %d documents", sum(1 for _ in documents))
        return right(documents, *others)

    first = left(collection(), place, NoNoise(), caplog)
    monkeypatch.setattr(run, "_spool", counting)
    told = left(collection(), place, NoNoise(), caplog)
    with pytest.raises(AssertionError, match="logs"):
        same(first, told)
    fewer = Documents([*collection()][:-2])
    with pytest.raises(AssertionError, match="logs"):
        same(told, left(fewer, place, RecordedNoise(replay=told.draws), caplog))


def test_it_sees_a_hash_of_the_collection_in_the_certificate(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = certificates.software

    def hashed() -> dict[str, str]:
        return {**right(), "corpus": certificates._sha256("".join(document.text for document in source))}

    monkeypatch.setattr(certificates, "software", hashed)
    source = collection()
    first = left(source, place, NoNoise(), caplog)
    source = Documents([*collection()][1:])
    with pytest.raises(AssertionError, match="files"):
        same(first, left(source, place, RecordedNoise(replay=first.draws), caplog))
