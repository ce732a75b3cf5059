"""Models and extractors that do on workers what real ones may. Workers import this file, so it imports little."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from stillroom.distil.keywords import FastExtractor
from stillroom.documents import Unit
from stillroom.lexicon import word_list
from stillroom.lm.base import Prompt, Scores
from stillroom.testing.toylm import ToyLM


class Dying:
    """An extractor that kills its process with the first block that it is given."""

    name = "fast"

    def __init__(self, marker: Path) -> None:
        self.inner = FastExtractor(word_list(), 4)
        self.marker = marker

    def extract(self, unit: Unit) -> tuple[str, ...]:
        return self.extract_many([unit])[0]

    def extract_many(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        if not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner.extract_many(units)


class Wrong:
    """An extractor that prints what it is given and fails with it in its message."""

    name = "fast"

    def extract(self, unit: Unit) -> tuple[str, ...]:
        return self.extract_many([unit])[0]

    def extract_many(self, units: Sequence[Unit]) -> list[tuple[str, ...]]:
        print(units, flush=True)
        raise RuntimeError(f"cannot read {units}")


class Breaking(ToyLM):
    """Prints a text and fails with it in its message, as libraries do."""

    def row_scores(self, prompt: Prompt, document: Any, said: Any) -> Scores:
        os.write(2, prompt.body.encode())
        print(prompt.body, flush=True)
        raise RuntimeError(f"cannot score {prompt.body}")


class Turning(ToyLM):
    """Is another model when it is loaded again."""

    def __init__(self, marker: Path) -> None:
        super().__init__(letters=f"{ascii_lowercase},")
        self.marker = marker

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.marker.exists():
            self.name = "other"
        self.marker.touch()


def fast(folder: Path) -> Any:
    """Return a model of transformers that does not try its rows for half a minute."""
    from stillroom.lm.huggingface import HuggingFaceLM

    class Trusted(HuggingFaceLM):
        def rows_independent(self, body_tokens: int = 128) -> bool:
            return True

        def __reduce__(self) -> tuple[Any, ...]:
            return fast, (folder,)

    return Trusted(folder, name="smollm2")
