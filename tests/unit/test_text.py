"""One normal form, words, sentences, chunks."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.text import LONGEST_PIECE, chunks, normalise, sentences, words, words_with_spans

ANY = st.text(st.characters(codec=None), max_size=80)
SIZE = 1_000_000
HOSTILE = {
    "one letter": "x" * SIZE,
    "digits": "1" * SIZE,
    "full stops": "." * SIZE,
    "quotes after a stop": "." + '"' * SIZE,
    "apostrophes": "a'" * (SIZE // 2),
    "combining marks": "a" + "\u0301\u0323" * (SIZE // 2),
    "blanks": " " * SIZE + "x",
    "line breaks": "\n x" * (SIZE // 3),
    "prose": "The patient sleeps badly, and eats. " * 140_000,
}


def test_invisible_characters_go_and_compatible_ones_become_plain() -> None:
    assert normalise("a\u200bb\u00adc\x00d\ufeffe\u202e") == "abcde"
    assert normalise("Ｇｌｉｂｂｌｅ ﬁt ①\r\nnext\u2028line\tend") == "Glibble fit 1\nnext\nline\tend"
    assert normalise("e\u0301") == "é"
    assert normalise("\ud800") == "\ufffd"


@given(ANY)
def test_normalising_twice_changes_nothing_more_and_the_result_can_be_encoded(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    once.encode()


def test_words_are_lower_case_and_letters_with_their_marks() -> None:
    assert words("Dr. Müller's post-incident don’t O'Brien snake_case हिन्दी") == [
        *("dr", "müller", "post", "incident", "don't", "o'brien", "snake", "case", "हिन्दी")
    ]


def test_numbers_are_no_words_unless_they_hold_a_letter() -> None:
    assert words("2024 b12 3.5 +49-30-555 x") == ["b12", "x"]


def test_a_zero_width_character_does_not_split_a_word() -> None:
    assert words("glib\u200bble\u00adwarts") == ["glibblewarts"]


@given(ANY)
def test_the_words_of_the_words_are_the_words(text: str) -> None:
    found = words(text)
    assert [word for one in found for word in words(one)] == found


@given(ANY)
def test_a_span_points_at_the_form_as_written(text: str) -> None:
    plain = normalise(text)
    for word in words_with_spans(text):
        assert words(plain[word.start : word.end]) == [word.text]


def test_sentences_do_not_end_at_abbreviations_initials_and_decimals() -> None:
    text = "Dr. J. Doe came at 3.5 km/h, e.g. slowly. He left!  Why?\n\nNo stop here\n\n2. Rest."
    assert sentences(text) == [
        "Dr. J. Doe came at 3.5 km/h, e.g. slowly.",
        "He left!",
        "Why?",
        "No stop here",
        "2. Rest.",
    ]
    assert sentences(" \n ") == []


def test_a_chunk_ends_at_a_sentence_where_one_ends_in_its_second_half() -> None:
    assert chunks("One two three. Four five six seven. Eight nine ten eleven.", 5) == [
        "One two three.",
        "Four five six seven.",
        "Eight nine ten eleven.",
    ]
    assert chunks("a b c d e f g", 3) == ["a b c", "d e f", "g"]
    assert chunks("", 3) == chunks(" \x00 ", 3) == []


@given(st.text("ab .\n\u200bé!", max_size=300), st.integers(1, 12))
def test_chunks_never_exceed_the_length_and_lose_no_character(text: str, length: int) -> None:
    found = chunks(text, length)
    assert all(0 < len(chunk.split()) <= length for chunk in found)
    assert "".join("".join(found).split()) == "".join(normalise(text).split())


def test_a_text_without_blanks_is_cut_too() -> None:
    found = chunks("x" * 1000, 10)
    assert [len(chunk) for chunk in found] == [10 * LONGEST_PIECE] * 2 + [1000 - 20 * LONGEST_PIECE]


def test_a_chunk_has_at_least_one_word() -> None:
    with pytest.raises(ValueError):
        chunks("a", 0)


@pytest.mark.parametrize("name", HOSTILE)
def test_megabytes_of_anything_take_linear_time(name: str) -> None:
    text = HOSTILE[name]
    start = time.process_time()
    normalise(text)
    words(text)
    sentences(text)
    chunks(text, 200)
    assert time.process_time() - start < 20  # a quadratic pattern would take hours
