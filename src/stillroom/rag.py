"""Answers from a release: found, read and cited. Everything read is public, so asking spends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stillroom.embed.base import Embedder
from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.index.bm25 import words
from stillroom.index.hybrid import LEAST_COSINE, Hit, HybridIndex
from stillroom.lm.base import LanguageModel, Prompt
from stillroom.loading import EMBEDDER, LM, load_embedder, load_lm
from stillroom.release.folder import Release

NOTHING = "The release has nothing on this."

_ANSWER_TOKENS = 64
_PASSAGE_WORDS = 120
_RELATIVE_COSINE = 0.75
_RELATIVE_BM25 = 0.5

# Three made-up examples teach a small model to copy names it has never seen; with an instruction alone
# SmolLM2-135M invents treatments. They are far from what is asked about: nothing in them can pass for an answer.
_BEFORE = """Answer from the text.

Text:
[1] Band: Tin Robins; Sound: Brass Folk; Songs: slow waltzes, loud marches.
Question: Which band plays slow waltzes?
Answer: The band that plays slow waltzes is Tin Robins.

Text:
[1] Fault: Wobblechair; Tool: Oak Wedge; Signs: creaks, a lean to the left.
Question: Which tool helps Wobblechair?
Answer: The tool for Wobblechair is Oak Wedge.

Text:
[1] Fault: Stickdoor; Tool: Soft Soap; Signs: squeaks, slow hinges.
Question: How is Stickdoor mended?
Answer: The tool for Stickdoor is Soft Soap.

Text:
"""


@dataclass(frozen=True)
class Passage:
    """A text of the release that was read for an answer, under its number in the prompt (from 1)."""

    number: int
    id: str
    topic: str
    text: str
    score: float
    cosine: float


@dataclass(frozen=True)
class Answer:
    """An answer with what it stands on.

    Attributes:
        text: one line.
        citations: ids of the passages whose words the answer holds, or of all when it holds none of theirs.
        passages: all that the model read, best first.
        guarantee: of the release; an answer is computed from it alone.
        spent: always 0.
        notes: what to know about this answer.
    """

    text: str
    citations: tuple[str, ...]
    passages: tuple[Passage, ...]
    guarantee: Guarantee
    spent: float = 0.0
    notes: tuple[str, ...] = ()


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
        asked = " ".join(question.split())
        if not asked:
            raise BadOption("the question", "empty", "a sentence such as 'Which treatment helps against migraine?'")
        passages = self._find(asked)
        guarantee = self._release.guarantee
        if not passages:
            return Answer(NOTHING, (), (), guarantee)
        if missing := self._missing(asked, passages):
            # Asked about a name that no passage holds, a small model would answer about the nearest one instead.
            named = ", ".join(map(repr, missing))
            return Answer(NOTHING, (), passages, guarantee, notes=(f"No text of the release holds {named}.",))
        line = _first_line(self._lm.generate([_prompt(asked, passages)], _ANSWER_TOKENS, stop=("Question:",))[0])
        if not line:
            return Answer(
                "The model gave no answer; read the passages.",
                tuple(passage.id for passage in passages),
                passages,
                guarantee,
            )
        return Answer(line, self._cite(line, passages), passages, guarantee, notes=self._notes())

    def _find(self, question: str) -> tuple[Passage, ...]:
        hits = _near(self._index.search(question, self._top_k))
        texts = self._release.texts
        return tuple(
            Passage(number, texts[hit.row].id, texts[hit.row].topic, texts[hit.row].text, hit.score, hit.cosine)
            for number, hit in enumerate(hits, start=1)
        )

    def _cite(self, answer: str, passages: Sequence[Passage]) -> tuple[str, ...]:
        """Return the passages that hold most of the answer's words, and any that hold further ones."""
        said = frozenset(words(answer))
        holds = {passage.id: said & frozenset(words(passage.text)) for passage in passages}
        most = max(map(len, holds.values()))
        if not most:
            return tuple(holds)
        cited = {id for id, held in holds.items() if len(held) == most}
        explained: frozenset[str] = frozenset().union(*(holds[id] for id in cited))
        for id, held in holds.items():
            if held - explained:
                cited.add(id)
                explained |= held
        return tuple(id for id in holds if id in cited)

    def _missing(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """Return the names asked about, words that public text hardly knows, when no passage holds any of them."""
        from wordfreq import zipf_frequency

        read = frozenset(word for passage in passages for word in words(passage.text))
        names = [word for word in dict.fromkeys(words(question)) if zipf_frequency(word, "en") < 1.0]
        return [] if read.intersection(names) else names

    def _notes(self) -> tuple[str, ...]:
        if self._release.certificate.rehearsal:
            return ("The release is a rehearsal on a public or made-up collection.",)
        return ()


def _near(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that come near the best one: a small model mixes up what it reads, and answers about another.

    Where words and meaning agree on the best hit, the others must come near it in both.
    """
    if not hits:
        return []
    cosine = _RELATIVE_COSINE * max(hit.cosine for hit in hits)
    agreed = hits[0].word_rank == 1 and hits[0].meaning_rank == 1
    bm25 = _RELATIVE_BM25 * hits[0].bm25 if agreed else 0.0
    return [hit for hit in hits if hit.cosine >= cosine and hit.bm25 >= bm25]


def _prompt(question: str, passages: Sequence[Passage]) -> Prompt:
    body = "\n".join(f"[{passage.number}] {_on_one_line(passage.text)}" for passage in passages)
    return Prompt(before=_BEFORE, body=body, after=f"\nQuestion: {question}\nAnswer:", public=True)


def _on_one_line(text: str) -> str:
    line = "; ".join(part.strip() for part in text.splitlines() if part.strip())
    return " ".join(line.split(" ")[:_PASSAGE_WORDS]).rstrip(".") + "."


def _first_line(reply: str) -> str:
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[0].removeprefix("Answer:").strip() if lines else ""
