"""What to look at in a release: topics, words, samples, what was left out, and what each step cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stillroom.privacy.events import from_json
from stillroom.privacy.zcdp import cost
from stillroom.release.folder import Release
from stillroom.release.schema import LeftOut, Text, Topic, Word


@dataclass(frozen=True)
class Spent:
    """One event and its part of the bill: `share` of ρ, in 0…1."""

    event: str
    kind: str
    times: int
    rho: float
    share: float
    delta_ps: float


@dataclass(frozen=True)
class View:
    """A release, ready to show. All of it is public."""

    run: str
    method: str
    preset: str
    unit: str
    guarantee: str
    meaning: str
    epsilon: float
    delta: float
    rho: float
    relation: str
    texts: int
    dropped: int
    topics: tuple[Topic, ...]
    words: tuple[Word, ...]
    left_out: tuple[LeftOut, ...]
    samples: tuple[Text, ...]
    spent: tuple[Spent, ...]
    assumptions: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the view as plain values."""
        records = ("topics", "words", "left_out", "samples")
        plain = {name: value for name, value in vars(self).items() if name not in (*records, "spent")}
        return {
            **plain,
            **{name: [record.model_dump(mode="json") for record in getattr(self, name)] for name in records},
            "spent": [asdict(row) for row in self.spent],
        }


def inspect(release: Release, samples: int = 3) -> View:
    """Return the view of a release with at most `samples` texts, the first part of each topic before second parts."""
    certificate, statistics = release.certificate, release.statistics
    order = {topic.name: place for place, topic in enumerate(statistics.topics)}
    by_part = sorted(release.texts, key=lambda text: (text.part, order.get(text.topic, len(order)), text.topic))
    return View(
        run=certificate.run,
        method=certificate.plan.method,
        preset=certificate.plan.preset,
        unit=certificate.plan.unit,
        guarantee=certificate.guarantee,
        meaning=certificate.meaning,
        epsilon=certificate.epsilon,
        delta=certificate.delta,
        rho=certificate.rho,
        relation=certificate.relation,
        texts=len(release.texts),
        dropped=statistics.dropped,
        topics=statistics.topics,
        words=statistics.words,
        left_out=statistics.left_out,
        samples=tuple(by_part[: max(samples, 0)]),
        spent=_spent(release),
        assumptions=certificate.assumptions,
    )


def _spent(release: Release) -> tuple[Spent, ...]:
    rows = []
    for record in release.certificate.events:
        event = from_json(record)
        paid = cost(event)
        share = paid.rho / release.certificate.rho
        rows.append(Spent(event.name, record["kind"], event.times, paid.rho, share, paid.delta_ps))
    return tuple(rows)


def printable(text: str) -> str:
    """Return a text without control characters but line feeds: a model may write what commands a terminal."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)
