"""Signs in place of letters and digits, and words pulled apart: nobody else reads them, so the whole run goes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

from stillroom.guard.detect.base import Detector
from stillroom.guard.spans import Span

_LETTERS = (range(0x2800, 0x2900), range(0x1F100, 0x1F200))
"""Signs that stand for letters and have no letter in NFKC: Braille, letters in squares and circles, of flags."""

_RUN = 60
"""Characters to each side that go with a sign, as far as the next blank."""

_TAG = r"(?:\s{0,2}</?[a-z][^<>]{0,40}>\s{0,2}){1,4}"
_APART = re.compile(
    # Single letters with signs, blanks or tags between them: "n g o z i", "N-g-o", <td>M</td><td>a</td>.
    rf"(?<![^\W_])(?<![^\W_]['’])(?!(?:i\.e|e\.g|[ap]\.m)\b)[^\W\d_](?:(?:[^\w<>]|_){{1,4}}[^\W\d_](?![^\W_])|{_TAG}[^\W\d_](?![^\W_])){{2,80}}",
    re.IGNORECASE,
)


class DisguiseDetector(Detector):
    """Finds numbers and letters that are neither digits nor letters to Unicode, and runs of single letters."""

    name = "disguise"

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return runs without a blank that hold such a sign, and three or more single letters in a row."""
        return [list(self._spans(sentence)) for sentence in sentences]

    def _spans(self, sentence: str) -> Iterator[Span]:
        if not sentence.isascii():
            end = 0
            for i, c in enumerate(sentence):
                if i >= end and _is_sign(c):
                    start, end = _run(sentence, i, end)
                    yield Span(start, end, "unknown", self.name, 1.0)
        for match in _APART.finditer(sentence):
            yield Span(match.start(), match.end(), "unknown", self.name, 1.0)


def _run(sentence: str, at: int, least: int) -> tuple[int, int]:
    start, end = at, at + 1
    while start > max(least, at - _RUN) and not sentence[start - 1].isspace():
        start -= 1
    while end < min(len(sentence), at + _RUN) and not sentence[end].isspace():
        end += 1
    return start, end


@cache
def _is_sign(c: str) -> bool:
    return unicodedata.category(c) in ("No", "Nl") or any(ord(c) in letters for letters in _LETTERS)
