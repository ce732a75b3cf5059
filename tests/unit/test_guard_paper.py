"""PA-HDP does what is published, step by step, and says what that guarantees."""

from __future__ import annotations

import math
import os
import re

import numpy as np
import pytest
from scipy.stats import chisquare

from stillroom.embed.hashing import HashEmbedder
from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.guard.paper import GRID, PaperConfig, PaperGuard, Tier
from stillroom.guard.spans import Span
from stillroom.models import default_cache, known
from stillroom.privacy.noise import OpenDPNoise
from stillroom.testing.noise import NoNoise, RecordedNoise

NAMES = re.compile(r"Anna Nkemelu|Bela Orsolan")


def detect(text: str) -> list[Span]:
    found = [Span(m.start(), m.end(), "person", "test", 1.0) for m in NAMES.finditer(text)]
    return found + [Span(m.start(), m.end(), "date", "test", 1.0) for m in re.finditer(r"\d{4}-\d\d-\d\d", text)]


def guard(config: PaperConfig | None = None, noise: object = None) -> PaperGuard:
    return PaperGuard(detect, HashEmbedder(), config, noise=noise or NoNoise())  # type: ignore[arg-type]


PASSAGE = "Anna Nkemelu was seen. She came on 2031-03-04. The ward was quiet."
QUERY = "What was Anna Nkemelu seen for?"


def risks(query: str, passage: str = PASSAGE) -> list[float]:
    texts = re.findall(r"[^.]+\.", passage)
    return guard().risks(query, [(text.strip(), detect(text.strip())) for text in texts])


def test_the_risk_is_relevance_behind_the_gate_and_the_heaviest_entity() -> None:
    embedded = HashEmbedder().embed([QUERY, "Anna Nkemelu was seen."])
    cosine = float(embedded[0] @ embedded[1])
    assert cosine > 0.5
    assert risks(QUERY)[0] == pytest.approx(0.6 * cosine + 0.4 * 0.9)
    assert risks("What was she seen for?") == pytest.approx([0.36, 0.12, 0.0])  # no entity, so the gate is shut
    assert risks("Anna Nkemelu")[2] == pytest.approx(0.0, abs=0.2)


def test_without_noise_the_tiers_are_those_of_the_thresholds() -> None:
    config = PaperConfig(original=False)
    answer = guard(config).sanitise(QUERY, [PASSAGE])
    assert answer.report.tiers == {Tier.LOW: 2, Tier.MEDIUM: 0, Tier.HIGH: 1}
    assert "Nkemelu" not in answer.texts[0] and answer.texts[0].endswith("She came on 2031-03-04. The ward was quiet.")
    shut = guard(config).sanitise("What was she seen for?", [PASSAGE])
    assert shut.report.tiers == {Tier.LOW: 2, Tier.MEDIUM: 1, Tier.HIGH: 0}


def test_epsilon_is_shared_as_published() -> None:
    each = guard().shares(3, 2)
    assert each[Tier.HIGH] == pytest.approx(8 / (2 * (3 + 2 * 2))) and each[Tier.MEDIUM] == 2 * each[Tier.HIGH]
    assert 3 * each[Tier.HIGH] + 2 * each[Tier.MEDIUM] == pytest.approx(4)
    assert guard().shares(0, 0) == {Tier.HIGH: 0.0, Tier.MEDIUM: 0.0}


def test_the_noise_of_every_step_is_what_is_published() -> None:
    noise = RecordedNoise(NoNoise())
    guard(noise=noise).sanitise(QUERY, [PASSAGE, "Bela Orsolan was seen."])
    laplace = [draw for draw in noise.draws if draw.name == "laplace"]
    assert len(laplace) == 4
    assert {d.parameters["scale"] for d in laplace} == {2 * GRID / 8} and laplace[0].parameters["sensitivity"] == GRID
    chosen = [draw for draw in noise.draws if draw.name == "choose"]
    high, medium = 1, 1
    sensitivity = math.ceil(1.5 * GRID)
    shares = [8 / (2 * (high + 2 * medium)), 2 * 8 / (2 * (high + 2 * medium))]
    assert [draw.parameters["sensitivity"] for draw in chosen] == [sensitivity] * 2
    assert [draw.parameters["scale"] for draw in chosen] == pytest.approx([2 * sensitivity / e for e in shares])


