"""verify refuses statistics and texts that the plan does not allow, or that do not fit each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stillroom.errors import CertificateMismatch
from stillroom.lexicon import word_list
from stillroom.release.folder import write
from stillroom.release.schema import KeywordPlan, TextPlan, Topic, TopicPlan, Word
from stillroom.release.verify import verify
from tests.releases import certificate, made, plan, statistics, texts

STATISTICS_AND_TEXTS = {
    "more words than planned": {"words": tuple(Word(word=f"w{n}", count=50, listed=True) for n in range(51))},
    "a word below the least count": {"words": (*statistics().words, Word(word="rare", count=19.9, listed=True))},
    "an unlisted word below the threshold": {"words": (*statistics().words, Word(word="mary", count=30, listed=False))},
    "a word twice": {"words": (*statistics().words, statistics().words[0])},
    "a topic of a word that was not released": {
        "topics": (statistics().topics[0].model_copy(update={"words": ("mary",)}), *statistics().topics[1:])
    },
    "a topic without a size": {
        "topics": (statistics().topics[0].model_copy(update={"size": None}), *statistics().topics[1:])
    },
    "a co-keyword that was not released": {
        "topics": (
            statistics().topics[0].model_copy(update={"together": (Word(word="mary", count=50, listed=True),)}),
            *statistics().topics[1:],
        )
    },
    "a topic without texts": {
        "topics": (*statistics().topics, Topic(name="drops", words=("drops",), size=50, parts=1))
    },
    "a dropped text without a filter": {"dropped": 1},
    "a co-keyword within the noise": {
        "topics": (
            statistics()
            .topics[0]
            .model_copy(update={"together": (statistics().topics[0].together[0].model_copy(update={"count": -9.0}),)}),
            *statistics().topics[1:],
        )
    },
    "a size that is in other parts": {
        "topics": (statistics().topics[0].model_copy(update={"size": 9e9}), *statistics().topics[1:])
    },
    "a part too few": {"topics": (statistics().topics[0].model_copy(update={"parts": 1}), *statistics().topics[1:])},
}


def test_texts_may_be_dropped_only_where_the_plan_has_what_drops_them(tmp_path: Path) -> None:
    fewer = {"statistics": statistics().model_copy(update={"dropped": 1}), "texts": texts()[1:]}
    verify(made(tmp_path / "said nothing released with its topic", **fewer).path)
    bare = tuple(topic.model_copy(update={"together": ()}) for topic in statistics().topics)
    fewer["statistics"] = statistics().model_copy(update={"dropped": 1, "topics": bare})
    verify(made(tmp_path / "self-filter", plan(cokeywords=None, selffilter="medical"), **fewer).path)
    with pytest.raises(CertificateMismatch, match="nothing in the plan could"):
        verify(made(tmp_path / "neither", plan(cokeywords=None), **fewer).path)


@pytest.mark.parametrize("what", STATISTICS_AND_TEXTS)
def test_statistics_beyond_the_plan_are_refused(tmp_path: Path, what: str) -> None:
    changes = STATISTICS_AND_TEXTS[what]
    out = made(tmp_path / "a", statistics=statistics().model_copy(update=changes)).path
    with pytest.raises(CertificateMismatch):
        verify(out)


def test_a_plan_without_partition_selection_releases_no_unlisted_word(tmp_path: Path) -> None:
    listed_only = plan(keywords=KeywordPlan(**{**plan().keywords.model_dump(), "threshold": None}))
    with pytest.raises(CertificateMismatch, match="without passing the threshold"):
        verify(made(tmp_path / "a", listed_only).path)


@pytest.mark.parametrize(
    "change", [{"id": "mary"}, {"topic": "mary"}, {"part": 3}, {"part": 0}, {"fields": {}}, {"fields": {"Name": "x"}}]
)
def test_a_text_out_of_place_or_form_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    first, *rest = texts()
    with pytest.raises(CertificateMismatch):
        verify(made(tmp_path / "a", texts=[first.model_copy(update=change), *rest]).path)


def test_a_text_says_what_its_fields_say(tmp_path: Path) -> None:
    first, *rest = texts()
    changes = {"text": {"text": "Diagnosis: Another"}, "fields": {"fields": {**first.fields, "Treatment": "Another"}}}
    for name, change in changes.items():
        with pytest.raises(CertificateMismatch, match="does not say what its fields say"):
            verify(made(tmp_path / name, texts=[first.model_copy(update=change), *rest]).path)


def test_a_word_is_listed_where_the_public_list_has_it(tmp_path: Path) -> None:
    known = word_list()
    record = plan(keywords=plan().keywords.model_copy(update={"word_list": known.name}))
    sealed = certificate(record, public_inputs={"word list": known.sha256})
    words = tuple(word.model_copy(update={"listed": word.word in known, "count": 90.0}) for word in statistics().words)
    by_name = {word.word: word for word in words}
    topics = tuple(
        topic.model_copy(update={"together": tuple(by_name[w.word] for w in topic.together)})
        for topic in statistics().topics
    )
    right = statistics().model_copy(update={"words": words, "topics": topics})
    verify(write(tmp_path / "a", certificate_without_files=sealed, statistics=right, texts=texts()).path)
    wrong = right.model_copy(
        update={"words": tuple(w.model_copy(update={"listed": True}) for w in words),
                "topics": tuple(t.model_copy(update={"together": tuple(w.model_copy(update={"listed": True})
                                                                       for w in t.together)}) for t in topics)}
    )  # fmt: skip
    with pytest.raises(CertificateMismatch, match="listed or unlisted"):
        verify(write(tmp_path / "b", certificate_without_files=sealed, statistics=wrong, texts=texts()).path)


def test_free_text_without_a_form_and_without_sizes_is_in_order(tmp_path: Path) -> None:
    text = TextPlan(draws=40, clip=0.1, votes="centred", candidates="all")
    record = plan(
        method="paper", text=text, topics=TopicPlan(per_unit=2, merge=False), cokeywords=None, selffilter="medical"
    )
    bare = tuple(topic.model_copy(update={"size": None, "parts": 1, "together": ()}) for topic in statistics().topics)
    kept = [each.model_copy(update={"fields": {}}) for each in texts() if each.part == 1][1:]
    known = statistics().model_copy(update={"topics": bare, "dropped": 1})
    verify(made(tmp_path / "a", record, statistics=known, texts=kept).path)
