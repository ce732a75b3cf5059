"""The embedders keep the promises of the seam, and the suite notices one that does not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stillroom.embed.base import Embedder, Vectors, clip
from stillroom.embed.hashing import HashEmbedder
from stillroom.models import default_cache, known
from stillroom.testing.conformance import EmbedderConformance


def _minilm() -> Path | None:
    return next(
        (each.folder for each in known(default_cache(os.environ)) if each.entry.name == "minilm" and each.there), None
    )


class TestHashEmbedder(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashEmbedder()


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    folder = _minilm()
    if folder is None:
        pytest.skip("needs: stillroom models pull minilm")
    sentence = pytest.importorskip("stillroom.embed.sentence")
    embedder: Embedder = sentence.SentenceEmbedder(folder, "minilm")
    return embedder


@pytest.mark.model
class TestSentenceEmbedder(EmbedderConformance):
    @pytest.fixture
    def embedder(self, minilm: Embedder) -> Embedder:
        return minilm

    def test_texts_that_mean_the_same_are_nearer_than_others(self, embedder: Embedder) -> None:
        cat, kitten, invoice = embedder.embed(["A cat sat down.", "The kitten was sitting.", "Pay the invoice."])
        assert cat @ kitten > cat @ invoice + 0.2

    def test_its_vectors_have_norm_one_and_384_dimensions(self, embedder: Embedder) -> None:
        assert embedder.dimensions == 384
        assert np.linalg.norm(embedder.embed(["fever"])) == pytest.approx(1)

    def test_of_five_megabytes_only_the_first_page_reaches_the_model(
        self, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = embedder._model  # type: ignore[attr-defined]
        encode, lengths = model.encode, []

        def watched(texts: Sequence[str], **options: object) -> object:
            lengths.extend(map(len, texts))
            return encode(texts, **options)

        monkeypatch.setattr(model, "encode", watched)
        page = "fever and rash " * 1200
        vectors = embedder.embed([page * 300, page])
        assert max(lengths) <= 64 * 512
        assert np.array_equal(vectors[0], vectors[1])


class TestTheSuiteItself:
    def test_it_notices_vectors_that_lean_on_each_other(self) -> None:
        class Centred(HashEmbedder):
            def embed(self, texts: Sequence[str]) -> Vectors:
                vectors = super().embed(texts)
                return clip(vectors - 0.01 * vectors.mean(axis=0)) if len(texts) else vectors

        with pytest.raises(AssertionError):
            EmbedderConformance().test_a_vector_has_the_same_bits_in_any_company(Centred())

    def test_it_notices_vectors_that_are_too_long(self) -> None:
        class Long(HashEmbedder):
            def embed(self, texts: Sequence[str]) -> Vectors:
                return super().embed(texts) * 1.001

        with pytest.raises(AssertionError):
            EmbedderConformance().test_vectors_are_finite_float64_of_norm_at_most_one(Long())
