"""A plan spends what it is given, never more, and knows nothing of a collection."""

from __future__ import annotations

import builtins
import io
import math
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from stillroom.distil import prompts, selffilter
from stillroom.distil.forms import FORMS, PROPOSAL
from stillroom.distil.plan import PARTS, Plan, plan
from stillroom.distil.presets import DEFAULT, PRESETS, Preset
from stillroom.errors import BadOption, BudgetTooSmall, StillroomError, UnknownName
from stillroom.evals.facts import Fact
from stillroom.lexicon import word_list, zipf
from stillroom.lexicon.wordlist import lines
from stillroom.privacy.zcdp import epsilon_of, rho_of, rho_of_paper, total
from stillroom.release.costs import events_of
from stillroom.testing import clinic, patterns

PAPER = [name for name in PRESETS if name.startswith("paper-")]
forms = st.sampled_from([*FORMS, "Diagnosis: 8", "Summary: 30, Cause: 1", None])
parts = st.sets(st.sampled_from([*PARTS]), max_size=4).map(lambda found: tuple(sorted(found)))


def spent(made: Plan) -> float:
    """Return the ε of a plan's own record by the optimal conversion, computed again from its events."""
    record = made.record
    cost = total(events_of(record))
    assert (cost.rho, cost.delta_ps) == (made.rho, made.delta_ps)
    if record.conversion == "paper":
        return cost.rho + math.sqrt(4 * cost.rho * math.log(1 / record.delta))
    return epsilon_of(cost.rho, record.delta - cost.delta_ps)


@settings(deadline=None, max_examples=40)
@given(
    epsilon=st.floats(0.05, 100), delta=st.floats(1e-12, 0.05), preset=st.sampled_from([*PRESETS]), form=forms,
    without=parts, topics=st.none() | st.integers(1, 12),
)  # fmt: skip
@example(epsilon=10.0, delta=1e-6, preset="default", form="clinic", without=(), topics=None)
@example(epsilon=10.0, delta=1e-3, preset="paper-medical", form=None, without=(), topics=None)
@example(epsilon=1.0, delta=1e-5, preset="default", form="clinic", without=tuple(sorted(PARTS)), topics=1)
def test_a_plan_spends_its_budget_and_never_more(
    epsilon: float, delta: float, preset: str, form: str | None, without: tuple[str, ...], topics: int | None
) -> None:
    try:
        made = plan(epsilon=epsilon, delta=delta, preset=preset, form=form, without=without, topics_per_unit=topics)
    except BudgetTooSmall:
        assume(False)
        raise
    record = made.record
    assert spent(made) <= epsilon * (1 + 1e-9)
    assert (
        epsilon_of(made.rho, delta - made.delta_ps) <= epsilon
    )  # by the optimal conversion, whatever the paper's says
    assert made.delta_ps <= delta / 10
    if not (record.text.votes == "centred" and record.text.clip == 0.5):  # a larger clip would have no effect
        assert spent(made) >= 0.99 * epsilon
    assert sum(made.split.values()) == pytest.approx(made.rho)
    assert made.least_units >= max(s.units for s in made.support)


@pytest.mark.parametrize("preset", PAPER)
@pytest.mark.parametrize("epsilon, delta", [(10.0, 1e-3), (10.0, 1e-6), (20.0, 1e-3)])
def test_the_papers_presets_are_theorem_1_literally(preset: str, epsilon: float, delta: float) -> None:
    record = plan(epsilon=epsilon, delta=delta, preset=preset).record
    assert record.cut is not None
    K, L, T = record.keywords.per_unit, record.topics.per_unit, record.text.draws
    sigma_h, sigma_mu, eps_theta = record.keywords.sigma, record.cut.mean_sigma, record.cut.epsilon_theta
    c, tau = record.text.clip, record.text.temperature
    rho = K / (2 * sigma_h**2) + L * (eps_theta**2 / 8 + 1 / (2 * sigma_mu**2) + (T / 2) * (c / tau) ** 2)
    assert rho + math.sqrt(4 * rho * math.log(1 / delta)) == pytest.approx(epsilon, rel=1e-8)
    assert total(events_of(record)).rho == pytest.approx(rho, rel=1e-12)
    assert (K, L, T, tau, eps_theta) == (10, 5, 70, 1.0, 0.4)


@pytest.mark.parametrize("preset, released, keep", [("paper-medical", 500, 80), ("paper-movielens", 500, 100),
                                                    ("paper-searchqa", 1000, 100)])  # fmt: skip
def test_the_papers_derived_values_come_out(preset: str, released: int, keep: int) -> None:
    record = plan(epsilon=10.0, delta=1e-3, preset=preset).record
    assert record.text.clip == pytest.approx(0.1057, abs=1e-4)
    assert record.keywords.sigma == pytest.approx(7.07, abs=0.01)
    assert record.cut is not None and (record.keywords.released, record.cut.keep) == (released, keep)
    assert (record.text.votes, record.text.candidates, record.text.floor) == ("centred", "all", None)


