"""Vectors have norm at most 1, are the same everywhere, and need an extra only where a model is used."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stillroom.embed.base import clip
from stillroom.embed.hashing import HashEmbedder
from stillroom.errors import BadOption, MissingExtra


def test_hashed_vectors_are_the_same_on_every_machine() -> None:
    vector = HashEmbedder(8).embed(["Fever, rash and fever."])[0]
    np.testing.assert_allclose(vector * 6**0.5, [0, 0, 0, 1, -2, 0, -1, 0], atol=1e-9)


def test_case_and_punctuation_do_not_matter_and_order_neither() -> None:
    one, other = HashEmbedder().embed(["Fever and RASH!", "rash, and fever"])
    assert np.array_equal(one, other)


def test_texts_that_share_words_are_nearer() -> None:
    note, near, far = HashEmbedder().embed(["fever with rash and pain", "rash with pain", "the parcel came late"])
    assert note @ near > note @ far + 0.3


def test_a_text_without_words_is_the_zero_vector() -> None:
    assert not HashEmbedder().embed(["", " \n", "…!"]).any()


def test_a_vector_needs_a_dimension() -> None:
    with pytest.raises(BadOption, match="dimensions is 0"):
        HashEmbedder(0)
    assert HashEmbedder(1).embed(["fever"]).shape == (1, 1)


def test_clipping_leaves_short_vectors_and_shortens_long_ones() -> None:
    vectors = clip([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(vectors, [[0.3, 0.4], [0.6, 0.8], [0.0, 0.0]], rtol=1e-9)
    assert (np.linalg.norm(vectors, axis=1) <= 1).all()


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_vector_with_what_is_no_number_becomes_zero_alone(broken: float) -> None:
    assert clip([[broken, 0.1], [0.1, 0.1]]).tolist() == [[0.0, 0.0], [0.1, 0.1]]


def test_norms_that_overflow_or_underflow_keep_direction_and_bound() -> None:
    vectors = clip([[3e200, 4e200], [1e308, 1e308], [3e-200, 4e-200], [5e-324, 0.0]])
    np.testing.assert_allclose(vectors[0], [0.6, 0.8], rtol=1e-9)
    np.testing.assert_allclose(vectors[1], [0.5**0.5, 0.5**0.5], rtol=1e-9)
    assert vectors[2:].tolist() == [[3e-200, 4e-200], [5e-324, 0.0]]


@settings(max_examples=200, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(0, 40)), elements=st.floats(width=64)))
def test_whatever_comes_in_the_exact_norm_is_at_most_one(vectors: npt.NDArray[np.float64]) -> None:
    clipped = clip(vectors)
    assert clipped.shape == vectors.shape
    for row in clipped:
        assert sum(Fraction(x) ** 2 for x in row.tolist()) <= 1
    assert (np.linalg.norm(clipped, axis=1) <= 1).all()


def test_a_sentence_model_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from stillroom.embed.sentence import SentenceEmbedder

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"embedding needs .* pip install 'stillroom\[local\]'"):
        SentenceEmbedder(tmp_path, "mine")
