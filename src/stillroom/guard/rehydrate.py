"""Values back in place of placeholders, for those who may read them, and only in plain prose, which nothing acts on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_ANY = re.compile(r"\[[A-Z_]+_\d+\]")
_PLACEHOLDER = re.compile(r"(?<![^\s\"'“‘])\[[A-Z_]+_\d+\](?=(?:['’]s)?[.,;:!?\"'”’]*(?:\s|\Z))")
"""One that stands among words: glued to other signs ("example.org/[PERSON_1]") it could be part of an address."""

_CITED = re.compile(r"(?<=\s)\[\d{1,3}\](?=[\s.,;]|\Z)")
_ORDINARY = re.compile(r"(?<=\w)/(?=\w)|(?<=\s)&(?=\s)|(?<=\d) ?%|[$€£¥](?=\d)")
"""Signs that prose has too, where it has them: "and/or", "Smith & Sons", "50 %", "$20"."""

_SIGNS = frozenset(".,;:!?'\"“”‘’…-–—•*")
_ADDRESS = re.compile(
    r"//|--\w"
    r"|[^\W_]\.[^\W\d_]{2,}"  # a name of the web without its scheme, an attribute
    r"|\b(?:mailto|data|tel|javascript|https?|ftp|file)\s*:",
    re.IGNORECASE,
)
_CALL = re.compile(
    r"\b(?:action|tool|function|invoke|command|argument|arg|parameter|param|payload|api|input|output|observation|url"
    r"|href|src|to|cc|bcc|recipient|body|query"
    r"|search|google|bing|browse|look ?up|follow[ -]?up|ask|message|msg|dm|hand[ -]?off|transfer|delegate"
    r"|send|e?mail|text|post|tweet|notify|forward|reply|call|fetch|get|put|run|execute|open|visit|write|save|store|upload"
    r"|share|print|log)s?(?:[ -]\w{1,20})?\s*:"  # how agents are told to call
    r"|\b(?-i:[a-z]+[A-Z])"  # sendMail
    r"|^[ \t]*(?:[-*•][ \t]*)?(?-i:[a-z][a-z0-9 -]{0,20}):(?=\s)"  # to: …, as YAML has its keys
    r"|^\W*[!@/]\w|\s-{1,2}\w\b(?=\s)",  # !dm bob, curl -d
    re.IGNORECASE | re.MULTILINE,
)
_HOST = re.compile(r"^www\.|^[^\s@]+\.[^\W\d_]{2,}$", re.IGNORECASE)
"""A value that is an address of the web; one of mail may come back."""
_ACTIVE = re.compile(r"[\[\]<>{}`|\\=]|://")
"""What a value must not bring along: it came from a document, and nobody knows who wrote that."""


def rehydrated(text: str, values: Mapping[str, str]) -> str:
    """Return the text with values in place of their placeholders; the text as it is where something may act on it.

    A link, an image, code or a call of a tool could carry a value away, and nobody can list all the ways in which they
    are written. So values are given back in plain prose alone: words and the signs between them. One bracket, tag,
    equals sign, address or "Action:" anywhere, and all placeholders stay.

    Args:
        values: by placeholder, such as "[PERSON_1]". One that could itself be a link or a call is left out.
    """
    if not _prose(text):
        return text

    def value(found: re.Match[str]) -> str:
        known = " ".join(values.get(found[0], "").split())
        bad = not known or _ACTIVE.search(known) or _CALL.search(known) or "/" in known or _HOST.search(known)
        return found[0] if bad else known

    return _PLACEHOLDER.sub(value, text)


def _prose(text: str) -> bool:
    """Say whether a text is made of words, and of signs that no reader but a person makes something of."""
    # In NFKC a full-width bracket is a bracket; a placeholder counts as a word.
    plain = unicodedata.normalize("NFKC", _ANY.sub("x", text))
    if _ADDRESS.search(plain) or _CALL.search(plain):
        return False
    rest = _ORDINARY.sub("", _CITED.sub("", plain))
    return all(c.isspace() or c in _SIGNS or unicodedata.category(c)[0] in "LMN" for c in rest)
