"""GGUF files made into model folders that transformers loads at once."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path

from stillroom.errors import FileFormat, MissingExtra
from stillroom.threads import wait_patiently


def convert(file: Path, folder: Path) -> None:
    """Write the model and tokeniser of a GGUF file into `folder` as safetensors in float32.

    Float32, not float16: 42 % of SmolLM2's weights, as its 4-bit blocks state them, fall between two float16
    numbers, so half the disk would cost exactness. It also loads in .1 s instead of 1.8 s: nothing is widened.

    Raises MissingExtra without torch, transformers or gguf; FileFormat when the file is no readable GGUF model.
    """
    wait_patiently()
    try:
        import gguf
        import torch
        import transformers
    except ImportError as missing:
        raise MissingExtra("converting a model", "local") from missing

    with file.open("rb") as opened:
        magic = opened.read(4)
    if magic != b"GGUF":
        raise FileFormat(file, "it does not begin as a GGUF file does")
    with _quiet():
        try:
            place, name = str(file.parent), file.name
            tokenizer = transformers.AutoTokenizer.from_pretrained(place, gguf_file=name)
            model = transformers.AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32)
        except MemoryError:
            raise
        except Exception as wrong:  # the tokenizers library raises no narrower class for a broken vocabulary
            raise FileFormat(file, f"transformers cannot load it ({type(wrong).__name__})") from wrong
        if not tokenizer.chat_template:
            field = gguf.GGUFReader(file).fields.get("tokenizer.chat_template")
            tokenizer.chat_template = field.contents() if field is not None else None
        # The weights are whole numbers no longer; the mark that they are quantised would forbid saving them.
        model.is_quantized = False
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(str(folder))
        tokenizer.save_pretrained(str(folder))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep progress bars and advice of the libraries off the screen; errors still rise."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
