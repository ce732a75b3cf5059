"""stillroom plan: what an ε buys, before any document is read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from stillroom.cli.progress import showing
from stillroom.distil.forms import FORMS
from stillroom.distil.plan import FILTERS, PARTS, Plan
from stillroom.distil.plan import plan as make
from stillroom.distil.presets import PRESETS
from stillroom.documents import Collection
from stillroom.errors import BadOption
from stillroom.loading import EMBEDDER, LM
from stillroom.privacy.events import RELATION

app = typer.Typer()

Epsilon = Annotated[float, typer.Option(help="Budget ε of this release.")]
Delta = Annotated[float, typer.Option(help="Budget δ: a public constant, never made from a number of documents.")]
PresetName = Annotated[str, typer.Option(help=f"Settings: {', '.join(PRESETS)}.")]
FormName = Annotated[
    str | None,
    typer.Option(
        help=f"Public form of a released text: {', '.join(FORMS)}, FILE.toml, or 'Label: draws, …'. "
        "Without it: free text, which needs far more support."
    ),
]
Task = Annotated[str, typer.Option(help="The public task, in one sentence.")]
UnitField = Annotated[str, typer.Option("--unit", help="Field that names the protected unit; the document by default.")]
Without = Annotated[str, typer.Option(help=f"Parts to switch off, with commas: {', '.join(PARTS)}.")]
TopicsPerUnit = Annotated[int | None, typer.Option(min=1, help="L: topics of one unit at most.")]

SelfFilter = Annotated[
    str | None, typer.Option(help=f"Question by which the model may drop released texts: {', '.join(FILTERS)}.")
]

Prose = Annotated[bool, typer.Option("--prose", help="Also write each filled form out as prose, for free.")]


def parts_of(without: str) -> tuple[str, ...]:
    """Return the parts named in --without."""
    return tuple(part.strip() for part in without.split(",") if part.strip())


@app.command("plan")
def plan(
    epsilon: Epsilon = 10.0,
    delta: Delta = 1e-6,
    preset: PresetName = "default",
    form: FormName = None,
    task: Task = "",
    unit: UnitField = "document",
    without: Without = "",
    topics_per_unit: TopicsPerUnit = None,
    self_filter: SelfFilter = None,
    prose: Prose = False,
    documents: Annotated[int | None, typer.Option(help="Public figure: about how many documents.")] = None,
    words: Annotated[int | None, typer.Option(help="Public figure: about how many words a document has.")] = None,
    rehearse: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Run the whole method on this PUBLIC or MADE-UP collection, to see the "
            "quality before an irreversible spend. Never on private data: it has no ledger and no guarantee.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the rehearsed release.")] = None,
    text_field: Annotated[str | None, typer.Option(help="Field with the text, for --rehearse.")] = None,
    lm: Annotated[str, typer.Option(help="Language model, for --rehearse.")] = LM,
    embedder: Annotated[str, typer.Option(help="Embedder, for --rehearse with a similarity cut.")] = EMBEDDER,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what an ε buys: noise, clip, and how many units must state a fact. Opens no file of the collection."""
    made = make(
        epsilon=epsilon, delta=delta, preset=preset, form=form, task=task, unit=unit, without=parts_of(without),
        topics_per_unit=topics_per_unit, selffilter=self_filter, prose=prose, documents=documents, words=words,
    )  # fmt: skip
    given = None if rehearse is None else _given(made, rehearse, out, text_field)
    if as_json:
        typer.echo(json.dumps(_record(made), ensure_ascii=False, indent=2))
    else:
        show(made)
    if given is not None:
        _rehearse(made, *given, lm, embedder)


def _given(made: Plan, source: Path, out: Path | None, text_field: str | None) -> tuple[Collection, Path]:
    """Return what is rehearsed on and where the release goes: checked before anything is printed."""
    from stillroom import readers
    from stillroom.release.folder import check_free

    if out is None:
        raise BadOption("--out", "missing", "the folder of the rehearsed release, such as rehearsal.release")
    check_free(out)
    unit = None if made.record.unit == "document" else made.record.unit
    collection = readers.read(source, text=text_field, unit=unit)
    readers.check(collection)
    return collection, out


def _rehearse(made: Plan, collection: Collection, out: Path, lm: str, embedder: str) -> None:
    from stillroom.distil import run

    with showing() as progress:
        written = run.rehearse(collection, made, lm=lm, embedder=embedder, out=out, progress=progress)
    typer.echo(f"rehearsed: {len(written.texts)} texts in {out} (no guarantee; see: stillroom inspect {out})")


def show(made: Plan, console: Console | None = None) -> None:
    """Print a plan for people."""
    to, record = console or Console(), made.record
    to.print(
        f"[bold]{record.preset}[/bold] ({record.method}), ε = {record.epsilon:g}, δ = {record.delta:g}, "
        f"neighbouring: {RELATION}"
    )
    table = Table("step", "what", "ρ", box=None, pad_edge=False, header_style="bold")
    words, topics, text = record.keywords, record.topics, record.text
    what = {
        "keywords": f"K = {words.per_unit} words a unit, σ = {words.sigma:.3g}"
        + (f", unlisted words above {words.threshold:.1f}" if words.threshold else ""),
        "topic sizes": f"σ = {topics.size_sigma:.3g}" if topics.size_sigma else "",
        "co-keywords": f"K_c = {record.cokeywords.per_unit}, σ = {record.cokeywords.sigma:.3g}"
        if record.cokeywords else "",
        "topic mean": f"σ = {record.cut.mean_sigma:.3g}" if record.cut else "",
        "similarity cut": f"ε_θ = {record.cut.epsilon_theta:g}" if record.cut else "",
        "text": f"{text.draws} draws a text, clip c = {text.clip:.3f}, L = {topics.per_unit} topics a unit",
    }  # fmt: skip
    for step, rho in made.split.items():
        table.add_row(step, what.get(step, ""), f"{rho:.4f}")
    table.add_row("all", f"δ of partition selection {made.delta_ps:.2g}", f"{made.rho:.4f}")
    to.print(table)
    if text.form is not None:
        slots = "; ".join(f"{slot.label} ({slot.draws})" for slot in text.form.slots)
        to.print(f"form {text.form.name}: {slots}")
    else:
        to.print("free text: most draws go to wording; a public form (--form) needs far less support")
    to.print(f"[bold]a fact must be stated by about {made.least_units} units[/bold] to come through:")
    for support in made.support:
        to.print(f"  {math.ceil(support.units):4d}  {support.condition}")
    if made.seconds is not None:
        to.print(f"about {max(1, round(made.seconds / 60))} min with the small model on two cores")
    for warning in made.warnings:
        to.print(f"[yellow]warning:[/yellow] {warning}")


def _record(made: Plan) -> dict[str, object]:
    return {
        "plan": made.record.model_dump(mode="json"),
        "rho": made.rho,
        "delta_ps": made.delta_ps,
        "split": dict(made.split),
        "least_units": made.least_units,
        "support": [{"condition": s.condition, "units": s.units} for s in made.support],
        "seconds": made.seconds,
        "warnings": list(made.warnings),
        "relation": RELATION,
    }
