"""One run: from a collection, a plan and a ledger to a release. It resumes after kill -9 at any moment.

Order: everything that can be wrong is found; the collection is copied into the run folder and fingerprinted; the whole
cost is reserved; only then do mechanisms see private data. Every draw is in the journal before it is used. The release
is written whole, the ledger is told, and the run folder goes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stillroom import readers
from stillroom.distil import engines, forms, prompts, selffilter
from stillroom.distil.keywords import Extractor, FastExtractor, LMExtractor
from stillroom.distil.plan import Plan
from stillroom.distil.steps import distil
from stillroom.distil.tools import Progress, Silent, Tools
from stillroom.documents import Collection
from stillroom.embed.base import Embedder
from stillroom.errors import BadOption, DiskFull, FileMissing, RowsNotIndependent
from stillroom.lexicon import lemma, word_list
from stillroom.lm.base import LanguageModel
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
    model, vectors = _models(plan, lm, embedder, progress, where)
    # A plan that was changed by hand is checked again; the noise is part of what a run was begun with.
    settings = {
        "plan": plan.model_dump(mode="json"),
        "lm": model.name,
        "digest": model.digest,
        "noise": "OpenDP" if _is_real(noise) else "a stand-in",
    }
    fresh = _made(place)
    reserved = False
    try:
        progress.stage("checking the collection", None)
        # The journal first: it holds the folder against other processes, which would write the same spool.
        with (
            _journal(place, settings, ledger, run_id) as journal,
            contextlib.closing(_spool(documents, place, plan)) as spool,
        ):
            journal.bind(journal.fingerprint(spool.fingerprint_parts()))
            purpose = f"release {plan.preset}"
            reservation = ledger.reserve(journal.run, events, purpose=purpose, units=spool.unit_ids())
            reserved = True
            tools = Tools(
                lm=model,
                extractor=where.extractor(_extractor(plan, model)),
                noise=noise or OpenDPNoise(),
                journal=journal,
                embedder=vectors,
                progress=progress,
                batch=where.batch,
            )
            outcome = distil(spool, plan, tools)
            state = ledger.state()
            certificate = folder.certify(
                plan,
                run=journal.run,
                assumptions=_assumptions(plan, model, noise),
                models=_named(model, vectors),
                public_inputs=public_inputs(plan),
                software=_software(),
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
            shutil.rmtree(place, ignore_errors=True)
        raise
    shutil.rmtree(place, ignore_errors=True)
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
    place = run_folder(out)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
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
        certificate = folder.certify(
            record,
            run=secrets.token_hex(16),
            rehearsal=True,
            assumptions=_assumptions(record, model, noise),
            models=_named(model, vectors),
            public_inputs=public_inputs(record),
            software=_software(),
        )
        return folder.write(
            out, certificate_without_files=certificate, statistics=outcome.statistics, texts=outcome.texts
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)


def abandon(out: Path | str, ledger: Ledger) -> None:
    """Give a run up for good: its budget stays spent, its private folder is removed. Raises FileMissing."""
    place = run_folder(out)
    with Journal.resume(place, ledger=ledger) as journal:
        run = journal.run
    if ledger.status(run) is not None:
        ledger.abandon(run)
    shutil.rmtree(place, ignore_errors=True)


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
    shutil.rmtree(place, ignore_errors=True)
    return written


def _is_real(noise: Noise | None) -> bool:
    return noise is None or type(noise) is OpenDPNoise


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
        return collection, plan
    if fields.unit == "document":
        raise BadOption("the unit field", "'document'", "renamed: that word stands for each document by itself")
    if wanted not in (None, fields.unit):
        raise BadOption("the plan's unit", repr(wanted), f"the one that the collection was read by, {fields.unit!r}")
    return collection, plan.model_copy(update={"unit": fields.unit or "document"})


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
    if not model.rows_independent(plan.text.document_tokens):
        device, _, dtype = model.placed.partition(", ")
        raise RowsNotIndependent(model.name, device, dtype)
    return model, vectors


def _extractor(plan: PlanRecord, lm: LanguageModel) -> Extractor:
    own = prompts.form_words(plan.text.form) if plan.text.form is not None else ()
    if plan.keywords.extractor == "lm":
        return LMExtractor(lm, plan.keywords.per_unit, without=own)
    return FastExtractor(word_list(plan.keywords.word_list), plan.keywords.per_unit, own)


def _named(lm: LanguageModel, embedder: Embedder | None) -> dict[str, str]:
    named = {"lm": f"{lm.name} {lm.digest}".strip()}
    if embedder is not None:
        named["embedder"] = f"{embedder.name} {embedder.digest}".strip()
    return named


def _assumptions(plan: PlanRecord, lm: LanguageModel, noise: Noise | None) -> tuple[str, ...]:
    where = f" ({lm.placed})" if lm.placed else ""
    found = [
        f"A document's votes do not depend on the other documents in its batch: tested bit for bit before the run, "
        f"with {lm.name}{where}.",
        "OpenDP samples the noise it documents; the process and the machine that ran it were the operator's own.",
        "Form, task, word list, prompts and all parameters were fixed without looking at the collection.",
        "A unit id names one unit; whoever appears in another unit's documents is not protected there.",
        "The language model was not trained on the collection.",
        "The collection's other releases are all in the same ledger; those elsewhere add to this cost.",
    ]
    if not _is_real(noise):
        found.insert(
            0, f"{folder.VOID} the noise came from {type(noise).__name__}, a test's stand-in, so nothing is guaranteed."
        )
    if plan.keywords.extractor == "lm":
        found.append("The language model extracts keywords from each document alone, in fixed shapes.")
    return tuple(found)


def public_inputs(plan: PlanRecord) -> dict[str, str]:
    """Return the sha256 of all that was declared public: word list, lemmas, form, task, prompts, questions."""
    known = word_list(plan.keywords.word_list)
    shown = prompts.document_prompt(plan, "")
    form = plan.text.form.model_dump_json() if plan.text.form else ""
    parts = {
        "word list": known.sha256,
        "lemmas": _sha256("\n".join(lemma(word) for word in known.words)),
        "form": _sha256(form),
        "task": _sha256(plan.task),
        "prompt": _sha256("\0".join((shown.before, shown.after, shown.reply))),
        "form proposal": _sha256(forms.PROPOSAL),
        "prose": _sha256(prompts.PROSE_BEFORE),
        "self-filter": _sha256(json.dumps(selffilter.QUESTIONS, sort_keys=True)),
    }
    return dict(sorted(parts.items()))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _software() -> dict[str, str]:
    found = {}
    for package in ("stillroom", "opendp", "torch", "transformers"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


__all__ = ["abandon", "public_inputs", "rehearse", "release", "run_folder"]
