"""A ledger with a memo of draws, and what is asked of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.guard.keys import Key
from stillroom.guard.mechanisms import Mechanism, make
from stillroom.guard.memo import Drawn, Memo, Subject, Wanted
from stillroom.privacy.ledger import Ledger

KEY = Key(bytes(range(32)))
AGE = make("laplace", "age", low=0, high=110, step=1, epsilon=1.0)
CITY = make("tree", "city", dictionary="countries", epsilon=2.0)
NAME = make("surrogate", "person")
WIDE, HALF = make("laplace", "age", low=0, high=10_000_000, step=1, epsilon=1.0), "5000000"
"""So wide that draws agree at the bounds alone."""
ANNA, BELA = Subject("patient 77"), Subject("patient 78")


@pytest.fixture(name="path")
def its_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is some: kill -9 leaves what was written, and fsync is quick there."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as folder:
        yield Path(folder) / "clinic.ledger"


@pytest.fixture(name="ledger")
def its_ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path, epsilon=10, delta=1e-6, population="clinic") as opened:
        yield opened


@pytest.fixture(name="memo")
def its_memo(ledger: Ledger) -> Memo:
    return Memo(ledger, KEY, limit=4.0)


def age(value: str = "47", subject: Subject = ANNA, mechanism: Mechanism = AGE) -> Wanted:
    return Wanted("age", value, subject, mechanism)


def one(memo: Memo, wanted: Wanted, quota: float | None = None) -> Drawn:
    return memo.draw([wanted], caller="ward", quota=quota)[0]
