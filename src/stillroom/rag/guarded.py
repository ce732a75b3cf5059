"""Answers from documents behind a guard: found by their templates, read as far as the caller may, cited by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from stillroom.embed.base import Embedder
from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee, weakest
from stillroom.index.bm25 import words
from stillroom.index.hybrid import LEAST_COSINE, Hit, HybridIndex
from stillroom.lm.base import LanguageModel
from stillroom.rag.reading import NOTHING_KEPT, Answer, Passage, answer, near, question_of

_SLOT = re.compile(r"\[([A-Z_]+)_\d+\]")


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
    def kept(self, role: str | None) -> bool: ...
    def passages(self, role: str | None) -> Sequence[Any]: ...
    def sanitise(
        self, query: str, passages: Sequence[Any], *, caller: str, role: str | None, metadata: bool
    ) -> Any: ...
    def rehydrate(self, text: str, context: Any, *, role: str | None) -> str: ...


class Asker(Protocol):
    """Answers questions, as `Rag` does."""

    def ask(self, question: str) -> Answer: ...


class GuardedRag:
    """Asks documents behind a guard; made by `Rag.over_documents`.

    Search, ranks and scores follow from the templates alone, and from what the policy leaves raw for the role: whether
    a name that is asked for stands in some document changes nothing.
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
        self._least_cosine = least_cosine
        self._searched: dict[tuple[str | None, bool], tuple[Sequence[Shown], HybridIndex]] = {}
        self._search(None)

    def ask(self, question: str, *, caller: str = "local", role: str | None = None) -> Answer:
        """Return an answer for this caller, with the guard's receipt.

        Values that the role may read are put back into the answer, not into the passages. Raises BadOption for an empty
        question, UnknownName for a role that the policy does not have.
        """
        asked = question_of(question)
        passages, index = self._search(role)
        hits = near(index.search(asked, self._top_k))
        found = [passages[hit.row] for hit in hits]
        context = self._guard.sanitise(asked, found, caller=caller, role=role, metadata=False)  # texts alone are read
        receipt = context.receipt
        if self._fallback is not None and (receipt.refused or not receipt.ledger):
            why = "an account is empty" if receipt.refused else "the books cannot be kept"
            other = self._fallback.ask(asked)
            notes = (*other.notes, f"Answered from the release: {why}.")
            # That the release answers follows from whose notes were found, and from their accounts.
            label = weakest((other.guarantee, receipt.guarantee))
            return replace(other, guarantee=label, spent=receipt.epsilon, notes=notes, receipt=receipt)
        made = answer(self._lm, asked, _read(found, hits, context), receipt.guarantee, NOTHING_KEPT)
        text = self._guard.rehydrate(made.text, context, role=role)
        if text != made.text:
            gone = _SLOT.findall(made.text)
            for slot in _SLOT.findall(text):
                gone.remove(slot)
            receipt = receipt.with_values(category.lower() for category in gone)
        label = made.guarantee if text == made.text else Guarantee.NONE
        return replace(made, text=text, guarantee=label, spent=receipt.epsilon, receipt=receipt)

    def _search(self, role: str | None) -> tuple[Sequence[Shown], HybridIndex]:
        """Return what a role may search: one index for each, as what they may find by differs; also while the books are
        away, when nobody may find by what is raw."""
        key = role, self._guard.kept(role)
        if key not in self._searched:
            passages: Sequence[Shown] = self._guard.passages(role)
            texts = [passage.text for passage in passages]
            index = HybridIndex(texts, self._guard.embedder, least_cosine=self._least_cosine, common=_slot_words(texts))
            self._searched[key] = passages, index
        return self._searched[key]


def _read(found: Sequence[Shown], hits: Sequence[Hit], context: Context) -> list[Passage]:
    return [
        Passage(number, kept.name, "", text, hit.score, hit.cosine)
        for number, (kept, hit, text) in enumerate(zip(found, hits, context.texts, strict=True), start=1)
    ]


def _slot_words(texts: Sequence[str]) -> frozenset[str]:
    """Return the words of slots: they stand in every template, so they make no hit."""
    return frozenset(word for text in texts for slot in re.findall(r"\[[A-Z_]+_\d+\]", text) for word in words(slot))
