"""Threads are told to wait patiently before torch comes, and never against the user's word."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from stillroom.threads import wait_patiently

SOURCE = Path(__file__).parents[2] / "src" / "stillroom"


def test_nothing_set_means_patience() -> None:
    environ: dict[str, str] = {}
    wait_patiently(environ)
    assert environ == {"GOMP_SPINCOUNT": "1000"}


@pytest.mark.parametrize("given", [{"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "ACTIVE"}])
def test_what_the_user_has_set_stays(given: dict[str, str]) -> None:
    environ = dict(given)
    wait_patiently(environ)
    assert environ == given


@pytest.mark.parametrize("file", ["lm/huggingface.py", "models/gguf.py", "embed/sentence.py"])
def test_every_file_through_which_torch_comes_tells_it_first(file: str) -> None:
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    told = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "wait_patiently"
    ]
    brought = [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(name.name == "torch" for name in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "sentence_transformers")
    ]
    assert told and brought
    assert min(told) < min(brought)
