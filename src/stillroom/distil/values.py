"""From drawn tokens to the text of a release: cleaning that looks at released values alone, so it costs nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stillroom.distil.vocabulary import Spelling
from stillroom.lm.base import LanguageModel
from stillroom.release.schema import Form
from stillroom.text import normalise, words


def fields_of(form: Form, lm: LanguageModel, spelling: Spelling, values: Sequence[Sequence[int]]) -> dict[str, str]:
    """Return each label's value: decoded, in one line; a word cut off by the slot's end is left out."""
    fields = {}
    for slot, tokens in zip(form.slots, values, strict=True):
        value = " ".join(normalise(lm.decode(tokens)).split())
        if len(tokens) >= slot.draws and " " in value and not spelling.whole(value.rsplit(" ", 1)[1]):
            value = value.rsplit(" ", 1)[0]
        fields[slot.label] = value.strip(" ,;:-")
    return fields


def free_text(lm: LanguageModel, tokens: Sequence[int]) -> str:
    """Return a free text in normal form."""
    return normalise(lm.decode(tokens)).strip()


def grounded(form: Form, fields: dict[str, str], released: Collection[str]) -> bool:
    """Say whether a filled form speaks of its topic: some value outside lists holds a word released with it.

    Where too few documents agree, the model fills a form from its own knowledge; such a text would state what nobody
    wrote. A function of released values alone.
    """
    known = set(released)
    values = [fields[slot.label] for slot in form.slots if not slot.list]
    return any(known.intersection(words(value)) for value in values) or not values
