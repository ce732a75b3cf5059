"""The installation: which units belong to the ledger of which population, on this machine.

A ledger cannot see what another one spends on the same people. The registry keeps keyed fingerprints of units, so
that sharing them is refused; the ids themselves are not kept. Ledgers of other machines cannot be seen.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from sqlite3 import Connection

from stillroom.errors import UnitsShared
from stillroom.privacy.database import Database
from stillroom.privacy.migrations import INSTALLATION

_BATCH = 500


def default_home() -> Path:
    """Return the folder of this installation: $STILLROOM_HOME, or ~/.local/share/stillroom."""
    given = os.environ.get("STILLROOM_HOME")
    return Path(given) if given else Path.home() / ".local" / "share" / "stillroom"


class Installation:
    """The registry of units in a private folder, made on first use.

    Args:
        home: folder of the installation (mode 0700 when made here).
        wait: seconds to wait for another process.
        entropy: gives random bytes for the key.
    """

    def __init__(
        self, home: Path, *, wait: float = 10.0, entropy: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._database = Database(home / "units.sqlite", INSTALLATION, wait=wait)
        with self._database.transaction() as connection:
            connection.execute("INSERT INTO secret VALUES (1, ?) ON CONFLICT DO NOTHING", (entropy(32),))
            self._key: bytes = connection.execute("SELECT key FROM secret").fetchone()[0]

    def register(self, ledger: str, population: str, units: Iterable[str]) -> None:
        """Note the units as this ledger's, all or none; raise UnitsShared when one is another ledger's.

        Streams: a million units take seconds and little memory. Noting a unit again changes nothing.

        Args:
            ledger: the id of the ledger, not its name: one that was deleted and opened anew is another.
            population: its public name, for the message.
            units: their ids, in any order, repeated or not.
        """
        with self._database.transaction() as connection:
            number = self._number(connection, ledger, population)
            for batch in _batches(map(self._fingerprint, units)):
                marks = ",".join("?" * len(batch))
                other = connection.execute(
                    f"SELECT ledger FROM units WHERE ledger <> ? AND fingerprint IN ({marks}) LIMIT 1",
                    (number, *batch),
                ).fetchone()
                if other is not None:
                    raise UnitsShared(population, self._population(connection, other[0]))
                connection.executemany(
                    "INSERT INTO units VALUES (?, ?) ON CONFLICT DO NOTHING", ((print_, number) for print_ in batch)
                )

    def close(self) -> None:
        self._database.close()

    def _fingerprint(self, unit: str) -> bytes:
        return hmac.digest(self._key, unit.encode("utf-8", "surrogatepass"), "sha256")

    @staticmethod
    def _number(connection: Connection, ledger: str, population: str) -> int:
        connection.execute(
            "INSERT INTO ledgers (id, population) VALUES (?, ?) ON CONFLICT DO NOTHING", (ledger, population)
        )
        number: int = connection.execute("SELECT number FROM ledgers WHERE id = ?", (ledger,)).fetchone()[0]
        return number

    @staticmethod
    def _population(connection: Connection, number: int) -> str:
        name: str = connection.execute("SELECT population FROM ledgers WHERE number = ?", (number,)).fetchone()[0]
        return name


def _batches(prints: Iterable[bytes]) -> Iterator[list[bytes]]:
    stream = iter(prints)
    while batch := list(islice(stream, _BATCH)):
        yield batch
