"""A plan: from a budget to noise, clip and least support. It opens no file of the collection (rule 11)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from stillroom.distil.forms import form_of
from stillroom.distil.presets import Preset, preset_of
from stillroom.errors import BadOption, BudgetTooSmall, UnknownName
from stillroom.lexicon import word_list
from stillroom.privacy import zcdp
from stillroom.release.costs import events_of, least_count
from stillroom.release.schema import CoKeywordPlan, CutPlan, Form, KeywordPlan, PlanRecord, TextPlan, TopicPlan

SURE = 99.0
"""Odds at which the right token counts as won: probability .99."""
SPELT = 80
"""About how many tokens released words add to the candidates."""
FILTERS = ("off", "medical", "movielens", "searchqa", "task")
LEAST_CLIP = 0.005
LEAST_EPSILON, MOST_EPSILON, LEAST_DELTA = 1e-12, 1e6, 1e-100
"""Beyond these, floats no longer hold what a plan is made of."""
READ_TOKENS, STEP_SECONDS, STEP_ROWS = 600.0, 0.2, 80
"""Speed of the small default model on two cores: tokens read a second, seconds a step of so many rows."""

PARTS: Mapping[str, Mapping[str, object]] = {
    "form": {"form": False},
    "candidates": {"candidates": "all", "floor": None, "lift": None, "completion": False},
    "prior": {"floor": None, "lift": None},
    "floor": {"floor": 1e-9},
    "lift": {"lift": None},
    "lists": {"lists": "free"},
    "calibration": {"calibration": None},
    "cokeywords": {"cokeywords": None},
    "completion": {"completion": False},
    "abstain": {"abstain": False},
    "merge": {"merge": False},
    "order": {"order": "rarest"},
    "unlisted": {"unlisted": False},
    "sizes": {"sizes": False},
    "selffilter": {"selffilter": "off"},
}
"""Parts of the default that can be switched off alone, and what that changes."""


@dataclass(frozen=True)
class Support:
    """One condition that a fact must meet: the least number of units that state it."""

    condition: str
    units: float


@dataclass(frozen=True)
class Plan:
    """A plan with what it promises.

    Attributes:
        record: all parameters; what a certificate holds.
        rho, delta_ps: what it costs in all.
        split: step to its share of ρ.
        support: conditions on a fact; the largest is the least number of units a fact.
        seconds: about how long, for the public figures given; None without them.
        warnings: plain sentences.
    """

    record: PlanRecord
    rho: float
    delta_ps: float
    split: Mapping[str, float]
    support: tuple[Support, ...]
    seconds: float | None
    warnings: tuple[str, ...]

    @property
    def least_units(self) -> int:
        """The least number of units that must state a fact for the release to hold it."""
        return math.ceil(max(s.units for s in self.support))


def plan(
    *,
    epsilon: float = 10.0,
    delta: float = 1e-6,
    preset: str | Preset = "default",
    form: str | Form | None = None,
    task: str = "",
    unit: str = "document",
    without: tuple[str, ...] = (),
    topics_per_unit: int | None = None,
    selffilter: str | None = None,
    prose: bool = False,
    documents: int | None = None,
    words: int | None = None,
) -> Plan:
    """Return a plan for a budget.

    Args:
        epsilon, delta: the budget of one release; δ is a public constant, never made from a number of documents.
        preset: a name, or settings of your own.
        form: a shipped form, a TOML file, "Label: draws, …", or None for free text.
        task: the public task sentence.
        unit: "document", or the field that names the unit.
        without: parts of the default to switch off; see PARTS.
        topics_per_unit: L, instead of the preset's.
        selffilter: "off", "medical", "movielens", "searchqa" or "task", instead of the preset's.
        prose: the model also writes each filled form out as prose, for free.
        documents, words: public figures for time and for the warning δ > 1/n: how many documents, how long.

    Raises:
        BadOption, UnknownName, BudgetTooSmall.
    """
    zcdp.check_budget(epsilon, delta)
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise BadOption("ε", epsilon, f"from {LEAST_EPSILON:g} to {MOST_EPSILON:g}, such as 10")
    if delta < LEAST_DELTA:
        raise BadOption("δ", delta, f"at least {LEAST_DELTA:g}, such as 1e-6")
    for option, text in (("--task", task), ("--unit", unit)):
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise BadOption(option, "no Unicode", "text in UTF-8")
    chosen = preset_of(preset) if isinstance(preset, str) else preset
    for part in without:
        if part not in PARTS:
            raise UnknownName("part", part, [*PARTS])
        chosen = replace(chosen, **PARTS[part])  # type: ignore[arg-type]
    if topics_per_unit is not None:
        if topics_per_unit < 1:
            raise BadOption("topics per unit", topics_per_unit, "at least 1")
        chosen = replace(chosen, topics=topics_per_unit)
    if selffilter is not None:
        if selffilter not in FILTERS:
            raise UnknownName("self-filter", selffilter, FILTERS)
        chosen = replace(chosen, selffilter=selffilter)  # type: ignore[arg-type]
    for name, figure in (("documents", documents), ("words", words)):
        if figure is not None and figure < 1:
            raise BadOption(name, figure, "at least 1")
    chosen_form = form_of(form) if isinstance(form, str) else form
    record = _record(epsilon, delta, chosen, chosen_form if chosen.form else None, task, unit)
    if prose:
        record = record.model_copy(update={"text": record.text.model_copy(update={"prose": True})})
    events = events_of(record)
    total = zcdp.total(events)
    spent = zcdp.epsilon_of(total.rho, delta - total.delta_ps)
    if spent > epsilon * (1 + 1e-9):
        raise AssertionError("a plan costs more than its budget")
    split: dict[str, float] = {}
    for event in events:
        split[event.name] = split.get(event.name, 0.0) + zcdp.cost(event).rho
    return Plan(
        record,
        total.rho,
        total.delta_ps,
        split,
        _support(record),
        _seconds(record, documents, words),
        _warnings(record, documents, words),
    )


def _record(epsilon: float, delta: float, p: Preset, form: Form | None, task: str, unit: str) -> PlanRecord:
    delta_ps = delta / 10 if p.unlisted else 0.0
    paper = p.conversion == "paper"
    rho = zcdp.rho_of_paper(epsilon, delta) if paper else zcdp.rho_of(epsilon, delta - delta_ps)
    rho *= 1 - 1e-9  # what rounding may add
    keyword_rho = p.histogram_rho if p.histogram_rho is not None else p.keyword_share * rho
    sigma = zcdp.gaussian_sigma(math.sqrt(p.keywords), keyword_rho)
    size_rho = p.size_share * rho if p.sizes else 0.0
    co_rho = p.cokeyword_share * rho if p.cokeywords is not None else 0.0
    cut_rho = p.topics * (p.epsilon_theta**2 / 8 + p.mean_rho) if p.cut else 0.0
    draws = form.draws if form is not None else p.draws
    left = rho - keyword_rho - size_rho - co_rho - cut_rho
    clip = p.temperature * math.sqrt(2 * left / (p.topics * draws)) if left > 0 else 0.0
    if clip < LEAST_CLIP:
        fixed = p.topics * draws * (LEAST_CLIP / p.temperature) ** 2 / 2 + cut_rho + (p.histogram_rho or 0.0)
        # What the other steps take is a share of ρ and grows with it.
        shares = (keyword_rho if p.histogram_rho is None else 0.0) + size_rho + co_rho
        needed = fixed / (1 - shares / rho) if shares < rho else math.inf
        raise BudgetTooSmall(epsilon, delta, rho, needed, "plan a larger ε, fewer draws or fewer topics per unit")
    if p.votes == "centred" and clip > 0.5:
        # Centred votes reach ½ at most, so a larger clip would pay for range that is never used (rule 21).
        clip = 0.5
    floor = p.floor if p.candidates == "public" else None
    known = word_list()
    text = TextPlan(
        draws=draws,
        clip=clip,
        temperature=p.temperature,
        levels=p.levels,
        votes=p.votes,
        candidates=p.candidates,
        top_k=p.top_k,
        floor=floor,
        lift=p.lift if floor is not None else None,
        lists=p.lists,
        calibration=p.calibration if p.candidates == "public" and p.lists == "released" else None,
        abstain=p.abstain and p.candidates == "public",
        completion=p.completion and p.candidates == "public",
        form=form,
        document_tokens=p.document_tokens,
    )
    support = _token_support(text, p.published if p.cokeywords is not None else None)
    return PlanRecord(
        method=p.method, preset=p.name, epsilon=epsilon, delta=delta, conversion=p.conversion, unit=unit, task=task,
        keywords=KeywordPlan(
            extractor=p.extractor, per_unit=p.keywords, sigma=sigma, released=p.released, word_list=known.name,
            least_count=p.least_count * sigma,
            threshold=zcdp.threshold_for(p.keywords, sigma, delta_ps) if p.unlisted else None,
        ),
        topics=TopicPlan(
            per_unit=p.topics, merge=p.merge, order=p.order, highest_zipf=p.highest_zipf, most=p.most_topics,
            size_sigma=zcdp.gaussian_sigma(math.sqrt(p.topics), size_rho) if p.sizes else None,
            smallest=p.smallest * support if p.sizes else 0.0, part=p.part * support if p.sizes else None,
        ),
        cut=CutPlan(mean_sigma=zcdp.gaussian_sigma(1.0, p.mean_rho), epsilon_theta=p.epsilon_theta, keep=p.keep)
        if p.cut else None,
        cokeywords=CoKeywordPlan(
            per_unit=p.cokeywords, published=p.published,
            sigma=zcdp.gaussian_sigma(math.sqrt(p.cokeywords), co_rho / p.topics),
        ) if p.cokeywords is not None else None,
        text=text, selffilter=p.selffilter, chunk_words=p.chunk_words,
    )  # fmt: skip


def _token_support(text: TextPlan, published: int | None) -> float:
    """Return n with which agreeing documents win a token: ln(99/p)/2c at the least prior p that it has.

    The first token of a released word has p = κ/#released of its topic; any other candidate p = λ/m.
    """
    if text.lift is not None and published is not None:
        return math.log(SURE * 2 * published / text.lift) / (2 * text.clip)
    return _any_token_support(text)


def _any_token_support(text: TextPlan) -> float:
    m = text.top_k + SPELT if text.candidates == "public" else 50_000
    floor = text.floor if text.floor is not None else 1.0
    return math.log(SURE * m / floor) / (2 * text.clip)


def _support(record: PlanRecord) -> tuple[Support, ...]:
    words, topics = record.keywords, record.topics
    found = []
    if record.text.lift is not None and record.cokeywords is not None:
        least = _token_support(record.text, record.cokeywords.published)
        found.append(Support("for a word shown with its topic to be written (ln(99/p)/2c)", least))
    else:
        found.append(
            Support("to win a token against the lowest prior (ln(99 m/λ)/2c)", _any_token_support(record.text))
        )
    if words.threshold is not None:
        found.append(
            Support(
                "for a word that no list knows to pass the threshold, 9 times in 10",
                words.threshold + 1.2816 * words.sigma,
            )
        )
    rank = max(1e-12, min(0.5, words.released / len(word_list(words.word_list))))
    noise = words.sigma * -zcdp._NORMAL.inv_cdf(rank)
    found.append(
        Support("for a listed word to stand out of the noise on all words, 9 times in 10", noise + 1.2816 * words.sigma)
    )
    if topics.size_sigma is not None:
        found.append(Support("for a topic to be kept, 9 times in 10", topics.smallest + 1.2816 * topics.size_sigma))
    if record.cokeywords is not None:
        sigma = record.cokeywords.sigma
        found.append(
            Support(
                "for a word to be shown with its topic, 9 times in 10",
                least_count(sigma, words.released) + 1.2816 * sigma,
            )
        )
    return tuple(found)


def _seconds(record: PlanRecord, documents: int | None, words: int | None) -> float | None:
    if documents is None:
        return None
    tokens = min((words or 100) * 1.4, record.text.document_tokens) + 40
    texts = max(1.0, documents * record.topics.per_unit / (record.topics.part or 80.0))
    rows = record.topics.part or 80.0
    return (
        documents * tokens / READ_TOKENS + texts * record.text.draws * 1.6 * math.ceil(rows / STEP_ROWS) * STEP_SECONDS
    )


def _warnings(record: PlanRecord, documents: int | None, words: int | None) -> tuple[str, ...]:
    found = []
    if record.epsilon > 10:
        found.append(f"ε = {record.epsilon:g} is above 10: the guarantee is weak, and one unit may show.")
    if documents is not None and record.delta > 1 / documents:
        found.append(
            f"δ = {record.delta:g} is above 1/{documents}: whole documents could be published within it; "
            f"choose a smaller δ, such as 1e-{math.floor(math.log10(documents)) + 1}."
        )
    if words is not None and words * 1.4 > record.text.document_tokens:
        found.append(f"Documents of {words} words are cut after {record.text.document_tokens} tokens in the text step.")
    return tuple(found)
