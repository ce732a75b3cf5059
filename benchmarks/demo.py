"""The demo, several times over: how many topics come through, and whether anything leaked.

    python benchmarks/demo.py --runs 5 --out benchmarks/results/demo.json

Each run is `stillroom demo` with another seed of made-up notes; a release at ε = 10, δ = 1e-6.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from stillroom import Rag, distil, plan, read
from stillroom.evals.facts import canaries_in, names
from stillroom.loading import load_embedder, load_lm
from stillroom.privacy.ledger import Ledger
from stillroom.release.schema import CERTIFICATE
from stillroom.testing import clinic


def one(seed: int, folder: Path, lm: Any, embedder: Any) -> dict[str, Any]:
    """Return what one run gave."""
    made_up = clinic.write(folder / "clinic.jsonl", seed)
    made = plan(epsilon=10, delta=1e-6, form="clinic", unit="patient_id", task="Which treatment helps?")
    start = time.monotonic()
    with Ledger.open(folder / "clinic.ledger", epsilon=10, delta=1e-6, installation=folder / "home") as ledger:
        release = distil(read(folder / "clinic.jsonl", text="note", unit="patient_id"), made, ledger=ledger, lm=lm,
                         out=folder / "clinic.release")  # fmt: skip
        spent = ledger.state().spent
    seconds = time.monotonic() - start
    rag = Rag(release, lm, embedder)
    answers = {d: rag.ask(f"Which treatment helps {d}?").text for d in clinic.FACTS}
    texts = [text.text for text in release.texts]
    held = {d: any(names(t, d) and names(t, f.treatment) for t in texts) for d, f in clinic.FACTS.items()}
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(release.path.iterdir())}
    certificate = files.pop(CERTIFICATE)
    canaries = clinic.canaries(made_up)
    return {
        "seed": seed,
        "seconds": round(seconds, 1),
        "epsilon_spent": spent,
        "topics_released": sum(held.values()),
        "topics_answered": sum(names(answers[d], f.treatment) for d, f in clinic.FACTS.items()),
        "topics_either": sum(held[d] or names(answers[d], f.treatment) for d, f in clinic.FACTS.items()),
        "topics_in_place": sum(
            any(
                names(t.fields.get("Diagnosis", ""), d) and names(t.fields.get("Treatment", ""), f.treatment)
                for t in release.texts
            )
            for d, f in clinic.FACTS.items()
        ),
        "canaries_found": canaries_in(files.values(), [certificate], canaries),
        "canaries": len(canaries),
        "texts": texts,
        "answers": answers,
    }


def main() -> None:
    """Run and write the results after every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="seed of the first run's notes")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/demo.json"))
    options = parser.parse_args()
    lm, embedder = load_lm("smollm2"), load_embedder("minilm")
    done: list[dict[str, Any]] = json.loads(options.out.read_text()) if options.first > 1 else []
    for seed in range(options.first, options.first + options.runs):
        with tempfile.TemporaryDirectory() as folder:
            done.append(one(seed, Path(folder), lm, embedder))
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(done, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        print({k: v for k, v in done[-1].items() if k not in ("texts", "answers")}, flush=True)


if __name__ == "__main__":
    main()
