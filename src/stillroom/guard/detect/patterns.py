"""What has a form of its own: addresses of the web and of streets, dates, ages, amounts, labelled and spelled values.

The patterns stand in patterns.txt. Coverage comes before precision; what
a pattern takes too much is replaced, what all miss is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from stillroom.errors import MissingExtra
from stillroom.guard.detect.base import Detector
from stillroom.guard.spans import Span

_FRAGMENT = re.compile("<([A-Z]+)>")


class PatternDetector(Detector):
    """Finds what its form or its label gives away."""

    name = "patterns"

    def __init__(self) -> None:
        self._patterns = _patterns()

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return every match of every pattern."""
        return [list(self._spans(sentence)) for sentence in sentences]

    def _spans(self, sentence: str) -> Iterator[Span]:
        for category, pattern, group in self._patterns:
            for match in pattern.finditer(sentence):
                start, end = match.span(group)
                if sentence[start : start + 1] != "[":
                    end = start + len(sentence[start:end].rstrip(" \t\n.,;:!?\"')]}"))
                if start < end:
                    yield Span(start, end, category, self.name, 1.0)


@cache
def _patterns() -> list[tuple[str, re.Pattern[str], int]]:
    """Return category, pattern and group of every line of patterns.txt."""
    text = (files("stillroom.guard.detect") / "patterns.txt").read_text(encoding="utf-8")
    fragments: dict[str, str] = {}
    found = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        if name.startswith(":"):
            fragments[name[1:]] = _FRAGMENT.sub(lambda match: fragments[match[1]], rest)
        else:
            group, _, pattern = rest.partition(" ")
            whole = _FRAGMENT.sub(lambda match: fragments[match[1]], pattern)
            found.append((name, re.compile(whole, re.I | re.M), int(group)))
    return found


class UserPatterns(Detector):
    """Finds what a policy's own regular expressions match.

    A pattern that takes longer than `seconds` for a sentence fails, so that the sentence is withheld. Raises
    MissingExtra without the package regex, whose matching can be stopped.
    """

    name = "policy patterns"

    def __init__(self, patterns: Mapping[str, Sequence[str]], seconds: float = 0.5) -> None:
        try:
            import regex
        except ImportError as error:
            raise MissingExtra("a policy with patterns", "guard") from error
        self._patterns = [(category, regex.compile(p)) for category, several in patterns.items() for p in several]
        self._seconds = seconds

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return every match that is not empty. Raises TimeoutError when a pattern takes too long."""
        found: list[list[Span]] = []
        for sentence in sentences:
            spans = []
            for category, pattern in self._patterns:
                for match in pattern.finditer(sentence, timeout=self._seconds):
                    if match.start() < match.end():
                        spans.append(Span(match.start(), match.end(), category, self.name, 1.0))
            found.append(spans)
        return found
