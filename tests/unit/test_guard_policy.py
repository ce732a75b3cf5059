"""Policies, canonical values, templates and risk: nothing that is public tells a value, nothing lowers a tier."""

from __future__ import annotations

import datetime
import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.embed.hashing import HashEmbedder
from stillroom.errors import FileFormat, FileMissing, PolicyInvalid, UnknownName
from stillroom.guard.canonical import canonical, date_of, number_of
from stillroom.guard.categories import CATEGORIES
from stillroom.guard.policy import BUILT_IN, TIERS, Policy, RiskRule, load_policy, read_policy
from stillroom.guard.risk import Risk, raised, relevance, score, sensitivity
from stillroom.guard.spans import Span
from stillroom.guard.template import Numbers, Template, templates
from stillroom.text import normalise

LAPLACE = {"mechanism": "laplace", "epsilon": 1.0, "low": 0, "high": 110, "step": 1}
TREE = {"tier": "noisy", "mechanism": "tree", "epsilon": 1.0}
SURROGATE = {"tier": "surrogate", "mechanism": "surrogate"}


# -- policies -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_policy_loads_and_names_every_category_it_weighs(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    assert set(policy.categories) <= set(CATEGORIES)
    assert len(policy.categories) > 20
    assert policy.tier("person") != "raw"
    assert policy.tier("unknown") == policy.tier("language_unknown") == "placeholder"


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_built_in_policy_swaps_a_drug_a_dose_or_a_laboratory_value(name: str) -> None:
    policy = load_policy(name)
    for role in (None, *policy.roles):
        assert {policy.tier(c, role) for c in ("drug", "dose", "laboratory", "treatment")} <= {"raw", "placeholder"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_built_in_policy_leaves_raw_what_a_detector_guesses_by_context(name: str) -> None:
    policy = load_policy(name)
    raw = {c for c in CATEGORIES for role in (None, *policy.roles) if policy.tier(c, role) == "raw"}
    assert raw <= {"diagnosis", "treatment", "drug", "dose", "laboratory"}


def test_a_category_that_no_policy_names_gets_a_placeholder_and_full_weight() -> None:
    policy = Policy(name="x")
    assert policy.tier("person") == "placeholder"
    assert policy.tier("no such category") == "placeholder"
    assert policy.rule("person").weight == 1.0


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"categories": {"persn": {}}}, "categories.persn"),
        ({"categories": {"person": {"weight": 1.5}}}, "categories.person.weight"),
        ({"categories": {"person": {"weight": -0.1}}}, "categories.person.weight"),
        ({"categories": {"person": {"weight": float("nan")}}}, "categories.person.weight"),
        ({"categories": {"person": {"tier": "hidden"}}}, "categories.person.tier"),
        ({"categories": {"person": {"teir": "raw"}}}, "categories.person.teir"),
        ({"categories": {"person": {"tier": "surrogate"}}}, "categories.person"),
        ({"categories": {"age": {"tier": "noisy"}}}, "categories.age"),
        ({"categories": {"age": {**LAPLACE, "epsilon": 0}}}, "categories.age.epsilon"),
        ({"categories": {"age": {**LAPLACE, "epsilon": math.inf}}}, "categories.age.epsilon"),
        ({"categories": {"age": {**LAPLACE, "low": 110}}}, "categories.age"),
        ({"categories": {"age": {**LAPLACE, "high": float("inf")}}}, "categories.age"),
        ({"categories": {"age": {**LAPLACE, "step": None}}}, "categories.age"),
        ({"categories": {"date": LAPLACE}}, "categories.date.mechanism"),
        ({"categories": {"person": LAPLACE}}, "categories.person.mechanism"),
        ({"categories": {"city": {"mechanism": "tree", "epsilon": 1}}}, "categories.city"),
        ({"categories": {"drug": {"tier": "surrogate", "mechanism": "surrogate"}}}, "categories.drug.tier"),
        ({"roles": {"doctor": {"tiers": {"dose": "noisy"}}}}, "roles.doctor.tiers.dose"),
        ({"roles": {"doctor": {"tiers": {"age": "noisy"}}}}, "roles.doctor.tiers.age"),
        ({"roles": {"doctor": {"rehydrate": ["persn"]}}}, "roles.doctor.rehydrate.persn"),
        ({"words": {"persn": ["x"]}}, "words.persn"),
        ({"patterns": {"account": ["("]}}, "patterns.account.0"),
        ({"account": {"quota_per_caller": -1}}, "account.quota_per_caller"),
        ({"risk": {"relevance": 2}}, "risk.relevance"),
        ({"name": None}, "name"),
        # what could never draw, and would have been placeholders without a word
        ({"categories": {"city": {**TREE, "dictionary": "nope"}}}, "categories.city.mechanism"),
        ({"categories": {"diagnosis": SURROGATE}}, "categories.diagnosis.tier"),
        ({"categories": {"date": SURROGATE}}, "categories.date.mechanism"),
        ({"categories": {"date": {**SURROGATE, "tier": "placeholder"}}}, "categories.date.mechanism"),
        ({"categories": {"age": {**LAPLACE, "epsilon": 1000}}}, "categories.age.epsilon"),
        ({"categories": {"age": {**LAPLACE, "epsilon": 6}}}, "categories.age.epsilon"),
        ({"categories": {"age": LAPLACE}, "account": {"epsilon_per_subject": 0.5}}, "categories.age.epsilon"),
        ({"categories": {"age": {**LAPLACE, "step": 1e-9}}}, "categories.age.mechanism"),
        ({"risk": {"surrogate": 0.8, "placeholder": 0.7}}, "risk.surrogate"),
        # what nobody could read is never handed out
        ({"categories": {"language_unknown": {"tier": "raw"}}}, "categories.language_unknown.tier"),
        ({"categories": {"unknown": {"tier": "raw"}}}, "categories.unknown.tier"),
        ({"categories": {"password": {"tier": "raw"}}}, "categories.password.tier"),
        ({"roles": {"doctor": {"tiers": {"unknown": "raw"}}}}, "roles.doctor.tiers.unknown"),
        # a value cannot come back where no placeholder stands
        (
            {"categories": {"person": SURROGATE}, "roles": {"doctor": {"rehydrate": ["person"]}}},
            "roles.doctor.rehydrate.person",
        ),
        ({"categories": {"drug": {"tier": "raw"}}, "roles": {"x": {"rehydrate": ["drug"]}}}, "roles.x.rehydrate.drug"),
    ],
)
def test_what_is_wrong_in_a_policy_is_named(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(PolicyInvalid) as raised_error:
        read_policy({"name": "x", **fields}, "mine.toml")
    assert f"'mine.toml' is wrong at {field}: " in str(raised_error.value)
    assert raised_error.value.exit_code == 2


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_a_role_gets_back_of_a_built_in_policy_stands_as_a_placeholder_for_it(name: str) -> None:
    policy = load_policy(name)
    given = [(role, each) for role, entitled in policy.roles.items() for each in entitled.rehydrate]
    assert given
    assert {policy.tier(each, role) for role, each in given} == {"placeholder"}


def test_the_error_says_what_to_write() -> None:
    fields = {"categories": {"person": SURROGATE}, "roles": {"doctor": {"rehydrate": ["person"]}}}
    with pytest.raises(PolicyInvalid, match=r'roles\.doctor\.tiers\.person = "placeholder"'):
        read_policy({"name": "x", **fields})
    with pytest.raises(PolicyInvalid, match="choose one of"):
        read_policy({"name": "x", "categories": {"city": {**TREE, "dictionary": "nope"}}})


def test_a_policy_comes_from_a_file_and_what_is_no_policy_is_said(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\n[categories.age]\nweight = 0.5\n', encoding="utf-8")
    assert load_policy(tmp_path / "mine.toml").rule("age").weight == 0.5
    (tmp_path / "bad.toml").write_text("name = ", encoding="utf-8")
    with pytest.raises(FileFormat):
        load_policy(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(FileFormat):
        load_policy(tmp_path / "latin.toml")
    with pytest.raises(FileMissing):
        load_policy(tmp_path / "none.toml")
    with pytest.raises(UnknownName, match="clinic"):
        load_policy("klinik")


def test_a_role_sets_its_own_tiers_and_never_stands_below_its_least() -> None:
    fields = {
        "name": "x",
        "categories": {"age": {"tier": "placeholder", **LAPLACE}},
        "roles": {"nurse": {"tiers": {"age": "noisy"}}, "outside": {"tiers": {"age": "raw"}, "least": "surrogate"}},
    }
    policy = read_policy(fields)
    assert policy.tier("age") == "placeholder"
    assert policy.tier("age", "nurse") == "noisy"
    assert policy.tier("age", "outside") == "placeholder"  # it has no surrogates
    with pytest.raises(UnknownName, match="nurse"):
        policy.tier("age", "stranger")


# -- risk ---------------------------------------------------------------------------------------------------------
NUMBER = st.floats(0, 1)


@given(st.sampled_from(sorted(CATEGORIES)), st.floats(allow_nan=True, allow_infinity=True), NUMBER, NUMBER)
def test_risk_only_raises_a_tier(category: str, risk: float, one: float, two: float) -> None:
    rule = RiskRule(surrogate=min(one, two), placeholder=max(one, two))
    policy = load_policy("clinic").model_copy(update={"risk": rule})
    base = policy.tier(category)
    after = raised(category, base, risk, policy)
    assert TIERS.index(after) >= TIERS.index(base)
    assert CATEGORIES[category].swap or after in ("raw", "placeholder")


def test_high_risk_leaves_placeholders_alone_and_no_number_counts_as_high() -> None:
    policy = load_policy("clinic").model_copy(update={"risk": RiskRule(surrogate=0.3, placeholder=0.7)})
    risks = (0.0, 0.29, 0.3, 0.69, 0.7, math.nan)
    assert [raised("person", "surrogate", risk, policy) for risk in risks] == ["surrogate"] * 4 + ["placeholder"] * 2
    assert [raised("drug", "raw", risk, policy) for risk in risks] == ["raw"] * 2 + ["placeholder"] * 4
    assert [raised("age", "noisy", risk, policy) for risk in risks] == ["noisy"] * 2 + ["placeholder"] * 4


def test_the_score_is_that_of_the_paper() -> None:
    policy = read_policy({"name": "x", "categories": {"person": {"weight": 0.9}, "age": {"weight": 0.2}}})
    assert sensitivity(["age", "person"], policy) == 0.9
    assert sensitivity([], policy) == 0
    assert sensitivity(["no such category"], policy) == 1
    assert score(0.5, 0.9) == pytest.approx(0.6 * 0.5 + 0.4 * 0.9)
    assert relevance(0.5) == 0.5
    assert relevance(-0.5) == 0
    assert relevance(0.5, gate=False) == 0
    assert relevance(math.nan) == 1


def test_the_risk_of_a_template_knows_nothing_of_its_values() -> None:
    policy = load_policy("clinic")
    one, other = (template_of(f"{name} was seen for asthma", person=name) for name in ("Anna", "Nkemelu"))
    scored = Risk(policy, HashEmbedder()).of("Was Nkemelu seen for asthma?", [one, other])
    assert scored[0] == scored[1] > 0
    assert Risk(policy, HashEmbedder()).of("x", []) == []


# -- canonical values ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("category", "one", "other", "value"),
    [
        ("date", "13/07/1970", "July 13, 1970", "1970-07-13"),
        ("date", "13 Jul 1970", "1970-07-13T10:00", "1970-07-13"),
        ("date", "07/13/70", "13th of July, 1970", "1970-07-13"),
        ("date", "July 1970", "Jul 1970", "1970-07"),
        ("date", "Next Week", "next  week", "next week"),
        ("date", "45/99/1970", "45/99/1970", "45/99/1970"),
        ("age", "42", "forty-two", "42"),
        ("age", "007", "seven", "7"),
        ("amount", "$1,200.50", "1200.50 USD", "1200.5 usd"),
        ("amount", "2 million euros", "€2000000", "2000000 eur"),
        ("phone", "(650) 253-0000", "+1 650 253 0000", "16502530000"),
        ("phone", "five five five one two three four", "555-1234", "5551234"),
        ("number", "twenty one double five", "2155", "2155"),
        ("card", "4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111"),
        ("iban", "gb82 west 1234 5698 7654 32", "GB82WEST12345698765432", "GB82WEST12345698765432"),
        ("email", "John.Doe@Example.org", "john dot doe at example dot org", "john.doe@example.org"),
        ("person", "Dr. Sara  Schwarz's", "SARA SCHWARZ", "sara schwarz"),
        ("city", "New\nYork", "new york.", "new york"),
        ("time", "11:34 pm", "23:34", "23:34"),
    ],
)
def test_a_value_has_one_form_however_it_is_written(category: str, one: str, other: str, value: str) -> None:
    assert canonical(category, one) == canonical(category, other) == value


def test_which_comes_first_day_or_month_is_the_policys_to_say() -> None:
    assert canonical("date", "3/4/1970") == "1970-03-04"
    assert canonical("date", "3/4/1970", day_first=True) == "1970-04-03"
    assert canonical("date", "3/14/1970", day_first=True) == "1970-03-14"


def test_numbers_and_days_are_read_back() -> None:
    assert number_of(canonical("amount", "$1,200.50")) == 1200.5
    assert number_of(canonical("age", "forty-two")) == 42
    assert number_of("a lot") is None
    assert date_of(canonical("date", "13/07/1970")) == datetime.date(1970, 7, 13)
    assert date_of(canonical("date", "July 1970")) is None
    assert date_of("next  week") is None


@given(st.sampled_from(sorted(CATEGORIES)), st.text(min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_surface_stops_it(category: str, surface: str) -> None:
    assert isinstance(canonical(category, surface), str)
    number_of(canonical(category, surface))
    date_of(canonical(category, surface))


# -- templates ----------------------------------------------------------------------------------------------------
def template_of(text: str, numbers: Numbers | None = None, **surfaces: str) -> Template:
    plain = normalise(text)
    spans = [
        Span(plain.index(surface), plain.index(surface) + len(surface), category, "test", 1.0)
        for category, surface in surfaces.items()
    ]
    return templates([text], [sorted(spans, key=lambda s: s.start)], numbers=numbers)[0]


def test_slots_stand_where_values_stood_and_filling_them_gives_the_text_back() -> None:
    text = "Anna Kowalska, 42, was seen on 13/07/1970."
    template = template_of(text, person="Anna Kowalska", age="42", date="13/07/1970")
    assert template.text == "[PERSON_1], [AGE_1], was seen on [DATE_1]."
    assert [template.text[s.start : s.end] for s in template.slots] == ["[PERSON_1]", "[AGE_1]", "[DATE_1]"]
    assert [s.canonical for s in template.slots] == ["anna kowalska", "42", "1970-07-13"]
    assert template.fill(lambda slot: slot.surface) == text
    assert template.fill(lambda slot: slot.name) == template.text


def test_values_with_one_template_are_told_apart_by_nothing_that_is_shown() -> None:
    one = template_of("Anna was seen", person="Anna")
    other = template_of("Nkemelu was seen", person="Nkemelu")
    assert one.text == other.text
    assert repr(one) == repr(other)


def test_equal_values_share_a_slot_through_all_passages_of_a_document() -> None:
    numbers = Numbers()
    first = template_of("Anna Kowalska saw Bert Nowak", numbers, person="Anna Kowalska")
    second = template_of("then ANNA KOWALSKA left", numbers, person="ANNA KOWALSKA")
    third = template_of("then Bert Nowak left", numbers, person="Bert Nowak")
    assert [t.slots[0].name for t in (first, second, third)] == ["[PERSON_1]", "[PERSON_1]", "[PERSON_2]"]


def test_a_part_of_one_name_is_that_person_and_a_part_of_two_is_somebody_else() -> None:
    text = "Schwarz came. Sara Schwarz left."
    spans = [Span(0, 7, "person", "test", 1.0), Span(14, 26, "person", "test", 1.0)]
    template = templates([text], [spans])[0]
    assert template.text == "[PERSON_1] came. [PERSON_1] left."
    assert {slot.canonical for slot in template.slots} == {"sara schwarz"}
    numbers = Numbers()
    for name in ("sara schwarz", "otto schwarz", "schwarz"):
        numbers.add("person", name)
    assert numbers.add("person", "schwarz") == ("schwarz", 3)


def test_thousands_of_names_are_numbered_in_time_that_grows_with_them() -> None:
    def seconds(count: int) -> float:
        numbers, began = Numbers(), time.process_time()
        for i in range(count):
            numbers.add("person", f"anna{i} nkemelu{i}")
            numbers.add("person", f"nkemelu{i}")
        return time.process_time() - began

    assert seconds(8000) < 1


def test_a_title_makes_no_slot_and_a_category_that_nobody_knows_is_unknown() -> None:
    text = "Dr. Leiva left"
    spans = [Span(0, 3, "title", "test", 1.0), Span(4, 9, "wizard", "test", 1.0)]
    assert templates([text], [spans])[0].text == "Dr. [UNKNOWN_1] left"


def test_overlapping_spans_are_refused_without_their_text() -> None:
    with pytest.raises(ValueError, match="from 1 to 3 overlaps") as raised_error:
        templates(["secret"], [[Span(0, 2, "person", "t", 1.0), Span(1, 3, "city", "t", 1.0)]])
    assert "secret" not in str(raised_error.value)
