"""The ledger never spends over, never loses, never takes back, and tells when it was changed by hand."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.errors import (
    BadOption,
    DiskFull,
    LedgerEmpty,
    LedgerExists,
    LedgerLocked,
    LedgerMismatch,
    LedgerMissing,
    LedgerTampered,
    LedgerUnusable,
    RunClosed,
    RunUnknown,
)
from stillroom.privacy import zcdp
from stillroom.privacy.events import Event, Gaussian, NoisyMax, NotPrivate, ThresholdedGaussian
from stillroom.privacy.ledger import Ledger

EPSILON, DELTA = 10.0, 1e-6
TOTAL = zcdp.rho_of(EPSILON, DELTA)


def costing(rho: float) -> list[Event]:
    return [Gaussian("test", 1.0, zcdp.gaussian_sigma(1.0, rho))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.ledger"


@pytest.fixture
def ledger(path: Path, tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(path, epsilon=EPSILON, delta=DELTA, population="clinic", installation=tmp_path / "home") as opened:
        yield opened


# Opening


def test_a_ledger_is_made_once_and_keeps_its_budget(ledger: Ledger, path: Path) -> None:
    for again in (Ledger.open(path), Ledger.open(path, epsilon=EPSILON, delta=DELTA, population="clinic")):
        with again:
            assert again.state() == ledger.state()
    assert (ledger.state().epsilon, ledger.state().delta, ledger.state().spent) == (EPSILON, DELTA, 0.0)


def test_another_budget_or_population_is_refused(ledger: Ledger, path: Path) -> None:
    for epsilon, delta in ((9.0, DELTA), (EPSILON, 1e-5)):
        with pytest.raises(LedgerExists, match="ε = 10, δ = 1e-06"):
            Ledger.open(path, epsilon=epsilon, delta=delta)
    with pytest.raises(LedgerExists):
        Ledger.open(path, epsilon=9.0)
    with pytest.raises(LedgerMismatch, match="population"):
        Ledger.open(path, population="ward")


def test_a_missing_ledger_is_not_made_without_a_budget(path: Path) -> None:
    with pytest.raises(LedgerMissing, match="stillroom ledger open"):
        Ledger.open(path)
    with pytest.raises(LedgerMissing):
        Ledger.open(path, epsilon=1.0)
    with pytest.raises(BadOption):
        Ledger.open(path, epsilon=-1.0, delta=1e-6)
    assert not path.exists()


def test_a_population_without_a_name_gets_a_random_one(tmp_path: Path) -> None:
    names = set()
    for file in ("a", "b"):
        with Ledger.open(tmp_path / file, epsilon=1, delta=1e-6) as opened:
            names.add(opened.state().population)
    assert len(names) == 2 and all(len(name) == 16 for name in names)


def test_only_the_owner_can_read_the_books(ledger: Ledger, path: Path) -> None:
    ledger.reserve("r", costing(0.1), purpose="test", units=["u"])
    files = [*path.parent.glob("clinic.ledger*"), *(path.parent / "home").iterdir()]
    assert len(files) >= 3
    assert all(file.stat().st_mode & 0o077 == 0 for file in [*files, path.parent / "home"])


def test_files_that_are_no_ledger_are_told_and_left_alone(tmp_path: Path) -> None:
    text, foreign = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("These are not the books you look for. " * 40)
    with sqlite3.connect(foreign) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    for file in (text, foreign):
        before = file.read_bytes()
        with pytest.raises(LedgerUnusable, match="cannot be used as a ledger"):
            Ledger.open(file, epsilon=1, delta=1e-6)
        assert file.read_bytes() == before
    with pytest.raises(LedgerUnusable):
        Ledger.open(tmp_path, epsilon=1, delta=1e-6)
    with pytest.raises(LedgerUnusable, match="no such file"):
        Ledger.open(tmp_path / "nowhere" / "x.ledger", epsilon=1, delta=1e-6)


def test_a_ledger_of_a_newer_stillroom_is_refused(ledger: Ledger, path: Path) -> None:
    ledger.close()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(LedgerUnusable, match="newer"):
        Ledger.open(path)


# Spending


def test_the_whole_budget_can_be_spent_and_not_a_breath_more(ledger: Ledger) -> None:
    sigma = zcdp.gaussian_sigma(1.0, TOTAL) * (1 + 1e-12)
    ledger.reserve("all", [Gaussian("all", 1.0, sigma)], purpose="all")
    assert ledger.state().left_rho < 1e-9 and 9.999999 < ledger.state().spent <= EPSILON
    with pytest.raises(LedgerEmpty):
        ledger.reserve("more", costing(1e-9), purpose="more")


def test_a_refusal_says_what_was_asked_what_is_left_and_what_was_there(ledger: Ledger) -> None:
    ledger.reserve("first", costing(1.0), purpose="first")
    for ask in (ledger.afford, lambda events: ledger.reserve("second", events, purpose="second")):
        with pytest.raises(LedgerEmpty) as told:
            ask(costing(0.75))
        for number in ("ρ = 0.75", f"{TOTAL - 1:.4g}", f"{TOTAL:.4g}", "of 10 at δ = 1e-06"):
            assert number in str(told.value)
    assert ledger.status("second") is None and ledger.state().rho == pytest.approx(1.0)


def test_afford_spends_nothing(ledger: Ledger) -> None:
    before = ledger.state()
    ledger.afford(costing(1.0))
    assert ledger.state() == before


def test_the_delta_of_partition_selection_is_taken_off_the_total(ledger: Ledger) -> None:
    def selecting(share: float) -> list[Event]:
        return [ThresholdedGaussian("words", 1, 100.0, zcdp.threshold_for(1, 100.0, share * DELTA))]

    ledger.reserve("a", selecting(0.5), purpose="a")
    state = ledger.state()
    assert state.delta_ps == pytest.approx(0.5 * DELTA, rel=1e-6)
    assert state.left_rho == pytest.approx(zcdp.rho_of(EPSILON, 0.5 * DELTA) - state.rho, rel=1e-6)
    with pytest.raises(LedgerEmpty):
        ledger.reserve("b", costing(zcdp.rho_of(EPSILON, DELTA) - state.rho), purpose="fits without the δ alone")
    with pytest.raises(LedgerEmpty):
        ledger.reserve("c", selecting(0.500001), purpose="no δ left, whatever ρ")


def test_what_is_not_private_cannot_be_reserved_but_is_recorded_for_good(ledger: Ledger) -> None:
    with pytest.raises(LedgerEmpty):
        ledger.reserve("raw", [NotPrivate("raw")], purpose="raw")
    ledger.not_private("baseline", 3)
    ledger.not_private("attack")
    state = ledger.state()
    assert (state.not_private, state.rho, state.spent) == (4, 0.0, 0.0)


def test_the_same_run_gets_its_reservation_again_and_pays_once(ledger: Ledger) -> None:
    first = ledger.reserve("r", costing(1.0), purpose="x")
    ledger.not_private("between")
    assert ledger.reserve("r", costing(1.0), purpose="x") == first
    assert ledger.state().rho == pytest.approx(1.0)
    with pytest.raises(LedgerMismatch):
        ledger.reserve("r", costing(0.1), purpose="x")


def test_a_run_is_reserved_then_complete_or_abandoned_for_good(ledger: Ledger) -> None:
    assert ledger.status("a") is None
    for run in ("a", "b"):
        ledger.reserve(run, costing(0.5), purpose=run)
        assert ledger.status(run) == "reserved"
    ledger.complete("a")
    ledger.complete("a")
    ledger.abandon("b")
    ledger.abandon("b")
    assert (ledger.status("a"), ledger.status("b"), ledger.state().entries) == ("complete", "abandoned", 5)
    for wrong in (ledger.abandon, lambda run: ledger.complete("b")):
        with pytest.raises(RunClosed):
            wrong("a")
    with pytest.raises(RunClosed, match="abandoned"):
        ledger.reserve("b", costing(0.5), purpose="b")
    with pytest.raises(RunUnknown):
        ledger.complete("c")


def test_giving_up_gives_nothing_back(ledger: Ledger) -> None:
    ledger.reserve("r", costing(1.0), purpose="x")
    ledger.abandon("r")
    assert ledger.state().rho == pytest.approx(1.0)
    with pytest.raises(LedgerEmpty):
        ledger.reserve("s", costing(1.0), purpose="x")


asks = st.lists(
    st.one_of(
        st.floats(1e-4, 1.0).map(costing),
        st.floats(1e-3, 0.7).map(
            lambda share: [ThresholdedGaussian("w", 3, 40.0, zcdp.threshold_for(3, 40.0, share * DELTA))]
        ),
        st.floats(5.0, 90.0).map(lambda scale: [NoisyMax("m", 2.0, scale, times=50)]),
    ),
    max_size=12,
)


@settings(max_examples=12, deadline=None)
@given(asks=asks)
def test_never_over_and_never_lost(asks: list[list[Event]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.ledger"
        kept: list[list[Event]] = []
        for number, events in enumerate(asks):
            # Opened anew each time: what was reserved must come from the disk.
            with Ledger.open(path, epsilon=EPSILON, delta=DELTA) as ledger:
                fits = zcdp.total([e for events in [*kept, events] for e in events])
                try:
                    ledger.reserve(str(number), events, purpose="x")
                except LedgerEmpty:
                    over = fits.delta_ps >= DELTA or zcdp.delta_of(fits.rho, EPSILON) > DELTA - fits.delta_ps
                    assert over
                else:
                    kept.append(events)
        with Ledger.open(path, epsilon=EPSILON, delta=DELTA) as ledger:
            state, total = ledger.state(), zcdp.total([e for events in kept for e in events])
        assert state.entries == 1 + len(kept)
        assert state.rho == pytest.approx(total.rho) and state.delta_ps == pytest.approx(total.delta_ps)
        assert state.spent <= EPSILON * (1 + 1e-12)


SPENDER = """
import sys
from stillroom.errors import LedgerEmpty
from stillroom.privacy.events import Gaussian
from stillroom.privacy.ledger import Ledger
path, name, sigma = sys.argv[1], sys.argv[2], float(sys.argv[3])
with Ledger.open(path, epsilon=10.0, delta=1e-6, population="clinic", wait=60) as ledger:
    done = 0
    for i in range(10):
        try:
            ledger.reserve(f"{name}-{i}", [Gaussian("x", 1.0, sigma)], purpose=name)
            done += 1
        except LedgerEmpty:
            pass
