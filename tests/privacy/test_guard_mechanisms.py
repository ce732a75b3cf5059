"""What a value is answered with has the density that its ε is about, and no value has a pool of its own.

Tests of frequencies fail by chance once in a million runs, each.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from stillroom.errors import BadOption, UnknownName
from stillroom.guarantee import Guarantee
from stillroom.guard import dictionaries
from stillroom.guard.dictionaries.nodes import Tree
from stillroom.guard.mechanisms import NEVER_SWAPPED, Laplace, Mechanism, Surrogate, TreeChoice, make
from stillroom.guard.mechanisms.composite import part
from stillroom.guard.mechanisms.surrogate import FORMS, digits, pick
from stillroom.privacy.noise import Noise, OpenDPNoise
from stillroom.testing.noise import NoNoise, RecordedNoise

ALPHA = 1e-6
Table = dict[str, dict[str, float]]


def agrees(drawn: list[str], density: dict[str, float]) -> bool:
    """Say whether draws can be of the density; answers expected fewer than five times are taken together."""
    counts, number = Counter(drawn), len(drawn)
    assert set(counts) <= set(density)
    often = [answer for answer, chance in density.items() if chance * number >= 5]
    seen = [counts[answer] for answer in often] + [number - sum(counts[answer] for answer in often)]
    expected = [density[answer] * number for answer in often] + [number * (1 - sum(density[a] for a in often))]
    if expected[-1] < 1e-9 * number:
        assert seen.pop() == 0
        expected.pop()
    return bool(chisquare(seen, np.array(expected) * number / sum(expected)).pvalue > ALPHA)


def epsilon_of(table: Table) -> float:
    """Return the largest log ratio of any answer's probability at two values; infinite where one has none."""
    worst = 0.0
    answers = {answer for density in table.values() for answer in density}
    for answer in answers:
        chances = [density.get(answer, 0.0) for density in table.values()]
        worst = max(worst, math.inf if min(chances) == 0 else math.log(max(chances) / min(chances)))
    return worst


# Numbers and dates


def laplace_table(mechanism: Laplace) -> Table:
    """The density by its definition: P(place) = (1 − a)/(1 + a)·a^|x|, what lies outside at the ends."""
    a, n = math.exp(-1 / mechanism.scale), mechanism.steps
    table = {}
    for place in range(n + 1):
        inner = {at: (1 - a) / (1 + a) * a ** abs(at - place) for at in range(1, n)}
        ends = {0: a**place / (1 + a), n: a ** (n - place) / (1 + a)}
        table[mechanism.says(place)] = {mechanism.says(at): chance for at, chance in (ends | inner).items()}
    return table


AGES = Laplace("age", low=0, high=20, step=1, epsilon=2.0)


@pytest.mark.parametrize("age", ["0", "7", "20"])
def test_a_noisy_number_has_the_density_of_the_clipped_discrete_laplace(age: str) -> None:
    table, noise = laplace_table(AGES), OpenDPNoise()
    assert sum(table[age].values()) == pytest.approx(1)
    drawn = [AGES.draw(age, noise) for _ in range(2000)]
    assert agrees(drawn, table[age])
    assert not agrees(drawn, table["3" if age != "3" else "9"])  # the test would see another value's density


def test_a_noisy_number_costs_what_is_charged_between_any_two_values() -> None:
    assert epsilon_of(laplace_table(AGES)) == pytest.approx(AGES.epsilon) and AGES.epsilon == 2.0


@pytest.mark.parametrize(
    ("value", "place"),
    [("-5", 0), ("7.4", 7), ("1e9", 1), ("3,000", 20), ("47 years", 20), ("", 10), ("seven", 10), ("٧", 7),
     ("9" * 50_000, 20), ("-" + "9" * 50_000, 0), ("4." + "9" * 50_000, 5), ("\ud800", 10)],
)  # fmt: skip
def test_any_value_has_a_place_between_the_bounds(value: str, place: int) -> None:
    assert AGES.place(value) == place


