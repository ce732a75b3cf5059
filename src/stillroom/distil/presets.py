"""Named, versioned settings. A name stands for its values for good: better values get a new version.

The default's values were found on made-up data (docs/decisions/0005-default-preset.md). The paper's are as published
(arXiv 2510.06719); where the publication contradicts its own Theorem 1 (ε_θ = .4 alone costs .020 a topic, more than
"ρ_retr = .009"), ρ_retr is taken as the Gaussian part, and the sum is asserted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stillroom.errors import UnknownName


@dataclass(frozen=True)
class Preset:
    """What a plan is made of, before a budget fixes noise and clip. Shares are of ρ; the text gets what is left."""

    name: str
    method: Literal["stillroom", "paper"]
    keywords: int  # K
    released: int  # R
    topics: int  # L
    extractor: Literal["fast", "lm"] = "fast"
    unlisted: bool = True
    keyword_share: float = 0.2
    least_count: float = 3.5  # of σ: fewer noisy counts are kept that nobody's words stand behind
    merge: bool = True
    order: Literal["rarest", "names"] = "names"
    highest_zipf: float | None = 4.5
    sizes: bool = True
    size_share: float = 0.02
    smallest: float = 1.3  # of the least support
    part: float = 2.5  # of the least support
    most_topics: int | None = None
    cokeywords: int | None = 16  # K_c; None: off
    cokeyword_share: float = 0.1
    published: int = 24
    candidates: Literal["public", "all"] = "public"
    top_k: int = 1000
    floor: float | None = 0.1
    lift: float | None = 0.3
    lists: Literal["free", "released"] = "released"
    calibration: float | None = 0.5
    abstain: bool = True
    completion: bool = True
    form: bool = True
    draws: int = 40  # T of a free text
    temperature: float = 1.0
    levels: int = 1000
    votes: Literal["one-sided", "centred"] = "one-sided"
    conversion: Literal["optimal", "paper"] = "optimal"
    cut: bool = False
    keep: int = 80  # k of the cut
    epsilon_theta: float = 0.4
    mean_rho: float = 0.009  # ρ of the Gaussian part of the cut, a topic
    histogram_rho: float | None = None  # ρ_hist, where it is fixed
    selffilter: Literal["off", "medical", "movielens", "searchqa", "task"] = "off"
    document_tokens: int = 128
    chunk_words: int = 400


DEFAULT = Preset(name="default-3", method="stillroom", keywords=10, released=200, topics=1)


def _paper(name: str, released: int, keep: int, question: Literal["medical", "movielens", "searchqa"]) -> Preset:
    return Preset(
        name=name, method="paper", keywords=10, released=released, topics=5, extractor="lm", unlisted=False,
        merge=False, order="rarest", highest_zipf=None, sizes=False, cokeywords=None, candidates="all", floor=None,
        completion=False, lift=None, lists="free", calibration=None, abstain=False, least_count=0.0, form=False,
        draws=70, votes="centred", conversion="paper", cut=True, keep=keep, histogram_rho=0.1, selffilter=question,
        document_tokens=256,
    )  # fmt: skip


PRESETS: Mapping[str, Preset] = {
    "default": DEFAULT,
    DEFAULT.name: DEFAULT,
    "paper-medical": _paper("paper-medical", 500, 80, "medical"),
    "paper-movielens": _paper("paper-movielens", 500, 100, "movielens"),
    "paper-searchqa": _paper("paper-searchqa", 1000, 100, "searchqa"),
}


def preset_of(name: str) -> Preset:
    """Return a preset by name. Raises UnknownName."""
    if name not in PRESETS:
        raise UnknownName("preset", name, [*PRESETS])
    return PRESETS[name]
