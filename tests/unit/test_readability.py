"""Readability: likelihood inside the range of the model's own texts."""

import math

import numpy as np
import pytest

from stillroom.errors import BadOption, ModelUnfit
from stillroom.evals.readability import (
    NEUTRAL,
    mean_log_likelihood,
    readable,
    reference_prompts,
    varied,
)
from stillroom.lm.base import LanguageModel, Prompt, Readings, Session
from stillroom.testing import clinic, patterns

WORDS = ["the", "cat", "sat", "qux"]


class Bigrams(Session):
    """After "the" comes mostly "cat", after "cat" mostly "sat", and so on round; "qux" is rare."""

    def __init__(self, rows):
        self.rows, self.last = rows, 2

    def scores(self, vocabulary=None):
        row = np.full(len(WORDS), 1.0, dtype=np.float32)
        row[(self.last + 1) % 3], row[3] = 3.0, -4.0
        return np.tile(row + 100.0, (self.rows, 1))

    def push(self, tokens):
        [self.last] = tokens


class Heard(Readings):
    def __init__(self, prompts):
        self.prompts = list(prompts)

    def __len__(self):
        return len(self.prompts)


class Parrot(LanguageModel):
    name, capabilities = "parrot", frozenset({"scores", "generate"})
    opened: list

    def __init__(self, replies=("the cat sat the cat sat", "the the cat sat cat")):
        self.replies, self.opened = replies, []

    def encode(self, text):
        return [WORDS.index(word) for word in text.split(" ") if text]

    def read(self, prompts):
        return Heard(prompts)

    def open(self, readings, rows=None, *, public=False):
        self.opened.append(readings.prompts)
        return Bigrams(len(readings))

    def generate(self, prompts, max_tokens, stop=()):
        return [self.replies[at % len(self.replies)] for at in range(len(prompts))]


def log_softmax(word, likely):
    total = math.exp(3) + 2 * math.exp(1) + math.exp(-4)
    return {"likely": 3, "other": 1, "rare": -4}["likely" if likely else word] - math.log(total)


def test_the_mean_is_over_the_log_likelihood_of_each_token():
    got = mean_log_likelihood(" the cat the \n", Parrot())
    assert got == pytest.approx((2 * log_softmax("", True) + log_softmax("other", False)) / 3, abs=1e-5)


def test_only_the_first_tokens_count():
    lm = Parrot()
    assert mean_log_likelihood("the cat qux", lm, max_tokens=2) == pytest.approx(log_softmax("", True), abs=1e-5)


def test_every_text_is_scored_after_the_same_neutral_prompt():
    lm = Parrot()
    readable(["the cat"], lm, references=[Prompt("a"), Prompt("b")])
    assert lm.opened == [[NEUTRAL]] * 3


def test_texts_within_the_range_are_readable_and_gibberish_and_echo_are_not():
    lm = Parrot(("the cat sat the the", "the the cat sat cat"))
    got = readable(["the cat the cat sat", "qux qux qux", "the cat sat the cat sat", ""], lm)
    assert got.low <= got.means[0] <= got.high
    assert got.means[1] < got.low and got.means[2] > got.high and got.means[3] == -math.inf
    assert got.share == 0.25 and len(got.references) == 20


def test_an_echo_within_the_range_is_not_varied():
    lm = Parrot(("the cat sat the cat sat", "the the the the"))
    got = readable(["the cat the cat the cat", "the cat sat"], lm)
    assert got.low < got.means[0] < got.high
    assert (got.share, got.share_varied) == (1.0, 0.5)
    assert varied("A b c. A b c.") and not varied("A b. A b. A") and not varied("...")


def test_no_texts_have_share_zero():
    assert readable([], Parrot()).share == readable([], Parrot()).share_varied == 0


def test_a_model_without_scores_is_refused():
    lm = Parrot()
    lm.capabilities = frozenset({"generate"})
    with pytest.raises(ModelUnfit):
        readable(["the"], lm)


def test_a_range_needs_two_references():
    with pytest.raises(BadOption, match="is 0"):
        readable(["the"], Parrot(("",)))
    with pytest.raises(BadOption, match="count is 21"):
        reference_prompts(21)


def test_reference_prompts_are_different_and_name_no_topic_that_is_measured():
    prompts = [prompt.before for prompt in reference_prompts()]
    assert len(set(prompts)) == 20
    facts = [*clinic.FACTS.values(), *patterns.FACTS.values(), *patterns.TUNING.values()]
    measured = [name.lower() for fact in facts for name in (fact.disease, fact.treatment.split()[0])]
    assert not [name for name in measured if any(name in prompt.lower() for prompt in prompts)]
