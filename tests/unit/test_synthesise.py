"""One text, draw by draw: in which order things are asked, committed and pushed, and how many draws there are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stillroom.distil.prompts import document_prompt, public_prompts
from stillroom.distil.synthesise import Stops, Synthesis
from stillroom.distil.vocabulary import Spelling
from stillroom.lexicon import word_list
from stillroom.lm.base import Prompt, Scores, Session
from stillroom.release.costs import vote_scale
from stillroom.release.schema import Form, PlanRecord, Slot
from stillroom.testing.toylm import ToyDocument, ToyLM
from stillroom.text import words as words_of
from tests.privacy.mechanics import FORM, LISTS, Book, plan

NOTES = ("Diagnosis: Zonkitis Treatment: Blergon Rest", "Zonkitis Blergon fever", "Zonkitis with Tea")
WORDS = ["zonkitis", "blergon"]
PLANS = {"a form": plan(), "free text": plan({"form": None, "draws": 4}), "no completion": plan({"completion": False})}


class Heard(Session):
    """A session that notes what is asked of it and told to it."""

    def __init__(self, name: str, inner: Session, log: list[tuple[str, str]]) -> None:
        self.name, self.inner, self.log, self.rows = name, inner, log, inner.rows

    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        self.log.append((self.name, "asked"))
        return self.inner.scores(vocabulary)

    def push(self, tokens: Sequence[int]) -> None:
        self.log.append((self.name, f"told {[*tokens]}"))
        self.inner.push(tokens)


class Diary(Book):
    """A journal that notes in the same log when a key is asked for and when its value is committed."""

    def __init__(self, log: list[tuple[str, str]], committed: dict[str, str] | None = None) -> None:
        super().__init__(committed)
        self.log = log

    def draw(self, key: str, make: Callable[[], Any]) -> Any:
        fresh = key not in self.committed
        value = super().draw(key, make)
        if fresh:
            self.log.append(("journal", key))
        return value


class Choosing:
    """A noise that returns what a rule says of the scores, and notes that it was asked."""

    def __init__(self, log: list[tuple[str, str]], rule: Callable[[NDArray[np.int64]], int]) -> None:
        self.log, self.rule, self.told = log, rule, list[NDArray[np.int64]]()
        self.parameters: list[tuple[float, float, bool]] = []

    def noisy_max(self, scores: NDArray[np.int64], *, range: float, scale: float, monotonic: bool) -> int:
        self.log.append(("noise", "asked"))
        self.told.append(scores.copy())
        self.parameters.append((range, scale, monotonic))
        return self.rule(scores)

    def gaussian(self, values: Any, *, sensitivity: float, sigma: float) -> Any:
        raise AssertionError("the text step draws no Gaussian")

    def histogram(self, *values: Any, **claim: Any) -> Any:
        raise AssertionError("the text step draws no histogram")


class Text:
    """A text that is drawn, with everything that happened."""

    def __init__(
        self,
        record: PlanRecord,
        rule: Callable[[NDArray[np.int64]], int] = lambda s: int(np.argmax(s)),
        *,
        lm: ToyLM | None = None,
        notes: Sequence[str] = NOTES,
        committed: dict[str, str] | None = None,
        public: bool = True,
        words: Sequence[str] = WORDS,
    ) -> None:
        self.lm = lm or ToyLM()
        self.log: list[tuple[str, str]] = []
        self.noise, self.book = Choosing(self.log, rule), Diary(self.log, committed)
        self.spelling = Spelling(self.lm, words, word_list())
        self.synthesis = Synthesis(self.lm, record, self.noise, self.book)
        private = self.lm.open(self.lm.read([document_prompt(record, note) for note in notes]))
        row = self.lm.open(self.lm.read(public_prompts(record, words)), public=True)
        self.progress: list[int] = []
        self.values = self.synthesis.values(
            "text/zonkitis/0", Heard("private", private, self.log), Heard("public", row, self.log) if public else None,
            self.spelling, self.progress.append,
        )  # fmt: skip

    @property
    def said(self) -> list[str]:
        return [self.lm.decode(value) for value in self.values]

    def draw_keys(self) -> list[str]:
        return [key for key in self.book.committed if not key.endswith("/offered")]

    def offered(self) -> list[dict[str, list[int]]]:
        return [json.loads(value) for key, value in self.book.committed.items() if key.endswith("/offered")]


def last(scores: NDArray[np.int64]) -> int:
    return len(scores) - 1


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("rule", [lambda s: int(np.argmax(s)), last, lambda s: 0, lambda s: len(s) // 2])
def test_no_text_takes_more_draws_than_are_charged(name: str, rule: Callable[[NDArray[np.int64]], int]) -> None:
    text = Text(PLANS[name], rule)
    assert len(text.noise.told) <= PLANS[name].text.draws
    assert sum(text.progress) == PLANS[name].text.draws  # progress is the same, however early a text ends
    draws = [key for key in text.book.committed if not key.endswith("/offered")]
    assert len(draws) == len(text.noise.told)


@pytest.mark.parametrize("name", PLANS)
def test_candidates_and_prior_are_committed_before_private_scores_are_asked_for(name: str) -> None:
    """Between two draws: public scores, the offer committed, private scores, noise, the draw committed, both told."""
    text = Text(PLANS[name])
    draws = [key for who, key in text.log if who == "journal" and not key.endswith("/offered")]
    assert len(draws) >= 3
    for key in draws:
        end = text.log.index(("journal", key))
        offer = text.log.index(("journal", f"{key}/offered"))
        between = text.log[offer + 1 : end]
        assert between[-1] == ("noise", "asked")
        assert set(between[:-1]) == {("private", "asked")}
        before = text.log[:offer]
        since = max((i for i, (who, _) in enumerate(before) if who == "journal"), default=-1)
        assert ("private", "asked") not in before[since + 1 :]
        flat = set(json.loads(text.book.committed[f"{key}/offered"])["prior"]) == {0}  # where documents alone say
        assert flat or ("public", "asked") in before[since + 1 :]


def test_a_draw_is_committed_before_anybody_is_told_and_both_sessions_hear_the_same() -> None:
    text = Text(PLANS["a form"])
    told = {name: [what for who, what in text.log if who == name and what != "asked"] for name in ("private", "public")}
    assert told["private"] == told["public"]
    heard = [token for line in told["private"] for token in json.loads(line.removeprefix("told "))]
    drawn = [json.loads(value) for key, value in text.book.committed.items() if not key.endswith("/offered")]
    assert set(drawn) - {text.synthesis.stops.token} <= set(heard)
    for i, (_, what) in enumerate(text.log):
        if what.startswith("told"):
            assert any(who_ == "journal" for who_, _ in text.log[:i])


def test_committed_draws_are_neither_drawn_again_nor_scored() -> None:
    first = Text(PLANS["a form"])
    again = Text(PLANS["a form"], last, committed=first.book.committed)
    assert again.values == first.values
    assert not again.noise.told and ("private", "asked") not in again.log and ("public", "asked") not in again.log


def test_an_offer_that_is_committed_stays_even_if_the_public_row_changes() -> None:
    first = Text(PLANS["a form"])
    offers = {key: value for key, value in first.book.committed.items() if key.endswith("/0/offered")}
    other = Text(PLANS["a form"], lm=ToyLM(smoothing=3.0), committed=offers)
    for key, value in offers.items():
        assert other.book.committed[key] == value


def test_every_call_of_the_noise_claims_what_the_plan_charges() -> None:
    for record in PLANS.values():
        claim = (float(record.text.levels), vote_scale(record), True)
        assert set(Text(record).noise.parameters) == {claim}


def test_what_the_noise_is_told_is_the_prior_and_the_votes() -> None:
    text = Text(PLANS["a form"])
    for told, offer in zip(text.noise.told, text.offered(), strict=True):
        votes = told - np.array(offer["prior"])
        assert told.dtype == np.int64 and len(told) == len(offer["tokens"])
        assert votes.min() >= 0 and votes.max() <= PLANS["a form"].text.levels * len(NOTES)


def test_no_documents_still_draw_a_text_from_the_prior_alone() -> None:
    for record in (*PLANS.values(), plan({"form": None, "draws": 2, "candidates": "all", "floor": None})):
        text = Text(record, notes=(), public=record.text.candidates == "public")
        assert text.noise.told
        for told, offer in zip(text.noise.told, text.offered(), strict=False):
            assert told.tolist() == offer["prior"]


def test_no_value_ends_before_it_has_begun() -> None:
    for name in ("a form", "free text"):
        text = Text(PLANS[name], last)
        for key, value in text.book.committed.items():
            if key.endswith("/0/offered"):
                assert not set(json.loads(value)["tokens"]) & {*text.synthesis.stops.all}
        assert all(text.values)


def test_each_slot_begins_with_another_word() -> None:
    text = Text(PLANS["a form"])
    assert len({value[0] for value in text.values}) == len(FORM.slots)


def test_a_value_goes_on_or_ends_and_breaks_no_line() -> None:
    text = Text(PLANS["a form"], lambda s: 0)
    (newline,) = text.lm.encode("\n")
    for offer, key in zip(text.offered(), [k for k in text.book.committed if k.endswith("/offered")], strict=True):
        if not key.endswith("/0/offered"):
            assert text.synthesis.stops.token in offer["tokens"] or len(offer["tokens"]) <= 2  # inside a word
    assert all(newline not in value for value in text.values)


def test_a_slot_ends_at_a_line_break_and_a_free_text_does_not() -> None:
    lm = ToyLM()
    (newline,) = lm.encode("\n")
    assert Stops.of(lm, FORM).token == newline and set(Stops.of(lm, FORM).all) == {newline, *lm.stop_tokens}
    assert Stops.of(lm, None).all == tuple(sorted(lm.stop_tokens))


def test_the_stop_stands_for_all_stops_together() -> None:
    class Ends(ToyLM):
        """Finds nothing but the two ends likely: each at one half."""

        def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
            scores = np.full(self.vocabulary_size, np.log(0.3), np.float32)
            scores[[0, 1]] = np.log(0.2)
            return scores

    text = Text(PLANS["no completion"], lm=Ends())
    offer, told = text.offered()[1], text.noise.told[1]
    at = offer["tokens"].index(text.synthesis.stops.token)
    others = [t for t in range(len(told)) if t != at]
    votes = told - np.array(offer["prior"])
    assert votes[at] == pytest.approx(len(NOTES) * PLANS["a form"].text.levels)  # .2 + .2 > .3
    assert all(votes[t] == pytest.approx(len(NOTES) * 75, abs=3) for t in others)


def test_released_words_are_always_among_the_candidates() -> None:
    text = Text(plan({"top_k": 1}))
    first = text.spelling.first_tokens()
    assert first <= set(text.offered()[0]["tokens"])


def test_an_unambiguous_word_is_completed_free() -> None:
    class Spelt(ToyLM):
        def __init__(self) -> None:
            super().__init__(words=("Zonk", "Blerg", "fever", "Rest"))

    with_it, without = Text(PLANS["a form"], lm=Spelt()), Text(PLANS["no completion"], lm=Spelt())
    assert any(len(value) > slot.draws for value, slot in zip(with_it.values, FORM.slots, strict=True))
    assert all(len(value) <= slot.draws for value, slot in zip(without.values, FORM.slots, strict=True))
    assert any("onkitis" in said or "lergon" in said for said in with_it.said)


def test_a_name_is_made_of_released_words_alone_and_may_end_after_each() -> None:
    """Whatever is drawn: offered are words not spoken yet, what goes on with the one begun, and, after one, the end."""
    named = Form(name="toy", slots=(Slot(label="Diagnosis", draws=9, names=True),))
    record = plan({"form": named, "draws": named.draws})
    words = ("zonkitis", "blergon", "fever")

    def last(total: NDArray[np.int64]) -> int:
        return len(total) - 1

    for rule in (last, lambda total: 0, lambda total: int(np.argmax(total))):
        text = Text(record, rule, words=words)
        stop = text.synthesis.stops.token
        assert set(words_of(text.said[0])) <= set(words)
        said: list[int] = []
        for n, offer in enumerate(text.offered()):
            begun = {w.lower() for t in offer["tokens"] for w in text.lm.decode([*said, t]).split()[-1:]}
            assert all(any(word.startswith(each) for word in words) for each in begun)
            assert (stop in offer["tokens"]) <= text.spelling.complete(said)
            drawn = int(json.loads(text.book.committed[f"text/zonkitis/0/0/{n}"]))
            said += [drawn, *text.spelling.ending([*said, drawn], words_of(text.lm.decode(said)), closed=True)]


# -- lists of released words -----------------------------------------------------------------------------------------
LISTED = plan({"form": LISTS, "draws": LISTS.draws, "lift": 0.3})


LOWER = ("zonkitis", "blergon", "rash", "cough", "pain")


class Commas(ToyLM):
    """Has a token for a comma, and one for each word in both cases."""

    def __init__(self) -> None:
        both = [form for word in LOWER for form in (word, word.capitalize())]
        super().__init__(words=(*both, "Tea", "Rest", "with"), letters="itse,")


def list_offers(text: Text) -> list[tuple[str, set[str]]]:
    """Return what had been said and what was offered next, at each draw of the list."""
    found, said = [], ""
    for key in text.draw_keys():
        if key.startswith("text/zonkitis/0/2/"):
            offer = json.loads(text.book.committed[f"{key}/offered"])
            found.append((said, {text.lm.decode([t]) for t in offer["tokens"]}))
            said += text.lm.decode([json.loads(text.book.committed[key])])
    return found


@pytest.mark.parametrize("rule", [lambda s: int(np.argmax(s)), last, lambda s: 0, lambda s: len(s) // 2])
def test_a_list_holds_released_words_alone_each_once_and_ends_when_none_is_left(
    rule: Callable[[NDArray[np.int64]], int],
) -> None:
    for words in (LOWER, LOWER[:3]):
        text = Text(LISTED, rule, lm=Commas(), words=words)
        earlier = {word for value in text.said[:2] for word in words_of(value)}
        for said, offer in list_offers(text):
            left = {word for word in words if word not in earlier and word not in words_of(said)}
            begun = {f" {form}" for word in left for form in (word, word.capitalize())}
            if not left and not said:
                continue  # free to say others: see below
            comma = set() if not said or said.endswith(",") or not left else {","}
            assert offer == (begun | comma or {"\n"})
    assert list_offers(text)[-1][1] == {"\n"} or len(list_offers(text)) == LISTS.slots[2].draws


def test_a_list_offers_the_same_whatever_the_private_rows_say() -> None:
    texts = [Text(LISTED, lambda s: 0, lm=Commas(), notes=notes) for notes in (NOTES, (), ("Tea " * 90,) * 50)]
    assert len({json.dumps(text.offered()) for text in texts}) == 1


def test_where_no_released_word_is_left_a_list_is_free_to_say_others() -> None:
    text = Text(plan({"form": LISTS, "draws": LISTS.draws}), lm=Commas(), words=[])
    assert len(list_offers(text)[0][1]) > 1


def test_a_row_that_wants_what_is_not_offered_abstains_but_not_where_only_released_words_are() -> None:
    class Wants(ToyLM):
        """Wants a word that the public row never offers, whatever it reads, before all others."""

        def row_scores(self, prompt: Prompt, document: ToyDocument, said: Sequence[int]) -> Scores:
            scores = super().row_scores(prompt, document, said)
            scores[self.encode(" Unit")] = 30.0 if prompt.body in NOTES else -30.0
            return scores

    lm = Wants(letters="abcdefghijklmnopqrstuvwxyz,")
    for abstain in (True, False):
        text = Text(LISTED.model_copy(update={"text": LISTED.text.model_copy(update={"abstain": abstain, "top_k": 3})}),
                    lm=lm, words=LOWER)  # fmt: skip
        heard = {key: bool((told - np.array(offer["prior"])).any()) for key, told, offer in
                 zip(text.draw_keys(), text.noise.told, text.offered(), strict=True)}  # fmt: skip
        assert heard["text/zonkitis/0/0/1"] is not abstain
        assert heard["text/zonkitis/0/0/0"] and heard["text/zonkitis/0/2/0"]


def test_a_value_begins_with_a_released_word_that_the_documents_choose_alone() -> None:
    text = Text(LISTED, lm=Commas(), words=LOWER)
    spoken: set[str] = set()
    for number, value in enumerate(text.said):
        offer = json.loads(text.book.committed[f"text/zonkitis/0/{number}/0/offered"])
        left = [word for word in LOWER if word not in spoken]
        begun = {f" {form}" for word in left for form in (word, word.capitalize())}
        assert {text.lm.decode([t]) for t in offer["tokens"]} == begun
        assert set(offer["prior"]) == {0}
        spoken |= set(words_of(value))
    free = Text(plan({"form": LISTS, "draws": LISTS.draws, "lift": 0.3, "lists": "free"}), lm=Commas(), words=LOWER)
    (first,) = (o for k, o in zip(free.draw_keys(), free.offered(), strict=True) if k == "text/zonkitis/0/0/0")
    assert len(set(first["prior"])) > 1 and {free.lm.decode([t]) for t in first["tokens"]} - begun
