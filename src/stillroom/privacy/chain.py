"""The hash chain of a ledger: entries, what they add up to, and whether they are as they were written."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from stillroom.errors import BadOption, LedgerTampered
from stillroom.privacy import zcdp
from stillroom.privacy.events import from_json
from stillroom.privacy.zcdp import Cost

OPEN, RESERVE, COMPLETE, ABANDON, NOT_PRIVATE = "open", "reserve", "complete", "abandon", "not-private"
STATUS = {RESERVE: "reserved", COMPLETE: "complete", ABANDON: "abandoned"}
START = "0" * 64
"""What the first entry names as the hash before it."""


@dataclass(frozen=True)
class Reservation:
    """The number of the entry that spent a run's budget, and its hash: the head at that moment."""

    entry: int
    head: str


@dataclass(frozen=True)
class Entry:
    """One line of the book. Fields that a kind of entry does not have are empty or 0."""

    number: int
    kind: str
    hash: str
    previous: str
    time: str
    run: str
    purpose: str
    unit: str
    events: tuple[Mapping[str, Any], ...]
    rho: float
    delta_ps: float
    times: int
    population: str
    epsilon: float
    delta: float

    def public(self) -> dict[str, Any]:
        """Return the entry as it may be published: no time, no purpose, no salt."""
        shown: dict[str, Any] = {"number": self.number, "kind": self.kind, "hash": self.hash, "previous": self.previous}
        if self.kind in STATUS:
            shown["run"] = self.run
        if self.kind == RESERVE:
            shown |= {"unit": self.unit, "rho": self.rho, "delta_ps": self.delta_ps}
            shown["events"] = [dict(event) for event in self.events]
        if self.kind == NOT_PRIVATE:
            shown["times"] = self.times
        return shown


@dataclass(frozen=True)
class State:
    """What a ledger has spent and has left.

    `rho` and `delta_ps` are the sums over reservations and `spent` is their ε at the ledger's δ; `left_rho` is what
    can still be reserved without partition selection. `not_private` counts acts that no ε covers.
    """

    population: str
    epsilon: float
    delta: float
    rho: float
    delta_ps: float
    spent: float
    left_rho: float
    not_private: int
    entries: int
    head: str


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(body: str) -> str:
    """Return the sha256 of an entry's body (hex)."""
    return hashlib.sha256(body.encode("ascii", "backslashreplace")).hexdigest()


def append(connection: Connection, facts: Mapping[str, Any]) -> Entry:
    """Add an entry inside the caller's transaction and return it."""
    row = connection.execute("SELECT number, hash FROM head").fetchone() or (0, START)
    number, body = row[0] + 1, canonical({**facts, "previous": row[1]})
    entry = _entry(number, body, digest(body))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, body, entry.hash))
    connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (number, entry.hash))
    return entry


def read(connection: Connection, path: Path) -> tuple[Entry, ...]:
    """Return all entries, checked; LedgerTampered names the first that is not as it was written."""
    # One statement, so that a writer in between cannot come between entries and head.
    rows = connection.execute(
        "SELECT e.number, e.body, e.hash, h.number, h.hash FROM entries e LEFT JOIN head h ON h.one = 1 "
        "ORDER BY e.number"
    ).fetchall()
    entries: list[Entry] = []
    previous = START
    for expected, (number, body, hash_, _, _) in enumerate(rows, 1):
        try:
            entry = _entry(number, body, hash_)
            true = number == expected and hash_ == digest(body) and entry.previous == previous and _adds_up(entry)
        except (ValueError, KeyError, TypeError, AttributeError, BadOption):
            true = False
        if not true or (entry.kind == OPEN) != (expected == 1):
            raise LedgerTampered(path, expected)
        entries.append(entry)
        previous = hash_
    if rows:
        end = (rows[-1][3], rows[-1][4])
    else:
        end = connection.execute("SELECT number, hash FROM head").fetchone() or (0, START)
    if end != (len(entries), previous):
        raise LedgerTampered(path, len(entries) + 1)
    return tuple(entries)


def state(entries: Sequence[Entry]) -> State:
    """Return what the entries add up to; the first one must be the opening."""
    opening, cost = entries[0], spent(entries)
    return State(
        population=opening.population,
        epsilon=opening.epsilon,
        delta=opening.delta,
        rho=cost.rho,
        delta_ps=cost.delta_ps,
        spent=zcdp.epsilon_of(cost.rho, opening.delta - cost.delta_ps),
        left_rho=left_rho(cost, opening.epsilon, opening.delta),
        not_private=sum(entry.times for entry in entries),
        entries=len(entries),
        head=entries[-1].hash,
    )


def spent(entries: Sequence[Entry]) -> Cost:
    """Return the sum of all reservations, given up or not."""
    return Cost(math.fsum(entry.rho for entry in entries), math.fsum(entry.delta_ps for entry in entries))


def within(cost: Cost, epsilon: float, delta: float) -> bool:
    """Return whether ε(ρ, δ − δ_ps) ≤ ε. Asked by way of δ(ρ, ε), which needs no search: exact at the edge."""
    left = delta - cost.delta_ps
    return left > 0 and zcdp.delta_of(cost.rho, epsilon) <= left


def left_rho(cost: Cost, epsilon: float, delta: float) -> float:
    """Return the ρ that can still be spent, 0 at least."""
    left = delta - cost.delta_ps
    return max(0.0, zcdp.rho_of(epsilon, left) - cost.rho) if left > 0 else 0.0


def reservation(entries: Sequence[Entry], run: str) -> Entry | None:
    """Return the entry that reserved for this run."""
    return next((entry for entry in entries if entry.kind == RESERVE and entry.run == run), None)


def status(entries: Sequence[Entry], run: str) -> str | None:
    """Return the latest status of a run; None when it reserved nothing."""
    return next((STATUS[entry.kind] for entry in reversed(entries) if entry.kind in STATUS and entry.run == run), None)


def _entry(number: int, body: str, hash_: str) -> Entry:
    facts = json.loads(body)
    return Entry(
        number=number,
        kind=facts["kind"],
        hash=hash_,
        previous=facts["previous"],
        time=facts["time"],
        run=facts.get("run", ""),
        purpose=facts.get("purpose", ""),
        unit=facts.get("unit", "document" if facts["kind"] == RESERVE else ""),
        events=tuple(facts.get("events", ())),
        rho=facts.get("rho", 0.0),
        delta_ps=facts.get("delta_ps", 0.0),
        times=facts.get("times", 0),
        population=facts.get("population", ""),
        epsilon=facts.get("epsilon", 0.0),
        delta=facts.get("delta", 0.0),
    )


def _adds_up(entry: Entry) -> bool:
    cost = zcdp.total(from_json(dict(event)) for event in entry.events)
    # Another machine's libm may differ in the last digits.
    return math.isclose(cost.rho, entry.rho, rel_tol=1e-12) and math.isclose(
        cost.delta_ps, entry.delta_ps, rel_tol=1e-9, abs_tol=0.0
    )
