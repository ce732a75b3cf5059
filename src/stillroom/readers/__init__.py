"""Collections from files: JSON lines, CSV, Parquet, folders. Reading streams and can be repeated.

Errors are about files, fields and lines and never quote a text (PRIVACY rule 8); no text stops a reading.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stillroom.documents import Collection
from stillroom.errors import BadOption, FileEmpty, FileFormat, FileMissing
from stillroom.readers.csv import Table
from stillroom.readers.fields import Fields, unit_id
from stillroom.readers.folder import PDF, TEXTS, Folder
from stillroom.readers.jsonl import JsonLines
from stillroom.readers.parquet import Parquet
from stillroom.readers.spool import Spool

__all__ = ["Folder", "Spool", "check", "read", "unit_id"]

_ROWS: dict[str, Callable[[Path, Fields], Collection]] = {
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".json": JsonLines,
    ".csv": Table,
    ".tsv": Table,
    ".parquet": Parquet,
}


def read(path: Path | str, *, text: str | None = None, id: str | None = None, unit: str | None = None) -> Collection:
    """Return the documents of a file or folder, read anew each time they are gone through.

    Args:
        path: .jsonl, .ndjson, .json (one object a line), .csv, .tsv, .parquet, .txt, .md, .pdf, or a folder of the
            last three.
        text: the field with the text; by default "text", else the only one of "note", "content", "body".
        id: the field with a document's id; by default "id" where there is one, else the content names it.
        unit: the field with the id of the one a document belongs to; by default each document is its own unit, and
            documents with the same id are one.

    Raises:
        FileMissing, FileEmpty, FileFormat, MissingExtra, BadOption: at once.
        FieldMissing, UnitMissing, BadLine: at once for the first document, for others when they are reached:
            `check` and `Spool.build` reach them all before anything is spent.
    """
    path = Path(path)
    if not path.exists():
        raise FileMissing(path)
    if path.is_dir() or path.suffix.lower() in (*TEXTS, PDF):
        for option, value in (("--text-field", text), ("--id-field", id), ("--unit", unit)):
            if value is not None:
                raise BadOption(option, value, "left out for a folder or a plain text: these have no fields")
        return _opened(path, Folder(path))
    kind = _ROWS.get(path.suffix.lower())
    if kind is None:
        known = ", ".join([*_ROWS, *TEXTS, PDF])
        raise FileFormat(path, f"its name ends in none of {known}")
    collection = kind(path, Fields(text=text, id=id, unit=unit))
    next(iter(_opened(path, collection)))
    return collection


def check(collection: Collection) -> None:
    """Go through all documents, so that every error of a file, field or line is found before anything is spent."""
    for _ in collection:
        pass


def _opened(path: Path, collection: Collection) -> Collection:
    """Return the collection if its file can be opened and holds something."""
    if path.is_file():
        try:
            with path.open("rb") as file:
                first = file.read(1)
        except OSError:
            raise FileFormat(path, "this user may not open it") from None
        if not first:
            raise FileEmpty(path)
    return collection
