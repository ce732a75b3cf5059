"""Private prediction: one text from the votes of many documents, token by token.

Source: DP-SynRAG (arXiv 2510.06719), step 4; the public row, its prior and the public candidates are stillroom's.
For every token, candidates and prior are journaled before private scores are asked for, and the draw is journaled
before it is pushed (rules 5 and 22). T draws are charged whether or not they are made (rule 23).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stillroom.distil.prompts import next_label
from stillroom.distil.vocabulary import Candidates, Prefix, Spelling, TokenKinds, lean_of, prior_on_grid, topmost
from stillroom.distil.votes import Ballot, Barred, end_of, masked
from stillroom.lm.base import LanguageModel, Scores, Session
from stillroom.privacy.noise import Noise
from stillroom.release.costs import vote_scale
from stillroom.release.schema import Form, PlanRecord, Slot
from stillroom.text import words as words_of

Going = Generator[None, None, list[list[int]]]
"""A text on its way: it pauses after every push, and returns the tokens of its values."""


class Draws(Protocol):
    """What keeps draws: `privacy.journal.Journal`."""

    def draw(self, key: str, make: Callable[[], Any]) -> Any: ...


@dataclass(frozen=True)
class Stops:
    """Tokens that end a value or a text: `token` stands for all of them among the candidates."""

    token: int
    all: tuple[int, ...]

    @classmethod
    def of(cls, lm: LanguageModel, form: Form | None) -> Stops:
        """Return the stops of a slot (line breaks and ends) or of a free text (ends only)."""
        ends = sorted(lm.stop_tokens)
        if form is None:
            return cls(ends[0], tuple(ends))
        breaks = [token for token in range(lm.vocabulary_size) if "\n" in lm.decode([token])]
        line = lm.encode("\n")
        return cls(line[0] if len(line) == 1 else ends[0], tuple(sorted({*line[:1], *breaks, *ends})))


class Synthesis:
    """Draws texts by a plan. Needs a model with scores; noise and journal are the run's."""

    def __init__(self, lm: LanguageModel, plan: PlanRecord, noise: Noise, journal: Draws) -> None:
        self.lm, self.plan, self.noise, self.journal = lm, plan, noise, journal
        self.stops = Stops.of(lm, plan.text.form)
        self._tokens = TokenKinds.of(lm, plan.text.form)
        self.comma = (lm.encode(",") or [self.stops.token])[0]

    def values(
        self,
        key: str,
        private: Session,
        public: Session | None,
        spelling: Spelling,
        progress: Callable[[int], None] = lambda n: None,
    ) -> list[list[int]]:
        """Return the drawn tokens: of each slot of the form, or of the one free text. See `going`."""
        return finished(self.going(key, private, public, spelling, progress))

    def going(
        self,
        key: str,
        private: Session,
        public: Session | None,
        spelling: Spelling,
        progress: Callable[[int], None] = lambda n: None,
    ) -> Going:
        """Draw a text, pausing after every push so that many texts may share the model's passes; return its values.

        Args:
            key: names the text in the journal.
            private: a row for each document of the part; the form's first label has been spoken.
            public: the public row, in its own session; None where the plan has none.
            spelling: the topic's released words in tokens.
            progress: told every draw made or left unused.
        """
        form = self.plan.text.form
        slots = form.slots if form else (Slot(label="text", draws=self.plan.text.draws),)
        said: list[list[int]] = []
        for number, slot in enumerate(slots):
            label = next_label(form, number) if form else ""
            value = yield from self._value(f"{key}/{number}", slot, said, private, public, spelling, progress, label)
            said.append(value)
            if label:
                self._push(self.lm.encode(label), private, public)
                yield
        return said

    def _value(
        self,
        key: str,
        slot: Slot,
        earlier: Sequence[Sequence[int]],
        private: Session,
        public: Session | None,
        spelling: Spelling,
        progress: Callable[[int], None],
        label: str,
    ) -> Generator[None, None, list[int]]:
        said: list[int] = []
        spoken = frozenset(word for value in earlier for word in words_of(self.lm.decode(value)))
        starts = frozenset(value[0] for value in earlier if value)
        for n in range(slot.draws):
            prefix = Prefix(tuple(said), starts, spoken | frozenset(words_of(self.lm.decode(said))), slot.list, n)
            token = self._draw(f"{key}/{n}", prefix, slot, private, public, spelling)
            progress(1)
            if token == self.stops.token:
                progress(slot.draws - n - 1)
                break
            chunk = [token]
            if self.plan.text.completion:
                closed = self._closed(prefix, slot, spelling)
                chunk += spelling.ending([*said, token], prefix.spoken if closed else (), closed=closed)
            said += chunk
            if label or n + 1 < slot.draws:  # after the last draw of all nobody asks
                self._push(chunk, private, public)
                yield
        return said

    def _push(self, tokens: Sequence[int], private: Session, public: Session | None) -> None:
        private.push(tokens)
        if public is not None:
            public.push(tokens)

    def _draw(
        self, key: str, prefix: Prefix, slot: Slot, private: Session, public: Session | None, spelling: Spelling
    ) -> int:
        text = self.plan.text
        offered = self._offered(key, prefix, slot, public, spelling)

        def make() -> int:
            total = private.tally(self._ballot(prefix, slot, spelling, offered))
            if offered is not None:
                total = total + np.array(offered.prior, dtype=np.int64)
            index = self.noise.noisy_max(total, range=float(text.levels), scale=vote_scale(self.plan), monotonic=True)
            return offered.tokens[index] if offered is not None else index

        return int(self.journal.draw(key, make))

    def _ballot(self, prefix: Prefix, slot: Slot, spelling: Spelling, offered: Candidates | None) -> Ballot:
        """Return what every row is asked: a function of public things and the released prefix."""
        text = self.plan.text
        if offered is None:
            return Ballot(text.levels, clip=text.clip if text.votes == "centred" else None)
        stop = self.stops.token if prefix.said else None
        if self._closed(prefix, slot, spelling):
            # Among released words a row chooses one of them; elsewhere it may want what is not offered.
            return Ballot(text.levels, offered.tokens, lean=offered.lean, stops=self.stops.all, stop=stop, closed=True)
        barred = self._barred(prefix, spelling)
        return Ballot(text.levels, offered.tokens, None, self.stops.all, stop, barred, abstain=text.abstain)

    def _closed(self, prefix: Prefix, slot: Slot, spelling: Spelling) -> bool:
        """Say whether only released words may come: throughout names and lists, and as the first word of any value."""
        if self.plan.text.lists != "released" or self.plan.text.form is None:
            return False
        if prefix.said:
            return slot.list or slot.names
        return bool(spelling.first_tokens(prefix.spoken))

    def _offered(
        self, key: str, prefix: Prefix, slot: Slot, public: Session | None, spelling: Spelling
    ) -> Candidates | None:
        """Return candidates and prior, committed to the journal before any private score is read; None: all tokens."""
        text = self.plan.text
        if text.candidates == "all" or public is None:
            return None

        def make() -> dict[str, list[int]]:
            tokens = self._narrow(prefix, slot, spelling)
            lean = self._lean(public, tokens, prefix, slot, spelling)
            begins = spelling.first_tokens()
            if tokens is None:
                row = self._table(public, prefix, spelling)[0]
                tokens = self._wide(row, prefix, spelling)
                scores = row[list(tokens)]
            elif not prefix.said and self._closed(prefix, slot, spelling):
                # Which released word begins a value is for the documents to say; the public row would copy its first.
                return {"tokens": [*tokens], "prior": [0] * len(tokens), "lean": lean}
            else:
                scores = self._columns(public, tokens, prefix)[0]
            lifted = [token in begins for token in tokens]
            prior = prior_on_grid(scores, text.floor, text.clip, text.levels, text.lift or 0.0, lifted)
            return {"tokens": [*tokens], "prior": [int(p) for p in prior], "lean": lean}

        kept = self.journal.draw(f"{key}/offered", make)
        return Candidates(tuple(kept["tokens"]), tuple(kept["prior"]), tuple(kept["lean"]))

    def _lean(
        self, public: Session, tokens: Sequence[int] | None, prefix: Prefix, slot: Slot, spelling: Spelling
    ) -> list[int]:
        """Return what is taken from every row's scores where a value or an item begins, among released words alone."""
        begins = not prefix.said or (slot.list and prefix.said[-1] == self.comma)
        if self.plan.text.calibration is None or tokens is None or not begins:
            return []
        if not self._closed(prefix, slot, spelling) or self.stops.token in tokens:
            return []
        return lean_of(public.scores(tokens), self.plan.text.calibration)

    def _narrow(self, prefix: Prefix, slot: Slot, spelling: Spelling) -> tuple[int, ...] | None:
        """Return the tokens offered next where they follow from released words and the released prefix alone."""
        said = prefix.said
        if not self._closed(prefix, slot, spelling):
            inside = self.plan.text.completion and said and spelling.inside(said)
            return tuple(sorted(spelling.following(said))) if inside else None
        following = spelling.following(said, prefix.spoken)
        if not spelling.complete(said):
            return tuple(sorted(following or {self.stops.token}))
        found = spelling.first_tokens(prefix.spoken) | following
        if slot.names and not slot.list:
            found |= {self.stops.token} if said else set()
        elif found and said and said[-1] != self.comma:
            found |= {self.comma}  # all draws are paid for: the list goes on while a released word is left to say
        return tuple(sorted(found or {self.stops.token}))

    def _wide(self, scores: Scores, prefix: Prefix, spelling: Spelling) -> tuple[int, ...]:
        """Return the tokens offered elsewhere: the best of the public row, and what released words offer."""
        begins = spelling.first_tokens(prefix.spoken)
        best = {t for t in topmost(scores, self.plan.text.top_k) if scores[t] > -np.inf}
        stop = {self.stops.token} if prefix.said else set()
        barred = self._tokens.barred(prefix, begins)
        found = ((best | begins | spelling.following(prefix.said)) - barred - {self.stops.token}) | stop
        return tuple(sorted(found or {self.stops.token}))  # with nothing to say a value ends, even an empty one

    def _table(self, session: Session, prefix: Prefix, spelling: Spelling) -> Scores:
        """Return scores over all tokens, the barred ones −∞, and the one stop standing for all stops.

        No value begins with a stop; later, the stop's score is the log-sum-exp over all of them.
        """
        barred = self._barred(prefix, spelling)
        return masked(session.scores(), self.stops.all, self.stops.token if prefix.said else None, barred)

    def _columns(self, session: Session, tokens: Sequence[int], prefix: Prefix) -> Scores:
        """Return scores of tokens, the one stop standing for all stops; nothing is barred."""
        scores = session.scores(tokens)
        if prefix.said and self.stops.token in tokens:
            scores[:, list(tokens).index(self.stops.token)] = end_of(session.scores(self.stops.all))
        return scores

    def _barred(self, prefix: Prefix, spelling: Spelling) -> Barred:
        barred = self._tokens.barred(prefix, spelling.first_tokens(prefix.spoken))
        return np.fromiter(barred, np.int64, len(barred))


def finished(going: Going) -> list[list[int]]:
    """Run a text to its end and return its values."""
    while True:
        try:
            next(going)
        except StopIteration as end:
            return list(end.value)
