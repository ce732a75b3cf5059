"""From documents to records: every text, metadata included, is read once; from then on its template is shown alone."""

from __future__ import annotations

import hashlib
import multiprocessing
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Protocol

from stillroom.documents import Document
from stillroom.guard.build import build
from stillroom.guard.categories import category
from stillroom.guard.document import found_together, readable_name, shown_names
from stillroom.guard.memo import Subject
from stillroom.guard.policy import Policy
from stillroom.guard.records import Record, Store, cut
from stillroom.guard.spans import Span
from stillroom.guard.template import Numbers, Template, templates
from stillroom.readers import unit_id
from stillroom.text import normalise

LOT = 32
"""Documents that are read and stored at a time."""

_FORGED = re.compile(r"\[([A-Z_]+(?:_\d+)?)\]")
"""What looks like a slot's name in a document would later be taken for one."""


class Finder(Protocol):
    """Finds what may identify, as `detect.union.Union` does."""

    def find_all(self, texts: Sequence[str]) -> list[list[Span]]: ...


def digest(policy: Policy) -> str:
    """Return what tells one policy from another: its sha256."""
    return hashlib.sha256(policy.model_dump_json().encode()).hexdigest()


def subject_of(document: Document) -> Subject:
    """Return whom a document's draws are about: its unit, or the document alone where it has no other unit."""
    if document.unit in (document.id, unit_id(document.id)):
        return Subject(document.id, unit=False)
    return Subject(document.unit)


def ingest(documents: Iterable[Document], store: Store, policy: Policy, finder: Finder) -> Iterator[Record]:
    """Read documents, keep their records, and yield them. A document with the same id and unit takes the other's place.

    Args:
        finder: of the policy; what it does wrong withholds a sentence, and no text stops the reading.
    """
    rest = iter(documents)
    while lot := list(islice(rest, LOT)):
        records = read(lot, store, policy, finder)
        store.put(records)
        yield from records


def read(documents: Sequence[Document], store: Store, policy: Policy, finder: Finder) -> list[Record]:
    """Return the records of documents, without keeping them."""
    plains = [[_plain(text) for text in (document.text, *document.metadata.values())] for document in documents]
    # Names of fields are the same in most documents: each is read once.
    fields = list(dict.fromkeys(name for document in documents for name in document.metadata))
    texts = [text for each in plains for text in each]
    found = iter(finder.find_all([*texts, *map(readable_name, fields)]))
    spans = [[next(found) for _ in each] for each in plains]
    private = {
        name for name, each in zip(fields, found, strict=True) if any(category(span.category).private for span in each)
    }
    return [
        _record(document, each, found_together(document, each, own, policy), private, store, policy)
        for document, each, own in zip(documents, plains, spans, strict=True)
    ]


def _record(
    document: Document,
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    private: Collection[str],
    store: Store,
    policy: Policy,
) -> Record:
    noisy = [category for category, rule in policy.categories.items() if rule.mechanism == "laplace"]
    whole, *metadata = templates(texts, spans, numbers=Numbers(), day_first=policy.day_first, noisy=noisy)
    passages = cut(whole) or (Template("", ()),)
    fields = shown_names(list(document.metadata), private)
    name = store.name(f"{document.unit}\n{document.id}")
    return Record(name, subject_of(document), digest(policy), passages, dict(zip(fields, metadata, strict=True)))


def _plain(text: str) -> str:
    return _FORGED.sub(r"(\1)", normalise(text))


# Several processes


@contextmanager
def finding(policy: Policy, processes: int) -> Iterator[Finder]:
    """Give a finder of a policy that shares its work among so many processes, each with detectors of its own."""
    # Started anew and not forked: the threads of this process would not come along.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _start, (policy.model_dump_json(),)) as pool:
        yield _Shared(pool, processes)


class _Shared:
    def __init__(self, pool: ProcessPoolExecutor, processes: int) -> None:
        self._pool, self._processes = pool, processes

    def find_all(self, texts: Sequence[str]) -> list[list[Span]]:
        size = max(1, -(-len(texts) // self._processes))
        parts = [texts[first : first + size] for first in range(0, len(texts), size)]
        return [spans for part in self._pool.map(_find, parts) for spans in part]


_FINDER: list[Finder] = []


def _start(policy: str) -> None:
    _FINDER.append(build(Policy.model_validate_json(policy)))


def _find(texts: Sequence[str]) -> list[list[Span]]:
    return _FINDER[0].find_all(texts)
