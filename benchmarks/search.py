"""Finding texts for a question: milliseconds of the search itself, without the models.

    python benchmarks/search.py 1000 100000 --note "what was changed" --out benchmarks/results/search.json

The texts are made up like a filled clinic form, 50 texts a disease; a text's vector of 384 dimensions lies near that of
its disease. A question names a disease, and a label that stands in every text; its vector lies near the disease too.
Vectors are made beforehand, so that what is timed is `HybridIndex.search`: vectors, BM25, fusion.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stillroom.embed.base import Embedder, Vectors, clip
from stillroom.index.hybrid import HybridIndex

DIMENSIONS, SEED = 384, 1
SYMPTOMS = ("cough", "fever", "rash", "dizziness", "cramps", "itching", "thirst", "headache", "stiffness", "chills")


class Made(Embedder):
    """Vectors that were made beforehand."""

    name, dimensions = "made", DIMENSIONS

    def __init__(self) -> None:
        self.vectors: dict[str, Any] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.vectors[text] for text in texts])


def measure(count: int, questions: int) -> dict[str, Any]:
    """Return times over so many texts."""
    chance = np.random.default_rng(SEED)
    syllables = np.array([a + b for a in "bdfgklmnprstvz" for b in "aeiou"])
    diseases = count // 50
    names = ["".join(chance.choice(syllables, 4)) + ("itis", "osis")[n % 2] for n in range(diseases)]
    centres = clip(chance.standard_normal((diseases, DIMENSIONS)))
    embedder = Made()
    texts = []
    for number in range(count):
        at = number % diseases
        told = ", ".join(chance.choice(SYMPTOMS, 4, replace=False))
        text = f"Diagnosis: {names[at]}\nTreatment: {names[at][::-1]} {number}\nSymptoms: {told}"
        texts.append(text)
        # Rounded as a model's float32 would be.
        embedder.vectors[text] = _near(centres[at], chance).astype(np.float32).astype(np.float64)
    start = time.perf_counter()
    index = HybridIndex(texts, embedder, common={"diagnosis", "treatment", "symptoms"})
    built = time.perf_counter() - start
    wall, cpu = [], []
    for _ in range(questions):
        at = int(chance.integers(diseases))
        question = f"Which treatment helps with {names[at]} and {chance.choice(SYMPTOMS)}?"
        embedder.vectors[question] = _near(centres[at], chance)
        began, used = time.perf_counter(), time.process_time()
        hits = index.search(question, 5)
        cpu.append(1000 * (time.process_time() - used))
        wall.append(1000 * (time.perf_counter() - began))
        assert len(hits) == 5 and names[at] in texts[hits[0].row]
    return {
        "texts": count,
        "dimensions": DIMENSIONS,
        "questions": questions,
        "median_ms": round(float(np.median(wall)), 2),
        "p95_ms": round(float(np.quantile(wall, 0.95)), 2),
        "fastest_ms": round(min(wall), 2),
        "median_cpu_ms": round(float(np.median(cpu)), 2),
        "build_seconds": round(built, 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _near(centre: Any, chance: Any) -> Any:
    return clip(centre + 0.5 * chance.standard_normal(DIMENSIONS) / np.sqrt(DIMENSIONS))[0]


def main() -> None:
    """Run and write the results after every size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", default=[1_000, 100_000])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--note", default="")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/search.json"))
    options = parser.parse_args()
    done: list[dict[str, Any]] = json.loads(options.out.read_text()) if options.out.exists() else []
    for count in options.sizes:
        done.append({"note": options.note, "python": platform.python_version(), **measure(count, options.questions)})
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(json.dumps(done[-1]), flush=True)


if __name__ == "__main__":
    main()
