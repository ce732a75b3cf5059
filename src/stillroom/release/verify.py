"""Whether a release is what its certificate says: arithmetic and bytes, on the base install."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stillroom.errors import CertificateMismatch, StillroomError, UnknownName
from stillroom.lexicon import WordList, word_list
from stillroom.privacy.events import RELATION, to_json
from stillroom.privacy.zcdp import Cost, epsilon_of, total
from stillroom.release.costs import events_of, least_count, parts_of
from stillroom.release.folder import (
    FILES,
    TOLERANCE,
    VOID_MEANING,
    Release,
    canonical,
    costs_more,
    guarantee_of,
    is_void,
    meaning,
    read,
    text_id,
)
from stillroom.release.schema import CERTIFICATE, Certificate, PlanRecord

ROUNDED = 0.05
"""Published noisy counts are rounded to one decimal."""

CHECKED = (
    "the folder holds the files of a release and no others, with the sha256 that the certificate vouches for",
    "the events follow from the plan, and (ρ, δ_ps) and ε from the events",
    "ε and δ are within what was planned, and the sentence of meaning says these numbers",
    "the statistics and texts are within what the plan allows and fit each other",
)
RECORDED = "the ledger holds this run with these events"
CANNOT_PROVE = (
    "that the mechanisms were run as the events say, with the noise they name, on data with the units they name",
    "that what is called public was fixed before the private documents were read",
    "that the assumptions named in the certificate hold",
    "that no other release or ledger holds the same people: their costs add up",
    "anything about people who are only mentioned in the documents of other units",
)
NO_LEDGER = "that nobody forged the whole folder, certificate included: compare it with its ledger (--ledger FILE)"


class Entry(Protocol):
    """A line of a ledger: `run` is empty where it is about no run, `events` where it spends nothing."""

    @property
    def kind(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def purpose(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def events(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def hash(self) -> str: ...


class Terms(Protocol):
    """What a ledger was opened with."""

    @property
    def population(self) -> str: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...


class History(Protocol):
    """A ledger that can be asked for its entries."""

    def state(self) -> Terms: ...
    def history(self) -> Sequence[Entry]: ...


@dataclass(frozen=True)
class Report:
    """What was found in order, and what no such check can prove."""

    release: Release
    checked: tuple[str, ...]
    cannot_prove: tuple[str, ...]

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate


def verify(path: Path | str, *, ledger: History | None = None, ledger_head: str | None = None) -> Report:
    """Return what was checked of a release folder; nothing in it is taken on trust that can be derived.

    Args:
        path: the release folder.
        ledger: the book of its population; the run must stand there with the same events.
        ledger_head: the head of the ledger's chain at the reservation, known from elsewhere.

    Raises:
        FileMissing: there is no such folder.
        CertificateMismatch: with every reason found.
    """
    path = Path(path)
    release, reasons = read(path)
    there = {each.name for each in path.iterdir()}
    reasons += [f"{name!r} does not belong to a release" for name in sorted(there - set(FILES))]
    if release is not None:
        reasons += _arithmetic(release.certificate)
        reasons += _statistics(release)
        reasons += _texts(release)
        reasons += _ledger(release.certificate, ledger, ledger_head)
    if release is None or reasons:
        raise CertificateMismatch(path, reasons)
    recorded = ledger is not None
    return Report(
        release,
        checked=(*CHECKED, RECORDED) if recorded else CHECKED,
        cannot_prove=CANNOT_PROVE if recorded else (*CANNOT_PROVE, NO_LEDGER),
    )


def _arithmetic(certificate: Certificate) -> Iterator[str]:
    """Yield where events, costs, and the words about them do not follow from the plan."""
    plan = certificate.plan
    try:
        events = events_of(plan)
        cost = total(events)
        epsilon = epsilon_of(cost.rho, plan.delta - cost.delta_ps)
        if not cost.delta_ps < plan.delta:
            yield f"partition selection takes δ_ps = {cost.delta_ps:.4g} of δ = {plan.delta:g}, so nothing is left"
            return
        over = costs_more(plan, cost, epsilon)
    except StillroomError:
        yield "no events follow from the plan's numbers"
        return

    # Compared in their JSON form: to Python, 1, 1.0 and true are equal.
    if canonical([to_json(event) for event in events]) != canonical(certificate.events):
        yield "its events are not those of its plan"
    yield from _costs(certificate, cost, epsilon)
    if over:
        yield f"the plan costs ε = {epsilon:.6g}, more than the {plan.epsilon:g} it says"
    if certificate.relation != RELATION:
        yield f"its relation is not {RELATION!r}"
    if certificate.guarantee != guarantee_of(certificate.rehearsal or is_void(certificate.assumptions)).value:
        yield "a rehearsal gives no guarantee, and any other release a guarantee of kind 'dp'"
    said = (
        VOID_MEANING
        if is_void(certificate.assumptions)
        else meaning(
            epsilon=certificate.epsilon, delta=certificate.delta, unit=plan.unit, rehearsal=certificate.rehearsal
        )
    )
    if certificate.meaning != said:
        yield "its sentence of meaning is not that of its numbers"
    if not certificate.run:
        yield "it names no run"


def _costs(certificate: Certificate, cost: Cost, epsilon: float) -> Iterator[str]:
    for name, says, found in (
        ("ρ", certificate.rho, cost.rho),
        ("δ_ps", certificate.delta_ps, cost.delta_ps),
        ("ε", certificate.epsilon, epsilon),
        ("δ", certificate.delta, certificate.plan.delta),
    ):
        if not math.isclose(says, found, rel_tol=TOLERANCE):
            yield f"it says {name} = {says:.6g}, but its events cost {found:.6g}"


def _statistics(release: Release) -> Iterator[str]:
    """Yield where the published statistics exceed what the plan allows to publish."""
    plan, statistics = release.certificate.plan, release.statistics
    listed = {word.word: word.listed for word in statistics.words}
    if len(listed) != len(statistics.words):
        yield "a released word stands twice"
    if len(statistics.words) > plan.keywords.released:
        yield f"{len(statistics.words)} words are released, more than the plan's {plan.keywords.released}"
    if any(word.count < plan.keywords.least_count for word in statistics.words):
        yield f"a released word has a noisy count below the plan's {plan.keywords.least_count:g}"
    if any(not _may_be_named(plan, word.count) for word in statistics.words if not word.listed):
        yield "a word that no public list holds is released without passing the threshold"

    known = _list_of(release.certificate)
    if known is not None and any(word.listed is not (word.word in known) for word in statistics.words):
        yield "a released word is called listed or unlisted, unlike the public list has it"

    names = [topic.name for topic in statistics.topics]
    if len(set(names)) != len(names):
        yield "a topic stands twice"
    if plan.topics.most is not None and len(names) > plan.topics.most:
        yield f"there are {len(names)} topics, more than the plan's {plan.topics.most}"
    for topic in statistics.topics:
        if not topic.words or not set(topic.words) <= set(listed):
            yield f"topic {topic.name!r} is not made of released words"
        if (topic.size is None) != (plan.topics.size_sigma is None):
            yield f"topic {topic.name!r} has {'no' if topic.size is None else 'a'} size, unlike the plan"
        if topic.parts < 1 or (plan.topics.part is None and topic.parts != 1):
            yield f"topic {topic.name!r} has {topic.parts} parts, which the plan does not allow"
        elif topic.size is not None and topic.parts != parts_of(topic.size, plan.topics):
            yield f"topic {topic.name!r} has {topic.parts} parts, which do not follow from its size"
        if len(topic.together) > (plan.cokeywords.published if plan.cokeywords else 0):
            yield f"topic {topic.name!r} has more co-keywords than the plan allows"
        if any(listed.get(word.word) is not word.listed for word in topic.together):
            yield f"topic {topic.name!r} has co-keywords that are not among the released words"
        if plan.cokeywords is not None and any(
            word.count < least_count(plan.cokeywords.sigma, len(listed)) - ROUNDED for word in topic.together
        ):
            yield f"topic {topic.name!r} has a co-keyword that does not stand out of the noise"
    # Without a self-filter, only filled forms that hold no word released with their topic are dropped.
    if plan.topics.size_sigma is not None and any((t.size or 0.0) < plan.topics.smallest for t in statistics.topics):
        yield "a topic is smaller than the plan keeps"
    if plan.cokeywords is not None and any(not {w.word for w in t.together} & {*t.words} for t in statistics.topics):
        yield "a topic is kept whose own word does not stand out"
    may_drop = plan.selffilter != "off" or (plan.text.form is not None and plan.cokeywords is not None)
    if statistics.dropped < 0 or (statistics.dropped and not may_drop):
        yield f"{statistics.dropped} texts are dropped, but nothing in the plan could drop any"


def _list_of(certificate: Certificate) -> WordList | None:
    """Return the public list that was used, None where this installation has another one or none of the name."""
    try:
        known = word_list(certificate.plan.keywords.word_list)
    except UnknownName:
        return None
    return known if certificate.public_inputs.get("word list") == known.sha256 else None


def _may_be_named(plan: PlanRecord, count: float) -> bool:
    return plan.keywords.threshold is not None and count > plan.keywords.threshold


def _texts(release: Release) -> Iterator[str]:
    """Yield where the texts are not one for each part of each topic, in order, in the plan's form."""
    parts = {topic.name: topic.parts for topic in release.statistics.topics}
    places = [(text.topic, text.part) for text in release.texts]
    if places != sorted(places) or len(set(places)) != len(places):
        yield "the texts are not in the order of topic and part"
    if any(not 1 <= part <= parts.get(topic, 0) for topic, part in places):
        yield "a text belongs to no part of a topic"
    if any(text.id != text_id(text.topic, text.part) for text in release.texts):
        yield "a text has not the id of its topic and part"
    wanted = sum(parts.values()) - release.statistics.dropped
    if len(places) != wanted:
        yield f"there are {len(places)} texts where topics and dropped texts leave {wanted}"

    plan = release.certificate.plan
    if not plan.text.prose and any(text.prose for text in release.texts):
        yield "a text is written out as prose, which the plan does not have"
    form = plan.text.form
    labels = Counter(slot.label for slot in form.slots) if form else Counter[str]()
    if form is not None and any(text.text != form.filled(text.fields) for text in release.texts):
        yield "a text does not say what its fields say"
    wrong = sum(set(text.fields) != set(labels) for text in release.texts)
    if wrong:
        yield f"{wrong} texts have other fields than the plan's form"


