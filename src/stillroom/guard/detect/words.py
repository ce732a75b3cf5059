"""Words and phrases by list: those of a policy, and public medical ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stillroom import lexicon
from stillroom.guard.detect.base import Detector
from stillroom.guard.detect.lists import KNOWN, medical, names
from stillroom.guard.spans import Span
from stillroom.text import Word, words, words_with_spans


class WordDetector(Detector):
    """Finds listed words and phrases, as whole words in whatever case.

    Args:
        lists: phrases by category.
    """

    name = "words"

    def __init__(self, lists: Mapping[str, Iterable[str]], name: str = "words") -> None:
        self.name = name
        self._phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for category, phrases in lists.items():
            for phrase in phrases:
                if parts := tuple(words(phrase)):
                    self._phrases.setdefault(parts[0], []).append((parts, category))

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return every place where a listed phrase stands."""
        return [self._spans(list(words_with_spans(sentence))) for sentence in sentences]

    def _spans(self, here: list[Word]) -> list[Span]:
        found = []
        for i, word in enumerate(here):
            for parts, category in self._phrases.get(word.text, ()):
                if tuple(w.text for w in here[i : i + len(parts)]) == parts:
                    found.append(Span(word.start, here[i + len(parts) - 1].end, category, self.name, 1.0))
        return found


class MedicalDetector(Detector):
    """Finds diagnoses, treatments and drugs by public lists, and known words by the endings that such words have.

    A word that English does not know, or that stands with a capital or in a list of names ("Paloma"), is none for its
    ending alone: a policy may leave diagnoses as they stand, and a name must not pass for one.
    """

    name = "medical"

    def __init__(self) -> None:
        lists = medical()
        self._listed = WordDetector({kind: lists[kind] for kind in ("diagnosis", "treatment", "drug")}, self.name)
        self._endings = [(kind, tuple(lists[f"{kind} ending"])) for kind in ("diagnosis", "treatment")]
        self._plain = frozenset(lists["plain"]) | names()

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return listed phrases, and words of six letters or more with such an ending."""
        listed = self._listed.detect(sentences)
        return [spans + self._by_ending(sentence) for spans, sentence in zip(listed, sentences, strict=True)]

    def _by_ending(self, sentence: str) -> list[Span]:
        found = []
        for word in words_with_spans(sentence):
            form = word.text
            if len(form) < 6 or form in self._plain or form != sentence[word.start : word.end] or not form.isalpha():
                continue
            if lexicon.zipf(form) < KNOWN:
                continue
            kind = next((kind for kind, endings in self._endings if form.endswith(endings)), None)
            if kind is None and lexicon.protected(form):
                kind = "drug"
            if kind is not None:
                found.append(Span(word.start, word.end, kind, self.name, 1.0))
        return found
