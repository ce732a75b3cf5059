"""Permanent draws: what a value was once answered with, it is answered with for ever, and paid for once.

Fresh draws would be averaged away (rule 33). A draw is found by a keyed digest of population, category, value, subject
and mechanism, and lies encrypted in the ledger's file, where the same transaction charges it (`privacy.accounts`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from stillroom.guarantee import Guarantee
from stillroom.guard.keys import Key, Ring
from stillroom.guard.mechanisms.base import Mechanism
from stillroom.privacy.accounts import Ask, Refused
from stillroom.privacy.ledger import Ledger
from stillroom.privacy.noise import Noise, OpenDPNoise


@dataclass(frozen=True)
class Subject:
    """Whom a value is about: a unit across all its documents, or, where there is none, one document.

    A document has no account: with it as subject, 30 notes of one patient would be 30 draws (rule 26).
    """

    id: str
    unit: bool = True


@dataclass(frozen=True)
class Wanted:
    """An answer that is wanted: a canonical value of a category, of whom, and by which mechanism."""

    category: str
    value: str = field(repr=False)
    subject: Subject = field(repr=False)
    mechanism: Mechanism


@dataclass(frozen=True)
class Drawn:
    """What a value is answered with.

    Attributes:
        text: the answer; None where the account or the quota is empty: then a placeholder stands, never the value.
        charged: ε newly spent on the subject; 0 for what was drawn before.
        refused: why there is no answer.
        guarantee: of the mechanism.
    """

    text: str | None
    charged: float
    refused: Refused | None
    guarantee: Guarantee


class Memo:
    """The draws in a ledger; open as long as the ledger is.

    Attributes:
        ledger: the hash of the ledger's first entry, which tells it from all others.
        population: its public name.

    Args:
        ledger: of the population.
        key: the user's: the one that the draws were begun with, or that they were rotated to; `Key.load()` when None.
        limit: the ε that may ever be spent on one subject: fixed for good by the first draw.
        noise: makes draws.

    Raises: GuardKeyMissing, GuardKeyWrong, GuardDamaged, MissingExtra; BadOption, LedgerMismatch for another limit.
    """

    def __init__(
        self,
        ledger: Ledger,
        key: Key | None,
        *,
        limit: float,
        noise: Noise | None = None,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._accounts = ledger.accounts()
        self._ring = Ring.of(ledger.path, self._accounts.boxes, Key.load() if key is None else key, entropy)
        self._accounts.agree(limit)
        self._limit = limit
        opening = ledger.history()[0]
        self.ledger, self.population = opening.hash, opening.population
        self._book, self._registered = ledger, set[str]()
        self._noise = noise or OpenDPNoise()

    def draw(self, wanted: Sequence[Wanted], *, caller: str, quota: float | None = None) -> list[Drawn]:
        """Return an answer to each value, in their order: drawn and charged now, or as it was drawn before.

        The new ones of one call are stored in one transaction. Before that their units are noted as this ledger's, as
        `distil` does: with a second ledger a value could be drawn anew. Where the subject's account or the caller's
        quota is empty a draw is refused, and only what was drawn before is answered.

        Args:
            caller: who asks, as the operator names it; `quota` is the ε that this caller may newly spend in all.

        Raises: UnitsShared where a unit is another ledger's; ValueError for a draw with ε whose subject is no unit;
        LedgerLocked, DiskFull, GuardKeyRotated, GuardDamaged. Then nothing was charged.
        """
        asks = [self._ask(each) for each in wanted]
        self.register(each.subject for each in wanted)
        answers = self._accounts.draw(asks, caller=caller, quota=quota, ring=self._ring.body, limit=self._limit)
        return [
            Drawn(
                None if answer.box is None else self._ring.open(answer.box, ask.key).decode("utf-8"),
                answer.charged,
                answer.refused,
                each.mechanism.guarantee,
            )
            for each, ask, answer in zip(wanted, asks, answers, strict=True)
        ]

    def register(self, subjects: Iterable[Subject]) -> None:
        """Note the units among subjects as this ledger's, before anything is drawn. Raises UnitsShared."""
        self._register({subject.id for subject in subjects if subject.unit})

    def check(self) -> None:
        """Raise, as `draw` does, where the ledger cannot be read by now."""
        self._accounts.used("")

    def draws(self) -> int:
        """Return the number of draws in the ledger, of all vaults: they are only ever added."""
        return self._accounts.draws()

    def spent(self, subject: Subject) -> float:
        """Return Σε of a subject."""
        return self._accounts.spent(self._whom(subject))

    def used(self, caller: str) -> float:
        """Return the ε that a caller has newly spent."""
        return self._accounts.used(caller)

    def rotate(self, new: Key) -> None:
        """Seal all draws anew for another key, all or nothing; they stay what they were. See `Ring.rotate`."""
        self._ring = self._ring.rotate(self._accounts.boxes, new)

    def _register(self, units: set[str]) -> None:
        if new := units - self._registered:
            self._book.note_units(sorted(new))
            self._registered |= new

    def _ask(self, each: Wanted) -> Ask:
        mechanism = each.mechanism
        if mechanism.epsilon > 0 and not each.subject.unit:
            raise ValueError("a noisy draw needs a unit: without one there is no noisy tier")
        subject = self._whom(each.subject)
        key = self._ring.digest("draw", self.population, each.category, each.value, subject.hex(), mechanism.version)

        def make() -> bytes:
            return self._ring.seal(mechanism.draw(each.value, self._noise).encode("utf-8"), key)

        return Ask(key, subject, mechanism.epsilon, make)

    def _whom(self, subject: Subject) -> bytes:
        return self._ring.digest("unit" if subject.unit else "document", self.population, subject.id)
