"""One document as a whole: what its metadata and its ids tell of its text, what its text tells of them (rule 35)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stillroom import lexicon
from stillroom.documents import Document
from stillroom.guard.build import order_of
from stillroom.guard.categories import category
from stillroom.guard.detect.lists import names
from stillroom.guard.detect.propagation import means_it, spread, values_in
from stillroom.guard.detect.union import resolve
from stillroom.guard.policy import Policy
from stillroom.guard.spans import Span
from stillroom.readers import unit_id
from stillroom.readers.fields import is_field_name

_OF_NAMES = re.compile(
    r"(?:^|[_.\s-])(?:patient|name|firstname|lastname|surname|fullname|client|customer|employee|member|resident|doctor"
    r"|physician|nurse|therapist|author|contact|relative|spouse|mother|father|guardian|judge|lawyer|manager)"
    r"(?:[_.\s-]?(?:name|1|2))?$",
    re.IGNORECASE,
)
"""Fields in which a name stands, whatever it looks like ("Will Price")."""

_USUAL = frozenset(["doc_type", "icd10", "lang", "mrn", "page", "room", "ts", "uuid", "ward"])
"""Names of fields that look like a name, a place or a number to a detector."""

_NAMING = frozenset({"person", "organisation", "unknown", "city"})
_TOKEN = re.compile(r"[^\W_]+")
_LONGEST_NAME, _LONGEST_ID = 5, 12
"""Words of a value that may be a name as a whole, and of an id that is looked for."""

_LEAST_DIGITS = 4


def shown_names(fields: Sequence[str], private: Iterable[str]) -> list[str]:
    """Return the names under which fields are shown: "field_2" for the second where its own may be private.

    Args:
        private: names in which a detector found something; what does not look like the name of a field is private too.
    """
    hidden = frozenset(private) - _USUAL
    kept = {name for name in fields if is_field_name(name) and name not in hidden}
    shown = []
    for number, name in enumerate(fields, 1):
        free = f"field_{number}"
        while free in kept:
            free += "_"
        shown.append(name if name in kept else free)
    return shown


def readable_name(field: str) -> str:
    """Return the name of a field as a detector reads it: its words apart ("patient name" for patientName)."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", field)
    return re.sub(r"[_.-]+", " ", apart).strip()


def found_together(
    document: Document, plains: Sequence[str], found: Sequence[Sequence[Span]], policy: Policy
) -> list[list[Span]]:
    """Return the spans of a document's text and of its metadata, each with what the others and its ids add.

    Args:
        plains: normalised: the text, then each field.
        found: in each of them, as `detect.union.Union` returns it.
    """
    own = [list(found[0])]
    for name, plain, spans in zip(document.metadata, plains[1:], found[1:], strict=True):
        own.append(_of_field(name, plain, spans, document))
    ids = _Ids(document)
    more = [
        [id for id in ids.places(plain) if not _protected(id, spans, policy)]
        for plain, spans in zip(plains, own, strict=True)
    ]
    if len(plains) > 1:
        values = values_in(zip(plains, own, strict=True))
        more = [each + spread(plain, spans, values) for each, plain, spans in zip(more, plains, own, strict=True)]
    return [
        resolve(plain, [*spans, *each], order_of(policy)) if each else spans
        for plain, spans, each in zip(plains, own, more, strict=True)
    ]


def _protected(place: Span, spans: Iterable[Span], policy: Policy) -> bool:
    """Say whether a place lies in a span that is replaced anyway: an id in it needs no word of its own."""
    return any(
        span.start <= place.start
        and place.end <= span.end
        and category(span.category).private
        and policy.loosest(span.category) != "raw"
        for span in spans
    )


def _of_field(name: str, plain: str, spans: Sequence[Span], document: Document) -> list[Span]:
    """Take a value that is an id, or a name, as a whole."""
    if plain and unit_id(plain) in (unit_id(document.id), unit_id(document.unit)):
        return [Span(0, len(plain), "record_number", "ids", 1.0)]
    tokens = list(_TOKEN.finditer(plain))
    if not 0 < len(tokens) <= _LONGEST_NAME or any(map(str.isdigit, plain)):
        return list(spans)
    taken = bytearray(len(plain))
    for span in spans:
        if category(span.category).private:
            taken[span.start : span.end] = b"\x01" * (span.end - span.start)
    left = [token for token in tokens if not all(taken[token.start() : token.end()])]
    partly = any(span.category in _NAMING for span in spans) and all(token[0][0].isupper() for token in left)
    if left and (partly or _OF_NAMES.search(name)):
        return [Span(tokens[0].start(), tokens[-1].end(), "person", "fields", 1.0)]
    return list(spans)


class _Ids:
    """Finds the ids of a document and its unit in a text; and the parts of one that is made of words, as a name is."""

    def __init__(self, document: Document) -> None:
        self._wholes: list[re.Pattern[str]] = []
        self._parts: set[str] = set()
        for id in {unit_id(document.id), unit_id(document.unit)}:
            tokens = _TOKEN.findall(id)
            if not 0 < len(tokens) <= _LONGEST_ID:
                continue
            length = sum(map(len, tokens))
            if length > 2 and not (length < _LEAST_DIGITS and "".join(tokens).isdigit()):
                inner = r"[\W_]{1,3}".join(map(re.escape, tokens))
                self._wholes.append(re.compile(rf"(?<![^\W_]){inner}(?![^\W_])", re.IGNORECASE))
            if len(tokens) > 1 and all(map(str.isalpha, tokens)):
                self._parts.update(part for part in tokens if len(part) > 1 and not lexicon.is_stopword(part))

    def places(self, plain: str) -> list[Span]:
        found = [match.span() for whole in self._wholes for match in whole.finditer(plain)]
        if self._parts:
            for match in _TOKEN.finditer(plain):
                form = match[0].casefold()
                sure = form in names() and len(form) > 2
                if form in self._parts and (sure or means_it((form,), plain, match.start())):
                    found.append(match.span())
        return [Span(start, end, "record_number", "ids", 1.0) for start, end in found]
