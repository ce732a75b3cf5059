"""The release folder: certified, written whole or not at all, and read back only as it was sealed.

The certificate vouches for the bytes of the other files, and for its own: under its own name in `files` stands
the sha256 of the certificate without that entry. The seal tells damage and careless changes; whoever recomputes
it makes a consistent forgery, which only the ledger can tell (`verify`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from stillroom.errors import BadOption, CertificateMismatch, DiskFull, FileFormat, FileMissing, OutputExists
from stillroom.guarantee import Guarantee
from stillroom.privacy.events import RELATION, to_json
from stillroom.privacy.zcdp import Cost, epsilon_of, rho_of_paper, total
from stillroom.release.costs import events_of
from stillroom.release.schema import CERTIFICATE, TEXTS, TOPICS, Certificate, PlanRecord, Record, Statistics, Text

FILES = (CERTIFICATE, TEXTS, TOPICS)
"""All files of a release; anything else in the folder is not part of it."""

TOLERANCE = 1e-9
"""Relative: logarithms and error functions differ in their last digits from one machine to another."""

_EPOCH = 315532800  # 1980-01-01: file times tell nothing about the run (PRIVACY rule 9)
_FULL = {errno.ENOSPC, errno.EDQUOT}
_R = TypeVar("_R", bound=Record)


# -- the certificate ------------------------------------------------------------------------------------------
def certify(
    plan: PlanRecord,
    *,
    run: str,
    rehearsal: bool = False,
    assumptions: Sequence[str] = (),
    models: Mapping[str, str] | None = None,
    public_inputs: Mapping[str, str] | None = None,
    ledger: Mapping[str, str] | None = None,
    software: Mapping[str, str] | None = None,
) -> Certificate:
    """Return the certificate of a plan that was run, still without `files`: all that follows from the plan is derived.

    Args:
        plan: what was run; its events, (ρ, δ_ps) and ε are computed here.
        run: the id under which the ledger knows the run.
        rehearsal: a public or made-up collection outside any ledger; it carries no guarantee.
        ledger: population, epsilon, delta and head, the hash of the entry that reserved the run's budget.

    Raises BadOption when partition selection alone takes the whole δ.
    """
    void = is_void(assumptions)
    events = events_of(plan)
    cost = total(events)
    if not cost.delta_ps < plan.delta:
        raise BadOption("δ of partition selection", f"{cost.delta_ps:.4g}", f"below the plan's δ = {plan.delta:g}")
    epsilon = epsilon_of(cost.rho, plan.delta - cost.delta_ps)
    return Certificate(
        run=run,
        guarantee=guarantee_of(rehearsal or void).value,  # type: ignore[arg-type]  # a plan's events are "dp" or "none"
        relation=RELATION,
        meaning=VOID_MEANING
        if void
        else meaning(epsilon=epsilon, delta=plan.delta, unit=plan.unit, rehearsal=rehearsal),
        rehearsal=rehearsal,
        plan=plan,
        events=tuple(to_json(event) for event in events),
        rho=cost.rho,
        delta_ps=cost.delta_ps,
        epsilon=epsilon,
        delta=plan.delta,
        assumptions=tuple(assumptions),
        models=dict(models or {}),
        public_inputs=dict(public_inputs or {}),
        ledger=dict(ledger or {}),
        software=dict(software or {}),
        files={},
    )


def costs_more(plan: PlanRecord, cost: Cost, epsilon: float) -> bool:
    """Say whether a cost, and ε at the plan's δ, are more than the plan says it may spend."""
    allowed = rho_of_paper(plan.epsilon, plan.delta - cost.delta_ps) if plan.conversion == "paper" else math.inf
    return epsilon > plan.epsilon * (1 + TOLERANCE) or cost.rho > allowed * (1 + TOLERANCE)


def check_certificate(certificate: Certificate) -> None:
    """Raise BadOption for a plan that costs more than it says or cannot be written down: call it before any spend."""
    plan, cost = certificate.plan, Cost(certificate.rho, certificate.delta_ps)
    if costs_more(plan, cost, certificate.epsilon):
        least = f"the {certificate.epsilon:.4g} at least that its parameters cost"
        raise BadOption("the plan's ε", f"{plan.epsilon:g}", least)
    try:
        _certificate_bytes(certificate)
    except UnicodeEncodeError:
        raise BadOption("the task, the form or a name", "no Unicode", "text in UTF-8") from None


