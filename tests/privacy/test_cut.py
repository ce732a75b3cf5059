"""The similarity cut: a sum that one unit moves by at most 1, and utilities that it moves by at most 1 each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stillroom.distil.cut import grid, noisy_mean, noisy_threshold, similarities
from stillroom.embed.base import Vectors, clip
from stillroom.privacy.noise import Noise
from stillroom.privacy.zcdp import cost
from stillroom.release.costs import events_of
from stillroom.release.schema import CutPlan
from stillroom.testing.noise import NoNoise
from tests.privacy.mechanics import Call, Shown, moved, plan

PLAN = CutPlan(mean_sigma=1.0, epsilon_theta=0.4, keep=3, steps=41)
MEAN = [0.6, -0.3, 0.2]
Mean = Callable[[Vectors, CutPlan, Noise], list[float]]
any_vectors = arrays(np.float64, st.tuples(st.integers(1, 9), st.just(3)), elements=st.floats())


def told_mean(vectors: Vectors, step: Mean = noisy_mean) -> Call:
    noise = Shown(NoNoise())
    step(vectors, PLAN, noise)
    return noise.calls[0]


def told_threshold(similar: Vectors) -> Call:
    noise = Shown(NoNoise())
    noisy_threshold(similar, PLAN, noise)
    return noise.calls[0]


def hold_mean(vectors: Vectors, step: Mean = noisy_mean) -> None:
    """Raise AssertionError unless removing any one row moves the sum by at most 1, exactly."""
    whole = told_mean(vectors, step)
    for i in range(len(vectors) if len(vectors) < 100 else 1):
        moved(whole, told_mean(np.delete(vectors, i, axis=0), step))


@settings(deadline=None)
@given(vectors=any_vectors)
def test_any_vectors_of_a_model_move_the_sum_by_at_most_one(vectors: Vectors) -> None:
    hold_mean(vectors)


def test_so_they_do_where_every_addition_of_floats_would_be_rounded_otherwise() -> None:
    hold_mean(ROUNDED)


@settings(deadline=None)
@given(vectors=any_vectors)
def test_any_vectors_move_every_utility_by_at_most_one(vectors: Vectors) -> None:
    similar = similarities(vectors, MEAN)
    whole = told_threshold(similar)
    for i in range(len(vectors)):
        assert moved(whole, told_threshold(np.delete(similar, i))) <= PLAN.epsilon_theta**2 / 8


@settings(deadline=None)
@given(vectors=any_vectors)
def test_the_similarity_of_a_document_does_not_depend_on_the_others(vectors: Vectors) -> None:
    together = similarities(vectors, MEAN)
    assert ((together >= -1) & (together <= 1)).all()
    for i in range(len(vectors)):
        assert similarities(vectors[i : i + 1], MEAN)[0] == together[i]
    assert np.array_equal(similarities(vectors[::-1], MEAN), together[::-1])


def test_nor_does_it_at_the_size_of_real_embeddings() -> None:
    chance = np.random.default_rng(4)
    vectors, mean = chance.normal(size=(200, 384)), chance.normal(size=384).tolist()
    together = similarities(vectors, mean)
    assert all(similarities(vectors[i : i + 1], mean)[0] == together[i] for i in range(200))
    assert np.array_equal(similarities(vectors[:77], mean), together[:77])


def test_the_order_of_documents_does_not_change_the_sum() -> None:
    vectors = np.random.default_rng(4).normal(size=(300, 16))
    assert np.array_equal(told_mean(vectors).told, told_mean(vectors[::-1]).told)


def test_a_vector_that_is_no_number_counts_nothing() -> None:
    assert told_mean(np.array([[np.nan, 1, 1], [np.inf, 0, 0]])).told.tolist() == [0.0, 0.0, 0.0]
    assert similarities(np.array([[np.nan, 1, 1]]), MEAN).tolist() == [0.0]


def test_the_sum_is_not_divided_by_how_many_there_are() -> None:
    assert told_mean(np.array([[1.0, 0, 0]] * 50)).told[0] == pytest.approx(50)


def test_thresholds_are_fixed_and_an_empty_topic_runs_too() -> None:
    assert np.array_equal(grid(PLAN), np.linspace(-1, 1, 41))
    assert told_mean(np.zeros((0, 3))).shape == (3,)
    assert told_threshold(np.zeros(0)).shape == told_threshold(np.ones(5)).shape == (41,)


def test_without_noise_the_threshold_keeps_the_nearest_ones() -> None:
    similar = np.array([0.9, 0.8, 0.7, 0.2, -0.5])
    theta = noisy_threshold(similar, PLAN, NoNoise())
    assert (similar >= theta).sum() == PLAN.keep


def test_the_events_charge_one_sum_and_one_threshold_in_each_of_l_topics() -> None:
    record = plan(cut=PLAN)
    found = {e.name: cost(e).rho for e in events_of(record)}
    assert found["topic mean"] == pytest.approx(record.topics.per_unit / 2)
    assert found["similarity cut"] == pytest.approx(record.topics.per_unit * PLAN.epsilon_theta**2 / 8)


# -- what would go wrong, seen by the same checks --------------------------------------------------------------------
# With the first row the sum is above 32, where 8,000 small steps are each rounded up; without it, rounded down.
ROUNDED = np.array([[1.0, 0.0]] * 33 + [[4e-15, 0.0]] * 8000)


def test_the_check_catches_a_sum_of_floats() -> None:
    """It moves by more than 1, and the wrong way could be chosen by whoever writes the documents."""

    def floats(vectors: Vectors, plan: CutPlan, noise: Noise) -> list[float]:
        noise.gaussian(clip(vectors).sum(axis=0), sensitivity=1.0, sigma=plan.mean_sigma)
        return []

    with pytest.raises(AssertionError, match="vector moves"):
        hold_mean(ROUNDED, floats)


def test_the_check_catches_embeddings_that_are_not_clipped() -> None:
    def unclipped(vectors: Vectors, plan: CutPlan, noise: Noise) -> list[float]:
        noise.gaussian(vectors.sum(axis=0), sensitivity=1.0, sigma=plan.mean_sigma)
        return []

    with pytest.raises(AssertionError, match="vector moves"):
        hold_mean(np.array([[0.9, 0.9, 0.0], [0.1, 0.0, 0.0]]), unclipped)


def test_the_check_catches_thresholds_taken_from_the_data() -> None:
    def told(similar: Vectors) -> Call:
        above = np.arange(len(similar), 0, -1)
        noise = Shown(NoNoise())
        noise.noisy_max(-np.abs(above - PLAN.keep), range=2.0, scale=5.0, monotonic=False)
        return noise.calls[0]

    with pytest.raises(AssertionError, match="not of one mechanism"):
        moved(told(np.array([0.1, 0.5])), told(np.array([0.1, 0.5, 0.7])))
