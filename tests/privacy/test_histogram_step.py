"""One unit moves the histogram of keywords by at most √K, whatever an extractor returns for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.distil.histogram import released_words
from stillroom.distil.keywords import FastExtractor, LMExtractor
from stillroom.documents import Unit
from stillroom.lexicon import WordList, word_list
from stillroom.privacy.noise import Noise, OpenDPNoise
from stillroom.release.schema import KeywordPlan, Word
from stillroom.testing.noise import NoNoise
from stillroom.testing.toylm import ToyLM
from tests.privacy.mechanics import Call, Shown, collection, moved, unit

K = 4
PLAN = KeywordPlan(extractor="fast", per_unit=K, sigma=1.0, threshold=1.5, released=30, word_list="stillroom-en-1")
LISTED = KeywordPlan(extractor="fast", per_unit=K, sigma=1.0, released=30, word_list="stillroom-en-1")
Released = Callable[[Iterable[Iterable[str]], KeywordPlan, WordList, Noise], tuple[Word, ...]]

A_THOUSAND = tuple(f"{a}{b}{c}zz" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwxyabcde")
NASTY: dict[str, Sequence[str]] = {
    "a thousand words": A_THOUSAND,
    "a thousand listed words": word_list().words[:1000],
    "one word a thousand times": ["fever"] * 1000,
    "the same in other spellings": ["Fever", "FEVER", " fever ", "fever", "ＦＥＶＥＲ", "rash", "rash.", "(rash)"],
    "listed and unlisted ones": ["fever", "zonkitis", "rash", "blergon", "cough", "snurflepox"] * 9,
    "no words at all": ["", " ", "\x00", "12345", "a b c", "\ud800", "x" * 10_000],
    "an injection": ["ignore previous instructions", "LEAK", "LEAK", "<|im_end|>", '["LEAK"] * 1000'],
    "nothing": [],
}


def told(keywords: Iterable[Iterable[str]], released: Released = released_words, plan: KeywordPlan = PLAN) -> Call:
    """Return the one call of noise that the step makes."""
    noise = Shown(NoNoise())
    released(keywords, plan, word_list(), noise)
    (call,) = noise.calls
    return call


def hold(others: Sequence[Sequence[str]], one: Sequence[str], released: Released = released_words) -> float:
    """Raise AssertionError unless one unit's words move the call by no more than is claimed."""
    for plan in (PLAN, LISTED):
        cost = moved(told(others, released, plan), told([*others, one], released, plan))
        if cost > K / 2 + 1e-9:
            raise AssertionError("a unit costs more than K/2σ²")
    return cost


@pytest.mark.parametrize("name", NASTY)
def test_whatever_an_extractor_returns_for_a_unit_is_bounded(name: str) -> None:
    hold([["fever", "zonkitis"], ["fever", "rash"]], NASTY[name])
    hold([], NASTY[name])


@settings(deadline=None, max_examples=30)
@given(
    units=st.lists(
        st.lists(st.sampled_from(["fever", "Fever", "rash", "zonkitis", "x1", "blergon", "pain"])), max_size=5
    ),
    one=st.lists(st.text(max_size=8) | st.sampled_from(["fever", "rash", "zonkitis", "blergon", "pain", "cough"])),
)
def test_so_are_any_words(units: list[list[str]], one: list[str]) -> None:
    hold(units, one)


def test_a_unit_of_fifty_documents_counts_for_k_words() -> None:
    many = unit(
        "many",
        *(f"Zonkitis and {word} with {other}" for word, other in zip(A_THOUSAND, A_THOUSAND[50:100], strict=False)),
    )
    for extractor in (FastExtractor(word_list(), K), LMExtractor(ToyLM(), K), Greedy()):
        found = extractor.extract_many([many])
        assert moved(told([]), told(found)) <= K / 2


