"""Released words that go with a topic: what the public row knows."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from stillroom.distil.topics import Member
from stillroom.privacy.noise import Noise
from stillroom.release.costs import least_count
from stillroom.release.schema import CoKeywordPlan, Word


def together(
    members: Sequence[Member], words: Sequence[Word], plan: CoKeywordPlan, noise: Noise, own: Collection[str] = ()
) -> tuple[Word, ...]:
    """Return the released words of highest noisy count among the members of one topic, best first.

    A member counts for at most K_c released words of its own document (uncapped, a total ε of 10 was 12.4 to 18.3),
    the topic's own words first, so that a topic whose own word does not stand out is known to be empty. All R words
    get noise, L2 sensitivity √K_c. A word is published when its noisy count exceeds what the largest of R noises would
    show, σ_c √(2 ln R).
    """
    others = [word.word not in own for word in words]
    counts = [0.0] * len(words)  # sums of ones: exact, in any order
    for member in members:
        mine = dict.fromkeys(member.words)
        if len(mine) > plan.per_unit:
            mine = dict.fromkeys(sorted(mine, key=others.__getitem__)[: plan.per_unit])
        for word in mine:
            counts[word] += 1.0
    noisy = noise.gaussian(np.array(counts, dtype=np.float64), sensitivity=math.sqrt(plan.per_unit), sigma=plan.sigma)
    least = least_count(plan.sigma, len(words))
    order = np.lexsort((np.arange(len(words)), -noisy))[: plan.published]
    return tuple(
        Word(word=words[i].word, count=round(float(noisy[i]), 1), listed=words[i].listed)
        for i in order
        if noisy[i] > least
    )
