"""A row's votes are whole numbers in a fixed range, whatever it scores and whoever votes beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from stillroom.distil.votes import Ballot, Votes, centred, masked, one_sided, prior_votes
from stillroom.lm.base import Prompt, Scores, Session
from stillroom.lm.rowtest import rows_independent
from stillroom.privacy.noise import OpenDPNoise
from stillroom.testing.toylm import CrowdedLM, ToyLM
from tests.privacy.mechanics import NOTES

LEVELS, CLIP = 1000, 0.21
Aggregator = Callable[[Scores], Votes]


def clipped(scores: Scores) -> Votes:
    return centred(scores, LEVELS, CLIP)


def shared(scores: Scores) -> Votes:
    return one_sided(scores, LEVELS)


def abstaining(scores: Scores) -> Votes:
    """Return the votes for all but the last token, where a row that wants the last one abstains."""
    votes = one_sided(scores[:, :-1], LEVELS, scores.max(axis=1, keepdims=True))
    return np.concatenate([votes, np.zeros((len(scores), 1), np.int64)], axis=1)


def both(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("votes", [shared, clipped, abstaining])(test)


any_rows = st.integers(1, 9).flatmap(
    lambda m: arrays(np.float32, st.tuples(st.integers(1, 12), st.just(m)), elements=st.floats(width=32))
)


def in_range(votes: Aggregator, scores: Scores) -> None:
    """Raise AssertionError unless every vote of every row is a whole number from 0 to LEVELS."""
    found = votes(scores)
    if found.shape != scores.shape or found.dtype != np.int64:
        raise AssertionError("votes are no whole numbers, one for each candidate")
    if found.size and not (found.min() >= 0 and found.max() <= LEVELS):
        raise AssertionError("a vote leaves its range")


def alone_and_together(votes: Aggregator, scores: Scores) -> None:
    """Raise AssertionError unless each row votes the same alone, in another place, and beside others."""
    together = votes(scores)
    turned = np.roll(votes(np.roll(scores, 1, axis=0)), -1, axis=0)
    for i in range(len(scores)):
        for other in (votes(scores[i : i + 1])[0], turned[i], votes(scores[: i + 1])[i]):
            if not np.array_equal(other, together[i]):
                raise AssertionError("a row's votes depend on the others")


@both
@settings(deadline=None)
@given(scores=any_rows)
def test_any_scores_make_votes_in_range_of_each_row_alone(votes: Aggregator, scores: Scores) -> None:
    in_range(votes, scores)
    alone_and_together(votes, scores)


@both
def test_so_do_many_real_looking_rows(votes: Aggregator) -> None:
    chance = np.random.default_rng(5)
    for m in (1, 7, 64, 257, 1000):
        scores = chance.normal(scale=4, size=(33, m)).astype(np.float32)
        in_range(votes, scores)
        alone_and_together(votes, scores)


class Rows(Session):
    """Rows whose scores are given."""

    def __init__(self, scores: Scores) -> None:
        self.given, self.rows = scores, len(scores)

    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        return self.given.copy()

    def push(self, tokens: Sequence[int]) -> None:
        raise NotImplementedError


@both
@settings(deadline=None)
@given(scores=any_rows)
def test_one_row_moves_a_tally_up_by_at_most_the_range(votes: Aggregator, scores: Scores) -> None:
    step = Rows(scores).tally(votes) - Rows(scores[1:]).tally(votes)
    assert ((step >= 0) & (step <= LEVELS)).all()


@both
def test_a_row_that_cannot_be_read_votes_nothing(votes: Aggregator) -> None:
    nan, inf = math.nan, math.inf
    broken = np.array([[nan, 1, 2], [1, inf, 2], [-inf, -inf, -inf], [nan, nan, nan]], np.float32)
    assert not votes(broken).any()


@both
def test_no_rows_have_a_tally_of_zero(votes: Aggregator) -> None:
    assert Rows(np.zeros((0, 4), np.float32)).tally(votes).tolist() == [0, 0, 0, 0]


def test_minus_infinity_votes_nothing_and_the_best_token_gets_all_levels() -> None:
    assert shared(np.array([[0, -math.inf, math.log(0.5005)]], np.float32)).tolist() == [[LEVELS, 0, 500]]


def test_a_row_votes_less_the_more_it_wants_what_is_not_offered_and_never_more() -> None:
    scores = np.log(np.array([[0.4, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.2, 0.5]], np.float32))
    expected = np.array([[LEVELS, 500], [125, 125], [600, 400]])
    assert np.abs(abstaining(scores)[:, :2] - expected).max() <= 1  # a half rounded down
    chance = np.random.default_rng(3).normal(scale=4, size=(50, 20)).astype(np.float32)
    assert (abstaining(chance)[:, :-1] <= shared(chance[:, :-1])).all()


@pytest.mark.parametrize("wanted", [math.nan, math.inf])
def test_a_row_whose_best_token_cannot_be_read_votes_nothing(wanted: float) -> None:
    assert not abstaining(np.array([[1, 2, wanted]], np.float32)).any()


def test_a_best_score_below_the_offered_ones_takes_no_vote_out_of_its_range() -> None:
    votes = one_sided(np.array([[1, 2], [3, 3]], np.float32), LEVELS, np.array([[-5], [-math.inf]], np.float32))
    assert votes.max() == LEVELS and votes.min() >= 0


def test_centred_votes_are_the_papers_moved_up_by_the_clip() -> None:
    scores = np.random.default_rng(1).normal(scale=3, size=(20, 30)).astype(np.float32)
    e = np.exp(scores.astype(np.float64))
    e /= e.max(axis=1, keepdims=True)
    middle = e - (e.max(axis=1, keepdims=True) + e.min(axis=1, keepdims=True)) / 2
    paper = middle * np.minimum(1, CLIP / np.abs(middle).max(axis=1, keepdims=True))
    votes = clipped(scores) * (2 * CLIP / LEVELS) - CLIP
    assert np.abs(votes - paper).max() <= 2 * CLIP / LEVELS * (1 + 1e-9)


def test_a_row_without_preference_votes_the_same_for_all() -> None:
    for votes in (shared, clipped):
        found = votes(np.full((1, 6), -3.0, np.float32))
        assert len(set(found[0].tolist())) == 1


@settings(deadline=None)
@given(probability=st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20), clip=st.floats(0.01, 2.0))
def test_the_prior_lies_within_half_a_vote_of_its_logarithm(probability: list[float], clip: float) -> None:
    log = np.log(np.array(probability))
    assert np.abs(prior_votes(log, clip, LEVELS) * (2 * clip / LEVELS) - log).max() <= clip / LEVELS * (1 + 1e-9)


def test_a_tally_does_not_know_the_order_of_its_rows() -> None:
    votes = np.random.default_rng(2).integers(0, LEVELS, size=(500, 40)).astype(np.float32)
    sums = [Rows(rows).tally(lambda scores: scores.astype(np.int64)) for rows in (votes, votes[::-1])]
    assert np.array_equal(*sums)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), ended=st.booleans())
def test_among_released_words_candidates_alone_give_the_votes_of_the_whole_table(seed: int, ended: bool) -> None:
    chance = np.random.default_rng(seed)
    scores = chance.normal(scale=3, size=(9, 30)).astype(np.float32)
    stops = (3, 8, 20)
    others = [int(t) for t in chance.permutation(30) if t not in stops][:6]
    tokens = tuple(sorted([*others, *([8] if ended else [])]))
    closed = Ballot(LEVELS, tokens, stops=stops, stop=8 if ended else None, closed=True)
    whole = masked(scores.copy(), stops, 8 if ended else None, None)
    asked = scores if closed.columns is None else scores[:, [*closed.columns]]
    assert np.array_equal(closed(asked), one_sided(whole[:, [*tokens]], LEVELS))


def test_calibration_shifts_every_row_alike_and_votes_stay_in_range() -> None:
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, -np.inf], [np.nan, 0.0, 0.0]], np.float32)
    plain = Ballot(LEVELS, (5, 6, 7), closed=True)
    leaning = Ballot(LEVELS, (5, 6, 7), closed=True, lean=(0, -1500, 700))
    assert np.array_equal(leaning(scores), plain(scores - np.array([0, -1.5, 0.7], np.float32)))
    assert leaning(scores).max(axis=1).tolist() == [LEVELS, LEVELS, 0]
    assert np.array_equal(leaning(scores[:1]), leaning(scores)[:1])
    in_range(lambda rows: leaning(rows), scores)


# -- what would go wrong, seen by the same checks --------------------------------------------------------------------
def test_float_sums_do_know_it_and_are_refused_by_the_noise() -> None:
    shares = np.random.default_rng(2).random((500, 40)).astype(np.float32)
    assert not np.array_equal(shares.sum(axis=0), shares[::-1].sum(axis=0))
    with pytest.raises(ValueError, match="int64"):
        OpenDPNoise().noisy_max(shares.sum(axis=0), range=1.0, scale=2.0, monotonic=True)  # type: ignore[arg-type]


def test_centred_votes_without_the_clip_leave_the_range() -> None:
    def unclipped(scores: Scores) -> Votes:
        share: NDArray[np.float64] = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
        return np.floor((share - (1 + share.min(axis=1, keepdims=True)) / 2 + CLIP) * LEVELS / (2 * CLIP)).astype(int)

    with pytest.raises(AssertionError, match="range"):
        in_range(unclipped, np.array([[0.0, -5.0, -9.0]], np.float32))


def test_votes_scaled_by_all_rows_together_depend_on_the_others() -> None:
    def by_the_best_of_all(scores: Scores) -> Votes:
        return np.floor(np.exp(scores.astype(np.float64) - scores.max()) * LEVELS).astype(np.int64)

    with pytest.raises(AssertionError, match="others"):
        alone_and_together(by_the_best_of_all, np.array([[0.0, -1.0], [3.0, 1.0]], np.float32))


def test_a_model_whose_rows_lean_on_each_other_moves_votes_and_is_refused_by_the_row_test() -> None:
    def row(lm: ToyLM, notes: tuple[str, ...]) -> Votes:
        return shared(lm.open(lm.read([Prompt("Read.", note) for note in notes])).scores())[0]

    assert np.array_equal(row(ToyLM(), NOTES), row(ToyLM(), NOTES[:2]))
    assert not np.array_equal(row(CrowdedLM(), NOTES), row(CrowdedLM(), NOTES[:2]))
    assert rows_independent(ToyLM())
    assert not rows_independent(CrowdedLM())
