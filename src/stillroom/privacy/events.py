"""Events: frozen records of mechanisms. What they cost is in `zcdp`.

An event holds what a mechanism was, never what it saw or said.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from stillroom.errors import BadOption

RELATION = "add or remove all documents of one unit"
"""The neighbouring relation of every claim in this package."""


def _positive(name: str, value: float) -> None:
    if not 0 < value <= sys.float_info.max:  # a whole number can be larger than any float
        raise BadOption(name, value, "a finite number above 0")


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of standard deviation `sigma` on a vector of L2 sensitivity `sensitivity`, `times` over."""

    name: str
    sensitivity: float
    sigma: float
    times: int = 1

    def __post_init__(self) -> None:
        _positive("sensitivity", self.sensitivity)
        _positive("sigma", self.sigma)
        _positive("times", self.times)


@dataclass(frozen=True)
class ThresholdedGaussian:
    """A noisy histogram whose unlisted keys are released only strictly above `threshold`.

    A unit adds 1 to at most `keys` keys, listed and unlisted together; listed keys get noise whether or not
    anybody has them. Sensitivity is √keys in L2.
    """

    name: str
    keys: int
    sigma: float
    threshold: float
    times: int = 1

    def __post_init__(self) -> None:
        _positive("keys", self.keys)
        _positive("sigma", self.sigma)
        _positive("threshold", self.threshold)
        _positive("times", self.times)


@dataclass(frozen=True)
class NoisyMax:
    """Gumbel noisy maximum (= exponential mechanism) of scores, with bounded range `range` at noise `scale`.

    For one-sided (monotonic) scores a unit moves each score by 0…`range`; for two-sided ones by at most
    `range`/2 either way.
    """

    name: str
    range: float
    scale: float
    times: int = 1

    def __post_init__(self) -> None:
        _positive("range", self.range)
        _positive("scale", self.scale)
        _positive("times", self.times)


@dataclass(frozen=True)
class NotPrivate:
    """Something that gives no guarantee was done with private data; its cost is infinite."""

    name: str
    times: int = 1


Event = Gaussian | ThresholdedGaussian | NoisyMax | NotPrivate

_KINDS: dict[str, type] = {
    "gaussian": Gaussian,
    "thresholded-gaussian": ThresholdedGaussian,
    "noisy-max": NoisyMax,
    "not-private": NotPrivate,
}


def to_json(event: Event) -> dict[str, Any]:
    """Return the event as plain values, its kind under `kind`."""
    kind = next(k for k, t in _KINDS.items() if type(event) is t)
    return {"kind": kind, **vars(event)}


def from_json(record: dict[str, Any]) -> Event:
    """Return the event that `to_json` wrote. Raises BadOption on an unknown kind or a missing value."""
    values = dict(record)
    kind = values.pop("kind", None)
    if kind not in _KINDS:
        raise BadOption("kind", kind, f"one of {', '.join(_KINDS)}")
    try:
        event: Event = _KINDS[kind](**values)
    except TypeError as wrong:
        raise BadOption("event", sorted(values), f"the fields of a {kind} event") from wrong
    return event
