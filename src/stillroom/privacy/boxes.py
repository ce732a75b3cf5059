"""Sealed boxes in a database: what is encrypted, and the ring of keys that opens it. Nothing here can open one."""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Connection

from stillroom.errors import GuardKeyRotated
from stillroom.privacy.database import Database


class Boxes:
    """The boxes of a database, each under a key that tells nothing, such as an HMAC.

    Whoever writes says which ring the box was sealed with: after a rotation by another process it would be a box that
    nobody can open.
    """

    def __init__(self, database: Database, prefix: str = "") -> None:
        self._database = database
        self._ring, self._boxes = f"{prefix}ring", f"{prefix}boxes"
        with database.speaking() as connection:
            # What is taken away or sealed anew leaves no copy in free pages of the file.
            connection.execute("PRAGMA secure_delete = ON")

    def ring(self, first: Callable[[], str]) -> str:
        """Return the ring; where there is none yet, `first` makes it, once for all processes."""
        held = self._read()
        if held is not None:
            return held
        with self._database.transaction() as connection:
            connection.execute(f"INSERT INTO {self._ring} VALUES (1, ?) ON CONFLICT DO NOTHING", (first(),))
        found = self._read()
        assert found is not None
        return found

    def get(self, ring: str, key: bytes) -> bytes | None:
        """Return the box under a key; None where there is none. Raises GuardKeyRotated when the ring is another."""
        # One statement, so that no rotation can come between ring and box.
        select = f"SELECT body, box FROM {self._ring} LEFT JOIN {self._boxes} ON key = ?"
        with self._database.speaking() as connection:
            body, box = connection.execute(select, (key,)).fetchone() or (None, None)
        if body != ring:
            raise GuardKeyRotated(self._database.path)
        return None if box is None else bytes(box)

    def all(self, ring: str) -> list[tuple[bytes, bytes]]:
        """Return every key with its box, by key. Raises GuardKeyRotated when the ring is another."""
        with self._database.transaction() as connection:
            self.check(connection, ring)
            rows = connection.execute(f"SELECT key, box FROM {self._boxes} ORDER BY key").fetchall()
        return [(bytes(key), bytes(box)) for key, box in rows]

    def put(self, connection: Connection, ring: str, key: bytes, box: bytes) -> None:
        """Keep a box inside the caller's transaction, in place of the one that may be there."""
        self.check(connection, ring)
        connection.execute(f"INSERT OR REPLACE INTO {self._boxes} VALUES (?, ?)", (key, box))

    def remove(self, connection: Connection, key: bytes) -> None:
        """Take a box away inside the caller's transaction."""
        connection.execute(f"DELETE FROM {self._boxes} WHERE key = ?", (key,))

    def check(self, connection: Connection, ring: str) -> None:
        """Raise GuardKeyRotated when the ring is another one by now."""
        if connection.execute(f"SELECT body FROM {self._ring}").fetchone() != (ring,):
            raise GuardKeyRotated(self._database.path)

    def rewrap(self, ring: str, new: str, again: Callable[[bytes, bytes], bytes]) -> None:
        """Put `new` in place of `ring` and `again(key, box)` in place of every box: all, or nothing.

        Raises GuardKeyRotated when the ring is another one by now.
        """
        with self._database.transaction() as connection:
            self.check(connection, ring)
            last = b""
            while row := connection.execute(
                f"SELECT key, box FROM {self._boxes} WHERE key > ? ORDER BY key LIMIT 1", (last,)
            ).fetchone():
                last = bytes(row[0])
                connection.execute(
                    f"UPDATE {self._boxes} SET box = ? WHERE key = ?", (again(last, bytes(row[1])), last)
                )
            connection.execute(f"UPDATE {self._ring} SET body = ?", (new,))
        with self._database.speaking() as connection:
            # Moves what was written into the file and empties the -wal beside it, as far as no other process reads.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _read(self) -> str | None:
        with self._database.speaking() as connection:
            row = connection.execute(f"SELECT body FROM {self._ring}").fetchone()
        return None if row is None else str(row[0])