VOID = "VOID:"
VOID_MEANING = "This release was made with a stand-in for the noise, as tests do: it protects nobody."


def is_void(assumptions: Sequence[str]) -> bool:
    """Say whether the first assumption says that the certificate is void: its noise was not OpenDP's."""
    return bool(assumptions) and assumptions[0].startswith(VOID)


def guarantee_of(unprotected: bool) -> Guarantee:
    """Return what a release guarantees: a rehearsal may be repeated outside any ledger, and a void one has no noise."""
    return Guarantee.NONE if unprotected else Guarantee.DP


def meaning(*, epsilon: float, delta: float, unit: str, rehearsal: bool) -> str:
    """Return what the numbers mean, in one sentence for a lay reader, and one more of warning above ε = 10 (rule 12).

    The sentence is the definition of (ε, δ)-differential privacy, with "conclusion" for "event".

    Args:
        unit: "document", or the name of the field whose value all documents of one unit share.
    """
    if rehearsal:
        return (
            "This is a rehearsal on a collection that was declared public or made up: it shows the quality to expect "
            "and protects nobody."
        )
    one = "one document (those with the same id are one)"
    who = one if unit == "document" else f"one unit (all documents with the same {unit!r})"
    absent = "that document" if unit == "document" else "none of these documents"
    never = "had never been in the collection" if unit == "document" else "had ever been in the collection"
    sentence = (
        f"Whatever anyone concludes from this release about {who}, the chance of that conclusion is at most "
        f"e^ε = {_factor(epsilon)} times as high as if {absent} {never}, and δ = {delta:g} on top "
        f"(ε = {epsilon:.4g})."
    )
    if epsilon > 10:
        sentence += (
            f" Warning: ε = {epsilon:.4g} is above 10, which allows so large a factor that the promise is weak: treat "
            f"this release as confidential."
        )
    return sentence


def _factor(epsilon: float) -> str:
    # The displayed factor is rounded up: it is an upper bound.
    if epsilon > 1e6:
        return "(beyond any use)"
    if epsilon > 30:
        return f"10^{math.ceil(epsilon / math.log(10) * 10) / 10:g}"
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor >= 100 else f"{math.ceil(factor * 100) / 100:g}"


# -- writing --------------------------------------------------------------------------------------------------
def check_free(out: Path) -> None:
    """Raise OutputExists when `out` is taken and FileMissing when its parent is not there: call it before any spend."""
    if os.path.lexists(out):
        raise OutputExists(out)
    if not out.absolute().parent.is_dir():
        raise FileMissing(out.absolute().parent)


def text_id(topic: str, part: int) -> str:
    """Return the id of the text of a topic's part; parts count from 1."""
    return f"{topic}/{part}"


def write(
    out: Path, *, certificate_without_files: Certificate, statistics: Statistics, texts: Sequence[Text]
) -> Release:
    """Write a release folder and return it: complete under its name, or not there at all.

    It is built as a hidden sibling of `out`, brought to disk and renamed; a sibling left by a crash is replaced, so
    the caller holds the lease of the run. The bytes depend on the arguments alone: canonical JSON, texts in the order
    of topic and part, constant times and modes.

    Raises:
        OutputExists: `out` is there already.
        DiskFull: nothing is left behind.
    """
    check_free(out)
    ordered = tuple(sorted(texts, key=lambda text: (text.topic, text.part)))
    contents = {
        TEXTS: b"".join(canonical(text.model_dump(mode="json")) for text in ordered),
        TOPICS: canonical(statistics.model_dump(mode="json"), indent=1),
    }
    certificate, contents[CERTIFICATE] = seal(certificate_without_files, contents)

    building = out.absolute().parent / f".{out.name}.writing"
    try:
        if building.exists():
            shutil.rmtree(building)
        building.mkdir()
        for name, content in contents.items():
            _write_file(building / name, content)
        building.chmod(0o755)
        os.utime(building, (_EPOCH, _EPOCH))
        _sync_folder(building)
        building.rename(out)
        _sync_folder(building.parent)
    except OSError as wrong:
        shutil.rmtree(building, ignore_errors=True)
        if wrong.errno in _FULL:
            raise DiskFull(out) from None
        if wrong.errno in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}:
            raise OutputExists(out) from None
        raise
    return Release(out, certificate, statistics, ordered)


