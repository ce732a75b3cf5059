"""From drawn tokens to text: by what was drawn alone."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.distil.selffilter import QUESTIONS, useful
from stillroom.distil.values import fields_of, free_text
from stillroom.distil.vocabulary import Spelling
from stillroom.lexicon import WordList
from stillroom.lm.base import Prompt, Scores
from stillroom.release.schema import Form, Slot
from stillroom.testing.toylm import ToyDocument, ToyLM
from tests.privacy.mechanics import plan

FORM = Form(name="x", slots=(Slot(label="Diagnosis", draws=3), Slot(label="Treatment", draws=3)))
LM = ToyLM()
SPELLING = Spelling(LM, ["snurfle"], WordList("few", ["fever", "rest"]))


def fields(*values: str) -> dict[str, str]:
    return fields_of(FORM, LM, SPELLING, [LM.encode(value) for value in values])


def test_each_slot_gets_its_value_in_one_line() -> None:
    assert fields(" Zonkitis", " Tea\n and  Rest") == {"Diagnosis": "Zonkitis", "Treatment": "Tea and Rest"}


def test_a_released_word_cut_off_by_the_end_of_its_slot_is_left_out() -> None:
    assert fields(" fever snur", "")["Diagnosis"] == "fever"
    assert fields(" fever snurfle", "")["Diagnosis"] == "fever snurfle"


def test_a_value_that_is_one_word_stays_even_if_cut_off() -> None:
    assert fields(" snur", "")["Diagnosis"] == "snur"


def test_an_empty_slot_has_no_line() -> None:
    found = fields(" Zonkitis", "")
    assert FORM.filled(found) == "Diagnosis: Zonkitis"
    assert FORM.filled(fields("", "")) == ""


def test_a_form_is_read_as_lines_in_its_order() -> None:
    assert FORM.filled(fields(" Zonkitis", " Tea")) == "Diagnosis: Zonkitis\nTreatment: Tea"


def test_marks_at_the_ends_of_a_value_are_left_out() -> None:
    class Marks(ToyLM):
        def decode(self, tokens: Sequence[int]) -> str:
            return " - Tea, ;"

    assert fields_of(FORM, Marks(), SPELLING, [[1], [1]])["Diagnosis"] == "Tea"


def test_a_free_text_is_stripped_and_in_normal_form() -> None:
    assert free_text(LM, LM.encode(" Tea\n")) == "Tea"


# -- the self-filter reads released text and may only drop -----------------------------------------------------------
class Judge(ToyLM):
    """Says YES to texts about Tea."""

    def __init__(self) -> None:
        super().__init__(words=("YES", "NO", "Tea"), labels=(), letters="")
        self.read_texts: list[str] = []

    def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
        self.read_texts.append(prompt.body)
        scores = super().row_scores(prompt, document, said)
        scores[self.encode(" YES" if "Tea" in prompt.body else " NO")[0]] = 5.0
        return scores


def test_a_text_is_kept_where_the_model_says_yes() -> None:
    for question in ("medical", "movielens"):
        judge = Judge()
        assert useful(["a Tea", "a cake"], plan(selffilter=question), judge) == [True, False]
        assert judge.read_texts == ["a Tea", "a cake"]


def test_the_task_is_asked_about_in_its_own_words_and_without_one_nothing_is_dropped() -> None:
    assert "{task}" in QUESTIONS["task"]
    assert useful(["a cake"], plan(selffilter="task", task="Find Tea"), Judge()) == [False]
    assert useful(["a cake"], plan(selffilter="task"), Judge()) == [True]


def test_without_a_filter_all_texts_are_kept_unread() -> None:
    for selffilter in ("off", "searchqa"):
        judge = Judge()
        assert useful(["a", "b"], plan(selffilter=selffilter), judge) == [True, True]
        assert judge.read_texts == []
