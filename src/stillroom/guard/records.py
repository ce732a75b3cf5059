"""What is kept of a document: templates that may be searched and shown, and values that may not, in the vault."""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from stillroom.guard.memo import Subject
from stillroom.guard.template import Slot, Template
from stillroom.guard.vault import Vault
from stillroom.text import sentence_spans

PASSAGE_WORDS = 120
"""Blank-separated words of a passage, about: it ends with the sentence in which they are reached."""


@dataclass(frozen=True)
class Kept:
    """A passage as it may be searched, ranked and shown: its template. Nothing in it is a value.

    Attributes:
        name: which passage it is; a keyed digest of the document's id with the passage's number.
        text: the template, such as "[PERSON_1] was seen on [DATE_1] for …".
        metadata: templates of the document's metadata, by field.
    """

    name: str
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """A document in the vault: private.

    Attributes:
        name: a keyed digest of its id.
        subject: whom its draws are about.
        policy: digest of the policy that it was read by.
        passages: templates with their values, in order.
        metadata: the same of each field.
    """

    name: str
    subject: Subject = field(repr=False)
    policy: str
    passages: tuple[Template, ...]
    metadata: Mapping[str, Template]

    def kept(self) -> list[Kept]:
        """Return the passages as they may be shown."""
        metadata = {name: template.text for name, template in self.metadata.items()}
        return [Kept(f"{self.name}-{i}", each.text, metadata) for i, each in enumerate(self.passages, 1)]

    def whole(self, name: str) -> Record:
        """Return it with a single passage, by another name: one that is not ingested comes at the length it has."""
        return Record(name, self.subject, self.policy, (joined(self.passages),), self.metadata)

    def plain(self) -> dict[str, Any]:
        """Return what JSON can say of it."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Record:
        """Return the record that `plain` told."""
        return cls(
            plain["name"],
            Subject(**plain["subject"]),
            plain["policy"],
            tuple(map(_template, plain["passages"])),
            {name: _template(each) for name, each in plain["metadata"].items()},
        )


class Store(Protocol):
    """Where records are kept."""

    def name(self, document: str) -> str:
        """Return the name of a document, which tells nothing of its id."""
        ...

    def put(self, records: Sequence[Record]) -> None: ...

    def get(self, name: str) -> Record | None: ...

    def __iter__(self) -> Iterator[Record]: ...


class VaultStore:
    """Records in a vault, encrypted."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault

    def name(self, document: str) -> str:
        return self.vault.name(document)

    def put(self, records: Sequence[Record]) -> None:
        self.vault.put({record.name: record.plain() for record in records})

    def get(self, name: str) -> Record | None:
        held = self.vault.get(name)
        return None if held is None else Record.of(held)

    def __iter__(self) -> Iterator[Record]:
        """Yield all records, by name: an order that no file's order and no value goes into."""
        yield from sorted(map(Record.of, self.vault), key=lambda record: record.name)


class MemoryStore:
    """Records in this process alone, at most `most`: the one that was not used for longest goes first."""

    def __init__(self, most: int | None = None) -> None:
        self._key, self._most = secrets.token_bytes(32), most
        self._records: OrderedDict[str, Record] = OrderedDict()

    def name(self, document: str) -> str:
        return hmac.digest(self._key, document.encode("utf-8", "surrogatepass"), "sha256").hex()[:20]

    def put(self, records: Sequence[Record]) -> None:
        for record in records:
            self._records[record.name] = record
            self._records.move_to_end(record.name)
        while self._most is not None and len(self._records) > self._most:
            self._records.popitem(last=False)

    def get(self, name: str) -> Record | None:
        if name in self._records:
            self._records.move_to_end(name)
        return self._records.get(name)

    def __iter__(self) -> Iterator[Record]:
        yield from sorted(self._records.values(), key=lambda record: record.name)


def seen(template: Template, raw: Collection[str]) -> str:
    """Return the template's text with the values of the categories `raw` as they stand."""
    return template.fill(lambda slot: slot.surface if slot.category in raw else slot.name)


def cut(template: Template, words: int = PASSAGE_WORDS) -> tuple[Template, ...]:
    """Return a template in passages of about `words` words, ends of sentences between them. No value goes into it."""
    parts: list[tuple[int, int]] = []
    count = 0
    for start, end in sentence_spans(template.text):
        # A slot's name holds no end of a sentence, so none is cut.
        if parts and count < words:
            parts[-1] = (parts[-1][0], end)
        else:
            parts.append((start, end))
            count = 0
        count += len(template.text[start:end].split())
    return tuple(_slice(template, start, end) for start, end in parts)


def joined(passages: Sequence[Template]) -> Template:
    """Return the passages that `cut` made of a template as one, a blank between them."""
    parts: list[str] = []
    slots: list[Slot] = []
    at = 0
    for each in passages:
        slots += _moved(each.slots, at)
        parts.append(each.text)
        at += len(each.text) + 1
    return Template(" ".join(parts), tuple(slots))


def _moved(slots: Iterable[Slot], by: int) -> list[Slot]:
    return [replace(slot, start=slot.start + by, end=slot.end + by) for slot in slots]


def _slice(template: Template, start: int, end: int) -> Template:
    slots = tuple(_moved((slot for slot in template.slots if start <= slot.start and slot.end <= end), -start))
    return Template(template.text[start:end], slots)


def _template(plain: Mapping[str, Any]) -> Template:
    return Template(plain["text"], tuple(Slot(**slot) for slot in plain["slots"]))
