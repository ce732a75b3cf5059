"""Public words, frequencies, lemmas, and words that are never completed."""

import subprocess
import sys

import pytest

from stillroom.errors import UnknownName
from stillroom.lexicon import WordList, is_stopword, lemma, protected, word_list, zipf

MADE_UP = """
    glibblewarts flibberflamosis flibberflamius zinklefrazz gleeblorazine flumplenaxism flibulux blergonade ploofling
    flibulonitis gloopernaught gigantitis insufficientity antihistaminic snurflepox nerdledonsosis
"""
DRUGS = """
    mg mcg ml dose drops troponin creatinine b12 hba1c amoxicillin lisinopril atorvastatin metoprolol fluconazole
    omeprazole azithromycin lorazepam insulin gleeblorazine adalimumab statins
"""
COMMON = "april disease database magazine phrase glibblewarts fatigue therapy nose"


def test_the_name_stillroom_en_1_stands_for_these_words_for_good() -> None:
    # If this fails, the words have changed (another wordfreq, or stop words): give the list a new name.
    listed = word_list("stillroom-en-1")
    assert len(listed) == 30_000
    assert listed.sha256 == "6d3be14a53582f09495c1adae2ed61e66c65705d61d9cae072805a8084398dd7"


def test_listed_words_are_sorted_plain_and_carry_a_topic() -> None:
    listed = word_list()
    assert list(listed.words) == sorted(set(listed.words))
    assert all(len(w) >= 3 and w.isascii() and w.isalpha() and w.islower() for w in listed.words)
    assert not any(map(is_stopword, listed.words))
    assert all(listed.index[listed.words[i]] == i for i in (0, 777, 29_999))
    assert "treatment" in listed and "the" not in listed


@pytest.mark.parametrize("word", MADE_UP.split())
def test_no_made_up_name_of_the_benchmark_is_public(word: str) -> None:
    assert word not in word_list()
    assert lemma(word) == word


def test_a_list_does_not_depend_on_the_order_it_was_given_in() -> None:
    assert WordList("a", ["b", "a", "b"]).sha256 == WordList("a", ["a", "b"]).sha256


def test_an_unknown_list_is_refused_by_name() -> None:
    with pytest.raises(UnknownName, match="stillroom-en-1"):
        word_list("stillroom-en-2")


def test_the_list_is_there_within_a_second() -> None:
    code = (
        "import time; t = time.process_time(); from stillroom.lexicon import *; word_list(); zipf('a');"
        "assert time.process_time() - t < 1.5"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": "src:" + ":".join(sys.path)})


def test_rarer_words_have_a_lower_zipf_and_unknown_ones_none() -> None:
    assert zipf("the") > zipf("treatment") > zipf("itching") > zipf("metformin") > zipf("glibblewarts") == 0.0


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("symptoms", "symptom"), ("therapies", "therapy"), ("rashes", "rash"), ("twitching", "twitch"),
        ("dancing", "dance"), ("dropping", "drop"), ("diagnosed", "diagnose"), ("carried", "carry"), ("teeth", "tooth"),
        ("tumours", "tumor"), ("oedema", "edema"), ("diagnosis", "diagnosis"), ("diabetes", "diabetes"),
        ("morning", "morning"), ("thing", "thing"), ("glass", "glass"), ("feed", "feed"), ("virus", "virus"),
    ],
)  # fmt: skip
def test_forms_are_counted_as_one_word(form: str, word: str) -> None:
    assert lemma(form) == word


def test_an_unlisted_word_only_loses_a_plural_s_and_only_to_a_listed_word() -> None:
    assert zipf("eyebrowing") == zipf("fingernailses") == 0
    assert lemma("eyebrowing") == "eyebrowing"
    assert lemma("glibblewarts") == "glibblewarts"
    unknown = next(
        w + "s" for w in word_list().words if zipf(w + "s") == 0 and w not in ("", "s") and w[-1] not in "su"
    )
    assert lemma(unknown) == unknown[:-1]


def test_a_lemma_is_its_own_lemma() -> None:
    assert all(lemma(lemma(word)) == lemma(word) for word in word_list().words)


@pytest.mark.parametrize("word", DRUGS.split())
def test_drug_dose_and_laboratory_words_are_protected(word: str) -> None:
    assert protected(word)


@pytest.mark.parametrize("word", COMMON.split())
def test_common_words_are_not(word: str) -> None:
    assert not protected(word)
