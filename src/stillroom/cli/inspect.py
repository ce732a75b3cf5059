"""stillroom inspect: topics, samples, what was left out, and the bill."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stillroom.release.folder import Release
from stillroom.release.inspect import View, printable
from stillroom.release.inspect import inspect as view_of

app = typer.Typer()


@app.command("inspect")
def inspect(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The release folder.")],
    samples: Annotated[int, typer.Option(min=0, metavar="N", help="How many of its texts to show.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a release holds: topics with noisy sizes, sample texts, what was left out and why, and its costs."""
    view = view_of(Release.open(release), samples)
    if as_json:
        typer.echo(json.dumps(view.as_json(), ensure_ascii=False, indent=2))
    else:
        _show(view, Console(highlight=False, soft_wrap=False))


def _show(view: View, console: Console) -> None:
    said = [
        f"Run {view.run}: method {view.method}, preset {view.preset}, unit {view.unit}, guarantee {view.guarantee}.",
        f"{view.texts} texts on {len(view.topics)} topics; {view.dropped} dropped (they spoke of nothing released).",
        view.meaning,
        f"Neighbouring collections: {view.relation}.",
    ]
    for line in said:
        console.print(_plain(line))
    _table(
        console,
        "Topics",
        ("topic", "noisy size", "texts", "words", "goes with"),
        (
            (
                topic.name,
                "not released" if topic.size is None else f"{topic.size:.0f}",
                str(topic.parts),
                ", ".join(topic.words),
                ", ".join(word.word for word in topic.together),
            )
            for topic in view.topics
        ),
    )
    topics: dict[str, list[str]] = {}
    for topic in view.topics:
        for word in topic.together:
            topics.setdefault(word.word, []).append(topic.name)
    if view.left_out:
        _table(
            console,
            "Left out: words without a topic of their own",
            ("word", "why", "spoken of in"),
            (
                (
                    out.word,
                    out.reason,
                    ", ".join(t.name for t in view.topics if out.word in {w.word for w in t.together}),
                )
                for out in view.left_out
            ),
        )
    _table(
        console,
        f"Costs (ρ = {view.rho:.4g}, ε = {view.epsilon:.4g} at δ = {view.delta:g})",
        ("step", "mechanism", "times", "ρ", "share", "δ_ps"),
        (
            (row.event, row.kind, str(row.times), f"{row.rho:.4g}", f"{row.share:.0%}", f"{row.delta_ps:.2g}")
            for row in view.spent
        ),
    )
    for text in view.samples:
        console.print()
        console.print(Text(printable(f"{text.id} ({text.topic}, part {text.part})"), style="bold"))
        console.print(_plain(text.text))


def _plain(text: str) -> Text:
    # Never read as markup, and without what commands a terminal: a model wrote it.
    return Text(printable(text))


def _table(console: Console, title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(title=_plain(title), title_justify="left", title_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_plain(cell) for cell in row))
    console.print()
    console.print(table)
