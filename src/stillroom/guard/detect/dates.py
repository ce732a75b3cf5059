"""What a date is and what it is not: guesses about its digits and words, and spans of time that tell an age."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from stillroom.guard.canonical import canonical, date_of
from stillroom.guard.spans import Span
from stillroom.lexicon import is_stopword

_GUESSES = frozenset({"phone", "address", "number", "postcode", "person", "organisation", "city", "time"})
"""What other detectors take the digits and words of a date for. What is labelled stays what it is."""

_CHECKED = "identifiers"
"""The detector whose check digits one date in ten has by chance."""

_LONGEST = 40
_MONTH = re.compile(r"\d{4}-\d{2}")
_BEFORE = re.compile(r"[\w/-]|\w[.]")
_AFTER = re.compile(r"[\w/-]|[.]\d|[ ]\d")
_WORD = re.compile(r"[^\W_]+")
_OF_AGE = re.compile(
    r"(?:[\s-]|\b(?:years?|months?|weeks?|days?|yrs?|old|of|age|aged|a|an|the|about|almost|nearly|just)\b)*"
)


def untangled(sentence: str, spans: Sequence[Span]) -> list[Span]:
    """Return the spans without what they say of dates and ages by mistake.

    A whole date (day, month and year that the calendar has, or a month by name with its year, and no part of a longer
    number) is a date: of a phone number or an address that is seen in it, only what stands outside is kept. A "date"
    such as "47 years old" that says no more than an age beside it is dropped.
    """
    whole = [span for span in spans if span.category == "date" and _whole(sentence, span)]
    ages = [span for span in spans if span.category == "age"]
    found: list[Span] = []
    for span in spans:
        guess = span.category in _GUESSES or (span.category == "national_id" and span.detector == _CHECKED)
        if guess and whole:
            found += _outside(sentence, span, whole)
        elif not (span.category == "date" and ages and _told(sentence, span, ages)):
            found.append(span)
    return found


def _whole(sentence: str, span: Span) -> bool:
    surface = sentence[span.start : span.end]
    value = canonical("date", surface) if len(surface) <= _LONGEST else ""
    if date_of(value) is None and _MONTH.fullmatch(value) is None:
        return False
    before, after = sentence[max(0, span.start - 2) : span.start], sentence[span.end : span.end + 2]
    return not (_BEFORE.search(before[-1:]) or _BEFORE.fullmatch(before) or _AFTER.match(after))


def _outside(sentence: str, span: Span, dates: Sequence[Span]) -> list[Span]:
    parts = [span]
    for date in dates:
        parts = [
            rest
            for part in parts
            for start, end in ((part.start, min(part.end, date.start)), (max(part.start, date.end), part.end))
            if (rest := _inked(sentence, part, start, end)) is not None
        ]
    return parts


def _inked(sentence: str, span: Span, start: int, end: int) -> Span | None:
    """Return the part of a span from its first to its last letter or digit; None for words such as "On" alone."""
    words = list(_WORD.finditer(sentence, start, max(start, end)))
    if not words or (end - start < span.end - span.start and all(is_stopword(word[0].lower()) for word in words)):
        return None
    if (start, end) == (span.start, span.end):
        return span
    return replace(span, start=words[0].start(), end=words[-1].end())


def _told(sentence: str, date: Span, ages: Sequence[Span]) -> bool:
    for age in ages:
        if date.start <= age.start and age.end <= date.end:
            rest = f"{sentence[date.start : age.start]} {sentence[age.end : date.end]}"
            return _OF_AGE.fullmatch(rest.lower()) is not None
    return False
