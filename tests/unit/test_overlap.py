"""BLEU and ROUGE-L are what their papers say, by hand-worked examples."""

from __future__ import annotations

import math

import pytest

from stillroom.evals.overlap import bleu, rouge_l


def test_the_same_text_counts_in_full_whatever_its_case_and_signs() -> None:
    assert bleu(["The cat sat on it."], ["the cat, sat ON it"]) == pytest.approx(1)
    assert rouge_l(["The cat sat."], ["the cat sat"]) == 1


def test_bleu_is_the_geometric_mean_of_clipped_precisions_with_a_brevity_penalty() -> None:
    # 5 of 6 words, 4 of 5 pairs, 3 of 4 triples, 2 of 3 fours
    assert bleu(["a b c d e x"], ["a b c d e f"]) == pytest.approx((5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)
    assert bleu(["a b c d"], ["a b c d e f"]) == pytest.approx(math.exp(1 - 6 / 4))
    assert bleu(["the the the the the"], ["the cat is here now"]) == 0  # a word counts as often as it is meant
    assert bleu(["a b c d", "a b c d"], ["a b c d", "e f g h"]) == pytest.approx(0.5)


def test_rouge_l_is_the_longest_common_subsequence_over_both_lengths() -> None:
    assert rouge_l(["police killed the gunman"], ["police kill the gunman"]) == pytest.approx(0.75)
    assert rouge_l(["the gunman kill police"], ["police kill the gunman"]) == pytest.approx(0.5)
    assert rouge_l([""], ["x"]) == 0
    assert rouge_l(["", "x"], ["", "y"]) == 0.5


def test_lists_must_pair() -> None:
    with pytest.raises(ValueError):
        bleu(["a"], [])
    with pytest.raises(ValueError, match="nothing"):
        rouge_l([], [])
