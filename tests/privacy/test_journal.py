"""A draw is made once: through kill -9 at any moment, never in a copy, never in two processes."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stillroom.errors import (
    DiskFull,
    FileMissing,
    OutputExists,
    RunChanged,
    RunClosed,
    RunCopied,
    RunHeld,
)
from stillroom.privacy.events import Gaussian
from stillroom.privacy.journal import Journal
from stillroom.privacy.ledger import Ledger

SETTINGS = {"preset": "default", "epsilon": 10.0, "slots": ["a", "b"]}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "x.ledger", epsilon=10, delta=1e-6) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "x.release.run"


def begun(folder: Path, ledger: Ledger, **draws: Any) -> Path:
    """A run of these draws, closed."""
    with Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger) as journal:
        for key, value in draws.items():
            journal.draw(key, lambda value=value: value)
    return folder


def never() -> Any:
    raise AssertionError("drawn again")


def test_a_committed_draw_is_returned_and_never_made_again(ledger: Ledger, folder: Path) -> None:
    values = {"a": [1, 2.5, None, "x"], "b": {"z": -0.0, "y": 1e-300}, "c": None, "d": False}
    begun(folder, ledger, **values)
    for _ in range(2):
        with Journal.resume(folder, ledger=ledger) as journal:
            assert {key: journal.draw(key, never) for key in values} == values
            assert journal.has("a") and not journal.has("e")


def test_a_first_draw_looks_like_a_replayed_one(ledger: Ledger, folder: Path) -> None:
    with Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger) as journal:
        assert journal.draw("a", lambda: (1, (2,))) == [1, [2]]
        with pytest.raises(ValueError):
            journal.draw("b", lambda: float("nan"))
        assert not journal.has("b")


def test_a_draw_that_fails_commits_nothing(ledger: Ledger, folder: Path) -> None:
    with Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger) as journal:
        with pytest.raises(AssertionError):
            journal.draw("a", never)
        assert journal.draw("a", lambda: 7) == 7


def test_the_run_keeps_its_name_settings_and_key(ledger: Ledger, folder: Path) -> None:
    with Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger) as journal:
        key, mark = journal.fingerprint_key, journal.fingerprint([b"a", b"bc"])
    assert len(key) == 32
    with Journal.resume(folder, ledger=ledger, settings=dict(reversed(SETTINGS.items()))) as journal:
        assert (journal.run, journal.settings, journal.fingerprint_key) == ("r", SETTINGS, key)
        assert journal.fingerprint([b"a", b"bc"]) == mark != journal.fingerprint([b"ab", b"c"])


def test_only_the_owner_can_read_a_run(ledger: Ledger, folder: Path) -> None:
    folder.mkdir(mode=0o755)
    with Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger) as journal:
        journal.draw("a", lambda: 1)
        assert all(file.stat().st_mode & 0o077 == 0 for file in [folder, *folder.iterdir()])


def test_another_configuration_or_collection_is_refused(ledger: Ledger, folder: Path) -> None:
    with Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger) as journal:
        journal.bind(journal.fingerprint([b"one", b"two"]))
    with pytest.raises(RunChanged, match="another epsilon: go on"):
        Journal.resume(folder, ledger=ledger, settings={**SETTINGS, "epsilon": 3.0})
    with Journal.resume(folder, ledger=ledger, settings=SETTINGS) as journal:
        journal.bind(journal.fingerprint([b"one", b"two"]))
        with pytest.raises(RunChanged, match="collection"):
            journal.bind(journal.fingerprint([b"one"]))


def test_a_run_is_begun_once_and_resumed_only_where_one_was_begun(ledger: Ledger, folder: Path) -> None:
    with pytest.raises(FileMissing):
        Journal.resume(folder, ledger=ledger)
    begun(folder, ledger)
    with pytest.raises(OutputExists):
        Journal.begin(folder, run="s", settings=SETTINGS, ledger=ledger)


def test_an_abandoned_run_does_not_go_on(ledger: Ledger, folder: Path) -> None:
    ledger.reserve("r", [Gaussian("x", 1.0, 10.0)], purpose="x")
    begun(folder, ledger, a=1)
    ledger.abandon("r")
    with pytest.raises(RunClosed, match="abandoned"):
        Journal.resume(folder, ledger=ledger)


def test_a_second_process_is_refused_while_the_first_one_lives(ledger: Ledger, folder: Path) -> None:
    with Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger) as journal:
        code = (
            "import sys; from stillroom.privacy.journal import Journal; from stillroom.privacy.ledger import Ledger\n"
            "from stillroom.errors import RunHeld\n"
            "try: Journal.resume(sys.argv[1], ledger=Ledger.open(sys.argv[2]))\n"
            "except RunHeld: print('held')"
        )
        command = [sys.executable, "-c", code, str(folder), str(ledger.path)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "held\n"
        (folder / "lock").unlink()  # SQLite's own lock holds as well
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "held\n"
        with pytest.raises(RunHeld):
            Journal.resume(folder, ledger=ledger)
        assert journal.draw("a", lambda: 1) == 1


# Copies


def test_a_copied_folder_is_refused_and_the_original_goes_on(ledger: Ledger, folder: Path, tmp_path: Path) -> None:
    begun(folder, ledger, a=1)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for _ in range(2):
        with pytest.raises(RunCopied):
            Journal.resume(copy, ledger=ledger)
    with Journal.resume(folder, ledger=ledger) as journal:
        assert journal.draw("a", never) == 1


def test_a_folder_may_be_moved(ledger: Ledger, folder: Path, tmp_path: Path) -> None:
    begun(folder, ledger, a=1)
    folder.rename(tmp_path / "moved")
    with Journal.resume(tmp_path / "moved", ledger=ledger) as journal:
        assert journal.draw("a", never) == 1


def overwrite(folder: Path, saved: dict[str, bytes]) -> None:
    """Put saved files back into the same inodes, as a restore in place or a forged inode would."""
    for file in folder.iterdir():
        if file.name not in saved:
            file.unlink()
    for name, data in saved.items():
        with (folder / name).open("r+b" if (folder / name).exists() else "wb") as file:
            file.truncate()
            file.write(data)


def save(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()} if folder.exists() else {}


def test_a_folder_put_back_as_it_was_before_a_draw_is_refused(ledger: Ledger, folder: Path) -> None:
    journal = Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger)
    journal.draw("a", lambda: 1)
    saved = save(folder)  # in the middle of a run: no later resume gives it away
    journal.draw("b", lambda: 2)
    journal.close()
    overwrite(folder, saved)
    with pytest.raises(RunCopied):
        Journal.resume(folder, ledger=ledger)


def test_a_run_does_not_go_on_with_another_ledger(ledger: Ledger, folder: Path, tmp_path: Path) -> None:
    begun(folder, ledger, a=1)
    with Ledger.open(tmp_path / "y.ledger", epsilon=10, delta=1e-6) as other, pytest.raises(RunCopied):
        Journal.resume(folder, ledger=other)


def test_a_run_that_another_copy_has_claimed_stops_before_it_uses_a_draw(ledger: Ledger, folder: Path) -> None:
    with Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger) as journal:
        assert ledger.claim("r", "other", was=ledger.mark("r"), draws=0)
        for _ in range(2):  # also when it is asked again, now that the value is committed
            with pytest.raises(RunCopied):
                journal.draw("a", lambda: 1)


# kill -9


class Dying:
    """A ledger whose process dies before or after it swaps the mark."""

    def __init__(self, ledger: Ledger, *, after: bool) -> None:
        self._ledger, self._after = ledger, after

    def mark(self, run: str) -> str | None:
        return self._ledger.mark(run)

    def count(self, run: str, mark: str, draws: int) -> bool:
        return self._ledger.count(run, mark, draws)

    def claim(self, run: str, mark: str, *, was: str | None, draws: int) -> bool:
        if self._after:
            self._ledger.claim(run, mark, was=was, draws=draws)
        raise KeyboardInterrupt


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("third", [True, False])
def test_killed_again_and_again_while_it_resumes_a_run_still_goes_on(
    ledger: Ledger, folder: Path, first: bool, second: bool, third: bool
) -> None:
    begun(folder, ledger, a=1)
    for after in (first, second, third):
        with pytest.raises(KeyboardInterrupt):
            Journal.resume(folder, ledger=Dying(ledger, after=after))
    with Journal.resume(folder, ledger=ledger) as journal:
        assert journal.draw("a", never) == 1


KEYS = ["a", "b"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: kill -9 leaves what was written, and fsync is quick there."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as folder:
        yield Path(folder)


def work(ledger_path: Path, folder: Path, log: Path) -> None:
    """Begin or resume, use every key; log what was made and what was used."""

    def note(kind: str, key: str, value: Any) -> None:
        with log.open("a") as file:
            file.write(json.dumps([kind, key, value]) + "\n")

    def make(key: str) -> str:
        value = os.urandom(4).hex()
        note("made", key, value)
        return value

    with Ledger.open(ledger_path, epsilon=10, delta=1e-6) as ledger:
        try:
            journal = Journal.resume(folder, ledger=ledger)
        except FileMissing:
            journal = Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger)
        with journal:
            ledger.reserve("r", [Gaussian("x", 1.0, 10.0)], purpose="x")
            for key in KEYS:
                note("used", key, journal.draw(key, lambda key=key: make(key)))


def in_child(do: Callable[[], None], die_at: int | None = None) -> int | None:
    """Run in a forked process that kills itself -9 before its die_at-th SQL statement; return the killing signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            connect, seen = sqlite3.connect, 0

            def step(statement: str) -> None:
                nonlocal seen
                seen += 1
                if seen == die_at:
                    os.kill(os.getpid(), signal.SIGKILL)

            def traced(*args: Any, **kwargs: Any) -> sqlite3.Connection:
                connection = connect(*args, **kwargs)
                connection.set_trace_callback(step)
                return connection

            sqlite3.connect = traced  # type: ignore[assignment]
            do()
            code = 0
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    assert os.WEXITSTATUS(status) == 0, "the run did not go on"
    return None


