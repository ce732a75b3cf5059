"""Search over guarded documents: hits, order and scores follow from templates alone, answers from what may be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.documents import Document
from stillroom.embed.hashing import HashEmbedder
from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.index.hybrid import HybridIndex
from stillroom.privacy.ledger import Ledger
from stillroom.rag import GuardedRag, Rag
from tests.guarding import Forms, book, calm, guard, note
from tests.privacy.test_guard_paper_attacks import PEOPLE, detect
from tests.releases import made
from tests.unit.test_rag import Writer

pytest.importorskip("cryptography")

ILLS = ("Brenquilosis", "asthma")


class Names:
    """Finds the names of the attacks; which ill somebody has stays."""

    def find_all(self, texts):  # type: ignore[no-untyped-def]
        return [detect(text) for text in texts]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with book(tmp_path) as opened:
        yield opened


def notes(people: list[str]) -> list[Document]:
    return [note(f"In the notes, {name} came in with {ILLS[i % 2]} on a Monday.", i) for i, name in enumerate(people)]


def hits(rag: GuardedRag, question: str) -> list[tuple[int, float, float, float]]:
    return [(hit.row, hit.score, hit.bm25, hit.cosine) for hit in rag._search(None)[1].search(question, 10)]


def test_asking_for_each_of_a_list_of_names_finds_the_same_whoever_is_there(ledger: Ledger) -> None:
    """Whatever names stand in the notes, hits, order and scores of every question are the same."""
    found = []
    for people in (PEOPLE[:20], PEOPLE[20:40], [PEOPLE[0]] * 20):
        guarded = guard(ledger, calm(), finder=Names())
        guarded._store._key = bytes(32)  # type: ignore[attr-defined]  # so that names of records are the same
        list(guarded.ingest(notes(people)))
        rag = Rag.over_documents(guarded, Writer(""), top_k=10)
        found.append({name: hits(rag, f"notes of {name}") for name in PEOPLE[:40]})
    assert found[0] == found[1] == found[2]
    assert all(found[0].values())


def test_control_a_raw_index_brings_the_right_note_first() -> None:
    """The negative control: with the texts themselves indexed, asking for a name finds its note, masked or not."""
    people = PEOPLE[:20]
    index = HybridIndex([each.text for each in notes(people)], HashEmbedder())
    right = sum(index.search(f"notes of {name}", 1)[0].row == i for i, name in enumerate(people))
    assert right >= 15


def test_a_role_finds_nothing_by_what_it_may_not_read(ledger: Ledger) -> None:
    guarded = guard(ledger, calm())
    list(guarded.ingest([note("Anna Nkemelu came in with Brenquilosis.", 1), note("Bela Orsolan came in late.", 2)]))
    rag = Rag.over_documents(guarded, Writer("Yes."))
    assert rag.ask("Brenquilosis?").passages
    assert not rag.ask("Brenquilosis?", role="outside").passages


def test_a_cited_passage_is_named_by_nothing_of_the_document(ledger: Ledger) -> None:
    guarded = guard(ledger, calm())
    list(guarded.ingest([note("Anna Nkemelu came in with it.", "Anna Nkemelu")]))
    answer = Rag.over_documents(guarded, Writer(lambda prompt: prompt.body)).ask("Who came in?", role="outside")
    assert "Nkemelu" not in repr(answer) and "[PERSON_1]" in answer.text
    assert answer.receipt.spans["person"] == {"placeholder": 1}
    assert answer.guarantee is answer.receipt.guarantee


def test_the_model_never_reads_a_value_that_is_not_raw(ledger: Ledger) -> None:
    lm = Writer("It is so.")
    guarded = guard(ledger, calm())
    list(guarded.ingest([note("Anna Nkemelu came on 2021-03-05 with Brenquilosis.", i) for i in range(3)]))
    Rag.over_documents(guarded, lm).ask("Who has Brenquilosis?")
    assert lm.prompts and "Nkemelu" not in repr(lm.prompts) and "2021-03-05" not in repr(lm.prompts)


def test_an_entitled_caller_reads_values_and_the_answer_says_that_it_guarantees_nothing(ledger: Ledger) -> None:
    roles = {"ward": calm().roles["clinician"].model_copy(update={"least": "placeholder"})}
    guarded = guard(ledger, calm().model_copy(update={"roles": roles}))
    list(guarded.ingest([note("Anna Nkemelu came in with Brenquilosis.", 1)]))
    rag = Rag.over_documents(guarded, Writer("Seen: [PERSON_1]."))
    answer = rag.ask("Who came in?", role="ward")
    assert answer.text == "Seen: Anna Nkemelu." and answer.guarantee is Guarantee.NONE
    assert answer.receipt.guarantee is Guarantee.NONE and answer.receipt.given_back == ("person",)
    assert "values given back: person" in answer.receipt.says() and "guarantee: none" in answer.receipt.says()
    assert "Nkemelu" not in repr(answer.passages)
    assert "Nkemelu" not in rag.ask("Who came in?").text


def test_an_empty_account_is_answered_from_the_release(ledger: Ledger, tmp_path: Path) -> None:
    policy = calm().model_copy(update={"account": calm().account.model_copy(update={"quota_per_caller": 0})})
    guarded = guard(ledger, policy)
    list(guarded.ingest([note("Snurflepox was seen on 2021-03-05.", 1)]))
    lm = Writer("Giggle Drops.")
    release = made(tmp_path / "a")
    answer = Rag.over_documents(guarded, lm, fallback=release).ask("Which treatment helps Snurflepox?")
    assert answer.citations == ("snurflepox/1",)
    assert answer.guarantee is Guarantee.LDP_PER_VALUE  # whose account is empty chose the release
    assert answer.notes[-1] == "Answered from the release: an account is empty."
    assert answer.spent == answer.receipt.epsilon == 0
    without = Rag.over_documents(guarded, lm).ask("Which treatment helps Snurflepox?")
    assert "[DATE_1]" in without.passages[0].text and "2021" not in repr(without)


def test_an_answer_from_the_release_tells_what_was_spent_before(ledger: Ledger, tmp_path: Path) -> None:
    policy = calm().model_copy(update={"account": calm().account.model_copy(update={"quota_per_caller": 1})})
    guarded = guard(ledger, policy)
    list(guarded.ingest([note("Snurflepox was seen on 2021-03-05.", i) for i in range(2)]))
    answer = Rag.over_documents(guarded, Writer("Giggle Drops."), fallback=made(tmp_path / "a")).ask("Snurflepox?")
    assert answer.receipt.refused and answer.guarantee is Guarantee.LDP_PER_VALUE
    assert answer.spent == answer.receipt.epsilon == 1.0


def test_a_repeated_question_runs_no_detector_and_embeds_nothing(ledger: Ledger) -> None:
    from tests.guarding import Counting

    forms, embedder = Forms(), Counting()
    guarded = guard(ledger, calm(), finder=forms, embedder=embedder)
    list(guarded.ingest(notes(PEOPLE[:5])))
    rag = Rag.over_documents(guarded, Writer("Yes."))
    first = rag.ask("Who came in with asthma?")
    counts = len(forms.texts), len(embedder.texts)
    assert rag.ask("Who came in with asthma?").passages == first.passages
    assert (len(forms.texts), len(embedder.texts)) == counts


def test_an_empty_question_is_told(ledger: Ledger) -> None:
    for asked in (" ", "\u200b"):
        with pytest.raises(BadOption):
            Rag.over_documents(guard(ledger, calm()), Writer("")).ask(asked)
