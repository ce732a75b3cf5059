"""The closed-world rule: a word that no public list knows counts as private, and so does a number.

It reads the value to decide, so that a template may tell that a word is rare; PRIVACY.md names this as not covered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from stillroom import lexicon
from stillroom.guard.detect.lists import KNOWN, medical, name_words, names, rare_names, towns
from stillroom.guard.spans import Span
from stillroom.text import Word, words, words_with_spans

NAME = "closed world"

_NUMBER = re.compile(r"[+#]?\d(?:\d|[ .,/:()-]{1,2}(?=\d))*")
_SAME = re.compile(r"[ -]|\.? |'s | & ")
_COMMON = 5.2
"""Public frequency from which even a name is an ordinary word, in small letters or in a text of capitals alone; a word
of `name_words` is one before, where both are written."""
_SURNAME = 3.5
"""Public frequency below which a word right after a given name is a family name."""
_TITLE = re.compile(
    r"\b(?:dr|mr|mrs|ms|miss|mx|prof|professor|sir|madam|rev|reverend|sister|brother|nurse|lord|lady|herr|frau|monsieur"
    r"|madame|rabbi|imam|father|mother|patient|judge|captain|sergeant)\.?\s*$",
    re.I,
)
_RELATIONS = frozenset((
    "daughter", "son", "wife", "husband", "mother", "father", "mum", "mom", "dad", "sister", "brother",
    "partner", "aunt", "uncle", "cousin", "niece", "nephew", "grandmother", "grandfather", "grandma", "grandpa",
    "friend", "neighbour", "neighbor", "carer", "boyfriend", "girlfriend", "fiancee",
))  # fmt: skip
"""Words right after which a word that is a name too is one, in small letters as well."""
_CARRIER = re.compile(r"[^\W_]*\d[^\W_]*")


class ClosedWorld:
    """Finds every word that is neither in a public list nor in the house's own formulary, and every number left.

    Args:
        formulary: words that the house calls public.
        zipf: a lower-case word is known from this public frequency up.
        capital_zipf: the same for a word with a capital, which is more often a name.
        numbers: whether numbers count.
    """

    def __init__(
        self, formulary: Iterable[str] = (), *, zipf: float = KNOWN, capital_zipf: float = 4.0, numbers: bool = True
    ) -> None:
        self._phrases = frozenset(tuple(words(phrase)) for phrase in formulary) - {()}
        self._known = frozenset(word for phrase in self._phrases for word in phrase)
        self._medical = frozenset(
            word for kind in ("diagnosis", "treatment", "drug") for phrase in medical()[kind] for word in words(phrase)
        )
        self._people: Collection[str] = names()
        self._names: Collection[str] = names() | rare_names() | towns()
        self._words: Collection[str] = name_words()
        self._lengths = sorted({len(phrase) for phrase in self._phrases})
        self._zipf, self._capital, self._numbers = zipf, capital_zipf, numbers

    def find(self, sentence: str, covered: Sequence[Span], left: Sequence[Span] = ()) -> list[Span]:
        """Return spans of category "unknown" and "number" over what nothing else protects.

        A word that is covered in part counts as uncovered, and is taken whole.

        Args:
            covered: spans that will be replaced: what is in them needs no rule.
            left: spans that a policy leaves raw. A word in them that nobody knows counts all the same, as it may be a
                name that a detector took for something else; a number in them (a dose) does not.
        """
        taken = bytearray(len(sentence))
        for span in covered:
            taken[span.start : span.end] = b"\x01" * (span.end - span.start)
        here = list(words_with_spans(sentence))
        uncased = not any(map(str.isupper, sentence))
        proper = self._proper(here, sentence, taken)
        shouted = all(sentence[w.start : w.end].isupper() for w in here)
        found = []
        named = -2  # the last word that is a name
        for i, word in enumerate(here):
            if word.text in self._names and taken[word.start]:
                named = i
            if all(taken[word.start : word.end]):
                continue
            first = i == 0 or _opens(sentence, word.start)
            surname = named == i - 1 and lexicon.zipf(word.text) < _SURNAME and not lexicon.is_stopword(word.text)
            related = i > 0 and here[i - 1].text in _RELATIONS and word.text in self._people
            if i in proper or surname or related or not self._public(word, sentence, first, shouted, uncased):
                named = i if word.text in self._names else named
                found.append(Span(word.start, word.end, "unknown", NAME, 1.0))
        for span in left:
            taken[span.start : span.end] = b"\x01" * (span.end - span.start)
        for word in here:  # B12, HbA1c: a word of the formulary with a number in it
            if word.text in self._known and any(map(str.isdigit, word.text)):
                taken[word.start : word.end] = b"\x01" * (word.end - word.start)
        if self._numbers:
            for pattern in (_NUMBER, _CARRIER):
                for match in pattern.finditer(sentence):
                    start, end = match.span()
                    if not all(taken[start:end]):
                        found.append(Span(start, end, "number", NAME, 1.0))
                        taken[start:end] = b"\x01" * (end - start)
        return found

    def calls_public(self, sentence: str, span: Span) -> bool:
        """Say whether a span lies in a phrase of the formulary that stands there whole, word for word.

        Not where one of its words is in a public list of names, or follows a title: a house that lists Parkinson's
        disease may know a Mr Parkinson, and one that lists the Glasgow coma scale may speak of Glasgow.
        """
        if _TITLE.search(sentence, max(0, span.start - 12), span.start):
            return False
        here = list(words_with_spans(sentence))
        forms = [word.text for word in here]
        for first, word in enumerate(here):
            for length in self._lengths:
                last = first + length - 1
                phrase = tuple(forms[first : last + 1])
                if phrase in self._phrases and word.start <= span.start and span.end <= here[last].end:
                    return not any(form in self._people for form in phrase)
        return False

    def _proper(self, here: Sequence[Word], sentence: str, taken: bytearray) -> set[int]:
        """Return the words of names of several words: capitals in a row, of which one is covered or private.

        Where a third of the words are in small letters, any two capitals in a row are a name ("Lending Club").
        """
        capitals = [
            sentence[w.start].isupper()
            and not (lexicon.is_stopword(w.text) or w.text in self._known or w.text in self._medical)
            for w in here
        ]
        mostly_small = 3 * sum(sentence[w.start].islower() for w in here) > len(here)
        found: set[int] = set()
        first = 0
        while first < len(here):
            last = first
            while (
                last + 1 < len(here)
                and capitals[first]
                and capitals[last + 1]
                and _SAME.fullmatch(sentence, here[last].end, here[last + 1].start)
            ):
                last += 1
            if last > first and (mostly_small or any(self._named(here[i], taken) for i in range(first, last + 1))):
                found.update(range(first, last + 1))
            first = last + 1
        return found

    def _named(self, word: Word, taken: bytearray) -> bool:
        form = word.text
        if any(taken[word.start : word.end]) or form in self._names:
            return True
        return form not in self._known and form not in self._medical and lexicon.zipf(form) < self._capital - 1

    def _public(self, word: Word, sentence: str, first: bool, shouted: bool, uncased: bool) -> bool:
        form = word.text
        if form in self._known or form in self._medical or lexicon.is_stopword(form):
            return True
        if not form.isascii() or any(map(str.isdigit, form)):
            return False
        zipf = lexicon.zipf(form)
        capital = any(map(str.isupper, sentence[word.start : word.end])) and not shouted
        if not capital:
            also = form in self._words and not uncased and not shouted
            return zipf >= (self._zipf if form not in self._names else self._capital if also else _COMMON)
        if form in self._names:
            return zipf >= _COMMON + 0.3
        return zipf >= (self._zipf + 1 if first else self._capital)


def _opens(sentence: str, start: int) -> bool:
    """Say whether a word stands where a capital tells nothing: after a line break, a colon or a bullet."""
    before = sentence[:start].rstrip(" \t\"'“(*•-")
    return not before or before[-1] in "\n:.!?|"
