"""How much of what identifies is found: the union of detectors on made-up sentences with known spans.

    python benchmarks/guard_detect.py FOLDER            # rows 376 to 750, which nothing was tuned on
    python benchmarks/guard_detect.py FOLDER --tune     # rows 1 to 375, with what was missed

FOLDER holds presidio_synth_first750.jsonl and openmed_adversarial_phi.jsonl. Counted are letters and digits: a
character is uncovered if an annotated span holds it and no private span of the union does; titles such as "Dr." are not
counted. A harmless one is in no annotated span; it is changed if a private span holds it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stillroom.guard.build import build
from stillroom.guard.categories import category
from stillroom.guard.detect.presidio import PresidioDetector
from stillroom.guard.detect.union import Union
from stillroom.guard.policy import ClosedWorld, Policy
from stillroom.guard.spans import Span
from stillroom.text import normalise

HALF = 375
HONORIFICS = frozenset({"dr", "mr", "mrs", "ms", "miss", "prof", "sir", "madam", "rev"})


def measure(rows: Sequence[dict[str, Any]], found: Sequence[Sequence[Span]]) -> dict[str, Any]:
    """Return recall by type, the share of sentences with an uncovered character, the share of harmless ones changed."""
    caught: Counter[str] = Counter()
    spans: Counter[str] = Counter()
    harmless = changed = 0
    missed: list[tuple[str, str, str]] = []
    bad = 0
    for row, union in zip(rows, found, strict=True):
        text = row["text"]
        covered, wanted = marks(union, len(text)), bytearray(len(text))
        leak = False
        for span in row["spans"]:
            if span["type"] == "TITLE" and span["value"].strip(". ").lower() in HONORIFICS:
                wanted[span["start"] : span["end"]] = b"\x02" * (span["end"] - span["start"])
                continue
            inked = [i for i in range(span["start"], span["end"]) if text[i].isalnum()]
            spans[span["type"]] += 1
            if all(covered[i] for i in inked):
                caught[span["type"]] += 1
            else:
                leak = True
                missed.append(
                    (
                        span["type"],
                        "".join(
                            text[i] if text[i].isspace() or not covered[i] else "_"
                            for i in range(span["start"], span["end"])
                        ),
                        text,
                    )
                )
            for i in inked:
                wanted[i] = 1
        bad += leak
        for i, c in enumerate(text):
            if c.isalnum() and not wanted[i]:
                harmless += 1
                changed += covered[i]
    return {
        "sentences": len(rows),
        "with an identifying character uncovered": bad / len(rows),
        "harmless characters changed": changed / harmless,
        "recall": {kind: [caught[kind], spans[kind]] for kind in sorted(spans)},
        "missed": missed,
    }


def marks(spans: Sequence[Span], length: int) -> bytearray:
    covered = bytearray(length)
    for span in spans:
        if category(span.category).private:
            covered[span.start : span.end] = b"\x01" * (span.end - span.start)
    return covered


def evasions(folder: Path, union: Union) -> list[tuple[str, bool]]:
    """Return which of the evasive sentences have all that they must protect covered."""
    results = []
    for line in (folder / "openmed_adversarial_phi.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        plain = normalise(row["text"])
        covered = marks(union.find(row["text"]), len(plain))
        whole = True
        for expected in row["expected_protected"]:
            value = normalise(expected["value"])
            start = plain.index(value)
            whole = whole and all(covered[i] for i in range(start, start + len(value)) if plain[i].isalnum())
        results.append((row["id"], whole))
    return results


def stock() -> PresidioDetector:
    """Return Presidio with all its English recognisers. Two ask for suffixes: they get what tldextract holds."""
    from presidio_analyzer.predefined_recognizers import EmailRecognizer, UrlRecognizer
    from tldextract import TLDExtract, tldextract

    tldextract.TLD_EXTRACTOR = TLDExtract(suffix_list_urls=())
    detector = PresidioDetector()
    for recognizer in (EmailRecognizer(), UrlRecognizer()):
        detector._analyzer.registry.add_recognizer(recognizer)
    return detector


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--open-world", action="store_true", help="without the closed-world rule")
    parser.add_argument("--presidio", action="store_true", help="Presidio with all its recognisers and spaCy alone")
    given = parser.parse_args()
    lines = (given.folder / "presidio_synth_first750.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    rows = rows[:HALF] if given.tune else rows[HALF:]
    union = build(Policy(name="benchmark", closed_world=ClosedWorld(on=not given.open_world)))
    if given.presidio:
        union = Union([stock()], None)
    union.find_all([row["text"] for row in rows[:5]])  # what is loaded once is no part of the rate
    began = time.process_time()
    found = union.find_all([row["text"] for row in rows])
    seconds = time.process_time() - began
    results = measure(rows, found)
    missed = results.pop("missed")
    results["sentences a second of processor time"] = len(rows) / seconds
    results["evasions caught"] = evasions(given.folder, union)
    print(json.dumps(results, indent=1, ensure_ascii=False))
    if given.tune:
        for kind, value, text in missed:
            print(f"{kind}: {value!r} in {text!r}")


if __name__ == "__main__":
    main()
