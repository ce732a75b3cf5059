"""The root command: sub-commands that load when they are called, and every error as one sentence."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from stillroom.errors import StillroomError

COMMANDS = {
    "demo": "Make up a clinic, distil it, ask three questions, and check for leaks.",
    "plan": "Show what an ε buys, before any document is read.",
    "release": "Distil a private collection into a release.",
    "verify": "Check that a release is what its certificate says.",
    "inspect": "Show topics, samples, what was left out, and the costs of a release.",
    "ask": "Answer a question from a release, for free, or from guarded documents.",
    "guard": "Make retrieved texts safe: score, rewrite, ingest; policies and keys.",
    "ledger": "Open, show and check the book of a population's budget.",
    "models": "List, pull and check small models.",
}
"""Sub-command NAME lives in `stillroom.cli.NAME`, as the Typer app `app` or else as the function NAME."""

TRACEBACK = "STILLROOM_TRACEBACK"
"""Set to 1, it shows the trace of an unexpected error. For the operator's own screen: a trace may show private text."""

INTERRUPTED = 130


class Commands(TyperGroup):
    """The table above as a group. A command's module is imported when it is called, not to list it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in COMMANDS if _is_there(name)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.list_commands(ctx):
            return None
        if ctx.meta.get(_LISTING):
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name])
        return _load(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        ctx.meta[_LISTING] = True
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _interrupted()


_LISTING = "stillroom.listing"


def _is_there(name: str) -> bool:
    # Only a module that is not there is left out; one that fails to import is an error to see.
    return importlib.util.find_spec(f"stillroom.cli.{name}") is not None


def _load(name: str) -> Any:
    module = importlib.import_module(f"stillroom.cli.{name}")
    sub = getattr(module, "app", None)
    if sub is None:
        sub = typer.Typer()
        sub.command(name)(getattr(module, name))
    command = typer.main.get_command(sub)
    command.name = name
    # Completion is an option of the root, if anywhere.
    command.params = [each for each in command.params if each.name not in {"install_completion", "show_completion"}]
    return command


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if not asked:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        typer.echo(f"stillroom {version('stillroom')}")
    except PackageNotFoundError:
        typer.echo("stillroom, run from its source")
    raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Distil a private collection once, guard every query, keep the books."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Exit codes: 0 ok, 1 failure, 2 usage, 3 budget refused, 4 certificate mismatch, 5 leak found, 130 interrupted.
    An unexpected error prints its type alone: its text and the variables around it may hold private values.
    """
    code: object = 0
    try:
        try:
            typer.main.get_command(app).main(args=arguments, prog_name="stillroom")
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
    except KeyboardInterrupt:
        _interrupted()
    except BrokenPipeError:
        # The reader went away; nothing can be told to it, not even while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except StillroomError as wrong:
        _say(f"Error: {wrong}")
        code = wrong.exit_code
    except BaseException as wrong:  # a panic of a library in Rust is no Exception
        if os.environ.get(TRACEBACK) == "1":
            traceback.print_exception(wrong)
        _say(
            f"Error: an unexpected {type(wrong).__name__} ended the command; {TRACEBACK}=1 shows where, on your own "
            f"screen only, because a trace may show private text."
        )
        code = 1
    sys.exit(code if isinstance(code, int) else 0 if code is None else 1)


def _interrupted() -> NoReturn:
    _say("interrupted; run the same command again to go on")
    sys.exit(INTERRUPTED)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
