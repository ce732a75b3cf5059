"""The similarity cut of DP-SynRAG (arXiv 2510.06719, step 3): documents near a noisy mean, above a noisy threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stillroom.embed.base import Vectors, clip
from stillroom.privacy.noise import Noise
from stillroom.release.schema import CutPlan

GRID = float(2**30)
"""A coordinate counts in whole 2⁻³⁰, so that sums of up to eight million vectors are exact. A sum of floats can move by
more than 1 when one vector goes, as every later addition may be rounded otherwise."""


def noisy_mean(vectors: Vectors, plan: CutPlan, noise: Noise) -> list[float]:
    """Return Σ E(d) + N(0, σ_μ² I): a sum of vectors of norm at most 1, never divided by a true count (rule 20)."""
    # Rounded towards zero, which makes no norm larger.
    total = np.trunc(clip(vectors) * GRID).astype(np.int64).sum(axis=0) / GRID
    return [float(x) for x in noise.gaussian(total, sensitivity=1.0, sigma=plan.mean_sigma)]


def similarities(vectors: Vectors, mean: Sequence[float]) -> Vectors:
    """Return the cosine of each vector with the released mean, in [−1, 1]; zero where a vector is zero."""
    if not len(vectors):
        return np.zeros(0)
    rows, centre = clip(vectors), np.asarray(mean, dtype=np.float64)
    # Row by row: a matrix product may round a row differently beside others.
    norms = np.sqrt((rows * rows).sum(axis=1)) * np.sqrt((centre * centre).sum())
    found: Vectors = np.clip((rows * centre).sum(axis=1) / np.maximum(norms, 1e-12), -1.0, 1.0)
    return found


def grid(plan: CutPlan) -> Vectors:
    """Return the thresholds to choose from, fixed and public."""
    thresholds: Vectors = np.linspace(-1.0, 1.0, plan.steps)
    return thresholds


def noisy_threshold(similar: Vectors, plan: CutPlan, noise: Noise) -> float:
    """Return θ by the exponential mechanism with u(θ) = −|#{s_i ≥ θ} − k|, sensitivity 1, cost ε_θ²/8."""
    thresholds = grid(plan)
    above = len(similar) - np.searchsorted(np.sort(similar), thresholds, side="left")
    utility = -np.abs(above.astype(np.int64) - plan.keep)
    return float(thresholds[noise.noisy_max(utility, range=2.0, scale=2.0 / plan.epsilon_theta, monotonic=False)])
