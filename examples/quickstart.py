"""The Python API in one page, on a made-up clinic: python examples/quickstart.py [LANGUAGE MODEL [FOLDER]]"""

import sys
from pathlib import Path

import stillroom
from stillroom.testing import clinic


def main(lm: str = "smollm2", folder: str = "quickstart") -> stillroom.Release:
    here = Path(folder)
    here.mkdir(exist_ok=True)  # run again, it goes on where it was interrupted
    clinic.write(here / "notes.jsonl", seed=1, notes=300)  # instead of your own collection

    notes = stillroom.read(here / "notes.jsonl", text="note", unit="patient_id")
    ledger = stillroom.Ledger.open(here / "clinic.ledger", epsilon=10, delta=1e-6, population="quickstart")
    plan = stillroom.plan(epsilon=10, delta=1e-6, form="clinic", unit="patient_id")  # opens no file
    print(f"a fact must be stated by about {plan.least_units} patients")
    release = stillroom.distil(notes, plan, ledger=ledger, lm=lm, out=here / "notes.release")  # spends, once
    answer = stillroom.Rag(release, lm=lm).ask("Which treatment helps Snurflepox?")  # spends nothing
    print(f"{answer.text} (from {', '.join(answer.citations) or 'nothing'}; ε = {ledger.state().spent:.3g} spent)")
    return release


if __name__ == "__main__":
    main(*sys.argv[1:])
