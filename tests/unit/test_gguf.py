"""A GGUF file becomes a model folder once, whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from stillroom import models
from stillroom.errors import DiskFull, FileFormat, MissingExtra
from stillroom.models import gguf
from tests.unit.test_models import disk_of_16_kb, empty_cache, left_behind, quiet  # noqa: F401 - fixtures


def test_converting_without_the_extra_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"converting a model needs .* pip install 'stillroom\[local\]'"):
        gguf.convert(tmp_path / "any.gguf", tmp_path)


@pytest.fixture(scope="module")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole llama of one layer with random weights and a byte vocabulary."""
    writer_of = pytest.importorskip("gguf").GGUFWriter
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    letters = [chr(c) for c in range(33, 127)] + ["Ġ", "Ċ", "ab"]
    tokens = [*letters, "<|im_start|>", "<|im_end|>"]
    writer = writer_of(str(path), "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(16)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(letters) + [3, 3])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(len(tokens) - 2)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_chat_template("{{ messages[0]['content'] }}<|im_end|>")
    rng = np.random.default_rng(1)
    shapes = {"token_embd": (len(tokens), 32), "output_norm": (32,), "blk.0.attn_norm": (32,), "blk.0.ffn_norm": (32,)}
    shapes |= {f"blk.0.attn_{part}": (32, 32) for part in ("q", "k", "v", "output")}
    shapes |= {"blk.0.ffn_gate": (64, 32), "blk.0.ffn_up": (64, 32), "blk.0.ffn_down": (32, 64)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.normal(0, 0.1, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_is_converted_once_by_its_bytes(
    tiny_gguf: Path, cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    transformers = pytest.importorskip("transformers")
    said: list[str] = []
    folder = models.resolve(tiny_gguf, cache, say=said.append)
    assert isinstance(folder, Path)
    assert said == ["tiny.gguf: converting once …"]
    assert capfd.readouterr().err == ""
    models.verify(folder, full=True)
    weights = safetensors.load_file(folder / "model.safetensors")
    assert {str(weight.dtype) for weight in weights.values()} == {"float32"}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert "im_end" in tokenizer.chat_template
    assert str(tiny_gguf.parent) not in "".join(path.read_text() for path in folder.glob("*.json"))

    renamed = tmp_path / "another name.gguf"
    renamed.write_bytes(tiny_gguf.read_bytes())
    assert models.resolve(renamed, cache, say=said.append) == folder
    assert len(said) == 1


def test_a_file_that_is_no_model_is_named_so_and_nothing_stays(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    for data, reason in ((b"hello", "does not begin"), (b"GGUF" + bytes(100), "cannot load")):
        (tmp_path / "bad.gguf").write_bytes(data)
        with pytest.raises(FileFormat, match=reason):
            models.resolve(tmp_path / "bad.gguf", cache, say=quiet)
    assert left_behind(cache) == []


@pytest.mark.model
def test_the_converted_smollm2_kept_its_tokens_and_its_chat_template() -> None:
    transformers = pytest.importorskip("transformers")
    here = {each.entry.name: each for each in models.known(models.default_cache(os.environ))}["smollm2"]
    if not here.there:
        pytest.skip("needs: stillroom models pull smollm2")
    tokenizer = transformers.AutoTokenizer.from_pretrained(here.folder)
    for text in ("Diagnosis: Zonkitis\n", "  two  spaces\n\n\tÉé 漢字 1234 don't"):
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text
    for special in ("<|im_start|>", "<|im_end|>"):
        assert len(tokenizer.encode(special, add_special_tokens=False)) == 1
    turn = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hello"}], tokenize=False, add_generation_prompt=True
    )
    assert turn.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")


def test_a_disk_that_fills_while_converting_is_named_too(tiny_gguf: Path, full_disk: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(DiskFull, match="free some"):
        models.resolve(tiny_gguf, full_disk, say=quiet)
    assert left_behind(full_disk) == []