def seal(certificate: Certificate, contents: Mapping[str, bytes]) -> tuple[Certificate, bytes]:
    """Return the certificate that vouches for the other files' contents and for itself, and its bytes."""
    digests = {name: _sha256(content) for name, content in contents.items() if name != CERTIFICATE}
    bare = certificate.model_copy(update={"files": digests})
    digests = {**digests, CERTIFICATE: _sha256(_certificate_bytes(bare))}
    sealed = certificate.model_copy(update={"files": digests})
    return sealed, _certificate_bytes(sealed)


def canonical(value: Any, indent: int | None = None) -> bytes:
    """Return the one JSON form of a value: sorted keys, UTF-8, a newline at the end; ValueError where none is."""
    return (json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent) + "\n").encode()


def _certificate_bytes(certificate: Certificate) -> bytes:
    return canonical(certificate.model_dump(mode="json"), indent=1)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_file(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        os.utime(path, (_EPOCH, _EPOCH))
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- reading --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Release:
    """A release that was read: synthetic texts, public statistics, certificate. All of it may be published."""

    path: Path
    certificate: Certificate
    statistics: Statistics
    texts: tuple[Text, ...]

    @classmethod
    def open(cls, path: Path | str) -> Release:
        """Return the release in a folder, with its bytes as the certificate says; `verify` checks much more.

        Raises:
            FileMissing: there is no such folder.
            CertificateMismatch: a file is missing, damaged, or not the one that the certificate vouches for.
        """
        path = Path(path)
        release, reasons = read(path)
        if release is None or reasons:
            raise CertificateMismatch(path, reasons)
        return release

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.certificate.guarantee)


def read(path: Path) -> tuple[Release | None, list[str]]:
    """Return what stands in a folder, None if it cannot be parsed, and what is wrong with its bytes.

    Raises FileMissing where there is no folder, FileFormat where the system does not let a file be read.
    """
    if not path.is_dir():
        raise FileMissing(path)
    reasons: list[str] = []
    contents: dict[str, bytes] = {}
    for name in FILES:
        file = path / name
        if file.is_symlink() or not file.is_file():
            reasons.append(f"{name} is missing")
            continue
        try:
            contents[name] = file.read_bytes()
        except OSError as wrong:
            raise FileFormat(file, wrong.strerror or "it does not open") from None

    certificate = _parse(Certificate, CERTIFICATE, contents, reasons)
    statistics = _parse(Statistics, TOPICS, contents, reasons)
    texts = _parse_lines(contents, reasons)
    if certificate is None or statistics is None or texts is None:
        return None, reasons

    _, expected = seal(certificate, contents)
    vouched = certificate.files
    if sorted(vouched) != sorted(FILES):
        reasons.append(f"the certificate vouches for {len(vouched)} files that are not {', '.join(FILES)}")
    else:
        reasons += [
            f"{name} has another sha256 than the certificate says"
            for name in (TEXTS, TOPICS)
            if vouched[name] != _sha256(contents[name])
        ]
        if not reasons and expected != contents[CERTIFICATE]:
            reasons.append(f"{CERTIFICATE} does not fit its own seal")
    return Release(path, certificate, statistics, texts), reasons


def _parse(kind: type[_R], name: str, contents: Mapping[str, bytes], reasons: list[str]) -> _R | None:
    if name not in contents:
        return None
    record, reason = _record(kind, contents[name], indent=1)
    if reason:
        reasons.append(f"{name}: {reason}")
    return record


def _parse_lines(contents: Mapping[str, bytes], reasons: list[str]) -> tuple[Text, ...] | None:
    if TEXTS not in contents:
        return None
    texts = []
    for number, line in enumerate(_lines(contents[TEXTS]), start=1):
        text, reason = _record(Text, line)
        if reason or text is None:
            reasons.append(f"{TEXTS}, line {number}: {reason}")
            return None
        texts.append(text)
    return tuple(texts)


def _lines(content: bytes) -> list[bytes]:
    # Only the line feed ends a line; JSON escapes those inside a text.
    *lines, rest = content.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


def _record(kind: type[_R], content: bytes, indent: int | None = None) -> tuple[_R | None, str]:
    """Return the record, and why it is none, or not in its one form (which also rules out a name given twice)."""
    try:
        record = kind.model_validate_json(content, strict=True)
        form = canonical(json.loads(content), indent)
    except ValidationError as wrong:
        first = wrong.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        return None, f"{where}: {first['msg']}"
    except (ValueError, RecursionError):
        return None, "it is not JSON as stillroom writes it"
    return record, "" if form == content else "it is not in the form that stillroom writes"
