"""The union of all detectors over a text: nothing that one of them finds is lost, nothing overlaps any more."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from stillroom.guard.categories import category
from stillroom.guard.detect.base import LONGEST_SENTENCE, Detector, watched
from stillroom.guard.detect.closedworld import ClosedWorld
from stillroom.guard.detect.dates import untangled
from stillroom.guard.detect.gaps import filled, joined
from stillroom.guard.detect.language import readable
from stillroom.guard.detect.propagation import propagated
from stillroom.guard.spans import Span
from stillroom.text import normalise, sentence_spans

Order = Callable[[str], tuple[int, ...]]
"""The place of a category where spans overlap: the smallest wins."""

_ABBREVIATED = re.compile(r"\b(?:ul|str|av|no|apt|ste|bldg|pr|vul|kv|pl|via|st|mt|ft)\.\s+$", re.I)
_DIGIT = r"(?:zero|oh|nought|one|two|three|four|five|six|seven|eight|nine|double|triple|ten)"
_SPELLED, _SPELLED_END = re.compile(rf"{_DIGIT}\b", re.I), re.compile(rf"\b{_DIGIT}[.!?…]?\s*$", re.I)
LONGEST_RUN = 200
_LONG_RUN = re.compile(rf"\S{{{LONGEST_RUN},}}")
"""No word of any language: keys, encoded files. Cut into pieces, its last letter could look like a word."""

BATCH = 64
OVERLAP = 80
"""Characters of a long sentence that two pieces of it have in common, about: longer than any disguised value."""

SECONDS = 10.0


def by_rank(name: str) -> tuple[int, ...]:
    """Put sure and narrow categories before guesses."""
    return (category(name).rank,)


class Union:
    """Finds what may identify in whole texts.

    A sentence that `readable` does not know, or on which a detector fails, becomes one span "language_unknown".

    Args:
        detectors: cheap ones first; a later one is not asked about a sentence that is all covered.
        closed: the closed-world rule, or None to do without.
        order: which category wins where spans overlap. A policy's order puts the stricter tier first.
        raw: categories that somebody may be given as they stand; the closed-world rule reads what is in them.
        seconds: what one sentence may take one detector.
    """

    def __init__(
        self,
        detectors: Sequence[Detector],
        closed: ClosedWorld | None,
        *,
        order: Order = by_rank,
        raw: Collection[str] = (),
        seconds: float = SECONDS,
    ) -> None:
        self._detectors, self._closed, self._order, self._seconds = tuple(detectors), closed, order, seconds
        self._raw = frozenset(raw)

    def find(self, text: str) -> list[Span]:
        """Return the spans of one text, in order, in coordinates of `normalise(text)`; none overlap."""
        return self.find_all([text])[0]

    def find_all(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of each text; each text is a document of its own, through which its values propagate."""
        plains = [normalise(text) for text in texts]
        places = [(number, start, end) for number, plain in enumerate(plains) for start, end in _pieces(plain)]
        found: list[list[Span]] = [[] for _ in plains]
        for first in range(0, len(places), BATCH):
            lot = places[first : first + BATCH]
            sentences = [plains[number][start:end] for number, start, end in lot]
            for (number, start, _), spans in zip(lot, self._sentences(sentences), strict=True):
                found[number] += (Span(s.start + start, s.end + start, s.category, s.detector, s.score) for s in spans)
        return [self._whole(plain, spans) for plain, spans in zip(plains, found, strict=True)]

    def _sentences(self, sentences: Sequence[str]) -> list[list[Span]]:
        found: list[list[Span]] = [[] for _ in sentences]
        closed = {i for i, sentence in enumerate(sentences) if not readable(sentence)}
        for detector in self._detectors:
            asked = [i for i in range(len(sentences)) if i not in closed and _open(sentences[i], found[i])]
            answers = watched(detector, [sentences[i] for i in asked], self._seconds)
            for i, spans in zip(asked, answers, strict=True):
                if spans is None:
                    closed.add(i)
                else:
                    found[i] += self._kept(detector, sentences[i], spans)
        for i, sentence in enumerate(sentences):
            if i in closed:
                found[i] = [Span(0, len(sentence), "language_unknown", "closed", 1.0)]
                continue
            found[i] = untangled(sentence, found[i])
            if self._closed is not None:
                private = [span for span in found[i] if category(span.category).private]
                covered = [span for span in private if span.category not in self._raw]
                left = [span for span in private if span.category in self._raw]
                found[i] += self._closed.find(sentence, covered, left)
        return found

    def _kept(self, detector: Detector, sentence: str, spans: Sequence[Span]) -> list[Span]:
        """Leave out what a detector only guesses where the house's formulary calls all of it public."""
        if self._closed is None or not detector.by_context:
            return list(spans)
        return [span for span in spans if not self._closed.calls_public(sentence, span)]

    def _whole(self, plain: str, spans: list[Span]) -> list[Span]:
        spans += (Span(*run.span(), "unknown", "long run", 1.0) for run in _LONG_RUN.finditer(plain))
        apart = resolve(plain, spans, self._order)
        more = propagated(plain, apart)
        return joined(plain, filled(plain, resolve(plain, apart + more, self._order) if more else apart))


