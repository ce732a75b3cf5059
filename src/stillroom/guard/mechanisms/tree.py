"""Noise for places and organisations: the exponential mechanism over a public tree."""

from __future__ import annotations

from functools import cache

import numpy as np

from stillroom.guarantee import Guarantee
from stillroom.guard.dictionaries import tree as dictionary
from stillroom.guard.dictionaries.nodes import Tree
from stillroom.guard.mechanisms.base import Mechanism, check_category, check_epsilon
from stillroom.privacy.noise import Noise

MARGIN = 1e-9
"""How far, relatively, the ε of the table stays below what is charged; rounding is a millionth of that."""


class TreeChoice(Mechanism):
    """Answers a value with a node of a public tree, the likelier the nearer: P(node) ∝ exp(−steps between them/scale).

    Every node can be drawn, inner ones too ("Europe", "somewhere"), and every value is one of them: one that the tree
    does not know is its root. The pool never depends on the value.

    The scale is the smallest whose ε, taken over all pairs of values and all answers of the table of probabilities,
    is at most `epsilon`. That is up to half of what 2·range/ε would give, as the table's sums differ little.

    Raises: BadOption, UnknownName.
    """

    def __init__(self, category: str, *, dictionary_name: str, epsilon: float | None) -> None:
        check_category(category, "tree")
        self.category, self.guarantee = category, Guarantee.LDP_PER_VALUE
        self.epsilon = check_epsilon(category, epsilon)
        self.tree: Tree = dictionary(dictionary_name)
        self.scale = 1 / _rate(dictionary_name, self.epsilon)
        self.version = f"tree-1 {dictionary_name} sha256={self.tree.digest} epsilon={self.epsilon!r}"

    def draw(self, value: str, noise: Noise) -> str:
        scores = np.ascontiguousarray(-self.tree.distances[self.tree.find(value)])
        return self.tree.says(noise.choose(scores, sensitivity=self.tree.range, scale=self.scale))


def exact_epsilon(tree: Tree, rate: float) -> float:
    """Return max over values v, w and answers o of log P(o|v)/P(o|w), where P(o|v) = exp(−rate·d(v, o))/Z(v).

    Over o, d(w, o) − d(v, o) is largest at o = v (triangle inequality), where it is d(v, w).
    """
    distances = tree.distances
    sums = np.log(np.exp(-rate * distances).sum(axis=1))
    return float((rate * distances + sums[None, :] - sums[:, None]).max())


@cache
def _rate(name: str, epsilon: float) -> float:
    tree = dictionary(name)
    # 2·range·rate bounds ε, so the first rate is always small enough; what is kept always was tried.
    low = epsilon / (2 * tree.range)
    high = 4 * low
    for _ in range(30):
        middle = (low + high) / 2
        if exact_epsilon(tree, middle) <= epsilon * (1 - MARGIN):
            low = middle
        else:
            high = middle
    return low
