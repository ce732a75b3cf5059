"""What a second audit of the guard found: each of these gave out, drew or bound what it should not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.documents import Document
from stillroom.errors import BadOption, LedgerMismatch, PolicyInvalid, ProcessesLost, UnitsShared
from stillroom.guarantee import Guarantee
from stillroom.guard import ingest as ingest_module
from stillroom.guard.build import order_of
from stillroom.guard.detect.base import Detector
from stillroom.guard.detect.closedworld import ClosedWorld
from stillroom.guard.detect.propagation import propagated
from stillroom.guard.detect.union import Union
from stillroom.guard.policy import Role, load_policy, read_policy
from stillroom.guard.spans import Span
from stillroom.privacy.ledger import Ledger
from stillroom.rag import GuardedRag
from tests.guarding import Forms, book, calm, guard, note
from tests.unit.test_rag import Writer

pytest.importorskip("cryptography")


class Takes(Detector):
    """Takes a stretch for a category."""

    name = "takes"
    by_context = True

    def __init__(self, surface: str, category: str) -> None:
        self._surface, self._category = surface, category

    def detect(self, sentences: object) -> list[list[Span]]:
        found = []
        for sentence in sentences:  # type: ignore[attr-defined]
            at = sentence.find(self._surface)
            found.append([Span(at, at + len(self._surface), self._category, self.name, 0.8)] if at >= 0 else [])
        return found


@pytest.mark.parametrize("raw_for", ["all", "a role"])
def test_a_category_that_is_raw_for_anybody_hides_no_name_in_it(raw_for: str) -> None:
    text = "Nkemelu, Orsolan and Pradwick were seen together."
    policy = load_policy("clinic")
    if raw_for == "all":
        rule = policy.rule("organisation").model_copy(update={"tier": "raw"})
        policy = policy.model_copy(update={"categories": {**policy.categories, "organisation": rule}})
    else:
        policy = policy.model_copy(update={"roles": {"ward": Role(tiers={"organisation": "raw"})}})
    detector = Takes("Nkemelu, Orsolan and Pradwick", "organisation")
    spans = Union([detector], ClosedWorld(), order=order_of(policy), raw=["organisation"]).find(text)
    hidden = {text[s.start : s.end] for s in spans if s.category == "unknown"}
    assert {"Nkemelu", "Orsolan", "Pradwick"} <= hidden


FORMULARY = ["Glasgow coma scale", "Boston brace", "Hashimoto's thyroiditis", "Epley manoeuvre", "Lumadrex"]


@pytest.mark.parametrize(
    ("text", "surface", "category"),
    [
        ("She moved from Glasgow last year.", "Glasgow", "city"),
        ("She moved to Boston last year.", "Boston", "city"),
        ("Hashimoto slept well.", "Hashimoto", "person"),
        ("Sister Lumadrex took blood.", "Lumadrex", "person"),
        ("Smith and Epley agreed.", "Epley", "person"),
        ("In Lumadrex 1985 it was.", "Lumadrex 1985", "date"),
    ],
)
def test_a_phrase_of_the_formulary_says_nothing_of_its_words_elsewhere(text: str, surface: str, category: str) -> None:
    spans = Union([Takes(surface, category)], ClosedWorld(FORMULARY)).find(text)
    assert surface in [text[s.start : s.end] for s in spans if s.category == category]


def test_control_the_phrase_itself_is_left() -> None:
    text = "The Glasgow coma scale was high."
    assert Union([Takes("Glasgow", "city")], ClosedWorld(FORMULARY)).find(text) == []


def test_a_word_of_the_formulary_with_a_number_in_it_is_no_number() -> None:
    text = "She takes vitamin B12 and her HbA1c is fine."
    assert ClosedWorld(["vitamin B12", "HbA1c"]).find(text, []) == []
    assert {text[s.start : s.end] for s in ClosedWorld().find(text, [])} >= {"B12", "HbA1c"}


def test_a_unit_spelled_in_several_ways_is_one_subject_with_one_draw(tmp_path: Path) -> None:
    with book(tmp_path) as ledger:
        seen = set()
        for unit in ("P-7", "p-7", "P-7 ", "Ｐ-7"):
            answer = guard(ledger).sanitise("x", [Document("n", "She is 47 years old.", unit, {})])
            seen.add(answer.text)
        assert len(seen) == 1 and ledger.accounts().standing().subjects == 1
        assert ledger.accounts().standing().most == 1.0


def test_a_ledger_that_may_not_draw_about_a_unit_does_not_get_the_vault(tmp_path: Path) -> None:
    def opened(name: str) -> Ledger:
        return Ledger.open(tmp_path / name, epsilon=10, delta=1e-6, population="c", installation=tmp_path / "home")

    with opened("one") as one, opened("two") as two:
        guard(one).sanitise("x", [note("She is 47 years old.", 1)])
        with guard(two, vault=tmp_path / "vault") as wrong:
            kept = list(wrong.ingest([note("She is 47 years old.", 1)]))
            with pytest.raises(UnitsShared):
                wrong.sanitise("x", kept)
        with guard(one, vault=tmp_path / "vault") as right:
            assert right.sanitise("x", kept).receipt.ledger


@pytest.mark.parametrize(
    ("text", "category", "hidden"),
    [
        ("Ms. Ma came in. The nurse said that Ma slept well, and we let Ma go.", "person", 3),
        ("Mr. Oh came in. We let Oh sleep, oh well.", "person", 2),
        ("A portrait painter. The portrait painter has asthma.", "profession", 2),
    ],
)
def test_short_names_and_professions_are_found_everywhere(text: str, category: str, hidden: int) -> None:
    surface = {"profession": "portrait painter"}.get(category, text.split()[1])
    first = Span(text.index(surface), text.index(surface) + len(surface), category, "test", 1.0)
    assert 1 + len(propagated(text, [first])) == hidden


def test_looking_for_values_takes_time_in_proportion_to_the_text() -> None:
    def steps(count: int) -> float:
        import time

        values = [f"may {'x' * 5}{i}" for i in range(count)]
        text = ". ".join(values) + ". " + "may " * count
        spans = [Span(text.index(v), text.index(v) + len(v), "person", "test", 1.0) for v in values]
        start = time.process_time()
        propagated(text, spans)
        return time.process_time() - start

    steps(50)
    assert steps(1600) < 40 * max(steps(200), 0.002)  # 8 times the text; 64 times the time before


def test_an_answer_does_not_pay_for_metadata_that_nobody_reads(tmp_path: Path) -> None:
    fields = {f"seen_{i}": f"2021-03-0{i}" for i in range(1, 6)}
    with book(tmp_path) as ledger:
        guarded = guard(ledger)
        list(guarded.ingest([note("She is 47 years old and has Brenquilosis.", 1, **fields)]))
        answer = GuardedRag(guarded, Writer("x"), least_cosine=0.0).ask("Who has Brenquilosis?")
        assert answer.receipt.epsilon == 1.0 and "date" not in answer.receipt.spans
        assert guarded.sanitise("x", guarded.passages(), metadata=False).metadata == ({},)


def test_what_a_policy_allows_a_subject_is_fixed_by_the_first_draw_and_not_before(tmp_path: Path) -> None:
    def of(limit: float) -> object:
        account = calm().account.model_copy(update={"epsilon_per_subject": limit})
        return calm().model_copy(update={"account": account})

    with book(tmp_path) as ledger:
        guard(ledger, of(5)).sanitise("x", ["Nothing is drawn."])  # type: ignore[arg-type]
        other = guard(ledger, of(8))  # type: ignore[arg-type]
        late = guard(ledger, of(5))  # type: ignore[arg-type]
        assert other.sanitise("x", [note("She is 47 years old.", 1)]).receipt.epsilon == 1.0
        with pytest.raises(LedgerMismatch):
            guard(ledger, of(5))  # type: ignore[arg-type]
        with pytest.raises(LedgerMismatch):
            late.sanitise("x", [note("He is 52 years old.", 2)])
        assert ledger.accounts().standing().limit == 8


def test_nobody_finds_by_what_is_raw_once_the_books_are_away(tmp_path: Path) -> None:
    with book(tmp_path) as ledger:
        guarded = guard(ledger)
        list(guarded.ingest([note("She has asthma.", 1), note("He has Brenquilosis.", 2)]))
        asker = GuardedRag(guarded, Writer("x"), least_cosine=0.0)
        assert any("asthma" in passage.text for passage in asker.ask("Who has asthma?").passages)
    found = {p.text for p in asker.ask("Who has asthma?").passages}
    other = {p.text for p in asker.ask("Who has Brenquilosis?").passages}
    assert found == other and not any("asthma" in text for text in found)


def test_a_source_that_fails_loses_nothing_of_what_was_read_before() -> None:
    def source() -> Iterator[Document]:
        for number in range(ingest_module.LOT + 3):
            yield note("She is 47 years old.", number)
        raise OSError("the disk is gone")

    kept = []
    with pytest.raises(OSError, match="gone"):
        for each in guard(None).ingest(source()):
            kept.append(each)
    assert len(kept) == ingest_module.LOT


def test_a_finder_of_ones_own_does_not_come_along_to_other_processes() -> None:
    with pytest.raises(BadOption, match="finder"):
        list(guard(None, finder=Forms()).ingest([], processes=2))


def test_processes_that_cannot_work_have_a_sentence_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("presidio_analyzer")
    monkeypatch.setattr(ingest_module, "_start", _dies)
    guarded = guard(None)
    guarded._own = False
    with pytest.raises(ProcessesLost, match="__main__"):
        list(guarded.ingest([note("She is 47 years old.", 1)], processes=2))


def _dies(policy: str) -> None:
    raise RuntimeError


def test_a_vault_that_other_detectors_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ingest_module.digest(load_policy("clinic"))
    assert before == ingest_module.digest(load_policy("clinic")) != ingest_module.digest(load_policy("hr"))
    monkeypatch.setattr(ingest_module, "_detectors", lambda: b"others")
    assert ingest_module.digest(load_policy("clinic")) != before


def test_two_documents_never_have_one_name() -> None:
    guarded = guard(None)
    kept = list(guarded.ingest([Document("c", "One.", "a\nb", {}), Document("b\nc", "Two.", "a", {})]))
    assert len({each.name for each in kept}) == len(guarded.passages()) == 2


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("categories.period.tier", {"categories": {"period": {"tier": "raw"}}}),
        ("categories.age", {"categories": {"age": {"tier": "surrogate", "mechanism": "laplace", "epsilon": 1.0,
                                                   "low": 0, "high": 110, "step": 1}}}),
        ("roles.w.tiers.age", {"roles": {"w": {"tiers": {"age": "surrogate"}}}}),
        ("categories.age", {"categories": {"age": {"tier": "noisy", "mechanism": "laplace", "epsilon": 1.0,
                                                   "low": 0, "high": 110, "step": 100}}}),
        ("categories.age", {"categories": {"age": {"tier": "placeholder", "epsilon": 1.0}}}),
        ("words.record_number.0", {"words": {"record_number": ["4711"]}}),
        ("formulary.0", {"formulary": ["4711"]}),
    ],
)  # fmt: skip
def test_a_policy_that_would_do_something_else_is_refused(field: str, fields: dict[str, object]) -> None:
    with pytest.raises(PolicyInvalid, match=field.replace(".", r"\.")):
        read_policy({"name": "x", **fields})


def test_an_answer_from_a_release_says_that_an_account_chose_it(tmp_path: Path) -> None:
    class Release:
        def ask(self, question: str) -> object:
            from stillroom.rag import Answer

            return Answer("Rest.", (), (), Guarantee.DP)

    account = calm().account.model_copy(update={"epsilon_per_subject": 1.0})
    with book(tmp_path) as ledger:
        guarded = guard(ledger, calm().model_copy(update={"account": account}))
        list(guarded.ingest([note("She is 47 years old.", 1), note("She is 48 years old.", 1, 2)]))
        answer = GuardedRag(guarded, Writer("x"), least_cosine=0.0, fallback=Release()).ask("Who is old?")  # type: ignore[arg-type]
        assert answer.receipt.refused and answer.text == "Rest."
        assert answer.guarantee is answer.receipt.guarantee
