"""stillroom verify: exit code 0 for a release as it was written, 4 for any other, 2 for none at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_app import ROOT, run
from tests.releases import made


def test_a_release_in_order_is_said_to_be_so_with_its_meaning_and_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = made(tmp_path / "a")
    assert run("verify", str(release.path)) == 0
    out = capsys.readouterr().out
    assert release.certificate.meaning in out
    assert "add or remove all documents of one unit" in out
    assert "No such check can prove" in out


def test_json_holds_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = made(tmp_path / "a")
    assert run("verify", str(release.path), "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] is True
    assert shown["epsilon"] == release.certificate.epsilon
    assert len(shown["cannot_prove"]) > 4


def test_a_changed_release_exits_4_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = made(tmp_path / "a").path / "texts.jsonl"
    file.write_text(file.read_text().replace("Giggle", "Goggle"))
    assert run("verify", str(tmp_path / "a")) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert "texts.jsonl has another sha256" in err
    assert err.count("\n") == 1


def test_another_head_exits_4(tmp_path: Path) -> None:
    made(tmp_path / "a")
    assert run("verify", str(tmp_path / "a"), "--ledger-head", "cd" * 32) == 0
    assert run("verify", str(tmp_path / "a"), "--ledger-head", "00" * 32) == 4


def test_no_folder_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", str(tmp_path / "no")) == 2
    assert "check the path" in capsys.readouterr().err


def test_the_base_install_is_enough(tmp_path: Path) -> None:
    made(tmp_path / "a")
    blocked = "torch transformers sentence_transformers numpy scipy bm25s opendp"
    source = (
        f"import sys\nfor name in '{blocked}'.split():\n    sys.modules[name] = None\n"
        f"from stillroom.cli.app import main\nmain(['verify', {str(tmp_path / 'a')!r}])"
    )
    end = subprocess.run(
        [sys.executable, "-c", source], env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True
    )
    assert end.returncode == 0, end.stderr
