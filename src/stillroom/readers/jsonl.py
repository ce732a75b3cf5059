"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stillroom.documents import Document
from stillroom.errors import BadLine, FileEmpty, FileFormat
from stillroom.readers.fields import Fields

_BOM, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class JsonLines:
    """The documents of a file with one JSON object a line; empty lines are skipped, broken UTF-8 is replaced."""

    path: Path
    fields: Fields

    def __iter__(self) -> Iterator[Document]:
        found = False
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    if line.startswith(_UTF16):
                        raise FileFormat(self.path, "it is in UTF-16; save it as UTF-8")
                    line = line.removeprefix(_BOM)
                    if line.lstrip().startswith(b"["):
                        raise FileFormat(self.path, "it is one JSON array; write one object a line")
                if line.strip():
                    found = True
                    yield self.fields.document(self._row(line, number), self.path, number)
        if not found:
            raise FileEmpty(self.path)

    def _row(self, line: bytes, number: int) -> dict[str, object]:
        reason = "not one whole JSON object"
        try:
            row = json.loads(line.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            # The parser's own error carries the line: it is not passed on.
            raise BadLine(self.path, number, reason) from None
        if not isinstance(row, dict):
            raise BadLine(self.path, number, reason)
        return row
