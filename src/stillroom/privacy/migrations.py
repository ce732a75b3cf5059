"""Numbered migrations of the four databases: ledger, vault, installation, journal.

A migration is a tuple of statements. Those that were ever shipped are never changed; new ones are put at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Schema:
    """What a database is: its name in messages, its SQLite application id, and how it came to its present shape."""

    name: str
    application: int
    migrations: Sequence[Sequence[str]]


def _append_only(table: str) -> tuple[str, ...]:
    return tuple(
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END"
        for verb in ("UPDATE", "DELETE")
    )


def boxes(prefix: str = "") -> tuple[str, ...]:
    """Return the statements that make the tables of `boxes.Boxes` with this prefix."""
    return (
        # The keys that open the boxes, themselves encrypted with the user's key.
        f"CREATE TABLE {prefix}ring (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL) STRICT",
        f"CREATE TABLE {prefix}boxes (key BLOB PRIMARY KEY, box BLOB NOT NULL) STRICT, WITHOUT ROWID",
    )


LEDGER = Schema(
    "ledger",
    0x5354_4C01,
    (
        (
            # `body` is canonical JSON and holds all there is; `hash` is its sha256, `body` names the hash before it.
            "CREATE TABLE entries (number INTEGER PRIMARY KEY CHECK (number > 0), body TEXT NOT NULL, "
            "hash TEXT NOT NULL UNIQUE) STRICT",
            *_append_only("entries"),
            # Where the chain ends, so that entries cut off at the end are missed.
            "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, "
            "hash TEXT NOT NULL) STRICT",
            # Who holds a run, and how many draws it has used. Not part of the book: it changes with every draw.
            "CREATE TABLE leases (run TEXT PRIMARY KEY, mark TEXT NOT NULL, draws INTEGER NOT NULL) "
            "STRICT, WITHOUT ROWID",
        ),
        (
            # The guard's accounts (`accounts`): every draw about a subject, by whom and at what ε. Keys and subjects
            # are keyed digests; what was drawn lies encrypted in guard_boxes.
            "CREATE TABLE guard_limit (one INTEGER PRIMARY KEY CHECK (one = 1), epsilon REAL NOT NULL) STRICT",
            *_append_only("guard_limit"),
            "CREATE TABLE guard_draws (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, subject BLOB NOT NULL, "
            "caller TEXT NOT NULL, epsilon REAL NOT NULL CHECK (epsilon >= 0)) STRICT",
            *_append_only("guard_draws"),
            "CREATE INDEX guard_draws_subject ON guard_draws (subject)",
            "CREATE INDEX guard_draws_caller ON guard_draws (caller)",
            *boxes("guard_"),
            # A draw that was paid for is never thrown away.
            "CREATE TRIGGER guard_boxes_no_delete BEFORE DELETE ON guard_boxes "
            "BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END",
        ),
    ),
)

VAULT = Schema("vault", 0x5354_4C04, (boxes(),))

INSTALLATION = Schema(
    "unit registry",
    0x5354_4C02,
    (
        (
            "CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL) STRICT",
            "CREATE TABLE ledgers (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, "
            "population TEXT NOT NULL) STRICT",
            "CREATE TABLE units (fingerprint BLOB PRIMARY KEY, ledger INTEGER NOT NULL REFERENCES ledgers) "
            "STRICT, WITHOUT ROWID",
        ),
    ),
)

JOURNAL = Schema(
    "journal",
    0x5354_4C03,
    (
        (
            "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
            "CREATE TABLE draws (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value TEXT NOT NULL) STRICT",
            *_append_only("draws"),
        ),
    ),
)
