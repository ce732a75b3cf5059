"""The copy of Medical Synth is read as notes of patients."""

import importlib.util
import json
from pathlib import Path

import pytest

from stillroom.errors import BadLine, BadOption, FieldMissing, FileMissing

_SPEC = importlib.util.spec_from_file_location("medical", Path(__file__).parents[2] / "benchmarks" / "medical.py")
medical = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(medical)


@pytest.fixture
def folder(tmp_path):
    rows = [
        {
            "patient": f"P{at}",
            "disease": disease,
            "treatment": f"{disease} cure",
            "symptoms": ["x", "y"],
            "note": f"n{at}",
        }
        for at, disease in enumerate(["A"] * 2 + ["B"] * 4 + ["C"] * 3)
    ]
    (tmp_path / medical.FILE).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def test_topics_with_the_most_notes_are_taken_up_to_the_limit(folder):
    notes, facts = medical.load_llm_notes(folder, topics=2, per_topic=3)
    assert list(facts) == ["B", "C"]
    assert [(row["patient_id"], row["disease"]) for row in notes] == [
        ("P2", "B"), ("P3", "B"), ("P4", "B"), ("P6", "C"), ("P7", "C"), ("P8", "C")
    ]  # fmt: skip
    assert len(medical.load_llm_notes(folder, topics=2, per_topic=None)[0]) == 7
    assert facts["B"].treatment == "B cure" and facts["B"].symptoms == ("x", "y")


def test_ids_depend_on_content_and_not_on_the_place_in_the_file(folder):
    before, _ = medical.load_llm_notes(folder, topics=3)
    lines = (folder / medical.FILE).read_text().splitlines(keepends=True)
    (folder / medical.FILE).write_text("".join(lines[1:]))
    after, _ = medical.load_llm_notes(folder, topics=3)
    assert {row["id"] for row in after} < {row["id"] for row in before}


def test_the_folder_may_come_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv(medical.FOLDER, str(folder))
    assert len(medical.load_llm_notes(topics=1)[0]) == 4
    monkeypatch.delenv(medical.FOLDER)
    with pytest.raises(FileMissing, match="STILLROOM_MEDICAL_SYNTH"):
        medical.load_llm_notes(topics=1)


def test_what_is_not_that_file_is_refused(folder):
    with pytest.raises(BadOption, match="topics is 4"):
        medical.load_llm_notes(folder, topics=4)
    (folder / medical.FILE).write_text('{"patient": "P"}\n')
    with pytest.raises(FieldMissing, match="line 1: no field 'disease'"):
        medical.load_llm_notes(folder, topics=1)
    (folder / medical.FILE).write_text("nonsense\n")
    with pytest.raises(BadLine, match="line 1: not JSON"):
        medical.load_llm_notes(folder, topics=1)


def test_generated_notes_have_the_same_shape():
    notes, facts = medical.pattern_notes(per_topic=3)
    assert len(notes) == 15 and set(notes[0]) == {"id", "patient_id", "note", "disease"} and len(facts) == 5
