"""stillroom guard: what a policy does to a text, documents read into a vault, policies and keys."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from stillroom import readers
from stillroom.cli.guard_keys import keys
from stillroom.cli.guard_options import (
    POLICY,
    CallerOrNone,
    KeyFile,
    LedgerFile,
    Mode,
    ModeName,
    PolicyName,
    PolicyOrNone,
    Role,
)
from stillroom.cli.guard_paper import rewrite_as_published, score_as_published, without_books
from stillroom.cli.guard_policies import policies
from stillroom.cli.progress import showing
from stillroom.documents import Document, content_id
from stillroom.errors import FileMissing
from stillroom.guard.keys import Key
from stillroom.guard.policy import load_policy
from stillroom.guard.strict import LONGEST_PASSAGE, Guard
from stillroom.loading import EMBEDDER
from stillroom.privacy.ledger import Ledger
from stillroom.release.inspect import printable

app = typer.Typer(help="Make retrieved texts safe: score, rewrite, ingest; policies and keys.", no_args_is_help=True)
app.add_typer(policies, name="policy")
app.add_typer(keys, name="key")

TextFile = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A text; standard input by default.")]
Embed = Annotated[str, typer.Option("--embedder", help="Embedder: a name, a folder or a hub id.")]
Query = Annotated[str, typer.Option(help="The question at hand; without one, every text counts as the riskiest.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def score(
    file: TextFile = None,
    query: Query = "",
    mode: ModeName = Mode.strict,
    policy: PolicyOrNone = None,
    role: Role = None,
    embedder: Embed = EMBEDDER,
    as_json: AsJson = False,
) -> None:
    """Show the risk of a question against each sentence's template, and the tier of each value. It draws nothing."""
    text = _read(file)
    if mode is Mode.paper:
        without_books(policy=policy, role=role)
        score_as_published(text, query, embedder, as_json)
        return
    with Guard(policy or POLICY, embedder=embedder) as guard:
        scored = guard.score(query, [text], role=role)
    if as_json:
        _print([{"template": s.template, "risk": s.risk, "tiers": s.tiers} for s in scored])
        return
    table = Table()
    for name in ("risk", "template", "tiers"):
        table.add_column(name, overflow="fold")
    for each in scored:
        tiers = ", ".join(f"{name}: {tier}" for name, tier in each.tiers.items())
        table.add_row(f"{each.risk:.2f}", printable(each.template), tiers, style=None)
    Console(highlight=False, markup=False).print(table)


@app.command()
def rewrite(
    file: TextFile = None,
    query: Query = "",
    mode: ModeName = Mode.strict,
    policy: PolicyOrNone = None,
    ledger: LedgerFile = None,
    unit: Annotated[str | None, typer.Option(help="Whom the text is about; without one nothing is noisy.")] = None,
    key: KeyFile = None,
    caller: CallerOrNone = None,
    role: Role = None,
    embedder: Embed = EMBEDDER,
    as_json: AsJson = False,
) -> None:
    """Print a text as the caller may read it in answer to a question; the receipt goes to standard error."""
    text = _read(file)
    if mode is Mode.paper:
        without_books(policy=policy, ledger=ledger, unit=unit, key=key, caller=caller, role=role)
        rewrite_as_published(text, query, embedder, as_json)
        return
    document = Document(content_id(text), text, content_id(text) if unit is None else readers.unit_id(unit))
    book = None if ledger is None else Ledger.open(ledger)
    try:
        with Guard(policy or POLICY, ledger=book, key=_key(key), embedder=embedder) as guard:
            answer = guard.sanitise(query, [document], caller=caller or "local", role=role)
    finally:
        if book is not None:
            book.close()
    if as_json:
        _print({"text": answer.text, "receipt": answer.receipt.plain()})
        return
    typer.echo("\n".join(map(printable, answer.text.split("\n"))))
    typer.echo(answer.receipt.says(), err=True)
    if len(text) > LONGEST_PASSAGE:
        typer.echo(f"Only the first {LONGEST_PASSAGE:,} characters were read: split the text for the rest.", err=True)


@app.command()
def ingest(
    collection: Annotated[Path, typer.Argument(metavar="COLLECTION", help="JSONL, CSV, Parquet, or a folder.")],
    vault: Annotated[Path, typer.Option(metavar="FILE", help="Where values are kept, encrypted.")] = Path(
        "stillroom.vault"
    ),
    policy: PolicyName = "clinic",
    key: KeyFile = None,
    text_field: Annotated[str | None, typer.Option(help="Field with the text.")] = None,
    id_field: Annotated[str | None, typer.Option(help="Field with the document's id.")] = None,
    unit: Annotated[str | None, typer.Option(help="Field with whom a document is about.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes that read at once.")] = 1,
) -> None:
    """Read documents into a vault: from then on their templates alone are searched. It may be run again."""
    documents = readers.read(collection, text=text_field, id=id_field, unit=unit)
    with showing() as progress:
        # How many documents there are is nobody's business: a stage without a total.
        progress.stage("checking the collection", None)
        readers.check(documents)
        progress.stage("reading", None)
        with Guard(load_policy(policy), vault=vault, key=_key(key)) as guard:
            for _ in guard.ingest(documents, processes=processes):
                pass
    typer.echo(f"{vault} holds what {collection} says; ask it: stillroom ask {vault} QUESTION --source raw")


def _read(file: Path | None) -> str:
    if file is None or str(file) == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError as missing:
        raise FileMissing(file) from missing


def _key(file: Path | None) -> Key | None:
    return None if file is None else Key.load(file)


def _print(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
