"""The noisy tier draws around what a value says: dates and ages are found as such, what cannot be read is free."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.guard.policy import BUILT_IN, load_policy
from stillroom.guard.strict import Guard
from tests.guarding import book, calm, guard, note, real

pytest.importorskip("presidio_analyzer")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    with book(tmp_path_factory.mktemp("books")) as ledger:
        yield guard(ledger, calm(), finder=real(calm()))


def slots(guarded: Guard, text: str) -> dict[str, str]:
    """Return the category of every value that stands in no template."""
    list(guarded.ingest([note(text, "slots")]))
    record = next(r for r in guarded._store if r.subject.id == "patient slots")
    return {slot.surface: slot.category for slot in record.passages[0].slots}


@pytest.mark.parametrize(
    "date",
    [
        "2021-03-05",
        "5 March 2021",
        "03.04.2021",
        "13/07/1970",
        "March 5, 2021",
        "5th of March 2021",
        "2021/03/05",
        "07.04.2021",
    ],
)
@pytest.mark.parametrize("text", ["Seen on {} at home.", "On {} she came.", "Seen: {}", "{}"])
def test_a_whole_date_is_a_date_and_no_phone_or_address(guarded: Guard, date: str, text: str) -> None:
    assert slots(guarded, text.format(date)) == {date: "date"}


@pytest.mark.parametrize(
    ("text", "age"),
    [("She is 47 years old.", "47"), ("A 47-year-old came in.", "47"), ("He was 3 weeks old then.", "3")],
)
def test_an_age_is_an_age_and_no_date(guarded: Guard, text: str, age: str) -> None:
    assert slots(guarded, text) == {age: "age"}


@pytest.mark.parametrize("said", ["3 days", "Monday", "July 1970", "last week", "1961", "March"])
def test_what_is_no_whole_date_is_a_period_that_gets_a_placeholder_for_nothing(guarded: Guard, said: str) -> None:
    text = f"It began {said} when she was away."
    assert set(slots(guarded, text).values()) <= {"period", "number"}
    answer = guarded.sanitise("x", [note(text, f"says {said}")])
    assert answer.receipt.epsilon == 0 and said not in answer.text and "[PERIOD_1]" in answer.text


@pytest.mark.parametrize("number", ["555-12-3456", "+1 650 253 0000", "12-11-2021-4431", "020 7946 0123"])
def test_a_number_that_only_looks_like_a_date_keeps_its_protection(guarded: Guard, number: str) -> None:
    text = f"Call {number} now."
    policy = guarded.policy
    assert {policy.tier(name) for name in slots(guarded, text).values()} == {"placeholder"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_policy_has_a_word_on_periods(name: str) -> None:
    policy = load_policy(name)
    assert policy.categories["period"].tier == "placeholder" and policy.rule("period").weight < 0.5


def test_an_amount_that_cannot_be_read_costs_nothing() -> None:
    from stillroom.guard.canonical import readable

    assert readable("amount", "1200.5 usd") and readable("age", "47") and readable("date", "2021-03-05")
    assert not any(map(readable, ["amount", "age", "date", "date"], ["a few dollars", "nan", "1970-07", "monday"]))


def test_a_noisy_date_is_drawn_around_the_true_one_however_it_is_written(tmp_path: Path) -> None:
    """With bounds of half a year and a great ε all draws lie within 25 days; around a grid's middle none would."""
    policy = calm()
    narrow = {"epsilon": 100.0, "low": datetime.date(2021, 1, 1), "high": datetime.date(2021, 6, 30)}
    categories = {**policy.categories, "date": policy.rule("date").model_copy(update=narrow)}
    account = policy.account.model_copy(update={"epsilon_per_subject": 1000.0})
    sharp = policy.model_copy(update={"categories": categories, "account": account})
    with book(tmp_path) as ledger:
        guarded = guard(ledger, sharp, finder=real(sharp))
        for i, said in enumerate(["2021-01-05", "5 January 2021", "05.01.2021", "Jan 5, 2021"]):
            answer = guarded.sanitise("x", [note(f"Seen on {said} at home.", i)])
            drawn = answer.text.removeprefix("Seen on ").removesuffix(" at home.")
            assert datetime.date.fromisoformat(drawn) <= datetime.date(2021, 6, 30)
            off = abs((datetime.date.fromisoformat(drawn) - datetime.date(2021, 1, 5)).days)
            assert off < 25 or (said == "05.01.2021" and drawn > "2021-04-01")  # the first of May, month first
