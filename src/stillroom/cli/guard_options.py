"""Options of every command that goes through the guard."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Mode(StrEnum):
    """How a text is made safe, or only said to be."""

    strict = "strict"
    paper = "paper"


ModeName = Annotated[
    Mode, typer.Option(help="strict; or paper, which is PA-HDP as published, to be measured and not relied on.")
]
POLICY = "clinic"
_POLICY = typer.Option(
    "--policy", help="clinic (where none is given), finance, hr, legal, or a TOML file.", metavar="NAME|FILE"
)
_CALLER = typer.Option("--caller", help="Who asks, as you name them: has a quota.")
PolicyName = Annotated[str, _POLICY]
PolicyOrNone = Annotated[str | None, _POLICY]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="The population's ledger; without one, all are placeholders."),
]
KeyFile = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="The key; STILLROOM_GUARD_KEY or …_KEY_FILE by default.")
]
Role = Annotated[str | None, typer.Option(help="The caller's role in the policy.")]
Caller = Annotated[str, _CALLER]
CallerOrNone = Annotated[str | None, _CALLER]
