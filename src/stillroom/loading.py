"""Models by name: the one place that joins the registry with the language models and embedders it serves.

All of it is imported when it is asked for: the base install has neither torch nor transformers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stillroom.errors import BadOption

if TYPE_CHECKING:
    from stillroom.embed.base import Embedder
    from stillroom.lm.base import LanguageModel

LM, EMBEDDER = "smollm2", "minilm"
"""What is used where nothing is named."""


def load_lm(name: str, cache: Path | None = None) -> LanguageModel:
    """Return a language model by name.

    Args:
        name: a packaged model, a local folder, a .gguf file, a hub id, or an OpenAI-compatible address with the
            model's name there behind a hash sign: https://example.org/v1#model.
        cache: folder of packaged models; STILLROOM_CACHE or the user's cache folder when None.

    Raises: BadOption for an address without a model; ModelUnknown, ModelCorrupt, ModelUnfit, MissingExtra.
    """
    if "://" in name:
        address, _, model = name.partition("#")
        if not model:
            raise BadOption("--lm", repr(name), "an address with the model's name, like https://example.org/v1#model")
        from stillroom.lm.hosted import HostedLM, key_from

        return HostedLM(address, model, key_from(os.environ))
    from stillroom.lm.huggingface import HuggingFaceLM
    from stillroom.models import default_cache, digest, resolve

    where = resolve(name, cache or default_cache(os.environ), kind="lm")
    lm = HuggingFaceLM(where, name=name)
    lm.digest = digest(where)
    return lm


def load_embedder(name: str, cache: Path | None = None) -> Embedder:
    """Return an embedder by name: a packaged model, a local folder, or a hub id. Raises as `load_lm` does."""
    from stillroom.embed.sentence import SentenceEmbedder
    from stillroom.models import default_cache, digest, resolve

    where = resolve(name, cache or default_cache(os.environ), kind="embedder")
    embedder = SentenceEmbedder(where, name)
    embedder.digest = digest(where)
    return embedder
