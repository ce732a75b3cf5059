"""A release about made-up diseases, for tests: nothing in it was drawn from documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stillroom.privacy.zcdp import threshold_for
from stillroom.release.folder import Release, certify, text_id, write
from stillroom.release.schema import (
    CoKeywordPlan,
    CutPlan,
    Form,
    KeywordPlan,
    LeftOut,
    PlanRecord,
    Slot,
    Statistics,
    Text,
    TextPlan,
    Topic,
    TopicPlan,
    Word,
)

FORM = Form(
    name="clinic",
    about="clinic note",
    slots=(Slot(label="Diagnosis", draws=4), Slot(label="Treatment", draws=4), Slot(label="Symptoms", draws=8)),
)
FACTS = {
    "zonkitis": ("Zonkitis", "Blergonolaser Therapy", "itching, blisters"),
    "snurflepox": ("Snurflepox", "Giggle Drops", "fever, purple spots"),
    "quibblitis": ("Quibblitis", "Snorfodine tablets", "blurred vision, headache"),
}
UNLISTED = "blergonolaser"


def plan(**changes: Any) -> PlanRecord:
    """Return a plan with every step in it that costs something 10 and less."""
    sigma = 9.0
    values: dict[str, Any] = {
        "method": "stillroom",
        "preset": "test-1",
        "epsilon": 10.0,
        "delta": 1e-6,
        "conversion": "optimal",
        "unit": "patient_id",
        "task": "Diseases and their treatments",
        "keywords": KeywordPlan(
            extractor="fast",
            per_unit=8,
            sigma=sigma,
            threshold=threshold_for(8, sigma, 1e-7),
            released=50,
            word_list="english-1",
            least_count=20.0,
        ),
        "topics": TopicPlan(per_unit=2, merge=True, size_sigma=10.0, smallest=15.0, part=40.0, most=10),
        "cut": CutPlan(mean_sigma=8.0, epsilon_theta=0.3, keep=20),
        "cokeywords": CoKeywordPlan(per_unit=6, sigma=9.0, published=10),
        "text": TextPlan(
            draws=FORM.draws, clip=0.25, votes="one-sided", candidates="public", floor=0.1, completion=True, form=FORM
        ),
    }
    return PlanRecord(**{**values, **changes})


def statistics() -> Statistics:
    """Return statistics that the plan allows: one topic a disease, the first in two parts."""
    released = [*FACTS, UNLISTED, "drops", "fever"]
    words = tuple(Word(word=word, count=90.0 - place, listed=word != UNLISTED) for place, word in enumerate(released))
    by_name = {word.word: word for word in words}
    topics = tuple(
        Topic(
            name=name,
            words=(name,),
            size=80.5 if name == "zonkitis" else 41.25,
            parts=2 if name == "zonkitis" else 1,
            together=(by_name[name], *((by_name[UNLISTED],) if name == "zonkitis" else ())),
        )
        for name in FACTS
    )
    left_out = (LeftOut(word="fever", reason="noisy size below 15"),)
    return Statistics(words=words, topics=topics, left_out=left_out, dropped=0)


def texts() -> list[Text]:
    """Return one filled form for each part, in no order."""
    made = []
    for topic in statistics().topics:
        for part in range(1, topic.parts + 1):
            fields = dict(zip((slot.label for slot in FORM.slots), FACTS[topic.name], strict=True))
            line = "\n".join(f"{label}: {value}" for label, value in fields.items())
            made.append(Text(id=text_id(topic.name, part), topic=topic.name, part=part, text=line, fields=fields))
    return made[::-1]


def certificate(record: PlanRecord | None = None, **changes: Any) -> Any:
    """Return the certificate of the plan, files not yet named."""
    return certify(
        record if record is not None else plan(),
        **{
            "run": "run-5f2c",
            "assumptions": ("the embedder sees one text at a time",),
            "models": {"lm": "toy", "embedder": "hash"},
            "public_inputs": {"form": "ab" * 32},
            "ledger": {"population": "clinic", "epsilon": "10", "delta": "1e-06", "head": "cd" * 32},
            "software": {"stillroom": "0.1.0"},
            **changes,
        },
    )


def made(out: Path, record: PlanRecord | None = None, **changes: Any) -> Release:
    """Write the release to `out` and return it."""
    given = {"statistics": statistics(), "texts": texts(), **changes}
    return write(out, certificate_without_files=certificate(record), **given)
