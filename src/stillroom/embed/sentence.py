"""Embeddings by sentence-transformers models."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from stillroom.embed.base import Embedder, Vectors, clip
from stillroom.errors import FileFormat, MissingExtra, ModelUnknown
from stillroom.hub import only_here
from stillroom.threads import wait_patiently

_CHARACTERS_PER_TOKEN = 64
"""Texts are cut at this many characters for each token that the model reads at most, so that a text of megabytes
costs no more than a page."""


class SentenceEmbedder(Embedder):
    """Embeds with a sentence-transformers model, one text at a time.

    A batch would be padded to its longest text, and the bits of every vector in it would follow from that text
    (rule 17): alone, a vector depends on its own text only. One text is too little work for two threads to share,
    which wait for each other when the machine is busy (30 times slower), so each is embedded by one thread.

    Args:
        folder: of the model, or its id where a hub is reachable.
        name: what a certificate calls it.
        device: of torch.

    Raises: MissingExtra without sentence-transformers; FileFormat when the folder holds no such model;
    ModelUnknown when a hub id cannot be loaded.
    """

    def __init__(self, folder: Path | str, name: str, device: str = "cpu") -> None:
        wait_patiently()
        with _quiet():
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError as missing:
                raise MissingExtra("embedding", "local") from missing
            try:
                self._model = SentenceTransformer(str(folder), device=device, local_files_only=only_here(folder))
            except (OSError, ValueError, KeyError, RuntimeError) as wrong:
                if Path(folder).is_dir():
                    reason = f"sentence-transformers cannot load it ({type(wrong).__name__})"
                    raise FileFormat(folder, reason) from wrong
                raise ModelUnknown(name, ["minilm"]) from wrong
        self._model.eval()
        self.name = name
        self._most_characters = _CHARACTERS_PER_TOKEN * int(self._model.max_seq_length or 512)
        self.dimensions = len(self._vector("a"))

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions))
        return clip(np.stack([self._vector(text) for text in texts]))

    def _vector(self, text: str) -> Vectors:
        # Lone surrogates would stop the tokeniser, and with it the run (rule 8).
        readable = text[: self._most_characters].encode("utf-8", "replace").decode("utf-8")
        with _quiet(), _one_thread():
            vectors = self._model.encode([readable], batch_size=1, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors[0], dtype=np.float64)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep progress bars and advice of the libraries off the screen; errors still rise."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
