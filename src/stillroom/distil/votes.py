"""A row's scores become integer votes, so that what one document moves is exact.

Source: clipping of DP-SynRAG (arXiv 2510.06719, step 4), as integers; the range of a row's votes is 0..levels, worth
2c/levels each, so a token costs (2c/τ)²/8 = c²/2τ² whatever the model says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stillroom.lm.base import Scores

Votes = npt.NDArray[np.int64]
Barred = npt.NDArray[np.int64]
"""Token ids."""


@dataclass(frozen=True, eq=False)
class Ballot:
    """What every row is asked for one draw; called with scores (rows, `columns`), it returns their votes.

    All of it is public, and it treats each row by itself, so it may be sent to wherever rows are.

    Attributes:
        levels: a row's votes are 0..levels.
        tokens: the candidates; None: all tokens.
        clip: of centred votes; None: votes are one-sided.
        stops, stop, barred: see `masked`; only looked at where there are candidates.
        abstain: a row whose best token is not among the candidates abstains.
        closed: nothing but the candidates counts, so that other scores are not needed, and none of them is barred.
        lean: of each candidate, in thousandths of a nat: taken from every row's score of it; only where closed.
    """

    levels: int
    tokens: tuple[int, ...] | None = None
    clip: float | None = None
    stops: tuple[int, ...] = ()
    stop: int | None = None
    barred: Barred | None = None
    abstain: bool = False
    closed: bool = False
    lean: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[int, ...] | None:
        if self.tokens is None or not self.closed:
            return None
        return (*self.tokens, *self.stops) if self.stop in self.tokens else self.tokens

    def __call__(self, scores: Scores) -> Votes:
        if self.tokens is None:
            return one_sided(scores, self.levels) if self.clip is None else centred(scores, self.levels, self.clip)
        if self.closed:
            shown = scores[:, : len(self.tokens)].copy()
            if self.stop in self.tokens:
                shown[:, self.tokens.index(self.stop)] = end_of(scores[:, len(self.tokens) :])
            if self.lean:
                shown -= np.array(self.lean, np.float32) / 1000
            return one_sided(shown, self.levels)
        table = masked(scores, self.stops, self.stop, self.barred)
        top = table.max(axis=1, keepdims=True, initial=-np.inf) if self.abstain else None
        return one_sided(table[:, [*self.tokens]], self.levels, top)


def masked(scores: Scores, stops: Sequence[int], stop: int | None, barred: Barred | None) -> Scores:
    """Return the scores, written over: the barred tokens −∞, and `stop` alone with the log-sum-exp of all stops.

    Without `stop` no value may end here, and all stops are −∞.
    """
    ends = end_of(scores[:, [*stops]]) if stop is not None else None
    scores[:, [*stops]] = -np.inf
    if barred is not None:
        scores[:, barred] = -np.inf
    if stop is not None:
        scores[:, stop] = ends
    return scores


def end_of(stops: Scores) -> Scores:
    """Return each row's score of a stop: the log-sum-exp over all of them."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        ends: Scores = np.logaddexp.reduce(stops, axis=1)
    return ends


def one_sided(scores: Scores, levels: int, top: Scores | None = None) -> Votes:
    """Return votes round-down(levels · p_i / max p) of shape (rows, candidates), 0..levels.

    Args:
        top: of shape (rows, 1): each row's best score over more tokens than the candidates. A row that wants
            something that is not offered then abstains instead of voting for the next best. None: best candidate.

    A row with NaN, or with no finite score at all, votes 0 everywhere; −∞ votes 0.
    """
    share = _relative(scores, top)
    votes: Votes = np.floor(np.minimum(share, 1.0) * levels).astype(np.int64)
    return votes


def centred(scores: Scores, levels: int, clip: float) -> Votes:
    """Return the paper's votes, shifted by +c to be one-sided, of shape (rows, candidates), 0..levels.

    e = exp(l)/max; centred e − (max + min)/2; scaled by min(1, c/‖·‖∞); ‖·‖∞ = (1 − min)/2 is at most ½, so a clip
    above ½ has no effect and is refused by the plan. The shift is the same for all candidates: the softmax keeps.
    """
    share = _relative(scores)
    live = share.max(axis=1, keepdims=True, initial=0.0) > 0
    low = share.min(axis=1, keepdims=True, initial=1.0)
    half = (1.0 - low) / 2
    factor = np.minimum(1.0, clip / np.maximum(half, 1e-12))
    value = (share - (1.0 + low) / 2) * factor + clip
    votes = np.floor(value * (levels / (2 * clip)))
    return np.where(live, np.clip(votes, 0, levels), 0).astype(np.int64)


def _relative(scores: Scores, top: Scores | None = None) -> npt.NDArray[np.float64]:
    """Return p_i / max p of each row in float64; rows that cannot be read are zero."""
    rows = np.asarray(scores, dtype=np.float64)
    readable = ~np.isnan(rows).any(axis=1, keepdims=True) & ~np.isposinf(rows).any(axis=1, keepdims=True)
    own = rows.max(axis=1, keepdims=True, initial=-np.inf)
    best = own if top is None else np.maximum(own, np.asarray(top, dtype=np.float64))
    readable &= np.isfinite(best)
    with np.errstate(invalid="ignore", under="ignore"):
        share = np.exp(np.where(readable, rows - np.where(readable, best, 0.0), -np.inf))
    return share


def prior_votes(log_probability: npt.NDArray[np.float64], clip: float, levels: int) -> Votes:
    """Return the public prior on the vote grid: round(log p / (2c/levels)). Public, so it costs nothing."""
    return np.rint(log_probability * (levels / (2 * clip))).astype(np.int64)
