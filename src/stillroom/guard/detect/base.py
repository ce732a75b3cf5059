"""The seam of detectors, and the watch that turns whatever one of them does wrong into a whole sentence withheld."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from stillroom.guard.spans import Span

LONGEST_SENTENCE = 1000
"""Characters of one sentence that a detector is given at most; longer ones come in parts."""


class Detector(ABC):
    """Says which stretches of a sentence may identify.

    A sentence's spans depend on that sentence alone, not on the others of the call, and take time linear in its
    length. The suite of `stillroom.testing.detectors` tries both.
    """

    name: str
    """What receipts and spans call it."""
    by_context: bool = False
    """Whether it guesses from what stands around a word, as a model does: a house's formulary knows better."""

    @abstractmethod
    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return the spans of each sentence, in the sentence's own coordinates, in any order; they may overlap.

        Args:
            sentences: normalised, at most LONGEST_SENTENCE characters each.
        """


def watched(detector: Detector, sentences: Sequence[str], seconds: float) -> list[list[Span] | None]:
    """Return what a detector finds; None for each sentence on which it fails, which must then be withheld whole.

    To fail is to raise, to return spans that do not fit, or to take longer than `seconds` for a sentence alone (or
    for the lot, with a tenth more for each sentence). A lot that fails is tried again sentence by sentence, so that
    one sentence cannot withhold the others. A detector that takes too long is left behind in a thread of its own.
    """
    if not sentences:
        return []
    lot = _attempt(detector, sentences, seconds * (1 + len(sentences) / 10))
    if lot is not None:
        return list(lot)
    alone = [_attempt(detector, [sentence], seconds) for sentence in sentences]
    return [None if found is None else found[0] for found in alone]


def _attempt(detector: Detector, sentences: Sequence[str], seconds: float) -> list[list[Span]] | None:
    answers: list[list[list[Span]]] = []

    def call() -> None:
        try:
            answers.append(detector.detect(sentences))
        except Exception:  # of whatever kind: its message may hold text, so it is neither kept nor logged
            return

    thread = threading.Thread(target=call, daemon=True, name=f"detector {detector.name}")
    thread.start()
    thread.join(seconds)
    if thread.is_alive() or not answers or not _fits(answers[0], sentences):
        return None
    return answers[0]


def _fits(found: object, sentences: Sequence[str]) -> bool:
    """Say whether an answer has one list for each sentence, and spans that lie inside it."""
    if not isinstance(found, list) or len(found) != len(sentences):
        return False
    for spans, sentence in zip(found, sentences, strict=True):
        if not isinstance(spans, list):
            return False
        for span in spans:
            if not (isinstance(span, Span) and type(span.start) is int and type(span.end) is int):
                return False
            if not (0 <= span.start < span.end <= len(sentence) and math.isfinite(span.score)):
                return False
    return True
