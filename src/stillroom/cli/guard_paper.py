"""stillroom guard --mode paper: PA-HDP as published, without books, and with what it really guarantees."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.table import Table

from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.guard.build import build_paper
from stillroom.loading import load_embedder
from stillroom.release.inspect import printable


def without_books(**options: object) -> None:
    """Refuse options of the strict mode, which would do nothing here. Raises BadOption."""
    for name, value in options.items():
        if value is not None:
            raise BadOption(f"--{name}", "given", "left out with --mode paper, which has no policy, books or roles")


def rewrite_as_published(text: str, query: str, embedder: str, as_json: bool) -> None:
    """Print a text as PA-HDP gives it out; what that guarantees goes to standard error."""
    answer = build_paper(load_embedder(embedder)).sanitise(query, [text])
    if as_json:
        shown = {"text": answer.text, "report": answer.report.plain()}
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    typer.echo("\n".join(map(printable, answer.text.split("\n"))))
    typer.echo(answer.report.says(), err=True)


def score_as_published(text: str, query: str, embedder: str, as_json: bool) -> None:
    """Show each sentence, as it stands, with its risk and the tier that it has before the noise."""
    scored = build_paper(load_embedder(embedder)).scored(query, [text])
    if as_json:
        rows = [{"sentence": sentence, "risk": risk, "tier": tier.value} for sentence, risk, tier in scored]
        typer.echo(json.dumps({"guarantee": Guarantee.NONE.value, "sentences": rows}, ensure_ascii=False, indent=2))
        return
    table = Table()
    for name in ("risk", "sentence", "tier before noise"):
        table.add_column(name, overflow="fold")
    for sentence, risk, tier in scored:
        table.add_row(f"{risk:.2f}", printable(sentence), tier.value)
    Console(highlight=False, markup=False).print(table)
    typer.echo(f"Guarantee: {Guarantee.NONE.value}. These are the sentences as they stand.", err=True)
