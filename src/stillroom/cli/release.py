"""stillroom release: a private collection becomes a release; the budget is spent once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from stillroom import readers
from stillroom.cli.plan import (
    Delta,
    Epsilon,
    FormName,
    PresetName,
    Prose,
    SelfFilter,
    Task,
    TopicsPerUnit,
    UnitField,
    Without,
    parts_of,
    show,
)
from stillroom.cli.progress import showing
from stillroom.distil import forms, run
from stillroom.distil.plan import plan as make
from stillroom.errors import BadOption
from stillroom.loading import EMBEDDER, LM, load_lm
from stillroom.privacy.ledger import Ledger
from stillroom.release import folder

app = typer.Typer()


@app.command("release")
def release(
    collection: Annotated[
        Path | None, typer.Argument(metavar="COLLECTION", help="JSONL, CSV, Parquet, or a folder.")
    ] = None,
    ledger: Annotated[Path, typer.Option(metavar="FILE", help="The population's ledger.")] = Path("stillroom.ledger"),
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the release goes; must not exist.")] = Path(
        "stillroom.release"
    ),
    text_field: Annotated[str | None, typer.Option(help="Field with the text.")] = None,
    id_field: Annotated[str | None, typer.Option(help="Field with the document's id.")] = None,
    unit: UnitField = "document",
    epsilon: Epsilon = 10.0,
    delta: Delta = 1e-6,
    preset: PresetName = "default",
    form: FormName = None,
    propose_form: Annotated[
        bool,
        typer.Option("--propose-form", help="Print a form that the model proposes from --task alone; spends nothing."),
    ] = False,
    task: Task = "",
    without: Without = "",
    topics_per_unit: TopicsPerUnit = None,
    self_filter: SelfFilter = None,
    prose: Prose = False,
    lm: Annotated[str, typer.Option(help="Language model with scores: a name, a folder, a .gguf file, a hub id.")] = LM,
    embedder: Annotated[str, typer.Option(help="Embedder, where the preset has a similarity cut.")] = EMBEDDER,
    engine: Annotated[
        str, typer.Option(help="local, or ray: on workers of a cluster (RAY_ADDRESS, else one started here).")
    ] = "local",
    workers: Annotated[int, typer.Option(help="Models on the cluster, with --engine ray; one a CPU at most.")] = 2,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give up the unfinished run of --out; its budget stays spent.")
    ] = False,
) -> None:
    """Distil a private collection. The same command goes on after a crash; what is spent is never given back."""
    if abandon:
        with Ledger.open(ledger) as book:
            run.abandon(out, book)
        typer.echo(f"given up: {out}; its budget stays spent")
        return
    if propose_form:
        _propose(task, lm)
        return
    if collection is None:
        raise BadOption("COLLECTION", "missing", "a file or folder of documents")
    with showing() as progress:
        if not run.run_folder(out).exists():
            folder.check_free(out)
        documents = readers.read(collection, text=text_field, id=id_field, unit=None if unit == "document" else unit)
        made = make(
            epsilon=epsilon, delta=delta, preset=preset, form=form, task=task, unit=unit,
            without=parts_of(without), topics_per_unit=topics_per_unit, selffilter=self_filter, prose=prose,
        )  # fmt: skip
        with Ledger.open(ledger) as book:
            written = run.release(
                documents, made, ledger=book, out=out, lm=lm, embedder=embedder, progress=progress, engine=engine,
                workers=workers,
            )  # fmt: skip
            state = book.state()
    console = Console()
    show(made, console)
    console.print(f"[bold]{len(written.texts)} texts[/bold] in {out}")
    console.print(written.certificate.meaning)
    console.print(f"ledger {ledger}: ε = {state.spent:.3g} of {state.epsilon:g} spent at δ = {state.delta:g}")


def _propose(task: str, lm: str) -> None:
    """Print the form that the model proposes, to be looked at and given as --form; it sees the public task alone."""
    if not task:
        raise BadOption("--task", "empty", "a sentence that says what the release is for, as --propose-form needs one")
    with showing() as progress:
        progress.stage("proposing a form", None)
        form = forms.propose(task, load_lm(lm))
    said = ", ".join(f"{slot.label}: {slot.draws}" for slot in form.slots)
    if form.name == forms.NONE_PROPOSED:
        typer.echo(f"{lm} proposed nothing that could be a form. One line for everything would be: --form '{said}'")
        typer.echo(f"Better write your own, or take a shipped one: --form {', --form '.join(forms.FORMS)}.")
    else:
        typer.echo(f"proposed, nothing spent. Change it as you like, and release with: --form '{said}'")
