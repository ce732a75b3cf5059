"""The working copy of a collection on disk: cut into chunks, ordered by unit, in one private SQLite file."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from types import TracebackType

from stillroom.documents import Collection, Document, Unit, content_id
from stillroom.errors import BadOption, DiskFull, FileEmpty, FileFormat, FileMissing, UnitMissing
from stillroom.readers.fields import document_id, unit_id
from stillroom.text import chunks

_APPLICATION, _VERSION = 0x53504F4C, 1  # "SPOL"
_NO_SPACE = {28, 122}  # ENOSPC, EDQUOT
_SCHEMA = """
CREATE TABLE chunk (
    unit TEXT NOT NULL, document TEXT NOT NULL, content TEXT NOT NULL, number INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (unit, document, content, number)
) WITHOUT ROWID;
CREATE TABLE terms (chunk_words INTEGER NOT NULL, most_chunks INTEGER NOT NULL);
"""
_ROWS = "SELECT unit, document, content, number, text FROM chunk"
_ORDER = " ORDER BY unit, document, content, number"


class Spool:
    """All units of a collection, in an order that depends on each unit alone and not on the file they came from.

    Units come in the order of their ids, their documents in the order of id, then content (two documents may carry
    one id), then chunk. What one unit looks like does not depend on any other.

    Raises:
        FileMissing, FileFormat: the file is not there, or is no spool.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileMissing(self.path)
        # Nobody writes to a finished spool, so it needs no locks and leaves no file beside it.
        self._db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            marks = [self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            if marks != [_APPLICATION, _VERSION]:
                raise FileFormat(self.path, "it is no spool of this version of stillroom")
            self.chunk_words, self.most_chunks = self._db.execute(
                "SELECT chunk_words, most_chunks FROM terms"
            ).fetchone()
        except sqlite3.DatabaseError:
            self._db.close()
            raise FileFormat(self.path, "it is no spool") from None
        except FileFormat:
            self._db.close()
            raise

    @classmethod
    def build(
        cls,
        collection: Collection,
        path: Path | str,
        *,
        chunk_words: int,
        most_chunks: int = 64,
        progress: Callable[[], None] | None = None,
    ) -> Spool:
        """Return the spool of a collection, written whole or not at all; readable by its owner only.

        Args:
            collection: gone through once; its errors pass through, and nothing is left behind.
            path: an older spool there is replaced when the new one is whole.
            chunk_words: words a chunk has at most; a public number.
            most_chunks: chunks of one document, the first ones; what is beyond is left out. A public number.
            progress: called after each document, without a number: how many there are is private.

        A document without words is kept as one empty chunk, so that its unit is there. Of identical documents of one
        unit (same id, same text) one is kept. Raises FileEmpty (no document at all), UnitMissing, DiskFull,
        BadOption.
        """
        path = Path(path)
        for name, value in (("words of a chunk", chunk_words), ("chunks of a document", most_chunks)):
            if value < 1:
                raise BadOption(name, value, "at least 1")
        part = path.with_name(path.name + ".part")
        try:
            part.unlink(missing_ok=True)  # left by a run that was killed
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(part, isolation_level=None)) as db:
                _write(db, collection, chunk_words, most_chunks, progress or (lambda: None))
            _sync(part)
            part.replace(path)
            _sync(path.parent)
        except BaseException as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            if _is_full(error):
                raise DiskFull(path) from None
            raise
        return cls(path)

    def units(self) -> Iterator[Unit]:
        """Yield every unit with its documents (chunks), in order of the unit's id; one unit is in memory at a time."""
        with closing(self._db.execute(_ROWS + _ORDER)) as rows:
            for unit, found in groupby(rows, key=lambda row: str(row[0])):
                yield Unit(unit, tuple(map(_document, found)))

    def unit_ids(self) -> Iterator[str]:
        """Yield the id of every unit, in order."""
        with closing(self._db.execute("SELECT DISTINCT unit FROM chunk ORDER BY unit")) as rows:
            for (unit,) in rows:
                yield unit

    def documents_of(self, unit_id: str) -> tuple[Document, ...]:
        """Return the documents (chunks) of one unit, in order; none if there is no such unit."""
        rows = self._db.execute(f"{_ROWS} WHERE unit = ?{_ORDER}", (unit_id,))
        return tuple(map(_document, rows))

    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield bytes that together tell this spool from every other one, for a keyed hash: its terms and all rows.

        Every field is preceded by its length, so that no two contents have the same bytes.
        """
        yield b"stillroom spool 1" + struct.pack(">qq", self.chunk_words, self.most_chunks)
        with closing(self._db.execute(_ROWS + _ORDER)) as rows:
            for unit, document, content, number, text in rows:
                fields = (unit.encode(), document.encode(), content.encode(), struct.pack(">q", number), text.encode())
                yield b"".join(struct.pack(">q", len(field)) + field for field in fields)

    def close(self) -> None:
        """Close the file; the spool cannot be read after that."""
        self._db.close()

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _write(
    db: sqlite3.Connection,
    collection: Collection,
    chunk_words: int,
    most_chunks: int,
    progress: Callable[[], None],
) -> None:
    # The file is thrown away unless it becomes whole, so it needs no journal, which would hold texts too.
    db.executescript(
        f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;"
        f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION}; {_SCHEMA} BEGIN;"
    )
    db.execute("INSERT INTO terms VALUES (?, ?)", (chunk_words, most_chunks))
    source = getattr(collection, "path", "the collection")
    position = 0
    for position, document in enumerate(collection, 1):
        unit = unit_id(document.unit)  # readers spell it so already; a collection in memory need not
        if not unit:
            raise UnitMissing(source, position, "unit")
        name = document_id(document.id)
        texts = chunks(document.text, chunk_words)[:most_chunks] or [""]
        content = content_id(document.text)
        db.executemany(
            "INSERT OR IGNORE INTO chunk VALUES (?, ?, ?, ?, ?)",
            [(unit, name, content, number, text) for number, text in enumerate(texts)],
        )
        progress()
    if not position:
        raise FileEmpty(source)
    db.execute("COMMIT")


def _document(row: tuple[str, str, str, int, str]) -> Document:
    unit, document, _, number, text = row
    return Document(id=f"{document}#{number}" if number else document, text=text, unit=unit)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_full(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in _NO_SPACE
