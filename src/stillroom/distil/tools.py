"""What the steps of distilling work with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from stillroom.distil.keywords import Extractor
from stillroom.distil.synthesise import Draws
from stillroom.documents import Document, Unit
from stillroom.embed.base import Embedder
from stillroom.lm.base import LanguageModel
from stillroom.privacy.noise import Noise

BATCH = 256


class Units(Protocol):
    """A collection by units, in an order that no unit's neighbour can change: `readers.spool.Spool`."""

    def units(self) -> Iterator[Unit]: ...
    def documents_of(self, unit_id: str) -> tuple[Document, ...]: ...


class Progress(Protocol):
    """Told public totals only (rule 10)."""

    def stage(self, name: str, total: int | None) -> None: ...
    def advance(self, n: int = 1) -> None: ...


class Silent:
    """Progress that says nothing."""

    def stage(self, name: str, total: int | None) -> None:
        return None

    def advance(self, n: int = 1) -> None:
        return None


@dataclass(frozen=True)
class Tools:
    """What the steps work with. The embedder is needed for the cut alone; `batch` units are extracted at a time."""

    lm: LanguageModel
    extractor: Extractor
    noise: Noise
    journal: Draws
    embedder: Embedder | None = None
    progress: Progress = field(default_factory=Silent)
    batch: int = BATCH
