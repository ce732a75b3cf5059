"""A public tree: every value is one of its nodes, and how far nodes lie apart is known to everybody."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillroom.text import normalise

Path = tuple[str, ...]
_PARTS = re.compile(r"\s*[,;/()]\s*")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes as paths from the root, which is (), sorted; made by `Tree.of`.

    Attributes:
        name: of the dictionary.
        root: what the root is called in a text.
        nodes: all of them, inner ones too.
        names: a name in small letters to the node that it means; where several nodes carry it, to what they share.
        by_words: whether a value that is no name is looked for by the longest name that its words hold.
    """

    name: str
    root: str
    nodes: tuple[Path, ...]
    names: Mapping[str, Path]
    by_words: bool

    @classmethod
    def of(
        cls, name: str, root: str, paths: Iterable[Path], *, aliases: Mapping[str, str] | None = None, by_words: bool
    ) -> Tree:
        """Return the tree of these paths and all that lie above them.

        Args:
            aliases: other names of nodes; those of nodes that are not here are left out.
        """
        nodes = {path[:depth] for path in paths for depth in range(len(path) + 1)} | {()}
        names: dict[str, Path] = {}
        for node in sorted(nodes - {()}):
            key = _key(node[-1])
            names[key] = _shared(names[key], node) if key in names else node
        for alias, meant in (aliases or {}).items():
            if _key(meant) in names:
                names.setdefault(_key(alias), names[_key(meant)])
        return cls(name, root, tuple(sorted(nodes)), names, by_words)

    def cut(self, depth: int) -> Tree:
        """Return the tree without what lies deeper; names of deeper nodes mean what is left of their paths."""
        nodes = tuple(node for node in self.nodes if len(node) <= depth)
        names = {name: node[:depth] for name, node in self.names.items()}
        return Tree(f"{self.name} to depth {depth}", self.root, nodes, names, self.by_words)

    def find(self, value: str) -> int:
        """Return the number of the node that a value means; the root's where nobody knows it (rule 30).

        A value is known by its name or an alias, in any letters; else by the first part between commas that is; else,
        with `by_words`, by the longest name among its words.
        """
        whole = _key(value)
        for candidate in (whole, *_PARTS.split(whole)):
            if candidate in self.names:
                return self._number[self.names[candidate]]
        if self.by_words:
            held = f" {' '.join(_WORD.findall(whole))} "
            known = [name for name in self.names if f" {name} " in held]
            if known:
                return self._number[self.names[max(known, key=lambda name: (len(name), name))]]
        return self._number[()]

    def says(self, number: int) -> str:
        """Return what a node is called in a text."""
        node = self.nodes[number]
        return node[-1] if node else self.root

    @cached_property
    def distances(self) -> NDArray[np.int64]:
        """The number of steps from node to node, shape (nodes, nodes)."""
        depth = np.array([len(node) for node in self.nodes])
        shared = np.zeros((len(self.nodes), len(self.nodes)), dtype=np.int64)
        for level in range(1, int(depth.max()) + 1):
            prefixes: dict[Path, int] = {}
            # A node that ends above this level shares nothing here, not even with itself.
            marks = np.array(
                [prefixes.setdefault(n[:level], len(prefixes)) if len(n) >= level else -1 for n in self.nodes]
            )
            shared += (marks[:, None] == marks[None, :]) & (marks[:, None] >= 0)
        distances: NDArray[np.int64] = depth[:, None] + depth[None, :] - 2 * shared
        return distances

    @cached_property
    def range(self) -> int:
        """The largest distance of two nodes."""
        return int(self.distances.max())

    @cached_property
    def digest(self) -> str:
        """The sha256 of nodes and names: another tree is another mechanism."""
        state = hashlib.sha256()
        for row in (*self.nodes, *sorted((name, *node) for name, node in self.names.items())):
            state.update("\t".join(row).encode("utf-8") + b"\n")
        return state.hexdigest()

    @cached_property
    def _number(self) -> dict[Path, int]:
        return {node: number for number, node in enumerate(self.nodes)}


def _key(name: str) -> str:
    return " ".join(normalise(name).casefold().split())


def _shared(one: Path, other: Path) -> Path:
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]
