"""Where the time of private prediction goes: the plain engine, each saving switched on in turn, all together.

    python benchmarks/engine.py --topics 20 --out benchmarks/results/engine.json

The work: notes of which every one votes in five topics of eighty, T tokens a topic, some of them forced labels. All
engines get the same tokens to say, so that their summed votes can be compared. The plain engine does what public
packages do (full prompts are read for every topic, the memory grows by copying, scores are over all tokens), with this
project's attention. A variant switches one thing on; with "memory allocated once" come blocks and heads of fixed
shapes, and reading in blocks of two. The floor is an estimate: all products of this work at the speed that one large
product reaches on all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stillroom.distil.forms import form_of
from stillroom.distil.plan import plan
from stillroom.distil.prompts import document_prompt
from stillroom.distil.texts import AT_ONCE, ROWS_AT_ONCE
from stillroom.distil.votes import one_sided
from stillroom.lm.base import Prompt
from stillroom.lm.huggingface import HuggingFaceLM
from stillroom.loading import load_lm
from stillroom.testing import patterns

PER_TOPIC, EACH, BODY, LEVELS, CANDIDATES = 80, 5, 128, 1000, 256
LABELS = ("\nTreatment:", "\nSymptoms:")
SAID = (
    " Quorvenitis was found",
    " Lumadrex Tablets twice a day",
    " numb toes, scalp itching, sudden thirst, shaky knees, metallic taste and hair",
)


@dataclass(frozen=True)
class Savings:
    """What is switched on."""

    prefix: bool = False
    reuse: bool = False
    preallocated: bool = False
    together: int = 1  # rows of topics that share passes, in topics of PER_TOPIC rows
    lanes: bool = False
    candidates: bool = False
    chunk: bool = False
    rows: int = PER_TOPIC


EACH_ON_ITS_OWN = Savings()
VARIANTS: dict[str, Savings] = {
    "plain": EACH_ON_ITS_OWN,
    "+ the instruction read once": (s := replace(EACH_ON_ITS_OWN, prefix=True)),
    "+ a note read once for all its topics": (s := replace(s, reuse=True)),
    "+ memory allocated once, one shared prefix": (s := replace(s, preallocated=True)),
    "+ several topics in a pass": (s := replace(s, together=ROWS_AT_ONCE // PER_TOPIC)),
    "+ a pass on every core": (s := replace(s, lanes=True)),
    "+ scores of candidates alone": (s := replace(s, candidates=True)),
    "+ forced tokens in one go": (s := replace(s, chunk=True)),
    "+ rows as the support needs": replace(s, rows=PER_TOPIC // 2, together=AT_ONCE),
}


def work(lm: HuggingFaceLM, topics: int) -> tuple[list[Prompt], list[list[int]], list[tuple[tuple[int, ...], bool]]]:
    """Return the prompts of all notes, the notes of each topic, and what is said: tokens, and whether drawn."""
    count = max(PER_TOPIC, topics * PER_TOPIC // EACH)
    rows = patterns.notes(patterns.FACTS, -(-count // len(patterns.FACTS)), 1)[:count]
    record = plan(epsilon=10, delta=1e-6, form=form_of("clinic")).record
    prompts = [document_prompt(record, row["note"]) for row in rows]
    members = [[(t * PER_TOPIC // EACH + i) % count for i in range(PER_TOPIC)] for t in range(topics)]
    script: list[tuple[tuple[int, ...], bool]] = []
    for n, value in enumerate(SAID):
        script += [((token,), True) for token in lm.encode(value)]
        if n < len(LABELS):
            script.append((tuple(lm.encode(LABELS[n])), False))
    return prompts, members, script


def plain(lm: HuggingFaceLM, prompts: Sequence[Prompt], members: Sequence[Sequence[int]], script: Any,
          savings: Savings) -> Iterator[tuple[int, int, Any]]:  # fmt: skip
    """Yield (topic, step, summed votes): one topic at a time, memory that grows by copying."""
    from transformers import DynamicCache

    torch = lm.torch
    candidates = np.arange(1000, 1000 + CANDIDATES)
    read: dict[int, Any] = {}
    prefix = lm._pieces(prompts[0])[0]
    for topic, rows in enumerate(members):
        wanted = [i for i in rows if i not in read] if savings.reuse else list(rows)
        if not savings.reuse:
            read = {}
        if savings.prefix:
            readings = lm.read([prompts[i] for i in wanted], BODY)
            for i, row in zip(wanted, readings.rows, strict=True):
                read[i] = (readings.memory, row)
        else:
            empty = lm._read_prefix(())
            for first in range(0, len(wanted), 8):
                some = wanted[first : first + 8]
                ids = []
                for i in some:
                    before, body, after = lm._pieces(prompts[i])
                    ids.append([*before, *body[:BODY], *after])
                length = max(map(len, ids))
                states, keys = lm._fresh(torch.tensor([[*x, *([0] * (length - len(x)))] for x in ids]), empty)
                for j, i in enumerate(some):
                    n = len(ids[j])
                    read[i] = (None, keys[:, :, j, :, :n].clone(), states[j, n - 1].clone())
        cache, length, filled, hidden = _grown(lm, [read[i] for i in rows], DynamicCache)
        pushed = 0
        for step, (tokens, drawn) in enumerate(script):
            if drawn:
                scores = lm.head(hidden, None)
                yield (
                    topic,
                    step,
                    one_sided(scores[:, candidates], LEVELS, scores.max(axis=1, keepdims=True)).sum(axis=0),
                )
            for token in tokens:
                pushed += 1
                columns = torch.arange(length + pushed)
                shown = (columns[None] < filled[:, None]) | (columns[None] >= length)
                mask = torch.zeros(shown.shape).masked_fill_(~shown, torch.finfo(torch.float32).min)[:, None, None]
                with torch.inference_mode():
                    out = lm.body(
                        input_ids=torch.full((len(rows), 1), token),
                        attention_mask=mask,
                        position_ids=(filled + pushed - 1)[:, None],
                        cache=cache,
                        use_cache=True,
                    )
                hidden = out.last_hidden_state[:, -1]
    del prefix


def _grown(lm: HuggingFaceLM, rows: Sequence[Any], cache_of: Any) -> tuple[Any, int, Any, Any]:
    """Return one growing memory of rows that were read, its length, each row's own length, and the last states."""
    torch = lm.torch
    whole, states = [], []
    for row in rows:
        if row[0] is None:
            whole.append(row[1])
            states.append(row[2])
        else:
            whole.append(torch.cat([row[0], row[1].keys], dim=-2))
            states.append(row[1].hidden)
    length = max(x.shape[-2] for x in whole)
    layers, _, heads, _, dim = whole[0].shape
    cache = cache_of()
    filled = torch.tensor([x.shape[-2] for x in whole])
    for layer in range(layers):
        keys = torch.zeros((2, len(whole), heads, length, dim))
        for i, x in enumerate(whole):
            keys[:, i, :, : x.shape[-2]] = x[layer]
        cache.update(keys[0], keys[1], layer)
    return cache, length, filled, torch.stack(states)


