"""What every language model and every embedder behind the seams must do, as test classes to inherit.

    @pytest.fixture(scope="module")
    def lm():
        return MyLanguageModel()

    class TestMine(LanguageModelConformance):
        pass

The fixture may stand in the class as well. Needs pytest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from stillroom.embed.base import Embedder
from stillroom.errors import ModelUnfit
from stillroom.lm.base import LanguageModel, Prompt, Scores


class LanguageModelConformance:
    """Inherit, and give the fixture `lm`. The texts may be replaced by ones that the model's tokens can spell."""

    bodies: tuple[str, ...] = (
        "Diagnosis: Zonkitis Treatment: Blergon and Rest",
        "Diagnosis: Snurflepox with fever and rash",
        "the patient of the Unit helps with Tea",
        "pain",
    )
    round_trips: tuple[str, ...] = ("Diagnosis: Zonkitis", "Treatment: Blergon\nSymptoms: fever and cough", "\n\n", "")
    said = "Diagnosis: Zonkitis"
    long_word = " fever"
    """Repeated until a body has 500 tokens."""

    def prompt(self, body: str) -> Prompt:
        return Prompt(before="Read the note.\n\n", body=body, after="\n\nGo on.", reply="")

    def prompts(self) -> list[Prompt]:
        return [self.prompt(body) for body in self.bodies]

    def long_prompt(self, lm: LanguageModel) -> Prompt:
        return self.prompt(self.long_word * -(-500 // max(1, len(lm.encode(self.long_word)))))

    def scores_of(self, lm: LanguageModel, prompts: Sequence[Prompt], tokens: Sequence[int] = ()) -> Scores:
        session = lm.open(lm.read(prompts))
        if tokens:
            session.push(tokens)
        return session.scores()

    def columns(self, lm: LanguageModel) -> list[int]:
        return sorted({*lm.stop_tokens, *lm.encode(self.said), 1, lm.vocabulary_size // 2, lm.vocabulary_size - 1})

    # -- what it says of itself ---------------------------------------------------------------------------------
    def test_it_has_a_name_and_both_capabilities(self, lm: LanguageModel) -> None:
        assert lm.name
        assert lm.capabilities >= {"scores", "generate"}
        for capability in lm.capabilities:
            lm.need(capability)

    def test_needing_what_it_lacks_is_refused(self, lm: LanguageModel) -> None:
        with pytest.raises(ModelUnfit, match="clairvoyance"):
            lm.need("clairvoyance")

    def test_stop_tokens_are_tokens(self, lm: LanguageModel) -> None:
        assert lm.stop_tokens
        assert all(0 <= token < lm.vocabulary_size for token in lm.stop_tokens)

    # -- tokens -------------------------------------------------------------------------------------------------
    def test_decoding_what_was_encoded_gives_the_text_back(self, lm: LanguageModel) -> None:
        for text in self.round_trips:
            tokens = lm.encode(text)
            assert all(0 <= token < lm.vocabulary_size for token in tokens)
            assert lm.decode(tokens) == text

    def test_encoding_adds_no_special_token_and_decoding_leaves_them_out(self, lm: LanguageModel) -> None:
        assert not set(lm.encode(self.said)) & lm.stop_tokens
        assert lm.decode([*lm.encode(self.said), *lm.stop_tokens]) == self.said

    def test_broken_unicode_is_encoded_without_an_error(self, lm: LanguageModel) -> None:
        lm.encode("a \ud800 lone surrogate \x00 and a zero")

    # -- shapes -------------------------------------------------------------------------------------------------
    def test_scores_are_float32_of_rows_by_vocabulary(self, lm: LanguageModel) -> None:
        readings = lm.read(self.prompts())
        session = lm.open(readings)
        assert len(readings) == session.rows == len(self.bodies)
        assert session.scores().shape == (len(self.bodies), lm.vocabulary_size)
        assert session.scores().dtype == np.float32
        columns = self.columns(lm)
        assert session.scores(columns).shape == (len(self.bodies), len(columns))
        assert session.scores(columns).dtype == np.float32

    def test_scores_are_finite(self, lm: LanguageModel) -> None:
        assert np.isfinite(self.scores_of(lm, self.prompts(), lm.encode(self.said))).all()

    def test_no_rows_are_rows_too(self, lm: LanguageModel) -> None:
        for session in (lm.open(lm.read([])), lm.open(lm.read(self.prompts()), rows=[])):
            session.push(lm.encode(self.said))
            assert session.rows == 0
            assert session.scores().shape == (0, lm.vocabulary_size)
            assert session.scores([1]).shape == (0, 1)
        assert lm.generate([], 3) == []

    def test_an_empty_body_has_scores(self, lm: LanguageModel) -> None:
        assert np.isfinite(self.scores_of(lm, [self.prompt("")])).all()

    # -- meaning ------------------------------------------------------------------------------------------------
    def test_scores_of_some_tokens_are_those_columns_of_all(self, lm: LanguageModel) -> None:
        session = lm.open(lm.read(self.prompts()))
        columns = self.columns(lm)
        for order in (columns, columns[::-1]):
            np.testing.assert_allclose(session.scores(order), session.scores()[:, order], rtol=1e-4, atol=1e-4)

    def test_asking_again_gives_the_same_bits(self, lm: LanguageModel) -> None:
        session = lm.open(lm.read(self.prompts()))
        columns = self.columns(lm)
        assert np.array_equal(session.scores(), session.scores())
        assert np.array_equal(session.scores(columns), session.scores(columns))

    def test_what_a_caller_does_to_scores_stays_with_the_caller(self, lm: LanguageModel) -> None:
        session = lm.open(lm.read(self.prompts()))
        before = session.scores().copy()
        got = session.scores()
        if got.flags.writeable:
            got[:] = 0
        assert np.array_equal(session.scores(), before)

    def test_scores_depend_on_the_document(self, lm: LanguageModel) -> None:
        scores = self.scores_of(lm, self.prompts())
        assert not np.allclose(scores[0], scores[1])

    def test_pushing_changes_scores(self, lm: LanguageModel) -> None:
        session = lm.open(lm.read(self.prompts()))
        before = session.scores().copy()
        session.push(lm.encode(self.said))
        assert not np.allclose(before, session.scores())

    def test_pushing_together_equals_pushing_one_by_one(self, lm: LanguageModel) -> None:
        tokens = lm.encode(self.said)
        assert len(tokens) > 1
        together, apart = lm.open(lm.read(self.prompts())), lm.open(lm.read(self.prompts()))
        together.push(tokens)
        for token in tokens:
            apart.push([token])
        np.testing.assert_allclose(together.scores(), apart.scores(), rtol=1e-3, atol=1e-3)

    def test_asking_between_pushes_changes_nothing(self, lm: LanguageModel) -> None:
        tokens = lm.encode(self.said)
        asked, silent = lm.open(lm.read(self.prompts())), lm.open(lm.read(self.prompts()))
        for token in tokens:
            asked.scores([token])
            asked.push([token])
            silent.push([token])
        np.testing.assert_allclose(asked.scores(), silent.scores(), rtol=1e-3, atol=1e-3)

    def test_pushing_nothing_changes_nothing(self, lm: LanguageModel) -> None:
        session = lm.open(lm.read(self.prompts()))
        before = session.scores().copy()
        session.push([])
        assert np.array_equal(before, session.scores())

    def test_a_reply_already_spoken_is_as_good_as_pushed(self, lm: LanguageModel) -> None:
        spoken = Prompt("Read.\n\n", self.bodies[0], "\n\nGo on.", self.said)
        silent = Prompt("Read.\n\n", self.bodies[0], "\n\nGo on.")
        pushed = self.scores_of(lm, [silent], lm.encode(self.said))
        np.testing.assert_allclose(self.scores_of(lm, [spoken]), pushed, rtol=1e-3, atol=1e-3)

    # -- sessions do not disturb each other ---------------------------------------------------------------------
    def test_reading_again_gives_the_same_bits(self, lm: LanguageModel) -> None:
        tokens = lm.encode(self.said)
        assert np.array_equal(self.scores_of(lm, self.prompts(), tokens), self.scores_of(lm, self.prompts(), tokens))

    def test_readings_can_be_opened_often_and_a_push_stays_in_its_session(self, lm: LanguageModel) -> None:
        readings = lm.read(self.prompts())
        first = lm.open(readings)
        before = first.scores().copy()
        first.push(lm.encode(self.said))
        moved = first.scores().copy()
        second = lm.open(readings)
        assert np.array_equal(second.scores(), before)
        second.push(lm.encode(self.said[::-1]) or [1])
        assert np.array_equal(first.scores(), moved)

    def test_chosen_rows_score_as_those_rows_of_all(self, lm: LanguageModel) -> None:
        readings = lm.read(self.prompts())
        every = lm.open(readings).scores()
        for rows in ([2], [0, 2], [3, 1], [1, 1]):
            assert np.array_equal(lm.open(readings, rows=rows).scores(), every[rows])

    # -- no row knows of the others (rules 21 and 22) -----------------------------------------------------------
    def test_it_says_that_rows_are_independent(self, lm: LanguageModel) -> None:
        assert lm.rows_independent() is True

    def _company(self, lm: LanguageModel) -> dict[str, list[Prompt]]:
        """Return, by what was done to them, other rows beside the first prompt; it is always somewhere among them."""
        first, *others = self.prompts()
        long = self.long_prompt(lm)
        return {
            "all": [first, *others],
            "alone": [first],
            "one removed": [first, *others[1:]],
            "one added": [first, *others, self.prompt(self.bodies[1])],
            "many added": [first, *others * 4],
            "permuted": [*others[::-1], first],
            "one replaced by a long one": [first, long, *others[1:]],
            "behind a long one": [long, first],
        }

    @pytest.mark.parametrize("tokens_pushed", [False, True])
    def test_a_row_scores_the_same_bits_in_any_company(self, lm: LanguageModel, tokens_pushed: bool) -> None:
        tokens = lm.encode(self.said) if tokens_pushed else []
        columns = self.columns(lm)
        expected: tuple[Scores, Scores] | None = None
        for what, prompts in self._company(lm).items():
            session = lm.open(lm.read(prompts))
            session.push(tokens)
            row = prompts.index(self.prompts()[0])
            found = session.scores()[row].copy(), session.scores(columns)[row].copy()
            if expected is None:
                expected = found
            assert np.array_equal(found[0], expected[0]), what
            assert np.array_equal(found[1], expected[1]), what

    # -- text ---------------------------------------------------------------------------------------------------
    def test_generating_is_greedy_and_repeats_itself(self, lm: LanguageModel) -> None:
        assert lm.generate(self.prompts()[:2], 4) == lm.generate(self.prompts()[:2], 4)

    def test_a_continuation_depends_on_its_own_prompt_alone(self, lm: LanguageModel) -> None:
        prompts = [*self.prompts(), self.long_prompt(lm)]
        together = lm.generate(prompts, 4)
        assert together == [text for prompt in prompts for text in lm.generate([prompt], 4)]

    def test_a_continuation_has_at_most_so_many_tokens(self, lm: LanguageModel) -> None:
        assert all(len(lm.encode(text)) <= 3 for text in lm.generate(self.prompts()[:1], 3))
        assert lm.generate(self.prompts()[:1], 0) == [""]

    def test_a_continuation_ends_before_a_stop_string(self, lm: LanguageModel) -> None:
        (whole,) = lm.generate(self.prompts()[:1], 8)
        assert len(whole) > 2
        stop = whole[2:4]
        assert lm.generate(self.prompts()[:1], 8, stop=[stop]) == [whole[: whole.index(stop)]]


class EmbedderConformance:
    """Inherit, and give the fixture `embedder`."""

    texts: tuple[str, ...] = (
        "Snurflepox was treated with Blergonolaser Therapy.",
        "The parcel came late and the box was torn.",
        "fever",
        "",
        "été 漢字 ¿?",
    )

    def long_text(self) -> str:
        return "fever and rash " * 250

    def test_vectors_are_finite_float64_of_norm_at_most_one(self, embedder: Embedder) -> None:
        vectors = embedder.embed([*self.texts, self.long_text()])
        assert vectors.shape == (len(self.texts) + 1, embedder.dimensions)
        assert vectors.dtype == np.float64
        assert np.isfinite(vectors).all()
        assert (np.linalg.norm(vectors, axis=1) <= 1).all()

    def test_it_has_a_name(self, embedder: Embedder) -> None:
        assert embedder.name

    def test_no_texts_give_no_vectors(self, embedder: Embedder) -> None:
        assert embedder.embed([]).shape == (0, embedder.dimensions)

    def test_different_texts_have_different_vectors_and_equal_ones_the_same(self, embedder: Embedder) -> None:
        one, other, again = embedder.embed([self.texts[0], self.texts[1], self.texts[0]])
        assert not np.allclose(one, other)
        assert np.array_equal(one, again)

    def test_a_text_is_nearest_to_itself(self, embedder: Embedder) -> None:
        vectors = embedder.embed(self.texts[:3])
        assert np.argmax(vectors @ vectors.T, axis=1).tolist() == [0, 1, 2]

    def test_a_vector_has_the_same_bits_in_any_company(self, embedder: Embedder) -> None:
        texts = list(self.texts)
        expected = embedder.embed(texts)
        for what, others in {
            "a long one added": [*texts, self.long_text()],
            "behind a long one": [self.long_text(), *texts],
            "permuted": texts[::-1],
            "many": texts * 4,
            "one removed": texts[1:],
        }.items():
            vectors = embedder.embed(others)
            for text, vector in zip(others, vectors, strict=True):
                if text in texts:
                    assert np.array_equal(vector, expected[texts.index(text)]), what
        for text, vector in zip(texts, expected, strict=True):
            assert np.array_equal(embedder.embed([text])[0], vector)

    def test_no_text_stops_it(self, embedder: Embedder) -> None:
        vectors = embedder.embed(["\ud800 lone surrogate", "\x00", " \n\t ", "x" * 100_000])
        assert np.isfinite(vectors).all()
