"""What stands in a release folder: the plan, the certificate, the public statistics, the texts.

Everything here may be published. Nothing here may hold a hash, size, true count, path, date or unit id of the
collection (PRIVACY rule 9).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

TEXTS, TOPICS, CERTIFICATE = "texts.jsonl", "topics.json", "certificate.json"


class Record(BaseModel):
    """A frozen record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


MOST_DRAWS = 200
"""Tokens of a slot, or of a free text, at most."""


class Slot(Record):
    """One line of a form: its label is pushed free, at most `draws` tokens of its value are drawn."""

    label: str = Field(min_length=1, max_length=60)
    draws: int = Field(ge=1, le=MOST_DRAWS)
    hint: str = Field(default="", max_length=120, description="what belongs there, in the prompt: 'name of a disease'")
    list: bool = Field(default=False, description="a list of words and phrases: no stop words are drawn")
    names: bool = Field(default=False, description="a name: of words released with the topic alone, then it ends")


class Form(Record):
    """A public form: what a released text looks like. Fixed before private data is read."""

    name: str
    slots: tuple[Slot, ...] = Field(min_length=1)
    about: str = Field(
        default="document", min_length=1, description="what one document is, in the prompt: 'clinic note'"
    )

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        try:
            "".join([self.name, self.about, *(slot.label + slot.hint for slot in self.slots)]).encode()
        except UnicodeEncodeError:
            raise ValueError("a name, label or hint is no Unicode") from None
        return self

    @property
    def draws(self) -> int:
        """Tokens drawn for one filled form, at most; all are charged."""
        return sum(slot.draws for slot in self.slots)

    def filled(self, fields: Mapping[str, str]) -> str:
        """Return the form filled in as text, a line a slot; empty slots are left out."""
        return "\n".join(f"{slot.label}: {fields[slot.label]}" for slot in self.slots if fields.get(slot.label))


class KeywordPlan(Record):
    """DP histogram of keywords. `threshold` is None when only listed words count."""

    extractor: Literal["fast", "lm"]
    per_unit: int = Field(ge=1, description="K: distinct words of one unit, listed and unlisted together")
    sigma: float = Field(gt=0)
    threshold: float | None = Field(default=None, gt=1)
    released: int = Field(ge=1, description="R: words kept, by noisy count")
    word_list: str
    least_count: float = Field(default=0.0, description="noisy counts below this are not kept")


class TopicPlan(Record):
    """Soft clustering by released words."""

    per_unit: int = Field(ge=1, description="L: topics of one unit, one document and one part in each")
    merge: bool = Field(description="words merged by public lemma first")
    order: Literal["rarest", "names"] = Field(
        default="rarest", description="units join by the rarest word first, or by the most frequent unlisted word first"
    )
    highest_zipf: float | None = Field(default=None, description="words more frequent in public text make no topic")
    size_sigma: float | None = Field(default=None, gt=0, description="noise on the sizes; None: sizes not released")
    smallest: float = Field(default=0.0, description="topics below this noisy size are merged upward or left out")
    part: float | None = Field(default=None, gt=0, description="units a part aims at; None: topics are not split")
    most: int | None = Field(default=None, ge=1, description="topics kept, largest noisy size first")


class CutPlan(Record):
    """Similarity cut: DP sum of embeddings and exponential mechanism on the threshold."""

    mean_sigma: float = Field(gt=0)
    epsilon_theta: float = Field(gt=0)
    keep: int = Field(ge=1, description="k: documents wanted above the threshold")
    steps: int = Field(default=401, ge=2, description="grid points of the threshold on [-1, 1]")


class CoKeywordPlan(Record):
    """Released words that go with a topic; a unit counts for at most `per_unit` of them."""

    per_unit: int = Field(ge=1, description="K_c")
    sigma: float = Field(gt=0)
    published: int = Field(ge=1)


