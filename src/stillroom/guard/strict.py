"""The guard as it is meant to be used: values leave the vault by a mechanism and the books, or not at all."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from stillroom.documents import Document
from stillroom.embed.base import Embedder
from stillroom.embed.remembered import RememberedEmbedder
from stillroom.errors import BadOption, MissingExtra, StillroomError, VaultStale
from stillroom.guarantee import weakest
from stillroom.guard.build import build
from stillroom.guard.categories import CATEGORIES, category
from stillroom.guard.context import Context, Found, Numbering, Spot, people, shown_at
from stillroom.guard.detect.union import LONGEST_RUN
from stillroom.guard.draws import Draws, Place
from stillroom.guard.ingest import Finder, digest, finding, ingest, read
from stillroom.guard.keys import Key
from stillroom.guard.memo import Memo
from stillroom.guard.policy import Policy, Tier, check_policy, load_policy
from stillroom.guard.receipt import Line, Receipt, not_covered, spans_of
from stillroom.guard.records import Kept, MemoryStore, Record, Store, VaultStore, cut, seen
from stillroom.guard.rehydrate import rehydrated
from stillroom.guard.risk import Risk, raised
from stillroom.guard.template import Template
from stillroom.guard.vault import Vault
from stillroom.loading import EMBEDDER, load_embedder
from stillroom.privacy.ledger import Ledger
from stillroom.privacy.noise import Noise
from stillroom.text import normalise

LONGEST_PASSAGE = 20_000
"""Characters of a passage that `sanitise` reads when it was not ingested; what comes after them is left out."""

REMEMBERED = 1000
"""Passages that were not ingested whose templates are kept in memory, so that they are read once."""

Asked = Kept | Document | str


@dataclass(frozen=True)
class Sanitised:
    """A context that may be given to a model, and the receipt.

    Attributes:
        texts: in the order of the passages.
        metadata: of each passage.
        receipt: what was done. No values.
    """

    texts: tuple[str, ...]
    metadata: tuple[Mapping[str, str], ...]
    receipt: Receipt
    slots: Mapping[str, tuple[str, str, int]] = field(default_factory=dict, repr=False)
    """By placeholder, where its value is kept: the record's name, category and index. For `Guard.rehydrate`."""

    @property
    def text(self) -> str:
        """All passages, with empty lines between them."""
        return "\n\n".join(self.texts)


@dataclass(frozen=True)
class Scored:
    """The risk of a query against one sentence, in [0, 1], its template, and the tier of each slot in it."""

    template: str
    risk: float
    tiers: Mapping[str, Tier]


