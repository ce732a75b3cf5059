"""The toy language model is small, has real distributions and says what its documents say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from stillroom.errors import BadOption
from stillroom.lm.base import Prompt
from stillroom.testing.toylm import END, ConstantLM, CrowdedLM, NaNLM, ToyLM

NOTE = Prompt("Read.", "Diagnosis: Zonkitis Treatment: Blergon and Rest", "Go on.")


def tiny() -> ToyLM:
    return ToyLM(words=("a", "b"), labels=(), letters="")


def test_the_default_vocabulary_has_at_most_50_tokens() -> None:
    assert ToyLM().vocabulary_size == len(ToyLM().texts) <= 50


def test_scores_are_the_logarithms_of_a_distribution_over_all_tokens() -> None:
    scores = ToyLM().open([NOTE, Prompt("", "pain")]).scores()
    np.testing.assert_allclose(np.exp(scores.astype(np.float64)).sum(axis=1), 1.0, rtol=1e-5)


def test_all_texts_of_three_tokens_can_be_enumerated_and_have_probability_one() -> None:
    lm = tiny()
    total = 0.0
    for said in itertools.product(range(lm.vocabulary_size), repeat=3):
        session, log_p = lm.open([Prompt("", " a b a")]), 0.0
        for token in said:
            log_p += float(session.scores()[0, token])
            session.push([token])
        total += math.exp(log_p)
    assert total == pytest.approx(1.0, rel=1e-5)


def test_the_weights_are_those_of_the_docstring() -> None:
    lm = tiny()  # end, newline, space, " a", " b"
    session = lm.open([Prompt("", " a b a b")])
    session.push(lm.encode(" a"))
    prior = [0.05 * (1 + 1 / (1 + t)) for t in range(5)]
    # After " a" comes " b" twice; " b" was not said yet, " a" was.
    weights = np.array([prior[0], prior[1], prior[2], prior[3], prior[4] + 2.0 + 0.5])
    np.testing.assert_allclose(np.exp(session.scores()[0]), weights / weights.sum(), rtol=1e-5)


def test_removing_a_document_moves_the_scores_by_real_amounts() -> None:
    lm = tiny()
    with_a, without = lm.open([Prompt("", " a"), Prompt("", "")]).scores()
    assert np.exp(with_a - without).max() > 3


def test_the_longest_token_wins_and_unknown_characters_are_left_out() -> None:
    lm = ToyLM(words=("rash", "rashes"), labels=(), letters="es")
    assert [lm.texts[token] for token in lm.encode(" rashes rashs Ω!")] == [" rashes", " rash", "s", " "]


def test_the_end_has_no_text() -> None:
    assert ToyLM().decode([*ToyLM().encode(" fever"), END]) == " fever"


def test_its_own_words_come_in_the_documents_order_until_the_end() -> None:
    assert ToyLM().generate([NOTE], 20) == ["Diagnosis: Zonkitis Treatment: Blergon and Rest"]


def test_a_script_answers_for_it_where_it_has_an_answer() -> None:
    lm = ToyLM(answer=lambda prompt: "YES\nbecause" if "Zonkitis" in prompt.body else None)
    assert lm.generate([NOTE, Prompt("", " pain")], 5, stop=["\n"]) == ["YES", " pain"]


def test_a_vocabulary_with_one_token_twice_is_refused() -> None:
    with pytest.raises(BadOption, match="vocabulary"):
        ToyLM(words=("a", "a"))
    with pytest.raises(BadOption, match="smoothing"):
        ToyLM(smoothing=0)


def test_a_token_that_is_none_is_refused_before_any_row_takes_it() -> None:
    session = tiny().open([Prompt("", " a")])
    before = session.scores()
    for wrong in (-1, 5):
        with pytest.raises(BadOption, match="token"):
            session.push([3, wrong])
    assert np.array_equal(session.scores(), before)


def test_the_constant_model_finds_all_tokens_equally_likely() -> None:
    assert len(set(ConstantLM().open([NOTE]).scores()[0].tolist())) == 1


def test_the_breaking_model_breaks_on_marked_documents_alone() -> None:
    session = NaNLM().open([NOTE, Prompt("", "fever poison"), NOTE])
    assert np.isnan(session.scores()).all(axis=1).tolist() == [False, True, False]


def test_the_crowded_model_admits_what_it_does() -> None:
    assert CrowdedLM().rows_independent() is False
    alone, crowd = CrowdedLM().open([NOTE]).scores()[0], CrowdedLM().open([NOTE, Prompt("", "pain")]).scores()[0]
    assert not np.array_equal(alone, crowd)
