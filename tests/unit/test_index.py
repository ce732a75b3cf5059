"""Retrieval finds by words and by meaning, in one order on every machine, and finds nothing where nothing fits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from stillroom.embed.base import Embedder, Vectors, clip
from stillroom.index.bm25 import STOP_WORDS, Bm25Index, words
from stillroom.index.exact import ExactIndex
from stillroom.index.hybrid import HybridIndex

TEXTS = [
    "Diagnosis: Zonkitis\nTreatment: Blergonolaser Therapy",
    "Diagnosis: Snurflepox\nTreatment: Giggle Drops",
    "Diagnosis: Quibblitis\nTreatment: Snorfodine tablets",
]


class Themes(Embedder):
    """One dimension a theme: 1 where a text names one of its words."""

    name = "themes"
    themes = (("zonkitis", "skin", "itch"), ("snurflepox", "spots"), ("quibblitis", "eyes", "vision"))
    dimensions = len(themes)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return clip([[float(any(w in text.lower() for w in theme)) for theme in self.themes] for text in texts])


def test_nearest_vectors_come_first_and_equal_ones_in_order_of_rows() -> None:
    index = ExactIndex([[1, 0], [0, 1], [1, 0], [0.6, 0.8]])
    assert index.search([1, 0], 3) == [(0, 1.0), (2, 1.0), (3, 0.6)]
    assert index.search([0, 1], 99)[0] == (1, 1.0)
    many = ExactIndex([[1, 0], [0, 1]] * 40)
    assert [row for row, _ in many.search([1, 0], 80)] == [*range(0, 80, 2), *range(1, 80, 2)]
    assert ExactIndex(np.zeros((0, 2))).search([1, 0], 3) == []


def test_a_row_of_numbers_is_no_index() -> None:
    with pytest.raises(ValueError, match="1 axes"):
        ExactIndex([1.0, 2.0])


def test_words_are_folded_and_stop_words_left_out() -> None:
    assert words("Which of the Patients’ — take 2.5 mg of ＺＯＮＫＩＴＩＳ-cream? Mary's!") == [
        "patients",
        "take",
        "2.5",
        "mg",
        "zonkitis-cream",
        "mary",
    ]
    assert {"which", "what", "how", "the"} <= STOP_WORDS


def test_bm25_prefers_the_text_with_the_rare_word() -> None:
    scores = Bm25Index(TEXTS).scores("What is the treatment of Zonkitis?")
    assert scores.argmax() == 0
    assert (scores > 0).all()  # "treatment" is in all of them
    alone = Bm25Index(TEXTS).scores("treatment of Zonkitis", without={"treatment"})
    assert (alone > 0).tolist() == [True, False, False]


@pytest.mark.parametrize("texts", [[], [""], ["", "  "], ["the of"], ["x"], ["", "zonkitis"]])
def test_tiny_and_empty_collections_have_scores_too(texts: list[str]) -> None:
    scores = Bm25Index(texts).scores("zonkitis")
    assert scores.tolist() == [0.0 if text != "zonkitis" else pytest.approx(scores.max()) for text in texts]
    assert HybridIndex(texts, Themes()).search("no such words", 3) == []


def test_bm25_says_nothing_on_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    Bm25Index(TEXTS * 50).scores("zonkitis")
    assert capfd.readouterr() == ("", "")


def test_a_hit_is_found_by_its_word_and_tells_how() -> None:
    first, *_ = HybridIndex(TEXTS, Themes()).search("zonkitis", 3)
    assert (first.row, first.word_rank, first.meaning_rank, first.cosine) == (0, 1, 1, 1.0)
    assert first.score == pytest.approx(2 / 61)
    assert first.bm25 > 0


def test_a_hit_is_found_by_its_meaning_alone() -> None:
    hits = HybridIndex(TEXTS, Themes()).search("my eyes hurt", 3)
    assert [(hit.row, hit.word_rank) for hit in hits] == [(2, None)]


def test_where_neither_word_nor_meaning_fits_there_are_no_hits() -> None:
    index = HybridIndex(TEXTS, Themes())
    assert index.search("capital of France", 3) == []
    assert index.search("what is it?", 3) == []
    assert index.search("", 3) == []


def test_a_label_that_stands_in_every_text_makes_no_hit() -> None:
    assert HybridIndex(TEXTS, Themes(), common={"treatment"}).search("treatment of blorbitis", 3) == []
    assert len(HybridIndex(TEXTS, Themes()).search("treatment of blorbitis", 3)) == 3


def test_the_least_cosine_can_be_set() -> None:
    both = "skin and eyes"  # cosine .71 to two texts
    assert len(HybridIndex(TEXTS, Themes(), least_cosine=0.7).search(both, 3)) == 2
    assert HybridIndex(TEXTS, Themes(), least_cosine=0.72).search(both, 3) == []


def test_at_most_k_hits_and_equal_texts_in_order() -> None:
    index = HybridIndex([TEXTS[1], *[TEXTS[0]] * 4], Themes())
    assert [hit.row for hit in index.search("zonkitis", 3)] == [1, 2, 3]


def test_an_embedder_that_gives_nothing_leaves_the_words() -> None:
    class Broken(Themes):
        def embed(self, texts: Sequence[str]) -> Vectors:
            return clip(np.full((len(texts), 3), np.nan))

    assert [hit.row for hit in HybridIndex(TEXTS, Broken()).search("snurflepox", 3)] == [1]
