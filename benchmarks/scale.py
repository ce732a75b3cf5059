"""The steps before the text at 10,000, 100,000 and 1,000,000 documents: seconds and memory of each.

    python benchmarks/scale.py 10000 100000 1000000 --note "what was changed" --out benchmarks/results/scale.json

The documents are made up and short (about 55 words), each of its own unit; each has a last name of its own, a word
that nobody lists, which is the hardest case for the histogram. Each size runs in a process of its own, from a file of
JSON lines through the shipped steps with the fast extractor and OpenDP's noise: the working copy, its fingerprint, the
unit registry, keywords, topics, co-keywords and the rows of the text step. Memory is the highest that the process had
after each stage (ru_maxrss). Writing the file is not counted. Where the machine has other work, cpu_seconds tell more
than seconds.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stillroom import plan, read
from stillroom.distil import steps
from stillroom.distil.keywords import FastExtractor
from stillroom.distil.topics import groups_of
from stillroom.lexicon import word_list
from stillroom.privacy.installation import Installation
from stillroom.privacy.journal import Journal
from stillroom.privacy.ledger import Ledger
from stillroom.privacy.noise import OpenDPNoise
from stillroom.readers import Spool
from stillroom.testing import patterns
from stillroom.testing.people import BEGINNINGS, ENDINGS, MEN, WOMEN, Person

EPSILON, DELTA, SEED = 10.0, 1e-6, 1


def rows(count: int) -> Iterator[dict[str, str]]:
    """Yield made-up notes; equal counts give equal notes."""
    chance = random.Random(SEED)
    facts, kinds = [*patterns.FACTS.values(), *patterns.TUNING.values()], sorted(patterns.PATTERNS)
    firsts = [(name, True) for name in WOMEN] + [(name, False) for name in MEN]
    for number in range(count):
        first, woman = chance.choice(firsts)
        own = "".join(chr(97 + number // 26**place % 26) for place in range(5))
        last = chance.choice(BEGINNINGS) + chance.choice(ENDINGS) + own
        record = f"MRN-{number:07d}-KQ"
        person = Person(first, last, f"555-0100-{number % 10_000:04d}", record, f"pt-{number:x}", woman)
        note = patterns.write(chance.choice(kinds), chance.choice(facts), person, chance)
        yield {"id": f"note-{number:x}", "patient_id": person.patient, "note": note}


class Stages:
    """Seconds of every stage, by the clock and of the processor, and the highest memory until its end, in MiB."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}

    def __call__(self, name: str, do: Callable[[], Any]) -> Any:
        start, cpu = time.perf_counter(), time.process_time()
        value = do()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.found[name] = {
            "seconds": round(time.perf_counter() - start, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "peak_mib": round(peak, 1),
        }
        return value


def measure(path: Path, folder: Path) -> dict[str, Any]:
    """Return what each stage took on one file of notes."""
    stage = Stages()
    made = plan(epsilon=EPSILON, delta=DELTA, form="clinic", unit="patient_id").record
    documents = read(path, text="note", unit="patient_id")
    stage("start", lambda: word_list())
    work = folder / "work"
    spool: Spool = stage("working copy", lambda: Spool.build(documents, folder / "spool", chunk_words=made.chunk_words))
    with Ledger.open(folder / "ledger", epsilon=EPSILON, delta=DELTA, installation=folder / "home") as ledger:
        journal = Journal.begin(work, run="scale", settings={}, ledger=ledger)
        stage("fingerprint", lambda: journal.bind(journal.fingerprint(spool.fingerprint_parts())))
        installation = Installation(folder / "home")
        stage("unit registry", lambda: installation.register("scale", "scale", spool.unit_ids()))
        # No step before the text asks the model.
        tools = steps.Tools(
            lm=None,  # type: ignore[arg-type]
            extractor=FastExtractor(word_list(), made.keywords.per_unit),
            noise=OpenDPNoise(),
            journal=journal,
        )
        words = stage("keywords", lambda: steps._words(spool, made, tools))
        groups, _ = groups_of(words, made.topics)
        topics, members, _ = stage("topics", lambda: steps._topics(spool, made, tools, words, groups))
        kept = stage("co-keywords", lambda: steps._together(made, tools, words, topics, members))
        topics, members = kept[0], kept[1]
        parts = stage("rows", lambda: steps._rows(spool, made, tools, topics, members))
        journal.close()
    return {
        "stages": stage.found,
        "words": len(words),
        "topics": len(topics),
        "members": sum(map(len, members)),
        "texts": sum(map(len, parts)),
    }


def one(count: int, note: str) -> dict[str, Any]:
    """Return the measurement of one size, from a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = folder / "notes.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for row in rows(count):
                file.write(json.dumps(row) + "\n")
        command = [sys.executable, __file__, "--inside", str(path)]
        start = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        found = json.loads(done.stdout.splitlines()[-1])
    stages = found["stages"].values()
    return {
        "documents": count,
        "note": note,
        "python": platform.python_version(),
        "file_mib": round(found.pop("file_mib"), 1),
        "seconds": round(seconds, 1),
        "cpu_microseconds_a_document": round(1e6 * sum(s["cpu_seconds"] for s in stages) / count, 1),
        "peak_mib": max(s["peak_mib"] for s in stages),
        **found,
    }


def main() -> None:
    """Run and write the results after every size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--note", default="")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scale.json"))
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        found = measure(options.inside, options.inside.parent)
        found["file_mib"] = options.inside.stat().st_size / 2**20
        print(json.dumps(found))
        return
    done: list[dict[str, Any]] = json.loads(options.out.read_text()) if options.out.exists() else []
    for count in options.sizes:
        done.append(one(count, options.note))
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(json.dumps(done[-1], indent=1), flush=True)


if __name__ == "__main__":
    main()
