"""Public forms: what a released text looks like, fixed before private data is read.

Free text spends its draws on wording, where documents disagree; a form spends them on facts, where they agree.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from stillroom.errors import BadOption, FileFormat, FileMissing, UnknownName
from stillroom.lm.base import LanguageModel, Prompt
from stillroom.release.schema import Form, Slot

MOST_SLOTS = 8
NONE_PROPOSED = "none proposed"
"""Name of the form of one line that stands where a model proposes nothing usable."""


def _form(name: str, about: str, *slots: tuple[str, int, str]) -> Form:
    made = (
        Slot(label=a, draws=n, hint=hint, list=hint.startswith("list of"), names=hint.startswith("name of"))
        for a, n, hint in slots
    )
    return Form(name=name, about=about, slots=tuple(made))


FORMS: Mapping[str, Form] = {
    "clinic": _form(
        "clinic", "clinic note",
        ("Diagnosis", 5, "name of the disease"),
        ("Treatment", 6, "name of the treatment"),
        ("Symptoms", 12, "list of symptoms"),
    ),
    "tickets": _form(
        "tickets", "support ticket",
        ("Product", 5, "name of the product"),
        ("Problem", 10, "what does not work"),
        ("Solution", 10, "what solved it"),
    ),
    "reviews": _form(
        "reviews", "review",
        ("Item", 6, "name of the item"),
        ("Liked", 9, "what was liked"),
        ("Disliked", 9, "what was disliked"),
    ),
    "hr": _form(
        "hr", "personnel case",
        ("Matter", 6, "name of the matter"),
        ("Cause", 9, "what caused it"),
        ("Outcome", 9, "what was decided"),
    ),
}  # fmt: skip
"""Forms that stillroom ships."""


def form_of(value: str) -> Form:
    """Return a form from a shipped name, a TOML file, or "Label: draws, Label: draws".

    Raises UnknownName, FileMissing, FileFormat or BadOption.
    """
    if value in FORMS:
        return FORMS[value]
    if value.endswith(".toml"):
        return _from_file(Path(value))
    if ":" not in value:
        raise UnknownName("form", value, [*FORMS, "FILE.toml", "'Label: draws, Label: draws'"])
    slots = []
    for part in value.split(","):
        label, _, draws = part.strip().rpartition(":")
        if not label or not draws.strip().isdecimal():
            raise BadOption("--form", repr(part.strip()), "a slot such as 'Diagnosis: 8', with a number of tokens")
        slots.append({"label": label.strip(), "draws": int(draws)})
    return _checked("--form", {"name": "own", "slots": slots})


def _from_file(path: Path) -> Form:
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as missing:
        raise FileMissing(path) from missing
    except (ValueError, OSError) as wrong:  # no TOML, no UTF-8, no path
        raise FileFormat(path, "it is not a TOML form with name and [[slots]] of label and draws") from wrong
    record.setdefault("name", path.stem)
    return _checked(str(path), record)


def _checked(where: str, record: dict[str, object]) -> Form:
    try:
        form = Form.model_validate(record)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        place = ".".join(str(p) for p in first["loc"])
        raise BadOption(where, f"wrong at {place or 'the top'}", f"a form ({first['msg']})") from wrong
    labels = [slot.label.lower() for slot in form.slots]
    if len(set(labels)) < len(labels):
        raise BadOption(where, "a form with a label twice", "one with different labels")
    return form


PROPOSAL = (
    "Task: {task}\n\nA short record is to be filled in from each document for this task. "
    "List three to five field names, one a line, one or two words each.\n"
)


def propose(task: str, lm: LanguageModel, draws: int = 30) -> Form:
    """Return a form that the model proposes from the public task sentence alone.

    Labels that are no plain words are left out; without any the form is one line, "Summary". The user sees the
    form before anything is spent, and it goes into the certificate.
    """
    said = lm.generate([Prompt(PROPOSAL.format(task=task), reply="1. ", public=True)], 60)[0]
    labels: list[str] = []
    for line in said.splitlines():
        label = re.sub(r"^[\s\d.)*\-•]+", "", line).split(":")[0].strip(" *_.")
        good = re.fullmatch(r"[A-Za-z][A-Za-z ]{2,28}", label) and len(label.split()) <= 3
        if good and label.lower() not in {known.lower() for known in labels}:
            labels.append(label[0].upper() + label[1:].lower())
    name = "proposed" if labels else NONE_PROPOSED
    labels = labels[:5] or ["Summary"]
    share = max(4, draws // len(labels))
    return Form(name=name, slots=tuple(Slot(label=label, draws=share) for label in labels))
