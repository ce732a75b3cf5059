"""Writes docs/cli.md from the help of every command: python docs/generate.py

tests/docs/test_cli_help.py fails while the page is not what this would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from stillroom.cli.app import COMMANDS, app

PAGE = Path(__file__).with_name("cli.md")
WIDTH = 100
HEAD = """# Commands

Written by `python docs/generate.py` from the help of the commands; do not edit by hand.

Exit codes: 0 ok, 1 failure, 2 usage, 3 budget refused, 4 certificate mismatch, 5 leak found, 130 interrupted.

| variable | what it is |
|---|---|
| `STILLROOM_CACHE` | folder of the small models; `~/.cache/stillroom` |
| `STILLROOM_HOME` | folder with keyed fingerprints of this installation's units; `~/.local/share/stillroom` |
| `STILLROOM_API_KEY` | key of a hosted model, for `--lm https://address/v1#model` |
| `STILLROOM_GUARD_KEY` `STILLROOM_GUARD_KEY_FILE` | the guard's key, as 64 hexadecimal digits, or a file with it |
| `STILLROOM_TRACEBACK` | 1 shows the trace of an unexpected error; it may show private text |
"""


def page() -> str:
    """Return the whole page. It depends on the commands alone, not on the terminal or the environment."""
    sections = [f"## {name}\n\n```text\n{help_}\n```\n" for name, help_ in pages()]
    return "\n".join([HEAD, *sections])


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the help of the root, of every command, and of every sub-command."""
    root = typer.main.get_command(app)
    yield "stillroom", _help(root, "stillroom", None)[0]
    for name in COMMANDS:
        command = root.get_command(_context(root, "stillroom", None), name)  # type: ignore[attr-defined]
        text, context = _help(command, name, _context(root, "stillroom", None))
        yield f"stillroom {name}", text
        yield from _below(f"stillroom {name}", command, context)


def _below(name: str, command: Any, context: Any) -> Iterator[tuple[str, str]]:
    for sub, inner in getattr(command, "commands", {}).items():
        text, here = _help(inner, sub, context)
        yield f"{name} {sub}", text
        yield from _below(f"{name} {sub}", inner, here)


def _context(command: Any, name: str, parent: Any) -> Any:
    return command.context_class(
        command, info_name=name, parent=parent, terminal_width=WIDTH, **command.context_settings
    )


def _help(command: Any, name: str, parent: Any) -> tuple[str, Any]:
    command.rich_markup_mode = None  # plain text, whatever the terminal is
    context = _context(command, name, parent)
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    return "\n".join(lines).strip(), context


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
