"""Whether texts read like the public model's own: mean log-likelihood inside the range of what it writes freely.

A text below the range is gibberish to the model, one above it an echo. Likelihood alone is not enough: after a strange
start, "A: A: A: …" is so easy to go on with that its mean falls inside the range (SmolLM2-135M: −3.5, where its own
texts had −5.7 to −1.0). So a second share also asks that half of the words be different ones.

Reference texts are the model's continuations of public prompts about invented topics, because released texts too are
about names the model has never met. Reference and judged texts are scored alike: after one neutral prompt, at most
`max_tokens` tokens of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stillroom.errors import BadOption
from stillroom.evals.facts import words
from stillroom.lm.base import LanguageModel, Prompt

NEUTRAL = Prompt("Write a short note.", public=True)
MAX_TOKENS = 60
FORMS = (
    "Write one short note of a doctor about a patient who has {0} and is given {1}.",
    "Write two sentences of a clinic note that names the diagnosis {0}, the treatment {1} and a few symptoms.",
    "Fill in, one line each, for a made-up patient with {0} who is treated with {1}: Diagnosis, Treatment, Symptoms.",
    "Write a short letter of a nurse who explains {0} and its treatment {1} to a patient.",
)
# Invented for this file alone. They stand in no made-up collection of stillroom, and must not.
TOPICS = (
    ("Abdorinthia", "Vesquil Salve"),
    ("Cremolaxis", "Otrevin Pearls"),
    ("Drevonitis", "Salmurex Tincture"),
    ("Elquathosis", "Bintorel Sachets"),
    ("Gramvelia", "Pascurin Balm"),
)


@dataclass(frozen=True)
class Readability:
    """How many texts read like the model's own.

    Attributes:
        share: of the texts that lie within the range, in [0, 1]; 0 for no texts.
        share_varied: of the texts that lie within it and do not repeat themselves, see `varied`.
        low, high: the range of the references, mean natural log-likelihood a token.
        means: of each text; minus infinity for one without tokens.
        references: of each reference text.
    """

    share: float
    share_varied: float
    low: float
    high: float
    means: tuple[float, ...]
    references: tuple[float, ...]


def reference_prompts(count: int = 20) -> list[Prompt]:
    """Return the public prompts that the model answers freely, at most 20, each another pair of form and topic."""
    pairs = [(FORMS[at % len(FORMS)], TOPICS[at % len(TOPICS)]) for at in range(len(FORMS) * len(TOPICS))]
    if not 2 <= count <= len(pairs):
        raise BadOption("count", count, f"between 2 and {len(pairs)}")
    return [Prompt(form.format(*topic), public=True) for form, topic in pairs[:count]]


def mean_log_likelihood(text: str, lm: LanguageModel, prompt: Prompt = NEUTRAL, max_tokens: int = MAX_TOKENS) -> float:
    """Return the mean natural log-likelihood a token of a text as a reply to a prompt; −inf without tokens.

    Args:
        text: white space around it is ignored.
        lm: needs the capability "scores".
        max_tokens: only so many tokens from the start count; one step of the model for each.
    """
    return _means([text], lm, prompt, max_tokens)[0]


def varied(text: str) -> bool:
    """Say whether at least half of the words of a text are different ones; a text without words is not varied."""
    spoken = words(text)
    return bool(spoken) and 2 * len(set(spoken)) >= len(spoken)


def readable(
    texts: Sequence[str],
    lm: LanguageModel,
    references: Sequence[Prompt] | None = None,
    prompt: Prompt = NEUTRAL,
    max_tokens: int = MAX_TOKENS,
) -> Readability:
    """Return the share of texts whose mean log-likelihood lies within the range of the model's own free texts.

    Args:
        texts: released texts.
        lm: the public model; needs "scores" and "generate".
        references: public prompts for its free texts, two at least (default `reference_prompts()`).
        prompt: after which every text is scored.
        max_tokens: of each text that is scored, and of each reference.

    Raises:
        ModelUnfit: the model lacks a capability.
        BadOption: fewer than two reference texts with tokens.
    """
    lm.need("scores")
    lm.need("generate")
    asked = list(references) if references is not None else reference_prompts()
    own = [mean for mean in _means(lm.generate(asked, max_tokens), lm, prompt, max_tokens) if mean > -math.inf]
    if len(own) < 2:
        raise BadOption("the number of reference texts", len(own), "at least 2: give prompts that the model answers")
    low, high = min(own), max(own)
    means = tuple(_means(texts, lm, prompt, max_tokens))
    within = [low <= mean <= high for mean in means]
    both = [fits and varied(text) for fits, text in zip(within, texts, strict=True)]
    of = len(means) or 1
    return Readability(sum(within) / of, sum(both) / of, low, high, means, tuple(own))


def _means(texts: Sequence[str], lm: LanguageModel, prompt: Prompt, max_tokens: int) -> list[float]:
    """Return the mean of each text; all of them take their steps together."""
    spoken = [lm.encode(text.strip())[:max_tokens] for text in texts]
    pool = lm.pool(lm.read([prompt]), public=True, size=len(texts))
    sessions = [pool.open() for _ in texts]
    totals = [0.0] * len(texts)
    for at in range(max(map(len, spoken), default=0)):
        for i, (tokens, session) in enumerate(zip(spoken, sessions, strict=True)):
            if at < len(tokens):
                scores = session.scores()[0].astype(np.float64)
                highest = float(scores.max())
                totals[i] += float(scores[tokens[at]]) - highest - math.log(float(np.exp(scores - highest).sum()))
                session.push(tokens[at : at + 1])
        pool.step()
    return [total / len(tokens) if tokens else -math.inf for total, tokens in zip(totals, spoken, strict=True)]
