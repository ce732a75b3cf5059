"""From documents to records: every text, metadata included, is read once; from then on its template is shown alone."""

from __future__ import annotations

import hashlib
import multiprocessing
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from importlib.util import find_spec
from itertools import islice
from typing import Protocol

from stillroom.documents import Document
from stillroom.errors import MissingExtra, ProcessesLost
from stillroom.guard.build import build
from stillroom.guard.categories import category
from stillroom.guard.detect.presidio import MODEL
from stillroom.guard.document import found_together, readable_name, shown_names
from stillroom.guard.memo import Subject
from stillroom.guard.policy import Policy
from stillroom.guard.records import Record, Store, cut
from stillroom.guard.spans import Span
from stillroom.guard.template import Numbers, Template, templates
from stillroom.readers import unit_id
from stillroom.text import normalise

Answer = Callable[[], list[list[Span]]]
"""The spans of texts, waited for when called."""

LOT = 32
"""Documents that are read and stored at a time."""

_FORGED = re.compile(r"\[([A-Z_]+(?:_\d+)?)\]")
"""What looks like a slot's name in a document would later be taken for one."""


class Finder(Protocol):
    """Finds what may identify, as `detect.union.Union` does."""

    def find_all(self, texts: Sequence[str]) -> list[list[Span]]: ...


def digest(policy: Policy) -> str:
    """Return what tells one way of reading from another: the sha256 of the policy, and of detectors and their lists."""
    return hashlib.sha256(policy.model_dump_json().encode() + _detectors()).hexdigest()


@cache
def _detectors() -> bytes:
    parts = sorted(files("stillroom.guard.detect").iterdir(), key=lambda part: part.name)
    read = [part.read_bytes() for part in parts if part.name.endswith((".py", ".txt"))]
    return b"".join(hashlib.sha256(each).digest() for each in read)


def subject_of(document: Document) -> Subject:
    """Return whom a document's draws are about: its unit, or the document alone where it has no other unit."""
    unit = unit_id(document.unit)
    return Subject(document.id, unit=False) if unit == unit_id(document.id) else Subject(unit)


def ingest(documents: Iterable[Document], store: Store, policy: Policy, finder: Finder) -> Iterator[Record]:
    """Read documents, keep their records, and yield them. A document with the same id and unit takes the other's place.

    Args:
        finder: of the policy; what it does wrong withholds a sentence, and no text stops the reading.
    """
    rest = iter(documents)
    begun: deque[tuple[_Lot, Answer]] = deque()
    ahead = finder.ahead if isinstance(finder, _Shared) else 0
    failed: BaseException | None = None
    while True:
        try:
            while failed is None and len(begun) <= ahead and (some := list(islice(rest, LOT))):
                lot = _Lot.of(some)
                begun.append((lot, _ask(finder, lot.texts)))
        except Exception as wrong:  # what was begun before is kept, however many processes there are
            failed = wrong
        if not begun:
            if failed is not None:
                raise failed
            return
        lot, answer = begun.popleft()
        records = lot.records(answer(), store, policy)
        store.put(records)
        yield from records


def read(documents: Sequence[Document], store: Store, policy: Policy, finder: Finder) -> list[Record]:
    """Return the records of documents, without keeping them."""
    lot = _Lot.of(documents)
    return lot.records(finder.find_all(lot.texts), store, policy)


@dataclass(frozen=True)
class _Lot:
    """Documents, and what is to be read of them: by document its text and its metadata, then the names of fields.

    Names of fields are the same in most documents: each is read once.
    """

    documents: Sequence[Document]
    plains: list[list[str]]
    fields: list[str]

    @classmethod
    def of(cls, documents: Sequence[Document]) -> _Lot:
        plains = [[_plain(text) for text in (document.text, *document.metadata.values())] for document in documents]
        return cls(documents, plains, list(dict.fromkeys(name for document in documents for name in document.metadata)))

    @property
    def texts(self) -> list[str]:
        return [*(text for each in self.plains for text in each), *map(readable_name, self.fields)]

    def records(self, answer: Sequence[Sequence[Span]], store: Store, policy: Policy) -> list[Record]:
        """Return the records, by the spans of each of `texts`."""
        found = iter(answer)
        spans = [[next(found) for _ in each] for each in self.plains]
        private = {
            name
            for name, each in zip(self.fields, found, strict=True)
            if any(category(span.category).private for span in each)
        }
        return [
            _record(document, each, found_together(document, each, own, policy), private, store, policy)
            for document, each, own in zip(self.documents, self.plains, spans, strict=True)
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
    # With its length, so that no other pair of unit and id reads the same.
    name = store.name(f"{len(document.unit)}:{document.unit}\n{document.id}")
    return Record(name, subject_of(document), digest(policy), passages, dict(zip(fields, metadata, strict=True)))


def _plain(text: str) -> str:
    return _FORGED.sub(r"(\1)", normalise(text))


# Several processes


@contextmanager
def finding(policy: Policy, processes: int) -> Iterator[Finder]:
    """Give a finder of a policy that shares its work among so many processes, each with detectors of its own."""
    if any(find_spec(name) is None for name in ("presidio_analyzer", "spacy", MODEL)):
        raise MissingExtra("finding names in text", "guard")
    # Started anew and not forked: the threads of this process would not come along.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _start, (policy.model_dump_json(),))
    try:
        yield _Shared(pool, processes)
    except BrokenProcessPool as ended:
        raise ProcessesLost(processes) from ended
    finally:
        pool.shutdown(cancel_futures=True)


class _Shared:
    """Processes that read lots of texts, each a whole one, while this process stores the lots before."""

    def __init__(self, pool: ProcessPoolExecutor, processes: int) -> None:
        self._pool = pool
        self.ahead = 2 * processes
        """Lots that are begun before the one that is waited for is there: so many documents are in memory at once."""

    def begin(self, texts: Sequence[str]) -> Answer:
        return self._pool.submit(_find, texts).result

    def find_all(self, texts: Sequence[str]) -> list[list[Span]]:
        return self.begin(texts)()


def _ask(finder: Finder, texts: Sequence[str]) -> Answer:
    return finder.begin(texts) if isinstance(finder, _Shared) else partial(finder.find_all, texts)


_FINDER: list[Finder] = []


def _start(policy: str) -> None:
    _FINDER.append(build(Policy.model_validate_json(policy)))


def _find(texts: Sequence[str]) -> list[list[Span]]:
    return _FINDER[0].find_all(texts)
