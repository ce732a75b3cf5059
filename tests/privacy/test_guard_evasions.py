"""However a value is disguised, pulled apart or spelled, it does not come out: what an audit got past the detectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stillroom.guard.detect.base import LONGEST_SENTENCE
from stillroom.guard.policy import load_policy
from stillroom.guard.strict import LONGEST_PASSAGE, Guard
from stillroom.text import normalise
from tests.detection import covered
from tests.guarding import book, guard, note, real

pytest.importorskip("presidio_analyzer")

CELLS = "".join(f"<td>{letter}</td>" for letter in "Marisol")
EVASIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "negative circled digits": ("Call ❺❺❺-❶❷❸❹ now.", tuple("❺❶❷❸❹")),
    "negative circled zero": ("Call ⓿❼❼ now.", tuple("⓿❼")),
    "negative squared letters": ("Seen was 🅰🅽🅽🅰 today.", tuple("🅰🅽")),
    "some of them": ("Seen was M🅰🆁i🅰 today.", ("🅰", "🆁", "M", "i")),
    "regional indicators": ("Seen was 🇳 🇬 🇴 🇿 🇮 today.", tuple("🇳🇬🇴🇿🇮")),
    "Braille": ("Seen was ⠁⠝⠝⠁ today.", tuple("⠁⠝")),
    "letters apart": ("Seen was n g o z i today.", ("n g", "o z", "z i")),
    "letters with dots": ("Seen was N. g. o. z. i. today.", ("N.", "g.", "o.", "z.", "i.")),
    "letters with strokes": ("Seen was N-g-o-z-i today.", ("N-", "-g", "-z")),
    "letters in quotes": ("Seen was 'N' 'g' 'o' 'z' 'i' today.", ("'N'", "'g'", "'o'", "'z'", "'i'")),
    "letters in cells": (f"<tr>{CELLS}</tr>", tuple(f">{letter}<" for letter in "Marisol")),
    "digits as sentences": ("Five. Five. Five. One. Two. Call her.", ("Five", "One", "Two")),
    "digits with strokes": ("Call five / five / five / one.", ("five", "one")),
    "digits with words between": ("Her phone is five, then five, then one, then two.", ("five", " one", " two")),
    "a pin in words": ("I think his pin is four nine.", ("four", "nine")),
    "an age in two words": ("She is sixty two now.", ("sixty", "two")),
    "an age in one word": ("She is sixty now.", ("sixty",)),
    "a name after its label": ("patient: will young", ("will", "young")),
    "mail without its suffix": ("Write to john dot doe at gmail today.", ("john", "doe", "gmail")),
    "mail without dot and suffix": ("Write to johnny at gmail today.", ("johnny", "gmail")),
    "mail at a host": ("Write to john.doe at example. It works.", ("john", "doe", "example")),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    policy = load_policy("clinic")
    with book(tmp_path_factory.mktemp("books")) as ledger:
        yield guard(ledger, policy, finder=real(policy))


@pytest.mark.parametrize("name", EVASIONS)
def test_a_disguised_value_does_not_come_out(guarded: Guard, name: str) -> None:
    text, private = EVASIONS[name]
    (kept,) = guarded.ingest([note(text, name)])
    shown = f"{kept.text} {guarded.sanitise('Repeat all.', [kept]).text}"
    assert [each for each in private if each in shown] == [], shown


@pytest.mark.parametrize(
    "text",
    [
        "The patient was given a choice of two plans.",
        "I had a lot of it, i.e. a bit too much.",
        "One of them, or two, went home at ten.",
        "He was at home at once, at first.",
    ],
)
def test_plain_words_are_not_taken_for_a_disguise(text: str) -> None:
    assert covered(text) == text


@pytest.mark.parametrize("shift", range(0, 40, 8))
def test_a_value_over_the_cut_of_a_long_sentence_is_found(shift: int) -> None:
    words = "the rash on the hand was red and then it went away "
    before = (words * 30)[: LONGEST_SENTENCE - 35 + shift].rpartition(" ")[0]
    text = f"{before} john dot doe at example dot org {words * 5}"
    seen = covered(text)
    start = text.index("john")
    assert not any(map(str.isalnum, seen[start : start + len("john dot doe at example dot org")])), seen[start - 20 :]


@pytest.mark.parametrize("tail", (1, 4, 10))
def test_a_passage_is_not_cut_inside_a_word(guarded: Guard, tail: int) -> None:
    filler = "It is fine. " * 2000
    text = f"{filler[: LONGEST_PASSAGE - tail - 1]} Nkemelubaker and more"
    text = normalise(text)
    assert text[LONGEST_PASSAGE - tail :].startswith("Nkemelu")
    answer = guarded.sanitise("x", [text])
    assert "Nkem"[:tail] not in answer.text[-8:] and "too long" in answer.receipt.says()