def test_candidates_swap_entities_for_others_of_the_class_and_equal_ones_alike() -> None:
    text = "Anna Nkemelu told Bela Orsolan that Anna Nkemelu left on 2031-03-04."
    found = guard().candidates(text, sorted(detect(text), key=lambda span: span.start))
    assert len(found) == 50 and found[0] == text
    people = set(PaperConfig().pools["person"])
    for other in found[1:]:
        match = re.fullmatch(r"(.+) told (.+) that (.+) left on \[DATE\]\.", other)
        assert match and match[1] == match[3] != match[2] and {match[1], match[2]} <= people
    assert len(set(found)) == 50
    assert found == guard().candidates(text, sorted(detect(text), key=lambda span: span.start))
    assert text not in guard(PaperConfig(original=False)).candidates(text, detect(text))


def test_utility_is_distance_and_entities_kept() -> None:
    text = "Anna Nkemelu came."
    own = guard(PaperConfig(alpha=0.25))
    found = own.utilities(text, detect(text), [text, "Edgar Velmor came."])
    vectors = HashEmbedder().embed([text, "Edgar Velmor came."])
    assert found == pytest.approx([-0.75, -0.25 * np.linalg.norm(vectors[0] - vectors[1])])
    assert all(-own.config.delta_u <= u <= 0 for u in found)


def test_a_sentence_is_drawn_with_the_published_density() -> None:
    config = PaperConfig(candidates=8, alpha=0.9, epsilon=30.0)
    own = guard(config, OpenDPNoise())
    text = "Anna Nkemelu was seen here."
    candidates = own.candidates(text, detect(text))
    weights = np.exp(15.0 * np.array(own.utilities(text, detect(text), candidates)) / (2 * config.delta_u))
    drawn = [own.sanitise(f"Anna Nkemelu? {text}", [text]).texts[0] for _ in range(1500)]
    counts = np.array([drawn.count(each) for each in candidates])
    # Of tier High in all but e⁻⁴ of the calls; the others are drawn with twice the ε or given out as they are.
    share = own.risks(f"Anna Nkemelu? {text}", [(text, detect(text))])[0]
    assert share > 0.9 and counts.sum() == len(drawn)
    low = 0.5 * math.exp(-(share - 0.3) * 15)
    medium = 0.5 * math.exp(-(share - 0.7) * 15) - low
    # Alone, a Medium sentence gets γ·ε/2γ: the same ε/2 as a High one.
    assert own.shares(0, 1)[Tier.MEDIUM] == own.shares(1, 0)[Tier.HIGH] == 15.0
    density = (1 - low) * weights / weights.sum() + low * (np.arange(8) == 0)
    assert medium > 0 and chisquare(counts, density * len(drawn)).pvalue > 1e-6


def test_the_report_says_that_there_is_no_guarantee_and_what_is_verbatim() -> None:
    report = guard().sanitise("hello", [PASSAGE, ""]).report
    assert report.guarantee is Guarantee.NONE and report.entities == {"date": 1, "person": 1}
    assert report.verbatim >= 2
    assert report.says().startswith(f"Guarantee: none. {report.verbatim} of 3 sentences are given out verbatim")
    assert "Nkemelu" not in repr(report)


def test_nothing_in_gives_nothing_out() -> None:
    answer = guard(noise=OpenDPNoise()).sanitise("", ["", "  "])
    assert answer.texts == ("", "") and sum(answer.report.tiers.values()) == 0
    assert guard().sanitise("x", []).texts == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0}, {"epsilon": math.nan}, {"gamma": 0.0}, {"alpha": 1.1}, {"relevance": 0.5},
        {"medium": 0.8}, {"candidates": 1}, {"weights": {"person": 1.5}}, {"utility_sensitivity": 0.0},
    ],
)  # fmt: skip
def test_a_configuration_that_makes_no_sense_is_told(wrong: dict[str, object]) -> None:
    with pytest.raises(BadOption):
        PaperConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.model
def test_it_runs_with_the_packaged_embedder() -> None:
    folder = next((e.folder for e in known(default_cache(os.environ)) if e.entry.name == "minilm" and e.there), None)
    if folder is None:
        pytest.skip("needs: stillroom models pull minilm")
    sentence = pytest.importorskip("stillroom.embed.sentence")
    config = PaperConfig(candidates=4, epsilon=20.0, original=False)
    own = PaperGuard(detect, sentence.SentenceEmbedder(folder, "minilm"), config)
    text = "Anna Nkemelu was seen."
    assert own.risks(QUERY, [(text, detect(text))])[0] > 0.7
    assert len(own.sanitise(QUERY, [text]).texts) == 1
