"""Texts by the words they share with a question (BM25)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

import bm25s
import numpy as np
import numpy.typing as npt

_WORD = re.compile(r"\d+(?:[.,]\d+)+|\w+(?:[-'’]\w+)*")

_STOP = """
    a about after all also am an and any are as at be because been before being between both but by can could did do
    does doing done down during each either else ever every few for from further get gets give given gives had has
    have having he her here hers him his how i if in into is it its just know let like make many may me might more most
    much must my no nor not now of off on once one only or other our out over own please same say see shall she should
    show so some such tell than that the their them then there these they this those through to too under until up us
    use used very was we were what when where which while who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP.split())
"""Words that say nothing about a subject; a question that shares only these with a text has not found it."""


def words(text: str) -> list[str]:
    """Return the lower-case words of a text, in order, without stop words."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    found = (word.replace("’", "'").removesuffix("'s") for word in _WORD.findall(folded))
    return [word for word in found if word not in STOP_WORDS]


class Bm25Index:
    """BM25 scores (Lucene's form, never negative) of every text.

    Args:
        texts: any number, none and empty ones included.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        tokens = [words(text) for text in texts]
        self.vocabulary = frozenset(word for row in tokens for word in row)
        self._rows = len(tokens)
        self._index = bm25s.BM25(method="lucene")
        if self.vocabulary:  # bm25s cannot index no words at all
            self._index.index(tokens, show_progress=False)

    def __len__(self) -> int:
        return self._rows

    def scores(self, query: str, without: Collection[str] = ()) -> npt.NDArray[np.float64]:
        """Return the score of every text, 0 where it shares no word with the query; words `without` do not count."""
        return self._sum(word for word in self._known(query) if word not in without).astype(np.float64)

    def found(self, query: str, common: Collection[str] = ()) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return the score of every text as `scores` has it, and which texts share a word that is not `common`."""
        asked = self._known(query)
        telling = np.zeros(self._rows, np.bool_)
        for word in asked:
            if word not in common:
                telling[self._postings(word)[0]] = True
        return self._sum(asked), telling

    def _known(self, query: str) -> list[str]:
        return [word for word in words(query) if word in self.vocabulary]

    def _sum(self, asked: Iterable[str]) -> npt.NDArray[np.float32]:
        """Return the sums over the words asked, in their order: a word stands once in the list of a text."""
        total = np.zeros(self._rows, np.float32)
        for word in asked:
            rows, scores = self._postings(word)
            total[rows] += scores
        return total

    def _postings(self, word: str) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.float32]]:
        """Return the texts with a word and what it scores in each."""
        table, at = self._index.scores, self._index.vocab_dict[word]
        first, last = table["indptr"][at], table["indptr"][at + 1]
        return table["indices"][first:last], table["data"][first:last]
