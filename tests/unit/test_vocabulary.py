"""What may be said next: by public scores, released words and the released prefix alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.distil.vocabulary import Prefix, Spelling, TokenKinds, lean_of, log_prior, prior_on_grid, topmost
from stillroom.lexicon import WordList, protected
from stillroom.testing.toylm import LABELS, ToyLM
from tests.privacy.mechanics import FORM

KNOWN = WordList("known", ["rest", "tea", "snuff", "fever"])
LM = ToyLM(words=("Zonk", "Snu", "Rest", "fever", "met"))


def spelling(*words: str) -> Spelling:
    return Spelling(LM, words, KNOWN)


def said(text: str) -> list[int]:
    return LM.encode(text)


def ending(text: str, *words: str) -> str | None:
    rest = spelling(*words).ending(said(text))
    return LM.decode(rest) if rest else None


def test_a_released_word_is_completed_where_only_it_can_be_meant() -> None:
    assert ending(" Zonk", "zonkitis") == "itis"
    assert ending(" Rest Zonkit", "zonkitis", "snurflepox") == "is"


@pytest.mark.parametrize(
    "why, text, words",
    [
        ("two released words begin so", " Zonk", ("zonkitis", "zonkova")),
        ("it is a released word itself", " Zonk", ("zonk", "zonkitis")),
        ("a word of the public list begins so", " Snu", ("snurflepox",)),
        ("too few letters stand there", " z", ("zonkitis",)),
        ("the word is complete", " Zonkitis", ("zonkitis",)),
        ("no released word begins so", " Zonka", ("zonkitis",)),
        ("the last word is over", " Zonk ", ("zonkitis",)),
        ("nothing was said", "", ("zonkitis",)),
    ],
)
def test_no_word_is_completed_where(why: str, text: str, words: tuple[str, ...]) -> None:
    assert ending(text, *words) is None


def test_a_word_spelt_in_other_tokens_makes_a_beginning_ambiguous_too() -> None:
    class Whole(ToyLM):
        """Has a token for one of the words."""

    lm = Whole(words=("Zonk", "Zonkova"))
    both = Spelling(lm, ["zonkitis", "zonkova"], KNOWN)
    assert not both.ending(lm.encode(" Zonk"))
    assert lm.decode(both.ending(lm.encode(" Zonki"))) == "tis"


@pytest.mark.parametrize("word", ["metformin", "metoprolol", "xylazocillin"])
def test_inside_drug_words_nothing_is_completed_and_nothing_restricted(word: str) -> None:
    assert protected(word)
    open_ = Spelling(LM, [word], WordList("none", ["fever"]))
    for n in range(2, len(word)):
        tokens = said(" " + word[:n])
        assert not open_.ending(tokens) and not open_.ending(tokens, closed=True) and not open_.inside(tokens)


def test_nor_where_a_drug_begins_like_another_word() -> None:
    open_ = Spelling(LM, ["metformin", "metforzonk"], WordList("none", ["fever"]))
    for text in (" met", " metfor"):
        assert not open_.ending(said(text)) and not open_.inside(said(text))
    assert LM.decode(open_.ending(said(" metforz"))) == "onk"


def test_where_nothing_but_released_words_can_be_said_no_other_word_is_meant() -> None:
    assert LM.decode(spelling("snurflepox").ending(said(" Snu"), closed=True)) == "rflepox"
    assert LM.decode(spelling("zonkitis", "zonkova").ending(said(" Zonk"), {"zonkova"}, closed=True)) == "itis"
    assert not spelling("zonkitis", "zonkova").ending(said(" Zonk"), closed=True)
    assert not spelling("zonk", "zonkitis").ending(said(" Zonk"), {"zonk"}, closed=True)  # it is one already


def test_a_word_spoken_before_is_not_gone_on_with() -> None:
    both = spelling("zonkitis", "zonkova")
    assert {LM.decode([t]) for t in both.following(said(" Zonk"), {"zonkova"})} == {"i"}


def test_what_follows_is_found_by_letters_whatever_tokens_a_word_is_spelt_in() -> None:
    other = Spelling(ToyLM(words=("Zonkitis", "Zo", "nk")), ["zonkitis"], KNOWN)
    assert {other.lm.decode([t]) for t in other.following(other.lm.encode(" Zo"))} == {"n"}


def test_inside_a_released_word_only_released_words_can_follow() -> None:
    both = spelling("zonkitis", "zonkova")
    assert both.inside(said(" Zonk"))
    assert {LM.decode([t]) for t in both.following(said(" Zonk"))} == {"i", "o"}
    assert not both.inside(said(" Rest"))
    assert not spelling("zonk", "zonkitis").inside(said(" Zonk"))  # or the shorter one could never be said
    assert not spelling("snurflepox").inside(said(" Snu"))  # or "snuff" could not


def test_words_begin_with_their_first_token_in_both_cases() -> None:
    firsts = {LM.decode([t]) for t in spelling("zonkitis", "fever").first_tokens()}
    assert firsts >= {" Zonk", " fever"}


@settings(deadline=None)
@given(st.lists(st.sampled_from([" Zonk", "i", "t", "s", " Rest", " ", "\n", "o"]), max_size=8))
def test_what_follows_depends_on_the_last_word_alone(pieces: list[str]) -> None:
    both = spelling("zonkitis", "zonkova")
    tokens = said("".join(pieces))
    assert both.following(tokens) == both.following(said(" Rest") + tokens)


def test_the_best_k_come_in_order_and_ties_by_id() -> None:
    assert topmost(np.array([1, 3, 2, 3, -np.inf], np.float32), 3) == [1, 3, 2]
    assert topmost(np.array([0, 0, 0], np.float32), 99) == [0, 1, 2]


def test_a_prior_has_its_floor_and_adds_up_to_one() -> None:
    scores = np.array([5, 1, -40, -math.inf], np.float32)
    prior = np.exp(log_prior(scores, 0.1))
    assert prior.sum() == pytest.approx(1)
    assert prior.min() == pytest.approx(0.1 / 4)
    assert prior[0] == pytest.approx(0.9 * math.exp(5) / (math.exp(5) + math.exp(1)) + 0.1 / 4)


@pytest.mark.parametrize("broken", [[math.nan, 1.0], [math.inf, 1.0], [-math.inf, -math.inf]])
def test_a_public_row_that_cannot_be_read_prefers_nothing(broken: list[float]) -> None:
    assert np.exp(log_prior(np.array(broken, np.float32), 0.1)).tolist() == pytest.approx([0.5, 0.5])


def test_without_a_floor_there_is_no_prior() -> None:
    assert prior_on_grid(np.array([3.0, -9.0], np.float32), None, 0.2, 1000).tolist() == [0, 0]


def test_a_value_begins_with_no_break_no_end_no_stop_word_and_no_word_of_the_form() -> None:
    lm = ToyLM()
    kinds = TokenKinds.of(lm, FORM)
    barred = {lm.decode([t]) for t in kinds.no_start}
    assert {"", "\n", " ", " and", " the", " with", " of", "a", *LABELS} <= barred
    assert not {" Zonkitis", " fever", " Rest"} & barred
    assert kinds.no_start >= lm.stop_tokens


def test_a_free_text_has_no_such_rules() -> None:
    assert TokenKinds.of(ToyLM(), None) == TokenKinds(frozenset(), frozenset(), frozenset())


def test_released_words_that_have_been_said_no_longer_begin_anything() -> None:
    both = spelling("zonkitis", "fever")
    assert {LM.decode([t]) for t in both.first_tokens({"fever"})} == {" Zonk", " "}
    assert both.first_tokens({"zonkitis", "fever"}) == set()
    assert both.first_tokens({"rest"}) == both.first_tokens()


def barred(prefix: Prefix, *released: str) -> set[str]:
    lm = ToyLM()
    found = TokenKinds.of(lm, FORM).barred(prefix, {t for word in released for t in lm.encode(word)})
    return {lm.decode([t]) for t in found}


def test_a_value_may_begin_with_a_released_word_whatever_it_looks_like() -> None:
    assert " and" in barred(Prefix(()))
    assert " and" not in barred(Prefix(()), " and")


def test_no_two_values_begin_alike() -> None:
    (tea,) = ToyLM().encode(" Tea")
    assert " Tea" not in barred(Prefix(()))
    assert " Tea" in barred(Prefix((), starts=frozenset({tea}))) & barred(Prefix((), starts=frozenset({tea})), " Tea")


def test_a_value_says_a_word_once_and_stop_words_as_often_as_it_likes_but_not_in_a_list() -> None:
    said_ = tuple(ToyLM().encode(" Tea and Rest"))
    assert barred(Prefix(said_)) == {" Tea", " Rest"}
    assert barred(Prefix(said_, listed=True)) == {" Tea", " Rest", " and", " the", " with", " of"}


def test_a_lift_is_shared_by_released_words_and_the_prior_still_adds_up_to_one() -> None:
    scores = np.array([5, 1, 0, -math.inf], np.float32)
    plain, lifted = np.exp(log_prior(scores, 0.1)), np.exp(log_prior(scores, 0.1, 0.3, [False, False, True, True]))
    assert lifted.sum() == pytest.approx(1)
    p = (plain - 0.1 / 4) / 0.9
    assert lifted.tolist() == pytest.approx((0.6 * p + 0.1 / 4 + np.array([0, 0, 0.15, 0.15])).tolist())
    assert np.exp(log_prior(scores, 0.1, 0.3, [False] * 4)).tolist() == pytest.approx(plain.tolist())  # nobody to lift


def test_calibration_takes_a_share_of_the_mean_over_public_rows() -> None:
    scores = np.array([[2.0, 0.0, -4.0], [0.0, 2.0, -4.0]], np.float32)
    assert lean_of(scores, 0.5) == [0, 0, -2500]
    assert lean_of(scores + 7, 1.0) == [0, 0, -5000]


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_public_rows_that_cannot_be_read_calibrate_nothing(broken: float) -> None:
    assert lean_of(np.array([[1.0, broken], [0.0, 0.0]], np.float32), 0.5) == [0, 0]
