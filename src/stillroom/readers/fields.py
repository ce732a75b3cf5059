"""From one row of a file to one document: which field is the text, the id, the unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stillroom.documents import Document, content_id
from stillroom.errors import BadLine, FieldMissing, UnitMissing
from stillroom.text import normalise

TEXT_FIELDS = ("note", "content", "body")
"""Names of the text field that are found without being told, after "text"; only if a row has exactly one of them."""

_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.(\d*?)0*)?", re.ASCII)
_FIELD_NAME = re.compile(r"[A-Za-z_][\w.-]{0,29}")
_LONGEST_NUMBER, _SHOWN = 40, 12
_USUAL = {"id", "text", "note", "notes", "content", "body", "title", "date", "subject", "message", "unit"}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Fields:
    """Names of the fields of a row; None stands for the default.

    Attributes:
        text: default "text", else the only one of "note", "content", "body" that the row has.
        id: default "id" where a row has it, else the document is named by its content.
        unit: default none: each document is its own unit.
    """

    text: str | None = None
    id: str | None = None
    unit: str | None = None

    def document(self, row: Mapping[str, object], path: Path, line: int) -> Document:
        """Return the document of one row. What it holds depends on this row alone.

        A text that is null is empty. Numbers are texts too. Other fields with a single value become metadata.
        Raises FieldMissing, UnitMissing, and BadLine for a list or object where one value should be.
        """
        text_field = self._text_field(row, path, line)
        value = _value(row, text_field, path, line)
        text = _SURROGATE.sub("\ufffd", value or "")
        id_field = self.id or "id"
        if self.id is not None and self.id not in row:
            raise FieldMissing(path, line, self.id, "--id-field", shown(row))
        name = document_id(_value(row, id_field, path, line) or "") if id_field in row else ""
        name = name or content_id(text)
        if self.unit is None:
            unit = unit_id(name)
        else:
            unit = unit_id(_value(row, self.unit, path, line) or "") if self.unit in row else ""
            if not unit:
                raise UnitMissing(path, line, self.unit, () if self.unit in row else shown(row))
        taken = (text_field, id_field, self.unit)
        rest = {k: plain(v) for k, v in row.items() if k not in taken and not isinstance(v, (list, dict))}
        return Document(id=name, text=text, unit=unit, metadata={k: v for k, v in rest.items() if v is not None})

    def _text_field(self, row: Mapping[str, object], path: Path, line: int) -> str:
        if self.text is not None:
            found = [self.text] if self.text in row else []
        else:
            found = ["text"] if "text" in row else [name for name in TEXT_FIELDS if name in row]
        if len(found) != 1:
            raise FieldMissing(path, line, self.text or "text", "--text-field", shown(row))
        return found[0]


def unit_id(value: str) -> str:
    """Return the one spelling of a unit id.

    A person whose id is written in two ways would silently be two units and get half of the protection; two persons
    counted as one lose nothing but a little utility. So ids are compared in NFKC without invisible characters, blanks
    single and none at the ends, upper and lower case alike; and numbers by value: 7, 7.0, "7", "07" and "7.00" are
    one unit, as they come from JSON, a spreadsheet or a CSV of the same column.
    """
    name = document_id(document_id(value).casefold())  # folding can undo NFKC
    number = _NUMBER.fullmatch(name) if len(name) <= _LONGEST_NUMBER else None
    if number is None:
        return name
    sign, whole, rest = number.groups()
    size = f"{whole}.{rest}" if rest else whole
    return f"-{size}" if sign == "-" and size != "0" else size


def plain(value: object) -> str | None:
    """Return the plain string of a single value; None for null and not-a-number."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _SURROGATE.sub("\ufffd", str(value))


def shown(names: Iterable[str]) -> list[str]:
    """Return the field names that an error may show.

    In a CSV without a header the first line is a document, and a JSON key may be a person's name: so it is all or
    nothing, and only where the names look like names of fields and one of them is a usual one.
    """
    have = list(names)
    usual = any(name.lower() in _USUAL or name.lower().endswith("_id") for name in have)
    return have[:_SHOWN] if usual and all(map(is_field_name, have)) else []


def is_field_name(name: str) -> bool:
    """Say whether a name looks like that of a field: up to 30 letters, digits and signs in a row, no blank."""
    return _FIELD_NAME.fullmatch(name) is not None


def _value(row: Mapping[str, object], field: str, path: Path, line: int) -> str | None:
    value = row[field]
    if isinstance(value, (list, dict)):
        raise BadLine(path, line, f"the field {field!r} holds several values where one is needed")
    return plain(value)


def document_id(value: str) -> str:
    """Return the one spelling of a document's id: NFKC without invisible characters, blanks single."""
    return " ".join(normalise(value).split())
