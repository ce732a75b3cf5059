"""Private prediction: one text from the votes of many documents, token by token.

Source: DP-SynRAG (arXiv 2510.06719), step 4; the public row, its prior and the public candidates are stillroom's.
For every token, candidates and prior are journaled before private scores are asked for, and the draw is journaled
before it is pushed (rules 5 and 22). T draws are charged whether or not they are made (rule 23).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stillroom.distil.prompts import next_label
from stillroom.distil.vocabulary import Candidates, Spelling, TokenKinds, prior_on_grid, topmost
from stillroom.distil.votes import Votes, centred, one_sided, tally
from stillroom.lm.base import LanguageModel, Scores, Session
from stillroom.privacy.noise import Noise
from stillroom.release.costs import vote_scale
from stillroom.release.schema import Form, PlanRecord


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
        breaks = [ids[0] for text in ("\n", "\n\n") if len(ids := lm.encode(text)) == 1]
        every = tuple(dict.fromkeys([*breaks, *ends]))
        return cls(every[0], every)


class Synthesis:
    """Draws texts by a plan. Needs a model with scores; noise and journal are the run's."""

    def __init__(self, lm: LanguageModel, plan: PlanRecord, noise: Noise, journal: Draws) -> None:
        self.lm, self.plan, self.noise, self.journal = lm, plan, noise, journal
        self.stops = Stops.of(lm, plan.text.form)
        self._tokens = TokenKinds.of(lm, plan.text.form)

    def values(self, key: str, private: Session, public: Session | None, spelling: Spelling,
               progress: Callable[[int], None] = lambda n: None) -> list[list[int]]:
        """Return the drawn tokens: of each slot of the form, or of the one free text.

        Args:
            key: names the text in the journal.
            private: a row for each document of the part; the form's first label has been spoken.
            public: the public row, in its own session; None where the plan has none.
            spelling: the topic's released words in tokens.
            progress: told every draw made or left unused.
        """
        form = self.plan.text.form
        slots = [slot.draws for slot in form.slots] if form else [self.plan.text.draws]
        said: list[list[int]] = []
        for slot, most in enumerate(slots):
            before = frozenset(token for value in said for token in self._starts(value))
            value = self._value(f"{key}/{slot}", most, before, private, public, spelling, progress)
            said.append(value)
            if form and (label := next_label(form, slot)):
                self._push(self.lm.encode(label), private, public)
        return said

    def _starts(self, value: Sequence[int]) -> list[int]:
        """Return the token with which a value began: another slot does not begin with it."""
        return [value[0]] if value else []

    def _value(self, key: str, most: int, before: frozenset[int], private: Session, public: Session | None,
               spelling: Spelling, progress: Callable[[int], None]) -> list[int]:
        said: list[int] = []
        for n in range(most):
            token = self._draw(f"{key}/{n}", said, before, private, public, spelling)
            progress(1)
            if token == self.stops.token:
                progress(most - n - 1)
                break
            chunk = [token]
            if self.plan.text.completion and (rest := spelling.ending([*said, token])):
                chunk += rest
            said += chunk
            self._push(chunk, private, public)
        return said

    def _push(self, tokens: Sequence[int], private: Session, public: Session | None) -> None:
        private.push(tokens)
        if public is not None:
            public.push(tokens)

    def _draw(self, key: str, said: Sequence[int], before: frozenset[int], private: Session, public: Session | None,
              spelling: Spelling) -> int:
        text = self.plan.text
        offered = self._offered(key, said, before, public, spelling)
        tokens, prior = offered

        def make() -> int:
            scores = self._scores(private, tokens)
            if text.votes == "centred":
                votes = centred(scores, text.levels, text.clip)
            else:
                votes = one_sided(scores, text.levels)
            total = tally(votes) if len(votes) else np.zeros(len(scores[0]) if len(scores) else self._width(tokens),
                                                             np.int64)
            chosen = self.noise.noisy_max(
                total + prior if prior is not None else total,
                range=float(text.levels), scale=vote_scale(self.plan), monotonic=True,
            )
            return int(tokens.tokens[chosen] if tokens else chosen)

        return int(self.journal.draw(key, make))

    def _width(self, tokens: Candidates | None) -> int:
        return len(tokens.tokens) if tokens else self.lm.vocabulary_size

    def _offered(self, key: str, said: Sequence[int], before: frozenset[int], public: Session | None,
                 spelling: Spelling) -> tuple[Candidates | None, Votes | None]:
        """Return candidates and prior, committed to the journal before any private score is read."""
        if self.plan.text.candidates == "all" or public is None:
            return None, None
        text = self.plan.text

        def make() -> dict[str, list[int]]:
            candidates = self._candidates(said, before, public, spelling)
            scores = self._scores(public, candidates)[0]
            prior = prior_on_grid(scores, text.floor, text.clip, text.levels)
            return {"tokens": [*candidates.tokens], "prior": [int(p) for p in prior]}

        kept = self.journal.draw(f"{key}/offered", make)
        stop = self.stops.token if self.stops.token in kept["tokens"] else None
        return Candidates(tuple(kept["tokens"]), stop), np.array(kept["prior"], dtype=np.int64)

    def _candidates(self, said: Sequence[int], before: frozenset[int], public: Session, spelling: Spelling
                    ) -> Candidates:
        """Return the tokens offered next: a function of public scores, released words and the released prefix."""
        text = self.plan.text
        following = spelling.following(said)
        if text.completion and said and spelling.inside(said):
            return Candidates(tuple(sorted(following)), None)
        scores = public.scores()[0]
        if text.form is None:
            offered = set(topmost(scores, text.top_k)) - {*self.stops.all}
        elif said:
            offered = set(topmost(scores, text.top_k)) - {*self.stops.all} - self._tokens.breaks
        else:
            # A value begins with a word that can be one: no ending, no word of the form, not as another slot began.
            barred = np.array(sorted(self._tokens.no_start | before), dtype=np.int64)
            scores[barred] = -np.inf
            offered = {t for t in topmost(scores, text.top_k) if scores[t] > -np.inf}
        tokens = offered | (spelling.first_tokens() - (before if not said else frozenset())) | following
        stop = self.stops.token if said else None
        return Candidates(tuple(sorted(tokens | ({stop} if stop is not None else set()))), stop)

    def _scores(self, session: Session, candidates: Candidates | None) -> Scores:
        """Return scores over the candidates (None: all), the stop standing for all stops (log-sum-exp)."""
        if candidates is None:
            return session.scores()
        if candidates.stop is None:
            return session.scores(candidates.tokens)
        others = [t for t in self.stops.all if t != candidates.stop]
        scores = session.scores([*candidates.tokens, *others])
        m = len(candidates.tokens)
        at = candidates.tokens.index(candidates.stop)
        ends = scores[:, [at, *range(m, m + len(others))]]
        with np.errstate(invalid="ignore", over="ignore"):
            scores[:, at] = np.logaddexp.reduce(ends, axis=1)
        return scores[:, :m]
