"""stillroom ask: a question, answered from a release for free, or from documents behind the guard."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stillroom import readers
from stillroom.cli.guard_options import Caller, KeyFile, LedgerFile, PolicyName, Role
from stillroom.cli.progress import showing
from stillroom.errors import BadOption, FileMissing
from stillroom.loading import EMBEDDER, LM, load_embedder, load_lm
from stillroom.rag import Answer, Rag
from stillroom.release.folder import Release
from stillroom.release.inspect import printable

app = typer.Typer()


class Source(StrEnum):
    """What a question is answered from."""

    release = "release"
    raw = "raw"


@app.command("ask")
def ask(
    source_path: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A release folder; with --source raw, a vault or a collection.")
    ],
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask, in quotes.")],
    source: Annotated[Source, typer.Option(help="A release, or raw documents behind the guard.")] = Source.release,
    policy: PolicyName = "clinic",
    ledger: LedgerFile = None,
    key: KeyFile = None,
    unit: Annotated[str | None, typer.Option(help="Of a raw collection: the field with whom one is about.")] = None,
    text_field: Annotated[str | None, typer.Option(help="Of a raw collection: the field with the text.")] = None,
    fallback: Annotated[
        Path | None, typer.Option(metavar="RELEASE", help="Answers where an account of the guard is empty.")
    ] = None,
    caller: Caller = "local",
    role: Role = None,
    lm: Annotated[
        str, typer.Option(help="Language model: a name, a folder, a .gguf file, a hub id, or https://address/v1#model.")
    ] = LM,
    embedder: Annotated[str, typer.Option(help="Embedder: a name, a folder or a hub id.")] = EMBEDDER,
    top_k: Annotated[int, typer.Option(min=1, help="How many texts to read at most.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Answer a question, naming the texts used: from a release, which spends nothing, or from guarded documents."""
    if source is Source.raw:
        raw = _Raw(source_path, policy, ledger, key, unit, text_field, fallback)
        answer = _guarded(raw, question, caller, role, lm, embedder, top_k)
    else:
        if source_path.is_file():
            raise BadOption("--source", "release", "raw for a vault or a collection: add --source raw")
        opened = Release.open(source_path)
        with showing() as progress:
            progress.stage("loading the models", None)
            rag = Rag(opened, load_lm(lm), load_embedder(embedder), top_k=top_k)
            progress.stage("answering", None)
            answer = rag.ask(question)
    typer.echo(_json(answer) if as_json else _text(answer))


@dataclass(frozen=True)
class _Raw:
    path: Path
    policy: str
    ledger: Path | None
    key: Path | None
    unit: str | None
    text_field: str | None
    fallback: Path | None


def _guarded(raw: _Raw, question: str, caller: str, role: str | None, lm: str, embedder: str, top_k: int) -> Answer:
    from stillroom.guard.keys import Key
    from stillroom.guard.strict import Guard
    from stillroom.privacy.ledger import Ledger

    if not raw.path.exists():
        raise FileMissing(raw.path)
    with ExitStack() as stack:
        book = None if raw.ledger is None else stack.enter_context(Ledger.open(raw.ledger))
        key = None if raw.key is None else Key.load(raw.key)
        vault = raw.path if _is_database(raw.path) else None
        progress = stack.enter_context(showing())
        progress.stage("loading the models", None)
        model = load_lm(lm)
        guard = Guard(raw.policy, ledger=book, key=key, vault=vault, embedder=load_embedder(embedder))
        stack.enter_context(guard)
        if vault is None:
            progress.stage("reading the documents", None)
            documents = readers.read(raw.path, text=raw.text_field, unit=raw.unit)
            for _ in guard.ingest(documents):
                pass
        rag = Rag.over_documents(guard, model, top_k=top_k, fallback=raw.fallback)
        progress.stage("answering", None)
        return rag.ask(question, caller=caller, role=role)


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _text(answer: Answer) -> str:
    cited = [passage for passage in answer.passages if passage.id in answer.citations]
    lines = [answer.text, *(f"  [{each.number}] {each.id}: {each.text}" for each in cited)]
    lines += [f"note: {note}" for note in answer.notes]
    if answer.receipt is None:
        lines.append(f"guarantee: {answer.guarantee.value}; spent: nothing")
    else:
        lines += answer.receipt.says().splitlines()
        if answer.guarantee is not answer.receipt.guarantee:
            lines.append(f"guarantee of this answer: {answer.guarantee.value}")
    return "\n".join(printable(line.replace("\n", "; ") if line.startswith("  [") else line) for line in lines)


def _json(answer: Answer) -> str:
    shown = {
        "answer": answer.text,
        "citations": answer.citations,
        "passages": [
            {"number": each.number, "id": each.id, "topic": each.topic, "text": each.text, "score": each.score}
            for each in answer.passages
        ],
        "guarantee": answer.guarantee.value,
        "spent": answer.spent,
        "notes": answer.notes,
        **({} if answer.receipt is None else {"receipt": answer.receipt.plain()}),
    }
    return json.dumps(shown, ensure_ascii=False, indent=2)
