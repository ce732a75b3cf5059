"""What stillroom reads: documents that belong to units."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Document:
    """One text with an id, the unit it belongs to, and metadata.

    The id comes from the data or from the content, never from a position in a file: removing one document
    must not rename another. The unit is what is protected; by default it is the document itself.
    """

    id: str
    text: str
    unit: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, id: str | None = None, unit: str | None = None, **metadata: str) -> Document:
        """Make a document; without an id it is named by its content, without a unit it is its own."""
        name = id if id is not None else content_id(text)
        return cls(id=name, text=text, unit=unit if unit is not None else name, metadata=metadata)


def content_id(text: str) -> str:
    """Return a name that depends on the text alone (hex, 32 digits)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@runtime_checkable
class Collection(Protocol):
    """Documents that can be read again from the start; reading streams."""

    def __iter__(self) -> Iterator[Document]: ...


@dataclass(frozen=True)
class Unit:
    """All documents of one unit, in an order that depends on them alone."""

    id: str
    documents: tuple[Document, ...]


class Documents:
    """A collection held in memory.

    Args:
        documents: read once at construction.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = tuple(documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)

    def __len__(self) -> int:
        return len(self._documents)
