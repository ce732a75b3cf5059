"""The ledger: the durable book of a population. Its ε and δ are fixed when it is opened; what is spent stays spent.

Entries are only ever added. Each is canonical JSON and names the sha256 of the one before, so that the last hash,
the head, stands for all of them. Each also holds 128 random bits: a head may be published and still tells nothing,
not even a date that could be guessed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stillroom.errors import (
    LedgerEmpty,
    LedgerExists,
    LedgerMismatch,
    LedgerMissing,
    RunClosed,
    RunUnknown,
)
from stillroom.privacy import chain, zcdp
from stillroom.privacy.accounts import Accounts
from stillroom.privacy.chain import ABANDON, COMPLETE, NOT_PRIVATE, OPEN, RESERVE, Entry, Reservation, State
from stillroom.privacy.database import Database
from stillroom.privacy.events import RELATION, Event, to_json
from stillroom.privacy.installation import Installation, default_home
from stillroom.privacy.migrations import LEDGER
from stillroom.privacy.zcdp import Cost

CERTIFIED = "certificate sha256:"
"""Begins the purpose of the entry that completes a run."""


def now() -> datetime:
    """Return the time, for entries."""
    return datetime.now(UTC)


class Ledger:
    """An open ledger; made by `Ledger.open`. Also a context manager."""

    def __init__(
        self,
        path: Path,
        database: Database,
        *,
        clock: Callable[[], datetime],
        entropy: Callable[[int], bytes],
        installation: Path | None,
        wait: float,
    ) -> None:
        self.path = path
        self._database = database
        self._clock = clock
        self._entropy = entropy
        self._home = installation
        self._wait = wait

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        population: str | None = None,
        clock: Callable[[], datetime] = now,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
        installation: Path | None = None,
        wait: float = 10.0,
    ) -> Self:
        """Return the ledger in this file; it is made when missing and both ε and δ are given.

        Args:
            path: one SQLite file, mode 0600, with -wal and -shm beside it while in use.
            epsilon, delta: fixed for good when the ledger is made; when given later they must be the same.
            population: public name of whom the ledger is about; a random id by default.
            clock: time of entries. It is kept in the ledger alone, never in exports or certificates.
            entropy: random bytes for ids and salts.
            installation: folder of the unit registry; `default_home()` when None. Touched only when units are given.
            wait: seconds to wait for another process.

        Raises:
            LedgerMissing, LedgerExists (other ε or δ), LedgerMismatch (other population), LedgerTampered,
            LedgerLocked, LedgerUnusable, BadOption, DiskFull.
        """
        path = Path(path)
        if epsilon is not None and delta is not None:
            zcdp.check_budget(epsilon, delta)
        elif not path.exists():
            raise LedgerMissing(path)
        database = Database(path, LEDGER, wait=wait)
        try:
            ledger = cls(path, database, clock=clock, entropy=entropy, installation=installation, wait=wait)
            ledger._begin(epsilon, delta, population)
        except BaseException:
            database.close()
            raise
        return ledger

    def afford(self, events: Sequence[Event]) -> None:
        """Return if the events could be reserved now; raise LedgerEmpty with asked, left and total otherwise."""
        self._afford(self.history(), zcdp.total(events))

    def reserve(
        self, run: str, events: Sequence[Event], *, purpose: str, unit: str = "document", units: Iterable[str] = ()
    ) -> Reservation:
        """Spend what the events cost, for good, and return the entry that says so; before private data is used.

        The same run with the same events gets the same reservation again (that is how a run goes on after a crash).

        Args:
            run: random public id of the run.
            purpose: for the operator's history; not exported.
            unit: what the events count by: "document", or the field that names the unit. Costs by different units do
                not add up, so that a ledger has one.
            units: ids of all units of the collection, streamed into the unit registry of the installation before
                anything is spent: a crash in between can only note too many.

        Raises:
            LedgerEmpty, UnitsShared: refused; nothing was spent.
            LedgerMismatch: earlier reservations count by another unit, or the run's are for other events.
            RunClosed: it was abandoned.
        """
        listed = [to_json(event) for event in events]
        asked = zcdp.total(events)
        entries = self.history()
        self._counts_by(entries, unit)
        if self._held(entries, run, listed) is None:
            self._afford(entries, asked)
        self.note_units(units)
        with self._database.transaction() as connection:
            entries = chain.read(connection, self.path)
            self._counts_by(entries, unit)
            held = self._held(entries, run, listed)
            if held is None:
                self._afford(entries, asked)
                held = self._add(
                    RESERVE,
                    run=run,
                    purpose=purpose,
                    unit=unit,
                    events=listed,
                    rho=asked.rho,
                    delta_ps=asked.delta_ps,
                )
        return Reservation(held.number, held.hash)

    def complete(self, run: str, certificate: str = "") -> None:
        """Note that the run is done, and the sha256 of its certificate: whoever forges one cannot forge this.

        Raises RunUnknown, RunClosed.
        """
        self._end(run, COMPLETE, f"{CERTIFIED}{certificate}" if certificate else "")

    def abandon(self, run: str) -> None:
        """Give the run up: what it reserved stays spent, and it can never go on. Raises RunUnknown, RunClosed."""
        self._end(run, ABANDON)

    def status(self, run: str) -> str | None:
        """Return "reserved", "complete" or "abandoned"; None for a run without reservation."""
        return chain.status(self.history(), run)

    def not_private(self, purpose: str, times: int = 1) -> None:
        """Record for good that something without a guarantee was done `times` times. It has no ρ; never refused."""
        if times < 1:
            raise ValueError("times must be at least 1")
        with self._database.transaction() as connection:
            chain.read(connection, self.path)
            self._add(NOT_PRIVATE, purpose=purpose, times=times)

    def accounts(self) -> Accounts:
        """Return the guard's accounts, which lie in this file beside the entries. Open as long as the ledger is."""
        return Accounts(self._database)

    def mark(self, run: str) -> str | None:
        """Return the mark of whoever claimed the run last; None when nobody has. See `journal`."""
        with self._database.speaking() as connection:
            row = connection.execute("SELECT mark FROM leases WHERE run = ?", (run,)).fetchone()
        return None if row is None else str(row[0])

    def drawn(self, run: str) -> int:
        """Return how many draws of the run may have been used."""
        with self._database.speaking() as connection:
            row = connection.execute("SELECT draws FROM leases WHERE run = ?", (run,)).fetchone()
        return 0 if row is None else int(row[0])

    def claim(self, run: str, mark: str, *, was: str | None, draws: int) -> bool:
        """Make `mark` the run's mark if it is `was` and no more than `draws` draws were used; return whether it is now.

        Raises RunClosed for a run that was abandoned.
        """
        with self._database.transaction() as connection:
            if chain.status(chain.read(connection, self.path), run) == "abandoned":
                raise RunClosed(run, "abandoned")
            row = connection.execute("SELECT mark, draws FROM leases WHERE run = ?", (run,)).fetchone()
            fits = was is None if row is None else row[0] == was and row[1] <= draws
            if fits:
                connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (run, mark, draws))
            return fits

    def count(self, run: str, mark: str, draws: int) -> bool:
        """Note that `draws` draws are used, if `mark` is still the run's mark; return whether it is.

        Not synchronised to the disk on its own: kill -9 cannot undo it; a power failure can, which only makes the
        check of the journal weaker, never wrong.
        """
        with self._database.speaking() as connection:
            connection.execute("PRAGMA synchronous = NORMAL")
            try:
                with self._database.transaction():
                    done = connection.execute(
                        "UPDATE leases SET draws = max(draws, ?) WHERE run = ? AND mark = ?", (draws, run, mark)
                    )
                    return done.rowcount == 1
            finally:
                connection.execute("PRAGMA synchronous = FULL")

    def state(self) -> State:
        """Return what is spent and left."""
        return chain.state(self.history())

    def history(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first; the first one opened the ledger. Raises LedgerTampered."""
        with self._database.speaking() as connection:
            return chain.read(connection, self.path)

    def check(self) -> str:
        """Check hashes, order, end and sums of all entries and return the head. LedgerTampered names the entry."""
        return self.history()[-1].hash

    def export(self) -> dict[str, Any]:
        """Return what may be published: the budget, every event, the chain of hashes.

        Without paths, times, purposes (free text of the operator) and anything about units.
        """
        entries = self.history()
        state = chain.state(entries)
        return {
            "version": 1,
            "population": state.population,
            "epsilon": state.epsilon,
            "delta": state.delta,
            "relation": RELATION,
            "spent": {"epsilon": state.spent, "rho": state.rho, "delta_ps": state.delta_ps},
            "not_private": state.not_private,
            "entries": [entry.public() for entry in entries],
            "head": state.head,
        }

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, epsilon: float | None, delta: float | None, population: str | None) -> None:
        with self._database.transaction() as connection:
            entries = chain.read(connection, self.path)
            if not entries:
                if epsilon is None or delta is None:
                    raise LedgerMissing(self.path)
                name = population or self._entropy(8).hex()
                self._add(OPEN, population=name, epsilon=float(epsilon), delta=float(delta), relation=RELATION)
                return
        opening = entries[0]
        if epsilon not in (None, opening.epsilon) or delta not in (None, opening.delta):
            raise LedgerExists(self.path, opening.epsilon, opening.delta)
        if population not in (None, opening.population):
            raise LedgerMismatch(self.path, "population", repr(opening.population), repr(population))

    def _afford(self, entries: Sequence[Entry], asked: Cost) -> None:
        spent = chain.spent(entries)
        if chain.within(spent + asked, entries[0].epsilon, entries[0].delta):
            return
        state = chain.state(entries)
        raise LedgerEmpty(
            asked_rho=asked.rho,
            # With the asked δ_ps taken off as well, so that left is what these events could have had.
            left_rho=chain.left_rho(spent + Cost(0.0, min(asked.delta_ps, 1.0)), state.epsilon, state.delta),
            total_rho=zcdp.rho_of(state.epsilon, state.delta),
            asked=zcdp.epsilon_of(asked.rho, state.delta - asked.delta_ps),
            spent=state.spent,
            total=state.epsilon,
            delta=state.delta,
        )

    def _counts_by(self, entries: Sequence[Entry], unit: str) -> None:
        other = next((entry.unit for entry in entries if entry.kind == RESERVE and entry.unit != unit), None)
        if other is not None:
            raise LedgerMismatch(self.path, "releases counted by the unit", repr(other), repr(unit))

    def _held(self, entries: Sequence[Entry], run: str, events: list[dict[str, Any]]) -> Entry | None:
        held = chain.reservation(entries, run)
        if held is None:
            return None
        if chain.status(entries, run) == "abandoned":
            raise RunClosed(run, "abandoned")
        if chain.canonical(list(held.events)) != chain.canonical(events):
            raise LedgerMismatch(
                self.path, f"for run {run!r}", f"a reservation of {len(held.events)} events", "another one"
            )
        return held

    def note_units(self, units: Iterable[str]) -> None:
        """Note units as this ledger's in the registry of the installation, before anything is done about them; streams.

        Raises UnitsShared where one is another ledger's.
        """
        first = next(stream := iter(units), None)
        if first is None:
            return
        opening = self.history()[0]
        installation = Installation(self._home or default_home(), wait=self._wait, entropy=self._entropy)
        try:
            installation.register(opening.hash, opening.population, _with(first, stream))
        finally:
            installation.close()

    def _end(self, run: str, kind: str, purpose: str = "") -> None:
        wanted = chain.STATUS[kind]
        with self._database.transaction() as connection:
            status = chain.status(chain.read(connection, self.path), run)
            if status is None:
                raise RunUnknown(self.path, run)
            if status == "reserved":
                self._add(kind, run=run, purpose=purpose)
            elif status != wanted:
                raise RunClosed(run, status)

    def _add(self, kind: str, **facts: Any) -> Entry:
        return chain.append(
            self._database.connection,
            {
                "kind": kind,
                "time": self._clock().isoformat(timespec="seconds"),
                "salt": self._entropy(16).hex(),
                **facts,
            },
        )


def _with(first: str, rest: Iterable[str]) -> Iterable[str]:
    yield first
    yield from rest
