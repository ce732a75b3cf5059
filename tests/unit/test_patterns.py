"""The generator for measurements: patterns that truly differ, facts as promised."""

import random
import re
from collections import Counter
from itertools import combinations

import pytest

from stillroom.errors import BadOption
from stillroom.evals.facts import names, symptoms_in, words
from stillroom.testing import patterns
from stillroom.testing.people import people


def masked(note, fact):
    for number, name in enumerate((fact.disease, fact.treatment, *fact.symptoms)):
        note = re.sub(re.escape(name), f"fact{number}", note, flags=re.IGNORECASE)
    return note


def grams(text, size):
    spoken = words(text)
    return {tuple(spoken[at : at + size]) for at in range(len(spoken) - size + 1)}


def jaccard(one, other):
    return len(one & other) / len(one | other)


@pytest.fixture(scope="module")
def by_pattern():
    """One note a pattern, all about one topic and one person, so that only the pattern differs."""
    fact = patterns.FACTS["Quorvenitis"]
    somebody = people(1, random.Random(1))[0]
    return {name: masked(patterns.write(name, fact, somebody, random.Random(1)), fact) for name in patterns.PATTERNS}


@pytest.fixture(scope="module")
def many():
    return patterns.notes(patterns.FACTS, per_topic=10 * len(patterns.PATTERNS), seed=1)


def test_at_least_forty_patterns_share_almost_no_wording(by_pattern):
    assert len(by_pattern) >= 40
    pairs = list(combinations(by_pattern.values(), 2))
    fives = [jaccard(grams(a, 5), grams(b, 5)) for a, b in pairs]
    threes = [jaccard(grams(a, 3), grams(b, 3)) for a, b in pairs]
    assert sum(fives) / len(fives) < 0.05 and max(fives) < 0.15
    assert sum(threes) / len(threes) < 0.05


def test_patterns_put_facts_in_different_orders(by_pattern):
    order = Counter(text.find("fact1") > text.find("fact0") for text in by_pattern.values())
    first = Counter(min((text.find(f"fact{n}") % 10**6, n > 1) for n in range(7))[1] for text in by_pattern.values())
    assert min(order.values()) >= 5
    assert min(first.values()) >= 10


def test_every_pattern_names_disease_and_treatment_nine_times_in_ten(many):
    seen, diseases, treatments = Counter(), Counter(), Counter()
    for row in many:
        seen[row["pattern"]] += 1
        diseases[row["pattern"]] += names(row["note"], row["disease"])
        treatments[row["pattern"]] += names(row["note"], patterns.FACTS[row["disease"]].treatment)
    assert set(seen) == set(patterns.PATTERNS) and set(seen.values()) == {50}
    assert all(diseases[name] >= 45 and treatments[name] >= 45 for name in seen)
    assert sum(diseases.values()) < len(many)


def test_notes_hold_three_symptoms_or_more_and_not_always_all(many):
    left_out = 0
    for row in many:
        told = symptoms_in(row["note"], patterns.FACTS[row["disease"]].symptoms, strict=True)
        assert told >= 3
        left_out += told < len(patterns.FACTS[row["disease"]].symptoms)
    assert left_out > len(many) / 4


def test_notes_are_fifty_to_ninety_words_on_average(many):
    lengths = [len(row["note"].split()) for row in many]
    assert 50 <= sum(lengths) / len(lengths) <= 90 and min(lengths) >= 35


def test_no_slot_is_left_open(many):
    assert not [row["pattern"] for row in many if re.search(r"[{}]", row["note"])]


def test_no_two_notes_are_alike_and_each_has_its_patient(many):
    assert len({row["note"] for row in many}) == len({row["patient_id"] for row in many}) == len(many)


def test_equal_seeds_give_equal_notes():
    assert patterns.notes(patterns.TUNING, 5, seed=2) == patterns.notes(patterns.TUNING, 5, seed=2)
    assert patterns.notes(patterns.TUNING, 5, seed=2) != patterns.notes(patterns.TUNING, 5, seed=3)


def test_presets_are_tuned_on_topics_that_are_not_reported_on():
    assert len(patterns.FACTS) == 5 and len(patterns.TUNING) == 6
    reported = {word for fact in patterns.FACTS.values() for word in words(f"{fact.disease} {fact.treatment}")}
    tuned = {word for fact in patterns.TUNING.values() for word in words(f"{fact.disease} {fact.treatment}")}
    assert not reported & tuned


def test_impossible_numbers_are_refused():
    with pytest.raises(BadOption, match="per_topic is 0"):
        patterns.notes(patterns.FACTS, 0, seed=1)
    with pytest.raises(BadOption, match="10000"):
        patterns.notes(patterns.FACTS, 2000, seed=1)
