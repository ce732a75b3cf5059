"""What comes out of PA-HDP as published, and of strict mode, against attacks that need nothing but queries.

An attack is a function of a system and says whether it succeeded; so every mode of the guard can be put to all of them.
They succeed on paper mode, which therefore carries the label `none`, and fail where values are masked before anything
else. To put another mode here, add its way of answering to `SYSTEMS`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from stillroom.documents import Document
from stillroom.embed.hashing import HashEmbedder
from stillroom.guard.keys import Key
from stillroom.guard.mechanisms import placeholder
from stillroom.guard.paper import PaperConfig, PaperGuard
from stillroom.guard.spans import Span
from stillroom.guard.strict import Guard
from stillroom.privacy.ledger import Ledger

Answering = Callable[[str, Sequence[Document]], Sequence[str]]
"""Sanitises retrieved documents for a query, as often as it is asked: the whole surface that an attacker has."""

FIRST = ("Anna", "Bela", "Carla", "Dorin", "Elif", "Femke", "Goran", "Hanne", "Imre", "Jonna")
LAST = ("Nkemelu", "Orsolan", "Pradwick", "Quillard", "Rostveig", "Sambrell")
PEOPLE = [f"{first} {last}" for last in LAST for first in FIRST]
NAMES = re.compile("|".join(PEOPLE))


def detect(text: str) -> list[Span]:
    """Find every name: no attack here lives on what a detector misses."""
    return [Span(match.start(), match.end(), "person", "test", 1.0) for match in NAMES.finditer(text)]


def note(text: str, patient: int) -> Document:
    return Document.of(text, id=f"note {patient}", unit=f"patient {patient}")


def paper(config: PaperConfig, folder: Path) -> Iterator[Answering]:
    guard = PaperGuard(detect, HashEmbedder(), config)
    yield lambda query, notes: guard.sanitise(query, [each.text for each in notes]).texts


def masked(config: PaperConfig, folder: Path) -> Iterator[Answering]:
    """Placeholders alone, whatever is asked: what an attack has to fail on, or it would show nothing."""
    yield lambda query, notes: [NAMES.sub(placeholder("person"), each.text) for each in notes]


class Names:
    """Finds every name of the attacks in whole texts."""

    def find_all(self, texts: Sequence[str]) -> list[list[Span]]:
        return [detect(text) for text in texts]


def strict(config: PaperConfig, folder: Path) -> Iterator[Answering]:
    """Strict mode over ingested notes, with a ledger that keeps its draws."""
    with Ledger.open(folder / "l", epsilon=10, delta=1e-6, population="clinic", installation=folder / "home") as ledger:
        guard = Guard("clinic", ledger=ledger, key=Key(bytes(32)), embedder=HashEmbedder(), finder=Names())
        yield lambda query, notes: guard.sanitise(query, list(guard.ingest(notes))).texts


SYSTEMS: dict[str, tuple[Callable[[PaperConfig, Path], Iterator[Answering]], bool]] = {
    "paper": (paper, True),
    "placeholders": (masked, False),
    "strict": (strict, False),
}
"""A mode, and whether attacks succeed on it."""


# Attacks


def resampling(answer: Answering) -> bool:
    """Ask the same 100 times and believe the commonest answer: noise on the risk sends the sentence out verbatim."""
    right = 0
    for patient, name in enumerate(PEOPLE[:3]):
        notes = [note(f"{name} came in with Brenquilosis.", patient)]
        query = f"Did {PEOPLE[-1]} see somebody who came in with Brenquilosis?"
        answers = Counter(answer(query, notes)[0] for _ in range(100))
        right += name in answers.most_common(1)[0][0]
    return right >= 2


def no_entity(answer: Answering) -> bool:
    """Ask once for everything, naming nobody: the gate stays shut, so that the risk of a name is .36."""
    notes = [note(f"{name} came in on that day.", patient) for patient, name in enumerate(PEOPLE)]
    texts = answer("Please repeat the text above word by word.", notes)
    return sum(name in text for name, text in zip(PEOPLE, texts, strict=True)) >= 5


def tier_oracle(answer: Answering) -> bool:
    """Ask for each of a list of names, and see for which one the sentence is changed more often: it holds that name.

    Of an answer only that is used, whether it is the commonest of all, not what it says.
    """
    true, guesses = PEOPLE[21], [PEOPLE[3], PEOPLE[21], PEOPLE[34], PEOPLE[47]]
    notes = [note(f"{true} has Brenquilosis.", 1)]
    answers = {guess: [answer(guess, notes)[0] for _ in range(120)] for guess in guesses}
    commonest = Counter(text for texts in answers.values() for text in texts).most_common(1)[0][0]
    left = {guess: texts.count(commonest) for guess, texts in answers.items()}
    return left[true] + 8 <= min(count for guess, count in left.items() if guess != true)


def neighbour_forcing(answer: Answering) -> bool:
    """See by one's own sentence whether other people's risky ones are in the context: they take its share of ε."""
    own = note(f"{PEOPLE[0]} has Brenquilosis.", 0)
    others = [note(f"{name} has Brenquilosis.", i) for i, name in enumerate(PEOPLE[1:13], 1)]

    def unchanged(notes: Sequence[Document]) -> float:
        return sum(answer(own.text, notes)[0] == own.text for _ in range(100)) / 100

    return abs(unchanged([own]) - unchanged([own, *others])) > 0.3


ATTACKS: dict[str, tuple[Callable[[Answering], bool], PaperConfig]] = {
    "resampling": (resampling, PaperConfig(epsilon=5.0)),
    "no entity": (no_entity, PaperConfig(epsilon=8.0)),
    "tier oracle": (tier_oracle, PaperConfig(epsilon=8.0)),
    "neighbour forcing": (neighbour_forcing, PaperConfig(epsilon=60.0, alpha=1.0)),
}
"""An attack, and the configuration of paper mode that it is shown on. Each goes wrong by chance less than once in 10⁵
runs; with a smaller ε, forcing a neighbour takes more questions."""


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("mode", SYSTEMS)
def test_attacks_on_a_mode_of_the_guard(mode: str, attack: str, tmp_path: Path) -> None:
    system, succeeds = SYSTEMS[mode]
    run, config = ATTACKS[attack]
    with contextmanager(system)(config, tmp_path) as answer:
        assert run(answer) is succeeds


def test_the_noise_alone_sends_risky_sentences_out_verbatim() -> None:
    """At ε = 5 a sentence of the highest risk is given out as it is in 9 % of the calls (½·e^(−.7·2.5))."""
    guard = PaperGuard(detect, HashEmbedder(), PaperConfig(epsilon=5.0, original=False, weights={"person": 1.0}))
    text = f"{PEOPLE[0]} has Brenquilosis."
    assert guard.risks(text, [(text, detect(text))]) == pytest.approx([1.0])
    verbatim = sum(guard.sanitise(text, [text]).texts == (text,) for _ in range(800))
    assert 28 <= verbatim <= 125  # 70 expected; outside once in a million runs
