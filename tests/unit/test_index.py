"""Retrieval finds by words and by meaning, in one order on every machine, and finds nothing where nothing fits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.embed.base import Embedder, Vectors, clip
from stillroom.index import hybrid
from stillroom.index.bm25 import STOP_WORDS, Bm25Index, words
from stillroom.index.exact import ExactIndex
from stillroom.index.hybrid import Hit, HybridIndex

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


# -- quick and the same as trying everything -------------------------------------------------------------------------
class Given(Embedder):
    """Vectors by the number that a text begins with."""

    name = "given"

    def __init__(self, vectors: Vectors) -> None:
        self.vectors, self.dimensions = vectors, vectors.shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        return clip([self.vectors[int(text.split()[0])] for text in texts])


def by_definition(index: HybridIndex, question: str, k: int, common: Collection[str]) -> list[Hit]:
    """Return the hits as the definition has them: everything is ranked, then fused, then filtered."""
    bm25 = index._words.scores(question)
    telling = index._words.scores(question, without=common) > 0
    query = hybrid._unit_length(index._embedder.embed([question]))[0]
    cosine = index._meaning.scores(query)
    rows = range(len(index))
    word_rank = {r: n for n, r in enumerate(sorted(rows, key=lambda r: (-bm25[r], r)), 1) if bm25[r] > 0}
    meaning_rank = {r: n for n, r in enumerate(sorted(rows, key=lambda r: (-cosine[r], r)), 1)}
    fused = {r: 1 / (60 + meaning_rank[r]) + (1 / (60 + word_rank[r]) if r in word_rank else 0.0) for r in rows}
    found = [r for r in rows if telling[r] or cosine[r] >= index._least]
    best = sorted(found, key=lambda r: (-fused[r], r))[:k]
    return [Hit(r, fused[r], bm25[r], cosine[r], word_rank.get(r), meaning_rank[r]) for r in best]


SAID = ("zonkitis", "blergon", "fever", "rash", "treatment")


@settings(deadline=None, max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 400), k=st.integers(1, 12), wide=st.sampled_from([1, 8, 64]),
    kinds=st.integers(1, 60), least=st.sampled_from([-1.0, 0.0, 0.3, 0.5, 1.0]), asked=st.lists(st.sampled_from(SAID)),
)  # fmt: skip
def test_hits_are_those_of_the_definition_with_all_ties(
    seed: int, rows: int, k: int, wide: int, kinds: int, least: float, asked: list[str]
) -> None:
    """Rows are often equal, and some differ by less than a float32 can tell."""
    chance = np.random.default_rng(seed)
    base = chance.integers(-2, 3, (kinds, 6)).astype(float)
    vectors = base[chance.integers(kinds, size=rows + 1)]
    vectors *= 1 + chance.choice([0.0, 1e-9, 1e-8], (rows + 1, 6))
    texts = [f"{n} treatment {' '.join(chance.choice(SAID, chance.integers(0, 4)))}" for n in range(rows)]
    common = {"treatment"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hybrid, "WIDE", wide)
        index = HybridIndex(texts, Given(vectors), least_cosine=least, common=common)
        question = " ".join([str(rows), *asked])
        assert index.search(question, k) == by_definition(index, question, k, common)


def test_scores_are_those_of_bm25s() -> None:
    chance = np.random.default_rng(1)
    texts = [" ".join(chance.choice(SAID, chance.integers(1, 9))) for _ in range(200)]
    index = Bm25Index(texts)
    for asked in (["zonkitis"], ["rash", "fever", "rash"], [*SAID]):
        theirs = index._index.get_scores(asked)
        assert index.scores(" ".join(asked)).tolist() == theirs.tolist()


def test_equal_rows_are_equal_wherever_they_stand() -> None:
    vector = np.random.default_rng(2).standard_normal(384)
    scores = ExactIndex(np.tile(vector, (9001, 1))).scores(vector)
    assert len(set(scores.tolist())) == 1
    assert [row for row, _ in ExactIndex(np.tile(vector, (9001, 1))).search(vector, 3)] == [0, 1, 2]
