"""A retrieved context: passages, the spots where values stand in them, and the numbers that placeholders get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stillroom.guarantee import Guarantee
from stillroom.guard.draws import Place
from stillroom.guard.mechanisms import placeholder
from stillroom.guard.memo import Drawn
from stillroom.guard.policy import Tier
from stillroom.guard.records import Record
from stillroom.guard.template import Slot, Template

Found = tuple[Record, Template]
"""A document and the passage of it that was found."""


@dataclass(frozen=True)
class Spot:
    """One slot of a context at its tier; `raised` says whether the risk of the query made it stricter."""

    place: Place
    raised: bool


@dataclass(frozen=True)
class Context:
    """Passages with the spots of their text and, where it is shown, of their metadata, in order."""

    found: Sequence[Found]
    spots: Sequence[Spot]
    metadata: bool = True

    def filled(self, shown: Sequence[str]) -> tuple[tuple[str, ...], tuple[Mapping[str, str], ...]]:
        """Return texts and metadata with what is shown in place of each spot."""
        left = iter(shown)
        texts, metadata = [], []
        for record, text in self.found:
            texts.append(text.fill(lambda _: next(left)))
            fields = record.metadata.items() if self.metadata else ()
            metadata.append({name: each.fill(lambda _: next(left)) for name, each in fields})
        return tuple(texts), tuple(metadata)


def people(records: Iterable[Record]) -> dict[str, Slot]:
    """Return, by record, the person of each that speaks of one only.

    All that a document says counts, and not the passages that were found: else a mail address would be told from its
    person for one question, and not for another.
    """
    found: dict[str, Slot] = {}
    for record in records:
        slots = (slot for template in (*record.passages, *record.metadata.values()) for slot in template.slots)
        persons = {slot.index: slot for slot in slots if slot.category == "person"}
        if len(persons) == 1:
            (found[record.name],) = persons.values()
    return found


class Numbering:
    """Numbers placeholders through a whole context.

    Two documents never share one: that they hold the same value is not in their templates.

    Attributes:
        slots: by placeholder, the record's name, category and index: where its value is kept.
    """

    def __init__(self) -> None:
        self.slots: dict[str, tuple[str, str, int]] = {}
        self._numbers: dict[str, dict[tuple[str, int], int]] = {}

    def name(self, document: str, slot: Slot) -> str:
        """Return the placeholder of a slot, such as "[PERSON_2]"."""
        numbers = self._numbers.setdefault(slot.category, {})
        number = numbers.setdefault((document, slot.index), len(numbers) + 1)
        name = placeholder(slot.category, number)
        self.slots[name] = document, slot.category, slot.index
        return name


def shown_at(spot: Spot, answer: Drawn | None, numbers: Numbering, *, raw: bool) -> tuple[str, Tier, Guarantee]:
    """Return what stands at a spot, at which tier it ended, and what that guarantees."""
    slot, tier = spot.place.slot, spot.place.tier
    if tier == "raw" and raw:
        return slot.surface, tier, Guarantee.NONE
    if answer is not None and answer.text is not None:
        return answer.text, tier, answer.guarantee
    return numbers.name(spot.place.document, slot), "placeholder", Guarantee.LDP_PER_VALUE
