"""What stands between or beside the parts of one name belongs to it: initials, particles, the code of a state."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stillroom import lexicon
from stillroom.guard.spans import Span

NAME = "gaps"

_NAMING = frozenset(
    {"person", "organisation", "address", "city", "country", "postcode", "unknown", "number", "date", "amount", "card"}
)
_JOINED = frozenset({"person", "organisation", "address", "city", "unknown", "number"})
_LONGEST = 14
_SHORT = re.compile(r"[^\W\d_]{1,3}")
_ANY = re.compile(r"[^\W_]+")
_PARTICLES = frozenset("de del della da do dos di du la le el y e i van von der den ter ten st av al bin ibn".split())
_INITIAL = re.compile(r"[\s.]{1,2}([^\W\d_])\b\.?(?!['’])")
_BETWEEN = re.compile(r"[\s.,'’&/()-]{0,4}")


def filled(plain: str, spans: Sequence[Span]) -> list[Span]:
    """Return spans that also cover short words between two naming spans, and initials beside one.

    Args:
        plain: a normalised text.
        spans: not overlapping, in order; so is what is returned.
    """
    found: list[Span] = []
    for i, span in enumerate(spans):
        following = spans[i + 1] if i + 1 < len(spans) else None
        found.append(span)
        if span.category not in _NAMING:
            continue
        gap_end = following.start if following else len(plain)
        gap = plain[span.end : gap_end]
        if following and following.category in _NAMING and len(gap) <= _LONGEST and _belongs(gap):
            found[-1] = Span(span.start, span.end + len(gap.rstrip()), span.category, span.detector, span.score)
        elif span.category in ("person", "unknown") and (initial := _INITIAL.match(plain, span.end, gap_end)):
            if initial[1].isupper() and initial[1] != "I":
                found[-1] = Span(span.start, initial.end(1), span.category, span.detector, span.score)
    return found


def joined(plain: str, spans: Sequence[Span]) -> list[Span]:
    """Return spans where neighbours of one category with nothing but signs between them are one."""
    found: list[Span] = []
    for span in spans:
        last = found[-1] if found else None
        if last and last.category == span.category and span.category in _JOINED:
            between = plain[last.end : span.start]
            if len(between) <= 4 and "," not in between and "\n\n" not in between and _BETWEEN.fullmatch(between):
                found[-1] = Span(last.start, span.end, span.category, last.detector, min(last.score, span.score))
                continue
        found.append(span)
    return found


def _belongs(gap: str) -> bool:
    """Say whether what stands between two names is part of them: short words that English does not use there."""
    between = _ANY.findall(gap)
    return bool(between) and all(
        _SHORT.fullmatch(w) and (w.lower() in _PARTICLES or len(w) == 1 or not lexicon.is_stopword(w.lower()))
        for w in between
    ) and not any(c in ":;!?=" for c in gap)
