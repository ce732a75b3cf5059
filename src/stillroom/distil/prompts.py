"""The prompts of distilling: public, fixed before the first private read, hashed into the certificate."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.lm.base import Prompt
from stillroom.release.schema import Form, PlanRecord

FORM_BEFORE = "Fill in the form from the {about}. Copy names exactly.\n\n{About}: "
FORM_AFTER = "\n\nForm:\n{labels}"
FREE_BEFORE = "{task}Rephrase the following document in a few sentences. Keep what matters.\n\nDocument: "
FREE_AFTER = "\n"


def document_prompt(plan: PlanRecord, text: str) -> Prompt:
    """Return the prompt of one row: the same for every topic, so a document is read once."""
    form = plan.text.form
    if form is None:
        task = f"Task: {plan.task}\n" if plan.task else ""
        return Prompt(FREE_BEFORE.format(task=task), text, FREE_AFTER)
    about = form.about
    labels = "\n".join(f"{slot.label}: ..." for slot in form.slots)
    return Prompt(
        FORM_BEFORE.format(about=about, About=about[0].upper() + about[1:]),
        text,
        FORM_AFTER.format(labels=labels),
        reply=f"{form.slots[0].label}:",
    )


def public_prompt(plan: PlanRecord, words: Sequence[str]) -> Prompt:
    """Return the prompt of the public row: the topic's released words in place of the document."""
    return document_prompt(plan, ", ".join(words))


def next_label(form: Form, slot: int) -> str:
    """Return what is pushed free after a slot: a line break and the next label; nothing after the last."""
    return f"\n{form.slots[slot + 1].label}:" if slot + 1 < len(form.slots) else ""