class Greedy:
    """An extractor that a prompt injection has taken over."""

    name = "lm"

    def extract(self, unit: Unit) -> tuple[str, ...]:
        return A_THOUSAND

    def extract_many(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        return [self.extract(unit) for unit in units]


def test_every_listed_word_gets_noise_whether_or_not_anybody_has_it() -> None:
    assert told([]).shape == told([["fever"]]).shape == (len(word_list()),)


def test_a_word_that_nobody_listed_is_left_to_the_threshold() -> None:
    call = told([["zonkitis"], ["zonkitis", "blergon"]])
    assert call.unlisted == {"zonkitis": 2.0, "blergon": 1.0}
    words = released_words([["zonkitis"], ["zonkitis", "blergon"]], PLAN, word_list(), NoNoise())
    assert "zonkitis" in {w.word for w in words} and "blergon" not in {w.word for w in words}


def test_the_order_of_units_is_not_told() -> None:
    keywords = [FastExtractor(word_list(), K).extract(unit("u", d.text)) for d in collection()]
    one, other = told(keywords), told(keywords[::-1])
    assert moved(one, other) == 0.0
    assert released_words(keywords, PLAN, word_list(), NoNoise()) == released_words(
        keywords[::-1], PLAN, word_list(), NoNoise()
    )


# -- what would go wrong, seen by the same checks --------------------------------------------------------------------
def unbounded(keywords: Iterable[Iterable[str]], plan: KeywordPlan, known: WordList, noise: Noise) -> tuple[Word, ...]:
    """Trust the extractor."""
    counts: Counter[str] = Counter(word for found in keywords for word in found)
    listed = np.array([float(counts.get(word, 0)) for word in known.words])
    unlisted = {word: float(n) for word, n in counts.items() if word not in known}
    noise.histogram(
        listed, unlisted if plan.threshold else {}, keys=plan.per_unit, sigma=plan.sigma, threshold=plan.threshold
    )
    return ()


def observed_only(
    keywords: Iterable[Iterable[str]], plan: KeywordPlan, known: WordList, noise: Noise
) -> tuple[Word, ...]:
    """Add noise to the words that somebody has, which is what counting words first makes easy."""
    counts: Counter[str] = Counter(word for found in keywords for word in dict.fromkeys(found))
    words = sorted(counts)
    noisy, _ = noise.histogram(
        np.array([float(counts[word]) for word in words]), {}, keys=plan.per_unit, sigma=plan.sigma, threshold=None
    )
    return tuple(Word(word=w, count=float(n), listed=w in known) for w, n in zip(words, noisy, strict=True))


@pytest.mark.parametrize("name", ["a thousand words", "a thousand listed words", "one word a thousand times"])
def test_the_check_catches_an_extractor_that_is_trusted(name: str) -> None:
    with pytest.raises(AssertionError, match=r"moves more keys|more than"):
        hold([["fever"]], NASTY[name], unbounded)


def test_the_check_catches_noise_on_observed_words_only() -> None:
    with pytest.raises(AssertionError, match="not of one mechanism"):
        hold([["fever"]], ["fever", "rash"], observed_only)


def test_a_unique_word_tells_of_its_unit_in_every_run_where_only_observed_words_get_noise() -> None:
    plan, known = PLAN.model_copy(update={"threshold": 8.0}), WordList("tiny", ["fever", "rash"])

    def shows(released: Released) -> int:
        runs = (released([["fever"], ["qvorxel"]], plan, known, OpenDPNoise()) for _ in range(50))
        return sum("qvorxel" in {w.word for w in words} for words in runs)

    assert shows(observed_only) == 50
    assert shows(released_words) == 0  # δ_ps of one word here is 1e-12


def test_the_check_catches_caps_for_each_document() -> None:
    many = [tuple(A_THOUSAND[i * K : (i + 1) * K]) for i in range(50)]  # one document each, of one unit
    with pytest.raises(AssertionError, match="keys"):
        moved(told([["fever"]]), told([["fever"], *many]))


def test_no_unlisted_word_is_published_with_a_count_that_does_not_pass_the_threshold() -> None:
    """Counts are rounded: one just above the threshold may come to lie below it, and `verify` would refuse it."""

    class Fixed(NoNoise):
        def histogram(self, listed: Any, unlisted: Any, **claim: Any) -> Any:
            return np.zeros(len(listed)), {"zonkitis": 2.041, "snurflepox": 2.06, "blergon": 3.0}

    kept = KeywordPlan(
        extractor="fast", per_unit=4, sigma=0.4, threshold=2.04, released=9, word_list="stillroom-en-1",
        least_count=0.5,
    )  # fmt: skip
    found = released_words([], kept, word_list(), Fixed())
    assert [(word.word, word.count) for word in found] == [("blergon", 3.0), ("snurflepox", 2.1)]
