"""One ledger keeps the draws about a unit and about a vault: with a second one, draws could be had anew (rule 33)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from stillroom.errors import DiskFull, LedgerMismatch, UnitsShared
from stillroom.guarantee import Guarantee
from stillroom.guard.vault import Vault
from stillroom.privacy.accounts import Accounts
from stillroom.privacy.ledger import Ledger
from tests.guarding import KEY, guard, note, with_ward

pytest.importorskip("cryptography")

TEXT = "Anna Nkemelu came in on 2021-03-05 at 47 years from Paris with Brenquilosis."


@contextmanager
def book(folder: Path, name: str, home: str = "home") -> Iterator[Ledger]:
    with Ledger.open(folder / name, epsilon=10, delta=1e-6, population="clinic", installation=folder / home) as ledger:
        yield ledger


def test_a_second_ledger_gets_no_fresh_draw_about_a_unit_and_is_told(tmp_path: Path) -> None:
    with book(tmp_path, "one") as one, book(tmp_path, "two") as two:
        first = guard(one).sanitise("x", [note(TEXT, 1)])
        assert first.receipt.epsilon > 0
        with pytest.raises(UnitsShared, match="'clinic'") as told:
            guard(two).sanitise("x", [note(TEXT, 1)])
        assert "patient 1" not in str(told.value) and two.accounts().standing().draws == 0
        assert guard(one).sanitise("x", [note(TEXT, 1)]).texts == first.texts
        assert guard(two).sanitise("x", [note(TEXT, 2)]).receipt.epsilon > 0


def test_a_unit_that_was_distilled_with_one_ledger_is_not_drawn_with_another(tmp_path: Path) -> None:
    with book(tmp_path, "one") as one, book(tmp_path, "two") as two:
        one.reserve("run", [], purpose="x", units=["patient 1"])
        with pytest.raises(UnitsShared):
            guard(two).sanitise("x", [note(TEXT, 1)])
        assert guard(one).sanitise("x", [note(TEXT, 1)]).receipt.epsilon > 0


def test_control_ledgers_of_two_installations_cannot_see_each_other(tmp_path: Path) -> None:
    """What the docs say is not seen: the same collection on another machine."""
    with book(tmp_path, "one", "here") as one, book(tmp_path, "two", "there") as two:
        for ledger in (one, two):
            assert guard(ledger).sanitise("x", [note(TEXT, 1)]).receipt.subject_epsilon == 2.0


def test_a_vault_belongs_to_the_ledger_of_its_first_draw(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    with book(tmp_path, "one", "here") as one, book(tmp_path, "two", "there") as two:
        with guard(two, vault=vault) as opened:  # reading documents, and searching them, binds nothing
            kept = list(opened.ingest([note(TEXT, 1)]))
            opened.passages()
        with guard(one, vault=vault) as opened:
            answer = opened.sanitise("x", kept)
        with pytest.raises(LedgerMismatch, match="use the ledger that fits"):
            guard(two, vault=vault)
        with guard(one, vault=vault) as opened:
            assert opened.sanitise("x", kept).texts == answer.texts
            assert len(opened.passages()) == 1  # the note of the ledger is no document
        with guard(None, vault=vault) as opened:
            assert "[PERSON_1]" in opened.sanitise("x", kept).text
        assert one.state().head.encode() not in vault.read_bytes()


def test_two_guards_that_were_open_before_the_first_draw_bind_a_vault_once(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    with (
        book(tmp_path, "one", "here") as one,
        book(tmp_path, "two", "there") as two,
        guard(one, vault=vault) as first,
        guard(two, vault=vault) as second,
    ):
        kept = list(first.ingest([note(TEXT, 1)]))
        first.sanitise("x", kept)
        with pytest.raises(LedgerMismatch):
            second.sanitise("x", kept)
        assert two.accounts().standing().draws == 0


def test_a_vault_stays_bound_when_its_key_is_changed(tmp_path: Path) -> None:
    from stillroom.guard.keys import Key

    with Vault.open(tmp_path / "vault", KEY) as vault:
        vault.bind("one", "clinic")
        vault.rotate(new := Key.new())
    with Vault.open(tmp_path / "vault", new) as vault:
        vault.bind("one", "clinic")
        with pytest.raises(LedgerMismatch):
            vault.bind("two", "clinic")


@pytest.mark.parametrize("text", [TEXT, "It was Brenquilosis."], ids=["draws", "nothing to draw"])
def test_when_the_ledger_goes_away_nothing_comes_out_raw_and_the_receipt_says_so(tmp_path: Path, text: str) -> None:
    with book(tmp_path, "one") as one:
        guarded = guard(one)
        assert "Brenquilosis" in guarded.sanitise("x", [note(text, 1)]).text
    for asked in (note(text, 1), note(text, 2)):  # the ledger is closed by now
        answer = guarded.sanitise("x", [asked])
        assert "Brenquilosis" not in answer.text and "[DIAGNOSIS_1]" in answer.text
        tiers = {tier for tiers in answer.receipt.spans.values() for tier in tiers}
        assert tiers == {"placeholder"} and not answer.receipt.ledger
        assert answer.receipt.guarantee is Guarantee.LDP_PER_VALUE
        assert json.loads(json.dumps(answer.receipt.plain(), allow_nan=False))["subject_epsilon"] is None
        assert "of the subject drawn most of nothing is known" in answer.receipt.says()


def test_when_drawing_fails_in_the_middle_of_a_question_nothing_comes_out_raw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with book(tmp_path, "one") as one:
        guarded = guard(one)

        def full(*arguments: object, **named: object) -> None:
            raise DiskFull(one.path)

        monkeypatch.setattr(Accounts, "draw", full)
        answer = guarded.sanitise("x", [note(TEXT, 1)])
        assert "Brenquilosis" not in answer.text and not answer.receipt.ledger
        assert answer.receipt.epsilon == 0


def test_when_the_ledger_goes_away_no_value_is_given_back(tmp_path: Path) -> None:
    with book(tmp_path, "one") as one:
        guarded = guard(one, with_ward())
        context = guarded.sanitise("x", [note(TEXT, 1)], role="ward")
        assert "Anna" in guarded.rehydrate("It is [PERSON_1].", context, role="ward")
    assert guarded.rehydrate("It is [PERSON_1].", context, role="ward") == "It is [PERSON_1]."


def test_a_copy_of_the_ledger_from_before_a_draw_draws_nothing_about_its_vault(tmp_path: Path) -> None:
    """With fifteen copies of one that had not drawn, an age was drawn fifteen times."""
    vault, early = tmp_path / "vault", tmp_path / "early"
    with book(tmp_path, "one") as one, guard(one, vault=vault) as first:
        kept = list(first.ingest([note(TEXT, 1)]))
        path = one.path
        with closing(sqlite3.connect(path)) as now, closing(sqlite3.connect(early)) as copy:
            now.backup(copy)
        drawn = first.sanitise("x", kept).text
        assert one.accounts().draws() > 0
        assert first.sanitise("x", kept).text == drawn
    early.replace(path)
    for old in (path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        old.unlink(missing_ok=True)
    with book(tmp_path, "one") as one:
        with pytest.raises(LedgerMismatch, match="from before"):
            guard(one, vault=vault)
        assert one.accounts().draws() == 0


def test_a_vault_counts_the_draws_of_its_ledger_whoever_tells_it_when(tmp_path: Path) -> None:
    with Vault.open(tmp_path / "vault", KEY) as vault:
        assert not vault.check("one", "clinic", lambda: 0)
        vault.bind("one", "clinic", 0)
        vault.bind("one", "clinic", 5)
        vault.bind("one", "clinic", 4)  # told late by another process
        assert vault.check("one", "clinic", lambda: 5) and vault.check("one", "clinic", lambda: 9)
        with pytest.raises(LedgerMismatch, match="from before"):
            vault.check("one", "clinic", lambda: 4)

        def meanwhile() -> int:
            vault.bind("one", "clinic", 6)
            return 6

        assert vault.check("one", "clinic", meanwhile)


def test_two_guards_on_one_ledger_and_vault_draw_by_turns(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    with book(tmp_path, "one") as one, guard(one, vault=vault) as first, guard(one, vault=vault) as second:
        kept = list(first.ingest([note(TEXT.replace("47", str(age)), age) for age in range(20, 26)]))
        for i, each in enumerate(kept):
            assert (first, second)[i % 2].sanitise("x", [each]).receipt.ledger
        assert first.sanitise("x", kept).text == second.sanitise("x", kept).text
