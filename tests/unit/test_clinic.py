"""The made-up clinic: every private string once, facts as promised, prose that varies."""

import json
import random
import re
from collections import Counter

import pytest
import wordfreq

from stillroom.errors import BadOption
from stillroom.evals.facts import canaries_found, names, symptoms_in
from stillroom.evals.readability import TOPICS
from stillroom.testing import clinic, patterns
from stillroom.testing.people import BEGINNINGS, ENDINGS, people

SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def rows():
    return [row for seed in SEEDS for row in clinic.collection(seed)]


def test_equal_seeds_give_equal_collections_and_others_do_not():
    assert clinic.collection(5) == clinic.collection(5)
    assert not {row["note"] for row in clinic.collection(5)} & {row["note"] for row in clinic.collection(6)}


@pytest.mark.parametrize("seed", SEEDS)
def test_topics_are_mildly_uneven(seed):
    counts = Counter(row["topic"] for row in clinic.collection(seed))
    assert sum(counts.values()) == 300 and set(counts) == set(clinic.FACTS)
    assert all(40 <= count <= 60 for count in counts.values())
    assert max(counts.values()) - min(counts.values()) >= 10


@pytest.mark.parametrize("notes", [6, 7, 100, 2000])
def test_as_many_notes_as_asked(notes):
    made = clinic.collection(1, notes)
    assert len(made) == notes == len({row["patient_id"] for row in made}) == len({row["id"] for row in made})


@pytest.mark.parametrize("notes", [0, 5, 9001])
def test_impossible_numbers_of_notes_are_refused(notes):
    with pytest.raises(BadOption, match=str(notes)):
        clinic.collection(1, notes)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_canary_stands_in_exactly_one_note(seed):
    made = clinic.collection(seed)
    canaries = clinic.canaries(made)
    assert len(canaries) == len(set(canaries)) == 4 * 300
    for row in made:
        own = [row["name"], row["last"], row["phone"], row["record"]]
        assert set(own) <= set(canaries)
        assert canaries_found([row["note"]], own) == canaries_found([row["note"]], canaries) == 4


def test_no_last_name_stands_inside_another():
    lasts = [(beginning + ending).lower() for beginning in BEGINNINGS for ending in ENDINGS]
    everything = " ".join(lasts)
    assert all(everything.count(last) == 1 for last in lasts)


def test_each_note_holds_its_own_name_phone_and_record_number_as_written(rows):
    for row in rows:
        assert row["name"] in row["note"] and row["phone"] in row["note"] and row["record"] in row["note"]
        assert re.fullmatch(r"555-0100-\d{4}", row["phone"]) and re.fullmatch(r"MRN-\d{6}-[A-Z]{2}", row["record"])


def test_last_names_that_two_people_share_are_no_canaries():
    made = clinic.collection(1, 2000)
    shared = {last for last, count in Counter(row["last"] for row in made).items() if count > 1}
    assert shared and not shared & set(clinic.canaries(made))
    assert len({row["name"] for row in made}) == 2000


def test_no_last_name_is_a_common_word():
    assert len({a + b for a in BEGINNINGS for b in ENDINGS}) == len(BEGINNINGS) * len(ENDINGS) == 864
    assert all(wordfreq.zipf_frequency(a + b, "en") < 2 for a in BEGINNINGS for b in ENDINGS)


def test_people_are_as_many_as_the_numbers_allow():
    assert len({person.phone for person in people(9000, random.Random(1))}) == 9000
    with pytest.raises(BadOption, match="9001"):
        people(9001, random.Random(1))


def test_notes_name_disease_and_treatment_nineteen_times_in_twenty(rows):
    diseases = sum(names(row["note"], row["topic"]) for row in rows) / len(rows)
    treatments = sum(names(row["note"], clinic.FACTS[row["topic"]].treatment) for row in rows) / len(rows)
    assert 0.92 <= diseases <= 0.98 and 0.92 <= treatments <= 0.98


def test_notes_hold_two_to_four_of_their_symptoms(rows):
    for row in rows:
        told = sum(symptom in row["note"].lower() for symptom in clinic.FACTS[row["topic"]].symptoms)
        assert 2 <= told <= 4
        assert symptoms_in(row["note"], clinic.FACTS[row["topic"]].symptoms, strict=True) >= told


def test_no_note_names_another_topic(rows):
    for row in rows:
        others = [fact for topic, fact in clinic.FACTS.items() if topic != row["topic"]]
        assert not any(names(row["note"], name) for fact in others for name in (fact.disease, fact.treatment))


def test_notes_are_thirty_to_eighty_words_of_finished_prose(rows):
    for row in rows:
        assert 30 <= len(row["note"].split()) <= 80
        assert not re.search(r"[{}]|\s\s|\s[.,;:?]|\.\.", row["note"]), row["note"]
        assert not re.search(r"(?<!tel)[.?!] [a-z]", row["note"]), row["note"]


def test_prose_varies():
    assert len(clinic.PATTERNS) >= 20 and len(clinic.FILLERS) >= 30
    made = clinic.collection(1)
    openings = Counter(" ".join(row["note"].split()[:2]) for row in made)
    assert max(openings.values()) <= 30
    order = Counter(
        row["note"].find(clinic.FACTS[row["topic"]].treatment) > row["note"].find(row["topic"]) for row in made
    )
    assert min(order.values()) >= 60


def test_invented_names_are_known_to_no_dictionary_and_shared_by_no_two_collections():
    facts = [*clinic.FACTS.values(), *patterns.FACTS.values(), *patterns.TUNING.values()]
    invented = [fact.disease for fact in facts] + [fact.treatment.split()[0] for fact in facts]
    public = [disease for disease, _ in TOPICS] + [treatment.split()[0] for _, treatment in TOPICS]
    assert len({word.lower() for word in invented + public}) == len(invented) + len(public)
    for word in invented:
        assert wordfreq.zipf_frequency(word, "en") == 0 and 8 <= len(word) <= 14 and word.isalpha()


def test_symptoms_are_ordinary_words_that_tell_topics_apart():
    for facts in (clinic.FACTS, patterns.FACTS, patterns.TUNING):
        symptoms = [symptom for fact in facts.values() for symptom in fact.symptoms]
        assert len(symptoms) == len(set(symptoms))
        assert all(3 <= len(fact.symptoms) <= 5 for fact in facts.values())
        assert all(wordfreq.zipf_frequency(word, "en") > 1.5 for each in symptoms for word in each.split())


def test_the_file_holds_only_what_a_clinic_would_keep(tmp_path):
    made = clinic.write(tmp_path / "clinic.jsonl", seed=4, notes=60)
    lines = (tmp_path / "clinic.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["note"] for line in lines] == [row["note"] for row in made]
    assert all(set(json.loads(line)) == {"id", "patient_id", "note"} for line in lines)
