"""Words and phrases by list: those of a policy, public medical ones, names of countries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from stillroom import lexicon
from stillroom.errors import MissingExtra
from stillroom.guard.detect.base import Detector
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
    """Finds diagnoses, treatments and drugs by public lists and by the endings that such words have."""

    name = "medical"

    def __init__(self) -> None:
        self._listed = WordDetector({kind: medical()[kind] for kind in ("diagnosis", "treatment")}, self.name)
        self._endings = [
            (kind, tuple(e.strip() for e in medical()[f"{kind} ending"])) for kind in ("diagnosis", "treatment")
        ]
        self._plain = frozenset(medical()["plain"])

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return listed phrases, and words of six letters or more with such an ending."""
        return [
            spans + self._by_ending(sentence)
            for spans, sentence in zip(self._listed.detect(sentences), sentences, strict=True)
        ]

    def _by_ending(self, sentence: str) -> list[Span]:
        found = []
        for word in words_with_spans(sentence):
            form = word.text
            if len(form) < 6 or form in self._plain:
                continue
            kind = next((kind for kind, endings in self._endings if form.endswith(endings)), None)
            if kind is None and form.isalpha() and lexicon.protected(form):
                kind = "drug"
            if kind is not None:
                found.append(Span(word.start, word.end, kind, self.name, 1.0))
        return found


@cache
def medical() -> dict[str, list[str]]:
    """Return the public medical lists by kind; each line of the file is "kind: phrase, phrase"."""
    found: dict[str, list[str]] = {}
    text = (files("stillroom.guard.detect") / "medical.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            kind, _, phrases = line.partition(":")
            found.setdefault(kind, []).extend(phrase.strip() for phrase in phrases.split(",") if phrase.strip())
    return found


@cache
def countries() -> frozenset[str]:
    """Return the public names of countries, lower-case. Raises MissingExtra without faker."""
    try:
        from faker.providers.address.en import Provider
    except ImportError as error:
        raise MissingExtra("the list of countries", "guard") from error
    plain = (name.partition(" (")[0].lower() for name in Provider.countries)
    return frozenset(plain) | {"usa", "uk", "united states", "russia", "england", "scotland", "wales"}


@cache
def states() -> frozenset[str]:
    """Return the names of the states of the USA and the provinces of Canada, lower-case. Raises MissingExtra."""
    try:
        from faker.providers.address import en_CA, en_US
    except ImportError as error:
        raise MissingExtra("the list of states", "guard") from error
    return frozenset(name.lower() for name in (*en_US.Provider.states, *en_CA.Provider.provinces))


@cache
def nationalities() -> frozenset[str]:
    """Return words for people of a country, lower-case: formed from its name where English knows the form."""
    text = (files("stillroom.guard.detect") / "nationalities.txt").read_text(encoding="utf-8")
    found = {word for line in text.splitlines() if not line.startswith("#") for word in line.split()}
    for name in countries():
        for stem in (name, name[:-1], name[:-2]):
            if len(stem) >= 4 and " " not in stem:
                found.update(form for e in ("n", "an", "ian", "ese") if lexicon.zipf(form := stem + e) >= 2)
    return frozenset(found)


@cache
def names() -> frozenset[str]:
    """Return common given and family names of people, lower-case, from public lists. Raises MissingExtra."""
    found: set[str] = set()
    try:
        from importlib import import_module

        for locale in ("en_US", "en_GB", "en_IN", "de_DE", "es_ES", "fr_FR", "it_IT"):
            provider = import_module(f"faker.providers.person.{locale}").Provider
            for field in ("first_names", "last_names"):
                found.update(name.lower() for name in getattr(provider, field, ()))
    except ImportError as error:
        raise MissingExtra("the list of names", "guard") from error
    return frozenset(found)