class Guard:
    """Makes retrieved context safe for the query at hand.

    Values are found at ingest, kept in the vault, and leave it by a permanent draw that is charged in the ledger.
    What the policy leaves raw is given out only where the ledger has recorded that it is not private. Nothing in a
    query lowers a tier.

    Args:
        policy: a policy, the name of a built-in one, or a TOML file.
        ledger: of the population; without one everything becomes a placeholder.
        key: the user's; `Key.load()` when None and a ledger or a vault needs it.
        vault: an open vault or its file, where ingested documents are kept; None keeps them in memory.
        embedder: an embedder or its name, for the risk of a query; loaded when first used.
        finder: of detectors; by default those of the policy, loaded when first used.
        noise: makes draws.

    Raises: whatever opening the policy, the memo or the vault raises; LedgerMismatch for a vault whose draws are in
    another ledger.
    """

    def __init__(
        self,
        policy: Policy | Path | str = "clinic",
        *,
        ledger: Ledger | None = None,
        key: Key | None = None,
        vault: Vault | Path | str | None = None,
        embedder: Embedder | str = EMBEDDER,
        finder: Finder | None = None,
        noise: Noise | None = None,
    ) -> None:
        self.policy = policy if isinstance(policy, Policy) else load_policy(policy)
        check_policy(self.policy, self.policy.name)
        self._ledger, self._finder, self._embedder = ledger, finder, embedder
        self._own = finder is not None
        limit = self.policy.account.epsilon_per_subject
        self._memo = None if ledger is None else Memo(ledger, key, limit=limit, noise=noise)
        self._opened: Vault | None = None
        if vault is not None and not isinstance(vault, Vault):
            vault = self._opened = Vault.open(vault, key)
        if vault is not None and self._memo is not None:
            try:
                vault.check(self._memo.ledger, self._memo.population, self._memo.draws)
            except BaseException:
                self.close()
                raise
        self._draws = Draws(self.policy, self._memo, vault)
        self._store: Store = MemoryStore() if vault is None else VaultStore(vault)
        self._passing = MemoryStore(REMEMBERED)
        self._digest = digest(self.policy)
        self._in_ledger: set[str] = set()
        self._ready: RememberedEmbedder | None = None

    @property
    def embedder(self) -> RememberedEmbedder:
        """The embedder of the risk, which remembers; an index that uses it too embeds nothing twice."""
        if self._ready is None:
            inner = load_embedder(self._embedder) if isinstance(self._embedder, str) else self._embedder
            self._ready = inner if isinstance(inner, RememberedEmbedder) else RememberedEmbedder(inner)
        return self._ready

    def ingest(self, documents: Iterable[Document], *, processes: int = 1) -> Iterator[Kept]:
        """Read documents, keep their values in the vault, and yield their passages as they may be indexed and shown.

        It runs as far as it is gone through. A document that comes again takes its old place; draws stay what they
        were.

        Args:
            processes: that read; from two on each loads the policy's detectors anew, which takes a while.
        """
        if processes < 1:
            raise BadOption("processes", processes, "at least 1")
        if processes > 1 and self._own:
            raise BadOption("processes", processes, "1 with a finder of your own, which would not come along")
        if processes == 1:
            yield from _kept(ingest(documents, self._store, self.policy, self._detectors()))
            return
        with finding(self.policy, processes) as finder:
            yield from _kept(ingest(documents, self._store, self.policy, finder))

    def kept(self, role: str | None = None) -> bool:
        """Say whether the books have it noted, now, what the policy leaves raw for this role."""
        return self._noted(self._of_role(role))

    def passages(self, role: str | None = None) -> list[Kept]:
        """Return all passages that were ingested, as this role may search them, in an order that no value goes into.

        What the policy leaves raw for the role stands in them, if the ledger has it noted; all else is slots.
        """
        raw = self._raw(role)
        kept = []
        for record in self._store:
            self._check(record)
            kept += [replace(k, text=seen(t, raw)) for k, t in zip(record.kept(), record.passages, strict=True)]
        return kept

    def sanitise(
        self,
        query: str,
        passages: Sequence[Asked],
        *,
        caller: str = "local",
        role: str | None = None,
        metadata: bool = True,
    ) -> Sanitised:
        """Return the passages as this caller may read them, in answer to this query.

        Args:
            query: only raises tiers; an empty one counts as the riskiest.
            passages: ingested ones, documents, or texts. Documents and texts are read now; one without a unit of its
                own has no noisy tier.
            caller: who asks, as the operator names it; has a quota.
            role: of the policy, which sets the caller's base tiers.
            metadata: whether the caller is shown that too; without it nothing in it is drawn and paid for.

        Raises: UnknownName for a role that the policy does not have; UnitsShared, LedgerMismatch where draws about
        these units or this vault are in another ledger. No text and no other state of the books raises.
        """
        self.policy.tier("unknown", role)  # so that an unknown role is told before anything is read
        context = self._context(query, passages, role, metadata)
        alone = people(record for record, _ in context.found)
        drawing = self._draws.draw([spot.place for spot in context.spots], caller, alone)
        numbers = Numbering()
        # What was noted once may be shown raw only as long as the books are there (rule 34).
        shown = [shown_at(s, a, numbers, raw=drawing.kept) for s, a in zip(context.spots, drawing.answers, strict=True)]
        lines = [
            Line(spot.place.slot.category, tier, label)
            for spot, (_, tier, label) in zip(context.spots, shown, strict=True)
        ]
        texts, fields = context.filled([text for text, _, _ in shown])
        receipt = Receipt(
            policy=self.policy.name,
            version=self.policy.version,
            role=role,
            caller=caller,
            spans=spans_of(lines),
            raised=sum(spot.raised for spot in context.spots),
            epsilon=math.fsum(drawing.charged),
            subject_epsilon=self._most(context),
            subject_limit=None if self._memo is None else self.policy.account.epsilon_per_subject,
            refused=drawing.refused,
            ledger=drawing.kept,
            not_covered=not_covered(lines, any(map(_too_long, passages))),
            guarantee=weakest(line.guarantee for line in lines),
        )
        return Sanitised(texts, fields, receipt, numbers.slots)

    def score(self, query: str, passages: Sequence[Asked], *, role: str | None = None) -> list[Scored]:
        """Return the risk of a query against each sentence of the passages, and the tiers. It draws nothing."""
        found = [(record, part) for record, text in self._found(passages) for part in cut(text, 1)]
        alone = [(replace(record, metadata={}), part) for record, part in found]
        scored = []
        for (_, part), risk in zip(alone, self._risks(query, alone, self._raw(role)), strict=True):
            tiers = {
                slot.name: raised(slot.category, self.policy.tier(slot.category, role), risk, self.policy)
                for slot in part.slots
            }
            scored.append(Scored(part.text, 1.0 if math.isnan(risk) else risk, tiers))
        return scored

    def rehydrate(self, text: str, context: Sanitised, *, role: str | None = None) -> str:
        """Return a text with the values of placeholders that the policy gives this role back, where they may stand.

        They come back in plain prose alone (`rehydrate`): a model that was told to by a document could send a value
        away in a link, an image or a call of a tool. Where the books cannot note it, all stay. Raises UnknownName.
        """
        self.policy.tier("unknown", role)
        entitled = frozenset(self.policy.roles[role].rehydrate) if role is not None else frozenset()
        values = {
            name: self._value(*place) for name, place in context.slots.items() if place[1] in entitled and name in text
        }
        if not values or not self._noted(f"role {role}: values given back: {', '.join(sorted(entitled))}"):
            return text
        return rehydrated(text, {name: value for name, value in values.items() if value is not None})

    def close(self) -> None:
        """Close the vault that the guard opened; the ledger is its owner's to close."""
        if self._opened is not None:
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What stands where

    def _context(self, query: str, passages: Sequence[Asked], role: str | None, metadata: bool) -> Context:
        found = self._found(passages)
        raw = self._raw(role)
        risks = self._risks(query, found, raw)
        spots: list[Spot] = []
        for (record, text), risk in zip(found, risks, strict=True):
            for template in (text, *(record.metadata.values() if metadata else ())):
                for slot in template.slots:
                    base = self.policy.tier(slot.category, role)
                    tier = raised(slot.category, base, risk, self.policy)
                    kept: Tier = "placeholder" if tier == "raw" and slot.category not in raw else tier
                    spots.append(Spot(Place(record.name, record.subject, slot, kept), tier != base))
        return Context(found, spots, metadata)

    def _found(self, passages: Sequence[Asked]) -> list[Found]:
        new = [p if isinstance(p, Document) else Document.of(p) for p in passages if not isinstance(p, Kept)]
        new = [Document(d.id, _read_of(d.text), d.unit, d.metadata) for d in new]
        # A digest of all that is read tells whether it was read before.
        names = [self._passing.name(repr((d.id, d.unit, d.text, sorted(d.metadata.items())))) for d in new]
        # Taken out before new ones are put in, which push old ones out.
        held = {name: record for name in names if (record := self._passing.get(name)) is not None}
        unread = {name: d for name, d in zip(names, new, strict=True) if name not in held}
        if unread:
            records = read(list(unread.values()), self._store, self.policy, self._detectors())
            fresh = {name: record.whole(name) for name, record in zip(unread, records, strict=True)}
            self._passing.put(list(fresh.values()))
            held |= fresh
        passing = iter(names)
        found: list[Found] = []
        for passage in passages:
            if isinstance(passage, Kept):
                record, number = self._record(passage)
                found.append((record, record.passages[number]))
            else:
                known = held[next(passing)]
                found.append((known, known.passages[0]))
        return found

    def _record(self, passage: Kept) -> tuple[Record, int]:
        name, _, number = passage.name.rpartition("-")
        record = self._store.get(name)
        if record is None or not 0 < int(number) <= len(record.passages):
            raise BadOption("the passage", repr(passage.name), "one of Guard.passages()")
        self._check(record)
        return record, int(number) - 1

    def _check(self, record: Record) -> None:
        if record.policy != self._digest:
            path = self._store.vault.path if isinstance(self._store, VaultStore) else Path("memory")
            raise VaultStale(path, record.policy[:8], self.policy.name, self._digest[:8])

    def _risks(self, query: str, found: Sequence[Found], raw: Collection[str]) -> list[float]:
        if not normalise(query).strip():
            return [math.nan] * len(found)
        scored = [
            Template(seen(text, raw), (*text.slots, *(s for each in record.metadata.values() for s in each.slots)))
            for record, text in found
        ]
        try:
            return Risk(self.policy, self.embedder).of(query, scored)
        except MissingExtra:
            raise
        except Exception:  # of whatever a model may raise; its message may hold text. Unknown risk is the highest.
            return [math.nan] * len(found)

    def _detectors(self) -> Finder:
        if self._finder is None:
            self._finder = build(self.policy)
        return self._finder

    # The books

    def _raw(self, role: str | None) -> frozenset[str]:
        """Return the categories that the role reads raw; none where the ledger cannot have it noted."""
        return frozenset(self._raw_of(role)) if self.kept(role) else frozenset()

    def _raw_of(self, role: str | None) -> list[str]:
        return [name for name in CATEGORIES if category(name).private and self.policy.tier(name, role) == "raw"]

    def _of_role(self, role: str | None) -> str:
        shown = ", ".join(self._raw_of(role)) or "no value"
        return f"role {role or 'none'}: templates shown; as it stands: {shown}"

    def _noted(self, what: str) -> bool:
        """Have it stand in the ledger, once for good, that something is not private; say whether it does."""
        if self._ledger is None or self._memo is None:
            return False
        purpose = f"guard, policy {self.policy.name} {self.policy.version} ({self._digest[:8]}), {what}"
        try:
            self._memo.check()
            if purpose not in self._in_ledger and all(e.purpose != purpose for e in self._ledger.history()):
                self._ledger.not_private(purpose)
        except (StillroomError, sqlite3.Error, OSError):
            return False
        self._in_ledger.add(purpose)
        return True

    def _most(self, context: Context) -> float | None:
        subjects = {spot.place.subject for spot in context.spots if spot.place.subject.unit}
        if self._memo is None:
            return 0.0
        try:
            self._memo.check()
            return max(map(self._memo.spent, subjects), default=0.0)
        except (StillroomError, sqlite3.Error, OSError):
            return None

    def _value(self, name: str, category: str, index: int) -> str | None:
        record = self._store.get(name) or self._passing.get(name)
        if record is None:
            return None
        templates = (*record.passages, *record.metadata.values())
        surfaces = [s.surface for t in templates for s in t.slots if (s.category, s.index) == (category, index)]
        return max(surfaces, key=len, default=None)  # the fullest of the ways in which it is written


def _kept(records: Iterable[Record]) -> Iterator[Kept]:
    for record in records:
        yield from record.kept()


def _read_of(text: str) -> str:
    """Return what is read of a text: up to a blank, as half a word passes for another one."""
    if len(text) <= LONGEST_PASSAGE:
        return text
    # A run without a blank of this length is withheld whole.
    blanks = (i for i in range(LONGEST_PASSAGE, LONGEST_PASSAGE - LONGEST_RUN, -1) if text[i].isspace())
    return text[: next(blanks, LONGEST_PASSAGE)]


def _too_long(passage: Asked) -> bool:
    text = passage if isinstance(passage, str) else passage.text
    return not isinstance(passage, Kept) and len(text) > LONGEST_PASSAGE
