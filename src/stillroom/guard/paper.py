"""PA-HDP as published (arXiv 2607.14811): every step, its holes included. For measuring; `strict` is for use.

What the publication leaves open is chosen in `PaperConfig` and written down in docs/decisions/0015. What it really
guarantees stands in every answer: nothing. Sentences of low risk are given out word by word, the noise on the risk
sends risky ones there too, the share of ε depends on other people's sentences, and each call draws anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from stillroom.embed.base import Embedder, Vectors
from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.guard.dictionaries import pool, tree
from stillroom.guard.spans import Span
from stillroom.privacy.noise import Noise, OpenDPNoise
from stillroom.text import sentences

GRID = 2**20
"""Steps of risk and utility per 1.0, so that noise is exact (rule 2): far below what either tells apart."""

Detector = Callable[[str], Sequence[Span]]


class Tier(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


def _weights() -> dict[str, float]:
    high = dict.fromkeys(("national_id", "record_number", "card", "iban", "licence"), 0.95)
    high |= dict.fromkeys(("password", "diagnosis", "person"), 0.9)
    middle = dict.fromkeys(("phone", "email", "account", "username", "treatment", "drug"), 0.7)
    return high | middle | dict.fromkeys(("address", "date", "organisation"), 0.3)


def _pools() -> dict[str, tuple[str, ...]]:
    first, last = pool("first_names"), pool("last_names")
    kinds = [node[-1] for node in tree("organisations").nodes if len(node) == 2]
    return {
        "person": tuple(f"{a} {b}" for a, b in zip(first[::4], last[::3], strict=False)),
        "city": pool("towns"),
        "address": tuple(f"{number} {name} Street" for number, name in enumerate(last[::4], 1)),
        "organisation": tuple(f"{name} {kind.title()}" for name, kind in zip(last[1::4], kinds, strict=False)),
        "profession": pool("jobs"),
        "country": tuple(node[-1] for node in tree("countries").nodes if len(node) == 2),
    }


@dataclass(frozen=True)
class PaperConfig:
    """What a call of PA-HDP needs; the first block is published, the second is chosen (docs/decisions/0015).

    Attributes:
        relevance, sensitivity: weights of S_rel and S_sen in the risk; they add up to 1.
        medium, high: the risks at which the tiers Medium and High begin.
        gamma: ε of a Medium sentence, in those of a High one.
        candidates: m, texts to choose from.
        epsilon: of a query; half for the risks, half for the sentences.
        alpha: of the distance in the utility −α·d − (1 − α)·r; r is the share of entities that a candidate keeps.
        utility_sensitivity: Δu; None for the true one, 2α + (1 − α), as d is at most 2 and r at most 1.
        original: whether the sentence itself is among the candidates.
        weights: of categories in S_sen; others count as `other`.
        gate: categories that open the gate when the query holds one; None for all with a weight of .3 or more.
        pools: by category, what an entity is swapped for; one without a pool is swapped for its category's name.
    """

    relevance: float = 0.6
    sensitivity: float = 0.4
    medium: float = 0.3
    high: float = 0.7
    gamma: float = 2.0
    candidates: int = 50

    epsilon: float = 8.0
    alpha: float = 0.5
    utility_sensitivity: float | None = None
    original: bool = True
    weights: Mapping[str, float] = field(default_factory=_weights)
    other: float = 0.1
    gate: frozenset[str] | None = None
    pools: Mapping[str, Sequence[str]] = field(default_factory=_pools)

    def __post_init__(self) -> None:
        for name in ("relevance", "sensitivity", "alpha", "other"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadOption(name, getattr(self, name), "between 0 and 1")
        if not math.isclose(self.relevance + self.sensitivity, 1):
            raise BadOption("relevance + sensitivity", self.relevance + self.sensitivity, "1")
        if not 0 < self.medium <= self.high:
            raise BadOption("medium", self.medium, f"above 0 and at most high, which is {self.high}")
        for name in ("epsilon", "gamma", "delta_u"):
            if not 0 < getattr(self, name) < math.inf:
                raise BadOption(name, getattr(self, name), "a finite number above 0")
        if self.candidates < 2:
            raise BadOption("candidates", self.candidates, "at least 2")
        for category, weight in self.weights.items():
            if not 0 <= weight <= 1:
                raise BadOption(f"weight of {category!r}", weight, "between 0 and 1")

    @property
    def delta_u(self) -> float:
        """Δu, the sensitivity of the utility."""
        return 2 * self.alpha + (1 - self.alpha) if self.utility_sensitivity is None else self.utility_sensitivity

    def opens(self, category: str) -> bool:
        """Return whether an entity of a category in the query opens the gate."""
        return self.weights.get(category, self.other) >= 0.3 if self.gate is None else category in self.gate


@dataclass(frozen=True)
class PaperReport:
    """What was done, and what it guarantees. No values.

    Attributes:
        guarantee: always `none`.
        claimed: the ε that the publication would claim for this one call.
        tiers: sentences by tier.
        verbatim: sentences given out word by word: all of tier Low, and those whose draw was the sentence itself.
        entities: entities found, by category.
        epsilon_high, epsilon_medium: ε of one sentence of the tier; 0 where there was none.
    """

    guarantee: Guarantee
    claimed: float
    tiers: Mapping[Tier, int]
    verbatim: int
    entities: Mapping[str, int]
    epsilon_high: float
    epsilon_medium: float

    def plain(self) -> dict[str, Any]:
        """Return what JSON can say of it."""
        tiers = {tier.value: count for tier, count in self.tiers.items()}
        return {**self.__dict__, "tiers": tiers, "entities": dict(self.entities), "guarantee": self.guarantee.value}

    def says(self) -> str:
        """Return the guarantee in plain words."""
        of = sum(self.tiers.values())
        return (
            f"Guarantee: none. {self.verbatim} of {of} sentences are given out verbatim; which ones follows from the "
            f"private text and other people's; every call draws anew, so what the publication calls ε = "
            f"{self.claimed:g} is spent by each."
        )


@dataclass(frozen=True)
class PaperAnswer:
    """The sanitised passages, in their order, and the report."""

    texts: tuple[str, ...]
    report: PaperReport

    @property
    def text(self) -> str:
        """All passages, with empty lines between them."""
        return "\n\n".join(self.texts)


@dataclass(frozen=True)
class _Sentence:
    text: str
    spans: tuple[Span, ...]


class PaperGuard:
    """PA-HDP over retrieved passages.

    Args:
        detect: finds entities in a text, in the coordinates of `normalise(text)`.
        embedder: the publication uses bge-large-en-v1.5; any will do.
    """

    def __init__(
        self,
        detect: Detector,
        embedder: Embedder,
        config: PaperConfig | None = None,
        *,
        noise: Noise | None = None,
    ) -> None:
        self.config = config or PaperConfig()
        self._detect, self._embedder, self._noise = detect, embedder, noise or OpenDPNoise()

    def sanitise(self, query: str, passages: Sequence[str]) -> PaperAnswer:
        """Return the passages as the publication would hand them to a model, and what that guarantees."""
        found = [[_Sentence(text, self._spans(text)) for text in sentences(passage)] for passage in passages]
        everything = [sentence for passage in found for sentence in passage]
        tiers = [self._tier(risk) for risk in self.risks(query, [(each.text, each.spans) for each in everything])]
        count = {tier: tiers.count(tier) for tier in Tier}
        share = self.shares(count[Tier.HIGH], count[Tier.MEDIUM])
        out = [self._answer(s, share.get(tier)) for s, tier in zip(everything, tiers, strict=True)]
        left = iter(out)
        texts = tuple(" ".join(next(left) for _ in passage) for passage in found)
        entities: dict[str, int] = {}
        for sentence in everything:
            for span in sentence.spans:
                entities[span.category] = entities.get(span.category, 0) + 1
        report = PaperReport(
            guarantee=Guarantee.NONE,
            claimed=self.config.epsilon,
            tiers=count,
            verbatim=sum(text == sentence.text for text, sentence in zip(out, everything, strict=True)),
            entities=dict(sorted(entities.items())),
            epsilon_high=share[Tier.HIGH] if count[Tier.HIGH] else 0.0,
            epsilon_medium=share[Tier.MEDIUM] if count[Tier.MEDIUM] else 0.0,
        )
        return PaperAnswer(texts, report)

    def risks(self, query: str, found: Sequence[tuple[str, Sequence[Span]]]) -> list[float]:
        """Return S = .6·S_rel + .4·S_sen of each sentence with its entities (step 2, before noise), in [0, 1].

        S_rel is the cosine with the query, 0 where it is negative, and 0 unless the query itself holds an entity.
        """
        config = self.config
        gate = any(config.opens(span.category) for span in self._spans(query))
        near = np.zeros(len(found))
        if gate and found:
            vectors = _unit(self._embedder.embed([query, *(text for text, _ in found)]))
            near = np.clip(vectors[1:] @ vectors[0], 0.0, 1.0)
        heavy = [max((config.weights.get(s.category, config.other) for s in spans), default=0.0) for _, spans in found]
        return [config.relevance * float(a) + config.sensitivity * b for a, b in zip(near, heavy, strict=True)]

    def scored(self, query: str, passages: Sequence[str]) -> list[tuple[str, float, Tier]]:
        """Return each sentence, its risk, and the tier that it would have without the noise. Private, as it stands."""
        found = [(text, self._spans(text)) for passage in passages for text in sentences(passage)]
        risks = self.risks(query, found)
        return [(text, risk, self.tier_of(risk)) for (text, _), risk in zip(found, risks, strict=True)]

    def shares(self, high: int, medium: int) -> dict[Tier, float]:
        """Return ε of a High and of a Medium sentence when there are so many of each (step 3)."""
        config = self.config
        if high + medium == 0:
            return {Tier.HIGH: 0.0, Tier.MEDIUM: 0.0}
        each = config.epsilon / (2 * (high + config.gamma * medium))
        return {Tier.HIGH: each, Tier.MEDIUM: config.gamma * each}

    def candidates(self, text: str, spans: Sequence[Span]) -> list[str]:
        """Return the m texts to choose from: the sentence itself, where the configuration says so, and others.

        In the others each entity is swapped for one of its category's pool, evenly spread over the pool and the same
        in every call; equal entities are swapped alike.
        """
        others = [
            _swapped(text, spans, self._replacements(text, spans, number))
            for number in range(self.config.candidates - self.config.original)
        ]
        return [text, *others] if self.config.original else others

    def utilities(self, text: str, spans: Sequence[Span], candidates: Sequence[str]) -> list[float]:
        """Return u = −α·d − (1 − α)·r of each candidate (step 4): d the distance of embeddings, r entities kept."""
        vectors = _unit(self._embedder.embed([text, *candidates]))
        distances = np.minimum(np.linalg.norm(vectors[1:] - vectors[0], axis=1), 2.0)
        surfaces = {text[span.start : span.end] for span in spans}
        alpha = self.config.alpha
        kept = [sum(each in c for each in surfaces) / len(surfaces) if surfaces else 1.0 for c in candidates]
        return [-alpha * float(d) - (1 - alpha) * r for d, r in zip(distances, kept, strict=True)]

    def _answer(self, sentence: _Sentence, epsilon: float | None) -> str:
        if epsilon is None or not sentence.spans:
            return sentence.text  # Low; or nothing to swap, so that all candidates are the sentence
        candidates = self.candidates(sentence.text, sentence.spans)
        utilities = self.utilities(sentence.text, sentence.spans, candidates)
        scores = np.array([round(u * GRID) for u in utilities], dtype=np.int64)
        sensitivity = math.ceil(self.config.delta_u * GRID)
        return candidates[self._noise.choose(scores, sensitivity=sensitivity, scale=2 * sensitivity / epsilon)]

    def _tier(self, risk: float) -> Tier:
        noisy = self._noise.laplace(round(risk * GRID), sensitivity=GRID, scale=2 * GRID / self.config.epsilon) / GRID
        return self.tier_of(noisy)

    def tier_of(self, risk: float) -> Tier:
        """Return the tier of a risk: Low below `medium`, High from `high` on."""
        if risk < self.config.medium:
            return Tier.LOW
        return Tier.MEDIUM if risk < self.config.high else Tier.HIGH

    def _spans(self, text: str) -> tuple[Span, ...]:
        """Return what the detector finds, from left to right; of overlapping entities the first, longest one."""
        kept: list[Span] = []
        for span in sorted(self._detect(text), key=lambda span: (span.start, -span.end)):
            if span.end > span.start and (not kept or span.start >= kept[-1].end):
                kept.append(span)
        return tuple(kept)

    def _replacements(self, text: str, spans: Sequence[Span], number: int) -> dict[str, str]:
        chosen: dict[str, str] = {}
        for span in spans:
            surface = text[span.start : span.end]
            if surface not in chosen:
                words = self.config.pools.get(span.category) or (f"[{span.category.upper()}]",)
                # Another step for each entity of a sentence, so that they do not move through their pools together.
                chosen[surface] = words[
                    (number * (len(words) // self.config.candidates or 1) + 7 * len(chosen)) % len(words)
                ]
        return chosen


def _swapped(text: str, spans: Sequence[Span], replacements: Mapping[str, str]) -> str:
    parts, last = [], 0
    for span in spans:
        parts += [text[last : span.start], replacements[text[span.start : span.end]]]
        last = span.end
    return "".join([*parts, text[last:]])


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.where(norms > 0, norms, 1.0)
    return unit
