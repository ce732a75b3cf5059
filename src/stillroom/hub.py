"""Whether a hub of models answers: its client would try for half a minute, and say so in lines of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

DEFAULT, PATIENCE = "https://huggingface.co", 3.0
"""Where a hub is looked for, and seconds that it has to answer."""


def only_here(model: Path | str, environ: Mapping[str, str] = os.environ) -> bool:
    """Say whether a model is to be looked for on this machine alone: it is a folder here, or no hub answers."""
    return Path(model).is_dir() or not reachable(environ)


def reachable(environ: Mapping[str, str] = os.environ) -> bool:
    """Say whether the hub of this environment (HF_ENDPOINT, HF_HUB_OFFLINE) answers anything."""
    if environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        return False
    import httpx

    try:
        httpx.head(environ.get("HF_ENDPOINT", DEFAULT), timeout=PATIENCE)
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return True
