"""Everything that the text step could say, with exact densities: the shipped steps, walked draw by draw."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stillroom.distil import texts
from stillroom.distil.synthesise import Going, Synthesis
from stillroom.distil.vocabulary import Spelling
from stillroom.documents import Document
from stillroom.lm.base import LanguageModel, Session
from stillroom.release.schema import PlanRecord, Word
from stillroom.testing.noise import NoNoise
from stillroom.testing.toylm import ToySession
from tests.privacy.mechanics import Book, Call, Shown, run

Path_ = tuple[int, ...]
Density = Callable[[Call], NDArray[np.float64]]


class Asked(Exception):
    """The walk has come to a draw that no choice is made for."""

    def __init__(self, call: Call) -> None:
        self.call = call


class Asking(Shown):
    """A noise that stops the run at the first draw, keeping what it was told."""

    def __init__(self) -> None:
        super().__init__(NoNoise())

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        parameters: dict[str, float | None] = {"range": range, "scale": scale, "monotonic": monotonic}
        raise Asked(Call("noisy_max", parameters, scores.shape, scores.copy(), {}, None))


def softmax(call: Call) -> NDArray[np.float64]:
    """Return the exact log densities of the exponential mechanism: log softmax(scores/scale)."""
    scaled = call.told / float(call.parameters["scale"] or 0.0)
    values: NDArray[np.float64] = scaled - scaled.max()
    return values - math.log(np.exp(values).sum())


@dataclass
class Tree:
    """All texts of one part: what is told to every draw, what was offered there, and where each path ends."""

    nodes: dict[Path_, Call] = field(default_factory=dict)
    offered: dict[Path_, str] = field(default_factory=dict)
    leaves: dict[Path_, list[list[int]]] = field(default_factory=dict)

    def log_densities(self, density: Density = softmax) -> dict[Path_, float]:
        """Return log P of every leaf."""
        at = {path: density(call) for path, call in self.nodes.items()}
        return {leaf: float(sum(at[leaf[:n]][choice] for n, choice in enumerate(leaf))) for leaf in self.leaves}


class Walker(Synthesis):
    """Stands in for `Synthesis` in the steps: walks every path of its kind's `values` instead of drawing one."""

    trees: dict[str, Tree]
    kind: type[Synthesis] = Synthesis

    def going(
        self,
        key: str,
        private: Session,
        public: Session | None,
        spelling: Spelling,
        progress: Callable[[int], None] = lambda n: None,
    ) -> Going:
        yield from ()
        tree = self.trees.setdefault(key, Tree())
        todo: list[tuple[Path_, Mapping[str, str]]] = [((), {})]
        while todo:
            path, committed = todo.pop()
            book = Book(committed)
            synthesis = self.kind(self.lm, self.plan, Asking(), book)
            try:
                said = synthesis.values(key, _again(private), _again(public) if public else None, spelling)
            except Asked as asked:
                tree.nodes[path] = asked.call
                draw = book.asked[-1]
                offered = book.committed.get(f"{draw}/offered")
                tree.offered[path] = offered or "all"
                tokens = json.loads(offered)["tokens"] if offered else range(len(asked.call.told))
                todo += [((*path, i), {**book.committed, draw: json.dumps(int(t))}) for i, t in enumerate(tokens)]
            else:
                tree.leaves[path] = said
        return next(iter(tree.leaves.values()))


def _again(session: Session) -> Session:
    """Return a session of its own at the same place."""
    assert isinstance(session, ToySession)
    other = copy.copy(session)
    other._said = [list(said) for said in session._said]
    return other


def walk(
    documents: Iterable[Document],
    record: PlanRecord,
    lm: LanguageModel,
    folder: Path,
    *,
    words: tuple[Word, ...],
    together: Mapping[str, tuple[Word, ...]],
    sizes: tuple[float, ...],
    kind: type[Synthesis] = Synthesis,
) -> dict[str, Tree]:
    """Return the tree of every part, for a collection and released values; all by `steps.distil`."""
    committed = {"keywords": json.dumps([word.model_dump() for word in words])}
    committed |= {f"together/{name}": json.dumps([w.model_dump() for w in co]) for name, co in together.items()}
    committed["sizes"] = json.dumps(sizes)
    walker = type("Here", (Walker,), {"trees": {}, "kind": kind})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "Synthesis", walker)
        run(documents, record, folder, noise=Shown(NoNoise()), lm=lm, book=Book(committed))
    trees: dict[str, Tree] = walker.trees  # type: ignore[attr-defined]
    return trees


def divergences(
    one: Tree, other: Tree, orders: Iterable[float], density: Density = softmax
) -> tuple[float, dict[float, float]]:
    """Return the largest |log ratio| and the Rényi divergences, the larger way round, of two exact distributions.

    AssertionError where the two offer other tokens, another prior, or other texts at the end of a path.
    """
    if one.offered != other.offered:
        raise AssertionError("candidates or prior tell the two collections apart")
    if one.leaves != other.leaves:
        raise AssertionError("the same draws give other texts")
    a, b = one.log_densities(density), other.log_densities(density)
    p, q = np.array([a[leaf] for leaf in one.leaves]), np.array([b[leaf] for leaf in one.leaves])
    for each in (p, q):
        if abs(np.exp(each).sum() - 1) > 1e-9:
            raise AssertionError("the densities do not add up to one")
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isneginf(p) & np.isneginf(q), 0.0, p - q)
    return float(np.abs(gap).max()), {order: max(_renyi(p, q, order), _renyi(q, p, order)) for order in orders}


def _renyi(p: NDArray[np.float64], q: NDArray[np.float64], order: float) -> float:
    there = np.isfinite(p)
    if np.isneginf(q[there]).any():
        return math.inf
    terms = order * p[there] + (1 - order) * q[there]
    return float((terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1))
