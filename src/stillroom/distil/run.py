"""One run: from a collection, a plan and a ledger to a release. It resumes after kill -9 at any moment.

Order: everything that can be wrong is found; the collection is copied into the run folder and fingerprinted; the whole
cost is reserved; only then do mechanisms see private data. Every draw is in the journal before it is used. The release
is written whole, the ledger is told, and the run folder goes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from stillroom import readers
from stillroom.distil import certificates, engines, prompts
from stillroom.distil.keywords import Extractor, FastExtractor, LMExtractor
from stillroom.distil.plan import Plan
from stillroom.distil.steps import distil
from stillroom.distil.tools import Progress, Silent, Tools
from stillroom.documents import Collection, Document
from stillroom.embed.base import Embedder
from stillroom.errors import BadOption, DiskFull, FileMissing, RowsNotIndependent, RunChanged
from stillroom.lexicon import word_list
from stillroom.lm.base import LanguageModel
from stillroom.lm.greedy import PRIVATE_BODY
from stillroom.loading import EMBEDDER, LM, load_embedder, load_lm
from stillroom.privacy.journal import Journal
from stillroom.privacy.ledger import Ledger
from stillroom.privacy.noise import Noise, OpenDPNoise
from stillroom.readers.spool import Spool
from stillroom.release import folder
from stillroom.release.costs import events_of
from stillroom.release.folder import Release
from stillroom.release.schema import CERTIFICATE, PlanRecord

SPOOL = "collection.sqlite"


def release(
    collection: Collection | Path | str,
    plan: Plan | PlanRecord,
    *,
    ledger: Ledger | Path | str,
    out: Path | str,
    lm: LanguageModel | str = LM,
    embedder: Embedder | str = EMBEDDER,
    noise: Noise | None = None,
    progress: Progress | None = None,
    run_id: Callable[[], str] = lambda: secrets.token_hex(16),
    engine: str = "local",
    workers: int = 2,
) -> Release:
    """Return the release of a collection; spends the plan's whole cost from the ledger, once.

    Run again with the same arguments after a crash, it goes on where it was: committed draws are replayed.

    Args:
        collection: documents, or a file or folder to read with the plan's unit field.
        plan: of `stillroom.plan`.
        ledger: an open ledger, or the file of one.
        out: folder of the release; must not exist. The private run folder lies beside it (`out` + ".run").
        lm: a model with scores, or its name.
        embedder: used only where the plan has the similarity cut.
        noise: OpenDP's by default; any other is for tests, and the certificate says that it is void.
        progress: told public totals only.
        engine: "local", or "ray" for workers on a cluster: the same mechanisms at the same cost.
        workers: of the engine "ray": how many models.

    Raises:
        UsageError: something in the call is wrong; nothing was spent.
        LedgerEmpty, UnitsShared: the ledger refuses; nothing was spent.
        RunHeld, RunCopied, RunChanged, DiskFull, RowsNotIndependent, WorkersLost, WorkersUnlike.
    """
    record = PlanRecord.model_validate((plan.record if isinstance(plan, Plan) else plan).model_dump())
    out, tell = Path(out), progress or Silent()
    place = run_folder(out)
    with contextlib.ExitStack() as open_:
        book = ledger if isinstance(ledger, Ledger) else open_.enter_context(Ledger.open(ledger))
        where = open_.enter_context(engines.engine(engine, workers))
        return _release(collection, record, book, out, place, lm, embedder, noise, tell, run_id, where)


def run_folder(out: Path | str) -> Path:
    """Return the private folder in which the run of a release works."""
    path = Path(out)
    return path.with_name(path.name + ".run")


def _release(
    collection: Collection | Path | str,
    plan: PlanRecord,
    ledger: Ledger,
    out: Path,
    place: Path,
    lm: LanguageModel | str,
    embedder: Embedder | str,
    noise: Noise | None,
    progress: Progress,
    run_id: Callable[[], str],
    where: engines.Engine,
) -> Release:
    if out.exists():
        return _already_written(out, place, ledger)
    events = events_of(plan)
    begun = (place / "journal.sqlite").exists()
    if not begun:
        folder.check_free(out)
        ledger.afford(events)
    documents, plan = _opened(collection, plan)
    if begun and Journal.begun_with(place).get("plan") not in (None, plan.model_dump(mode="json")):
        raise RunChanged(place, "plan")
    progress.stage("checking the collection", None)
    readers.check(documents)  # before the model, which takes a minute to load and try
    model, vectors = _models(plan, lm, embedder, progress, where)
    extractor = where.extractor(_extractor(plan, model))
    settings = certificates.bound(plan, model, vectors, noise)
    # What cannot be certified is not begun.
    folder.check_certificate(certificates.certificate(plan, model, vectors, noise, run=""))
    fresh = _made(place)
    reserved = False
    try:
        progress.stage("copying the collection", None)
        # The journal first: it holds the folder against other processes, which would write the same spool.
        with (
            _journal(place, settings, ledger, run_id) as journal,
            contextlib.closing(_spool(documents, place, plan)) as spool,
        ):
            journal.bind(journal.fingerprint(spool.fingerprint_parts()))
            purpose = f"release {plan.preset}"
            reservation = ledger.reserve(journal.run, events, purpose=purpose, unit=plan.unit, units=spool.unit_ids())
            reserved = True
            tools = Tools(
                lm=model,
                extractor=extractor,
                noise=noise or OpenDPNoise(),
                journal=journal,
                embedder=vectors,
                progress=progress,
                batch=where.batch,
            )
            outcome = distil(spool, plan, tools)
            state = ledger.state()
            certificate = certificates.certificate(
                plan,
                model,
                vectors,
                noise,
                run=journal.run,
                ledger={
                    "population": state.population,
                    "epsilon": repr(state.epsilon),
                    "delta": repr(state.delta),
                    "head": reservation.head,
                },
            )
            written = folder.write(
                out, certificate_without_files=certificate, statistics=outcome.statistics, texts=outcome.texts
            )
            ledger.complete(journal.run, written.certificate.files[CERTIFICATE])
    except BaseException:
        if fresh and not reserved:
            _remove(place)
        raise
    _remove(place)
    return written


def rehearse(
    collection: Collection | Path | str,
    plan: Plan | PlanRecord,
    *,
    lm: LanguageModel | str = LM,
    embedder: Embedder | str = EMBEDDER,
    out: Path | str,
    noise: Noise | None = None,
    progress: Progress | None = None,
) -> Release:
    """Return a release of a public or made-up collection, marked as a rehearsal: it touches no ledger.

    The whole method runs with its real noise, to see the quality before an irreversible spend. It carries no
    guarantee, so it is not for private data.
    """
    record = PlanRecord.model_validate((plan.record if isinstance(plan, Plan) else plan).model_dump())
    out, tell = Path(out), progress or Silent()
    folder.check_free(out)
    documents, record = _opened(collection, record)
    model, vectors = _models(record, lm, embedder, tell, engines.Engine())
    # Not in the run folder, where a release that was begun may lie.
    place = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".rehearsal", dir=out.absolute().parent))
    try:
        with contextlib.closing(_spool(documents, place, record)) as spool:
            tools = Tools(
                lm=model,
                extractor=_extractor(record, model),
                noise=noise or OpenDPNoise(),
                journal=_Remembered(),
                embedder=vectors,
                progress=tell,
            )
            outcome = distil(spool, record, tools)
        certificate = certificates.certificate(record, model, vectors, noise, run=secrets.token_hex(16), rehearsal=True)
        return folder.write(
            out, certificate_without_files=certificate, statistics=outcome.statistics, texts=outcome.texts
        )
    finally:
        _remove(place)


def abandon(out: Path | str, ledger: Ledger) -> None:
    """Give a run up for good: its budget stays spent, its private folder is removed. Raises FileMissing."""
    place = run_folder(out)
    with Journal.resume(place, ledger=ledger) as journal:
        run = journal.run
    if ledger.status(run) is not None:
        ledger.abandon(run)
    _remove(place)


class _Remembered:
    """A journal in memory, for rehearsals."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def has(self, key: str) -> bool:
        return key in self._values

    def draw(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self._values:
            self._values[key] = json.loads(json.dumps(make()))
        return self._values[key]


def _already_written(out: Path, place: Path, ledger: Ledger) -> Release:
    """Finish a run that died between writing its release and telling the ledger; refuse anything else."""
    if not (place / "journal.sqlite").exists():
        folder.check_free(out)
    with Journal.resume(place, ledger=ledger) as journal:
        written = Release.open(out)
        if written.certificate.run != journal.run:
            folder.check_free(out)
        if ledger.status(journal.run) == "reserved":
            ledger.complete(journal.run, written.certificate.files[CERTIFICATE])
    _remove(place)
    return written


def _opened(collection: Collection | Path | str, plan: PlanRecord) -> tuple[Collection, PlanRecord]:
    """Return the documents, and the plan with the unit that they were read by: certificates name it."""
    wanted = None if plan.unit == "document" else plan.unit
    if isinstance(collection, str | Path):
        return readers.read(collection, unit=wanted), plan
    fields = getattr(collection, "fields", None)
    if fields is None:
        # Documents in memory carry their units; a folder's documents are each their own.
        if wanted is not None and isinstance(collection, readers.Folder):
            raise BadOption("the plan's unit", repr(wanted), "left out for a folder: each document is its own unit")
        return (_Own(collection) if wanted is None else collection), plan
    if fields.unit == "document":
        raise BadOption("the unit field", "'document'", "renamed: that word stands for each document by itself")
    if wanted not in (None, fields.unit):
        raise BadOption("the plan's unit", repr(wanted), f"the one that the collection was read by, {fields.unit!r}")
    return collection, plan.model_copy(update={"unit": fields.unit or "document"})


class _Own:
    """Documents each of which is its own unit: the certificate will say so."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def __iter__(self) -> Iterator[Document]:
        for document in self._collection:
            if readers.unit_id(document.unit) != readers.unit_id(document.id):
                raise BadOption("the plan's unit", "'document'", "named: these documents belong to units of their own")
            yield document


def _made(place: Path) -> bool:
    """Make the run folder; say whether it was not there before: then, and only then, may it be removed again."""
    try:
        place.mkdir(mode=0o700)
    except FileExistsError:
        return False
    except OSError as wrong:
        if wrong.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(place) from None
        raise
    return True


def _remove(place: Path) -> None:
    """Remove a run folder, private texts first: where that is interrupted, the journal still leads back here."""
    for name in (SPOOL, f"{SPOOL}.part"):
        (place / name).unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)


def _spool(documents: Collection, place: Path, plan: PlanRecord) -> Spool:
    return Spool.build(documents, place / SPOOL, chunk_words=plan.chunk_words)


def _journal(place: Path, settings: Mapping[str, Any], ledger: Ledger, run_id: Callable[[], str]) -> Journal:
    try:
        return Journal.resume(place, ledger=ledger, settings=settings)
    except FileMissing:
        return Journal.begin(place, run=run_id(), settings=settings, ledger=ledger)


def _models(
    plan: PlanRecord, lm: LanguageModel | str, embedder: Embedder | str, progress: Progress, where: engines.Engine
) -> tuple[LanguageModel, Embedder | None]:
    """Return the models, found fit before anything is spent."""
    progress.stage("loading the model", None)
    model = load_lm(lm) if isinstance(lm, str) else lm
    model.need("scores")
    if plan.text.prose or plan.keywords.extractor == "lm":
        model.need("generate")
    model = where.lm(model, lm)
    vectors = None
    if plan.cut is not None:
        vectors = where.embedder(load_embedder(embedder) if isinstance(embedder, str) else embedder, embedder)
    progress.stage("testing that rows are independent", None)
    lengths = {plan.text.document_tokens, *([PRIVATE_BODY] if plan.keywords.extractor == "lm" else [])}
    if not all(model.rows_independent(length) for length in sorted(lengths)):
        device, _, dtype = model.placed.partition(", ")
        raise RowsNotIndependent(model.name, device, dtype)
    return model, vectors


def _extractor(plan: PlanRecord, lm: LanguageModel) -> Extractor:
    own = prompts.form_words(plan.text.form) if plan.text.form is not None else ()
    if plan.keywords.extractor == "lm":
        return LMExtractor(lm, plan.keywords.per_unit, without=own)
    return FastExtractor(word_list(plan.keywords.word_list), plan.keywords.per_unit, own)


__all__ = ["abandon", "rehearse", "release", "run_folder"]
