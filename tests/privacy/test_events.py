"""Events are frozen, positive, and survive JSON."""

import dataclasses
import json

import pytest

from stillroom.errors import BadOption
from stillroom.privacy.events import Event, Gaussian, NoisyMax, NotPrivate, ThresholdedGaussian, from_json, to_json

EVENTS: list[Event] = [
    Gaussian("topic mean", 1.0, 7.5, times=5),
    ThresholdedGaussian("keywords", 10, 7.07, 40.0),
    NoisyMax("text", 1000.0, 2314.8, times=350),
    NotPrivate("attack", 3),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_an_event_comes_back_from_json_as_it_was(event: Event) -> None:
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        EVENTS[0].times = 1  # type: ignore[misc]


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_noise_without_a_finite_positive_scale_is_refused(value: float) -> None:
    for make in (
        lambda: Gaussian("x", 1.0, value),
        lambda: Gaussian("x", value, 1.0),
        lambda: ThresholdedGaussian("x", 1, value, 2.0),
        lambda: ThresholdedGaussian("x", 1, 1.0, value),
        lambda: NoisyMax("x", value, 1.0),
        lambda: NoisyMax("x", 1.0, value),
    ):
        with pytest.raises(BadOption):
            make()


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "magic", "name": "x"},
        {"name": "x", "sigma": 1.0},
        {"kind": "gaussian", "name": "x", "sigma": 1.0},
        {"kind": "gaussian", "name": "x", "sensitivity": 1.0, "sigma": 1.0, "seed": 0},
    ],
)
def test_a_record_of_no_known_event_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(BadOption):
        from_json(record)
