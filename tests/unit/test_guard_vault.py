"""The vault gives back what was put there to whoever has its key, and to nobody else; a wrong key loses nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stillroom.errors import (
    FileMissing,
    GuardDamaged,
    GuardKeyMissing,
    GuardKeyRotated,
    GuardKeyUnfit,
    GuardKeyWrong,
    LedgerUnusable,
)
from stillroom.guard.keys import Key
from stillroom.guard.vault import Vault
from stillroom.privacy.ledger import Ledger

pytest.importorskip("cryptography")

KEY = Key(bytes(range(32)))
VALUES = [{"category": "person", "index": 1, "value": "Anna Nkemelu", "surface": ["Anna", "ナ\ud800"]}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.vault"


@pytest.fixture
def vault(path: Path) -> Iterator[Vault]:
    with Vault.open(path, KEY) as opened:
        yield opened


def test_what_was_put_comes_back_also_after_opening_anew(vault: Vault, path: Path) -> None:
    vault.put({"note 1": VALUES, "note 2": {"age": "47"}})
    vault.put({"note 2": {}})
    for opened in (vault, Vault.open(path, KEY)):
        assert opened.get("note 1") == VALUES and opened.get("note 2") == {} and opened.get("note 3") is None
    vault.remove("note 1")
    assert vault.get("note 1") is None


def test_a_put_that_fails_keeps_nothing(vault: Vault) -> None:
    with pytest.raises(TypeError):
        vault.put({"note 1": VALUES, "note 2": {"age": object()}})
    assert vault.get("note 1") is None


def test_nothing_private_lies_in_the_file_and_only_the_owner_reads_it(vault: Vault, path: Path) -> None:
    vault.put({"note of patient 77": VALUES})
    files = list(path.parent.glob("clinic.vault*"))
    data = b"".join(file.read_bytes() for file in files)
    for private in (b"Nkemelu", b"patient 77", b"person", KEY.secret, KEY.secret.hex().encode()):
        assert private not in data
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    assert KEY.secret.hex() not in repr(KEY) and repr(KEY.secret) not in repr(KEY)


def test_the_key_of_another_vault_is_told_and_nothing_is_changed(vault: Vault, path: Path, tmp_path: Path) -> None:
    vault.put({"note 1": VALUES})
    vault.close()
    before, other = path.read_bytes(), Key.new()
    Vault.open(tmp_path / "other.vault", other).close()
    with pytest.raises(GuardKeyWrong, match=f"opens with key {KEY.name}, but key {other.name}.*nothing was changed"):
        Vault.open(path, other)
    assert path.read_bytes() == before
    with Vault.open(path, KEY) as again:
        assert again.get("note 1") == VALUES


def test_the_key_comes_from_the_file_or_the_environment(
    vault: Vault, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "guard.key"
    file.write_text(f"{KEY.secret.hex()}\n")
    assert Key.load(file, {}) == Key.load(None, {"STILLROOM_GUARD_KEY": KEY.secret.hex().upper()}) == KEY
    assert Key.load(None, {"STILLROOM_GUARD_KEY_FILE": str(file)}) == KEY
    assert Key.load(file, {"STILLROOM_GUARD_KEY": "0" * 64}) == KEY
    monkeypatch.setenv("STILLROOM_GUARD_KEY", KEY.secret.hex())
    vault.put({"note 1": VALUES})
    with Vault.open(path, None) as opened:
        assert opened.get("note 1") == VALUES


def test_a_missing_or_unfit_key_is_told_with_what_to_type(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("STILLROOM_GUARD_KEY", "STILLROOM_GUARD_KEY_FILE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(GuardKeyMissing, match="stillroom guard key new"):
        Vault.open(path, None)
    assert not path.exists()
    with pytest.raises(FileMissing):
        Key.load(tmp_path / "nowhere", {})
    for text in ("secretpassword", "g" * 64, "0" * 63, "0" * 65, " ".join("0" * 33)):
        with pytest.raises(GuardKeyUnfit, match="64 hexadecimal digits") as told:
            Key.load(None, {"STILLROOM_GUARD_KEY": text})
        assert text not in str(told.value)
    (tmp_path / "binary").write_bytes(bytes(range(128, 160)))
    with pytest.raises(GuardKeyUnfit):
        Key.load(tmp_path / "binary", {})


def test_a_rotation_keeps_the_values_and_retires_the_key(vault: Vault, path: Path) -> None:
    vault.put({f"note {i}": [*VALUES, i] for i in range(20)})
    stale, new = Vault.open(path, KEY), Key.new()
    vault.rotate(new)
    for opened in (vault, Vault.open(path, new)):
        assert all(opened.get(f"note {i}") == [*VALUES, i] for i in range(20))
    with pytest.raises(GuardKeyWrong):
        Vault.open(path, KEY)
    for use in (lambda: stale.get("note 1"), lambda: stale.put({"note 1": []}), lambda: stale.rotate(KEY)):
        with pytest.raises(GuardKeyRotated, match="open it again"):
            use()
    stale.close()


def test_a_box_that_was_changed_is_told(vault: Vault, path: Path) -> None:
    vault.put({"note 1": VALUES})
    raw = sqlite3.connect(path)
    box = raw.execute("SELECT box FROM boxes").fetchone()[0]
    raw.execute("UPDATE boxes SET box = ?", (box[:-1] + bytes([box[-1] ^ 1]),))
    raw.commit()
    with pytest.raises(GuardDamaged):
        vault.get("note 1")
    raw.execute("UPDATE ring SET body = '{}'")
    raw.commit()
    raw.close()
    with pytest.raises(GuardDamaged):
        Vault.open(path, KEY)


def test_a_vault_in_another_thread_than_its_own_is_told_so(vault: Vault) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(LedgerUnusable, match="open it in each thread"):
        pool.submit(vault.get, "note 1").result()


def test_a_ledger_is_no_vault(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "x.ledger", epsilon=1, delta=1e-6).close()
    with pytest.raises(LedgerUnusable, match="cannot be used as a vault"):
        Vault.open(tmp_path / "x.ledger", KEY)


def test_without_the_extra_the_line_to_type_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from stillroom.errors import MissingExtra

    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtra, match=r"pip install 'stillroom\[guard\]'"):
        Vault.open(path, KEY)
