"""Neighbouring collections differ by one unit and by nothing else."""

import random

import pytest

from stillroom.documents import Document, Documents
from stillroom.testing.neighbours import ADDED_UNIT, additions, long_note, neighbours, permutations, removals

BASE = [
    Document.of("first note of anna", "1", "anna"),
    Document.of("a note of ben", "2", "ben"),
    Document.of("second note of anna", "3", "anna"),
]


def test_each_unit_is_removed_once_with_all_its_documents():
    got = {each.unit: [document.id for document in each.documents] for each in removals(BASE)}
    assert got == {"anna": ["2"], "ben": ["1", "3"]}


def test_each_addition_adds_one_unit_and_leaves_the_others_alone():
    kinds = list(additions(BASE))
    assert len(kinds) == len({each.name for each in kinds}) == 7
    for each in kinds:
        documents = list(each.documents)
        assert [document for document in documents if document.unit != ADDED_UNIT] == BASE
        added = [document for document in documents if document.unit == ADDED_UNIT]
        assert added and len({document.id for document in documents}) == len(documents)


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("with a long note", lambda texts: [len(text.split()) for text in texts] == [500]),
        ("with a unit of 50 documents", lambda texts: len(set(texts)) == 50),
        ("with an empty document", lambda texts: texts == [""]),
        ("with a prompt injection", lambda texts: "Ignore all previous" in texts[0]),
        ("with broken UTF-8", lambda texts: all("\ufffd" in text for text in texts)),
        ("with a copy", lambda texts: texts == [BASE[0].text]),
    ],
)
def test_awkward_units_are_what_they_are_called(name, fits):
    [one] = [each for each in additions(BASE) if each.name == name]
    assert fits([document.text for document in one.documents if document.unit == ADDED_UNIT])


@pytest.mark.parametrize("size", [1, 7, 11, 77, 143, 1001])
def test_the_long_note_holds_every_word_of_the_collection(size):
    letters = "abcdefghij"
    vocabulary = {"".join(letters[int(digit)] for digit in f"{number:04d}") for number in range(size)}
    assert set(long_note([Document.of(" ".join(sorted(vocabulary)))], size).split()) == vocabulary


def test_additions_work_on_an_empty_collection():
    assert all(list(each.documents) for each in additions([]))


def test_neighbours_are_removals_and_additions():
    assert [each.removed for each in neighbours(BASE)] == [True] * 2 + [False] * 7


def test_permutations_keep_the_documents():
    orders = [list(order) for order in permutations(Documents(BASE), random.Random(1), count=4)]
    assert len(orders) == 6 and orders[0] == BASE[::-1] and orders[1][0] == BASE[1]
    assert all(sorted(order, key=lambda document: document.id) == BASE for order in orders)
