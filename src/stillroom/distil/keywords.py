"""Keywords of a unit: at most K words that say what its documents are about, from these documents alone.

No extractor sees another unit, and none is trusted: whatever it returns goes through `bound` before it is counted
(a document may tell a language model to return a thousand words).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from stillroom.documents import Unit
from stillroom.errors import BadOption
from stillroom.lexicon import WordList, is_stopword, lemma, word_list, zipf
from stillroom.lm.base import LanguageModel, Prompt
from stillroom.text import chunks, normalise, words, words_with_spans

SHORTEST, LONGEST = 3, 40
"""Letters of a keyword."""
FREQUENT = 6.0
"""Words of this public zipf frequency or more are never keywords."""
_UNLISTED = 0.5
"""Zipf by which a word outside the public word list counts as rarer than it is."""
_FOLLOWS = 0.8
"""Share of the distance to a rarer word just before it by which a word is lifted: "drops" in "Giggle Drops"."""
_REPEATED, _EARLY = 0.6, 0.1
"""Score for each doubling of a word's occurrences (up to 8), and for standing at the very beginning."""
REMEMBERED = 100_000
"""Words whose rarity is kept in memory."""
_JOINTS = (" ", "-", "'s ", "\u2019s ")
"""What may stand between two words of one phrase."""
_CONTACT = re.compile(r"@|://|www\.|(?:\d\D?){3}")
"""A piece between blanks that is an address or a number with letters around it."""


