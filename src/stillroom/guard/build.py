"""The union of detectors that a policy asks for, and PA-HDP with those of its publication."""

from __future__ import annotations

from stillroom.embed.base import Embedder
from stillroom.guard.categories import CATEGORIES, category
from stillroom.guard.detect.base import Detector
from stillroom.guard.detect.closedworld import ClosedWorld
from stillroom.guard.detect.disguise import DisguiseDetector
from stillroom.guard.detect.identifiers import IdentifierDetector
from stillroom.guard.detect.lists import countries, nationalities, states
from stillroom.guard.detect.patterns import PatternDetector, UserPatterns
from stillroom.guard.detect.presidio import PresidioDetector
from stillroom.guard.detect.union import Order, Union, resolve
from stillroom.guard.detect.words import MedicalDetector, WordDetector
from stillroom.guard.paper import PaperConfig, PaperGuard
from stillroom.guard.policy import TIERS, Policy
from stillroom.guard.spans import Span
from stillroom.text import normalise


def build(policy: Policy, names: Detector | None = None) -> Union:
    """Return the detectors of a policy, cheap ones first, with its words, patterns, formulary and order of tiers.

    Args:
        names: finds names by their context; by default Presidio with spaCy's model, which takes seconds to load.

    Raises MissingExtra without the extra guard.
    """
    places = WordDetector({"country": countries(), "nationality": nationalities(), "city": states()}, "places")
    detectors: list[Detector] = [PatternDetector(), DisguiseDetector(), MedicalDetector(), places]
    if policy.words:
        detectors.append(WordDetector(policy.words, "policy words"))
    if policy.patterns:
        detectors.append(UserPatterns(policy.patterns))
    detectors += [IdentifierDetector(), PresidioDetector() if names is None else names]
    rule = policy.closed_world
    closed = (
        ClosedWorld(policy.formulary, zipf=rule.zipf, capital_zipf=rule.capital_zipf, numbers=rule.numbers)
        if rule.on
        else None
    )

    raw = [name for name in CATEGORIES if policy.loosest(name) == "raw"]
    return Union(detectors, closed, order=order_of(policy), raw=raw)


def build_paper(embedder: Embedder, config: PaperConfig | None = None) -> PaperGuard:
    """Return PA-HDP as published over what Presidio with spaCy finds. It keeps no books, and guarantees nothing.

    Raises MissingExtra without the extra guard.
    """
    presidio = PresidioDetector()

    def detect(text: str) -> list[Span]:
        plain = normalise(text)
        return resolve(plain, presidio.detect([plain])[0])

    return PaperGuard(detect, embedder, config)


def order_of(policy: Policy) -> Order:
    """Return which category has a stretch that two of them claim.

    The one with the stricter tier, so that no guess lowers another one's protection; then the surer one. The loosest
    tier that a role has counts: a document is read once for all of them.
    """
    return lambda name: (-TIERS.index(policy.loosest(name)), category(name).rank)