def test_centred_votes_never_pay_for_a_clip_without_effect() -> None:
    record = plan(epsilon=900.0, delta=1e-3, preset="paper-medical").record
    assert record.text.clip == 0.5


@settings(deadline=None, max_examples=15)
@given(
    epsilon=st.floats(1, 20), keywords=st.integers(1, 30), share=st.floats(0.01, 0.3),
    co=st.none() | st.integers(1, 20), temperature=st.floats(0.5, 3), levels=st.integers(2, 5000),
)  # fmt: skip
def test_settings_of_ones_own_spend_no_more(
    epsilon: float, keywords: int, share: float, co: int | None, temperature: float, levels: int
) -> None:
    own = replace(DEFAULT, name="own", keywords=keywords, keyword_share=share, cokeywords=co, cokeyword_share=share,
                  temperature=temperature, levels=levels)  # fmt: skip
    made = plan(epsilon=epsilon, preset=own, form="clinic")
    assert 0.99 * epsilon <= spent(made) <= epsilon


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.02])
@pytest.mark.parametrize("preset", ["default", "paper-medical"])
def test_a_budget_that_is_too_small_is_refused_with_the_numbers(epsilon: float, preset: str) -> None:
    with pytest.raises(BudgetTooSmall, match="larger ε") as refused:
        plan(epsilon=epsilon, delta=1e-6, preset=preset)
    rho = rho_of_paper(epsilon, 1e-6) if preset.startswith("paper") else rho_of(epsilon, 0.9e-6)
    assert f"ε = {epsilon:g} at δ = 1e-06 is ρ = {rho:.4g}" in str(refused.value)
    assert "need ρ = " in str(refused.value)


def test_what_it_says_is_needed_is_enough() -> None:
    with pytest.raises(BudgetTooSmall) as refused:
        plan(epsilon=0.02, delta=1e-6, form="clinic", topics_per_unit=12)
    needed = float(str(refused.value).split("need ρ = ")[1].split(":")[0])
    assert plan(epsilon=epsilon_of(needed * 1.01, 0.9e-6), delta=1e-6, form="clinic", topics_per_unit=12)
    with pytest.raises(BudgetTooSmall):
        plan(epsilon=epsilon_of(needed * 0.99, 0.9e-6), delta=1e-6, form="clinic", topics_per_unit=12)


extremes = (
    st.floats()
    | st.floats(1e-12, 1e6)
    | st.sampled_from([0.0, -1.0, 1e-320, 1e-30, 1e30, 1e308, 1 - 1e-16, math.inf, math.nan])
)


@settings(deadline=None, max_examples=80)
@example(epsilon=1e-12, delta=1e-100, preset="default", form="clinic", without=(), topics=1, documents=1, words=1)
@example(epsilon=1e6, delta=1e-100, preset="default", form="clinic", without=(), topics=1, documents=1, words=1)
@example(epsilon=1e6, delta=1 - 1e-16, preset="paper-medical", form=None, without=(), topics=1, documents=1, words=1)
@example(epsilon=10, delta=1e-100, preset="default", form="clinic", without=(), topics=1, documents=1, words=1)
@example(epsilon=10, delta=0.5, preset="default", form="a: ²", without=(), topics=1, documents=1, words=1)
@example(epsilon=10, delta=0.5, preset="default", form="\x00.toml", without=(), topics=1, documents=1, words=1)
@given(
    epsilon=extremes, delta=extremes, preset=st.sampled_from([*PRESETS, "", "Default"]),
    form=forms | st.text(max_size=30), without=st.lists(st.sampled_from([*PARTS, "nothing"]), max_size=3).map(tuple),
    topics=st.none() | st.integers(-2, 10**9), documents=st.none() | st.integers(-2, 10**12),
    words=st.none() | st.integers(-2, 10**12),
)  # fmt: skip
def test_no_values_end_in_anything_but_a_plan_or_a_sentence(
    epsilon: float,
    delta: float,
    preset: str,
    form: str | None,
    without: tuple[str, ...],
    topics: int | None,
    documents: int | None,
    words: int | None,
) -> None:
    try:
        made = plan(epsilon=epsilon, delta=delta, preset=preset, form=form, without=without, topics_per_unit=topics,
                    documents=documents, words=words)  # fmt: skip
    except StillroomError as said:
        assert str(said).endswith((".", "'")) and "\n" not in str(said)
    else:
        assert spent(made) <= epsilon * (1 + 1e-9)
        assert made.seconds is None or made.seconds > 0


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"delta": 1.0}, {"epsilon": math.nan}, {"topics_per_unit": 0}, {"documents": 0},
              {"words": -3}],
)  # fmt: skip
def test_a_wrong_option_is_named_with_its_value(wrong: dict[str, Any]) -> None:
    (value,) = wrong.values()
    with pytest.raises(BadOption, match=str(value)):
        plan(**wrong)


