"""Parquet files, by the extra `stillroom[parquet]`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillroom.documents import Document
from stillroom.errors import FileEmpty, FileFormat, MissingExtra
from stillroom.readers.fields import Fields

_ROWS = 256
"""Rows in memory at once: each may hold a long document."""


@dataclass(frozen=True)
class Parquet:
    """The documents of a Parquet file, row by row; a "line" in an error is the row, counted from 1.

    Strings with broken UTF-8 are repaired as in the other readers. Lists and structures are left out.
    """

    path: Path
    fields: Fields

    def __post_init__(self) -> None:
        _pyarrow()

    def __iter__(self) -> Iterator[Document]:
        pa, parquet = _pyarrow()
        number = 0
        try:
            with parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(batch_size=_ROWS):
                    columns = [_values(pa, column) for column in batch.columns]
                    for values in zip(*columns, strict=True):
                        number += 1
                        row = dict(zip(batch.schema.names, values, strict=True))
                        yield self.fields.document(row, self.path, number)
        except (pa.ArrowException, OSError):
            raise FileFormat(self.path, "it is not a whole Parquet file") from None
        if not number:
            raise FileEmpty(self.path)


def _values(pa: Any, column: Any) -> list[object]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    try:
        values: list[object] = column.to_pylist()
    except (ValueError, OverflowError):
        # A time that Python has none for, in an exception that quotes it: those cells are empty.
        values = [_value(cell) for cell in column]
    return values


def _value(cell: Any) -> object:
    try:
        value: object = cell.as_py()
    except (ValueError, OverflowError):
        return None
    return value


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("reading Parquet", "parquet") from None
    return pyarrow, pyarrow.parquet
