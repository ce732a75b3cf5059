"""What whole runs need: a home of their own for the unit registry, and small disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.privacy.conftest import fill, tiny_disk

__all__ = ["fill", "tiny_disk"]


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the units of every test to itself."""
    place = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("STILLROOM_HOME", str(place))
    return place