def test_unknown_names_are_answered_by_the_known_ones() -> None:
    for wrong in ({"preset": "defualt"}, {"without": ("cokeyword",)}, {"form": "clinc"}):
        with pytest.raises(UnknownName, match=r"default|cokeywords|clinic"):
            plan(**wrong)  # type: ignore[arg-type]


def test_a_plan_opens_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    plan(form="clinic")  # the public word list is read once, from the package

    def refuse(*a: Any, **k: Any) -> Any:
        raise AssertionError("a plan opens a file")

    for owner, name in ((builtins, "open"), (io, "open"), (os, "open"), (Path, "open"), (Path, "read_text"),
                        (Path, "read_bytes"), (os, "stat"), (os, "listdir"), (os, "scandir")):  # fmt: skip
        monkeypatch.setattr(owner, name, refuse)
    for form in FORMS:
        assert plan(form=form, documents=1000, words=100).seconds
    for preset in PRESETS:
        assert plan(preset=preset).record
    monkeypatch.undo()


def test_delta_stays_as_given_whatever_is_said_of_the_collection() -> None:
    told = [plan(form="clinic", documents=n).record for n in (None, 10, 10**9)]
    assert told[0] == told[1] == told[2] and told[0].delta == 1e-6


def test_weak_budgets_and_large_deltas_are_warned_of_in_a_sentence() -> None:
    assert any("above 10" in w for w in plan(epsilon=10.5, form="clinic").warnings)
    assert not plan(epsilon=10.0, form="clinic").warnings
    assert any("1/5000" in w for w in plan(delta=1e-3, form="clinic", documents=5000).warnings)
    assert any("500 words" in w for w in plan(form="clinic", words=500).warnings)


def test_each_part_that_is_switched_off_is_gone() -> None:
    whole = plan(form="clinic").record
    assert whole.text.form and whole.cokeywords and whole.topics.size_sigma and whole.keywords.threshold
    off = {part: plan(form="clinic", without=(part,)).record for part in PARTS}
    assert off["form"].text.form is None
    assert (off["candidates"].text.candidates, off["candidates"].text.floor) == ("all", None)
    assert off["prior"].text.floor is None and not off["completion"].text.completion
    assert off["cokeywords"].cokeywords is None and not off["merge"].topics.merge
    assert off["unlisted"].keywords.threshold is None and off["sizes"].topics.size_sigma is None
    assert off["lift"].text.lift is None and off["prior"].text.lift is None and off["candidates"].text.lift is None
    assert off["lists"].text.lists == "free" and not off["abstain"].text.abstain
    assert whole.selffilter == off["selffilter"].selffilter == "off"  # until one asks for it
    asked = plan(form="clinic", preset=replace(DEFAULT, selffilter="medical"), without=("selffilter",)).record
    assert asked.selffilter == "off"
    assert all(record != whole for part, record in off.items() if part != "selffilter")


# -- what is public holds nothing of the made-up collections ---------------------------------------------------------
def invented() -> set[str]:
    """Return the names of all invented diseases, and the invented word of every treatment."""
    facts: Iterable[Fact] = [*clinic.FACTS.values(), *patterns.FACTS.values(), *patterns.TUNING.values()]
    return {word.lower() for fact in facts for word in (fact.disease, fact.treatment.split()[0])}


def public_inputs() -> dict[str, str]:
    found = {name: " ".join(map(" ".join, lines(name))) for name in ("stopwords.txt", "lemmas.txt", "protected.txt")}
    found["word list"] = " ".join(word_list().words)
    found["prompts"] = " ".join(str(v) for v in vars(prompts).values() if isinstance(v, str))
    found["questions"] = " ".join([*selffilter.QUESTIONS.values(), PROPOSAL])
    found["forms"] = " ".join(form.model_dump_json() for form in FORMS.values())
    found["presets"] = " ".join(map(repr, PRESETS.values()))
    for module in (prompts, selffilter):
        found[f"{module.__name__}, all of it"] = Path(module.__file__ or "").read_text(encoding="utf-8")
    return found


def test_no_disease_or_treatment_of_the_made_up_collections_stands_in_any_public_input() -> None:
    names = invented()
    assert len(names) == 34
    for what, text in public_inputs().items():
        assert text and not [name for name in names if name in text.lower()], what
    assert not [name for name in names if zipf(name)]


def test_that_check_would_find_one() -> None:
    assert any("metformin" in text for text in public_inputs().values())
    assert isinstance(DEFAULT, Preset)
