"""Noise for tests: recorded, replayed, or none at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillroom.privacy.noise import (
    Noise,
    check_counts,
    check_floats,
    check_scores,
    check_sensitivity,
    check_whole,
    largest_step,
)


@dataclass(frozen=True)
class Draw:
    """One call: the mechanism's name, its public parameters, and what it returned."""

    name: str
    parameters: Mapping[str, float | None]
    output: Any


class RecordedNoise:
    """Another noise with its calls kept in `draws`; or, given `replay`, those outputs again in the same order.

    With outputs held equal on two neighbouring collections everything public must be identical.
    Replaying raises AssertionError when the calls differ in name or parameters, or are more than were recorded.
    """

    def __init__(self, inner: Noise | None = None, *, replay: Iterable[Draw] | None = None) -> None:
        if (inner is None) == (replay is None):
            raise ValueError("give a noise to record, or the draws to replay, not both")
        self._inner = inner
        self._replay: Iterator[Draw] = iter(replay or ())
        self.draws: list[Draw] = []

    def gaussian(self, values: NDArray[np.float64], *, sensitivity: float, sigma: float) -> NDArray[np.float64]:
        parameters = {"sensitivity": sensitivity, "sigma": sigma}
        if self._inner is None:
            output = self._again("gaussian", parameters)
        else:
            output = self._inner.gaussian(values, sensitivity=sensitivity, sigma=sigma)
        return self._keep("gaussian", parameters, output)  # type: ignore[no-any-return]

    def histogram(
        self,
        listed: NDArray[np.float64],
        unlisted: Mapping[str, float],
        *,
        keys: int,
        sigma: float,
        threshold: float | None,
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        parameters = {"keys": keys, "sigma": sigma, "threshold": threshold}
        if self._inner is None:
            output = self._again("histogram", parameters)
        else:
            output = self._inner.histogram(listed, unlisted, keys=keys, sigma=sigma, threshold=threshold)
        return self._keep("histogram", parameters, output)  # type: ignore[no-any-return]

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        parameters = {"range": range, "scale": scale, "monotonic": monotonic}
        if self._inner is None:
            output = self._again("noisy_max", parameters)
        else:
            output = self._inner.noisy_max(scores, range=range, scale=scale, monotonic=monotonic)
        return self._keep("noisy_max", parameters, output)  # type: ignore[no-any-return]

    def choose(self, scores: NDArray[np.int64], *, sensitivity: int, scale: float) -> int:
        parameters = {"sensitivity": sensitivity, "scale": scale}
        if self._inner is None:
            output = self._again("choose", parameters)
        else:
            output = self._inner.choose(scores, sensitivity=sensitivity, scale=scale)
        return self._keep("choose", parameters, output)  # type: ignore[no-any-return]

    def laplace(self, value: int, *, sensitivity: int, scale: float) -> int:
        parameters = {"sensitivity": sensitivity, "scale": scale}
        if self._inner is None:
            output = self._again("laplace", parameters)
        else:
            output = self._inner.laplace(value, sensitivity=sensitivity, scale=scale)
        return self._keep("laplace", parameters, output)  # type: ignore[no-any-return]

    def _again(self, name: str, parameters: Mapping[str, float | None]) -> Any:
        draw = next(self._replay, None)
        if draw is None or draw.name != name or dict(draw.parameters) != dict(parameters):
            wanted = "no more draws" if draw is None else f"{draw.name} {dict(draw.parameters)}"
            raise AssertionError(f"recorded was {wanted}, asked for was {name} {dict(parameters)}")
        return draw.output

    def _keep(self, name: str, parameters: Mapping[str, float | None], output: Any) -> Any:
        self.draws.append(Draw(name, parameters, output))
        return output


class NoNoise:
    """NOT PRIVATE: adds nothing and returns true counts and true maxima. For tests on made-up data alone."""

    def gaussian(self, values: NDArray[np.float64], *, sensitivity: float, sigma: float) -> NDArray[np.float64]:
        check_floats("values", values)
        return values.copy()

    def histogram(
        self,
        listed: NDArray[np.float64],
        unlisted: Mapping[str, float],
        *,
        keys: int,
        sigma: float,
        threshold: float | None,
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        check_floats("listed", listed)
        if threshold is None:
            return listed.copy(), {}
        check_counts("unlisted", unlisted)
        return listed.copy(), {key: float(count) for key, count in sorted(unlisted.items()) if count > threshold}

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        """Return the index of the largest score, the lowest where several are largest."""
        check_scores(scores)
        largest_step(range, monotonic)
        return int(np.argmax(scores))

    def choose(self, scores: NDArray[np.int64], *, sensitivity: int, scale: float) -> int:
        """Return the index of the largest score, the lowest where several are largest."""
        check_scores(scores)
        check_sensitivity(sensitivity)
        return int(np.argmax(scores))

    def laplace(self, value: int, *, sensitivity: int, scale: float) -> int:
        check_whole(value)
        check_sensitivity(sensitivity)
        return int(value)
