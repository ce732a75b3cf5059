"""Which tokens may be drawn next, and with which prior: functions of public things and the released prefix alone.

Public are the model's scores of the public row, the words released for the topic, and the public word list. Rule 22:
candidates and prior are fixed before private scores are asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from stillroom.distil.prompts import form_words
from stillroom.distil.votes import Votes, prior_votes
from stillroom.lexicon import WordList, is_stopword, protected
from stillroom.lm.base import LanguageModel, Scores
from stillroom.release.schema import Form

SHORTEST = 2
"""Letters of a word that must stand before it may be completed."""


@dataclass(frozen=True)
class Candidates:
    """Token ids that may be drawn, in a public order.

    Attributes:
        prior: of each, in votes.
        lean: of each, in thousandths of a nat: what calibration takes from every row's score of it; () for nothing.
    """

    tokens: tuple[int, ...]
    prior: tuple[int, ...]
    lean: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prefix:
    """What has been said of a form: the released prefix, on which candidates may depend for free.

    Attributes:
        said: tokens of the value so far.
        starts: tokens with which earlier values began.
        spoken: words of this and earlier values.
        listed: whether the slot is a list.
        drawn: tokens drawn of this value.
    """

    said: tuple[int, ...]
    starts: frozenset[int] = frozenset()
    spoken: frozenset[str] = frozenset()
    listed: bool = False
    drawn: int = 0


@dataclass
class Spelling:
    """How the released words of a topic are spelt in tokens, and what may follow inside one.

    Args:
        lm: the model whose tokens they are.
        words: released words, lower case.
        known: the public word list; a prefix that starts a word of it is never taken for a released word.
    """

    lm: LanguageModel
    words: Sequence[str]
    known: WordList
    _spelt: dict[tuple[int, ...], str] = field(default_factory=dict)
    _sorted: tuple[str, ...] = ()
    _pieces: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sorted = tuple(sorted(self.known.words))
        self._pieces = pieces_of(self.lm)
        for word in self.words:
            for form in (word, word[:1].upper() + word[1:]):
                self._spelt[tuple(self.lm.encode(" " + form))] = word

    def first_tokens(self, said: Collection[str] = ()) -> set[int]:
        """Return the tokens with which released words begin, those left out that have been said."""
        return {tokens[0] for tokens, word in self._spelt.items() if tokens and word not in said}

    def following(self, said: Sequence[int], spoken: Collection[str] = ()) -> set[int]:
        """Return the tokens that go on with a released word, where the last word said is the beginning of one.

        By its letters, whatever tokens it is spelt in: a model that begins "Cor|v" for "Cor|vit|ane" gets there too.

        Args:
            spoken: words that are not meant again.
        """
        fragment = self.fragment(said)
        found: set[int] = set()
        for word in self._meant(fragment, spoken) if fragment else ():
            rest = word[len(fragment) :]
            for n in range(1, len(rest) + 1):
                found.update(self._pieces.get(rest[:n], ()))
        return found

    def ending(self, said: Sequence[int], spoken: Collection[str] = (), *, closed: bool = False) -> tuple[int, ...]:
        """Return the tokens that complete the last word, when only one released word can be meant; () otherwise.

        Unambiguous is a beginning of one released word that begins no word of the public list; a word that is
        protected (drug, dose, laboratory: PRIVACY and DESIGN §4) is never completed.

        Args:
            spoken: words that are not meant again.
            closed: nothing but released words can be said here, so no other word can be meant.
        """
        fragment = self.fragment(said)
        if not fragment or (not closed and (len(fragment) < SHORTEST or self.begins_known(fragment))):
            return ()
        meant = self._meant(fragment, spoken)
        if len(meant) != 1 or fragment in meant:
            return ()
        (word,) = meant
        if protected(word):
            return ()
        for tokens, spelt in self._spelt.items():
            for n in range(1, len(tokens)):
                if spelt == word and tuple(said[-n:]) == tokens[:n]:
                    return tokens[n:]
        rest = self.lm.encode(word[len(fragment) :])
        return tuple(rest) if self.lm.decode(rest) == word[len(fragment) :] else ()

    def inside(self, said: Sequence[int]) -> bool:
        """Say whether the last word can only go on as a released one, none of them protected."""
        fragment = self.fragment(said)
        if len(fragment) < SHORTEST or self.begins_known(fragment) or not self.following(said):
            return False
        meant = self._meant(fragment)
        return fragment not in meant and not any(protected(word) for word in meant)

    def complete(self, said: Sequence[int]) -> bool:
        """Say whether the last word is a released one, or none was begun."""
        fragment = self.fragment(said).rstrip(",")
        return not fragment or fragment in self.words

    def _meant(self, fragment: str, spoken: Collection[str] = ()) -> set[str]:
        """Return the released words that begin with these letters, those left out that were spoken before."""
        return {word for word in self.words if word.startswith(fragment) and (word == fragment or word not in spoken)}

    def fragment(self, said: Sequence[int]) -> str:
        """Return the letters since the last blank, lower case."""
        text = self.lm.decode(said)
        return text.rsplit(None, 1)[-1].lower() if text and not text[-1].isspace() else ""

    def whole(self, word: str) -> bool:
        """Say whether a word is a released or listed one, not a piece that was cut off."""
        plain = word.lower().strip(".,;:!?()\"'")
        return plain in self.known or plain in self.words or is_stopword(plain)

    def begins_known(self, fragment: str) -> bool:
        """Say whether a word of the public list begins like this."""
        at = bisect_left(self._sorted, fragment)
        return at < len(self._sorted) and self._sorted[at].startswith(fragment)


_PIECES: WeakKeyDictionary[LanguageModel, dict[str, tuple[int, ...]]] = WeakKeyDictionary()


def pieces_of(lm: LanguageModel) -> dict[str, tuple[int, ...]]:
    """Return the tokens that go on inside a word, by their text."""
    if lm not in _PIECES:
        found: dict[str, tuple[int, ...]] = {}
        for token in range(lm.vocabulary_size):
            text = lm.decode([token])
            if text and text.replace("'", "").isalnum():
                found[text] = (*found.get(text, ()), token)
        _PIECES[lm] = found
    return _PIECES[lm]


@dataclass(frozen=True)
class TokenKinds:
    """What tokens may do in a form, by their text alone.

    Attributes:
        no_start: tokens with which a value does not begin: punctuation, stop words, words of the form's own prompt,
            and tokens that go on with a word.
        words: tokens that begin a word that means something; a value says each only once.
        small: tokens that are stop words; in a list there are none.
    """

    no_start: frozenset[int]
    words: frozenset[int]
    small: frozenset[int]

    @classmethod
    def of(cls, lm: LanguageModel, form: Form | None) -> TokenKinds:
        """Return the kinds of a model's tokens; without a form nothing is barred."""
        if form is None:
            return cls(frozenset(), frozenset(), frozenset())
        own = form_words(form)
        no_start, words, small = set(), set(), set()
        for token in range(lm.vocabulary_size):
            text = lm.decode([token])
            word = text.strip().lower()
            if not text.startswith(" ") or len(word) < 2 or not word.isalnum() or is_stopword(word) or word in own:
                no_start.add(token)
            elif word.isalpha():
                words.add(token)
            if text.startswith(" ") and is_stopword(word):
                small.add(token)
        return cls(frozenset(no_start), frozenset(words), frozenset(small))

    def barred(self, prefix: Prefix, released: set[int]) -> frozenset[int]:
        """Return the tokens that may not come next; what begins a released word may always begin a value."""
        if not prefix.said:
            return (self.no_start - released) | prefix.starts
        return self.words.intersection(prefix.said) | (self.small if prefix.listed else frozenset())


