"""The steps of distilling in their order: from a spooled collection to public statistics and texts.

Every draw goes through the journal; what lies between two draws is recomputed on resume and depends on the collection
and committed draws alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from stillroom.distil.cokeywords import together
from stillroom.distil.cut import noisy_mean, noisy_threshold, similarities
from stillroom.distil.histogram import released_words
from stillroom.distil.prompts import prose_prompt
from stillroom.distil.selffilter import useful
from stillroom.distil.texts import write_texts
from stillroom.distil.tools import Tools, Units
from stillroom.distil.topics import Group, Matcher, Member, Sized, assign, groups_of, keep, noisy_sizes, part_of
from stillroom.distil.values import grounded
from stillroom.lexicon import word_list
from stillroom.lm.base import LanguageModel
from stillroom.release.schema import LeftOut, PlanRecord, Statistics, Text, Topic, Word
from stillroom.text import normalise

PROSE_TOKENS = 80


@dataclass(frozen=True)
class Outcome:
    statistics: Statistics
    texts: tuple[Text, ...]


def distil(units: Units, plan: PlanRecord, tools: Tools) -> Outcome:
    """Return the public outcome of all steps. What it costs is `costs.events_of(plan)`, whatever happens here."""
    words = _words(units, plan, tools)
    groups, common = groups_of(words, plan.topics)
    topics, members, small = _topics(units, plan, tools, words, groups)
    topics, members, shown, silent = _together(plan, tools, words, topics, members)
    rows = _rows(units, plan, tools, topics, members)
    texts = write_texts(units, plan, tools, topics, shown, rows)
    told = useful([text.text for text in texts], plan, tools.lm)
    kept = [good and _grounded(plan, text, topics, shown) for text, good in zip(texts, told, strict=True)]
    statistics = Statistics(
        words=words,
        topics=tuple(
            Topic(name=t.group.name, words=t.group.words, size=t.size, parts=t.parts, together=w)
            for t, w in zip(topics, shown, strict=True)
        ),
        left_out=tuple(sorted((*common, *small, *silent), key=lambda entry: (entry.word, entry.reason))),
        dropped=kept.count(False),
    )
    left = [text for text, good in zip(texts, kept, strict=True) if good]
    return Outcome(statistics, tuple(_prose(plan, tools.lm, left)))


def _words(units: Units, plan: PlanRecord, tools: Tools) -> tuple[Word, ...]:
    """Extract keywords unit by unit and release the noisy histogram."""
    tools.progress.stage("keywords", None)

    def make() -> list[dict[str, object]]:
        def found() -> Iterator[Sequence[str]]:
            source = units.units()
            while batch := list(islice(source, tools.batch)):
                # No progress is told here: how many units there are is private (rule 10).
                yield from tools.extractor.extract_many(batch)

        released = released_words(found(), plan.keywords, word_list(plan.keywords.word_list), tools.noise)
        return [word.model_dump() for word in released]

    return tuple(Word.model_validate(w) for w in tools.journal.draw("keywords", make))


def _topics(
    units: Units, plan: PlanRecord, tools: Tools, words: Sequence[Word], groups: Sequence[Group]
) -> tuple[tuple[Sized, ...], list[list[Member]], tuple[LeftOut, ...]]:
    """Assign units to topics, release the sizes, keep the topics that are large enough, and assign again."""
    tools.progress.stage("topics", None)
    most = plan.topics.per_unit

    def sizes() -> list[float] | None:
        matcher = Matcher(words, groups, plan.topics.merge)
        return noisy_sizes(assign(units.units(), matcher, len(groups), most), plan.topics, tools.noise)

    released = tools.journal.draw("sizes", sizes) if plan.topics.size_sigma is not None else None
    kept, left = keep(groups, released, plan.topics)
    matcher = Matcher(words, [t.group for t in kept], plan.topics.merge)
    return kept, assign(units.units(), matcher, len(kept), most), left


def _together(
    plan: PlanRecord, tools: Tools, words: Sequence[Word], topics: Sequence[Sized], members: Sequence[list[Member]]
) -> tuple[tuple[Sized, ...], list[list[Member]], list[tuple[Word, ...]], tuple[LeftOut, ...]]:
    """Release the co-keywords of every topic; leave out those whose own word does not stand out.

    What is left out follows from released counts alone, and its budget is spent all the same.
    """
    co = plan.cokeywords
    if co is None:
        return tuple(topics), list(members), [() for _ in topics], ()
    kept: list[tuple[Sized, list[Member], tuple[Word, ...]]] = []
    left = []
    for topic, inside in zip(topics, members, strict=True):
        own = topic.group.words

        def make(chosen: Sequence[Member] = inside, own: tuple[str, ...] = own) -> list[dict[str, object]]:
            return [word.model_dump() for word in together(chosen, words, co, tools.noise, own)]

        drawn = tools.journal.draw(f"together/{topic.group.name}", make)
        shown = tuple(Word.model_validate(w) for w in drawn)
        if any(word.word in own for word in shown):
            kept.append((topic, inside, shown))
        else:
            left.append(LeftOut(word=topic.group.name, reason="its own word does not stand out of the noise"))
    return tuple(k[0] for k in kept), [k[1] for k in kept], [k[2] for k in kept], tuple(left)


def _rows(
    units: Units, plan: PlanRecord, tools: Tools, topics: Sequence[Sized], members: Sequence[Sequence[Member]]
) -> list[list[list[tuple[str, int]]]]:
    """Return for each part of each topic the documents (unit, number) that vote there, after the cut."""
    rows = []
    for topic, inside in zip(topics, members, strict=True):
        chosen = _cut(units, plan, tools, topic, inside) if plan.cut is not None else list(inside)
        parts: list[list[tuple[str, int]]] = [[] for _ in range(topic.parts)]
        for member in chosen:
            parts[part_of(member.unit, topic.group.name, topic.parts)].append((member.unit, member.document))
        rows.append(parts)
    return rows


def _cut(units: Units, plan: PlanRecord, tools: Tools, topic: Sized, inside: Sequence[Member]) -> list[Member]:
    cut = plan.cut
    if cut is None or tools.embedder is None:
        raise ValueError("the similarity cut needs an embedder")
    name, noise = topic.group.name, tools.noise
    texts = [units.documents_of(m.unit)[m.document].text for m in inside]
    vectors = tools.embedder.embed(texts)
    mean = tools.journal.draw(f"mean/{name}", lambda: noisy_mean(vectors, cut, noise))
    similar = similarities(vectors, mean)
    theta = tools.journal.draw(f"threshold/{name}", lambda: noisy_threshold(similar, cut, noise))
    return [member for member, s in zip(inside, similar, strict=True) if s >= theta]


def _prose(plan: PlanRecord, lm: LanguageModel, texts: list[Text]) -> list[Text]:
    """Return the texts with their forms written out as prose, where the plan says so: from released text alone."""
    form = plan.text.form
    if form is None or not plan.text.prose:
        return texts
    written = lm.generate([prose_prompt(form, text.text) for text in texts], PROSE_TOKENS)
    pairs = zip(texts, written, strict=True)
    return [text.model_copy(update={"prose": " ".join(normalise(prose).split())}) for text, prose in pairs]


def _grounded(plan: PlanRecord, text: Text, topics: Sequence[Sized], shown: Sequence[tuple[Word, ...]]) -> bool:
    """Say whether a text speaks of its topic; without a form or co-keywords nobody can tell, and it is kept."""
    if plan.text.form is None or plan.cokeywords is None:
        return True
    at = next(i for i, topic in enumerate(topics) if topic.group.name == text.topic)
    return grounded(plan.text.form, text.fields, {w.word for w in shown[at]} | set(topics[at].group.words))
