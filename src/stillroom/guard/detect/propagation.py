"""Values found once are found everywhere in their document: a name in a list, in small letters, without its title."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stillroom import lexicon
from stillroom.guard.spans import Span
from stillroom.text import words, words_with_spans

NAME = "propagation"

_WHOLE = frozenset(
    [
        "person",
        "organisation",
        "address",
        "city",
        "username",
        "account",
        "record_number",
        "licence",
        "national_id",
        "email",
        "phone",
        "unknown",
        "password",
        "diagnosis",
        "drug",
        "treatment",
        "nationality",
        "profession",
    ]
)  # fmt: skip
_PARTS = frozenset({"person"})
_COMMON = 4.5
"""Public frequency from which a part of a name is propagated only where it has a capital too ("Will", "Mark"), unless
the text has none."""

_NAMES_TOO = frozenset({"will", "may"})
"""Stop words that are names as well."""

_LONGEST = 12
"""Words of the longest value that is looked for."""


Values = dict[str, dict[int, dict[tuple[str, ...], Span]]]
"""What is looked for: by first word and number of words, the words of a value and the span that it comes from."""


def propagated(plain: str, spans: Sequence[Span]) -> list[Span]:
    """Return the further places of the values that `spans` cover, as whole words in whatever case.

    Args:
        plain: a normalised document.
        spans: what was found in it, not overlapping, in order.
    """
    return spread(plain, spans, values_in([(plain, spans)]))


def values_in(texts: Iterable[tuple[str, Sequence[Span]]]) -> Values:
    """Return what is to be found everywhere, of normalised texts with what was found in each."""
    values: Values = {}
    for plain, spans in texts:
        for span in spans:
            if span.category in _WHOLE:
                for parts in _forms(plain[span.start : span.end], span.category):
                    values.setdefault(parts[0], {}).setdefault(len(parts), {}).setdefault(parts, span)
    return values


def spread(plain: str, spans: Sequence[Span], values: Values) -> list[Span]:
    """Return the places of values in a normalised text where none of its spans is yet; these in order."""
    if not values:
        return []
    here = list(words_with_spans(plain))
    uncased = not any(map(str.isupper, plain))
    starts, number = [span.start for span in spans], 0
    found = []
    for i, word in enumerate(here):
        while number < len(starts) and spans[number].end <= word.start:
            number += 1
        covered = number < len(starts) and spans[number].start <= word.start and word.end <= spans[number].end
        if covered or word.text not in values:
            continue
        for length, known in values[word.text].items():
            parts = tuple(w.text for w in here[i : i + length])
            span = known.get(parts)
            if span is not None and ((uncased and len(word.text) > 2) or means_it(parts, plain, word.start)):
                found.append(Span(word.start, here[i + length - 1].end, span.category, NAME, span.score))
    return found


def _forms(surface: str, category: str) -> list[tuple[str, ...]]:
    parts = tuple(words(surface))[:_LONGEST]
    if not parts:
        return []
    least = 2 if category in _PARTS else 3  # "Ma", "Oh": looked for with a capital alone
    forms = [parts] if len(parts) > 1 or len(parts[0]) >= least else []
    if category in _PARTS and len(parts) > 1:
        forms += [
            (part,) for part in parts if len(part) >= least and (part in _NAMES_TOO or not lexicon.is_stopword(part))
        ]
    return forms


def means_it(parts: tuple[str, ...], plain: str, start: int) -> bool:
    """Say whether a place is the value and not an ordinary word that looks alike."""
    if len(parts) > 1 or plain[start].isupper():
        return True
    return len(parts[0]) > 2 and lexicon.zipf(parts[0]) < _COMMON
