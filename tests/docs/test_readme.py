"""README and tutorial are run: console blocks that need no model, and the Python with a toy one.

In what a block shows, … stands for anything, within a line or for several lines. `stillroom release` is done with the
toy model; other commands that need a model, and those that install, are not run.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.testing.noise import NoNoise
from stillroom.testing.toylm import ToyLM
from tests.cli.test_app import run

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "tutorial.md")
NEEDS_A_MODEL = ("demo", "ask", "release", "models pull")
distilling = importlib.import_module("stillroom.distil.run")  # stillroom.distil may be the function
TOYS = """
import stillroom.loading, stillroom.privacy.noise
from stillroom.embed.hashing import HashEmbedder
from stillroom.testing.noise import NoNoise
from stillroom.testing.toylm import ToyLM
stillroom.loading.load_lm = lambda name: ToyLM()
stillroom.loading.load_embedder = lambda name: HashEmbedder(16)
stillroom.privacy.noise.OpenDPNoise = NoNoise
"""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def commands(page: Path) -> Iterator[tuple[list[str], str]]:
    """Yield every command of the console blocks, and what is shown after it."""
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, shown = part.partition("\n")
            yield shlex.split(line, comments=True), shown


def fits(shown: str, printed: str) -> bool:
    lines = [re.escape(line.rstrip()).replace("…", ".*") for line in shown.rstrip().splitlines()]
    pattern = "\n".join("(?s:.*?)" if line == ".*" else line for line in lines)
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.rstrip().splitlines())) is not None


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files that the pages speak of, made up; models and noise are toys."""
    chance = random.Random(1)
    facts = {"Zonkitis": ("Blergon", ("fever", "rash", "pain")), "Snurflepox": ("Fixit", ("cough", "pain", "fever"))}
    rows = []
    for i in range(120):
        disease = list(facts)[i % 2]
        treatment, symptoms = facts[disease]
        note = f"Diagnosis: {disease} Treatment: {treatment} Symptoms: {' and '.join(chance.sample(symptoms, 2))}"
        rows.append({"id": f"n{i}", "patient_id": f"p{i}", "note": note})
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "visits.toml").write_text(blocks(PAGES[1], "toml")[0])
    monkeypatch.setattr(distilling, "load_lm", lambda name: ToyLM())
    monkeypatch.setattr(distilling, "OpenDPNoise", NoNoise)
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("page", "least"), [(PAGES[0], 1), (PAGES[1], 5)], ids=["README", "tutorial"])
def test_commands_do_what_the_page_shows(
    page: Path, least: int, clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = 0
    for command, shown in commands(page):
        if command[0] != "stillroom" or "--rehearse" in command or "rehearsal.release" in command:
            continue
        if " ".join(command[1:]).startswith(NEEDS_A_MODEL) and command[1] != "release":
            continue
        code = run(*command[1:])
        printed, error = capsys.readouterr()
        assert code == 0, error
        assert not shown or fits(shown, printed), f"{' '.join(command)} printed:\n{printed}"
        ran += 1
    assert ran >= least


def test_every_option_that_a_page_names_is_there() -> None:
    known = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for page in PAGES:
        for command, _ in commands(page):
            if command[0] != "stillroom":
                continue
            name = " ".join(command[1:3]) if command[1] in ("ledger", "models") else command[1]
            section = known.split(f"## stillroom {name}\n", 1)[1].split("\n## ", 1)[0]
            for option in (each for each in command if each.startswith("--")):
                assert re.search(rf"{option}[\s,]", section), f"{page.name}: stillroom {name} has no {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, clinic: Path) -> None:
    (code,) = blocks(page, "python")
    # In a process of its own: a page is read by people who have imported nothing yet.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    done = subprocess.run([sys.executable, "-c", TOYS + code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout


def test_links_within_the_repository_lead_somewhere() -> None:
    pages = [*PAGES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_tests_that_the_guarantees_name_are_there() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    sources = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py")}
    named = set(re.findall(r"\btest_\w+\.py", text)) | set(re.findall(r"\btest_\w+(?=`)", text))
    assert len(named) > 20
    for name in named:
        assert name in sources or any(f"def {name}(" in source for source in sources.values()), name
