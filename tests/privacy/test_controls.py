"""Mistakes that others have made, put into the shipped steps: the checks of whole runs must see each of them.

`seen` runs what `test_neighbours` runs. A check that lets a mistake pass proves nothing about the code it passes.
Controls of single steps stand with their tests: votes, text step, histogram, membership, co-keywords, cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillroom.distil import cokeywords, histogram, steps, votes
from stillroom.distil.synthesise import Synthesis
from stillroom.distil.topics import Matcher, Member
from stillroom.documents import Document, Documents, Unit
from stillroom.lm.base import Session
from stillroom.privacy.zcdp import total
from stillroom.release.costs import events_of
from stillroom.release.schema import PlanRecord
from stillroom.testing.neighbours import Neighbour, neighbours
from stillroom.testing.noise import NoNoise
from stillroom.testing.toylm import CrowdedLM, NaNLM
from tests.privacy.mechanics import PLANS, Shown, collection, moved_in_all, plan, run, same

RECORD = PLANS["the default"]


def others() -> Iterator[Neighbour]:
    yield from neighbours(collection())
    rich = "Zonkitis Snurflepox Blergon fever rash cough pain patient Rest Fixit Tea helps"
    added = [Document.of(f"{rich} visit", f"rich/{i}", "rich") for i in range(3)]
    yield Neighbour("with a rich unit", "rich", Documents([*collection(), *added]), removed=False)


def seen(folder: Path, record: PlanRecord = RECORD, lm: Any = None) -> None:
    """Raise AssertionError if a neighbouring collection shows, or moves the noise by more than is paid."""
    model = lm or NaNLM()
    first = run(collection(), record, folder, noise=Shown(NoNoise()), lm=model)
    for neighbour in others():
        again = run(neighbour.documents, record, folder, noise=Shown(replay=first.noise.calls), lm=model)
        same(first, again)
        if moved_in_all(first, again) > total(events_of(record)).rho:
            raise AssertionError("the run costs more than is paid")


def test_the_steps_as_shipped_pass(tmp_path: Path) -> None:
    seen(tmp_path)


Patch = Callable[[pytest.MonkeyPatch], None]


def trusted_extractor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(histogram, "bound", lambda found, k: tuple(found))
    right = steps.released_words

    def everything(keywords: Iterable[Sequence[str]], *others: Any) -> Any:
        # Eleven words of a full unit, as an extractor returns them that a document has told to.
        return right(
            ([*found, *(f"leak{chr(97 + i)}zz" for i in range(7))] if len(found) > 3 else found for found in keywords),
            *others,
        )

    patch.setattr(steps, "released_words", everything)


def words_by_document(patch: pytest.MonkeyPatch) -> None:
    right = steps.released_words

    def apart(keywords: Iterable[Sequence[str]], kept: Any, known: Any, noise: Any) -> Any:
        def split() -> Iterator[Sequence[str]]:
            for found in keywords:
                yield found
                if len(found) > 3:  # a second document of this unit, with the same words
                    yield found

        return right(split(), kept, known, noise)

    patch.setattr(steps, "released_words", apart)


def observed_words_only(patch: pytest.MonkeyPatch) -> None:
    class Thin:
        def __init__(self, noise: Any) -> None:
            self.noise = noise

        def histogram(self, listed: Any, unlisted: Any, **claim: Any) -> Any:
            there = np.flatnonzero(listed)
            noisy, above = self.noise.histogram(listed[there], unlisted, **claim)
            counts = np.full(len(listed), -1.0)
            counts[there] = noisy
            return counts, above

    right = steps.released_words
    patch.setattr(steps, "released_words", lambda words, kept, known, noise: right(words, kept, known, Thin(noise)))


def topics_by_document(patch: pytest.MonkeyPatch) -> None:
    right = Matcher.join

    def each(self: Matcher, unit: Unit, most: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        for at, document in enumerate(unit.documents):
            for topic, _, words in right(self, Unit(unit.id, (document,)), most):
                yield topic, at, words

    patch.setattr(Matcher, "join", each)


def topics_without_a_cap(patch: pytest.MonkeyPatch) -> None:
    right = Matcher.join
    patch.setattr(Matcher, "join", lambda self, unit, most: right(self, unit, 99))


def a_capacity(patch: pytest.MonkeyPatch) -> None:
    right = steps.assign
    patch.setattr(steps, "assign", lambda *a: [members[:3] for members in right(*a)])


def parts_by_true_size(patch: pytest.MonkeyPatch) -> None:
    right = steps._topics

    def split(*a: Any) -> Any:
        kept, members, left = right(*a)
        sized = tuple(replace(t, parts=max(1, len(m) // 2)) for t, m in zip(kept, members, strict=True))
        return sized, members, left

    patch.setattr(steps, "_topics", split)


def empty_topics_skipped(patch: pytest.MonkeyPatch) -> None:
    right = steps._topics

    def large(*a: Any) -> Any:
        kept, members, left = right(*a)
        pairs = [(t, m) for t, m in zip(kept, members, strict=True) if len(m) > 2]
        return tuple(t for t, _ in pairs), [m for _, m in pairs], left

    patch.setattr(steps, "_topics", large)


def sizes_without_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "noisy_sizes", lambda members, kept, noise: [float(len(m)) for m in members])


def cokeywords_uncapped(patch: pytest.MonkeyPatch) -> None:
    def uncapped(members: Sequence[Member], words: Any, kept: Any, noise: Any, own: Any) -> Any:
        class Unbounded:
            per_unit, sigma, published = 99, kept.sigma, kept.published

        class Cheap:
            def gaussian(self, values: Any, *, sensitivity: float, sigma: float) -> Any:
                return noise.gaussian(values, sensitivity=kept.per_unit**0.5, sigma=sigma)

        return cokeywords.together(members, words, Unbounded(), Cheap(), own)  # type: ignore[arg-type]

    patch.setattr(steps, "together", uncapped)


def topics_left_out_by_true_counts(patch: pytest.MonkeyPatch) -> None:
    right = steps._together

    def honest(plan_: Any, tools: Any, words: Any, topics: Any, members: Any) -> Any:
        kept, inside, shown, left = right(plan_, tools, words, topics, members)
        real = [len(m) > 3 for m in inside]
        return *(tuple(x for x, good in zip(xs, real, strict=True) if good) for xs in (kept, inside, shown)), left

    patch.setattr(steps, "_together", honest)


def quiet_topics_ask_no_noise(patch: pytest.MonkeyPatch) -> None:
    right = steps.together

    def lazy(members: Sequence[Member], words: Any, kept: Any, noise: Any, own: Any) -> Any:
        return right(members, words, kept, noise, own) if len(members) > 2 else ()

    patch.setattr(steps, "together", lazy)


def rows_abstain_by_what_others_want(patch: pytest.MonkeyPatch) -> None:
    right = votes.one_sided

    def together(scores: Any, levels: int, top: Any = None) -> Any:
        return right(scores, levels, np.full_like(top, np.nanmax(top)) if top is not None and len(top) else top)

    patch.setattr(votes, "one_sided", together)


def candidates_of_private_rows(patch: pytest.MonkeyPatch) -> None:
    right = Synthesis.going
    patch.setattr(
        Synthesis,
        "going",
        lambda self, key, private, public, spelling, progress: right(
            self, key, private, private if private.rows else public, spelling, progress
        ),
    )


def votes_out_of_range(patch: pytest.MonkeyPatch) -> None:
    right = votes.one_sided
    patch.setattr(votes, "one_sided", lambda scores, levels, top=None: 2 * right(scores, levels, top))


def votes_shared_among_rows(patch: pytest.MonkeyPatch) -> None:
    right = Session.tally
    patch.setattr(Session, "tally", lambda self, count: right(self, count) // max(1, self.rows))


def a_text_only_where_somebody_votes(patch: pytest.MonkeyPatch) -> None:
    right = steps._rows

    def filled(*a: Any) -> Any:
        return [[part for part in parts if len(part) > 1] for parts in right(*a)]

    patch.setattr(steps, "_rows", filled)


def progress_of_units(patch: pytest.MonkeyPatch) -> None:
    right = steps._words

    def counted(units: Any, record: Any, tools: Any) -> Any:
        tools.progress.advance(sum(1 for _ in units.units()))
        return right(units, record, tools)

    patch.setattr(steps, "_words", counted)


MISTAKES: dict[str, tuple[Patch, str]] = {
    "an extractor that is trusted": (trusted_extractor, "moves more keys"),
    "words counted for each document": (words_by_document, "more keys"),
    "noise on observed words only": (observed_words_only, "recorded was"),
    "topics capped for each document": (topics_by_document, "moves by"),
    "topics not capped": (topics_without_a_cap, "moves by|more than is paid"),
    "a topic holds the first three": (a_capacity, "moves by|both ways"),
    "topics split by true size": (parts_by_true_size, "recorded was"),
    "small topics skipped by true size": (empty_topics_skipped, "recorded was|outcome"),
    "sizes without noise": (sizes_without_noise, "journal|outcome|recorded was"),
    "co-keywords not capped": (cokeywords_uncapped, "vector moves"),
    "topics left out by true counts": (topics_left_out_by_true_counts, "recorded was|outcome"),
    "no noise for a topic that is nearly empty": (quiet_topics_ask_no_noise, "recorded was|outcome"),
    "rows abstain by what others want": (rows_abstain_by_what_others_want, "both ways|a score moves"),
    "candidates of private rows": (candidates_of_private_rows, "recorded was|journal"),
    "votes out of their range": (votes_out_of_range, "a score moves"),
    "votes divided by a true count": (votes_shared_among_rows, "both ways"),
    "texts only where somebody votes": (a_text_only_where_somebody_votes, "recorded was|outcome"),
    "progress that counts units": (progress_of_units, "progress"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_checks_see(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake, message = MISTAKES[name]
    mistake(monkeypatch)
    with pytest.raises(AssertionError, match=message):
        seen(tmp_path)


def test_the_checks_see_rows_that_lean_on_each_other(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"both ways|a score moves"):
        seen(tmp_path, plan({"levels": 1000}), CrowdedLM())


def test_the_checks_see_a_charge_that_forgets_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [event for event in events_of(RECORD) if event.name == "topic sizes"]
    monkeypatch.setitem(globals(), "events_of", lambda record: sizes)
    with pytest.raises(AssertionError, match="more than is paid"):
        seen(tmp_path)


def test_there_are_so_many_controls() -> None:
    assert len(MISTAKES) == 18
