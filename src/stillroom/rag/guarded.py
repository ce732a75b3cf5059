"""Answers from documents behind a guard: found by their templates, read as far as the caller may, cited by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from stillroom.embed.base import Embedder
from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.index.bm25 import words
from stillroom.index.hybrid import LEAST_COSINE, Hit, HybridIndex
from stillroom.lm.base import LanguageModel
from stillroom.rag.reading import NOTHING_KEPT, Answer, Passage, answer, near, question_of


class Shown(Protocol):
    """A passage as it may be searched and shown: a template without values."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


class Context(Protocol):
    """Sanitised passages and the receipt."""

    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def receipt(self) -> Any: ...


class Sanitiser(Protocol):
    """What stands between documents and answers; `guard.strict.Guard` is one."""

    @property
    def embedder(self) -> Embedder: ...
    def passages(self) -> Sequence[Any]: ...
    def sanitise(self, query: str, passages: Sequence[Any], *, caller: str, role: str | None) -> Any: ...
    def rehydrate(self, text: str, context: Any, *, role: str | None) -> str: ...


class Asker(Protocol):
    """Answers questions, as `Rag` does."""

    def ask(self, question: str) -> Answer: ...


class GuardedRag:
    """Asks documents behind a guard; made by `Rag.over_documents`.

    Search, ranks and scores follow from the templates alone, so a question with a name in it finds the same as one with
    any other name.
    """

    def __init__(
        self,
        guard: Sanitiser,
        lm: LanguageModel,
        *,
        top_k: int = 5,
        least_cosine: float = LEAST_COSINE,
        fallback: Asker | None = None,
    ) -> None:
        if top_k < 1:
            raise BadOption("top_k", top_k, "at least 1")
        lm.need("generate")
        self._guard, self._lm, self._top_k, self._fallback = guard, lm, top_k, fallback
        self._passages: Sequence[Shown] = guard.passages()
        self._index = HybridIndex(
            [passage.text for passage in self._passages],
            guard.embedder,
            least_cosine=least_cosine,
            common=_slot_words([passage.text for passage in self._passages]),
        )

    def ask(self, question: str, *, caller: str = "local", role: str | None = None) -> Answer:
        """Return an answer for this caller, with the guard's receipt.

        Values that the role may read are put back into the answer, not into the passages. Raises BadOption for an empty
        question, UnknownName for a role that the policy does not have.
        """
        asked = question_of(question)
        hits = near(self._index.search(asked, self._top_k))
        context = self._guard.sanitise(asked, [self._passages[hit.row] for hit in hits], caller=caller, role=role)
        receipt = context.receipt
        if self._fallback is not None and (receipt.refused or not receipt.ledger):
            why = "an account is empty" if receipt.refused else "the books cannot be kept"
            found = self._fallback.ask(asked)
            return replace(found, notes=(*found.notes, f"Answered from the release: {why}."), receipt=receipt)
        found = answer(self._lm, asked, self._read(hits, context), receipt.guarantee, NOTHING_KEPT)
        text = self._guard.rehydrate(found.text, context, role=role)
        label = found.guarantee if text == found.text else Guarantee.NONE
        return replace(found, text=text, guarantee=label, spent=receipt.epsilon, receipt=receipt)

    def _read(self, hits: Sequence[Hit], context: Context) -> list[Passage]:
        return [
            Passage(number, self._passages[hit.row].name, "", text, hit.score, hit.cosine)
            for number, (hit, text) in enumerate(zip(hits, context.texts, strict=True), start=1)
        ]


def _slot_words(texts: Sequence[str]) -> frozenset[str]:
    """Return the words of slots: they stand in every template, so they make no hit."""
    return frozenset(word for text in texts for slot in re.findall(r"\[[A-Z_]+_\d+\]", text) for word in words(slot))
