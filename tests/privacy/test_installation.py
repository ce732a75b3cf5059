"""Units of one ledger are not charged to another on the same machine, and the register does not tell who they are."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.errors import LedgerEmpty, StillroomError, UnitsShared
from stillroom.privacy import zcdp
from stillroom.privacy.events import Event, Gaussian
from stillroom.privacy.installation import Installation, default_home
from stillroom.privacy.ledger import Ledger


def costing(rho: float) -> list[Event]:
    return [Gaussian("test", 1.0, zcdp.gaussian_sigma(1.0, rho))]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    home = tmp_path / "home"
    with Ledger.open(
        tmp_path / "clinic.ledger", epsilon=10, delta=1e-6, population="clinic", installation=home
    ) as opened:
        yield opened


def test_units_of_another_ledger_are_refused_and_nothing_is_spent(ledger: Ledger, tmp_path: Path) -> None:
    ledger.reserve("a", costing(0.1), purpose="x", units=["u1", "u2"])
    ledger.reserve("b", costing(0.1), purpose="x", units=["u2", "u3"])
    with Ledger.open(
        tmp_path / "ward.ledger", epsilon=10, delta=1e-6, population="ward", installation=tmp_path / "home"
    ) as other:
        with pytest.raises(UnitsShared, match=r"'clinic'.*'ward'") as told:
            other.reserve("c", costing(0.1), purpose="x", units=["w1", "u3", "w2"])
        assert "u3" not in str(told.value)
        assert other.status("c") is None and other.state().rho == 0.0
        other.reserve("c", costing(0.1), purpose="x", units=["w1", "w2"])  # the refusal noted neither
    ledger.reserve("d", costing(0.1), purpose="x", units=["w3"])
    with pytest.raises(UnitsShared, match=r"'ward'.*'clinic'"):
        ledger.reserve("e", costing(0.1), purpose="x", units=["w4", "w2"])


def test_deleting_a_ledger_and_opening_it_anew_does_not_free_its_units(tmp_path: Path) -> None:
    def opened() -> Ledger:
        return Ledger.open(
            tmp_path / "x.ledger", epsilon=10, delta=1e-6, population="clinic", installation=tmp_path / "home"
        )

    with opened() as ledger:
        ledger.reserve("a", costing(0.1), purpose="x", units=["u"])
    (tmp_path / "x.ledger").unlink()
    with opened() as ledger, pytest.raises(UnitsShared):
        ledger.reserve("a", costing(0.1), purpose="x", units=["u"])


def test_a_refused_budget_notes_no_units(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerEmpty):
        ledger.reserve("a", costing(5.0), purpose="x", units=["u"])
    assert not (tmp_path / "home").exists()


def test_the_registry_holds_no_unit_id_and_no_hash_that_can_be_guessed(tmp_path: Path) -> None:
    import hashlib

    for home in ("a", "b"):
        Installation(tmp_path / home).register("id", "clinic", ["patient 77"])
    files = [(tmp_path / home / "units.sqlite").read_bytes() for home in ("a", "b")]
    prints = [
        sqlite3.connect(tmp_path / home / "units.sqlite").execute("SELECT fingerprint FROM units").fetchone()
        for home in ("a", "b")
    ]
    assert prints[0] != prints[1]
    for data in files:
        assert b"patient 77" not in data and hashlib.sha256(b"patient 77").digest() not in data


def test_many_units_stream(tmp_path: Path) -> None:
    installation = Installation(tmp_path)
    for _ in range(2):
        installation.register("id", "clinic", (f"unit {i}" for i in range(20_001)))
    with pytest.raises(UnitsShared):
        installation.register("other", "ward", (f"unit {i}" for i in reversed(range(20_001))))
    assert sqlite3.connect(tmp_path / "units.sqlite").execute("SELECT count(*) FROM units").fetchone() == (20_001,)


def test_the_installation_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "here"))
    assert default_home() == tmp_path / "here"
    with Ledger.open(tmp_path / "x.ledger", epsilon=10, delta=1e-6) as ledger:
        ledger.reserve("a", costing(0.1), purpose="x", units=["u"])
    assert (tmp_path / "here" / "units.sqlite").exists()
    monkeypatch.delenv("STILLROOM_HOME")
    assert default_home() == Path.home() / ".local" / "share" / "stillroom"


def test_many_who_make_the_registry_at_once_all_get_it(tmp_path: Path) -> None:
    failed: list[str] = []

    def register(home: Path, start: threading.Barrier) -> None:
        start.wait()
        try:
            installation = Installation(home)
            installation.register("id", "clinic", ["patient 77"])
            installation.close()
        except StillroomError as wrong:
            failed.append(str(wrong))

    for turn in range(40):
        start = threading.Barrier(4)
        threads = [threading.Thread(target=register, args=(tmp_path / str(turn), start)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
