"""Models by name: packaged small ones, local folders, GGUF files, hub ids."""

from stillroom.models.cache import Cached, check, default_cache, digest, known, pull, resolve, verify
from stillroom.models.registry import ENTRIES, Entry

__all__ = ["ENTRIES", "Cached", "Entry", "check", "default_cache", "digest", "known", "pull", "resolve", "verify"]
