"""What comes through: facts in released texts, for budgets, methods and parts switched off.

    python benchmarks/quality.py SUITE --out benchmarks/results/quality.json [--notes FOLDER]

SUITE is one of: default, strict, loose, paper, parts, qwen. FOLDER holds a copy of notes_llm.jsonl (or set
STILLROOM_MEDICAL_SYNTH). Results are appended run by run, so an interrupted suite keeps what it has.
A document is read once for all runs of a suite: that changes no vote.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medical import load_llm_notes, pattern_notes

from stillroom import Document, Documents, plan, rehearse
from stillroom.distil.presets import PRESETS, Preset
from stillroom.evals.facts import Fact, names, shares
from stillroom.evals.readability import readable
from stillroom.lm.base import Prompt
from stillroom.lm.huggingface import HuggingFaceLM, HuggingFaceReadings
from stillroom.loading import load_embedder
from stillroom.models import default_cache, resolve
from stillroom.release.folder import Release
from stillroom.release.schema import Text

Facts = Mapping[str, Fact]


class Remembering(HuggingFaceLM):
    """A model that reads a prompt once in its life."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read: dict[tuple[Prompt, int], Any] = {}

    def read(self, prompts: Sequence[Prompt], body_tokens: int = 192) -> HuggingFaceReadings:
        """Return readings of the prompts, made anew only where they were never read."""
        new = [p for p in dict.fromkeys(prompts) if (p, body_tokens) not in self._read]
        fresh = super().read(new or list(prompts)[:1], body_tokens)
        for prompt, row in zip(new, fresh.rows, strict=False):
            self._read[prompt, body_tokens] = row
        rows = [self._read[p, body_tokens] for p in prompts]
        return HuggingFaceReadings(fresh.prefix, fresh.memory, rows, fresh.public)


def collection(rows: Sequence[Mapping[str, Any]]) -> Documents:
    """Return rows of note and patient as documents."""
    return Documents(Document(str(r["id"]), str(r["note"]), str(r["patient_id"])) for r in rows)


def in_place(texts: Sequence[Text], facts: Facts) -> float:
    """Return the share of topics with a form whose own lines say the right disease and the right treatment."""
    right = [
        any(
            names(t.fields.get("Diagnosis", ""), d) and names(t.fields.get("Treatment", ""), f.treatment) for t in texts
        )
        for d, f in facts.items()
    ]
    return sum(right) / len(right)


def statistics(release: Release) -> dict[str, Any]:
    """Return what is released beside the texts: sizes of topics and the words that go with each."""
    return {t.name: [t.size, t.parts, *(w.word for w in t.together)] for t in release.statistics.topics}


class Stages:
    """Says when a stage begins, how long the one before took, and how many draws were made, as lines."""

    def __init__(self, label: str) -> None:
        self.label, self.start, self.done, self.total = label, time.monotonic(), 0, 0

    def stage(self, name: str, total: int | None) -> None:
        """Print where the run is."""
        self.done, self.total = 0, total or 0
        print(f"[{time.monotonic() - self.start:6.0f} s] {self.label}: {name} {total or ''}", flush=True)

    def advance(self, n: int = 1) -> None:
        """Print every tenth of what there is to do."""
        before, self.done = self.done, self.done + n
        if self.total and before * 10 // self.total != self.done * 10 // self.total:
            print(f"[{time.monotonic() - self.start:6.0f} s]   {self.done} of {self.total}", flush=True)


