"""A private SQLite file: made with mode 0600, brought to the newest schema, its failures told as our own errors."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stillroom.errors import DiskFull, LedgerLocked, LedgerUnusable
from stillroom.privacy.migrations import Schema

_NO_SPACE_LEFT = 4096 * 4
"""Below so many free bytes a failed write is told as a full disk: SQLite reports some of them as I/O errors."""


class Database:
    """One open file. Errors of SQLite surface as DiskFull, LedgerLocked (or `locked`) and LedgerUnusable.

    Args:
        path: made, with mode 0600, when missing.
        schema: what the file must be; other databases are refused untouched.
        wait: seconds to wait for another process's lock.
        exclusive: hold the file against all other processes until closed.
        locked: makes the error for a file that stays locked.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        *,
        wait: float,
        exclusive: bool = False,
        locked: Callable[[], Exception] | None = None,
    ) -> None:
        self.path = path
        self._locked = locked or (lambda: LedgerLocked(path, wait))
        self._name = schema.name
        self._make()
        try:
            self.connection = sqlite3.connect(path, timeout=wait, isolation_level=None)
        except sqlite3.Error as error:
            raise self._told(error) from error
        try:
            with self.speaking():
                self._recognise(schema)
                if exclusive:
                    self.connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                # A process that switches to WAL at the same moment is not waited for by SQLite itself.
                self._patiently("PRAGMA journal_mode = WAL", wait)
                self.connection.execute("PRAGMA synchronous = FULL")
                self._migrate(schema)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock; commit at the end, take everything back on an error."""
        with self.speaking():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def speaking(self) -> Iterator[sqlite3.Connection]:
        """Turn SQLite's errors into ours."""
        try:
            yield self.connection
        except sqlite3.Error as error:
            raise self._told(error) from error

    def close(self) -> None:
        self.connection.close()

    def _make(self) -> None:
        # Here and not by SQLite, so that the file is never readable by others; -wal and -shm take its mode.
        # Only when it is missing: closing a second handle of a file drops the locks that SQLite holds on it.
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return
        except OSError as refused:
            if refused.errno == errno.ENOSPC:
                raise DiskFull(self.path) from refused
            reason = (refused.strerror or "it cannot be made").lower()
            raise LedgerUnusable(self.path, self._name, reason) from refused

    def _recognise(self, schema: Schema) -> None:
        # At one moment: another process that makes the file just now must not be seen half-way.
        self.connection.execute("BEGIN")
        try:
            application = self.connection.execute("PRAGMA application_id").fetchone()[0]
            version = self.connection.execute("PRAGMA user_version").fetchone()[0]
            tables = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        finally:
            if self.connection.in_transaction:
                self.connection.execute("COMMIT")
        if application != schema.application and (application or version or tables):
            raise LedgerUnusable(self.path, schema.name, "it is a database of something else")
        if version > len(schema.migrations):
            raise LedgerUnusable(self.path, schema.name, "a newer stillroom wrote it: update this one")

    def _migrate(self, schema: Schema) -> None:
        with self.transaction() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            for number, statements in enumerate(schema.migrations[version:], version + 1):
                for statement in statements:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
            if connection.execute("PRAGMA application_id").fetchone()[0] != schema.application:
                connection.execute(f"PRAGMA application_id = {schema.application}")

    def _patiently(self, statement: str, wait: float) -> None:
        end = time.monotonic() + wait
        while True:
            try:
                self.connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def _told(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorcode", None)
        primary = None if code is None else code & 0xFF
        if isinstance(error, sqlite3.ProgrammingError):
            closed = "it was closed, or is used in another thread than the one that opened it: open it in each thread"
            return LedgerUnusable(self.path, self._name, closed)
        if primary == sqlite3.SQLITE_FULL or (
            primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and self._full()
        ):
            return DiskFull(self.path)
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._locked()
        reason = {
            sqlite3.SQLITE_READONLY: "it is read-only",
            sqlite3.SQLITE_NOTADB: "it is not one",
            sqlite3.SQLITE_CORRUPT: "it is damaged",
            sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
            sqlite3.SQLITE_CONSTRAINT: "entries are never changed",
        }.get(-1 if primary is None else primary, getattr(error, "sqlite_errorname", "SQLite failed"))
        return LedgerUnusable(self.path, self._name, reason)

    def _full(self) -> bool:
        space = os.statvfs(self.path.parent)
        return space.f_bavail * space.f_frsize < _NO_SPACE_LEFT
