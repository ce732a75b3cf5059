"""Text as every step sees it: one normal form, words, sentences, chunks of a public length.

Every function depends on its text alone, takes time linear in its length (no pattern here can backtrack over a run),
and never fails, whatever the text holds. Pure standard library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

LONGEST_PIECE = 40
"""Characters without a blank that count as one word when a length is measured; longer runs count as several."""

_MARKS_KEPT = 30
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u2032\uff07`", "''''''")
_LINE_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BLANKS = re.compile(r" \s+|[^\S ]\s*")  # all but a single space
_PIECE = re.compile(rf"\S{{1,{LONGEST_PIECE}}}")
_SENTENCE_END = re.compile("[.!?…。！？]+[\"'”’»)\\]*]*|\n\\s*")
_CJK_STOPS = "。！？"
_ABBREVIATION = re.compile(
    "dr|mr|mrs|ms|prof|st|no|nr|vs|etc|approx|dept|fig|e\\.g|i\\.e|a\\.m|p\\.m|pt|hr|wt|ht|inc|ltd|jr|sr|rev|gen|cf|vol|pp"
)


class Word(NamedTuple):
    """A word and where it stands in `normalise(text)`: that text's [start:end] is the form as written."""

    text: str
    start: int
    end: int


def normalise(text: str) -> str:
    """Return the text in NFKC without control, zero-width and bidirectional characters; line breaks become \\n.

    Tabs stay. Lone surrogates become U+FFFD, so that the result can always be encoded. Of a run of combining marks
    the first 30 are kept (Unicode's stream-safe limit): sorting a longer one takes quadratic time. Applying it twice
    changes nothing more.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_BREAKS.sub("\n", text)
    if not text.isascii():
        # Removing a zero-width character can bring a letter and its mark together, so removal comes first;
        # composing can only shorten what is left, but a decomposition may hold a removable character.
        text = _long_marks().sub(r"\1", _removed().sub("", _surrogates().sub("\ufffd", text)))
        text = unicodedata.normalize("NFKC", text)
        text = unicodedata.normalize("NFKC", _long_marks().sub(r"\1", text))
    return _removed().sub("", text)


def words(text: str) -> list[str]:
    """Return the words of a text, lower-case, in order, repeats kept.

    A word is a run of letters (any script, accents and other marks included) and digits that holds at least one
    letter: "b12" is a word, "2024" is not. Hyphens, underscores, dots and slashes part words ("post-incident" is
    two), as word lists hold the parts. An apostrophe between letters stays inside ("don't", "o'brien"), written as ';
    a closing 's is dropped ("patient's" is "patient").
    """
    if text.isascii() and text.isalpha():
        return [text.lower()]
    # Without places, in half the time: every document of a collection goes through here, more than once.
    forms = _word().findall(_straight(text))
    return [word.lower() for form in forms if (word := form if form.isalpha() else _lettered(form))]


def words_with_spans(text: str) -> Iterator[Word]:
    """Yield the words of a text, as `words` has them, each with its place in `normalise(text)`."""
    for match in _word().finditer(_straight(text)):
        form, start = match[0], match.start()
        if word := form if form.isalpha() else _lettered(form):
            yield Word(word.lower(), start, start + len(word))


def _lettered(form: str) -> str:
    """Return a form without its closing 's; nothing where no letter is left."""
    form = form[:-2] if form.endswith(("'s", "'S")) else form
    return form if any(map(str.isalpha, form)) else ""


def _straight(text: str) -> str:
    """Return `normalise(text)` with all apostrophes written as '; no character moves."""
    plain = normalise(text)
    return plain.replace("`", "'") if plain.isascii() else plain.translate(_APOSTROPHES)


def sentences(text: str) -> list[str]:
    """Return the sentences of `normalise(text)`, stripped, none empty.

    A sentence ends at . ! ? … before a blank, or at an empty line. Known abbreviations ("Dr.", "e.g."), single
    letters ("J. Doe") and numbers that open a line ("2. Rest") do not end one.
    """
    plain = normalise(text)
    return [plain[start:end] for start, end in sentence_spans(plain)]


