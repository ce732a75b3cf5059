"""Keys of the guard: the user's key, and the ring of keys that it opens.

A ring holds two random keys: one seals boxes (AES-256-GCM), one makes the digests (HMAC-SHA256) under which they are
found. Both lie in the file encrypted with the user's key. A rotation takes another user's key and another sealing key
and seals every box anew; the digests stay, as a draw must be found again for ever.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from stillroom.errors import (
    FileMissing,
    GuardDamaged,
    GuardKeyMissing,
    GuardKeyUnfit,
    GuardKeyWrong,
    MissingExtra,
)
from stillroom.privacy.boxes import Boxes

VARIABLE, FILE_VARIABLE = "STILLROOM_GUARD_KEY", "STILLROOM_GUARD_KEY_FILE"
_BYTES, _NONCE = 32, 12

Entropy = Callable[[int], bytes]


@dataclass(frozen=True)
class Key:
    """The user's key, 32 bytes; never shown. `name` is a digest by which it can be told from others."""

    secret: bytes = field(repr=False)

    @classmethod
    def new(cls, entropy: Entropy = secrets.token_bytes) -> Self:
        """Return a fresh key."""
        return cls(entropy(_BYTES))

    @classmethod
    def load(cls, file: Path | str | None = None, environ: Mapping[str, str] = os.environ) -> Self:
        """Return the key in the file; without one, that of $STILLROOM_GUARD_KEY or the file $STILLROOM_GUARD_KEY_FILE.

        It is written as 64 hexadecimal digits. Raises GuardKeyMissing, GuardKeyUnfit, FileMissing.
        """
        if file is None and environ.get(VARIABLE):
            return cls._read(environ[VARIABLE], VARIABLE)
        path = file if file is not None else environ.get(FILE_VARIABLE)
        if not path:
            raise GuardKeyMissing()
        try:
            text = Path(path).read_text(encoding="ascii", errors="replace")
        except OSError as missing:
            raise FileMissing(path) from missing
        return cls._read(text, repr(str(path)))

    @classmethod
    def _read(cls, text: str, where: str) -> Self:
        digits = text.strip()
        try:
            secret = bytes.fromhex(digits) if len(digits) == 2 * _BYTES else b""
        except ValueError:
            secret = b""
        if len(secret) != _BYTES:
            raise GuardKeyUnfit(where, len(digits))
        return cls(secret)

    @property
    def name(self) -> str:
        """Eight digits that tell keys apart and open nothing."""
        return hmac.digest(self.secret, b"stillroom name of key", "sha256").hex()[:8]


class Ring:
    """The opened keys of a file; made by `Ring.of`.

    Attributes:
        body: the ring as it lies in the file.
    """

    def __init__(self, path: Path, body: str, sealing: bytes, finding: bytes) -> None:
        self.path, self.body = path, body
        self._aead, self._finding = _aead(sealing), finding

    @classmethod
    def of(cls, path: Path, boxes: Boxes, key: Key, entropy: Entropy = secrets.token_bytes) -> Self:
        """Return the ring of a file, opened with the user's key; where there is none, a new one is put there.

        Raises: GuardKeyWrong, GuardDamaged, MissingExtra. The file stays as it is.
        """
        body = boxes.ring(lambda: _wrapped(key, entropy(_BYTES), entropy(_BYTES), entropy))
        return cls._opened(path, body, key)

    def seal(self, plain: bytes, place: bytes) -> bytes:
        """Return a box that opens at this place alone."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._aead.encrypt(nonce, plain, place)  # type: ignore[no-any-return]

    def open(self, box: bytes, place: bytes) -> bytes:
        """Return what was sealed at this place; raises GuardDamaged where nothing was, or it was changed."""
        return _unseal(self._aead, box, place, GuardDamaged(self.path))

    def digest(self, *parts: str) -> bytes:
        """Return the keyed digest of the parts (32 bytes), which tells nothing without the key."""
        state = hmac.new(self._finding, digestmod="sha256")
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            state.update(len(data).to_bytes(8, "big") + data)
        return state.digest()

    def rotate(self, boxes: Boxes, new: Key, entropy: Entropy = secrets.token_bytes) -> Ring:
        """Seal every box anew, so that the new key opens the file and the old one nothing in it; return the ring.

        All or nothing: after a crash the file opens with the one key or with the other. Copies that were made before
        still open with the old key.
        """
        sealing = entropy(_BYTES)
        ring = Ring(self.path, _wrapped(new, sealing, self._finding, entropy), sealing, self._finding)
        boxes.rewrap(self.body, ring.body, lambda place, box: ring.seal(self.open(box, place), place))
        return ring

    @classmethod
    def _opened(cls, path: Path, body: str, key: Key) -> Self:
        try:
            facts: dict[str, Any] = json.loads(body)
            name, wrapped = str(facts["key"]), bytes.fromhex(facts["ring"])
        except (ValueError, KeyError, TypeError) as wrong:
            raise GuardDamaged(path) from wrong
        if name != key.name:
            raise GuardKeyWrong(path, name, key.name)
        both = _unseal(_aead(key.secret), wrapped, name.encode(), GuardDamaged(path))
        return cls(path, body, both[:_BYTES], both[_BYTES:])


def _wrapped(key: Key, sealing: bytes, finding: bytes, entropy: Entropy) -> str:
    nonce = entropy(_NONCE)
    ring = nonce + _aead(key.secret).encrypt(nonce, sealing + finding, key.name.encode())
    return json.dumps({"key": key.name, "ring": ring.hex()})


def _unseal(aead: Any, box: bytes, place: bytes, damaged: Exception) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        plain: bytes = aead.decrypt(box[:_NONCE], box[_NONCE:], place)
    except (InvalidTag, ValueError) as wrong:
        raise damaged from wrong
    return plain


def _aead(secret: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as missing:
        raise MissingExtra("the guard's vault", "guard") from missing
    return AESGCM(secret)
