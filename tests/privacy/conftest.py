"""An installation of its own for every test, and a folder with next to no space, for tests of a full disk."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test notes units where another one, or the machine's user, has them."""
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "installation"))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real tmpfs of 512 KiB."""
    with disk(tmp_path / "tiny", "512k") as folder:
        yield folder


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a real tmpfs of a size, or skip the test where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def fill() -> Callable[[Path], Path]:
    """Fills the disk of a folder to the last byte and returns the file that does it."""
    return _fill


def _fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            while True:
                try:
                    file.write(b"x" * size)
                except OSError:
                    break
    return filler
