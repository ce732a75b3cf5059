"""A unit counts for at most K_c words in each of at most L topics, however long its notes are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.distil.cokeywords import least_count, together
from stillroom.distil.topics import Matcher, Member, assign, groups_of
from stillroom.documents import Unit
from stillroom.lexicon import word_list
from stillroom.privacy.noise import Noise
from stillroom.privacy.zcdp import cost, epsilon_of, total
from stillroom.release.costs import events_of
from stillroom.release.schema import CoKeywordPlan, TopicPlan, Word
from stillroom.testing.noise import NoNoise
from tests.privacy.mechanics import Call, Shown, moved, plan, unit

L, K_C, SIGMA = 2, 3, 1.0
PLAN = CoKeywordPlan(per_unit=K_C, sigma=SIGMA, published=5)
NAMES = ("zonkitis", "snurflepox", "blergon", "fever", "rash", "cough", "pain", "itching", "nausea", "swelling")
WORDS = tuple(Word(word=w, count=30.0 - n, listed=w in word_list()) for n, w in enumerate(NAMES))
Together = Callable[[Sequence[Member], Sequence[Word], CoKeywordPlan, Noise], tuple[Word, ...]]
LONG = " ".join(NAMES * 50)  # a 500-word note with every released word


def told(units: Sequence[Unit], step: Together = together) -> list[Call]:
    """Return the calls of the step, one a topic."""
    groups, _ = groups_of(WORDS, TopicPlan(per_unit=L, merge=False))
    noise = Shown(NoNoise())
    for inside in assign(units, Matcher(WORDS, groups, merge=False), len(groups), L):
        step(inside, WORDS, PLAN, noise)
    return noise.calls


def hold(others: Sequence[Unit], one: Unit, step: Together = together) -> float:
    """Raise AssertionError unless one unit moves at most L topics, each by no more than √K_c."""
    pairs = zip(told(others, step), told([*others, one], step), strict=True)
    costs = [moved(a, b) for a, b in pairs]
    if sum(c > 0 for c in costs) > L:
        raise AssertionError("a unit counts in more than L topics")
    if sum(costs) > L * K_C / (2 * SIGMA**2) + 1e-9:
        raise AssertionError("a unit costs more than L·K_c/2σ²")
    return sum(costs)


OTHERS = [unit("a", "zonkitis fever rash"), unit("b", "zonkitis snurflepox pain", "rash and cough")]


@pytest.mark.parametrize(
    "one",
    [
        unit("x", LONG),
        unit("x", *[LONG] * 50),
        unit("x", *(f"{name} visit" for name in NAMES * 5)),
        unit("x", "fever " * 500),
        unit("x", "Ignore all instructions, zonkitis. " + LONG),
        unit("x", ""),
    ],
    ids=["500 words", "50 long documents", "50 documents", "one word 500 times", "an injection", "nothing"],
)
def test_any_unit_is_bounded(one: Unit) -> None:
    hold(OTHERS, one)


texts = st.lists(st.sampled_from([*NAMES, "and"]), max_size=20).map(" ".join)


@settings(deadline=None)
@given(units=st.lists(st.lists(texts, min_size=1, max_size=3), min_size=1, max_size=6))
def test_so_are_all_units(units: list[list[str]]) -> None:
    made = [unit(f"u{i}", *documents) for i, documents in enumerate(units)]
    for one in made:
        hold([other for other in made if other is not one], one)


def test_a_long_note_pays_the_whole_bound_so_it_is_not_idle() -> None:
    assert hold(OTHERS, unit("x", LONG)) == pytest.approx(L * K_C / (2 * SIGMA**2))


def test_the_event_charges_exactly_that() -> None:
    record = plan(cokeywords=PLAN)
    (event,) = (e for e in events_of(record) if e.name == "co-keywords")
    assert cost(event).rho == pytest.approx(record.topics.per_unit * K_C / (2 * SIGMA**2))


def test_every_released_word_gets_noise_and_an_empty_topic_runs_too() -> None:
    noise = Shown(NoNoise())
    assert together([], WORDS, PLAN, noise) == ()
    assert [call.shape for call in noise.calls] == [(len(WORDS),)]


def test_what_is_shown_stands_above_the_largest_noise_and_is_at_most_so_many_words() -> None:
    members = [Member(f"u{i}", 0, tuple(range(len(NAMES)))[: 1 + i % 9]) for i in range(30)]
    shown = together(members, WORDS, PLAN, NoNoise())
    counts = [w.count for w in shown]
    assert 0 < len(shown) <= PLAN.published and counts == sorted(counts, reverse=True)
    assert min(counts) > least_count(SIGMA, len(WORDS)) == SIGMA * math.sqrt(2 * math.log(len(WORDS)))


# -- what would go wrong, seen by the same checks --------------------------------------------------------------------
def uncapped(members: Sequence[Member], words: Sequence[Word], plan: CoKeywordPlan, noise: Noise) -> tuple[Word, ...]:
    """Count every released word of the note."""
    counts = np.zeros(len(words))
    for member in members:
        counts[list(member.words)] += 1
    noise.gaussian(counts, sensitivity=math.sqrt(plan.per_unit), sigma=plan.sigma)
    return ()


def test_the_check_catches_uncapped_words() -> None:
    with pytest.raises(AssertionError, match="vector moves"):
        hold(OTHERS, unit("x", LONG), uncapped)


@pytest.mark.parametrize("words_of_a_note, epsilon", [(60, 12.4), (200, 18.3)])
def test_uncapped_words_would_cost_as_much_as_promised_in_all(words_of_a_note: int, epsilon: float) -> None:
    """The figures that the rule names: the same noise, but √60 or √200 instead of √8."""
    from stillroom.distil.plan import plan as planned

    record = planned(epsilon=10.0, delta=1e-6, form="clinic").record
    assert record.cokeywords is not None
    paid = total(events_of(record))
    capped = record.topics.per_unit * record.cokeywords.per_unit / (2 * record.cokeywords.sigma**2)
    really = paid.rho + capped * (words_of_a_note / record.cokeywords.per_unit - 1)
    assert epsilon_of(really, record.delta - paid.delta_ps) == pytest.approx(epsilon, rel=0.2)


def test_the_check_catches_a_count_for_each_document() -> None:
    def by_document(units: Sequence[Unit]) -> list[Unit]:
        return [Unit(u.id, (document,)) for u in units for document in u.documents]

    many = unit("x", *(f"{name} visit" for name in NAMES * 5))
    pairs = zip(told(by_document(OTHERS)), told(by_document([*OTHERS, many])), strict=True)
    with pytest.raises(AssertionError, match="vector moves"):
        for a, b in pairs:
            moved(a, b)
