"""Which topics, document, words and part a unit has depends on this unit and on released words alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.distil.keywords import FastExtractor
from stillroom.distil.topics import Matcher, Member, assign, groups_of, keep, part_of
from stillroom.documents import Unit
from stillroom.lexicon import word_list
from stillroom.release.schema import TopicPlan, Word
from tests.privacy.mechanics import unit

NAMES = ("zonkitis", "snurflepox", "blergon", "fever", "fevers", "rash", "cough", "coughing", "pain")
WORDS = tuple(Word(word=w, count=float(n), listed=w in word_list()) for n, w in enumerate(NAMES, 3))
FILLERS = ("the", "and", "Helmut", "xpoisonx", "PAIN", "Zonkitis")
SIZES = tuple(float(n) for n in range(40, 40 - len(NAMES), -1))
Assign = Callable[[Sequence[Unit]], list[list[Member]]]

texts = st.lists(st.sampled_from([*NAMES, *FILLERS]), max_size=12).map(" ".join)
collections = st.lists(st.lists(texts, min_size=1, max_size=4), min_size=1, max_size=8).map(
    lambda units: [unit(f"unit {i}", *documents) for i, documents in enumerate(units)]
)


def plan_of(most: int, merge: bool = True) -> TopicPlan:
    return TopicPlan(per_unit=most, merge=merge, size_sigma=1.0, part=9.0)


def shipped(most: int, merge: bool = True) -> Assign:
    groups, _ = groups_of(WORDS, plan_of(most, merge))
    matcher = Matcher(WORDS, groups, merge)
    return lambda units: assign(units, matcher, len(groups), most)


def places(members: Sequence[Sequence[Member]]) -> dict[str, list[tuple[int, Member, int]]]:
    """Return by unit: topic, membership and part of each of its places."""
    found: dict[str, list[tuple[int, Member, int]]] = {}
    for topic, inside in enumerate(members):
        for member in inside:
            found.setdefault(member.unit, []).append((topic, member, part_of(member.unit, str(topic), 3)))
    return found


def alone(assigned: Assign, units: Sequence[Unit]) -> None:
    """Raise AssertionError unless removing any unit, or turning the order, leaves all others where they were."""
    here = places(assigned(units))
    if places(assigned([*reversed(units)])) != here:
        raise AssertionError("the order of units changes their places")
    for gone in units:
        left = places(assigned([u for u in units if u.id != gone.id]))
        if left != {id: place for id, place in here.items() if id != gone.id}:
            raise AssertionError("one unit changes the places of others")


def bounded(assigned: Assign, units: Sequence[Unit], most: int) -> None:
    """Raise AssertionError unless every unit is in at most L topics, once in each."""
    for place in places(assigned(units)).values():
        topics = [topic for topic, _, _ in place]
        if len(topics) > most or len(set(topics)) < len(topics):
            raise AssertionError("a unit counts more often than it may")


@settings(deadline=None)
@given(units=collections, most=st.integers(1, 4), merge=st.booleans())
def test_no_unit_changes_where_another_is(units: list[Unit], most: int, merge: bool) -> None:
    alone(shipped(most, merge), units)


@settings(deadline=None)
@given(units=collections, most=st.integers(1, 4))
def test_a_unit_is_in_at_most_l_topics_with_one_document_and_one_part(units: list[Unit], most: int) -> None:
    bounded(shipped(most), units, most)
    by_id = {u.id: u for u in units}
    for id, place in places(shipped(most)(units)).items():
        assert all(0 <= member.document < len(by_id[id].documents) for _, member, _ in place)
        assert all(member.words == tuple(dict.fromkeys(member.words)) for _, member, _ in place)


def test_a_unit_of_fifty_documents_counts_once_in_each_of_l_topics() -> None:
    many = unit("many", *(f"{NAMES[i % len(NAMES)]} visit {i}" for i in range(50)))
    (place,) = places(shipped(2)([many])).values()
    assert len(place) == 2 and len({topic for topic, _, _ in place}) == 2


@settings(deadline=None)
@given(units=collections)
def test_rarest_topics_come_first(units: list[Unit]) -> None:
    all_of_them = places(shipped(len(NAMES))(units))
    for id, place in places(shipped(2)(units)).items():
        assert [p[0] for p in place] == [p[0] for p in all_of_them[id]][:2]


@settings(deadline=None)
@given(units=collections)
def test_the_words_of_a_unit_come_from_it_alone(units: list[Unit]) -> None:
    extractor = FastExtractor(word_list(), 3)
    together = extractor.extract_many(units)
    assert together == [extractor.extract(u) for u in units]
    assert extractor.extract_many([*reversed(units)]) == together[::-1]


def test_which_topics_are_kept_and_how_they_are_split_is_a_function_of_released_sizes() -> None:
    plan = TopicPlan(per_unit=2, merge=True, size_sigma=1.0, smallest=34.0, part=10.0, most=4)
    groups, _ = groups_of(WORDS, plan)
    kept, left = keep(groups, SIZES[: len(groups)], plan)
    assert [t.size for t in kept] == [40.0, 39.0, 38.0, 37.0] and all(t.parts == int((t.size or 0) // 10) for t in kept)
    assert {t.group.name for t in kept} | {entry.word for entry in left} == {g.name for g in groups}
    assert keep(groups, None, plan) == (tuple(type(kept[0])(g, None, 1) for g in groups), ())


@given(id=st.text(), topic=st.text(), parts=st.integers(1, 9))
def test_a_part_is_a_public_function_of_unit_and_topic(id: str, topic: str, parts: int) -> None:
    assert part_of(id, topic, parts) == part_of(id, topic, parts) < parts


def test_parts_are_about_even() -> None:
    found = [part_of(f"patient {i}", "zonkitis", 4) for i in range(4000)]
    assert all(850 < found.count(part) < 1150 for part in range(4))


# -- what would go wrong, seen by the same checks --------------------------------------------------------------------
UNITS = [unit(f"unit {i}", "zonkitis fever", "rash cough pain blergon") for i in range(4)]


def test_the_check_catches_a_capacity() -> None:
    right = shipped(2)

    def first_two(units: Sequence[Unit]) -> list[list[Member]]:
        return [members[:2] for members in right(units)]

    with pytest.raises(AssertionError, match=r"order|others"):
        alone(first_two, UNITS)


def test_the_check_catches_a_cap_for_each_document_instead_of_each_unit() -> None:
    right = shipped(2)

    def by_document(units: Sequence[Unit]) -> list[list[Member]]:
        apart = [Unit(u.id, (document,)) for u in units for document in u.documents]
        return right(apart)

    bounded(right, UNITS, 2)
    with pytest.raises(AssertionError, match="more often"):
        bounded(by_document, UNITS, 2)


def test_the_check_catches_parts_dealt_out_in_turn() -> None:
    right = shipped(2)

    def in_turn(units: Sequence[Unit]) -> list[list[Member]]:
        return [[Member(m.unit, n % 2, m.words) for n, m in enumerate(members)] for members in right(units)]

    with pytest.raises(AssertionError, match=r"order|others"):
        alone(in_turn, UNITS)
