"""docs/cli.md is what the commands say of themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from stillroom.cli.app import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_is_not_stale(generate: ModuleType) -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == generate.page(), "stale: run python docs/generate.py"


def test_it_has_every_command_and_every_sub_command(generate: ModuleType) -> None:
    names = [name for name, _ in generate.pages()]
    assert {f"stillroom {name}" for name in COMMANDS} <= set(names)
    assert {"stillroom ledger open", "stillroom models pull", "stillroom guard policy show"} <= set(names)


def test_the_page_does_not_depend_on_the_terminal(generate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert generate.page() == (DOCS / "cli.md").read_text(encoding="utf-8")
