"""The toy language model keeps the promises of the seam, and the suite notices one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from stillroom.lm.base import LanguageModel, Prompt, Readings
from stillroom.testing.conformance import LanguageModelConformance
from stillroom.testing.toylm import ConstantLM, CrowdedLM, NaNLM, ToyLM, ToySession


class TestToyLM(LanguageModelConformance):
    @pytest.fixture
    def lm(self) -> LanguageModel:
        return ToyLM()


class TestTinyToyLM(LanguageModelConformance):
    bodies = (" a b a b", " b b c", " c", " a c a")
    round_trips = (" a b", "\n c", "")
    said = " a b"
    long_word = " a"

    @pytest.fixture
    def lm(self) -> LanguageModel:
        return ToyLM(words=("a", "b", "c"), labels=(), letters="")


class TestTheSuiteItself:
    @pytest.mark.parametrize("pushed", [False, True])
    def test_it_notices_rows_that_lean_on_each_other(self, pushed: bool) -> None:
        with pytest.raises(AssertionError, match="alone"):
            LanguageModelConformance().test_a_row_scores_the_same_bits_in_any_company(CrowdedLM(), pushed)

    def test_it_notices_a_model_deaf_to_its_document(self) -> None:
        with pytest.raises(AssertionError):
            LanguageModelConformance().test_scores_depend_on_the_document(ConstantLM())

    def test_it_notices_a_push_that_moves_other_sessions(self) -> None:
        class Shared(ToyLM):
            said: ClassVar[list[int]] = []

            def open(
                self, readings: Readings | Sequence[Prompt], rows: Sequence[int] | None = None, *, public: bool = False
            ) -> ToySession:
                session = super().open(readings, rows)
                session._said = [self.said] * session.rows
                return session

        with pytest.raises(AssertionError):
            LanguageModelConformance().test_readings_can_be_opened_often_and_a_push_stays_in_its_session(Shared())

    def test_it_notices_a_score_that_is_no_number(self) -> None:
        broken = NaNLM()
        broken.marker = "pain"
        with pytest.raises(AssertionError):
            LanguageModelConformance().test_scores_are_finite(broken)