def _ledger(certificate: Certificate, ledger: History | None, head: str | None) -> Iterator[str]:
    if head is not None and certificate.ledger.get("head") != head:
        yield "its ledger's head is another one"
    if ledger is None:
        return
    if certificate.rehearsal:
        yield "it is a rehearsal, which stands in no ledger"
        return
    spent = [entry for entry in ledger.history() if entry.run == certificate.run and entry.events]
    if not spent:
        yield "the ledger spent nothing for such a run"
        return
    if all(canonical([dict(event) for event in entry.events]) != canonical(certificate.events) for entry in spent):
        yield "the ledger recorded other events for this run"
    if any(entry.unit != certificate.plan.unit for entry in spent):
        yield "the ledger counts this run by another unit"
    if certificate.ledger.get("head") not in {entry.hash for entry in spent}:
        yield "the ledger's head at the reservation was another one"
    state = ledger.state()
    terms = {"population": state.population, "epsilon": repr(state.epsilon), "delta": repr(state.delta)}
    if any(certificate.ledger.get(name) != value for name, value in terms.items()):
        yield "the ledger has another population, ε or δ"
    sealed = f"certificate sha256:{certificate.files.get(CERTIFICATE)}"
    done = [entry.purpose for entry in ledger.history() if entry.run == certificate.run and entry.kind == "complete"]
    if sealed not in done:
        yield "the ledger completed this run with another certificate, or has not completed it"
