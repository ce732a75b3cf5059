"""What stands in place of values: each is asked of the memo at its tier; one that gets no answer is a placeholder."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stillroom.errors import LedgerMismatch, StillroomError, UnitsShared
from stillroom.guarantee import Guarantee
from stillroom.guard.mechanisms import Mechanism
from stillroom.guard.mechanisms.composite import part
from stillroom.guard.memo import Drawn, Memo, Subject, Wanted
from stillroom.guard.policy import Policy, Tier
from stillroom.guard.template import Slot
from stillroom.guard.vault import Vault
from stillroom.privacy.noise import Noise


@dataclass(frozen=True)
class Place:
    """A slot at its tier.

    Attributes:
        document: which one it stands in; equal numbers for the passages and fields of one.
        subject: whom it is about.
    """

    document: str
    subject: Subject = field(repr=False)
    slot: Slot
    tier: Tier


@dataclass(frozen=True)
class Drawing:
    """Answers in the order of the places; None where a placeholder stands.

    Attributes:
        charged: ε newly spent, draw by draw.
        refused: draws refused, by the reason.
        kept: whether the books could be kept.
    """

    answers: Sequence[Drawn | None]
    charged: tuple[float, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    kept: bool = True


class _Lead(Mechanism):
    """Which category of a composite is drawn for a subject: the one that was first asked for, for good."""

    def __init__(self, group: str, category: str) -> None:
        self.category, self._first = f"composite {group}", category
        self.epsilon, self.guarantee, self.version = 0.0, Guarantee.LDP_PER_VALUE, "lead-1"

    def draw(self, value: str, noise: Noise) -> str:
        return self._first


class Draws:
    """The draws of a policy.

    In the noisy tier only one category of a composite is ever drawn for a subject: values that hang together, such as
    a birth date and an age, would else be told twice (rule 32). Which one is settled by the first question and does
    not follow from any value. The others are placeholders.

    Args:
        vault: where the values come from; it belongs to the memo's ledger from the first draw on.
    """

    def __init__(self, policy: Policy, memo: Memo | None, vault: Vault | None = None) -> None:
        self._policy, self._memo, self._vault = policy, memo, vault
        self._order = {name: number for number, name in enumerate(policy.categories)}
        self._mechanisms: dict[str, Mechanism] = {}
        self._leads: dict[tuple[Subject, str], str] = {}

    def mechanism(self, category: str) -> Mechanism:
        """Return the mechanism of a category at the noisy or the surrogate tier."""
        if category not in self._mechanisms:
            self._mechanisms[category] = self._policy.mechanism(category)
        return self._mechanisms[category]

    def draw(self, places: Sequence[Place], caller: str, people: Mapping[str, Slot] | None = None) -> Drawing:
        """Return what stands at each place at the noisy or the surrogate tier; whatever fails leaves placeholders.

        Args:
            people: by document, the person of one that speaks of one only, in all that it says.

        Raises LedgerMismatch, UnitsShared where the draws are in another ledger: this one would make them anew.
        """
        none: list[Drawn | None] = [None] * len(places)
        if self._memo is None:
            return Drawing(none, kept=False)
        try:
            self._memo.check()
            drawn = [place.subject for place in places if place.tier in ("noisy", "surrogate")]
            if self._vault is None or not drawn:
                return self._drawn(self._memo, places, caller, people or {})
            ledger, population = self._memo.ledger, self._memo.population
            bound, before = self._vault.check(ledger, population, self._memo.draws), self._memo.draws()
            self._memo.register(drawn)  # first: a ledger that may not draw about them must not get the vault
            if not bound:
                self._vault.bind(ledger, population, before)
            done = self._drawn(self._memo, places, caller, people or {})
            if (after := self._memo.draws()) > before:
                self._vault.bind(ledger, population, after)
            return done
        except (LedgerMismatch, UnitsShared):
            raise
        except (StillroomError, sqlite3.Error, OSError):
            # The books cannot be kept: nothing is drawn, and nothing was charged (rule 34).
            return Drawing(none, kept=False)

    def _drawn(self, memo: Memo, places: Sequence[Place], caller: str, people: Mapping[str, Slot]) -> Drawing:
        leads = self._settled(memo, places, caller)
        wanted: dict[int, Wanted] = {}
        for number, place in enumerate(places):
            category = place.slot.category
            if place.tier == "noisy":
                group = self._policy.rule(category).composite
                drawn = place.subject.unit and (group is None or leads[place.subject, group] == category)
            else:
                drawn = place.tier == "surrogate"
            if drawn:
                person = people.get(place.document) if self._of_person(place) else None
                slot = person or place.slot
                mechanism = self.mechanism(slot.category)
                wanted[number] = Wanted(slot.category, slot.canonical, place.subject, mechanism)
        answers: list[Drawn | None] = [None] * len(places)
        charged: list[float] = []
        refused: Counter[str] = Counter()
        quota = float(self._policy.account.quota_per_caller)
        for number, answer in zip(wanted, memo.draw(list(wanted.values()), caller=caller, quota=quota), strict=True):
            charged += [answer.charged] if answer.charged else []
            if answer.refused is not None:
                refused[answer.refused.value] += 1
            answers[number] = self._as_asked(places[number], wanted[number], answer)
        return Drawing(answers, tuple(charged), dict(sorted(refused.items())))

    def _settled(self, memo: Memo, places: Sequence[Place], caller: str) -> Mapping[tuple[Subject, str], str]:
        asked: dict[tuple[Subject, str], str] = {}
        noisy = [place for place in places if place.tier == "noisy" and place.subject.unit]
        for place in sorted(noisy, key=lambda place: self._order.get(place.slot.category, len(self._order))):
            group = self._policy.rule(place.slot.category).composite
            if group is not None and (place.subject, group) not in self._leads:
                asked.setdefault((place.subject, group), place.slot.category)
        wanted = [
            Wanted(f"composite {group}", "", subject, _Lead(group, category))
            for (subject, group), category in asked.items()
        ]
        if wanted:
            for key, answer in zip(asked, memo.draw(wanted, caller=caller), strict=True):
                assert answer.text is not None  # ε is 0, so it is never refused
                self._leads[key] = answer.text
        return self._leads

    def _of_person(self, place: Place) -> bool:
        """Say whether a surrogate is told from the one of the person beside it, so that they fit each other."""
        group = self._policy.rule(place.slot.category).composite
        if place.tier != "surrogate" or place.slot.category not in ("email", "username") or group is None:
            return False
        person = self._policy.rule("person")
        return person.composite == group and person.mechanism == "surrogate"

    @staticmethod
    def _as_asked(place: Place, wanted: Wanted, answer: Drawn) -> Drawn | None:
        if answer.text is None:
            return None
        text = answer.text if wanted.category == place.slot.category else part(place.slot.category, answer.text)
        return None if text is None else Drawn(text, answer.charged, None, answer.guarantee)