def test_a_noisy_date_is_a_date_between_the_bounds_whatever_the_value() -> None:
    dates = Laplace("date", low="2030-01-01", high="2031-01-01", step=1, epsilon=1.0)
    for value, truth in {
        "2030-03-05": "2030-03-05", "1066-10-14": "2030-01-01", "9999-12-31": "2031-01-01", "2030-02-31": "2030-07-02",
        "yesterday": "2030-07-02",
    }.items():  # fmt: skip
        assert dates.draw(value, NoNoise()) == truth
        noisy = {date.fromisoformat(dates.draw(value, OpenDPNoise())) for _ in range(20)}
        assert min(noisy) >= date(2030, 1, 1) and max(noisy) <= date(2031, 1, 1) and len(noisy) > 1
    assert Laplace("date", low=date(2030, 1, 1), high=date(2031, 1, 1), epsilon=1.0).version == dates.version


def test_amounts_keep_the_decimals_of_their_step_and_nothing_of_the_value() -> None:
    amounts = Laplace("amount", low=0, high=10, step=0.05, epsilon=1.0)
    assert amounts.steps == 200 and amounts.draw("1234.5678", NoNoise()) == "10.00"
    assert amounts.draw("3.0499999", NoNoise()) == "3.05"


def test_metric_noise_says_so_and_pays_for_the_whole_range() -> None:
    near = Laplace("date", low="1930-01-01", high="2030-01-01", epsilon=2.0, metric=1)
    assert near.guarantee is Guarantee.METRIC_DP
    assert near.epsilon == 2 * near.steps and near.steps == 36_525  # one day at ε = 2 over a century
    small = Laplace("age", low=0, high=20, epsilon=0.5, metric=2)
    table = laplace_table(small)
    assert epsilon_of(table) == pytest.approx(small.epsilon) and small.epsilon == 5.0
    assert epsilon_of({age: table[age] for age in ("7", "9")}) == pytest.approx(0.5)


# Places and organisations


def tree_table(tree: Tree, scale: float) -> np.ndarray:
    """The density by its definition, from paths alone: rows are values, columns answers."""

    def steps(a: tuple[str, ...], b: tuple[str, ...]) -> int:
        shared = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        return len(a) + len(b) - 2 * shared

    weights = np.exp([[-steps(a, b) / scale for b in tree.nodes] for a in tree.nodes])
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def exact(table: np.ndarray) -> float:
    return float(max(np.log(column.max() / column.min()) for column in table.T))


