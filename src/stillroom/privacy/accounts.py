"""Accounts of the guard: what was drawn about each subject, by which caller, and at what ε.

They are a book of their own beside the entries of the ledger, in the same file: ε per subject under local privacy is
not ε of the collection, and the two are never added. A draw is permanent: it is made, stored and charged in one
transaction, so that no crash leaves a charge without its draw, or a draw without its charge, and no two processes draw
twice.

Subjects are given as keyed digests. Draws are only ever added; ε of a subject is the sum over them, so it adds up by
itself. How many there are follows from the collection, so accounts are not exported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from stillroom.errors import BadOption, LedgerMismatch
from stillroom.privacy.boxes import Boxes
from stillroom.privacy.database import Database

PREFIX = "guard_"


class Refused(StrEnum):
    """Why there is no draw: the subject's account or the caller's quota is empty."""

    SUBJECT = "subject"
    CALLER = "caller"


@dataclass(frozen=True)
class Ask:
    """A draw that is wanted.

    Attributes:
        key: which draw it is, a keyed digest: asking with the same key gives the same draw.
        subject: whom it is about, a keyed digest.
        epsilon: what it costs the first time; 0 is never refused.
        make: makes the box; called at most once, with the file locked against other processes.
    """

    key: bytes
    subject: bytes
    epsilon: float
    make: Callable[[], bytes]


@dataclass(frozen=True)
class Answer:
    """The box of a draw and what was charged for it now, 0 for one that was there; or no box and why not."""

    box: bytes | None
    charged: float = 0.0
    refused: Refused | None = None


@dataclass(frozen=True)
class Standing:
    """What stands in the accounts: the limit, draws, subjects, ε of the fullest account, ε by caller."""

    limit: float | None
    draws: int
    subjects: int
    most: float
    callers: Mapping[str, float]


class Accounts:
    """The accounts in a ledger's file; made by `Ledger.accounts`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.boxes = Boxes(database, PREFIX)

    def agree(self, limit: float) -> None:
        """Return if this may be the ε ever spent on one subject: none was fixed by a draw yet, or the same.

        Raises BadOption, LedgerMismatch.
        """
        if not 0 < limit < math.inf:
            raise BadOption("ε per subject", limit, "a finite number above 0, such as 4")
        with self._database.speaking() as connection:
            self._same(limit, self._limit(connection))

    def draw(self, asks: Sequence[Ask], *, caller: str, quota: float | None, ring: str, limit: float) -> list[Answer]:
        """Return an answer to each ask, in their order; the new ones are drawn, stored and charged, all or none.

        What was drawn before costs nothing and is never refused. What is new is refused alone where the subject's
        account or the caller's quota does not hold it; the others go on.

        Args:
            caller: who asks, as the operator names it.
            quota: the ε that this caller may newly spend in all; None is no quota.
            ring: the ring with which `make` seals.
            limit: the ε that may ever be spent on one subject; the first draw fixes it for good.

        Raises: GuardKeyRotated, LedgerMismatch for another limit; whatever `make` raises: then nothing was stored.
        """
        held = {ask.key: self.boxes.get(ring, ask.key) for ask in asks}
        if None not in held.values():
            return [Answer(held[ask.key]) for ask in asks]
        with self._database.transaction() as connection:
            self.boxes.check(connection, ring)
            held_limit = self._limit(connection)
            self._same(limit, held_limit)
            if held_limit is None:
                connection.execute("INSERT INTO guard_limit VALUES (1, ?)", (float(limit),))
            book = _Book(connection, caller, quota, limit)
            return [self._draw(book, ask, ring) for ask in asks]

    def draws(self) -> int:
        """Return the number of draws that were ever made; they are only ever added."""
        with self._database.speaking() as connection:
            return int(connection.execute("SELECT COALESCE(MAX(number), 0) FROM guard_draws").fetchone()[0])

    def spent(self, subject: bytes) -> float:
        """Return the ε that was spent on a subject."""
        with self._database.speaking() as connection:
            return math.fsum(_charges(connection, "subject", subject))

    def used(self, caller: str) -> float:
        """Return the ε that a caller has newly spent."""
        with self._database.speaking() as connection:
            return math.fsum(_charges(connection, "caller", caller))

    def standing(self) -> Standing:
        """Return what stands in the accounts. Not for publication: counts follow from the collection (rule 9)."""
        with self._database.speaking() as connection:
            rows = connection.execute("SELECT subject, caller, epsilon FROM guard_draws ORDER BY number").fetchall()
            limit = self._limit(connection)
        subjects: dict[bytes, list[float]] = {}
        callers: dict[str, list[float]] = {}
        for subject, caller, epsilon in rows:
            subjects.setdefault(subject, []).append(epsilon)
            callers.setdefault(caller, []).append(epsilon)
        return Standing(
            limit=limit,
            draws=len(rows),
            subjects=len(subjects),
            most=max(map(math.fsum, subjects.values()), default=0.0),
            callers={caller: math.fsum(spent) for caller, spent in sorted(callers.items())},
        )

    def _draw(self, book: _Book, ask: Ask, ring: str) -> Answer:
        # Again, now that nobody else can write: another process, or an ask before this one, may have drawn it.
        held = self.boxes.get(ring, ask.key)
        if held is not None:
            return Answer(held)
        refused = book.refuses(ask)
        if refused is not None:
            return Answer(None, refused=refused)
        box = ask.make()
        book.charge(ask)
        self.boxes.put(book.connection, ring, ask.key, box)
        return Answer(box, charged=ask.epsilon)

    def _same(self, limit: float, held: float | None) -> None:
        if held is not None and held != limit:
            raise LedgerMismatch(self._database.path, "an ε per subject of", f"{held:g}", f"{limit:g}")

    @staticmethod
    def _limit(connection: Connection) -> float | None:
        row = connection.execute("SELECT epsilon FROM guard_limit").fetchone()
        return None if row is None else float(row[0])


class _Book:
    """Who has spent what, inside one transaction. Sums are rounded once: ten times 0.1 are 1."""

    def __init__(self, connection: Connection, caller: str, quota: float | None, limit: float) -> None:
        self.connection = connection
        self._caller, self._quota, self._limit = caller, quota, limit
        self._used = _charges(connection, "caller", caller)
        self._spent: dict[bytes, list[float]] = {}

    def refuses(self, ask: Ask) -> Refused | None:
        if ask.epsilon == 0:
            return None
        if math.fsum([*self._of(ask.subject), ask.epsilon]) > self._limit:
            return Refused.SUBJECT
        if self._quota is not None and math.fsum([*self._used, ask.epsilon]) > self._quota:
            return Refused.CALLER
        return None

    def charge(self, ask: Ask) -> None:
        spent = self._of(ask.subject)
        self.connection.execute(
            "INSERT INTO guard_draws (key, subject, caller, epsilon) VALUES (?, ?, ?, ?)",
            (ask.key, ask.subject, self._caller, float(ask.epsilon)),
        )
        spent.append(ask.epsilon)
        self._used.append(ask.epsilon)

    def _of(self, subject: bytes) -> list[float]:
        if subject not in self._spent:
            self._spent[subject] = _charges(self.connection, "subject", subject)
        return self._spent[subject]


def _charges(connection: Connection, column: str, value: bytes | str) -> list[float]:
    rows = connection.execute(f"SELECT epsilon FROM guard_draws WHERE {column} = ? AND epsilon > 0", (value,))
    return [row[0] for row in rows]
