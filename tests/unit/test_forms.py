"""A form comes by name, from a TOML file, written out, or proposed; anything else is answered by what to type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stillroom.distil.forms import FORMS, form_of, propose
from stillroom.distil.prompts import document_prompt, form_words, hint_of, next_label, public_prompts
from stillroom.errors import BadOption, FileFormat, FileMissing, StillroomError, UnknownName
from stillroom.lm.base import LanguageModel, Prompt
from stillroom.release.schema import Form, Slot
from tests.privacy.mechanics import FORM, plan

TOML = """
name = "ward"
about = "nurse's note"
[[slots]]
label = "Complaint"
draws = 6
hint = "what the patient says"
[[slots]]
label = "Measure"
draws = 4
"""


class Proposer(LanguageModel):
    """A model with one answer."""

    name = "proposer"
    capabilities = frozenset({"generate"})

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[Prompt] = []

    def generate(self, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        self.asked += prompts
        return [self.reply] * len(prompts)


@pytest.mark.parametrize("name", FORMS)
def test_shipped_forms_come_by_name_and_are_sound(name: str) -> None:
    form = form_of(name)
    assert form.name == name and 1 <= len(form.slots) <= 8
    assert form.draws == sum(slot.draws for slot in form.slots)
    assert all(slot.hint for slot in form.slots)


def test_a_form_comes_from_a_toml_file(tmp_path: Path) -> None:
    file = tmp_path / "ward.toml"
    file.write_text(TOML, encoding="utf-8")
    form = form_of(str(file))
    assert (form.name, form.about, form.draws) == ("ward", "nurse's note", 10)
    assert form.slots[0] == Slot(label="Complaint", draws=6, hint="what the patient says")


def test_a_toml_form_without_a_name_is_called_like_its_file(tmp_path: Path) -> None:
    file = tmp_path / "night-shift.toml"
    file.write_text('[[slots]]\nlabel = "Event"\ndraws = 5\n', encoding="utf-8")
    assert form_of(str(file)).name == "night-shift"


def test_a_form_is_written_out_in_a_line() -> None:
    form = form_of("Diagnosis: 8, Main treatment: 6 ,Symptoms:12")
    assert [(slot.label, slot.draws) for slot in form.slots] == [
        ("Diagnosis", 8), ("Main treatment", 6), ("Symptoms", 12),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong, error, says",
    [
        ("clinc", UnknownName, "clinic"),
        ("", UnknownName, "clinic"),
        ("nowhere.toml", FileMissing, "nowhere.toml"),
        ("Diagnosis: many", BadOption, "Diagnosis: 8"),
        ("Diagnosis: 8, Treatment", BadOption, "'Treatment'"),
        (": 8", BadOption, "slot"),
        ("Diagnosis: -3", BadOption, "slot"),
        ("Diagnosis: ²", BadOption, "slot"),
        ("Diagnosis: 0", BadOption, "greater than or equal to 1"),
        ("Diagnosis: 201", BadOption, "less than or equal to 200"),
        ("Diagnosis: 4, diagnosis: 5", BadOption, "twice"),
        ("x" * 61 + ": 3", BadOption, "60"),
        ("\x00.toml", FileFormat, "TOML"),
    ],
)
def test_a_wrong_form_is_answered_by_what_to_type(wrong: str, error: type[StillroomError], says: str) -> None:
    with pytest.raises(error, match=says):
        form_of(wrong)


@pytest.mark.parametrize(
    "content, says",
    [
        (b"\xff\xfe", "TOML"),
        (b"name = ", "TOML"),
        (b'name = "x"', "slots"),
        (b'name = "x"\nslots = []', "slots"),
        (b'name = "x"\nslots = 3', "slots"),
        (b'[[slots]]\nlabel = "A"\ndraws = 3\ncolour = "red"', "colour"),
        (b'[[slots]]\nlabel = "A"\ndraws = "lots"', "draws"),
        (b'[[slots]]\nlabel = ""\ndraws = 3', "label"),
    ],
)
def test_a_wrong_file_is_answered_by_the_place(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "form.toml"
    file.write_bytes(content)
    with pytest.raises((FileFormat, BadOption), match=says):
        form_of(str(file))


def test_a_folder_called_like_a_form_is_no_form(tmp_path: Path) -> None:
    (tmp_path / "a.toml").mkdir()
    with pytest.raises(FileFormat):
        form_of(str(tmp_path / "a.toml"))


def test_a_proposed_form_has_the_labels_that_are_plain_words() -> None:
    lm = Proposer("Diagnosis\n2. Treatment: what was given\n3. diagnosis\n4. **Symptoms**\n5. 42\n6. <b>x</b>\n\n")
    form = propose("Diseases and treatments", lm, draws=30)
    assert [slot.label for slot in form.slots] == ["Diagnosis", "Treatment", "Symptoms"]
    assert [slot.draws for slot in form.slots] == [10, 10, 10]
    assert "Diseases and treatments" in lm.asked[0].before and not lm.asked[0].body


@pytest.mark.parametrize("reply", ["", "???\n!!!", "a\nb"])
def test_a_useless_proposal_is_one_line(reply: str) -> None:
    assert [slot.label for slot in propose("x", Proposer(reply)).slots] == ["Summary"]


def test_the_prompt_of_a_form_asks_for_its_lines_and_has_spoken_the_first_label() -> None:
    record = plan()
    prompt = document_prompt(record, "the note")
    assert prompt.body == "the note" and prompt.reply == "Diagnosis:"
    assert prompt.before.startswith("From a clinic note") and prompt.before.endswith("Clinic note: ")
    assert all(f"{slot.label}: {hint_of(slot)}" in prompt.before for slot in FORM.slots)


def test_the_public_prompt_differs_from_a_documents_by_its_body_alone() -> None:
    record = plan()
    one, (other,) = document_prompt(record, "the note"), public_prompts(record, ["zonkitis", "blergon"])
    assert other.body == "zonkitis, blergon"
    assert (one.before, one.after, one.reply) == (other.before, other.after, other.reply)


@pytest.mark.parametrize(
    ("n", "orders"), [(0, [""] * 4), (1, ["a"] * 4), (3, ["a, b, c", "b, c, a", "c, b, a", "a, c, b"])]
)
def test_calibration_asks_the_public_words_in_four_orders(n: int, orders: list[str]) -> None:
    record = plan({"form": FORM, "draws": FORM.draws, "calibration": 0.5})
    assert [prompt.body for prompt in public_prompts(record, "abc"[:n])] == orders


def test_a_free_text_is_asked_for_with_the_task() -> None:
    record = plan({"form": None}, task="Find treatments")
    prompt = document_prompt(record, "the note")
    assert "Find treatments" in prompt.before and prompt.reply == ""


def test_labels_follow_each_other_and_end() -> None:
    assert [next_label(FORM, n) for n in range(3)] == ["\nTreatment:", "\nSymptoms:", ""]


def test_a_form_of_one_slot_has_a_prompt_too() -> None:
    single = Form(name="x", slots=(Slot(label="Summary", draws=3),))
    assert "Summary: summary" in document_prompt(plan({"form": single, "draws": 3}), "n").before


def test_the_words_of_a_form_are_those_of_its_prompt() -> None:
    assert form_words(FORMS["clinic"]) >= {"clinic", "note", "diagnosis", "name", "of", "disease", "symptoms"}
