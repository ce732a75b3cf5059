"""Answers come from the release alone, name what they stand on, and cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from stillroom.embed.base import Vectors, clip
from stillroom.errors import BadOption, CertificateMismatch, ModelUnfit
from stillroom.guarantee import Guarantee
from stillroom.lm.base import LanguageModel, Prompt
from stillroom.loading import load_lm
from stillroom.rag import NOTHING, Rag
from stillroom.release.folder import Release
from tests.releases import certificate, made, plan
from tests.unit.test_index import Themes


class Writer(LanguageModel):
    """Writes what it is told and keeps the prompts."""

    name = "writer"
    capabilities = frozenset({"generate"})

    def __init__(self, reply: Callable[[Prompt], str] | str) -> None:
        self._reply = reply
        self.prompts: list[Prompt] = []

    def generate(self, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        self.prompts += prompts
        return [self._reply if isinstance(self._reply, str) else self._reply(prompt) for prompt in prompts]


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return made(tmp_path / "a")


def test_the_model_reads_the_passages_first_and_then_the_question(release: Release) -> None:
    lm = Writer("Giggle Drops.")
    answer = Rag(release, lm, Themes()).ask("  Which treatment\nhelps Snurflepox? ")
    (prompt,) = lm.prompts
    assert prompt.body == "[1] Diagnosis: Snurflepox; Treatment: Giggle Drops; Symptoms: fever, purple spots."
    assert prompt.after == "\nQuestion: Which treatment helps Snurflepox?\nAnswer:"
    assert (answer.text, answer.citations) == ("Giggle Drops.", ("snurflepox/1",))
    assert [(passage.number, passage.id, passage.topic) for passage in answer.passages] == [
        (1, "snurflepox/1", "snurflepox")
    ]


def test_asking_spends_nothing_and_carries_the_guarantee_of_the_release(release: Release) -> None:
    answer = Rag(release, Writer("Giggle Drops"), Themes()).ask("Snurflepox?")
    assert (answer.spent, answer.guarantee) == (0.0, Guarantee.DP)


def test_nothing_found_is_said_without_the_model(release: Release) -> None:
    lm = Writer("Paris")
    rag = Rag(release, lm, Themes())
    for question in ("What is the capital of France?", "Which treatment?", "What is it?"):
        answer = rag.ask(question)
        assert (answer.text, answer.citations, answer.passages) == (NOTHING, (), ())
    assert lm.prompts == []


@pytest.mark.parametrize("question", ["", "  \n\t"])
def test_an_empty_question_is_refused(release: Release, question: str) -> None:
    with pytest.raises(BadOption, match="question is empty"):
        Rag(release, Writer(""), Themes()).ask(question)


def test_those_passages_are_cited_whose_words_the_answer_holds(release: Release) -> None:
    question = "skinny spots eyesight?"
    every = ("zonkitis/1", "zonkitis/2", "snurflepox/1", "quibblitis/1")

    def cited(reply: str) -> tuple[str, ...]:
        answer = Rag(release, Writer(reply), Themes(), top_k=9).ask(question)
        assert sorted(passage.id for passage in answer.passages) == sorted(every)
        return tuple(sorted(answer.citations))

    assert cited("It is Giggle Drops.") == ("snurflepox/1",)
    assert cited("Blergonolaser Therapy helps Zonkitis") == ("zonkitis/1", "zonkitis/2")
    assert cited("Snorfodine tablets for Quibblitis, and Drops") == ("quibblitis/1", "snurflepox/1")
    assert cited("I cannot say") == tuple(sorted(every))
    assert cited("The treatment and the symptoms") == tuple(sorted(every))


def test_passages_far_behind_the_best_are_not_read(release: Release) -> None:
    answer = Rag(release, Writer("x"), Themes(), top_k=9).ask("Does Snurflepox need tablets?")
    assert [passage.id for passage in answer.passages] == ["snurflepox/1"]


def test_where_words_and_meaning_agree_on_the_best_others_need_both(release: Release) -> None:
    class Alike(Themes):
        """Finds all texts near each other, the right one a little nearer."""

        def embed(self, texts: Sequence[str]) -> Vectors:
            return clip(super().embed(texts) * 0.4 + 1)

    answer = Rag(release, Writer("x"), Alike(), top_k=9).ask("Does Snurflepox need care?")
    assert [passage.id for passage in answer.passages] == ["snurflepox/1"]
    by_meaning_alone = Rag(release, Writer("x"), Alike(), top_k=9).ask("spotsy?")
    assert len(by_meaning_alone.passages) == 4


def test_at_most_top_k_passages_are_read(release: Release) -> None:
    assert len(Rag(release, Writer("x"), Themes(), top_k=2).ask("skinny spotsy eyesight?").passages) == 2
    with pytest.raises(BadOption):
        Rag(release, Writer("x"), Themes(), top_k=0)


def test_only_the_first_line_is_the_answer(release: Release) -> None:
    reply = "\n Answer: Giggle Drops.\nQuestion: And then?\n"
    assert Rag(release, Writer(reply), Themes()).ask("Snurflepox?").text == "Giggle Drops."


def test_an_empty_reply_points_to_the_passages(release: Release) -> None:
    answer = Rag(release, Writer(" \n"), Themes()).ask("Snurflepox?")
    assert "no answer" in answer.text
    assert answer.citations == ("snurflepox/1",)


def test_a_name_that_no_passage_holds_is_noted(release: Release) -> None:
    rag = Rag(release, Writer("Giggle Drops"), Themes())
    (note,) = rag.ask("Do spots mean Blorbitis?").notes
    assert "'blorbitis'" in note
    assert rag.ask("Do purple spots mean Snurflepox, usually?").notes == ()


def test_a_rehearsal_says_so_and_guarantees_nothing(tmp_path: Path) -> None:
    from stillroom.release.folder import write
    from tests.releases import statistics, texts

    rehearsed = write(
        tmp_path / "r",
        certificate_without_files=certificate(rehearsal=True, ledger={}),
        statistics=statistics(),
        texts=texts(),
    )
    answer = Rag(rehearsed, Writer("Giggle Drops"), Themes()).ask("Snurflepox?")
    assert answer.guarantee is Guarantee.NONE
    assert "rehearsal" in answer.notes[0]


def test_long_texts_are_cut_in_the_prompt(tmp_path: Path) -> None:
    from tests.releases import texts

    long = [each.model_copy(update={"text": "Snurflepox " + "word " * 5000}) for each in texts()]
    lm = Writer("x")
    Rag(made(tmp_path / "a", texts=long), lm, Themes(), top_k=1).ask("Snurflepox?")
    assert len(lm.prompts[0].body.split()) < 150


def test_a_folder_is_opened_and_checked(tmp_path: Path) -> None:
    made(tmp_path / "a", plan(unit="document"))
    assert Rag(tmp_path / "a", Writer("x"), Themes()).ask("Snurflepox?").text == "x"
    (tmp_path / "a" / "texts.jsonl").write_text("{}\n")
    with pytest.raises(CertificateMismatch):
        Rag(tmp_path / "a", Writer("x"), Themes())


def test_a_model_that_cannot_write_is_refused_at_once(release: Release) -> None:
    class Mute(Writer):
        capabilities = frozenset({"scores"})

    with pytest.raises(ModelUnfit):
        Rag(release, Mute(""), Themes())


def test_an_address_needs_the_name_of_the_model_there() -> None:
    with pytest.raises(BadOption, match="#model"):
        load_lm("https://example.org/v1")