def read(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def check_draws(log: Path) -> None:
    used = {(key, value) for kind, key, value in read(log) if kind == "used"}
    assert sorted(key for key, _ in used) == KEYS, "a key had two values, or none"


@pytest.mark.parametrize("second", [None, 22])
def test_killed_anywhere_a_run_goes_on_with_the_draws_it_used(memory: Path, second: int | None) -> None:
    """Before every single SQL statement of a run, so also between any two commits; and again while resuming."""
    point, copies = 0, 0
    while True:
        point += 1 if second is None else 6
        here = memory / str(point)
        here.mkdir()
        book, folder, log = here / "x.ledger", here / "run", here / "log"
        Ledger.open(book, epsilon=10, delta=1e-6).close()

        def run(book: Path = book, folder: Path = folder, log: Path = log) -> None:
            work(book, folder, log)

        killed = in_child(run, die_at=point)
        saved = save(folder)
        if second is not None:
            in_child(run, die_at=second)
        in_child(run)
        check_draws(log)
        made: Counter[str] = Counter(key for kind, key, _ in read(log) if kind == "made")
        assert sum(made.values()) <= len(KEYS) + (2 if second else 1), "more than the draw in flight was made again"
        if killed is None:
            break
        if saved:
            copies += 1
            # What the folder was at the moment of the kill, back in place, inodes and all, after the run went on.
            overwrite(folder, saved)
            with Ledger.open(book) as ledger, pytest.raises(RunCopied):
                try:
                    Journal.resume(folder, ledger=ledger).close()
                except FileMissing:
                    Journal.begin(folder, run="r", settings=SETTINGS, ledger=ledger)
        shutil.rmtree(here)
    assert point > 30 and copies > (20 if second is None else 3)


def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_space(
    tiny_disk: Path, fill: Callable[[Path], Path], ledger: Ledger
) -> None:
    folder = begun(tiny_disk / "run", ledger, a=1)
    filler = fill(tiny_disk)
    with pytest.raises(DiskFull), Journal.resume(folder, ledger=ledger) as journal:
        for i in range(100):
            journal.draw(f"k{i}", lambda: "x" * 5000)
    with pytest.raises(DiskFull):
        Journal.begin(tiny_disk / "other", run="s", settings=SETTINGS, ledger=ledger)
    filler.unlink()
    with Journal.resume(folder, ledger=ledger) as journal:
        assert journal.draw("a", never) == 1
        assert journal.draw("later", lambda: 2) == 2