def resolve(plain: str, spans: Iterable[Span], order: Order = by_rank) -> list[Span]:
    """Return spans that cover the same letters and digits, none overlapping, in order of place.

    Where several claim a character, the first by `order` has it, then the longer one; what is left of the others
    stays, cut to its letters and digits.
    """
    taken = bytearray(len(plain))
    kept = []
    for span in sorted(spans, key=lambda s: (order(s.category), s.start - s.end, s.start, s.detector)):
        for start, end in _free(taken, span.start, span.end):
            start, end = _inked(plain, start, end) if (start, end) != (span.start, span.end) else (start, end)
            if start < end:
                kept.append(Span(start, end, span.category, span.detector, span.score))
        taken[span.start : span.end] = b"\x01" * (span.end - span.start)
    return sorted(kept, key=lambda s: s.start)


def _pieces(plain: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences stand, cut at a blank where one is longer than LONGEST_SENTENCE.

    What goes on with a digit or a small letter is no new sentence ("Apt. 12"), nor is what follows an abbreviation of
    addresses ("ul. Długa"), nor a digit in words after another ("Five. Five."): a detector had better see it whole.
    Pieces of a long sentence overlap, so that what stands over a cut is whole in one of them.
    """
    apart: list[tuple[int, int]] = []
    for start, end in sentence_spans(plain):
        goes_on = (
            plain[start].islower()
            or plain[start].isdecimal()
            or _ABBREVIATED.search(plain, max(0, start - 8), start)
            or (_SPELLED.match(plain, start) and _SPELLED_END.search(plain, max(0, start - 12), start))
        )
        if apart and goes_on and end - apart[-1][0] <= LONGEST_SENTENCE:
            apart[-1] = (apart[-1][0], end)
        else:
            apart.append((start, end))
    for start, end in apart:
        while end - start > LONGEST_SENTENCE:
            cut = _blank(plain, start + LONGEST_SENTENCE // 2, start + LONGEST_SENTENCE)
            yield start, cut
            start = _blank(plain, cut - 2 * OVERLAP, cut - OVERLAP)
        yield start, end


def _blank(plain: str, first: int, last: int) -> int:
    """Return where the last blank before `last` stands, or `last` where there is none from `first` on."""
    found = max(plain.rfind(blank, first, last) for blank in " \n\t")
    return last if found < 0 else found


def _open(sentence: str, spans: Sequence[Span]) -> bool:
    """Say whether any letter or digit of a sentence is still uncovered."""
    taken = bytearray(len(sentence))
    for span in spans:
        if category(span.category).private:
            taken[span.start : span.end] = b"\x01" * (span.end - span.start)
    return any(not covered and c.isalnum() for c, covered in zip(sentence, taken, strict=True))


def _free(taken: bytearray, start: int, end: int) -> list[tuple[int, int]]:
    free, at = [], start
    while at < end:
        first = taken.find(0, at, end)
        if first < 0:
            break
        last = taken.find(1, first, end)
        last = end if last < 0 else last
        free.append((first, last))
        at = last
    return free


def _inked(plain: str, start: int, end: int) -> tuple[int, int]:
    while start < end and not plain[start].isalnum():
        start += 1
    while start < end and not plain[end - 1].isalnum():
        end -= 1
    return start, end
