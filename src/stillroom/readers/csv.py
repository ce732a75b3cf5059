"""Tables as text: CSV and TSV with a header line."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stillroom.documents import Document
from stillroom.errors import BadLine, FileEmpty, FileFormat
from stillroom.readers.fields import Fields

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Table:
    """The documents of a CSV or TSV file whose first line names the columns.

    A .tsv is parted by tabs; a .csv by commas, or by ; or tabs where its header holds these and no comma. Broken
    UTF-8 is replaced. A row with too many or too few cells, or an open quote, is an error: it would shift a text
    into another's column.
    """

    path: Path
    fields: Fields

    def __iter__(self) -> Iterator[Document]:
        csv.field_size_limit(sys.maxsize)  # a cell may hold a whole document; the limit is one of the process
        with self.path.open("rb") as start:
            if start.read(2) in _UTF16:
                raise FileFormat(self.path, "it is in UTF-16; save it as UTF-8")
        found = False
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = csv.reader(file, delimiter=self._delimiter(), strict=True)
            header: list[str] | None = None
            while True:
                line = rows.line_num + 1
                try:
                    row = next(rows)
                except StopIteration:
                    break
                except csv.Error:
                    raise BadLine(self.path, line, "a quote is not closed, or text follows a closed one") from None
                if not row:
                    continue
                if header is None:
                    header = [name.strip() for name in row]
                    if len(set(header)) != len(header):
                        raise BadLine(self.path, line, "two columns have the same name")
                    continue
                if len(row) != len(header):
                    raise BadLine(self.path, line, f"{len(row)} cells where the header names {len(header)}")
                found = True
                yield self.fields.document(dict(zip(header, row, strict=True)), self.path, line)
        if not found:
            raise FileEmpty(self.path)

    def _delimiter(self) -> str:
        if self.path.suffix.lower() == ".tsv":
            return "\t"
        with self.path.open(encoding="utf-8-sig", errors="replace") as file:
            header = file.readline(1 << 16)
        return next((mark for mark in (",", ";", "\t") if mark in header), ",")
