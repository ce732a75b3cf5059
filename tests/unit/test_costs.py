"""What a plan pays for: no number of a plan, however extreme, ends in anything but a price or a sentence."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from stillroom.errors import StillroomError
from stillroom.privacy.zcdp import delta_of, epsilon_of, total
from stillroom.release.costs import events_of
from stillroom.release.schema import PlanRecord, TextPlan
from tests.releases import FORM, plan

EXTREMES = (5e-324, 1e-200, 1e-100, 1e100, 1e200, 1.7e308, 2**63, 10**400)


def numbers(record: BaseModel) -> Iterator[tuple[str, ...]]:
    """Yield the place of every number in a plan."""
    for name, value in record:
        if isinstance(value, BaseModel):
            yield from ((name, *place) for place in numbers(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (name,)


def with_number(record: PlanRecord, place: tuple[str, ...], value: float) -> PlanRecord | None:
    """Return the plan with another number at a place; None where no plan may hold it."""
    values: dict[str, Any] = record.model_dump()
    at = values
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = value
    values["text"].update(form=None)
    try:
        return PlanRecord.model_validate(values)
    except ValidationError:
        return None


PLACES = [*numbers(plan())]


def test_every_part_of_a_plan_is_tried() -> None:
    assert {place[0] for place in PLACES} >= {"epsilon", "keywords", "topics", "cut", "cokeywords", "text"}


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_an_extreme_number_is_priced_or_refused_in_a_sentence(place: tuple[str, ...]) -> None:
    for value in EXTREMES:
        changed = with_number(plan(), place, value)
        if changed is None:
            continue
        try:
            cost = total(events_of(changed))
        except StillroomError as refused:
            assert str(refused).endswith(".")
            continue
        assert cost.rho >= 0 and cost.delta_ps >= 0
        assert epsilon_of(cost.rho, changed.delta) >= 0
        assert 0 <= delta_of(cost.rho, changed.epsilon) <= 1


def test_two_extreme_numbers_together_are_priced_or_refused() -> None:
    tried = 0
    for one, other in itertools.combinations(PLACES, 2):
        for values in itertools.product((5e-324, 1.7e308, 10**400), repeat=2):
            changed = with_number(plan(), one, values[0])
            changed = changed and with_number(changed, other, values[1])
            if changed is not None:
                tried += 1
                with contextlib.suppress(StillroomError):
                    assert total(events_of(changed)).rho >= 0
    assert tried > 500


def test_noise_too_small_to_reckon_with_costs_infinitely_much_and_never_nothing() -> None:
    loud = plan(keywords=plan().keywords.model_copy(update={"sigma": 1e-200, "threshold": None}))
    assert total(events_of(loud)).rho == math.inf


@pytest.mark.parametrize("draws", [FORM.draws - 1, FORM.draws + 1])
def test_a_plan_pays_for_just_the_draws_of_its_form(draws: int) -> None:
    with pytest.raises(ValidationError, match=f"a filled form takes {FORM.draws} draws, but {draws} are paid"):
        TextPlan(draws=draws, clip=0.2, votes="one-sided", candidates="public", form=FORM)
    assert TextPlan(draws=FORM.draws, clip=0.2, votes="one-sided", candidates="public", form=FORM).form == FORM