def topmost(scores: Scores, k: int) -> list[int]:
    """Return the ids of the k best public scores, best first, ties by id."""
    order = np.lexsort((np.arange(len(scores)), -scores.astype(np.float64)))
    return [int(i) for i in order[:k]]


def log_prior(
    scores: Scores, floor: float, lift: float = 0.0, lifted: Sequence[bool] = ()
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return log((1 − λ − κ) p + λ/m + κ [lifted]/#lifted) over the m candidates, p their public softmax.

    Args:
        scores: of the public row on the candidates. A row that cannot be read prefers nothing.
        floor: λ, shared by all candidates.
        lift: κ, shared by the lifted ones: tokens that begin released words. Nobody lifted: κ goes back to p.
    """
    values = scores.astype(np.float64)
    readable = not np.isnan(values).any() and not np.isposinf(values).any() and values.max() > -np.inf
    values = np.exp(values - values.max()) if readable else np.ones_like(values)
    probability = values / values.sum()
    chosen = np.asarray(lifted, dtype=np.float64) if len(lifted) else np.zeros(len(probability))
    share = lift if chosen.sum() > 0 else 0.0
    mixed = (1 - floor - share) * probability + floor / len(probability)
    if share:
        mixed += share * chosen / chosen.sum()
    result: np.ndarray[tuple[int], np.dtype[np.float64]] = np.log(mixed)
    return result


def prior_on_grid(
    scores: Scores, floor: float | None, clip: float, levels: int, lift: float = 0.0, lifted: Sequence[bool] = ()
) -> Votes:
    """Return the prior of the candidates in votes; zero without a floor."""
    if floor is None:
        return np.zeros(len(scores), np.int64)
    return prior_votes(log_prior(scores, floor, lift, lifted), clip, levels)


def lean_of(scores: Scores, share: float) -> list[int]:
    """Return what calibration takes from scores: share · the mean over public rows, in thousandths of a nat, best 0.

    Contextual calibration (arXiv 2102.09690), with the released words themselves as the context without content.

    Args:
        scores: of the public rows on the candidates, of shape (rows, candidates). Where any cannot be read: no lean.
    """
    if not np.isfinite(scores).all():
        return [0] * scores.shape[1]
    mean = scores.astype(np.float64).mean(axis=0)
    return [int(n) for n in np.rint(1000 * share * (mean - mean.max()))]
