"""The journal: the private working file of one run. A draw is committed here before anyone sees it.

Redrawing would be a second release that nobody paid for. So a run goes on from its journal alone, and there must be
one journal, not two:

* One process: an exclusive lock on the folder's lock file, and SQLite's own on the journal.
* One file: the journal holds its own inode. A copy has another.
* One line of history, kept by the ledger, which a copied or restored folder cannot take back. The ledger holds the
  run's *mark* and the number of draws that were used. Resuming changes the mark in three steps, each committed:
  the journal notes the new mark as pending; the ledger swaps old for new; the journal makes it current. After kill -9
  between any two, the ledger holds either the journal's current or its pending mark, and nothing else is accepted.
  A draw is committed to the journal first, then counted by the ledger, then used. After kill -9 in between, the journal
  is one ahead. A journal behind the ledger lost draws that were used: it was put back from a copy.
"""

from __future__ import annotations

import errno
import fcntl
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from stillroom.errors import DiskFull, FileMissing, LedgerUnusable, OutputExists, RunChanged, RunCopied, RunHeld
from stillroom.privacy.database import Database
from stillroom.privacy.migrations import JOURNAL

JSON = Any
"""What json can write: None, bool, int, float (finite), str, list, dict with string keys."""

FILE, LOCK = "journal.sqlite", "lock"


class Leases(Protocol):
    """What a journal asks of the ledger. See `Ledger`."""

    def mark(self, run: str) -> str | None: ...
    def claim(self, run: str, mark: str, *, was: str | None, draws: int) -> bool: ...
    def count(self, run: str, mark: str, draws: int) -> bool: ...