def pooled(lm: HuggingFaceLM, prompts: Sequence[Prompt], members: Sequence[Sequence[int]], script: Any,
           savings: Savings) -> Iterator[tuple[int, int, Any]]:  # fmt: skip
    """Yield (topic, step, summed votes) by the shipped engine."""
    candidates = list(range(1000, 1000 + CANDIDATES))
    readings = lm.read(prompts, BODY)
    pool = lm.pool(readings)
    waiting = [(topic, list(rows)[: savings.rows]) for topic, rows in enumerate(members)]
    lanes: list[tuple[int, Any, Any]] = []

    def going(topic: int, session: Any) -> Iterator[tuple[int, int, Any] | None]:
        for step, (tokens, drawn) in enumerate(script):
            if drawn:
                if savings.candidates and step % 2:  # about half of a form's draws need candidates alone
                    scores = session.scores(candidates)
                    top = None
                else:
                    full = session.scores()
                    scores, top = full[:, candidates], full.max(axis=1, keepdims=True)
                yield topic, step, one_sided(scores, LEVELS, top).sum(axis=0)
            for chunk in [tokens] if savings.chunk else [(token,) for token in tokens]:
                session.push(chunk)
                yield None

    while waiting or lanes:
        while waiting and len(lanes) < savings.together:
            topic, rows = waiting.pop(0)
            session = pool.open(rows)
            lanes.append((topic, session, going(topic, session)))
        for lane in [*lanes]:
            while lane[1].ready:
                try:
                    told = next(lane[2])
                except StopIteration:
                    lane[1].close()
                    lanes.remove(lane)
                    break
                if told is not None:
                    yield told
        pool.step()


