"""Answers from a release, or from documents behind a guard."""

from __future__ import annotations

from stillroom.rag.guarded import GuardedRag, Sanitiser
from stillroom.rag.reading import NOTHING, Answer, Passage
from stillroom.rag.release import Rag

__all__ = ["NOTHING", "Answer", "GuardedRag", "Passage", "Rag", "Sanitiser"]
