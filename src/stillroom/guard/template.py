"""A text with slots in place of what may identify: "[PERSON_1] was seen on [DATE_1] for …"."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from stillroom.guard.canonical import canonical, readable
from stillroom.guard.categories import CATEGORIES, category
from stillroom.guard.spans import Span
from stillroom.text import normalise


@dataclass(frozen=True)
class Slot:
    """One place of one value. What it holds is private and is left out of its repr.

    Args:
        category: name of the category.
        index: from 1; equal values of a category in a document have one index.
        start, end: where the slot's name stands in the template's text.
        detector, score: who found it, and how sure.
        canonical: one form of the value however it is written.
        surface: the value as it stands in the normalised text.
    """

    category: str
    index: int
    start: int
    end: int
    detector: str
    score: float
    canonical: str = field(repr=False)
    surface: str = field(repr=False)

    @property
    def name(self) -> str:
        """The slot as the template shows it, "[PERSON_1]"."""
        return f"[{self.category.upper()}_{self.index}]"


@dataclass(frozen=True)
class Template:
    """A text with slots, in order of place. The text may be indexed and shown; the slots' values may not."""

    text: str
    slots: tuple[Slot, ...]

    def fill(self, value: Callable[[Slot], str]) -> str:
        """Return the text with `value(slot)` in place of each slot."""
        parts, at = [], 0
        for slot in self.slots:
            parts += [self.text[at : slot.start], value(slot)]
            at = slot.end
        return "".join([*parts, self.text[at:]])


class Numbers:
    """Numbers the values of one document, so that all its passages call the same value by the same slot.

    A part of exactly one longer name is that person ("Schwarz" after "Sara Schwarz").
    """

    def __init__(self) -> None:
        self._index: dict[str, dict[str, int]] = {}
        self._people: dict[str, set[str]] = {}

    def add(self, name: str, value: str) -> tuple[str, int]:
        """Return the value that a value stands for, and its number within its category, from 1."""
        known = self._index.setdefault(name, {})
        if name == "person" and value not in known:
            value = self._longer(value) or value
            for part in value.split():
                self._people.setdefault(part, set()).add(value)
        return value, known.setdefault(value, len(known) + 1)

    def _longer(self, value: str) -> str | None:
        parts = set(value.split())
        longer: list[str] = []
        for other in min((self._people.get(part, set()) for part in parts), key=len, default=set()):
            longer += [other] if parts < set(other.split()) else []
            if len(longer) > 1:
                return None  # it may be either
        return longer[0] if longer else None


def templates(
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    *,
    numbers: Numbers | None = None,
    day_first: bool = False,
    noisy: Collection[str] = (),
) -> list[Template]:
    """Return one template for each passage of one document; they share their numbers.

    Args:
        texts: the passages.
        spans: those of each passage in coordinates of its `normalise`d form, in order, none overlapping, as
            `detect.union.Union` returns them. Spans of a category that is not private ("title") make no slot.
        numbers: those of the document so far, to go on with.
        day_first: how 3/4/1970 is read.
        noisy: categories of dates and numbers around whose values noise is drawn. A value that does not read as one
            is a "period" instead of a date, and "unknown" instead of a number: a draw around nothing would cost as
            much. It is so in the template, as what stands there instead must not depend on the value further.
    """
    numbers = Numbers() if numbers is None else numbers
    plains = [normalise(text) for text in texts]
    kept = [[span for span in each if category(span.category).private] for each in spans]
    values = [
        [canonical(span.category, plain[span.start : span.end], day_first=day_first) for span in each]
        for plain, each in zip(plains, kept, strict=True)
    ]
    kept = [
        [
            span
            if span.category not in noisy or readable(span.category, value)
            else replace(span, category=_unread(span))
            for span, value in zip(each, own, strict=True)
        ]
        for each, own in zip(kept, values, strict=True)
    ]
    _name_people(numbers, kept, values)
    return [_template(plain, each, own, numbers) for plain, each, own in zip(plains, kept, values, strict=True)]


def _unread(span: Span) -> str:
    return "period" if category(span.category).kind == "date" else "unknown"


def _name_people(numbers: Numbers, kept: Sequence[Sequence[Span]], values: Sequence[Sequence[str]]) -> None:
    """Number full names before their parts, in whatever order the text has them; ties go by place."""
    people = [
        value
        for spans, each in zip(kept, values, strict=True)
        for span, value in zip(spans, each, strict=True)
        if span.category == "person"
    ]
    for value in sorted(people, key=lambda value: -len(value.split())):
        numbers.add("person", value)


def _template(plain: str, spans: Sequence[Span], values: Sequence[str], numbers: Numbers) -> Template:
    parts: list[str] = []
    slots: list[Slot] = []
    at = length = 0
    for span, value in zip(spans, values, strict=True):
        if not at <= span.start < span.end <= len(plain):
            raise ValueError(f"the span from {span.start} to {span.end} overlaps, or is outside the text")
        name = span.category if span.category in CATEGORIES else "unknown"
        full, index = numbers.add(name, value)
        before, surface = plain[at : span.start], plain[span.start : span.end]
        start = length + len(before)
        end = start + len(name) + len(str(index)) + 3
        slots.append(Slot(name, index, start, end, span.detector, span.score, full, surface))
        parts += [before, slots[-1].name]
        at, length = span.end, end
    return Template("".join([*parts, plain[at:]]), tuple(slots))
