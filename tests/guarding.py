"""Made-up notes and guards for the tests of strict mode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stillroom.documents import Document
from stillroom.embed.hashing import HashEmbedder
from stillroom.guard.build import build
from stillroom.guard.keys import Key
from stillroom.guard.policy import Policy, load_policy
from stillroom.guard.spans import Span
from stillroom.guard.strict import Guard
from stillroom.privacy.ledger import Ledger
from tests.detection import presidio

KEY = Key(bytes(range(32)))

FORMS = {
    "person": r"Anna Nkemelu|Bela Orsolan|Carla Pradwick",
    "date": r"\d{4}-\d{2}-\d{2}",
    "age": r"\b\d{2}(?= years)",
    "city": r"Paris|Lyon|Oslo",
    "country": r"France|Norway",
    "diagnosis": r"Brenquilosis|asthma",
    "email": r"\S+@\S+\w",
}


class Forms:
    """Finds the made-up values of these tests and counts how often it is asked; for what does not try detection."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def find_all(self, texts: Sequence[str]) -> list[list[Span]]:
        self.texts += texts
        return [
            sorted(
                (
                    Span(m.start(), m.end(), name, "forms", 1.0)
                    for name, form in FORMS.items()
                    for m in re.finditer(form, text)
                ),
                key=lambda span: span.start,
            )
            for text in texts
        ]


class Counting(HashEmbedder):
    """Counts the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts):  # type: ignore[no-untyped-def]
        self.texts += texts
        return super().embed(texts)


def calm(policy: str | Policy = "clinic") -> Policy:
    """Return a policy without risk: every tier is its base tier."""
    loaded = load_policy(policy) if isinstance(policy, str) else policy
    return loaded.model_copy(
        update={"risk": loaded.risk.model_copy(update={"surrogate": 1.0, "placeholder": 1.0, "relevance": 1.0})}
    )


def with_ward() -> Policy:
    """Return a policy with a role that reads placeholders and may have their values."""
    ward = calm().roles["clinician"].model_copy(update={"least": "placeholder"})
    return calm().model_copy(update={"roles": {**calm().roles, "ward": ward}})


def real(policy: Policy) -> object:
    """Return the detectors of a policy, Presidio loaded once for the whole process."""
    return build(policy, presidio())


@contextmanager
def book(folder: Path, **names: str) -> Iterator[Ledger]:
    with Ledger.open(
        folder / "clinic.ledger", epsilon=10, delta=1e-6, population="clinic", installation=folder / "home"
    ) as ledger:
        yield ledger


def note(text: str, patient: int | str, number: int = 1, **metadata: str) -> Document:
    return Document.of(text, id=f"note {patient}/{number}", unit=f"patient {patient}", **metadata)


def guard(ledger: Ledger | None, policy: str | Policy | None = None, **options: object) -> Guard:
    return Guard(
        calm() if policy is None else policy,
        ledger=ledger,
        key=KEY,
        **{"embedder": HashEmbedder(), "finder": Forms(), **options},  # type: ignore[arg-type]
    )