print(done)
"""


def test_processes_that_reserve_at_once_never_overspend(path: Path) -> None:
    sigma = zcdp.gaussian_sigma(1.0, TOTAL / 13.5)
    # The file does not exist yet: they also race to make it.
    racing = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(path), str(i), str(sigma)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for i in range(3)
    ]
    outputs = [process.communicate(timeout=100) for process in racing]
    assert all(process.returncode == 0 for process in racing), outputs
    assert sum(int(out) for out, _ in outputs) == 13
    with Ledger.open(path) as ledger:
        assert ledger.state().entries == 14 and ledger.state().spent <= EPSILON
        ledger.check()


# Trouble


def test_entries_cannot_be_changed_or_deleted(ledger: Ledger, path: Path) -> None:
    ledger.reserve("r", costing(1.0), purpose="x")
    raw = sqlite3.connect(path)
    for statement in ("UPDATE entries SET body = '{}' WHERE number = 2", "DELETE FROM entries WHERE number = 2"):
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            raw.execute(statement)
    raw.close()
    ledger.check()


def _cheaper(raw: sqlite3.Connection) -> None:
    body = json.loads(raw.execute("SELECT body FROM entries WHERE number = 3").fetchone()[0])
    body["rho"] /= 2
    raw.execute("UPDATE entries SET body = ? WHERE number = 3", (json.dumps(body),))


def _renumbered(raw: sqlite3.Connection) -> None:
    raw.execute("DELETE FROM entries WHERE number = 3")
    raw.execute("UPDATE entries SET number = 3 WHERE number = 4")


def _rehashed(raw: sqlite3.Connection) -> None:
    from stillroom.privacy.chain import canonical, digest

    body = json.loads(raw.execute("SELECT body FROM entries WHERE number = 3").fetchone()[0])
    body["rho"] /= 2
    text = canonical(body)
    raw.execute("UPDATE entries SET body = ?, hash = ? WHERE number = 3", (text, digest(text)))


@pytest.mark.parametrize(
    "tamper, entry",
    [
        (_cheaper, 3),
        (_rehashed, 3),
        (_renumbered, 3),
        (lambda raw: raw.execute("DELETE FROM entries WHERE number = 4"), 4),
        (lambda raw: raw.execute("DELETE FROM entries"), 1),
        (lambda raw: raw.execute("UPDATE entries SET body = 'x' WHERE number = 1"), 1),
        (lambda raw: raw.execute("DELETE FROM head"), 5),
    ],
    ids=["cheaper", "rehashed", "removed", "cut off", "emptied", "garbage", "headless"],
)
def test_a_change_by_hand_is_found_and_its_entry_named(
    ledger: Ledger, path: Path, tamper: Callable[[sqlite3.Connection], None], entry: int
) -> None:
    for run in ("a", "b", "c"):
        ledger.reserve(run, costing(0.1), purpose=run)
    raw = sqlite3.connect(path)
    for verb in ("update", "delete"):
        raw.execute(f"DROP TRIGGER entries_no_{verb}")
    tamper(raw)
    raw.commit()
    raw.close()
    for use in (ledger.check, ledger.state, lambda: ledger.reserve("d", costing(0.1), purpose="d")):
        with pytest.raises(LedgerTampered, match=f"entry {entry}:"):
            use()
    ledger.close()
    with pytest.raises(LedgerTampered):
        Ledger.open(path, epsilon=EPSILON, delta=DELTA)


def test_a_locked_ledger_is_told_after_the_wait(ledger: Ledger, path: Path) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerLocked, match=r"0\.05 s"):
        Ledger.open(path, wait=0.05)
    raw.execute("ROLLBACK")
    with Ledger.open(path, wait=0.05) as impatient:
        raw.execute("BEGIN IMMEDIATE")
        for use in (lambda: impatient.reserve("r", costing(0.1), purpose="x"), lambda: impatient.not_private("x")):
            with pytest.raises(LedgerLocked, match=r"0\.05 s"):
                use()
        raw.close()
        impatient.reserve("r", costing(0.1), purpose="x")


def test_a_full_disk_is_told_and_costs_nothing(tiny_disk: Path, fill: Callable[[Path], Path], tmp_path: Path) -> None:
    with Ledger.open(tiny_disk / "x.ledger", epsilon=EPSILON, delta=DELTA) as ledger:
        before = ledger.state()
        filler = fill(tiny_disk)
        with pytest.raises(DiskFull, match="No space left"):
            for i in range(100):
                ledger.reserve(f"r{i}", costing(0.001), purpose="x" * 5000)
        after = ledger.state()
        with pytest.raises(DiskFull):
            Ledger.open(tiny_disk / "y.ledger", epsilon=EPSILON, delta=DELTA)
        filler.unlink()
        assert ledger.state() == after and ledger.check()
        ledger.reserve("later", costing(1.0), purpose="x")
        assert ledger.state().entries == after.entries + 1 and before.entries == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only files")
def test_a_read_only_ledger_is_told(ledger: Ledger, path: Path) -> None:
    ledger.close()
    path.chmod(0o400)
    with pytest.raises(LedgerUnusable):
        Ledger.open(path)


# What may be published


def test_an_export_holds_events_and_hashes_and_nothing_of_the_operator(path: Path, tmp_path: Path) -> None:
    clock = lambda: datetime(2031, 7, 4, 5, 6, 7, tzinfo=UTC)  # noqa: E731
    with Ledger.open(
        path, epsilon=10, delta=1e-6, population="clinic", clock=clock, installation=tmp_path / "home"
    ) as ledger:
        ledger.reserve("r", costing(1.0), purpose="secret purpose /srv/notes.jsonl", units=["patient 77", "patient 78"])
        ledger.complete("r")
        ledger.not_private("secret attack", 2)
        export, history = ledger.export(), ledger.history()
        salted = sqlite3.connect(path).execute("SELECT body FROM entries").fetchall()
    text = json.dumps(export)
    assert export["spent"]["rho"] == pytest.approx(1.0) and export["not_private"] == 2
    assert export["head"] == history[-1].hash == export["entries"][-1]["hash"]
    assert export["relation"] == "add or remove all documents of one unit"
    for private in ("secret", "2031", "05:06", "clinic.ledger", str(tmp_path), "patient", "salt"):
        assert private not in text
    assert history[1].time == "2031-07-04T05:06:07+00:00"
    assert len({json.loads(body)["salt"] for (body,) in salted}) == 4


def test_the_head_depends_on_random_bits_so_that_it_cannot_be_guessed(tmp_path: Path) -> None:
    clock = lambda: datetime(2031, 7, 4, tzinfo=UTC)  # noqa: E731
    heads = set()
    for name in ("a", "b"):
        with Ledger.open(tmp_path / name, epsilon=10, delta=1e-6, population="clinic", clock=clock) as ledger:
            heads.add(ledger.check())
    assert len(heads) == 2
