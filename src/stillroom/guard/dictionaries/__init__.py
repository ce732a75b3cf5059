"""Public dictionaries: what the guard draws from. Fixed files; nothing in them comes from a collection (rule 30)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from stillroom.errors import UnknownName
from stillroom.guard.dictionaries.nodes import Tree


def lines(name: str) -> tuple[str, ...]:
    """Return the lines of a dictionary's file without its comments; the file says where it comes from."""
    text = (files(__name__) / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


@cache
def pool(name: str) -> tuple[str, ...]:
    """Return a list of words: "first_names", "last_names", "towns" or "jobs"."""
    return lines(name)


@cache
def tree(name: str) -> Tree:
    """Return a public tree.

    "places": continents, countries, towns. "countries": the same without towns, for noise that leaves more of the
    truth: the fewer wrong answers there are, the oftener a right one is drawn. "organisations": sectors and kinds; an
    organisation is found there by the kind that its name names ("… Hospital").

    Raises UnknownName.
    """
    if name == "countries":
        return tree("places").cut(2)
    if name not in TREES:
        raise UnknownName("public tree", name, [*TREES, "countries"])
    root, by_words = TREES[name]
    paths = [tuple(line.split("\t")) for line in lines(name)]
    aliases = dict(line.split("\t") for line in lines("aliases"))
    return Tree.of(name, root, paths, aliases=aliases, by_words=by_words)


TREES = {"places": ("somewhere", False), "organisations": ("an organisation", True)}
"""What the root of each tree is called, and whether a value is also looked for by the words that it holds."""
