"""A toy language model with real distributions, small enough to enumerate everything it could say."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadOption
from stillroom.lm.base import LanguageModel, Prompt, Readings, Scores, Session

END = 0
"""The token that ends a text; it also stands for the place before the first token."""

WORDS = ("fever", "rash", "cough", "pain", "Zonkitis", "Snurflepox", "Blergon", "Fixit", "Rest", "Tea", "and", "the",
         "helps", "with", "patient", "of", "Unit")  # fmt: skip
LABELS = ("Diagnosis:", "Treatment:", "Symptoms:")


class ToyLM(LanguageModel):
    """A language model whose next token follows from the document of the prompt and the tokens said so far.

    The distribution over the next token t after the token p is proportional to
    `follows` × (how often t follows p in the document, its end included) + `unsaid` × [t is a word of the document
    that was not said yet] + `smoothing` × (1 + 1/(1 + t)). The scores are its logarithms: finite, and another
    document moves them by real amounts. `before` and `after` of a prompt are not looked at.

    Tokens are texts that are simply put together: the end (no text), a newline, a space, the labels, each word with
    a space before it, single letters. The default has 49.

    Args:
        words: become tokens with a space before each.
        labels: become tokens as they are.
        letters: become one token each, so that words without a token can be spelled.
        name: what a certificate would call it.
        answer: scripted replies for `generate`: text, or None to let the model speak.
    """

    def __init__(
        self,
        words: Sequence[str] = WORDS,
        labels: Sequence[str] = LABELS,
        letters: str = string.ascii_lowercase,
        *,
        name: str = "toy",
        follows: float = 1.0,
        unsaid: float = 0.5,
        smoothing: float = 0.05,
        answer: Callable[[Prompt], str | None] | None = None,
    ) -> None:
        if smoothing <= 0:
            raise BadOption("smoothing", smoothing, "above 0, or some tokens could never be said")
        texts = ("", "\n", " ", *labels, *(f" {word}" for word in words), *letters)
        if len(set(texts)) != len(texts):
            raise BadOption("the vocabulary", f"{len(texts)} tokens", "all different")
        self.texts = texts
        self.name = name
        self.capabilities = frozenset({"scores", "generate"})
        self.vocabulary_size = len(texts)
        self.stop_tokens = frozenset({END})
        self._ids = {text: token for token, text in enumerate(texts) if text}
        self._longest = max(map(len, texts))
        self._follows, self._unsaid = follows, unsaid
        self._prior = smoothing * (1 + 1 / (1 + np.arange(len(texts))))
        self._is_word = np.array([len(text) > 1 and text[0] == " " for text in texts])
        self._answer = answer

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, the longest match first; characters that no token has are left out."""
        tokens, at = [], 0
        while at < len(text):
            for length in range(min(self._longest, len(text) - at), 0, -1):
                token = self._ids.get(text[at : at + length])
                if token is not None:
                    tokens.append(token)
                    at += length
                    break
            else:
                at += 1
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.texts[token] for token in tokens)

    def read(self, prompts: Sequence[Prompt], body_tokens: int = 192) -> ToyReadings:
        return ToyReadings(tuple(prompts), body_tokens)

    def open(
        self, readings: Readings | Sequence[Prompt], rows: Sequence[int] | None = None, *, public: bool = False
    ) -> ToySession:
        if not isinstance(readings, ToyReadings):
            if isinstance(readings, Readings):
                raise TypeError("these readings are of another model")
            readings = self.read(readings)
        chosen = range(len(readings)) if rows is None else rows
        return ToySession(self, [readings.prompts[row] for row in chosen], readings.body_tokens)

    def rows_independent(self, body_tokens: int = 128) -> bool:
        return True

    def generate(self, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        return [self._continue(prompt, max_tokens, stop) for prompt in prompts]

    def _continue(self, prompt: Prompt, max_tokens: int, stop: Sequence[str]) -> str:
        scripted = self._answer(prompt) if self._answer is not None else None
        if scripted is not None:
            return _cut(scripted, stop)
        session = ToySession(self, [prompt])
        said: list[int] = []
        for _ in range(max_tokens):
            token = int(np.argmax(session.scores()[0]))
            if token in self.stop_tokens:
                break
            said.append(token)
            session.push([token])
            if any(mark in self.decode(said) for mark in stop):
                break
        return _cut(self.decode(said), stop)

    # What a row scores; variants override these.
    def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
        """Return the scores of one row, float32 of shape (vocabulary,)."""
        last = said[-1] if said else END
        unsaid = document.words.copy()
        unsaid[list(said)] = False
        weights = self._prior + self._follows * document.bigrams[last] + self._unsaid * unsaid
        scores: Scores = np.log(weights / weights.sum()).astype(np.float32)
        return scores

    def all_scores(self, rows: Sequence[Scores]) -> Scores:
        """Return the scores of all rows together, float32 of shape (rows, vocabulary)."""
        return np.stack(rows) if rows else np.zeros((0, self.vocabulary_size), np.float32)

    def document(self, prompt: Prompt, body_tokens: int | None = None) -> ToyDocument:
        """Return what the model keeps of the body of a prompt, cut after so many tokens."""
        return ToyDocument(self.encode(prompt.body)[:body_tokens], self._is_word)


class ToyDocument:
    """The pairs of neighbouring tokens of a document, its two ends included, and its words."""

    def __init__(self, tokens: Sequence[int], is_word: npt.NDArray[np.bool_]) -> None:
        size = len(is_word)
        self.bigrams = np.zeros((size, size))
        line = [END, *tokens, END]
        if tokens:
            np.add.at(self.bigrams, (line[:-1], line[1:]), 1.0)
        self.words = np.zeros(size, bool)
        self.words[list(tokens)] = True
        self.words &= is_word


class ToyReadings(Readings):
    def __init__(self, prompts: tuple[Prompt, ...], body_tokens: int) -> None:
        self.prompts, self.body_tokens = prompts, body_tokens

    def __len__(self) -> int:
        return len(self.prompts)


class ToySession(Session):
    def __init__(self, lm: ToyLM, prompts: Sequence[Prompt], body_tokens: int | None = None) -> None:
        self.rows = len(prompts)
        self._lm = lm
        self._prompts = list(prompts)
        self._documents = [lm.document(prompt, body_tokens) for prompt in prompts]
        self._said = [lm.encode(prompt.reply) for prompt in prompts]

    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        each = zip(self._prompts, self._documents, self._said, strict=True)
        scores = self._lm.all_scores([self._lm.row_scores(*row) for row in each])
        return scores if vocabulary is None else scores[:, list(vocabulary)]

    def push(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            if not 0 <= token < self._lm.vocabulary_size:
                raise BadOption("token", token, f"from 0 to {self._lm.vocabulary_size - 1}")
        for said in self._said:
            said.extend(tokens)


class ConstantLM(ToyLM):
    """A toy model that finds every token equally likely whatever it reads."""

    def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
        return np.full(self.vocabulary_size, -np.log(self.vocabulary_size), np.float32)


class NaNLM(ToyLM):
    """A toy model that breaks on some documents: where the body holds `marker`, every score is NaN."""

    marker = "poison"

    def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
        scores = super().row_scores(prompt, document, said)
        return np.full_like(scores, np.nan) if self.marker in prompt.body else scores


class CrowdedLM(ToyLM):
    """A toy model as unfit as bf16 with padding: each row's scores lean a little towards the mean of all rows."""

    lean = 0.05

    def all_scores(self, rows: Sequence[Scores]) -> Scores:
        scores = super().all_scores(rows)
        mean = scores.mean(axis=0, keepdims=True) if len(rows) else scores
        return ((1 - self.lean) * scores + self.lean * mean).astype(np.float32)

    def rows_independent(self, body_tokens: int = 128) -> bool:
        return False


def _cut(text: str, stop: Sequence[str]) -> str:
    """Return the text up to the first of the stop strings."""
    ends = [at for mark in stop if (at := text.find(mark)) >= 0]
    return text[: min(ends, default=len(text))]