class Journal:
    """An open journal; made by `Journal.begin` or `Journal.resume`. Also a context manager.

    Attributes:
        folder: the run folder, mode 0700.
        run: random public id of the run.
        settings: what the run was begun with, as json reads it back.
        fingerprint_key: 32 random bytes of this run.
    """

    def __init__(self, folder: Path, ledger: Leases, entropy: Callable[[int], bytes]) -> None:
        self.folder = folder
        self._ledger = ledger
        self._entropy = entropy
        self._lock = _lock(folder)
        try:
            self._database = Database(folder / FILE, JOURNAL, wait=0.0, exclusive=True, locked=lambda: RunHeld(folder))
        except BaseException:
            os.close(self._lock)
            raise
        try:
            with self._database.speaking() as connection:
                self._facts: dict[str, str] = dict(connection.execute("SELECT name, value FROM facts"))
                self._draws: int = connection.execute("SELECT count(*) FROM draws").fetchone()[0]
        except BaseException:
            self.close()
            raise
        self._counted = 0
        self._mark = ""

    @classmethod
    def begin(
        cls,
        folder: Path | str,
        *,
        run: str,
        settings: Mapping[str, JSON],
        ledger: Leases,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
    ) -> Self:
        """Make the run folder and an empty journal in it. Raises OutputExists when a run was begun there before."""
        folder = Path(folder)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        except FileExistsError as taken:
            raise OutputExists(folder) from taken
        except OSError as refused:
            raise _told(folder, refused) from refused
        journal = cls(folder, ledger, entropy)
        try:
            journal._begin(run, settings)
            journal._claim()
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def resume(
        cls,
        folder: Path | str,
        *,
        ledger: Leases,
        settings: Mapping[str, JSON] | None = None,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
    ) -> Self:
        """Take up a run where it was left, also after kill -9.

        Args:
            ledger: the one that the run was begun with.
            settings: when given, they must be those that the run was begun with.

        Raises:
            FileMissing (no run was begun there: `begin` it), RunHeld, RunCopied, RunChanged, RunClosed (abandoned).
        """
        folder = Path(folder)
        if not (folder / FILE).exists():
            raise FileMissing(folder / FILE)
        journal = cls(folder, ledger, entropy)
        try:
            if not journal._facts:
                raise FileMissing(folder / FILE)
            if settings is not None and _text(settings) != journal._facts["settings"]:
                begun, now = journal.settings, json.loads(_text(settings))
                changed = sorted(name for name in {*begun, *now} if begun.get(name) != now.get(name))
                raise RunChanged(folder, " and ".join(changed))
            journal._claim()
        except BaseException:
            journal.close()
            raise
        return journal

    @staticmethod
    def begun_with(folder: Path) -> dict[str, JSON]:
        """Return the settings of a run, for a first look: {} where none can be read. `resume` holds and compares."""
        try:
            with closing(sqlite3.connect(f"{(folder / FILE).absolute().as_uri()}?mode=ro", uri=True)) as raw:
                row = raw.execute("SELECT value FROM facts WHERE name = 'settings'").fetchone()
            found: dict[str, JSON] = json.loads(row[0]) if row else {}
        except (sqlite3.Error, ValueError):
            return {}
        return found

    def draw(self, key: str, make: Callable[[], JSON]) -> JSON:
        """Return the committed value of `key`; without one, call `make` once, commit, and return the value.

        The value is always what json reads back. Values are private until released. Raises RunCopied when another
        copy of this run has claimed it meanwhile, DiskFull when the value could not be committed: it was not used.
        """
        value = self._committed(key)
        if value is None:
            value = _text(make())
            with self._database.transaction() as connection:
                row = connection.execute("INSERT INTO draws (key, value) VALUES (?, ?)", (key, value))
            self._draws = row.lastrowid or 0  # draws are never removed, so the last number is how many there are
        if self._counted < self._draws:
            if not self._ledger.count(self.run, self._mark, self._draws):
                raise RunCopied(self.folder)
            self._counted = self._draws
        return json.loads(value)

    def has(self, key: str) -> bool:
        """Return whether a value of `key` is committed."""
        return self._committed(key) is not None

    def fingerprint(self, parts: Iterable[bytes]) -> str:
        """Return the keyed fingerprint of the parts, in their order (hex). It means nothing outside this run."""
        state = hmac.new(self.fingerprint_key, digestmod="sha256")
        for part in parts:
            state.update(len(part).to_bytes(8, "big"))
            state.update(part)
        return state.hexdigest()

    def bind(self, fingerprint: str) -> None:
        """Tie the run to the collection of this fingerprint; RunChanged when it is tied to another."""
        if "collection" not in self._facts:
            self._set(collection=fingerprint)
        elif not hmac.compare_digest(self._facts["collection"], fingerprint):
            raise RunChanged(self.folder, "collection")

    @property
    def run(self) -> str:
        return self._facts["run"]

    @property
    def settings(self) -> dict[str, JSON]:
        settings: dict[str, JSON] = json.loads(self._facts["settings"])
        return settings

    @property
    def fingerprint_key(self) -> bytes:
        return bytes.fromhex(self._facts["key"])

    def close(self) -> None:
        """Let go of the folder."""
        self._database.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, run: str, settings: Mapping[str, JSON]) -> None:
        if self._facts:
            raise OutputExists(self.folder)
        self._set(run=run, settings=_text(settings), key=self._entropy(32).hex(), **self._place())

    def _claim(self) -> None:
        place, facts = self._place(), self._facts
        moved = place["inode"] != facts["inode"]
        # Device numbers may change when the machine starts anew; until then another one is another file.
        moved = moved or (place["boot"] == facts["boot"] and place["device"] != facts["device"])
        held = self._ledger.mark(self.run)
        known = (facts.get("mark"),) if "pending" not in facts else (facts.get("mark"), facts["pending"])
        if moved or held not in known:
            raise RunCopied(self.folder)
        if held is not None and held != facts.get("mark"):
            self._set(mark=held)
        mark = self._entropy(16).hex()
        self._set(pending=mark)
        if not self._ledger.claim(self.run, mark, was=held, draws=self._draws):
            raise RunCopied(self.folder)
        self._set(mark=mark, **place)
        self._mark, self._counted = mark, self._draws

    def _place(self) -> dict[str, str]:
        found = (self.folder / FILE).stat()
        return {"inode": str(found.st_ino), "device": str(found.st_dev), "boot": _boot()}

    def _set(self, **facts: str) -> None:
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
        self._facts |= facts

    def _committed(self, key: str) -> str | None:
        with self._database.speaking() as connection:
            row = connection.execute("SELECT value FROM draws WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])


def _text(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _boot() -> str:
    """Return a name of this start of the machine; empty where the system gives none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _lock(folder: Path) -> int:
    """Return the open lock file of the folder, held; RunHeld when another process has it."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as refused:
        raise _told(folder, refused) from refused
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as held:
        os.close(lock)
        raise RunHeld(folder) from held
    return lock


def _told(folder: Path, refused: OSError) -> Exception:
    if refused.errno == errno.ENOSPC:
        return DiskFull(folder)
    return LedgerUnusable(folder, "run folder", (refused.strerror or "it cannot be used").lower())