def sentence_spans(plain: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a normalised text stand: `plain[start:end]` is what `sentences` returns."""
    ends = [*_sentence_ends(plain), len(plain)]
    for start, end in zip([0, *ends], ends, strict=False):
        part = plain[start:end]
        if kept := part.strip():
            first = start + len(part) - len(part.lstrip())
            yield first, first + len(kept)


def chunks(text: str, words: int) -> list[str]:
    """Return the text cut into chunks of at most `words` blank-separated words; no words, no chunks.

    A chunk ends at the last sentence end in its second half where there is one, else where the length is reached.
    A run of more than 40 characters counts as several words and may be cut inside, so a chunk has at most 42 × `words`
    characters. Blanks are made single; line breaks and empty lines stay as one or two \\n.
    """
    if words < 1:
        raise ValueError(f"a chunk of {words} words")
    plain = _BLANKS.sub(_single_blank, normalise(text)).strip()
    pieces = plain.split()
    if len(pieces) <= words and all(len(piece) <= LONGEST_PIECE for piece in pieces):
        return [plain] if pieces else []
    spans = [match.span() for match in _PIECE.finditer(plain)]
    stops = set(_sentence_ends(plain))
    # A piece closes a sentence when the next one starts at (or behind the blanks of) a sentence end.
    closes = [b[0] in stops for b in spans[1:]] + [True]
    found, first = [], 0
    while first < len(spans):
        last = min(first + words, len(spans)) - 1
        if last + 1 < len(spans):
            last = next((i for i in range(last, first + words // 2 - 1, -1) if closes[i]), last)
        found.append(plain[spans[first][0] : spans[last][1]])
        first = last + 1
    return found


def _single_blank(match: re.Match[str]) -> str:
    breaks = match[0].count("\n")
    return "\n\n" if breaks > 1 else "\n" if breaks else " "


def _sentence_ends(plain: str) -> Iterator[int]:
    """Yield where each next sentence starts (its first character that is not blank)."""
    for match in _SENTENCE_END.finditer(plain):
        end = match.end()
        if match[0][0] == "\n":
            if match[0].count("\n") > 1:
                yield end
        elif end == len(plain) or plain[end].isspace() or match[0][0] in _CJK_STOPS:
            if match[0] == "." and _goes_on(plain, match.start()):
                continue
            while end < len(plain) and plain[end].isspace():
                end += 1
            yield end


def _goes_on(plain: str, dot: int) -> bool:
    """Say whether the full stop at `dot` belongs to an abbreviation, an initial or a list number."""
    start = dot
    while start > 0 and dot - start < 8 and (plain[start - 1].isalnum() or plain[start - 1] == "."):
        start -= 1
    before = plain[start:dot]
    if before.isdigit():
        return start == 0 or plain[start - 1] == "\n"
    return (len(before) == 1 and before.isalpha()) or _ABBREVIATION.fullmatch(before.lower()) is not None


@cache
def _removed() -> re.Pattern[str]:
    """Control and format characters (NUL, zero-width, bidi) except tab and line feed, and letters without ink."""
    controls = _class("Cc", "Cf", but="\t\n")
    return re.compile(f"[{controls}\u115f\u1160\u3164\uffa0\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef]")


@cache
def _surrogates() -> re.Pattern[str]:
    return re.compile("[\ud800-\udfff]")


@cache
def _word() -> re.Pattern[str]:
    # In runs, not character by character: the same words in half the time.
    inner = rf"[^\W_](?:[^\W_]++|[{_class('Mn', 'Mc')}]++)*+"
    return re.compile(rf"{inner}(?:'{inner})*+")


@cache
def _long_marks() -> re.Pattern[str]:
    marks = _ranges([c for c in range(0x300, 0x1F000) if unicodedata.combining(chr(c))])
    return re.compile(f"([{marks}]{{{_MARKS_KEPT}}})[{marks}]+")


def _class(*categories: str, but: str = "") -> str:
    last = [*range(0x1F000), *range(0xE0000, 0xE0200)]  # nothing of these categories stands between the two
    return _ranges([c for c in last if unicodedata.category(chr(c)) in categories and chr(c) not in but])


def _ranges(points: list[int]) -> str:
    """Return the inside of a character class for sorted code points."""
    found: list[list[int]] = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in found)
