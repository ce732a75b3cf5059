"""The texts of a release: a document is read once for all its topics, and several texts share the model's passes.

Which texts are on their way together, and in which order they draw, follows from released sizes and released tokens.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from stillroom.distil.prompts import document_prompt, public_prompts
from stillroom.distil.synthesise import Going, Synthesis
from stillroom.distil.tools import Tools, Units
from stillroom.distil.topics import Sized
from stillroom.distil.values import fields_of, free_text
from stillroom.distil.vocabulary import Spelling
from stillroom.lexicon import WordList, word_list
from stillroom.lm.base import LanguageModel, Pool, Session
from stillroom.release.folder import text_id
from stillroom.release.schema import PlanRecord, Text, Word

AT_ONCE, ROWS_AT_ONCE = 8, 320
"""Texts on their way at a time, and the rows they are expected to have by released sizes; on every machine as many."""

Row = tuple[str, int]
"""A unit and the number of one of its documents."""


@dataclass
class Place:
    """One part of a topic: the documents that vote, and what they come to.

    Attributes:
        key: what the journal calls the text.
        expected: rows by the released size.
        values: drawn tokens of each slot, once they are all there.
    """

    topic: Sized
    part: int
    rows: Sequence[Row]
    spelling: Spelling
    expected: float
    values: list[list[int]] = field(default_factory=list)

    @property
    def key(self) -> str:
        return f"text/{self.topic.group.name}/{self.part}"


def write_texts(
    units: Units,
    plan: PlanRecord,
    tools: Tools,
    topics: Sequence[Sized],
    shown: Sequence[tuple[Word, ...]],
    rows: Sequence[Sequence[Sequence[Row]]],
) -> list[Text]:
    """Return one text for every part of every topic; a part that is done is taken from the journal unread.

    Args:
        shown: released words of each topic.
        rows: of each topic, of each part, the documents that vote there.
    """
    known = word_list(plan.keywords.word_list)
    places = []
    for topic, parts, with_it in zip(topics, rows, shown, strict=True):
        spelling = _spelling(tools.lm, topic, with_it, known)
        for part, chosen in enumerate(parts):
            places.append(Place(topic, part, chosen, spelling, _expected(plan, topic)))
    done = getattr(tools.journal, "has", lambda key: False)
    written = [place for place in places if done(f"{place.key}/done")]
    there = {place.key for place in written}
    writing = Writing(units, plan, tools, [place for place in places if place.key not in there])
    tools.progress.stage("texts", len(places) * plan.text.draws)
    for place in written:
        place.values = tools.journal.draw(f"{place.key}/done", list)
        tools.progress.advance(plan.text.draws)
    writing.run()
    return [_text(plan, tools.lm, place) for place in places]


class Writing:
    """Texts that are still to be drawn, several at a time: each goes on until it waits for the model, then all run."""

    def __init__(self, units: Units, plan: PlanRecord, tools: Tools, places: Sequence[Place]) -> None:
        self.plan, self.tools, self.waiting = plan, tools, deque(places)
        self.synthesis = Synthesis(tools.lm, plan, tools.noise, tools.journal)
        self.number = {row: i for i, row in enumerate(dict.fromkeys(row for place in places for row in place.rows))}
        self.uses = Counter(row for place in places for row in place.rows)
        tools.progress.stage("reading", None)
        prompts = [document_prompt(plan, units.documents_of(unit)[at].text) for unit, at in self.number]
        self.readings = tools.lm.read(prompts, plan.text.document_tokens)
        self.private: Pool = tools.lm.pool(self.readings)
        self.public: Pool | None = None
        self.public_rows: dict[str, range] = {}
        if plan.text.candidates == "public":
            spelling = {place.topic.group.name: place.spelling for place in places}
            prompts = []
            for name, each in spelling.items():
                said = public_prompts(plan, each.words)
                self.public_rows[name] = range(len(prompts), len(prompts) + len(said))
                prompts += said
            told = tools.lm.read(prompts, 4 * plan.text.document_tokens)
            self.public = tools.lm.pool(
                told,
                public=True,
                size=AT_ONCE * self.private.machines * max(map(len, self.public_rows.values()), default=1),
            )

    def run(self) -> None:
        """Draw them all."""
        lanes: list[Lane] = []
        while self.waiting or lanes:
            while self.waiting and self._fits([lane.place for lane in lanes]):
                lanes.append(self._lane(self.waiting.popleft()))
            for lane in lanes:
                lane.go_on()
            for lane in [lane for lane in lanes if lane.done]:
                lanes.remove(lane)
                self.tools.journal.draw(f"{lane.place.key}/done", partial(list, lane.place.values))
                for session in lane.sessions:
                    session.close()
            self.private.step(self.public)

    def _fits(self, running: Sequence[Place]) -> bool:
        if not self.tools.lm.shares_passes:
            return not running
        machines = self.private.machines
        expected = sum(place.expected for place in running) + self.waiting[0].expected
        return not running or (len(running) < machines * AT_ONCE and expected <= machines * ROWS_AT_ONCE)

    def _lane(self, place: Place) -> Lane:
        private = self.private.open([self.number[row] for row in place.rows])
        self.uses.subtract(place.rows)
        self.readings.forget([self.number[row] for row in place.rows if self.uses[row] == 0])
        public = self.public.open(self.public_rows[place.topic.group.name]) if self.public is not None else None
        going = self.synthesis.going(place.key, private, public, place.spelling, self.tools.progress.advance)
        return Lane(place, going, (private,) if public is None else (private, public))


@dataclass
class Lane:
    """A text on its way."""

    place: Place
    going: Going
    sessions: tuple[Session, ...]
    done: bool = False

    def go_on(self) -> None:
        """Draw until the model has to run, or to the end."""
        while not self.done and all(session.ready for session in self.sessions):
            try:
                next(self.going)
            except StopIteration as end:
                self.place.values, self.done = end.value, True


def _expected(plan: PlanRecord, topic: Sized) -> float:
    """Return how many documents are likely to vote in one part, by what is released or planned."""
    if topic.size is not None:
        return max(0.0, topic.size) / topic.parts
    return float(plan.cut.keep) if plan.cut is not None else float(ROWS_AT_ONCE)


def _spelling(lm: LanguageModel, topic: Sized, shown: Sequence[Word], known: WordList) -> Spelling:
    return Spelling(lm, list(dict.fromkeys([*topic.group.words, *(w.word for w in shown)])), known)


def _text(plan: PlanRecord, lm: LanguageModel, place: Place) -> Text:
    form, name, number = plan.text.form, place.topic.group.name, place.part + 1
    if form is None:
        return Text(id=text_id(name, number), topic=name, part=number, text=free_text(lm, place.values[0]))
    fields = fields_of(form, lm, place.spelling, place.values)
    return Text(id=text_id(name, number), topic=name, part=number, text=form.filled(fields), fields=fields)
