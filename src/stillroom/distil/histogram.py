"""The DP histogram of keywords: which words a release may speak of.

The K words of a unit, listed and unlisted together, are one vector (rule 15): every listed word gets noise, also those
nobody has; an unlisted word shows only strictly above the threshold.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stillroom.distil.keywords import bound
from stillroom.lexicon import WordList
from stillroom.privacy.noise import Noise
from stillroom.release.schema import KeywordPlan, Word


def released_words(
    keywords: Iterable[Iterable[str]], plan: KeywordPlan, known: WordList, noise: Noise
) -> tuple[Word, ...]:
    """Return the R words of highest noisy count, ties by word; one draw of noise.

    Args:
        keywords: what an extractor returned for each unit; bounded here to K distinct words a unit (rule 16).
    """
    # Sums of ones are exact in floats and in any order; and one map of unlisted words is all that a collection's
    # own words take in memory.
    tally = [0.0] * len(known)
    unlisted: dict[str, float] = {}
    for returned in keywords:
        for word in bound(returned, plan.per_unit):
            at = known.index.get(word)
            if at is not None:
                tally[at] += 1.0
            elif plan.threshold is not None:
                unlisted[word] = unlisted.get(word, 0.0) + 1.0
    counts, above = noise.histogram(
        np.array(tally, dtype=np.float64),
        unlisted,
        keys=plan.per_unit,
        sigma=plan.sigma,
        threshold=plan.threshold,
    )
    found = [
        Word(word=known.words[i], count=round(float(counts[i]), 1), listed=True)
        for i in _largest(counts, plan.released)
    ]
    unlisted_ = [Word(word=word, count=round(float(count), 1), listed=False) for word, count in above.items()]
    # A count that rounds down to the threshold would look as if it had never passed it.
    found += [word for word in unlisted_ if plan.threshold is not None and word.count > plan.threshold]
    found.sort(key=lambda w: (-w.count, w.word))
    return tuple(w for w in found[: plan.released] if w.count >= plan.least_count)


def _largest(counts: np.ndarray[tuple[int], np.dtype[np.float64]], n: int) -> list[int]:
    return [int(i) for i in np.lexsort((np.arange(len(counts)), -counts))[:n]]
