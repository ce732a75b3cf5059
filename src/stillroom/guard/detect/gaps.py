"""What stands between or beside the parts of one name belongs to it: initials, particles, the code of a state."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stillroom import lexicon
from stillroom.guard.spans import Span

NAME = "gaps"

_OTHER = frozenset(
    [
        "dose",
        "laboratory",
        "drug",
        "diagnosis",
        "treatment",
        "language_unknown",
        "age",
        "time",
        "nationality",
        "title",
        "url",
        "email",
    ]
)  # fmt: skip
_JOINED = frozenset({"person", "organisation", "address", "city", "unknown", "number"})
_LONGEST, _MOST = 30, 4
_RARE = 3.5
_ANY = re.compile(r"[^\W_]+")
_PARTICLES = frozenset(
    [
        "de",
        "del",
        "della",
        "da",
        "do",
        "dos",
        "di",
        "du",
        "la",
        "le",
        "el",
        "y",
        "e",
        "i",
        "van",
        "von",
        "der",
        "den",
        "ter",
        "ten",
        "st",
        "av",
        "al",
        "bin",
        "ibn",
    ]
)  # fmt: skip
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
        if span.category in _OTHER:
            continue
        gap_end = following.start if following else len(plain)
        gap = plain[span.end : gap_end]
        if (
            following
            and following.category not in _OTHER
            and len(gap.split()) <= 4
            and len(gap.strip()) <= _LONGEST
            and _belongs(gap)
        ):
            found[-1] = Span(span.start, span.end + len(gap.rstrip()), span.category, span.detector, span.score)
        elif span.category in ("person", "unknown"):
            initial = _INITIAL.match(plain, span.end, gap_end)
            if initial and initial[1].isupper() and initial[1] != "I":
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
    """Say whether what stands between two names is part of them.

    That is particles, codes in capitals, short words that English does not use there, rare words; and, over a line
    break or a comma, words with a capital.
    """
    between = _ANY.findall(gap)
    if not between or len(gap.split()) > _MOST or len(gap.strip()) > _LONGEST or any(c in ";!?=" for c in gap):
        return False
    apart = "\n" in gap or "," in gap
    return all(_part(word, apart) for word in between)


def _part(word: str, apart: bool) -> bool:
    form = word.lower()
    if form in _PARTICLES or len(word) == 1 or (word.isupper() and len(word) <= 3):
        return True
    if lexicon.is_stopword(form):
        return False
    return len(word) <= 3 or lexicon.zipf(form) < _RARE or (apart and word[0].isupper())
