"""The guard's public dictionaries say where they come from, and are what their script makes of it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from stillroom.errors import UnknownName
from stillroom.guard import dictionaries
from stillroom.guard.mechanisms.surrogate import INVENTED
from stillroom.lexicon import zipf
from stillroom.testing import people

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "stillroom" / "guard" / "dictionaries"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    faker = pytest.importorskip("faker")
    pinned = next(
        (line for line in (ROOT / "constraints.txt").read_text().splitlines() if "faker==" in line.lower()), ""
    )
    if pinned and pinned.partition("==")[2] != faker.VERSION:
        pytest.skip(f"the files are made with {pinned}")
    loader = importlib.machinery.SourceFileLoader("dictionaries_script", str(ROOT / "scripts" / "dictionaries"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module


def test_every_file_says_where_it_comes_from() -> None:
    files = sorted(FOLDER.glob("*.txt"))
    assert len(files) == 7
    for file in files:
        assert file.read_text(encoding="utf-8").startswith(("# From Faker", "# Invented")), file.name


def test_the_files_are_what_the_script_makes(script: ModuleType) -> None:
    for name in script.FILES:
        assert (FOLDER / name).read_text(encoding="utf-8") == script.text(name), name
    assert not {name.lower() for name in dictionaries.pool("last_names")} & script.known_last_names()


@pytest.mark.parametrize("name", ["last_names", "towns"])
def test_no_invented_name_is_a_word_that_anybody_uses(name: str) -> None:
    assert [word for word in dictionaries.pool(name) if zipf(word.lower()) > 0] == []


def test_pools_are_large_and_hold_nothing_twice() -> None:
    for name, least in (("first_names", 300), ("last_names", 300), ("towns", 100), ("jobs", 150)):
        pool = dictionaries.pool(name)
        assert len(set(pool)) == len(pool) >= least
    for name in ("places", "countries", "organisations"):
        tree = dictionaries.tree(name)
        assert len(set(tree.nodes)) == len(tree.nodes) and () in tree.nodes
        assert all(node[:-1] in tree.nodes for node in tree.nodes if node)


def test_surrogates_are_none_of_the_made_up_people_of_demos_and_tests() -> None:
    theirs = {beginning + ending for beginning in people.BEGINNINGS for ending in people.ENDINGS}
    assert not theirs & INVENTED


def test_aliases_mean_nodes_that_are_there() -> None:
    known = set(dictionaries.tree("places").names) | set(dictionaries.tree("organisations").names)
    for line in dictionaries.lines("aliases"):
        alias, meant = line.split("\t")
        assert meant.casefold() in known and alias in known, line


def test_an_unknown_tree_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="countries, organisations, places"):
        dictionaries.tree("moons")
