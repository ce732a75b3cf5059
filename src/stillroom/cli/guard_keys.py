"""stillroom guard key: the key that opens vault and draws."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from stillroom.errors import BadOption, FileMissing, GuardKeyWrong, OutputExists
from stillroom.guard.keys import Key
from stillroom.guard.memo import Memo
from stillroom.guard.vault import Vault
from stillroom.privacy.ledger import Ledger

keys = typer.Typer(help="Make the guard's key, or change it.", no_args_is_help=True)


@keys.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where it goes; must not exist. Keep a copy elsewhere.")],
) -> None:
    """Write a fresh key, readable by you alone. Without it nobody opens what it sealed."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as there:
        raise OutputExists(file) from there
    except OSError as wrong:
        raise FileMissing(file.parent) from wrong
    with os.fdopen(handle, "w", encoding="ascii") as out:
        out.write(f"{Key.new().secret.hex()}\n")
    typer.echo(f"{file}: keep a copy elsewhere, and tell stillroom with STILLROOM_GUARD_KEY_FILE={file}")


@keys.command()
def rotate(
    old: Annotated[Path, typer.Option(metavar="FILE", help="The key so far.")],
    new_: Annotated[Path, typer.Option("--new", metavar="FILE", help="The key from now on (stillroom guard key new).")],
    ledger: Annotated[Path | None, typer.Option(metavar="FILE", help="A ledger with draws.")] = None,
    vault: Annotated[Path | None, typer.Option(metavar="FILE", help="A vault.")] = None,
) -> None:
    """Seal draws and values anew for another key; they stay what they were. May be run again after a crash."""
    before, after = Key.load(old), Key.load(new_)
    if ledger is None and vault is None:
        raise BadOption("--ledger and --vault", "missing", "one of them, or both")
    for path in (ledger, vault):
        if path is not None and not path.exists():
            raise FileMissing(path)
    if ledger is not None:
        with Ledger.open(ledger) as book:
            limit = book.accounts().standing().limit
            if limit is None:
                typer.echo(f"{ledger}: nothing was ever drawn there")
            else:
                try:
                    Memo(book, before, limit=limit).rotate(after)
                except GuardKeyWrong:
                    Memo(book, after, limit=limit)
                typer.echo(f"{ledger} opens with the new key")
    if vault is not None:
        try:
            with Vault.open(vault, before) as opened:
                opened.rotate(after)
        except GuardKeyWrong:
            Vault.open(vault, after).close()
        typer.echo(f"{vault} opens with the new key")
