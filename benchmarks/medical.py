"""Notes for the medical measurements: a copy of Medical Synth that is given by path, and generated ones."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from stillroom.documents import content_id
from stillroom.errors import BadLine, BadOption, FieldMissing, FileMissing
from stillroom.evals.facts import Fact
from stillroom.testing import patterns

FOLDER = "STILLROOM_MEDICAL_SYNTH"
"""Environment variable that names a folder with notes_llm.jsonl."""
FILE = "notes_llm.jsonl"
FIELDS = ("patient", "disease", "treatment", "symptoms", "note")

Rows = list[dict[str, str]]


def load_llm_notes(
    folder: Path | None = None, topics: int = 5, per_topic: int | None = 80
) -> tuple[Rows, dict[str, Fact]]:
    """Return the notes on the diseases that have most of them, and the truth about these diseases.

    Each note is a dict of id, patient_id (the unit), note and disease. Notes that do not name their disease, about one
    in eight, are kept: they are what real notes look like.

    Args:
        folder: holds notes_llm.jsonl; without it, the environment variable STILLROOM_MEDICAL_SYNTH.
        topics: how many diseases, those with the most notes; ties by name.
        per_topic: at most so many notes each, the first of the file; None takes all.

    Raises:
        FileMissing, BadLine, FieldMissing: the file is not that file.
        BadOption: more topics than the file has.
    """
    path = Path(folder if folder is not None else os.environ.get(FOLDER, f"${FOLDER}")) / FILE
    if not path.is_file():
        raise FileMissing(path)
    rows = _rows(path)
    counts = Counter(str(row["disease"]) for row in rows)
    if not 1 <= topics <= len(counts):
        raise BadOption("topics", topics, f"between 1 and {len(counts)}")
    if per_topic is not None and per_topic < 1:
        raise BadOption("per_topic", per_topic, "1 or more, or None for all")
    chosen = sorted(counts, key=lambda disease: (-counts[disease], disease))[:topics]
    taken: Counter[str] = Counter()
    facts: dict[str, Fact] = {}
    notes: Rows = []
    for row in rows:
        disease = str(row["disease"])
        if disease not in chosen or taken[disease] == per_topic:
            continue
        taken[disease] += 1
        symptoms = row["symptoms"]
        assert isinstance(symptoms, list)
        facts.setdefault(disease, Fact(disease, str(row["treatment"]), tuple(str(each) for each in symptoms)))
        patient, note = str(row["patient"]), str(row["note"])
        notes.append({"id": content_id(f"{patient}\n{note}"), "patient_id": patient, "note": note, "disease": disease})
    return notes, {disease: facts[disease] for disease in chosen}


def pattern_notes(per_topic: int = 80, seed: int = 1) -> tuple[Rows, dict[str, Fact]]:
    """Return generated notes on the five topics that are reported on, in the same shape as `load_llm_notes`."""
    fields = ("id", "patient_id", "note", "disease")
    rows = patterns.notes(patterns.FACTS, per_topic, seed)
    return [{field: row[field] for field in fields} for row in rows], dict(patterns.FACTS)


def _rows(path: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
            except ValueError:
                raise BadLine(path, number, "not JSON") from None
            if not isinstance(row, dict):
                raise BadLine(path, number, "not an object")
            for field in FIELDS:
                if field not in row:
                    raise FieldMissing(path, number, field, f"a copy of {FILE}", list(row))
            if not isinstance(row["symptoms"], list):
                raise BadLine(path, number, "symptoms is not a list")
            rows.append(row)
    return rows