class TextPlan(Record):
    """Private prediction of one text for each part of a topic."""

    draws: int = Field(ge=1, description="T: tokens drawn a text; all are charged")
    clip: float = Field(gt=0, description="c")
    temperature: float = Field(default=1.0, gt=0, description="tau")
    levels: int = Field(default=1000, ge=2, description="a row's votes are integers 0..levels, worth 2c/levels each")
    votes: Literal["one-sided", "centred"]
    candidates: Literal["public", "all"]
    top_k: int = Field(default=200, ge=1, description="tokens of the public row, where candidates are public")
    floor: float | None = Field(default=None, gt=0, lt=1, description="lambda of the public prior; None: no prior")
    lift: float | None = Field(default=None, gt=0, lt=0.9, description="kappa: prior shared by released words' tokens")
    lists: Literal["free", "released"] = Field(
        default="released",
        description="released: lists and names hold, and other values begin with, words released with the topic only",
    )
    calibration: float | None = Field(
        default=None, gt=0, le=1, description="share of the public rows' scores taken from those of released words"
    )
    abstain: bool = Field(default=True, description="a row whose best token is not offered abstains")
    completion: bool = Field(default=False, description="an unambiguous released word is completed free")
    form: Form | None = None
    prose: bool = Field(default=False, description="the model also writes each filled form out as prose: free")
    document_tokens: int = Field(default=192, ge=8, description="a document is cut here")

    @model_validator(mode="after")
    def _pays_for_its_form(self) -> Self:
        if self.form is None and self.draws > MOST_DRAWS:
            raise ValueError(f"a free text takes {MOST_DRAWS} draws at most, not {self.draws}")
        if self.form is not None and self.form.draws != self.draws:
            raise ValueError(f"a filled form takes {self.form.draws} draws, but {self.draws} are paid")
        return self


class PlanRecord(Record):
    """All parameters of one release. `costs.events_of` derives from it what is paid."""

    version: Literal[1] = 1
    method: Literal["paper", "stillroom"]
    preset: str
    epsilon: float = Field(gt=0)
    delta: float = Field(gt=0, lt=1)
    conversion: Literal["optimal", "paper"]
    unit: str = Field(default="document", description="'document', or the field that names the unit")
    task: str = ""
    keywords: KeywordPlan
    topics: TopicPlan
    cut: CutPlan | None = None
    cokeywords: CoKeywordPlan | None = None
    text: TextPlan
    selffilter: Literal["off", "medical", "movielens", "searchqa", "task"] = "off"
    chunk_words: int = Field(default=400, ge=8, description="longer documents are cut into chunks of so many words")


class Certificate(Record):
    """What was run, what it cost, on which assumptions, and the bytes it vouches for."""

    version: Literal[1] = 1
    run: str
    guarantee: Literal["dp", "none"]
    relation: str
    meaning: str
    rehearsal: bool = Field(description="made from a public or made-up collection, to see the quality")
    plan: PlanRecord
    events: tuple[dict[str, Any], ...]
    rho: float
    delta_ps: float
    epsilon: float = Field(description="of this release alone, at delta")
    delta: float
    assumptions: tuple[str, ...]
    models: dict[str, str]
    public_inputs: dict[str, str] = Field(description="sha256 of what was declared public before the first read")
    ledger: dict[str, str] = Field(description="population, ε, δ, and the head of the hash chain at the reservation")
    software: dict[str, str]
    files: dict[str, str] = Field(description="sha256 of the other files of the folder")


class Word(Record):
    """A released word: `listed` says whether the public word list knows it."""

    word: str
    count: float
    listed: bool


class Topic(Record):
    """A topic with its noisy size; `words` are the released words merged into it, `together` its co-keywords."""

    name: str
    words: tuple[str, ...]
    size: float | None
    parts: int
    together: tuple[Word, ...] = ()


class LeftOut(Record):
    word: str
    reason: str


class Statistics(Record):
    """Public statistics of a release."""

    words: tuple[Word, ...]
    topics: tuple[Topic, ...]
    left_out: tuple[LeftOut, ...]
    dropped: int = Field(
        description="texts that the self-filter dropped, or that hold no word released with their topic"
    )


class Text(Record):
    """One released text. `fields` holds the slots of a form, label to value."""

    id: str
    topic: str
    part: int
    text: str
    fields: dict[str, str] = Field(default_factory=dict)
    prose: str = Field(default="", description="the filled form in the model's own words: a help to read, not a fact")
