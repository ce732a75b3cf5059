"""The figures of the guarantees are those of the plan that they speak of."""

from __future__ import annotations

import math
from pathlib import Path

from stillroom import plan

PAGE = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text(encoding="utf-8")


def figure(value: float, digits: int) -> str:
    """Return a number as the page writes it: without a zero before the point."""
    return f"{value:.{digits}f}".removeprefix("0")


def test_the_table_of_terms_is_that_of_the_default_plan() -> None:
    record = plan(epsilon=10, delta=1e-6, form="clinic").record
    words, topics, co, text = record.keywords, record.topics, record.cokeywords, record.text
    assert topics.size_sigma is not None and co is not None and words.threshold is not None
    rows = {
        f"| keywords | K = {words.per_unit}, σ = {words.sigma:.2f}, t = {words.threshold:.1f} "
        f"| ρ {figure(words.per_unit / (2 * words.sigma**2), 4)}, δ_ps 1e-7 |",
        f"| topic sizes | L = {topics.per_unit}, σ_s = {topics.size_sigma:.2f} "
        f"| ρ {figure(topics.per_unit / (2 * topics.size_sigma**2), 4)} |",
        f"| co-keywords | K_c = {co.per_unit}, σ_c = {co.sigma:.2f} | ρ {figure(co.per_unit / (2 * co.sigma**2), 4)} |",
        f"| text | T = {text.draws}, c = {figure(text.clip, 3)}, τ = 1 "
        f"| ρ {figure(text.draws * text.clip**2 / 2, 4)} |",
    }
    assert [row for row in rows if row not in PAGE] == []
    assert f"at most e^(2c/τ) = {math.ceil(100 * math.exp(2 * text.clip)) / 100:.2f} for one" in PAGE
