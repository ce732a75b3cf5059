"""What the tests of whole runs share: a made-up collection, a plan that lets a handful of units through, and books."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stillroom.distil import run
from stillroom.distil.plan import Plan
from stillroom.distil.plan import plan as make
from stillroom.distil.presets import DEFAULT
from stillroom.documents import Collection
from stillroom.embed.hashing import HashEmbedder
from stillroom.privacy.journal import Journal
from stillroom.privacy.ledger import Ledger
from stillroom.privacy.noise import Noise
from stillroom.release.folder import Release
from stillroom.testing.noise import NoNoise
from stillroom.testing.toylm import NaNLM
from tests.privacy.mechanics import LISTS, collection

EPSILON, DELTA = 5000.0, 1e-6
PRESET = replace(
    DEFAULT, name="toy-1", keywords=4, released=12, topics=2, cokeywords=3, published=4, top_k=5, levels=100,
    document_tokens=64, smallest=3.0, part=6.0, chunk_words=40,
)  # fmt: skip


def plan(**changes: Any) -> Plan:
    """Return a plan of all default steps with so large an ε that eight units are heard."""
    values: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "preset": PRESET, "form": LISTS, "unit": "unit"}
    return make(**{**values, **changes})


def lm() -> NaNLM:
    return NaNLM(letters=f"{ascii_lowercase},")


@dataclass(frozen=True)
class Desk:
    """A folder with a ledger and the place of one release."""

    folder: Path
    epsilon: float = 2 * EPSILON

    @property
    def book(self) -> Path:
        return self.folder / "clinic.ledger"

    @property
    def out(self) -> Path:
        return self.folder / "notes.release"

    @property
    def run_folder(self) -> Path:
        return run.run_folder(self.out)

    def ledger(self, **how: Any) -> Ledger:
        return Ledger.open(self.book, epsilon=self.epsilon, delta=DELTA, population="clinic", **how)

    def release(self, documents: Collection | Path | None = None, **how: Any) -> Release:
        """Release a collection as a first run or as the same command again."""
        given = {"plan": plan(), "lm": lm(), "embedder": HashEmbedder(16), "out": self.out, **how}
        source = collection() if documents is None else documents
        if "ledger" in given:
            return run.release(source, **given)
        with self.ledger() as ledger:
            return run.release(source, ledger=ledger, **given)

    def entries(self) -> list[tuple[str, str | None]]:
        """Return kind and run of every entry of the ledger."""
        with self.ledger() as ledger:
            return [(entry.kind, entry.run) for entry in ledger.history()]

    def spent_once(self) -> None:
        """Raise AssertionError unless one run was reserved and completed, and what is spent is what the plan costs."""
        kinds = [kind for kind, _ in self.entries()]
        assert kinds == ["open", "reserve", "complete"], kinds
        with self.ledger() as ledger:
            assert ledger.state().rho == pytest.approx(plan().rho)

    def nothing_happened(self) -> None:
        """Raise AssertionError unless nothing was spent and nothing lies about."""
        assert [kind for kind, _ in self.entries()] == ["open"]
        left = {path.name for path in self.folder.iterdir()} - {"clinic.ledger", "notes.jsonl"}
        assert not [name for name in left if "release" in name], left


def draws(run_folder: Path) -> dict[str, str]:
    """Return the committed draws of a run that nobody holds."""
    journal = run_folder / "journal.sqlite"
    if not journal.exists():
        return {}
    connection = sqlite3.connect(journal)
    try:
        return dict(connection.execute("SELECT key, value FROM draws"))
    except sqlite3.OperationalError:  # killed before there was a table
        return {}
    finally:
        connection.close()


class Logged:
    """A noise that notes each call in a file before and after, and does something first at one of them."""

    def __init__(self, inner: Noise, log: Path, at: int | None = None, do: Callable[[], None] | None = None) -> None:
        self.inner, self.log, self.at, self.do, self.calls = inner, log, at, do, 0

    def __getattr__(self, name: str) -> Any:
        draw = getattr(self.inner, name)

        def called(*values: Any, **claim: Any) -> Any:
            self.calls += 1
            if self.calls == self.at and self.do is not None:
                self.do()
            output = draw(*values, **claim)
            note(self.log, name)
            return output

        return called


def note(log: Path, *what: Any) -> None:
    """Add a line to a file that outlives the process."""
    with log.open("a") as file:
        file.write(json.dumps(what) + "\n")


def noted(log: Path) -> list[list[Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def watched(log: Path, die_after: int | None = None) -> type[Journal]:
    """Return a journal that notes every value that it lets out, and kills its process after so many."""

    class Watched(Journal):
        given = 0

        def draw(self, key: str, make: Callable[[], Any]) -> Any:
            value = super().draw(key, make)
            note(log, key, value)
            type(self).given += 1
            if self.given == die_after:
                die()
            return value

    return Watched


def in_child(do: Callable[[], Any]) -> int | None:
    """Run in a forked process; return the signal that killed it. AssertionError when it raised."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            do()
            code = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    assert os.WEXITSTATUS(status) == 0, "the process failed"
    return None


def fixed(start: int = 0) -> Mapping[str, Any]:
    """Return a clock that stands still and bytes that anybody knows, for `Ledger.open`."""
    return {"clock": lambda: datetime(2030, 1, 1, tzinfo=UTC), "entropy": lambda n: bytes([7 + start]) * n}


class Rough:
    """Noise by the system's own chance: small on counts, all on tokens. What is drawn twice is another value."""

    def __init__(self) -> None:
        self._chance = np.random.default_rng(int.from_bytes(os.urandom(8)))

    def gaussian(self, values: NDArray[np.float64], *, sensitivity: float, sigma: float) -> NDArray[np.float64]:
        return values + self._chance.uniform(-0.05, 0.05, values.shape)

    def histogram(
        self, listed: NDArray[np.float64], unlisted: Mapping[str, float], *, keys: int, sigma: float,
        threshold: float | None,
    ) -> tuple[NDArray[np.float64], dict[str, float]]:  # fmt: skip
        counts, above = NoNoise().histogram(listed, unlisted, keys=keys, sigma=sigma, threshold=threshold)
        return self.gaussian(counts, sensitivity=1.0, sigma=sigma), above

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        return int(self._chance.integers(len(scores)))
