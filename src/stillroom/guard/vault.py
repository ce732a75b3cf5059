"""The vault: the private values of templates, encrypted, each document's under a digest of its id."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stillroom.errors import LedgerMismatch
from stillroom.guard.keys import Key, Ring
from stillroom.privacy.boxes import Boxes
from stillroom.privacy.database import Database
from stillroom.privacy.migrations import VAULT

_BOUND = "ledger"
"""The place of the ledger that a vault belongs to; those of documents are digests of two parts."""


class Vault:
    """An open vault; made by `Vault.open`. Also a context manager.

    It needs no budget: nothing leaves it but by a mechanism or for an entitled caller.
    """

    def __init__(self, path: Path, database: Database, boxes: Boxes, ring: Ring) -> None:
        self.path = path
        self._database, self._boxes, self._ring = database, boxes, ring

    @classmethod
    def open(
        cls,
        path: Path | str,
        key: Key | None,
        *,
        wait: float = 10.0,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
    ) -> Self:
        """Return the vault in this file, made when missing.

        Args:
            path: one SQLite file, mode 0600.
            key: the user's: the one that the vault was made with, or that it was rotated to; `Key.load()` when None.
            wait: seconds to wait for another process.

        Raises:
            GuardKeyMissing, GuardKeyWrong, GuardDamaged: the file stays as it is. MissingExtra, LedgerLocked,
            LedgerUnusable (not a vault), DiskFull.
        """
        key = Key.load() if key is None else key
        path = Path(path)
        database = Database(path, VAULT, wait=wait)
        try:
            boxes = Boxes(database)
            return cls(path, database, boxes, Ring.of(path, boxes, key, entropy))
        except BaseException:
            database.close()
            raise

    def put(self, documents: Mapping[str, Any]) -> None:
        """Keep what JSON can say of each document's values, by document id, in place of what was there; all or none."""
        with self._database.transaction() as connection:
            for document, values in documents.items():
                place = self._ring.digest("document", document)
                box = self._ring.seal(json.dumps(values).encode("ascii"), place)
                self._boxes.put(connection, self._ring.body, place, box)

    def get(self, document: str) -> Any:
        """Return what was put for a document; None where nothing was. Raises GuardDamaged, GuardKeyRotated."""
        place = self._ring.digest("document", document)
        box = self._boxes.get(self._ring.body, place)
        return None if box is None else json.loads(self._ring.open(box, place))

    def __iter__(self) -> Iterator[Any]:
        """Yield what was put for each document. Raises GuardDamaged, GuardKeyRotated."""
        bound = self._ring.digest(_BOUND)
        for place, box in self._boxes.all(self._ring.body):
            if place != bound:
                yield json.loads(self._ring.open(box, place))

    def name(self, document: str) -> str:
        """Return a name for a document that tells nothing of its id: a keyed digest, 20 hexadecimal digits."""
        return self._ring.digest("name", document).hex()[:20]

    def check(self, ledger: str, population: str, draws: Callable[[], int] | None = None) -> bool:
        """Say whether the draws about these documents are in this ledger; False where none was ever made.

        Args:
            ledger: the hash of its first entry.
            population: its public name, for the message.
            draws: how many it has, asked after the vault: another process may draw meanwhile.

        Raises: LedgerMismatch for another ledger, or a copy of the right one from before its last draws: it would
        draw anew what was drawn before.
        """
        bound = self._bound()
        if not bound:
            return False
        held, name, *seen = bound
        if held != ledger:
            asked = f"of {population!r} ({ledger[:8]})"
            raise LedgerMismatch(self.path, "its draws in the ledger", f"of {name!r} ({held[:8]})", asked)
        if draws is not None and draws() < max(seen, default=0):
            raise LedgerMismatch(self.path, "draws", f"that are in the ledger of {name!r}", "a copy of it from before")
        return True

    def bind(self, ledger: str, population: str, draws: int = 0) -> None:
        """Have the vault belong to this ledger, with at least so many draws, from now on. Raises LedgerMismatch.

        Before the first draw, and after every one; the number never falls, as two processes may tell it late.
        """
        with self._database.transaction() as connection:
            place = self._ring.digest(_BOUND)
            self.check(ledger, population)
            draws = max([draws, *self._bound()[2:]])
            box = self._ring.seal(json.dumps([ledger, population, draws]).encode("ascii"), place)
            self._boxes.put(connection, self._ring.body, place, box)

    def _bound(self) -> list[Any]:
        """Return the ledger that the vault belongs to, its population and, in newer vaults, its draws; or nothing."""
        place = self._ring.digest(_BOUND)
        box = self._boxes.get(self._ring.body, place)
        return [] if box is None else list(json.loads(self._ring.open(box, place)))

    def remove(self, document: str) -> None:
        """Forget the values of a document. Draws that were made of them stay in the ledger."""
        with self._database.transaction() as connection:
            self._boxes.remove(connection, self._ring.digest("document", document))

    def rotate(self, new: Key) -> None:
        """Seal everything anew for another key, all or nothing; see `Ring.rotate`."""
        self._ring = self._ring.rotate(self._boxes, new)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
