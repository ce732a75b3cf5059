"""What every detector must do, as a test class to inherit, and detectors that break in each way a detector can.

    class TestMine(DetectorConformance):
        finds = (("Call 555-0100.", "555-0100", "phone"),)

        @pytest.fixture(scope="class")
        @classmethod
        def detector(cls):
            return MyDetector()

Needs pytest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Literal

import pytest

from stillroom.guard.categories import CATEGORIES
from stillroom.guard.detect.base import LONGEST_SENTENCE, Detector
from stillroom.guard.spans import Span
from stillroom.text import normalise

HOSTILE = (
    "", " ", "a", "1", "@", ".", "\n\n", "[PERSON_1]",
    "راجعت المريضة العيادة يوم الثلاثاء.", "患者は火曜日に来院した。", "Aláìsàn náà wá sí ilé ìwòsàn ní ọjọ́ Ìṣẹ́gun.",
    '{"patient": {"name": "Anna Kowalska", "tags": ["a", {"mrn": "778-12"}]}}', "<p>An<b>na</b> <i>Kowal</i>ska</p>",
    "a" * LONGEST_SENTENCE, "1" * LONGEST_SENTENCE, "@" * LONGEST_SENTENCE, "a@" * (LONGEST_SENTENCE // 2),
    "a." * (LONGEST_SENTENCE // 2), "1 " * (LONGEST_SENTENCE // 2), "A " * (LONGEST_SENTENCE // 2),
    "(1-" * (LONGEST_SENTENCE // 3), "one " * (LONGEST_SENTENCE // 4), "a dot " * (LONGEST_SENTENCE // 6),
    "Ab, " * (LONGEST_SENTENCE // 4), "\n" * LONGEST_SENTENCE, "<a>" * (LONGEST_SENTENCE // 3), "%41" * 333, "::" * 500,
    "\u0301" * 30, "😀" * 200, "Dr. " * 250, "name is " * 125, "\ufffd\ufffd",
)  # fmt: skip
"""Sentences that have broken detectors before, or take a pattern that backtracks a long time."""


class DetectorConformance:
    """Inherit, and give the fixture `detector` and what it `finds`."""

    finds: tuple[tuple[str, str, str], ...]
    """Sentence, what of it is found, as what category."""

    seconds = 5.0
    """Processor time that one hostile sentence may take."""

    def sentences(self) -> list[str]:
        return [*(normalise(sentence) for sentence, _, _ in self.finds), *map(normalise, HOSTILE)]

    def test_it_has_a_name(self, detector: Detector) -> None:
        assert detector.name

    def test_it_finds_what_it_is_for(self, detector: Detector) -> None:
        assert self.finds
        for sentence, surface, category in self.finds:
            plain = normalise(sentence)
            found = {(plain[s.start : s.end], s.category) for s in detector.detect([plain])[0]}
            assert (surface, category) in found, (sentence, found)

    def test_no_sentences_have_no_spans(self, detector: Detector) -> None:
        assert detector.detect([]) == []

    def test_every_span_lies_in_its_sentence_and_has_a_known_category(self, detector: Detector) -> None:
        sentences = self.sentences()
        found = detector.detect(sentences)
        assert len(found) == len(sentences)
        assert any(found)
        for spans, sentence in zip(found, sentences, strict=True):
            for span in spans:
                assert 0 <= span.start < span.end <= len(sentence)
                assert span.category in CATEGORIES
                assert 0 <= span.score <= 1

    def test_a_sentence_depends_on_no_other_sentence(self, detector: Detector) -> None:
        sentences = self.sentences()
        together = detector.detect(sentences)
        assert [detector.detect([sentence])[0] for sentence in sentences] == together
        assert detector.detect(sentences[::-1])[::-1] == together

    @pytest.mark.parametrize("hostile", range(len(HOSTILE)))
    def test_no_sentence_takes_long(self, detector: Detector, hostile: int) -> None:
        sentence = normalise(HOSTILE[hostile])[:LONGEST_SENTENCE]
        began = time.thread_time()
        detector.detect([sentence])
        assert time.thread_time() - began < self.seconds


How = Literal["raises", "hangs", "answers less", "points outside", "answers nonsense"]


class BrokenDetector(Detector):
    """Fails on every sentence that holds a word, in one of the ways there are, and finds nothing in the others."""

    name = "broken"

    def __init__(
        self, how: Literal["raises", "hangs", "answers less", "points outside", "answers nonsense"], word: str
    ):
        self._how, self._word, self._never = how, word, threading.Event()

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return no spans, or fail."""
        if not any(self._word in sentence for sentence in sentences):
            return [[] for _ in sentences]
        if self._how == "raises":
            raise RuntimeError(sentences[0])
        if self._how == "hangs":
            self._never.wait()
        if self._how == "points outside":
            return [[Span(0, len(sentence) + 1, "person", self.name, 1.0)] for sentence in sentences]
        if self._how == "answers nonsense":
            return [[("0", 1)] for _ in sentences]  # type: ignore[list-item]
        return []
