"""`stillroom ledger`: open, show, history, check and export the book of a population."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from stillroom.guarantee import Guarantee
from stillroom.privacy.accounts import Standing
from stillroom.privacy.chain import Entry, State
from stillroom.privacy.events import RELATION
from stillroom.privacy.ledger import Ledger

app = typer.Typer(help="The book of a population: ε and δ, what was spent, what is left.", no_args_is_help=True)

HIGH_EPSILON = 10.0
LDP = Guarantee.LDP_PER_VALUE.value

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file, such as clinic.ledger.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("open")
def open_(
    path: LedgerPath,
    epsilon: Annotated[float, typer.Option(help="Total ε that may ever be spent. Fixed for good.")],
    delta: Annotated[float, typer.Option(help="δ of that ε: a public constant, not made from the data.")] = 1e-6,
    population: Annotated[str | None, typer.Option(help="Public name of whom it is about; random by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Open a ledger: ε and δ are fixed for good. One that is there already is shown."""
    with Ledger.open(path, epsilon=epsilon, delta=delta, population=population) as ledger:
        state = ledger.state()
    if epsilon > HIGH_EPSILON:
        typer.echo(
            f"ε = {epsilon:g} is above {HIGH_EPSILON:g}: the guarantee on paper is weak; choose it only knowingly.",
            err=True,
        )
    _print_state(state, as_json)


@app.command()
def show(path: LedgerPath, as_json: AsJson = False) -> None:
    """Show what is spent and what is left, and the accounts of the guard. For the operator: it holds true counts."""
    with Ledger.open(path) as ledger:
        state, accounts = ledger.state(), ledger.accounts().standing()
    _print_state(state, as_json, accounts)


@app.command()
def history(path: LedgerPath, as_json: AsJson = False) -> None:
    """List all entries, oldest first. For the operator: it holds times and purposes."""
    with Ledger.open(path) as ledger:
        entries = ledger.history()
    if as_json:
        _print_json([_plain(entry) for entry in entries])
        return
    table = Table(title=f"{path.name}: {len(entries)} entries")
    for name in ("#", "time", "what", "run", "purpose"):
        table.add_column(name, overflow="fold")
    for name in ("ρ", "δ_ps", "not private"):
        table.add_column(name, justify="right")
    for entry in entries:
        table.add_row(
            str(entry.number),
            entry.time,
            entry.kind,
            entry.run,
            entry.purpose,
            f"{entry.rho:.4g}" if entry.events else "",
            f"{entry.delta_ps:.3g}" if entry.delta_ps else "",
            str(entry.times) if entry.times else "",
        )
    Console().print(table)


@app.command()
def check(path: LedgerPath, as_json: AsJson = False) -> None:
    """Check the hash chain and the sums of all entries, and print the head."""
    with Ledger.open(path) as ledger:
        head = ledger.check()
        entries = ledger.state().entries
    if as_json:
        _print_json({"entries": entries, "head": head})
    else:
        typer.echo(f"{entries} entries, each as it was written. Head: {head}")


@app.command()
def export(path: LedgerPath) -> None:
    """Print, as JSON, what may be published: budget, events, hashes; no times, purposes or paths."""
    with Ledger.open(path) as ledger:
        _print_json(ledger.export())


def _print_state(state: State, as_json: bool, accounts: Standing | None = None) -> None:
    guarded = accounts is not None and accounts.limit is not None
    if as_json:
        guard = {"guard": asdict(accounts)} if accounts is not None and guarded else {}
        _print_json({**asdict(state), "spent": _finite(state.spent), "relation": RELATION, **guard})
        return
    table = Table(title=f"Ledger of population {state.population}", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("ε spent", f"{state.spent:.4g} of {state.epsilon:g} at δ = {state.delta:g}")
    table.add_row("neighbours", RELATION)
    table.add_row("ρ spent, left", f"{state.rho:.4g}, {state.left_rho:.4g}")
    table.add_row("δ of partition selection", f"{state.delta_ps:.3g} spent")
    table.add_row("not private", f"{state.not_private} events that no ε covers")
    table.add_row("entries", str(state.entries))
    table.add_row("head", state.head)
    if accounts is not None and guarded:
        # Local privacy of single values: another thing than the ε above, never added to it.
        table.add_row("guard's draws", f"{accounts.draws} about {accounts.subjects} subjects, {LDP}")
        table.add_row("fullest account", f"ε = {accounts.most:g} of {accounts.limit:g} per subject")
        for caller, spent in accounts.callers.items():
            table.add_row(f"caller {caller}", f"ε = {spent:g} newly spent")
    Console().print(table)


def _plain(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if value not in ("", 0, ())}


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))
