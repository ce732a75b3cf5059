"""The prompts of distilling: public, fixed before the first private read, hashed into the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stillroom.lm.base import Prompt
from stillroom.release.schema import Form, PlanRecord, Slot
from stillroom.text import words as words_of

FORM_BEFORE = "From a {about}, give the {list}, in this form:\n{lines}\n\n{About}: "
"""Before the document, so that it is read once for all."""
FORM_AFTER = "\n"
FREE_BEFORE = "{task}Rephrase the following document in a few sentences. Keep what matters.\n\nDocument: "
FREE_AFTER = "\n"

PROSE_BEFORE = "Write this record of a {about} as one or two plain sentences. Use only what it says.\n\n"


def document_prompt(plan: PlanRecord, text: str) -> Prompt:
    """Return the prompt of one row: the same for every topic, so a document is read once."""
    form = plan.text.form
    if form is None:
        task = f"Task: {plan.task}\n" if plan.task else ""
        return Prompt(FREE_BEFORE.format(task=task), text, FREE_AFTER)
    about = form.about
    hints = [hint_of(slot) for slot in form.slots]
    before = FORM_BEFORE.format(
        about=about,
        About=about[0].upper() + about[1:],
        list=", the ".join(hints[:-1]) + " and the " + hints[-1] if len(hints) > 1 else hints[0],
        lines="\n".join(f"{slot.label}: {hint}" for slot, hint in zip(form.slots, hints, strict=True)),
    )
    return Prompt(before, text, FORM_AFTER, reply=f"{form.slots[0].label}:")


def prose_prompt(form: Form, text: str) -> Prompt:
    """Return the prompt by which a released form is written out; it reads nothing else."""
    return Prompt(PROSE_BEFORE.format(about=form.about), text, "\n", public=True)


def hint_of(slot: Slot) -> str:
    """Return what the prompt says of a slot."""
    return slot.hint or slot.label.lower()


def form_words(form: Form) -> frozenset[str]:
    """Return the words of the form's own prompt, lower case: the model likes to repeat them as values."""
    said = " ".join([form.about, *(f"{slot.label} {hint_of(slot)}" for slot in form.slots)])
    return frozenset(words_of(said))


def public_prompts(plan: PlanRecord, words: Sequence[str]) -> list[Prompt]:
    """Return the prompts of the public rows: the topic's released words in place of the document.

    The first gives candidates and priors. Calibration wants to know what the model prefers by the words alone, not by
    their places, and takes the mean over four orders: this one, its halves exchanged, and both read backwards.
    """
    half = len(words) // 2
    exchanged = [*words[half:], *words[:half]]
    orders = [words] if plan.text.calibration is None else [words, exchanged, words[::-1], exchanged[::-1]]
    return [replace(document_prompt(plan, ", ".join(order)), public=True) for order in orders]


def next_label(form: Form, slot: int) -> str:
    """Return what is pushed free after a slot: a line break and the next label; nothing after the last."""
    return f"\n{form.slots[slot + 1].label}:" if slot + 1 < len(form.slots) else ""
