"""Answers from a release: found, read and cited. Everything read is public, so asking spends nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stillroom.embed.base import Embedder
from stillroom.errors import BadOption
from stillroom.index.bm25 import words
from stillroom.index.hybrid import LEAST_COSINE, HybridIndex
from stillroom.lm.base import LanguageModel
from stillroom.loading import EMBEDDER, LM, load_embedder, load_lm
from stillroom.rag.guarded import GuardedRag, Sanitiser
from stillroom.rag.reading import NOTHING, Answer, Passage, answer, near, question_of
from stillroom.release.folder import Release


class Rag:
    """Asks a release.

    Args:
        release: an open release, or its folder.
        lm: a language model that generates, or its name.
        embedder: an embedder, or its name.
        top_k: passages read for one answer, at most.
        least_cosine: see `HybridIndex`.

    Raises: ModelUnfit when the model cannot write; whatever opening the release or loading a name raises.
    """

    def __init__(
        self,
        release: Release | Path | str,
        lm: LanguageModel | str = LM,
        embedder: Embedder | str = EMBEDDER,
        top_k: int = 5,
        *,
        least_cosine: float = LEAST_COSINE,
    ) -> None:
        if top_k < 1:
            raise BadOption("top_k", top_k, "at least 1")
        self._release = release if isinstance(release, Release) else Release.open(release)
        self._lm = load_lm(lm) if isinstance(lm, str) else lm
        self._lm.need("generate")
        self._top_k = top_k
        form = self._release.certificate.plan.text.form
        labels = frozenset(word for slot in (form.slots if form else ()) for word in words(slot.label))
        self._index = HybridIndex(
            [text.text for text in self._release.texts],
            load_embedder(embedder) if isinstance(embedder, str) else embedder,
            least_cosine=least_cosine,
            common=labels,
        )

    def ask(self, question: str) -> Answer:
        """Return an answer from the release alone; it spends nothing. Raises BadOption for an empty question."""
        asked = question_of(question)
        found = answer(self._lm, asked, self._find(asked), self._release.guarantee, NOTHING)
        return replace(found, notes=(*found.notes, *self._notes())) if found.citations else found

    @classmethod
    def over_documents(
        cls,
        guard: Sanitiser,
        lm: LanguageModel | str = LM,
        *,
        top_k: int = 5,
        least_cosine: float = LEAST_COSINE,
        fallback: Release | Path | str | None = None,
    ) -> GuardedRag:
        """Return what asks documents that a guard has ingested, instead of a release. Each question may spend.

        Args:
            guard: finds and sanitises; its embedder is used for the search too.
            fallback: a release, opened at once, that answers where an account is empty or the books cannot be kept.
        """
        model = load_lm(lm) if isinstance(lm, str) else lm
        other = None if fallback is None else cls(fallback, model, guard.embedder, top_k, least_cosine=least_cosine)
        return GuardedRag(guard, model, top_k=top_k, least_cosine=least_cosine, fallback=other)

    def _find(self, question: str) -> tuple[Passage, ...]:
        hits = near(self._index.search(question, self._top_k))
        texts = self._release.texts
        return tuple(
            Passage(number, texts[hit.row].id, texts[hit.row].topic, texts[hit.row].text, hit.score, hit.cosine)
            for number, hit in enumerate(hits, start=1)
        )

    def _notes(self) -> tuple[str, ...]:
        if self._release.certificate.rehearsal:
            return ("The release is a rehearsal on a public or made-up collection.",)
        return ()
