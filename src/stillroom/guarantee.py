"""The label on every output: what it guarantees, from strongest to weakest."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Guarantee(StrEnum):
    """`dp` is unit-level differential privacy; `none` is none at all."""

    DP = "dp"
    LDP_PER_VALUE = "ldp-per-value"
    METRIC_DP = "metric-dp"
    NONE = "none"


_ORDER = tuple(Guarantee)


def weakest(labels: Iterable[Guarantee]) -> Guarantee:
    """Return the weakest of the labels: a mixed answer carries it. No label at all is `none`."""
    return max(labels, key=_ORDER.index, default=Guarantee.NONE)
