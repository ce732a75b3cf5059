"""A release folder is there whole or not at all, tells nothing but its contents, and opens only as it was sealed."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.errors import CertificateMismatch, FileMissing, OutputExists
from stillroom.guarantee import Guarantee
from stillroom.privacy.zcdp import epsilon_of
from stillroom.release.folder import FILES, Release, canonical, certify, check_free, meaning
from stillroom.release.schema import CERTIFICATE, TEXTS, TOPICS
from tests.releases import made, plan, statistics, texts


def state(folder: Path) -> dict[str, tuple[bytes, float, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime, p.stat().st_mode) for p in folder.iterdir()}


def test_what_was_written_is_what_is_read(tmp_path: Path) -> None:
    written = made(tmp_path / "a")
    read = Release.open(tmp_path / "a")
    assert read == written
    assert read.statistics == statistics()
    assert [(text.topic, text.part) for text in read.texts] == sorted((text.topic, text.part) for text in texts())


def test_the_folder_holds_three_files_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    made(tmp_path / "a")
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(FILES)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_bytes_times_and_modes_follow_from_the_contents_alone(tmp_path: Path) -> None:
    made(tmp_path / "a", texts=texts())
    before = os.umask(0o077)
    try:
        made(tmp_path / "b", texts=texts()[::-1])
    finally:
        os.umask(before)
    assert state(tmp_path / "a") == state(tmp_path / "b")
    for name in ("a", "b"):
        folder = (tmp_path / name).stat()
        assert folder.st_mtime == 315532800
        assert folder.st_mode & 0o777 == 0o755
    assert {(mtime, mode & 0o777) for _, mtime, mode in state(tmp_path / "a").values()} == {(315532800, 0o644)}


def test_json_has_sorted_keys_utf8_and_a_last_newline() -> None:
    assert canonical({"b": "ε\u2028", "a": 1.0}) == '{"a": 1.0, "b": "ε\u2028"}\n'.encode()
    with pytest.raises(ValueError, match="JSON"):
        canonical(math.nan)


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_nothing_that_is_there_is_overwritten(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "a"
    match kind:
        case "folder":
            out.mkdir()
        case "file":
            out.write_text("mine")
        case _:
            out.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputExists):
        made(out)
    with pytest.raises(OutputExists):
        check_free(out)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert out.is_symlink() or out.is_dir() or out.read_text() == "mine"


def test_a_missing_parent_is_told_before_anything_is_spent(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        check_free(tmp_path / "no" / "a")
    check_free(tmp_path / "a")


def test_what_a_crash_left_is_replaced_and_not_mixed_in(tmp_path: Path) -> None:
    left = tmp_path / ".a.writing"
    left.mkdir()
    (left / "half.jsonl").write_text("half")
    made(tmp_path / "a")
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(FILES)
    assert not left.exists()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Path, target: Path) -> Path:
        raise PermissionError(13, "no")

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(PermissionError):
        made(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


FULL = """
import pathlib, sys
from tests.releases import made, texts
from stillroom.errors import DiskFull
out = pathlib.Path(sys.argv[1])
try:
    made(out / "a", texts=[text.model_copy(update={"text": "word " * 20000}) for text in texts()])
except DiskFull as full:
    assert "No space left" in str(full)
    assert list(out.iterdir()) == [], list(out.iterdir())
    print("refused")
"""


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    small = "mount -t tmpfs -o size=64k tmpfs {0} && exec {1} -c '{2}' {0}"
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*inside, f"mount -t tmpfs tmpfs {tmp_path}"]).returncode:
        pytest.skip("no right to mount a small tmpfs here")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [*inside, small.format(tmp_path, sys.executable, FULL)], env=environment, capture_output=True, text=True
    )
    assert (run.stdout, run.returncode) == ("refused\n", 0), run.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_damaged_file_does_not_open(tmp_path: Path, name: str) -> None:
    made(tmp_path / "a")
    content = (tmp_path / "a" / name).read_bytes()
    for broken in (b"", content[:-1], content[: len(content) // 2], content + b"\n", b"\xff" + content, b"[" * 100_000):
        (tmp_path / "a" / name).write_bytes(broken)
        with pytest.raises(CertificateMismatch):
            Release.open(tmp_path / "a")
    (tmp_path / "a" / name).unlink()
    with pytest.raises(CertificateMismatch, match=f"{name} is missing"):
        Release.open(tmp_path / "a")


def test_a_changed_text_or_statistic_does_not_open(tmp_path: Path) -> None:
    made(tmp_path / "a")
    for name, old, new in ((TEXTS, "Giggle", "Goggle"), (TOPICS, "41.25", "41.26"), (CERTIFICATE, "clinic", "cliniq")):
        file = tmp_path / "a" / name
        kept = file.read_text()
        assert old in kept
        file.write_text(kept.replace(old, new))
        with pytest.raises(CertificateMismatch):
            Release.open(tmp_path / "a")
        file.write_text(kept)
    Release.open(tmp_path / "a")


def test_what_is_no_folder_does_not_open(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        Release.open(tmp_path / "no")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileMissing):
        Release.open(tmp_path / "file")


def test_the_certificate_says_what_the_events_cost() -> None:
    given = certify(plan(), run="r")
    assert given.epsilon == epsilon_of(given.rho, given.delta - given.delta_ps)
    assert 0 < given.delta_ps < given.delta
    assert given.guarantee == "dp"
    assert certify(plan(), run="r", rehearsal=True).guarantee == Guarantee.NONE.value


def test_the_meaning_is_one_sentence_with_the_numbers_and_above_ten_a_warning() -> None:
    at_ten = meaning(epsilon=10.0, delta=1e-6, unit="document", rehearsal=False)
    assert "22,027 times" in at_ten  # e^10 = 22,026.47, rounded up
    assert "δ = 1e-06" in at_ten
    assert "one document" in at_ten
    assert at_ten.count(". ") == 0
    above = meaning(epsilon=10.01, delta=1e-6, unit="patient_id", rehearsal=False)
    assert "Warning" in above
    assert "'patient_id'" in above
    assert above.count(". ") == 1
    assert "10^17.4 times" in meaning(epsilon=40.0, delta=1e-6, unit="document", rehearsal=False)
    assert "protects nobody" in meaning(epsilon=1.0, delta=1e-6, unit="document", rehearsal=True)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 4.605, 9.99, 29.9, 30.1, 80.0])
def test_the_factor_in_words_is_never_below_the_true_one(epsilon: float) -> None:
    words = meaning(epsilon=epsilon, delta=1e-6, unit="document", rehearsal=False)
    shown = words.split("e^ε = ")[1].split(" times")[0].replace(",", "")
    assert (10.0 ** float(shown[3:]) if shown.startswith("10^") else float(shown)) >= math.exp(epsilon)
