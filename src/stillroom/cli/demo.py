"""stillroom demo: the whole story on a made-up clinic, in a few minutes."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from stillroom import readers
from stillroom.cli.plan import show
from stillroom.cli.progress import showing
from stillroom.distil import run
from stillroom.distil.plan import plan as make
from stillroom.errors import LeakFound
from stillroom.evals.facts import canaries_in, names
from stillroom.loading import EMBEDDER, LM, load_embedder, load_lm
from stillroom.privacy.ledger import Ledger
from stillroom.rag import Rag
from stillroom.release.folder import Release
from stillroom.release.schema import CERTIFICATE
from stillroom.release.verify import verify
from stillroom.testing import clinic

app = typer.Typer()

FILES = ("clinic.jsonl", "clinic.ledger", "clinic.release")


@app.command("demo")
def demo(
    folder: Annotated[
        Path, typer.Option(help="Where the demo's files go; what an earlier demo left is replaced.")
    ] = Path(".demo"),
    seed: Annotated[int, typer.Option(help="Of the made-up notes; the noise has no seed.")] = 1,
    notes: Annotated[int, typer.Option(min=60, help="How many notes.")] = 300,
    epsilon: Annotated[float, typer.Option(help="Budget ε.")] = 10.0,
    delta: Annotated[float, typer.Option(help="Budget δ.")] = 1e-6,
) -> None:
    """Make up a clinic, distil it, ask three questions, check that nothing was spent and nothing leaked."""
    console = Console(highlight=False)
    folder.mkdir(parents=True, exist_ok=True)
    _clear(folder)
    collection, ledger, out = (folder / name for name in FILES)
    made_up = clinic.write(collection, seed, notes)
    console.print(f"[bold]1. A made-up clinic[/bold]: {len(made_up)} notes in {collection}, one of them:")
    console.print(f"   {made_up[0]['note']}", style="dim")

    console.print("\n[bold]2. The plan[/bold]: what the budget buys")
    plan = make(epsilon=epsilon, delta=delta, form="clinic", unit="patient_id", task="Which treatment helps?")
    show(plan, console)

    console.print("\n[bold]3. Distilling[/bold]: pays once")
    # A demo's made-up patients have no place among the units of this installation's real ledgers.
    with (
        Ledger.open(
            ledger, epsilon=epsilon, delta=delta, population="demo clinic", installation=folder / "home"
        ) as book,
        showing() as progress,
    ):
        start = time.monotonic()
        documents = readers.read(collection, text="note", unit="patient_id")
        lm = load_lm(LM)
        release = run.release(documents, plan, ledger=book, out=out, lm=lm, progress=progress)
        took = time.monotonic() - start
        paid = book.state()
    for text in release.texts:
        console.print(escape(f"   {text.id}: {text.text}".replace("\n", " | ")))
    console.print(f"   {len(release.texts)} texts in {took:.0f} s; ε = {paid.spent:.3g} of {paid.epsilon:g} spent")

    console.print("\n[bold]4. Asking[/bold]: costs nothing")
    rag = Rag(release, lm, load_embedder(EMBEDDER))
    for disease in list(clinic.FACTS)[:3]:
        question = f"Which treatment helps {disease}?"
        answer = rag.ask(question)
        right = _judged(answer.text, disease, release)
        console.print(
            f"   {question}\n   → {escape(answer.text)}  ({right}; from {', '.join(answer.citations) or 'nothing'})"
        )
    with Ledger.open(ledger, installation=folder / "home") as book:
        after = book.state()
    same = after.rho == paid.rho and after.entries == paid.entries
    console.print(
        f"   ledger before and after: ε = {paid.spent:.4g} and {after.spent:.4g}"
        f" ({'it did not move' if same else 'IT MOVED'})"
    )

    console.print("\n[bold]5. Checking[/bold]")
    canaries = clinic.canaries(made_up)
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(out.iterdir())}
    certificate = files.pop(CERTIFICATE)
    found = canaries_in(files.values(), [certificate], canaries)
    console.print(f"   {found} of {len(canaries)} names, phone numbers and record numbers stand in the release")
    verify(out)
    console.print("   the certificate's arithmetic and bytes hold")
    topics, placed = _right(release), sum(_placed(release, disease) for disease in clinic.FACTS)
    of = len(clinic.FACTS)
    console.print(
        f"   right treatment released for {topics} of {of} diseases, each on its own line for {placed} of {of}"
    )
    console.print(f"\n[bold]What it means[/bold]: {release.certificate.meaning}")
    console.print(f"\nAsk more: stillroom ask {out} 'Which treatment helps {list(clinic.FACTS)[3]}?'")
    if found:
        raise LeakFound(found, len(canaries))


def _right(release: Release) -> int:
    """Return for how many diseases a released text names both the disease and its treatment."""
    return sum(
        any(names(text.text, disease) and names(text.text, fact.treatment) for text in release.texts)
        for disease, fact in clinic.FACTS.items()
    )


def _placed(release: Release, disease: str) -> bool:
    """Say whether a released form has the disease on its line and the treatment on its own."""
    treatment = clinic.FACTS[disease].treatment
    return any(
        names(text.fields.get("Diagnosis", ""), disease) and names(text.fields.get("Treatment", ""), treatment)
        for text in release.texts
    )


def _judged(answer: str, disease: str, release: Release) -> str:
    if not names(answer, clinic.FACTS[disease].treatment):
        return "not right"
    if not _placed(release, disease):
        return "names it, but the release mixes up disease and treatment"
    return "right" if names(answer, disease) else "names the treatment, but not of what"


def _clear(folder: Path) -> None:
    for name in FILES:
        for path in (folder / name, folder / f"{name}.run", folder / f"{name}-wal", folder / f"{name}-shm"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    shutil.rmtree(folder / "home", ignore_errors=True)
