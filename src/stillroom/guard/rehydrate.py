"""Values back in place of placeholders, for those who may read them, and only where a reader alone will see them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_KEPT_OUT = re.compile(
    r"```.*?(?:```|\Z)"  # code, where tools find their arguments
    r"|~~~.*?(?:~~~|\Z)"
    r"|`[^`]*`"
    r"|<[^<>]*>"  # tags with their attributes, links in angle brackets
    r"|!?\[(?:\[[A-Z_]+_\d+\]|[^\[\]])*\][(\[](?:\[[A-Z_]+_\d+\]|[^()\[\]])*[)\]]"  # links and images of Markdown
    r"|^[ \t]*\[[^\[\]]+\]:[^\n]*"  # and their targets elsewhere
    r"|\{(?:[^{}]|\{[^{}]*\})*\}?"  # objects, as tools are called with
    r"|\S*(?:://|\bwww\.|\bmailto:|\bdata:|\btel:|\bjavascript:)\S*",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
"""Stretches that something may act on: it could carry a value away."""

_PLACEHOLDER = re.compile(r"(?<![^\s(\"'“‘])\[[A-Z_]+_\d+\](?=(?:['’]s)?[.,;:!?)\"'”’]*(?:\s|\Z))")
"""One that stands among words: glued to other signs ("example.org/[PERSON_1]") it could be part of an address."""

_ACTIVE = re.compile(r"[\[\]<>{}`|]|://")
"""What a value must not bring along: it came from a document, and nobody knows who wrote that."""


def rehydrated(text: str, values: Mapping[str, str]) -> str:
    """Return the text with values in place of their placeholders, except where something may act on them.

    Args:
        values: by placeholder, such as "[PERSON_1]". One that could itself be a link or a tag is left out.
    """
    parts: list[str] = []
    at = 0
    for out in _KEPT_OUT.finditer(text):
        parts += [_given_back(text[at : out.start()], values), out[0]]
        at = out.end()
    return "".join([*parts, _given_back(text[at:], values)])


def _given_back(text: str, values: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        known = values.get(found[0])
        return found[0] if known is None or _ACTIVE.search(known) else known

    return _PLACEHOLDER.sub(value, text)