class Extractor(Protocol):
    """Finds the keywords of units, each from its own documents alone."""

    @property
    def name(self) -> str:
        """What a plan calls it: "fast" or "lm"."""

    def extract(self, unit: Unit) -> tuple[str, ...]:
        """Return at most K distinct words of the unit."""

    def extract_many(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        """Return the same for several units; no unit's words depend on the others."""


def bound(found: Iterable[str], k: int) -> tuple[str, ...]:
    """Return at most `k` distinct words of what an extractor found: the first ones that may be keywords.

    What is not a single word of 3 to 40 letters is left out. This is the bound on a unit's part in the histogram
    (PRIVACY rule 16), so it stands between every extractor and every count.
    """
    kept: dict[str, None] = {}
    for item in found:
        if len(kept) >= k:
            break
        if word := _keyword(item):
            kept[word] = None
    return tuple(kept)


class FastExtractor:
    """Ranks the words of each document by how rare they are in public text.

    A word scores by its public frequency (rarest first, words unknown to all lists the rarest), more if it follows a
    rarer one (names of two words), a little by how often it occurs and how early. For a unit with several documents
    the words come in the order of: in how many documents a word is among the first K, its best score, the alphabet.
    Nothing of other units is looked at.

    Args:
        listed: the public word list; words outside it rank a little higher.
        per_unit: K.
        without: public words that are no keywords, nor their inflections: those of the form say nothing of a document.
    """

    name = "fast"

    def __init__(self, listed: WordList, per_unit: int, without: Collection[str] = ()) -> None:
        if per_unit < 1:
            raise BadOption("keywords per unit", per_unit, "at least 1")
        self.listed = listed
        self.per_unit = per_unit
        self.without = frozenset(map(lemma, without))
        # A function of the word and public lists, kept: most words of a document stand in many others.
        self._rarity = lru_cache(maxsize=REMEMBERED)(self._rarity_of)

    def __reduce__(
        self,
    ) -> tuple[Callable[[str, int, tuple[str, ...]], FastExtractor], tuple[str, int, tuple[str, ...]]]:
        """Travel by name: the list is on every machine, and what is remembered stays here."""
        return _by_name, (self.listed.name, self.per_unit, tuple(sorted(self.without)))

    def extract(self, unit: Unit) -> tuple[str, ...]:
        """Return at most K distinct words of the unit, the most telling first."""
        documents: Counter[str] = Counter()
        best: dict[str, float] = {}
        for document in unit.documents:
            scores = self._scores(document.text)
            for word in sorted(scores, key=lambda w: (-scores[w], w))[: self.per_unit]:
                documents[word] += 1
                best[word] = max(scores[word], best.get(word, -math.inf))
        ranked = sorted(documents, key=lambda w: (-documents[w], -best[w], w))
        return bound(ranked, self.per_unit)

    def extract_many(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        """Return `extract` of each unit."""
        return [self.extract(unit) for unit in units]

    def _scores(self, text: str) -> dict[str, float]:
        """Return the score of every word of a text that may be a keyword."""
        best: dict[str, float] = {}
        counts: Counter[str] = Counter()
        place = 0
        for phrase in _phrases(text):
            before: float | None = None  # rarity of the word before, if it may be a keyword
            for word in phrase:
                rarity = self._rarity(word)
                if rarity is not None:
                    lifted = rarity if before is None else max(rarity, rarity + _FOLLOWS * (before - rarity))
                    early = _EARLY / (1 + place / 50)
                    best[word] = max(lifted + early, best.get(word, -math.inf))
                    counts[word] += 1
                before = rarity
                place += 1
        return {word: score + _REPEATED * math.log2(min(counts[word], 8)) for word, score in best.items()}

    def _rarity_of(self, word: str) -> float | None:
        frequency = zipf(word)
        if not _may_be_keyword(word) or is_stopword(word) or frequency >= FREQUENT or lemma(word) in self.without:
            return None
        return FREQUENT - frequency + (_UNLISTED if word not in self.listed else 0.0)


def _by_name(listed: str, per_unit: int, without: tuple[str, ...]) -> FastExtractor:
    return FastExtractor(word_list(listed), per_unit, without)


def _phrases(text: str) -> Iterator[list[str]]:
    """Yield the words of a text in runs without punctuation between them; contacts and numbers are left out."""
    pieces = normalise(text).split()
    plain = " ".join("." if not piece.isalpha() and _CONTACT.search(piece) else piece for piece in pieces)
    phrase: list[str] = []
    end = 0
    for word in words_with_spans(plain):
        if word.start - end > 3 or plain[end : word.start] not in _JOINTS:
            yield phrase
            phrase = []
        phrase.append(word.text)
        end = word.end
    yield phrase


KEYWORDS_BEFORE = (
    "List the {count} most important keywords of this {about}: single words taken from it, "
    "all different, separated by commas.\n\n"
)


class LMExtractor:
    """The paper's extractor: one call of a language model for each document, asking for K distinct single words.

    The model's rows must be independent of each other (named as an assumption in the certificate).

    Args:
        lm: a model that can generate.
        per_unit: K.
        about: what a document is, for the prompt; public.
        longest: words of a document that the model reads; public.
        batch: documents handed to the model at once.
        without: as for `FastExtractor`.
    """

    name = "lm"

    def __init__(
        self,
        lm: LanguageModel,
        per_unit: int,
        *,
        about: str = "document",
        longest: int = 400,
        batch: int = 16,
        without: Collection[str] = (),
    ) -> None:
        lm.need("generate")
        if per_unit < 1:
            raise BadOption("keywords per unit", per_unit, "at least 1")
        self.lm = lm
        self.per_unit = per_unit
        self.longest = longest
        self.batch = batch
        self.without = frozenset(map(lemma, without))
        self._before = KEYWORDS_BEFORE.format(count=per_unit, about=about)

    def extract(self, unit: Unit) -> tuple[str, ...]:
        """Return at most K distinct words of the unit, in the model's order."""
        return self.extract_many([unit])[0]

    def extract_many(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        """Return the keywords of each unit; each document is a prompt of its own."""
        owners = [i for i, unit in enumerate(units) for _ in unit.documents]
        prompts = [self._prompt(document.text) for unit in units for document in unit.documents]
        lists: list[list[tuple[str, ...]]] = [[] for _ in units]
        for start in range(0, len(prompts), self.batch):
            replies = self.lm.generate(
                prompts[start : start + self.batch], max_tokens=8 * self.per_unit, stop=("\n\n",)
            )
            for owner, reply in zip(owners[start:], replies, strict=False):
                lists[owner].append(self.parse(reply))
        return [bound(_by_votes(found), self.per_unit) for found in lists]

    def parse(self, reply: str) -> tuple[str, ...]:
        """Return at most K words of a reply; a phrase counts as its words, stop words left out."""
        found = (w for w in words(reply) if not is_stopword(w) and lemma(w) not in self.without)
        return bound(found, self.per_unit)

    def _prompt(self, text: str) -> Prompt:
        first = chunks(text, self.longest)[:1]
        return Prompt(before=self._before, body="".join(first), after="\n\nKeywords:")


def _by_votes(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return words by in how many lists they stand, their best place in one, the alphabet."""
    votes = Counter(word for found in lists for word in found)
    place: dict[str, int] = {}
    for found in lists:
        for i, word in enumerate(found):
            place[word] = min(i, place.get(word, i))
    return sorted(votes, key=lambda w: (-votes[w], place[w], w))


def _keyword(item: str) -> str | None:
    """Return the one word that an item is, where it may be a keyword."""
    if len(item) > 2 * LONGEST or len(parts := words(item)) != 1:
        return None
    return parts[0] if _may_be_keyword(parts[0]) else None


def _may_be_keyword(word: str) -> bool:
    return SHORTEST <= len(word) <= LONGEST and (word.isalpha() or not any(map(str.isdigit, word)))
