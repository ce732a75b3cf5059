"""What the tests of distilling share: a journal in memory, a noise that shows what it was told, small collections.

`moved` is the check behind most of them: what one mechanism was told on two neighbouring collections may differ by no
more than the claim that it was called with.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillroom.distil.keywords import FastExtractor
from stillroom.distil.steps import Outcome, Tools, distil
from stillroom.documents import Document, Documents, Unit
from stillroom.embed.hashing import HashEmbedder
from stillroom.lexicon import word_list
from stillroom.lm.base import LanguageModel
from stillroom.privacy.noise import Noise
from stillroom.readers.spool import Spool
from stillroom.release.schema import (
    CoKeywordPlan,
    CutPlan,
    Form,
    KeywordPlan,
    PlanRecord,
    Slot,
    TextPlan,
    TopicPlan,
)
from stillroom.testing.noise import NoNoise
from stillroom.testing.toylm import NaNLM

FORM = Form(
    name="toy",
    about="clinic note",
    slots=(Slot(label="Diagnosis", draws=2), Slot(label="Treatment", draws=2), Slot(label="Symptoms", draws=3)),
)
LISTS = Form(
    name="toy",
    about="clinic note",
    slots=(
        Slot(label="Diagnosis", draws=2),
        Slot(label="Treatment", draws=2, names=True),
        Slot(label="Symptoms", draws=5, list=True),
    ),
)
NOTES = (
    "Diagnosis: Zonkitis Treatment: Blergon with fever and rash",
    "Zonkitis patient Blergon helps with rash",
    "patient of the Unit with Zonkitis and pain, Blergon",
    "Snurflepox Treatment: Fixit fever",
    "Snurflepox Fixit helps the patient with cough and fever",
    "Zonkitis and Snurflepox, Blergon with Fixit",
    "xpoisonx Zonkitis Blergon",
    "pain",
)


def collection() -> Documents:
    """Return eight units; one has two documents, one breaks `NaNLM`, one is in no topic."""
    documents = [Document.of(text, f"note-{i}", f"unit-{i}") for i, text in enumerate(NOTES)]
    return Documents([*documents, Document.of("Zonkitis with cough and Tea, Rest helps", "note-1b", "unit-1")])


def plan(text: Mapping[str, Any] | None = None, **changes: Any) -> PlanRecord:
    """Return a plan of every default step, with thresholds that a handful of units can pass without noise."""
    values: dict[str, Any] = {
        "method": "stillroom", "preset": "toy", "epsilon": 10.0, "delta": 1e-6, "conversion": "optimal",
        "keywords": KeywordPlan(extractor="fast", per_unit=4, sigma=0.4, threshold=1.5, released=12,
                                word_list="stillroom-en-1", least_count=0.5),
        "topics": TopicPlan(per_unit=2, merge=True, highest_zipf=5.0, size_sigma=0.5, smallest=1.5, part=2.0),
        "cokeywords": CoKeywordPlan(per_unit=3, sigma=0.5, published=4),
        "text": TextPlan(**{
            "draws": FORM.draws, "clip": 0.4, "levels": 100, "votes": "one-sided", "candidates": "public", "top_k": 5,
            "floor": 0.1, "completion": True, "form": FORM, "document_tokens": 64, **(text or {}),
        }),
    }  # fmt: skip
    return PlanRecord(**{**values, **changes})


FREE = {"form": None, "draws": 4}
CUT = CutPlan(mean_sigma=1.0, epsilon_theta=0.5, keep=2, steps=41)
PLANS: Mapping[str, PlanRecord] = {
    "the default": plan(),
    "calibrated": plan({"calibration": 0.5, "lift": 0.3, "form": LISTS, "draws": LISTS.draws}),
    "free text": plan(FREE),
    "without prior and completion": plan({"floor": None, "completion": False}),
    "lists of released words, lifted": plan({"form": LISTS, "draws": LISTS.draws, "lift": 0.3}),
    "lists of any words, nobody abstains": plan(
        {"form": LISTS, "draws": LISTS.draws, "lift": 0.3, "lists": "free", "abstain": False}
    ),
    "with the cut": plan(cut=CUT),
    "listed words alone, no sizes, no co-keywords": plan(
        keywords=KeywordPlan(extractor="fast", per_unit=4, sigma=0.4, released=12, word_list="stillroom-en-1"),
        topics=TopicPlan(per_unit=3, merge=False),
        cokeywords=None,
    ),
    "the paper's steps": plan(
        {**FREE, "votes": "centred", "candidates": "all", "floor": None, "completion": False},
        method="paper", topics=TopicPlan(per_unit=2, merge=False), cokeywords=None, cut=CUT,
    ),
}  # fmt: skip


class Book:
    """A journal in memory: keeps what `Journal` keeps, and `asked`, the keys in the order of asking."""

    def __init__(self, committed: Mapping[str, str] | None = None) -> None:
        self.committed = dict(committed or {})
        self.asked: list[str] = []

    def draw(self, key: str, make: Callable[[], Any]) -> Any:
        self.asked.append(key)
        if key not in self.committed:
            self.committed[key] = json.dumps(make(), allow_nan=False)
        return json.loads(self.committed[key])

    def has(self, key: str) -> bool:
        return key in self.committed


@dataclass(frozen=True)
class Call:
    """One call of noise: its public side (name, parameters, shape) and what it was told and returned."""

    name: str
    parameters: Mapping[str, float | None]
    shape: tuple[int, ...]
    told: NDArray[Any]
    unlisted: Mapping[str, float]
    output: Any

    @property
    def public(self) -> tuple[Any, ...]:
        return self.name, tuple(sorted(self.parameters.items())), self.shape


class Shown:
    """A noise that keeps every call; it returns what `inner` returns, or those of `replay` whatever it is told."""

    def __init__(self, inner: Noise | None = None, replay: Iterable[Call] = ()) -> None:
        self._inner = inner
        self._replay: Iterator[Call] = iter(tuple(replay))
        self.calls: list[Call] = []

    def gaussian(self, values: NDArray[np.float64], *, sensitivity: float, sigma: float) -> NDArray[np.float64]:
        parameters: dict[str, Any] = {"sensitivity": sensitivity, "sigma": sigma}
        return self._keep("gaussian", parameters, values, {}, lambda noise: noise.gaussian(values, **parameters))  # type: ignore[no-any-return]

    def histogram(
        self,
        listed: NDArray[np.float64],
        unlisted: Mapping[str, float],
        *,
        keys: int,
        sigma: float,
        threshold: float | None,
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        parameters: dict[str, Any] = {"keys": keys, "sigma": sigma, "threshold": threshold}
        return self._keep(
            "histogram",
            parameters,
            listed,
            unlisted,  # type: ignore[no-any-return]
            lambda noise: noise.histogram(listed, unlisted, **parameters),
        )

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        parameters: dict[str, Any] = {"range": range, "scale": scale, "monotonic": monotonic}
        return self._keep("noisy_max", parameters, scores, {}, lambda noise: noise.noisy_max(scores, **parameters))  # type: ignore[no-any-return]

    def _keep(
        self,
        name: str,
        parameters: Mapping[str, Any],
        told: NDArray[Any],
        unlisted: Mapping[str, float],
        draw: Callable[[Noise], Any],
    ) -> Any:
        if self._inner is not None:
            output = draw(self._inner)
        else:
            again = next(self._replay, None)
            if again is None or (again.name, dict(again.parameters), again.shape) != (
                name,
                dict(parameters),
                told.shape,
            ):
                was = "no more calls" if again is None else str(again.public)
                raise AssertionError(f"recorded was {was}, asked for was {name} {parameters} {told.shape}")
            output = again.output
        self.calls.append(Call(name, parameters, told.shape, told.copy(), dict(unlisted), output))
        return output


class Wild:
    """Outputs that have nothing to do with the counts: any output is possible, so none may make a difference."""

    def __init__(self, seed: int, unlisted: Sequence[str] = ("zonkitis", "snurflepox", "blergon")) -> None:
        self._chance = np.random.default_rng(seed)
        self._unlisted = unlisted

    def gaussian(self, values: NDArray[np.float64], *, sensitivity: float, sigma: float) -> NDArray[np.float64]:
        return self._chance.uniform(-1, 6, values.shape)

    def histogram(
        self,
        listed: NDArray[np.float64],
        unlisted: Mapping[str, float],
        *,
        keys: int,
        sigma: float,
        threshold: float | None,
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        counts = self._chance.uniform(0, 1, listed.shape)
        for word in ("fever", "rash", "cough", "patient", "rest"):
            counts[word_list().index[word]] = self._chance.uniform(1, 9)
        return counts, {} if threshold is None else {word: self._chance.uniform(2, 9) for word in self._unlisted}

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        return int(self._chance.integers(len(scores)))


@dataclass
class Told:
    """Progress that keeps what it is told."""

    said: list[tuple[str, int | None]] = field(default_factory=list)

    def stage(self, name: str, total: int | None) -> None:
        self.said.append((name, total))

    def advance(self, n: int = 1) -> None:
        self.said.append(("advance", n))


@dataclass(frozen=True)
class Run:
    """All that a run shows: its outcome, its journal, its noise calls, its progress."""

    outcome: Outcome
    book: Book
    noise: Shown
    progress: Told

    @property
    def public(self) -> dict[str, Any]:
        """Return what may not depend on one unit when the noise returns the same."""
        return {
            "outcome": self.outcome,
            "journal": self.book.committed,
            "order of keys": self.book.asked,
            "noise calls": [call.public for call in self.noise.calls],
            "progress": self.progress.said,
        }


def spool(documents: Iterable[Document], folder: Path) -> Spool:
    """Return the working copy of a collection, as a run makes it."""
    return Spool.build(Documents(documents), folder / "spool.sqlite", chunk_words=400)


def run(
    documents: Iterable[Document],
    record: PlanRecord,
    folder: Path,
    *,
    noise: Shown | None = None,
    lm: LanguageModel | None = None,
    book: Book | None = None,
) -> Run:
    """Run the shipped steps on a collection with the toy model; without noise, with none."""
    shown, kept, told = noise or Shown(NoNoise()), book or Book(), Told()
    tools = Tools(
        lm=lm or NaNLM(letters=f"{ascii_lowercase},"),
        extractor=FastExtractor(word_list(), record.keywords.per_unit),
        noise=shown,
        journal=kept,
        embedder=HashEmbedder(16),
        progress=told,
    )
    with spool(documents, folder) as units:
        outcome = distil(units, record, tools)
    return Run(outcome, kept, shown, told)


def same(one: Run, other: Run) -> None:
    """Raise AssertionError, naming the first difference, unless two runs show the same."""
    for what, value in one.public.items():
        if value != other.public[what]:
            raise AssertionError(f"{what} tells the two collections apart")


def moved(one: Call, other: Call) -> float:
    """Return what the difference between two calls costs in ρ; AssertionError where it is more than was claimed."""
    if one.public != other.public:
        raise AssertionError("the calls are not of one mechanism")
    p = {name: 0.0 if value is None else float(value) for name, value in one.parameters.items()}
    if one.name == "noisy_max":
        steps = other.told - one.told
        if p["monotonic"]:
            limit, signs = p["range"], {int(s) for s in np.sign(steps)} - {0}
            if len(signs) > 1:
                raise AssertionError("one unit moves scores both ways, but they are called monotonic")
        else:
            limit = p["range"] / 2
        if steps.size and np.abs(steps).max() > limit:
            raise AssertionError(f"a score moves by {np.abs(steps).max()}, claimed was {limit:g}")
        return float(((steps.max() - steps.min()) / p["scale"]) ** 2 / 8)
    keys = sorted(one.unlisted.keys() | other.unlisted.keys())
    unlisted = [Fraction(other.unlisted.get(k, 0.0)) - Fraction(one.unlisted.get(k, 0.0)) for k in keys]
    changed = np.flatnonzero(one.told != other.told)
    steps_ = [Fraction(float(other.told[i])) - Fraction(float(one.told[i])) for i in changed] + unlisted
    squared = sum((step * step for step in steps_), Fraction(0))
    if one.name == "histogram":
        most = Fraction(int(p["keys"]))
        if any(abs(step) > 1 for step in steps_) or sum(step != 0 for step in steps_) > most:
            raise AssertionError("a unit moves more keys than claimed, or one by more than 1")
    else:
        # The square of a claimed √n is n exactly, not what floats make of it.
        claim = p["sensitivity"] ** 2
        most = Fraction(round(claim)) if math.isclose(claim, round(claim), rel_tol=1e-12) else Fraction(claim)
    if squared > most:
        raise AssertionError(f"a vector moves by {math.sqrt(squared)}, claimed was {math.sqrt(most)}")
    return float(squared) / (2 * p["sigma"] ** 2)


def moved_in_all(one: Run, other: Run) -> float:
    """Return what all differences between two runs cost in ρ, each within its claim."""
    pairs = zip(one.noise.calls, other.noise.calls, strict=True)
    return sum(moved(a, b) for a, b in pairs)


def unit(id: str, *texts: str) -> Unit:
    return Unit(id, tuple(Document.of(text, f"{id}/{i}", id) for i, text in enumerate(texts)))
