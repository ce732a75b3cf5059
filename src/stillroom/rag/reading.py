"""How passages are read for an answer: which of them, in what words, and what the answer stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.index.bm25 import words
from stillroom.index.hybrid import Hit
from stillroom.lm.base import LanguageModel, Prompt
from stillroom.text import normalise

NOTHING = "The release has nothing on this."
NOTHING_KEPT = "The documents have nothing on this."

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
    """A text that was read for an answer, under its number in the prompt (from 1).

    It is a text of a release, or a guarded passage of a document, which has no topic.
    """

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
        guarantee: of all that was read; an answer is computed from it alone.
        spent: ε newly spent on the subjects of guarded documents; 0 for a release.
        notes: what to know about this answer.
        receipt: the guard's, where documents were read.
    """

    text: str
    citations: tuple[str, ...]
    passages: tuple[Passage, ...]
    guarantee: Guarantee
    spent: float = 0.0
    notes: tuple[str, ...] = ()
    receipt: Any = None


def answer(lm: LanguageModel, asked: str, passages: Sequence[Passage], guarantee: Guarantee, nothing: str) -> Answer:
    """Return the model's answer to a question from these passages, or `nothing` where they do not speak of it."""
    if not passages:
        return Answer(nothing, (), (), guarantee)
    read = tuple(passages)
    if absent := missing(asked, read):
        # Asked about a name that no passage holds, a small model would answer about the nearest one instead.
        whose = "the release" if nothing is NOTHING else "the documents"
        return Answer(
            nothing, (), read, guarantee, notes=(f"No text of {whose} holds {', '.join(map(repr, absent))}.",)
        )
    line = first_line(lm.generate([prompt_of(asked, read)], _ANSWER_TOKENS, stop=("Question:",))[0])
    if not line:
        ids = tuple(passage.id for passage in read)
        return Answer("The model gave no answer; read the passages.", ids, read, guarantee)
    return Answer(line, cite(line, read), read, guarantee)


def question_of(text: str) -> str:
    """Return a question on one line. Raises BadOption for an empty one."""
    asked = " ".join(normalise(text).split())
    if not asked:
        raise BadOption("the question", "empty", "a sentence such as 'Which treatment helps against migraine?'")
    return asked


def cite(answer: str, passages: Sequence[Passage]) -> tuple[str, ...]:
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


def missing(question: str, passages: Sequence[Passage]) -> list[str]:
    """Return the names asked about, words that public text hardly knows, when no passage holds any of them."""
    from wordfreq import zipf_frequency

    read = frozenset(word for passage in passages for word in words(passage.text))
    names = [word for word in dict.fromkeys(words(question)) if zipf_frequency(word, "en") < 1.0]
    return [] if read.intersection(names) else names


def near(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that come near the best one: a small model mixes up what it reads, and answers about another.

    Where words and meaning agree on the best hit, the others must come near it in both.
    """
    if not hits:
        return []
    cosine = _RELATIVE_COSINE * max(hit.cosine for hit in hits)
    agreed = hits[0].word_rank == 1 and hits[0].meaning_rank == 1
    bm25 = _RELATIVE_BM25 * hits[0].bm25 if agreed else 0.0
    return [hit for hit in hits if hit.cosine >= cosine and hit.bm25 >= bm25]


def prompt_of(question: str, passages: Sequence[Passage]) -> Prompt:
    body = "\n".join(f"[{passage.number}] {_on_one_line(passage.text)}" for passage in passages)
    return Prompt(before=_BEFORE, body=body, after=f"\nQuestion: {question}\nAnswer:", public=True)


def _on_one_line(text: str) -> str:
    line = "; ".join(part.strip() for part in text.splitlines() if part.strip())
    return " ".join(line.split(" ")[:_PASSAGE_WORDS]).rstrip(".") + "."


def first_line(reply: str) -> str:
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[0].removeprefix("Answer:").strip() if lines else ""
