"""The guard's modes side by side: strict, PA-HDP as published, and Presidio alone.

    python benchmarks/guard.py speed --data FOLDER     # ingest, and what a query costs without a language model
    python benchmarks/guard.py cover --data FOLDER     # what stays uncovered, and what is changed without need
    python benchmarks/guard.py canaries                # 250 attack queries on made-up notes full of canaries
    python benchmarks/guard.py answers                 # answers of the small model against those from unprotected notes
    python benchmarks/guard.py thresholds              # where the risk of a question begins to change what is shown

FOLDER holds presidio_synth_first750.jsonl and openmed_adversarial_phi.jsonl; rows 376 to 750 are read, which nothing
was tuned on. Results go to results/guard.json, each part under its name.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from guard_detect import HALF, evasions, measure, stock
from guard_modes import HOUSE, PAPER, PRESIDIO, RAW, STRICT, TOP, Alone, asked, attacks, notes_of, readings, strict

from stillroom.documents import Document
from stillroom.evals.facts import canaries_found
from stillroom.evals.overlap import bleu, rouge_l
from stillroom.guarantee import Guarantee
from stillroom.guard.build import build
from stillroom.guard.ingest import LOT
from stillroom.guard.paper import PaperGuard
from stillroom.guard.policy import load_policy
from stillroom.guard.spans import Span
from stillroom.index.hybrid import HybridIndex
from stillroom.lm.base import LanguageModel
from stillroom.loading import load_embedder, load_lm
from stillroom.rag.reading import Passage, answer
from stillroom.testing import clinic
from stillroom.text import normalise, sentences

RESULTS = Path(__file__).with_name("results") / "guard.json"


def rows_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "presidio_synth_first750.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[HALF:]]


def speed(given: argparse.Namespace) -> dict[str, Any]:
    """Return rates of ingest, and milliseconds of a query over ingested documents, first and again."""
    texts = [row["text"] for row in rows_of(given.data)]
    count = sum(len(sentences(text)) for text in texts)
    notes = [Document.of(text, id=f"n{i}", unit=f"u{i // 3}") for i, text in enumerate(texts)]
    policy, embedder = load_policy("clinic"), load_embedder("minilm")
    finder, alone = build(policy), Alone(stock())
    finder.find_all(texts[:5])
    alone.find(texts[0])
    found: dict[str, Any] = {"sentences": count}
    with strict("clinic", embedder, finder, vault=True) as guard:
        wall, used = time.perf_counter(), time.process_time()
        list(guard.ingest(notes))
        found["ingest, one process"] = _rate(count, wall, used)
        passages = guard.passages()
        index = HybridIndex([kept.text for kept in passages], guard.embedder)
        guard.embedder.embed([kept.text for kept in passages])
        verbs = ("wrote about", "asked for", "lost", "sent", "changed")
        things = ("a card", "an address", "the meeting", "a flight", "their phone", "a doctor")
        queries = [f"Who {verb} {thing}?" for verb in verbs for thing in things]
        for name in ("first time", "again"):
            searched, guarded = [], []
            for query in queries:
                start = time.perf_counter()
                hits = [passages[hit.row] for hit in index.search(query, TOP)]
                middle = time.perf_counter()
                guard.sanitise(query, hits)
                searched.append(middle - start)
                guarded.append(time.perf_counter() - middle)
            found[f"query, {name}"] = {"search ms": _ms(searched), "guard ms": _ms(guarded)}
        pages = [kept for kept in passages[:TOP]]
    if given.processes > 1:
        many = [
            Document.of(f"{text} {n}", id=f"m{i}-{n}", unit=f"u{i}") for n in range(6) for i, text in enumerate(texts)
        ]
        warm = 2 * len(texts)  # records until the processes have loaded their detectors and work ahead
        with strict("clinic", embedder, None, vault=True) as guard:
            ready = guard.ingest(many, processes=given.processes)
            for _ in range(warm):
                next(ready)
            wall = time.perf_counter()
            list(ready)
            # What was read ahead while the first were waited for is not counted.
            begun = warm + LOT * (2 * given.processes + 1)
            rate = sum(len(sentences(note.text)) for note in many[begun:]) / (time.perf_counter() - wall)
            found[f"ingest, {given.processes} processes, sentences a second"] = round(rate, 1)
    wall, used = time.perf_counter(), time.process_time()
    for text in texts:
        alone.masked(text)
    found["presidio alone"] = _rate(count, wall, used)
    paper = PaperGuard(lambda text: alone.find(normalise(text)), embedder)
    some = texts[:TOP]
    times = []
    for query in queries[:5]:
        start = time.perf_counter()
        paper.sanitise(query, some)
        times.append(time.perf_counter() - start)
    found["paper mode, a query"] = {"guard ms": _ms(times)}
    found["passages a query"] = len(pages)
    return found


def cover(given: argparse.Namespace) -> dict[str, Any]:
    """Return recall by type, sentences with an uncovered character and harmless characters changed, by mode."""
    rows = rows_of(given.data)
    policy, embedder = load_policy("clinic"), load_embedder("minilm")
    alone, union = Alone(stock()), build(policy)
    paper = PaperGuard(lambda text: alone.find(normalise(text)), embedder)
    found = union.find_all([row["text"] for row in rows])
    by_mode = {
        PRESIDIO: [alone.find(row["text"]) for row in rows],
        PAPER: [_swapped(paper, alone, row["text"]) for row in rows],
        "strict, clinic policy as it stands": [
            [s for s in spans if policy.tier(s.category) != "raw"] for spans in found
        ],
        STRICT: found,
    }
    results: dict[str, Any] = {}
    for mode, spans in by_mode.items():
        results[mode] = measure(rows, spans)
        results[mode].pop("missed")
    results["evasions caught by strict"] = evasions(given.data, union)
    return results


def _swapped(paper: PaperGuard, alone: Alone, text: str) -> list[Span]:
    """Return the spans of the sentences that paper mode changed; in the others all stays as it is."""
    kept: list[Span] = []
    at = 0
    plain = normalise(text)
    parts = sentences(text)
    shown = paper.sanitise("Please repeat all the context.", [text]).texts[0]
    for part in parts:
        start = plain.index(part, at)
        at = start + len(part)
        if part not in shown:
            kept += [Span(s.start + start, s.end + start, s.category, s.detector, s.score) for s in alone.find(part)]
    return kept


def canaries(given: argparse.Namespace) -> dict[str, Any]:
    """Return how many queries bring a canary out when the model copies all that it reads, and of the small model."""
    notes, planted, _ = notes_of(given.seed, given.notes)
    queries = attacks(given.seed)
    results: dict[str, Any] = {"notes": len(notes), "canaries": len(planted), "queries": len(queries)}
    lm = load_lm("smollm2") if given.model else None
    with readings(notes, load_embedder("minilm")) as modes:
        for mode in given.modes or modes:
            read = modes[mode]
            contexts = [read(query) for query in queries]
            copied = [canaries_found(context, planted) for context in contexts]
            results[mode] = {
                "a model that copies everything": _bounded(sum(map(bool, copied)), len(queries))
                | {"canaries": canaries_found([text for context in contexts for text in context], planted)}
                | {"passages read": sum(map(len, contexts)), "one of them": next(filter(None, contexts))[0]}
            }
            if lm is not None:
                said = [_said(lm, q, c) for q, c in zip(queries[: given.model], contexts, strict=False)]
                leaked = sum(bool(canaries_found([text], planted)) for text in said)
                results[mode]["the small model"] = _bounded(leaked, len(said))
    return results


def answers(given: argparse.Namespace) -> dict[str, Any]:
    """Return how often a context holds the treatment asked for, and what the small model makes of it.

    BLEU and ROUGE-L of its answers are against those from unprotected notes.
    """
    notes, _, _ = notes_of(given.seed, given.notes)
    questions = asked()
    lm = load_lm("smollm2")
    contexts: dict[str, list[Sequence[str]]] = {}
    with readings(notes, load_embedder("minilm")) as modes:
        for mode in given.modes or modes:
            contexts[mode] = [modes[mode](question) for _, question in questions[: given.model or 12]]
            if mode != PAPER:  # it takes seconds for each
                contexts[mode] += [modes[mode](question) for _, question in questions[given.model or 12 :]]
    results: dict[str, Any] = {}
    said: dict[str, list[str]] = {}
    for mode, read in contexts.items():
        some = questions[: given.model or 12]
        said[mode] = [_said(lm, question, context) for (_, question), context in zip(some, read, strict=False)]
        results[mode] = {
            "contexts that hold the treatment": sum(
                _names(ill, "\n".join(context)) for (ill, _), context in zip(questions, read, strict=False)
            ),
            "contexts": len(read),
            "BLEU": round(bleu(said[mode], said[RAW]), 3),
            "ROUGE-L": round(rouge_l(said[mode], said[RAW]), 3),
            "answers that name it": sum(
                _names(ill, text) for (ill, _), text in zip(questions, said[mode], strict=False)
            ),
            "answers": said[mode],
        }
    return {"questions answered": given.model or 12, "modes": results}


def _names(ill: str, text: str) -> bool:
    return clinic.FACTS[ill].treatment.casefold() in text.casefold()


def thresholds(given: argparse.Namespace) -> dict[str, Any]:
    """Return at which tier names and dates stand by the risks from which tiers are raised, for questions and attacks.

    Every note has a date of its own.
    """
    notes, _, _ = notes_of(given.seed, given.notes)
    notes = [
        Document.of(f"On 2021-{i % 12 + 1:02}-{i % 28 + 1:02} {note.text}", id=note.id, unit=note.unit)
        for i, note in enumerate(notes)
    ]
    embedder, policy = load_embedder("minilm"), load_policy("clinic")
    raw = HybridIndex([note.text for note in notes], embedder)
    queries = {"questions": [question for _, question in asked()], "attacks": attacks(given.seed)[:50]}
    results: dict[str, Any] = {}
    for surrogate, placeholder in ((0.3, 0.7), (0.5, 0.8), (0.7, 0.9)):
        risk = policy.risk.model_copy(update={"surrogate": surrogate, "placeholder": placeholder})
        tuned = policy.model_copy(update={"risk": risk, "formulary": (*clinic.FACTS,)})
        with strict(tuned, embedder, build(tuned)) as guard:
            kept = list(guard.ingest(notes))
            for kind, each in queries.items():
                count: Counter[str] = Counter()
                for query in each:
                    receipt = guard.sanitise(query, [kept[hit.row] for hit in raw.search(query, TOP)]).receipt
                    for name in ("person", "date"):
                        for tier, number in receipt.spans.get(name, {}).items():
                            count[f"{name}: {tier}"] += number
                results[f"{surrogate}, {placeholder}: {kind}"] = dict(sorted(count.items()))
    return results


def _said(lm: LanguageModel, query: str, context: Sequence[str]) -> str:
    read = [Passage(i, str(i), "", text, 0.0, 0.0) for i, text in enumerate(context, 1)]
    return answer(lm, query, read, Guarantee.NONE, "nothing").text


def _bounded(hits: int, of: int) -> dict[str, Any]:
    """Return a count with its 95 % interval (Clopper and Pearson 1934)."""
    from scipy.stats import beta

    low = 0.0 if hits == 0 else float(beta.ppf(0.025, hits, of - hits + 1))
    high = 1.0 if hits == of else float(beta.ppf(0.975, hits + 1, of - hits))
    return {"queries that leak": hits, "of": of, "95 %": [round(low, 4), round(high, 4)]}


def _rate(count: int, wall: float, used: float) -> dict[str, float]:
    return {
        "sentences a second": round(count / (time.perf_counter() - wall), 1),
        "sentences a second of processor time": round(count / (time.process_time() - used), 1),
    }


def _ms(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "median": round(1000 * statistics.median(ordered), 2),
        "95 %": round(1000 * ordered[int(0.95 * (len(ordered) - 1))], 2),
    }


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "speed": speed,
    "cover": cover,
    "canaries": canaries,
    "answers": answers,
    "thresholds": thresholds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data", type=Path, help="the folder with the two files")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--notes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", type=int, default=0, help="how many queries the small model answers in each mode")
    parser.add_argument("--modes", nargs="*", choices=[RAW, PRESIDIO, PAPER, STRICT, HOUSE], help="only these")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.part in ("speed", "cover") and given.data is None:
        parser.error(f"{given.part} needs --data FOLDER")
    made = PARTS[given.part](given)
    print(json.dumps(made, indent=1, ensure_ascii=False))
    held = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    given.out.write_text(
        json.dumps({**held, given.part: {**held.get(given.part, {}), **made}}, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