class Suite:
    """Runs settings on collections and keeps what came out."""

    def __init__(self, name: str, lm: Remembering, out: Path) -> None:
        self.name, self.lm, self.out = name, lm, out

    def run(self, label: str, rows: Sequence[Mapping[str, Any]], facts: Facts, preset: Preset, *, read: bool = False,
            repetition: int = 1, **budget: Any) -> None:  # fmt: skip
        """Distil once, judge the texts, append the result."""
        made = plan(preset=preset, unit="patient_id", **budget)
        embedder = load_embedder("minilm") if preset.cut else "minilm"
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            release = rehearse(collection(rows), made, lm=self.lm, embedder=embedder, out=Path(folder) / "r",
                               progress=Stages(f"{label}, {repetition}"))  # fmt: skip
        seconds = time.monotonic() - start
        texts = [text.text for text in release.texts]
        found = shares(facts, texts)
        result: dict[str, Any] = {
            "suite": self.name, "label": label, "repetition": repetition, "model": self.lm.name,
            "notes": len(rows), "topics": len(facts), "epsilon": made.record.epsilon, "delta": made.record.delta,
            "clip": round(made.record.text.clip, 4), "least_units": made.least_units,
            "disease": found.disease, "treatment": found.treatment, "symptoms": found.symptoms,
            "symptoms_strict": found.symptoms_strict, "wrong_pairs": found.wrong_pairs, "texts": len(texts),
            "in_place": in_place(release.texts, facts),
            "dropped": release.statistics.dropped, "words": statistics(release),
            "seconds": round(seconds), "sample": texts[:12],
        }  # fmt: skip
        self._keep(result)
        if read:  # takes long, so the facts are kept first
            told = readable(texts, self.lm)
            shares_read = {"readable": told.share, "readable_varied": told.share_varied}
            self._keep({"suite": self.name, "label": label, "repetition": repetition} | shares_read)

    def _keep(self, result: Mapping[str, Any]) -> None:
        """Append a result, and print it without its texts."""
        self.out.parent.mkdir(parents=True, exist_ok=True)
        with self.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result, ensure_ascii=False) + "\n")
        print({k: v for k, v in result.items() if k not in ("sample", "words")}, flush=True)


PARTS = (
    "order",
    "lists",
    "lift",
    "abstain",
    "completion",
    "floor",
    "prior",
    "calibration",
    "cokeywords",
    "candidates",
    "form",
    "unlisted",
)


def main() -> None:
    """Run one suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+", choices=["default", "strict", "loose", "paper", "parts", "qwen"])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/quality.jsonl"))
    parser.add_argument("--notes", type=Path, default=None)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="number of the first repetition, to go on with a suite")
    parser.add_argument("--per-topic", type=int, default=80)
    parser.add_argument("--topics", choices=["all", "llm"], default="all", help="llm: those of notes_llm.jsonl alone")
    parser.add_argument("--only", nargs="*", default=[], help="of parts: these, such as lift or 'L = 3'")
    parser.add_argument("--clusters", type=int, default=12, help="R of the paper's method, which is slow here")
    options = parser.parse_args()
    name = "qwen2.5-coder-0.5b" if "qwen" in options.suites else "smollm2"
    lm = Remembering(resolve(name, default_cache(os.environ), kind="lm"), name=name, memory=12 * 2**30)
    for each in options.suites:
        run(each, Suite(each, lm, options.out), options)


def run(name: str, suite: Suite, options: argparse.Namespace) -> None:
    """Run one suite."""
    every = options.per_topic if name != "strict" else None
    llm, llm_facts = load_llm_notes(options.notes, 5, every)
    own, own_facts = pattern_notes(every or 150)
    if options.topics == "llm":
        own, own_facts = [], {}
    rows, facts = [*llm, *own], {**llm_facts, **own_facts}
    form, default, repetitions = "clinic", PRESETS["default"], range(options.first, options.first + options.repetitions)
    if name in ("default", "qwen"):
        for n in repetitions:
            suite.run("stillroom", rows, facts, default, epsilon=10, delta=1e-6, form=form, repetition=n, read=n == 1)
    elif name == "loose":
        for n in repetitions:
            suite.run("stillroom", rows, facts, default, epsilon=10, delta=1e-3, form=form, repetition=n)
    elif name == "strict":
        for n in repetitions:
            suite.run("stillroom, all notes", rows, facts, default, epsilon=3, delta=1e-6, form=form, repetition=n)
    elif name == "paper":
        # As published but for R (500 clusters of 70 draws take hours on a CPU), the fast extractor, which finds names
        # more often than this small model, and the self-filter, which with this small model drops everything.
        paper = replace(
            PRESETS["paper-medical"], released=options.clusters, extractor="fast", selffilter="off", name="paper-scaled"
        )
        for n in repetitions:
            for epsilon, delta in ((10, 1e-3), (10, 1e-6), (3, 1e-6)):
                suite.run("paper", rows, facts, paper, epsilon=epsilon, delta=delta, repetition=n, read=n == 1)
    else:
        changes: dict[str, dict[str, Any]] = {"all parts": {}}
        changes |= {f"L = {n}": {"topics_per_unit": n} for n in (2, 3)}
        changes |= {f"without {part}": {"without": (part,)} for part in PARTS}
        for label, change in changes.items():
            if not options.only or label.removeprefix("without ") in options.only:
                suite.run(label, own, own_facts, default, epsilon=10, delta=1e-6, form=form, **change)


if __name__ == "__main__":
    main()
