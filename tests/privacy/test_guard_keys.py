"""One key opens what was drawn; it can be exchanged, and nothing in the file tells without it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from stillroom.errors import GuardDamaged, GuardKeyMissing, GuardKeyRotated, GuardKeyWrong
from stillroom.guard.keys import Key
from stillroom.guard.mechanisms import make
from stillroom.guard.memo import Drawn, Memo, Wanted
from stillroom.privacy.ledger import Ledger
from tests.privacy.memos import AGE, ANNA, KEY, NAME, age, its_ledger, its_memo, its_path, one  # noqa: F401 - fixtures

pytest.importorskip("cryptography")


def test_a_wrong_key_is_told_and_nothing_is_lost(ledger: Ledger, memo: Memo) -> None:
    first = one(memo, age())
    with pytest.raises(GuardKeyWrong, match=f"opens with key {KEY.name}, but key {Key(bytes(32)).name}") as told:
        Memo(ledger, Key(bytes(32)), limit=4.0)
    assert KEY.secret.hex() not in str(told.value)
    assert one(Memo(ledger, KEY, limit=4.0), age()) == Drawn(first.text, 0.0, None, AGE.guarantee)


def test_without_a_key_nothing_is_opened_and_nothing_is_lost(
    ledger: Ledger, memo: Memo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = one(memo, age())
    for variable in ("STILLROOM_GUARD_KEY", "STILLROOM_GUARD_KEY_FILE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(GuardKeyMissing, match="stillroom guard key new"):
        Memo(ledger, None, limit=4.0)
    monkeypatch.setenv("STILLROOM_GUARD_KEY", KEY.secret.hex())
    assert one(Memo(ledger, None, limit=4.0), age()).text == first.text


def test_a_rotation_keeps_every_draw_and_retires_the_old_key(ledger: Ledger, memo: Memo, path: Path) -> None:
    asked = [age("1"), age("2"), Wanted("person", "Anna Nkemelu", ANNA, NAME)]
    texts = [drawn.text for drawn in memo.draw(asked, caller="ward")]
    raw = sqlite3.connect(path)
    old = [bytes(row[0]) for row in raw.execute("SELECT box FROM guard_boxes")]
    ring = raw.execute("SELECT body FROM guard_ring").fetchone()[0]
    raw.close()
    stale = Memo(ledger, KEY, limit=4.0)
    new = Key.new()
    memo.rotate(new)
    for opened in (memo, Memo(ledger, new, limit=4.0)):
        assert [(d.text, d.charged) for d in opened.draw(asked, caller="ward")] == [(text, 0.0) for text in texts]
    with pytest.raises(GuardKeyWrong):
        Memo(ledger, KEY, limit=4.0)
    for use in (lambda: one(stale, age("1")), lambda: one(stale, age("3")), lambda: stale.rotate(Key.new())):
        with pytest.raises(GuardKeyRotated):
            use()
    assert memo.spent(ANNA) == 2.0
    files = b"".join(file.read_bytes() for file in path.parent.glob("clinic.ledger*"))
    assert ring.encode() not in files and not any(box in files for box in old)


def test_a_rotation_that_is_killed_leaves_one_key_that_opens_everything(
    ledger: Ledger, memo: Memo, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [drawn.text for drawn in memo.draw([age("1"), age("2")], caller="ward")]
    sealed = type(memo._ring).seal
    calls = iter(range(9))

    def failing(self: object, plain: bytes, place: bytes) -> bytes:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return sealed(self, plain, place)  # type: ignore[arg-type]

    monkeypatch.setattr(type(memo._ring), "seal", failing)
    with pytest.raises(KeyboardInterrupt):
        memo.rotate(Key.new())
    again = Memo(ledger, KEY, limit=4.0).draw([age("1"), age("2")], caller="ward")
    assert [(drawn.text, drawn.charged) for drawn in again] == [(text, 0.0) for text in texts]


def test_boxes_that_were_exchanged_by_hand_do_not_open(ledger: Ledger, memo: Memo, path: Path) -> None:
    memo.draw([age("1"), age("2")], caller="ward")
    raw = sqlite3.connect(path)
    keys = [row[0] for row in raw.execute("SELECT key FROM guard_boxes")]
    boxes = [row[0] for row in raw.execute("SELECT box FROM guard_boxes")]
    raw.executemany("UPDATE guard_boxes SET box = ? WHERE key = ?", zip(boxes[::-1], keys, strict=True))
    raw.commit()
    raw.close()
    with pytest.raises(GuardDamaged):
        one(memo, age("1"))


def test_what_was_paid_for_cannot_be_deleted_or_made_cheaper(memo: Memo, path: Path) -> None:
    one(memo, age("1"))
    raw = sqlite3.connect(path)
    for statement in (
        "DELETE FROM guard_draws", "UPDATE guard_draws SET epsilon = 0", "DELETE FROM guard_boxes",
        "UPDATE guard_limit SET epsilon = 99", "DELETE FROM guard_limit",
    ):  # fmt: skip
        with pytest.raises(sqlite3.DatabaseError, match="never changed"):
            raw.execute(statement)
    raw.close()


def test_the_file_holds_no_value_no_answer_and_no_subject(ledger: Ledger, memo: Memo, path: Path) -> None:
    town = make("surrogate", "city")
    drawn = memo.draw(
        [Wanted("person", "Nkemelu", ANNA, NAME), Wanted("city", "Zwiesel", ANNA, town), age("47")], caller="ward"
    )
    ledger.close()
    files = b"".join(file.read_bytes() for file in path.parent.glob("clinic.ledger*"))
    for private in ("Nkemelu", "Zwiesel", "patient 77", drawn[0].text, drawn[1].text):
        assert private is not None and private.encode() not in files


def test_a_ledger_from_before_the_guard_is_brought_up(path: Path) -> None:
    from stillroom.privacy.database import Database
    from stillroom.privacy.migrations import LEDGER, Schema

    Database(path, Schema(LEDGER.name, LEDGER.application, LEDGER.migrations[:1]), wait=1.0).close()
    with Ledger.open(path, epsilon=1, delta=1e-6) as ledger:
        assert one(Memo(ledger, KEY, limit=4.0), age()).charged == 1.0
