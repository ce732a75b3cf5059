"""stillroom ask: a question, answered from a release for free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stillroom.cli.progress import showing
from stillroom.loading import EMBEDDER, LM, load_embedder, load_lm
from stillroom.rag import Answer, Rag
from stillroom.release.folder import Release
from stillroom.release.inspect import printable

app = typer.Typer()


@app.command("ask")
def ask(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The release folder.")],
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask, in quotes.")],
    lm: Annotated[
        str, typer.Option(help="Language model: a name, a folder, a .gguf file, a hub id, or https://address/v1#model.")
    ] = LM,
    embedder: Annotated[str, typer.Option(help="Embedder: a name, a folder or a hub id.")] = EMBEDDER,
    top_k: Annotated[int, typer.Option(min=1, help="How many texts of the release to read at most.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Answer a question from a release alone, naming the texts used. It spends nothing, however often it is asked."""
    opened = Release.open(release)
    with showing() as progress:
        progress.stage("loading the models", None)
        rag = Rag(opened, load_lm(lm), load_embedder(embedder), top_k=top_k)
        progress.stage("answering", None)
        answer = rag.ask(question)
    typer.echo(_json(answer) if as_json else _text(answer))


def _text(answer: Answer) -> str:
    cited = [passage for passage in answer.passages if passage.id in answer.citations]
    lines = [answer.text, *(f"  [{each.number}] {each.id}: {each.text}" for each in cited)]
    lines += [f"note: {note}" for note in answer.notes]
    lines.append(f"guarantee: {answer.guarantee.value}; spent: nothing")
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
    }
    return json.dumps(shown, ensure_ascii=False, indent=2)