@pytest.mark.parametrize("name", ["countries", "organisations"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_a_place_costs_what_is_charged_and_the_scale_wastes_nothing(name: str, epsilon: float) -> None:
    mechanism = TreeChoice("city", dictionary_name=name, epsilon=epsilon)
    found = exact(tree_table(mechanism.tree, mechanism.scale))
    assert found <= epsilon and found == pytest.approx(epsilon, rel=1e-6)
    wasteful = 2 * int(mechanism.tree.distances.max()) / epsilon
    assert mechanism.scale < 0.85 * wasteful


@pytest.mark.parametrize("value", ["Germany", "Atlantis"])
def test_a_place_is_drawn_with_the_density_of_the_exponential_mechanism(value: str) -> None:
    mechanism, noise = TreeChoice("country", dictionary_name="countries", epsilon=6.0), OpenDPNoise()
    tree = mechanism.tree
    table = tree_table(tree, mechanism.scale)

    def density(number: int) -> dict[str, float]:
        answers = dict.fromkeys(map(tree.says, range(len(tree.nodes))), 0.0)
        for other in range(len(tree.nodes)):
            answers[tree.says(other)] += table[number][other]
        return answers

    drawn = [mechanism.draw(value, noise) for _ in range(1500)]
    assert agrees(drawn, density(tree.find(value)))
    assert not agrees(drawn, density(tree.find("Kenya")))


def test_what_the_tree_does_not_know_is_its_root() -> None:
    places, organisations = dictionaries.tree("places"), dictionaries.tree("organisations")
    for unknown in ("Nkemelu", "", "\ud800", "x" * 100_000):
        assert places.nodes[places.find(unknown)] == () == organisations.nodes[organisations.find(unknown)]
    assert places.says(places.find("Nkemelu")) == "somewhere"
    assert places.nodes[places.find("PARIS, France")] == ("Europe", "France", "Paris")
    assert places.nodes[places.find("usa")] == ("North America", "United States")
    assert places.nodes[places.find("Perth")] == ("Oceania", "Australia", "Perth")
    assert organisations.nodes[organisations.find("St Mary's Hospital")] == ("health", "hospital")
    countries = dictionaries.tree("countries")
    assert countries.nodes[countries.find("Paris")] == ("Europe", "France")


def test_a_name_of_several_places_is_what_they_share() -> None:
    tree = Tree.of("t", "root", [("a", "b", "x"), ("a", "c", "x"), ("d", "y"), ("a", "y")], by_words=False)
    assert tree.nodes[tree.find("x")] == ("a",) and tree.nodes[tree.find("y")] == ()
    assert tree.distances[tree.find("b"), tree.find("d")] == 3 and (tree.distances.diagonal() == 0).all()


def test_control_a_pool_of_the_values_own_neighbours_has_no_epsilon() -> None:
    """As LPRAG has it: randomised response over the nearest five and the value itself."""
    tree = dictionaries.tree("countries")

    def own_pool(epsilon: float) -> Table:
        table = {}
        for value in range(len(tree.nodes)):
            near = np.argsort(tree.distances[value], kind="stable")[:6]
            keep = math.exp(epsilon) / (math.exp(epsilon) + len(near) - 1)
            table[str(value)] = {str(o): keep if o == value else (1 - keep) / (len(near) - 1) for o in near.tolist()}
        return table

    assert epsilon_of(own_pool(0.5)) == math.inf

    def one_pool(epsilon: float) -> Table:
        nodes = [str(node) for node in range(len(tree.nodes))]
        keep = math.exp(epsilon) / (math.exp(epsilon) + len(nodes) - 1)
        return {v: {o: keep if o == v else (1 - keep) / (len(nodes) - 1) for o in nodes} for v in nodes}

    assert epsilon_of(one_pool(0.5)) == pytest.approx(0.5)  # the same with one public pool


def test_a_drawn_age_is_a_whole_number_as_ages_are_written() -> None:
    ages = make("laplace", "age", low=0.0, high=110.0, step=1.0, epsilon=1.0)
    assert all(re.fullmatch(r"\d{1,3}", ages.draw("34", OpenDPNoise())) for _ in range(30))
    assert make("laplace", "amount", low=0, high=10, step=0.05, epsilon=1.0).says(3) == "0.15"
    assert make("laplace", "amount", low=0, high=1000000, step=10, epsilon=1.0).says(100000) == "1000000"


# Surrogates and placeholders

AWKWARD = ["Anna Nkemelu", "王小明", "J. R. O'Neill-Smythe III", "", "a" * 10_000, "+44 20 7946 0000", "\ud800"]


def test_no_post_office_has_an_invented_postcode() -> None:
    """Those of the USA begin at 00501."""
    drawn = {Surrogate("postcode").draw("x", OpenDPNoise()) for _ in range(2000)}
    assert len(drawn) > 400 and all(re.fullmatch(r"00[0-4]\d\d", postcode) for postcode in drawn)


@pytest.mark.parametrize("category", sorted(FORMS))
def test_with_equal_noise_all_values_have_the_same_surrogate(category: str) -> None:
    recorded = RecordedNoise(OpenDPNoise())
    first = Surrogate(category).draw(AWKWARD[0], recorded)
    for value in AWKWARD[1:]:
        assert Surrogate(category).draw(value, RecordedNoise(replay=recorded.draws)) == first
    assert Surrogate(category).epsilon == 0.0


def test_control_a_surrogate_of_the_same_length_would_be_seen() -> None:
    def by_length(value: str, noise: Noise) -> str:
        return pick(noise, [name for name in dictionaries.pool("first_names") if len(name) == len(value)])

    recorded = RecordedNoise(NoNoise())
    assert by_length("Anna", recorded) != by_length("Bruno", RecordedNoise(replay=recorded.draws))


def test_a_surrogate_is_drawn_evenly_from_its_pool() -> None:
    noise = OpenDPNoise()
    names, even = [Surrogate("city").draw("x", noise) for _ in range(1500)], dictionaries.pool("towns")
    assert agrees(names, dict.fromkeys(even, 1 / len(even)))
    ones = [digits(noise, 1, 1) for _ in range(1000)]
    assert agrees(ones, {str(i): 1 / 9 for i in range(1, 10)})


@pytest.mark.parametrize(
    ("category", "form"),
    [
        ("phone", r"\d{3}-555-01\d\d"),
        ("email", r"[a-z]+\.[a-z]+@example\.org"),
        ("url", r"https://example\.org/[a-z]+"),
        ("ip", r"(192\.0\.2|198\.51\.100|203\.0\.113)\.[1-9]\d?"),
        ("card", r"0000 0000 \d{4} \d{4}"),
        ("iban", r"XX00 0000 \d{4} \d{4}"),
        ("national_id", r"000-\d\d-\d{4}"),
    ],
)
def test_surrogates_lie_in_ranges_that_belong_to_nobody(category: str, form: str) -> None:
    noise = OpenDPNoise()
    assert all(re.fullmatch(form, Surrogate(category).draw("x", noise)) for _ in range(10))


@pytest.mark.parametrize("category", sorted(NEVER_SWAPPED))
@pytest.mark.parametrize("mechanism", ["surrogate", "laplace", "tree"])
def test_doses_drugs_and_findings_are_never_swapped(category: str, mechanism: str) -> None:
    with pytest.raises(BadOption, match="never swapped"):
        make(mechanism, category, epsilon=1.0, low=0, high=9, step=1, dictionary="places")
    assert make("placeholder", category).draw("5 mg", NoNoise()) == f"[{category.upper()}]"


def test_a_composite_tells_its_parts_from_the_one_draw() -> None:
    assert part("email", "Anna Velmor") == "anna.velmor@example.org"
    assert part("username", "Anna Velmor") == "anna.velmor" and part("person", "Anna Velmor") == "Anna Velmor"
    assert part("phone", "Anna Velmor") is None
    assert part("age", "1961-04-30", on=date(2031, 4, 29)) == "69"
    assert part("age", "1961-04-30", on=date(2031, 4, 30)) == "70"
    assert part("age", "1961-04-30") is None and part("date", "1961-04-30") == "1961-04-30"


# What a policy may ask for


@pytest.mark.parametrize(
    "call",
    [
        lambda: make("laplace", "age", epsilon=0, low=0, high=9, step=1),
        lambda: make("laplace", "age", epsilon=None, low=0, high=9, step=1),
        lambda: make("laplace", "age", epsilon=math.nan, low=0, high=9, step=1),
        lambda: make("laplace", "age", epsilon=1, low=9, high=9, step=1),
        lambda: make("laplace", "age", epsilon=1, low=0, high=math.inf, step=1),
        lambda: make("laplace", "age", epsilon=1, low=None, high=9, step=1),
        lambda: make("laplace", "age", epsilon=1, low=0, high=9, step=0),
        lambda: make("laplace", "age", epsilon=1, low=0, high=9, step=1e-9),
        lambda: make("laplace", "age", epsilon=1, low=0, high=9, step=1, metric=10),
        lambda: make("laplace", "date", epsilon=1, low="2030-01-01", high=9, step=1),
        lambda: make("laplace", "date", epsilon=1, low="2030-01-01", high="2031-01-01", step=0.5),
        lambda: make("tree", "city", epsilon=1),
        lambda: make("tree", "city", epsilon=-1, dictionary="places"),
        lambda: make("tree", "city", epsilon=1, dictionary="moons"),
        lambda: make("surrogate", "weather"),
        lambda: make("shuffle", "city"),
    ],
)
def test_what_makes_no_sense_is_told(call: Callable[[], Mechanism]) -> None:
    with pytest.raises((BadOption, UnknownName)):
        call()


@settings(max_examples=10, deadline=None)
@given(value=st.text(max_size=60))
def test_no_value_stops_a_mechanism(value: str) -> None:
    for mechanism in (AGES, make("tree", "organisation", dictionary="organisations", epsilon=1.0)):
        assert mechanism.draw(value, NoNoise())


def test_other_parameters_are_another_version() -> None:
    made = [
        make("laplace", "age", epsilon=1, low=0, high=9, step=1),
        make("laplace", "age", epsilon=2, low=0, high=9, step=1),
        make("laplace", "age", epsilon=1, low=0, high=18, step=2),
        make("laplace", "age", epsilon=1, low=1, high=10, step=1),
        make("laplace", "age", epsilon=1, low=0, high=9, step=1, metric=3),
        make("tree", "age", epsilon=1, dictionary="countries"),
        make("tree", "age", epsilon=2, dictionary="countries"),
        make("tree", "age", epsilon=1, dictionary="organisations"),
        make("placeholder", "age"),
    ]
    assert len({mechanism.version for mechanism in made}) == len(made)
    assert make("laplace", "age", epsilon=1.0, low=0.0, high=9, step=1.0).version == made[0].version
