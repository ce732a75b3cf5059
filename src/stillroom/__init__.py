"""Distil a private collection once, guard every query, keep the books.

The public surface; everything is imported when it is first used, so that the base install stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stillroom.distil.plan import plan
    from stillroom.distil.run import rehearse
    from stillroom.distil.run import release as distil
    from stillroom.documents import Document, Documents
    from stillroom.errors import StillroomError
    from stillroom.guard.strict import Guard
    from stillroom.privacy.ledger import Ledger
    from stillroom.rag import Rag
    from stillroom.readers import read
    from stillroom.release.folder import Release
    from stillroom.release.verify import verify

_PLACES = {
    "Document": ("stillroom.documents", "Document"),
    "Documents": ("stillroom.documents", "Documents"),
    "Guard": ("stillroom.guard.strict", "Guard"),
    "Ledger": ("stillroom.privacy.ledger", "Ledger"),
    "Rag": ("stillroom.rag", "Rag"),
    "Release": ("stillroom.release.folder", "Release"),
    "StillroomError": ("stillroom.errors", "StillroomError"),
    "distil": ("stillroom.distil", ""),
    "plan": ("stillroom.distil.plan", "plan"),
    "read": ("stillroom.readers", "read"),
    "rehearse": ("stillroom.distil.run", "rehearse"),
    "verify": ("stillroom.release.verify", "verify"),
}

__all__ = [  # sorted as _PLACES is
    "Document",
    "Documents",
    "Guard",
    "Ledger",
    "Rag",
    "Release",
    "StillroomError",
    "distil",
    "plan",
    "read",
    "rehearse",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'stillroom' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    found = importlib.import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value