def floor(lm: HuggingFaceLM, tokens_read: int, row_tokens: int, heads: int) -> dict[str, float]:
    """Return the seconds that the arithmetic of this work takes at the speed of this machine's matrix products."""
    torch = lm.torch
    body = sum(p.numel() for name, p in lm.body.named_parameters() if "embed" not in name)
    x, w = torch.randn(1024, 1536), torch.randn(1536, 1536)
    for _ in range(3):
        x @ w
    start = time.monotonic()
    for _ in range(20):
        x @ w
    speed = 20 * 2 * 1024 * 1536 * 1536 / (time.monotonic() - start)
    flops = 2 * body * (tokens_read + row_tokens) + 2 * lm.width * lm.vocabulary_size * heads
    return {
        "gflops": round(speed / 1e9, 1),
        "floor_seconds": round(flops / speed, 1),
        "floor_seconds_at_90_gflops": round(flops / 90e9, 1),
    }


def run(name: str, topics: int) -> dict[str, Any]:
    """Return what one variant took, with a digest of all its votes."""
    lm = load_lm("smollm2")
    assert isinstance(lm, HuggingFaceLM)
    savings = VARIANTS[name]
    if not savings.lanes:
        lm.lanes.count = 1  # all threads on one pass
    prompts, members, script = work(lm, topics)
    engine = pooled if savings.preallocated else plain
    votes: dict[str, list[int]] = {}
    start = time.monotonic()
    for topic, step, total in engine(lm, prompts, members, script, savings):
        votes[f"{topic}/{step}"] = [int(v) for v in total]
    seconds = time.monotonic() - start
    prefix = len(lm._pieces(prompts[0])[0])
    bodies = [len(lm._pieces(p)[1][:BODY]) + len(lm._pieces(p)[2]) for p in prompts]
    said = sum(len(tokens) for tokens, _ in script)
    drawn = sum(drawn for _, drawn in script)
    rows = sum(min(savings.rows, len(m)) for m in members)
    once = sum(bodies) + prefix
    each = sum(sum(bodies[i] + (0 if savings.prefix else prefix) for i in m) for m in members)
    read = once if savings.reuse else each
    heads = rows * drawn // (2 if savings.candidates else 1)
    return {
        "variant": name, **asdict(savings), "topics": topics, "notes": len(prompts),
        "threads": lm.torch.get_num_threads(),
        "tokens_said": said, "drawn": drawn, "tokens_read": read, "row_tokens": rows * said,
        "seconds": round(seconds, 1),
        "row_tokens_per_second": round(rows * said / seconds, 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        **floor(lm, read, rows * said, heads), "votes": votes,
    }  # fmt: skip


def differing(one: dict[str, list[int]], other: dict[str, list[int]]) -> tuple[int, int]:
    """Return how many summed votes differ and by how much at most."""
    gaps = [abs(a - b) for key in one for a, b in zip(one[key], other[key], strict=True)]
    return sum(gap > 0 for gap in gaps), max(gaps, default=0)


def main() -> None:
    """Run the variants, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/engine.json"))
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), help="variants to run")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print("RESULT " + json.dumps(run(options.inside, options.topics)))
        return
    results: list[dict[str, Any]] = []
    for name in options.only:
        done = subprocess.run(
            [sys.executable, __file__, "--inside", name, "--topics", str(options.topics)],
            capture_output=True, text=True, check=True, env=os.environ,
        )  # fmt: skip
        line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
        result = json.loads(line.removeprefix("RESULT "))
        results.append(result)
        first = results[0]
        result["times_faster"] = round(first["seconds"] / result["seconds"], 2)
        if name != first["variant"] and result["rows"] == first["rows"]:
            keys = [k for k in result["votes"] if not result["candidates"] or int(k.split("/")[1]) % 2 == 0]
            gaps = differing({k: first["votes"][k] for k in keys}, {k: result["votes"][k] for k in keys})
            result["votes_that_differ"], result["largest_difference"] = gaps
            result["votes_compared"] = len(keys) * CANDIDATES
        told = [{k: v for k, v in each.items() if k != "votes"} for each in results]
        print(told[-1], flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
