"""Whether CUDA counts as the CPU does, and how fast: to be run where a GPU is at hand; under eight minutes.

    python benchmarks/cuda.py --out benchmarks/results/cuda.json

Three topics of made-up notes are read and told the same tokens on both devices; their integer votes are compared. A
type is used only where the row test passes on the device, bit for bit. Then tokens a second, for the small packaged
model and for a random-weight model of 1.5 billion parameters. `--device cpu --layers 1 --notes 4` tries the script
itself without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stillroom.distil.forms import form_of
from stillroom.distil.plan import plan
from stillroom.distil.prompts import document_prompt
from stillroom.distil.votes import one_sided
from stillroom.lm.base import Prompt
from stillroom.lm.huggingface import HuggingFaceLM
from stillroom.models import default_cache, resolve
from stillroom.testing import patterns

SAID = " Quorvenitis and rest\nTreatment: Lumadrex Tablets"
TYPES = ("float32", "bfloat16", "float16")
SMALL = "smollm2"


def topics(count: int, each: int) -> list[list[Prompt]]:
    """Return the prompts of some topics."""
    record = plan(epsilon=10, delta=1e-6, form=form_of("clinic")).record
    rows = patterns.notes(patterns.FACTS, each, 1)
    names = list(patterns.FACTS)[:count]
    return [[document_prompt(record, row["note"]) for row in rows if row["disease"] == name] for name in names]


def votes_of(lm: HuggingFaceLM, told: Sequence[Sequence[Prompt]]) -> list[Any]:
    """Return the votes of every row of every topic after every token."""
    seen = []
    for prompts in told:
        session = lm.open(lm.read(prompts, 128))
        for token in lm.encode(SAID):
            seen.append(one_sided(session.scores(), 1000))
            session.push([token])
    return seen


def speed(lm: HuggingFaceLM, told: Sequence[Sequence[Prompt]]) -> dict[str, float]:
    """Return tokens read and row-tokens stepped a second; the first pass warms up."""
    prompts = [prompt for topic in told for prompt in topic]
    lm.read(prompts[:8], 128)
    start = time.monotonic()
    readings = lm.read(prompts, 128)
    _wait(lm)
    read = sum(len(row.tokens) for row in readings.rows) / (time.monotonic() - start)
    pool = lm.pool(readings)
    session = pool.open()
    session.push(lm.encode(SAID)[:1])
    session.scores([0, 1])
    start = time.monotonic()
    tokens = lm.encode(SAID)
    for token in tokens:
        session.push([token])
        session.scores([0, 1])
    _wait(lm)
    return {
        "read_tokens_per_second": round(read, 1),
        "row_tokens_per_second": round(len(prompts) * len(tokens) / (time.monotonic() - start), 1),
        "rows": len(prompts),
    }


def random_model(folder: Path, tokenizer: Path | str, layers: int, device: str) -> tuple[Path, float]:
    """Write a Llama of random weights, 1.5 billion with 28 layers, with a tokenizer that is there; return its size."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    known = AutoTokenizer.from_pretrained(str(tokenizer))
    config = LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=layers, num_attention_heads=16,
        num_key_value_heads=4, vocab_size=len(known), eos_token_id=known.eos_token_id, tie_word_embeddings=True,
    )  # fmt: skip
    with torch.device(device):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    known.save_pretrained(folder)
    return folder, sum(p.numel() for p in model.parameters()) / 1e9


def main() -> None:
    """Run all of it and write one record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--notes", type=int, default=64, help="a topic")
    parser.add_argument("--types", nargs="*", default=list(TYPES))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cuda.json"))
    options = parser.parse_args()
    small = resolve(SMALL, default_cache(os.environ), kind="lm")
    told = topics(3, options.notes)
    truth = votes_of(HuggingFaceLM(small, name=SMALL), told)
    result: dict[str, Any] = {"device": options.device, "types": {}}
    for dtype in options.types:
        lm = HuggingFaceLM(small, name=SMALL, device=options.device, dtype=dtype)
        independent = lm.rows_independent(128)
        record: dict[str, Any] = {"rows_independent": independent}
        if independent:
            gaps = [np.abs(a - b) for a, b in zip(truth, votes_of(lm, told), strict=True)]
            record |= {
                "votes_that_differ_from_the_cpu": round(float(np.mean([(g > 0).mean() for g in gaps])), 6),
                "largest_difference_of_1000": int(max(g.max() for g in gaps)),
                **speed(lm, told),
            }
        result["types"][dtype] = record
        print(dtype, record, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place, size = random_model(Path(folder), small, options.layers, options.device)
        for dtype in options.types:
            lm = HuggingFaceLM(place, name="random", device=options.device, dtype=dtype)
            independent = lm.rows_independent(128)
            record = {"billions": round(size, 2), "rows_independent": independent}
            result.setdefault("random", {})[dtype] = record | (speed(lm, told) if independent else {})
            print("random", dtype, result["random"][dtype], flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _wait(lm: HuggingFaceLM) -> None:
    if lm.device == "cuda":
        lm.torch.cuda.synchronize()


if __name__ == "__main__":
    main()
