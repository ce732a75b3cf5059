"""What whole runs need: a home of their own for the unit registry, and small disks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.privacy.conftest import disk, fill

__all__ = ["fill"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real tmpfs of 8 MiB: room for a small run."""
    with disk(tmp_path / "small", "8m") as folder:
        yield folder


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the units of every test to itself."""
    place = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("STILLROOM_HOME", str(place))
    return place
