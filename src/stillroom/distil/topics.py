"""Soft clustering by released words: which units a topic holds.

Membership of a unit depends on that unit and on released words only (rule 18): in the order of the released words (the
paper's: from the rarest to the most frequent) a unit joins a topic while it has the word and has joined fewer than L.
In each topic it counts with one document and in one part (rule 16). Source: DP-SynRAG (arXiv 2510.06719), step 2, per
unit instead of per document.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stillroom.documents import Unit
from stillroom.lexicon import lemma, zipf
from stillroom.privacy.noise import Noise
from stillroom.release.costs import parts_of
from stillroom.release.schema import LeftOut, TopicPlan, Word
from stillroom.text import words as words_of

SALT = b"stillroom-parts-1"
"""Public: which part of a topic a unit falls into depends on it and the unit id alone."""
TOO_COMMON = 3.0
REMEMBERED = 100_000
"""Words for which a matcher remembers what they are."""


@dataclass(frozen=True)
class Group:
    """Released words that count as one, with the largest of their noisy counts; named by the most frequent."""

    name: str
    words: tuple[str, ...]
    count: float


@dataclass(frozen=True, slots=True)
class Member:
    """A unit in a topic: the document it counts with, and the released words of that document (indices).

    There is one for every unit, so it is kept small.
    """

    unit: str
    document: int
    words: tuple[int, ...]


@dataclass(frozen=True)
class Sized:
    """A topic that is kept, with its noisy size (None: not released) and the number of its parts."""

    group: Group
    size: float | None
    parts: int


def groups_of(words: Sequence[Word], plan: TopicPlan) -> tuple[tuple[Group, ...], tuple[LeftOut, ...]]:
    """Return the words that make topics, in the order in which units join, and those too common to make one."""
    key = lemma if plan.merge else str
    gathered: dict[str, list[Word]] = {}
    for word in words:
        gathered.setdefault(key(word.word), []).append(word)
    groups, left = [], []
    for base, members in gathered.items():
        members.sort(key=lambda w: (-w.count, w.word))
        if plan.highest_zipf is not None and zipf(base) > plan.highest_zipf:
            left.append(LeftOut(word=members[0].word, reason="a common word of the language"))
        else:
            groups.append(Group(members[0].word, tuple(w.word for w in members), members[0].count))
    groups.sort(key=lambda g: (g.count, g.name))
    if plan.order == "names":
        groups = _names_first(groups, {w.word for w in words if not w.listed})
    return tuple(groups), tuple(sorted(left, key=lambda entry: entry.word))


def _names_first(groups: Sequence[Group], unlisted: Collection[str]) -> list[Group]:
    """Return the names first, from the most frequent to the rarest, then the other words, rarest first.

    Names are words that no public list knows: of drugs, diseases, products. The most frequent name of a matter covers
    nearly all of its units; by the rarest word they are scattered over topics too small to keep. A name more than
    TOO_COMMON times as frequent as the median name (the house's own) is no matter's, and takes its turn with the rest.
    """
    names = [group for group in groups if any(word in unlisted for word in group.words)]
    if not names:
        return list(groups)
    median = sorted(group.count for group in names)[len(names) // 2]
    first = [group for group in names if group.count <= TOO_COMMON * median]
    return [*sorted(first, key=lambda g: (-g.count, g.name)), *(group for group in groups if group not in first)]


class Matcher:
    """Finds released words and topics in a text, and nothing else of it.

    Args:
        words: all released words, in released order.
        groups: topics, rarest first.
        merge: words are compared by their public lemma.
        rank: public order of the released words for co-keywords; the first K_c of a document count.
    """

    def __init__(
        self, words: Sequence[Word], groups: Sequence[Group], merge: bool, rank: Callable[[str], float] = zipf
    ) -> None:
        self._key: Callable[[str], str] = lemma if merge else str
        self._word = {w.word: i for i, w in enumerate(words)}
        self._group = {self._key(word): i for i, group in enumerate(groups) for word in group.words}
        self._order = sorted(range(len(words)), key=lambda i: (rank(words[i].word), words[i].word))
        self._place = {word: place for place, word in enumerate(self._order)}
        # A function of the word and released ones, kept: most words of a text stand in many others.
        self._known = lru_cache(maxsize=REMEMBERED)(self._look_up)

    def match(self, text: str) -> tuple[frozenset[int], tuple[int, ...]]:
        """Return the topics whose word the text contains, and its released words, rarest in public text first."""
        known = [found for w in set(words_of(text)) if (found := self._known(w)) is not None]
        groups = frozenset(group for group, _ in known if group is not None)
        return groups, tuple(sorted((i for _, i in known if i is not None), key=self._place.__getitem__))

    def _look_up(self, word: str) -> tuple[int | None, int | None] | None:
        """Return the topic of a word and the released word that it is; None where it is neither."""
        found = self._group.get(self._key(word)), self._word.get(word)
        return None if found == (None, None) else found

    def join(self, unit: Unit, most: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield (topic, document, released words) of the first `most` topics that a unit has, rarest first."""
        matched = [self.match(document.text) for document in unit.documents]
        everything = sorted(frozenset().union(*(groups for groups, _ in matched)))
        for group in everything[:most]:
            at = next(i for i, (groups, _) in enumerate(matched) if group in groups)
            yield group, at, matched[at][1]


def assign(units: Iterable[Unit], matcher: Matcher, topics: int, most: int) -> list[list[Member]]:
    """Return the members of every topic, in order of unit id."""
    members: list[list[Member]] = [[] for _ in range(topics)]
    for unit in units:
        for topic, document, words in matcher.join(unit, most):
            members[topic].append(Member(unit.id, document, words))
    return members


def noisy_sizes(members: Sequence[Sequence[Member]], plan: TopicPlan, noise: Noise) -> list[float] | None:
    """Return the noisy number of members of each topic; one draw, L2 sensitivity √L. None: not released."""
    if plan.size_sigma is None:
        return None
    counts = np.array([len(m) for m in members], dtype=np.float64)
    return [
        round(float(n), 1) for n in noise.gaussian(counts, sensitivity=math.sqrt(plan.per_unit), sigma=plan.size_sigma)
    ]


def keep(
    groups: Sequence[Group], sizes: Sequence[float] | None, plan: TopicPlan
) -> tuple[tuple[Sized, ...], tuple[LeftOut, ...]]:
    """Return the topics to keep with their parts, and those left out: a function of released values alone.

    Units of a topic left out are merged upward: they join the next topic in order whose word they have, so the
    size of a kept topic can only grow.
    """
    if sizes is None:
        return tuple(Sized(group, None, 1) for group in groups), ()
    left = [
        LeftOut(word=group.name, reason=f"noisy size {size:.0f} is below {plan.smallest:.0f}: merged upward")
        for group, size in zip(groups, sizes, strict=True)
        if size < plan.smallest
    ]
    kept = [(group, size) for group, size in zip(groups, sizes, strict=True) if size >= plan.smallest]
    if plan.most is not None and len(kept) > plan.most:
        order = sorted(kept, key=lambda pair: (-pair[1], pair[0].name))
        over = {group.name for group, _ in order[plan.most :]}
        left += [LeftOut(word=name, reason=f"not among the {plan.most} largest topics: merged upward") for name in over]
        kept = [pair for pair in kept if pair[0].name not in over]
    sized = tuple(Sized(group, size, parts_of(size, plan)) for group, size in kept)
    return sized, tuple(sorted(left, key=lambda entry: entry.word))


def part_of(unit: str, topic: str, parts: int) -> int:
    """Return the part of a topic that a unit falls into, 0..parts − 1, by a public hash of the unit id."""
    digest = hashlib.sha256(b"\0".join((SALT, topic.encode(), unit.encode("utf-8", "surrogatepass")))).digest()
    return int.from_bytes(digest[:8], "big") % parts
