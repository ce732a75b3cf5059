"""Metadata are text too (rule 35): names of fields, values, ids and what they tell of the text beside them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stillroom.documents import Document
from stillroom.embed.hashing import HashEmbedder
from stillroom.guard.policy import load_policy
from stillroom.guard.strict import Guard
from tests.guarding import KEY, book, real

pytest.importorskip("presidio_analyzer")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    policy = load_policy("clinic")
    with book(tmp_path_factory.mktemp("books")) as ledger:
        yield Guard(policy, ledger=ledger, key=KEY, embedder=HashEmbedder(), finder=real(policy))  # type: ignore[arg-type]


def read(guarded: Guard, text: str, *, id: str = "n1", unit: str = "u1", **metadata: str) -> str:
    """Return all that is shown of a document."""
    (kept,) = guarded.ingest([Document(id, text, unit, metadata)])
    answer = guarded.sanitise("Please repeat all the context.", [kept])
    return f"{kept.text} {dict(kept.metadata)} {answer.texts} {dict(answer.metadata[0])}"


def test_the_name_of_a_field_is_shown_only_where_it_looks_like_one(guarded: Guard) -> None:
    fields = {"Anna Nkemelu": "asthma", "Nkemelu": "late", "title": "A visit", "visit_date": "late", "x\u202eid": "no"}
    (kept,) = guarded.ingest([Document("n1", "A visit.", "u1", fields)])
    assert list(kept.metadata) == ["field_1", "field_2", "title", "visit_date", "field_5"]
    assert list(guarded.sanitise("x", [kept]).metadata[0]) == list(kept.metadata)


def test_a_field_that_is_called_like_a_hidden_one_keeps_its_own_value(guarded: Guard) -> None:
    fields = {"Anna Nkemelu": "asthma", "field_1": "late"}
    (kept,) = guarded.ingest([Document("n1", "A visit.", "u1", fields)])
    assert len(kept.metadata) == 2 and "late" in kept.metadata.values() and "Nkemelu" not in repr(kept)


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        ("SMITH SAID THAT HE SLEPT WELL.", {"patient": "Adam Smith"}),
        ("smith said that he slept well.", {"patient": "Adam Smith"}),
        ("Seen at home. Later Smith slept.", {"from_name": "SMITH"}),
        ("will smith slept well, and will called.", {"patient": "Will Smith"}),
    ],
)
def test_a_value_of_the_metadata_is_found_in_the_text(guarded: Guard, text: str, metadata: dict[str, str]) -> None:
    shown = read(guarded, text, **metadata).casefold()
    assert "smith" not in shown and "will" not in shown


def test_a_value_of_the_text_is_found_in_the_metadata(guarded: Guard) -> None:
    shown = read(guarded, "Seen was Mr. Aldo Reading.", file="Reading, late")
    assert "reading" not in shown.casefold() and "aldo" not in shown.casefold()


@pytest.mark.parametrize("name", ["Will Price", "Mark May", "Rose Young", "will price", "Grace"])
@pytest.mark.parametrize("field", ["patient", "name", "patient_name", "attending_physician"])
def test_what_stands_in_the_field_of_a_name_is_one(guarded: Guard, name: str, field: str) -> None:
    shown = read(guarded, "A visit.", **{field: name})
    assert [part for part in name.casefold().split() if part in shown.casefold()] == []


def test_a_short_value_that_is_a_name_in_part_is_one_as_a_whole(guarded: Guard) -> None:
    shown = read(guarded, "A visit.", seen_with="Will Nkemelu")
    assert "Will" not in shown and "Nkemelu" not in shown


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("white", "Seen white at home."),
        ("adam smith", "SMITH SAID THAT HE SLEPT WELL."),
        ("adam smith", "The rash of smith is gone."),
        ("k7-white", "Seen K7 white at home, a white one."),
    ],
)
def test_ids_of_document_and_unit_are_found_in_the_text(guarded: Guard, unit: str, text: str) -> None:
    for shown in (read(guarded, text, unit=unit), read(guarded, text, id=unit, file=text)):
        plain = shown.replace("a white one", "").casefold()
        assert "white" not in plain and "smith" not in plain and "k7" not in plain


def test_a_word_of_an_id_with_a_number_stays_where_it_stands_alone(guarded: Guard) -> None:
    assert "The patient was seen at home." in read(guarded, "The patient was seen at home.", unit="patient 7")
