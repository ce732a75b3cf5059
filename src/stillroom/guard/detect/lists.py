"""Public lists: medical words, countries and peoples, states, towns, names of people, and words that are names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files

from stillroom import lexicon
from stillroom.errors import MissingExtra

_MORE = [
    "az_AZ", "cs_CZ", "da_DK", "en_IE", "en_KE", "en_NG", "en_NZ", "en_PK", "es_AR", "es_MX", "et_EE", "fi_FI",
    "fr_CA", "fr_QC", "ga_IE", "ha_NG", "hr_HR", "hu_HU", "id_ID", "ig_NG", "lt_LT", "lv_LV", "nl_NL", "no_NO",
    "pl_PL", "pt_BR", "pt_PT", "ro_RO", "sk_SK", "sl_SI", "sv_SE", "sw", "tr_TR", "tw_GH", "uz_UZ", "vi_VN",
    "yo_NG", "zu_ZA",
]  # fmt: skip
"""Locales of Faker whose names are no words of English, or rare ones."""
_RARE = 3.8
"""Public frequency from which such a name counts as a word."""
KNOWN = 2.0
"""Public frequency (`lexicon.zipf`) from which a word counts as English."""


@cache
def medical() -> dict[str, list[str]]:
    """Return the public medical lists by kind; each line of the file is "kind: phrase, phrase"."""
    found: dict[str, list[str]] = {}
    text = (files("stillroom.guard.detect") / "medical.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            kind, _, phrases = line.partition(":")
            found.setdefault(kind, []).extend(phrase.strip() for phrase in phrases.split(",") if phrase.strip())
    return found


@cache
def countries() -> frozenset[str]:
    """Return the public names of countries, lower-case. Raises MissingExtra without faker."""
    try:
        from faker.providers.address.en import Provider
    except ImportError as error:
        raise MissingExtra("the list of countries", "guard") from error
    plain = (name.partition(" (")[0].lower() for name in Provider.countries)
    return frozenset(plain) | {"usa", "uk", "united states", "russia", "england", "scotland", "wales"}


@cache
def states() -> frozenset[str]:
    """Return the names of the states of the USA and the provinces of Canada, lower-case. Raises MissingExtra."""
    try:
        from faker.providers.address import en_CA, en_US
    except ImportError as error:
        raise MissingExtra("the list of states", "guard") from error
    return frozenset(name.lower() for name in (*en_US.Provider.states, *en_CA.Provider.provinces))


@cache
def nationalities() -> frozenset[str]:
    """Return words for people of a country, lower-case: formed from its name where English knows the form."""
    text = (files("stillroom.guard.detect") / "nationalities.txt").read_text(encoding="utf-8")
    found = {word for line in text.splitlines() if not line.startswith("#") for word in line.split()}
    for name in countries():
        for stem in (name, name[:-1], name[:-2]):
            if len(stem) >= 4 and " " not in stem:
                found.update(form for e in ("n", "an", "ian", "ese") if lexicon.zipf(form := stem + e) >= 2)
    return frozenset(found)


@cache
def name_words() -> frozenset[str]:
    """Return common words of English that are names as well, lower-case."""
    text = (files("stillroom.guard.detect") / "name_words.txt").read_text(encoding="utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


@cache
def towns() -> frozenset[str]:
    """Return the towns of the public tree of places whose name is one word, lower-case."""
    text = (files("stillroom.guard.dictionaries") / "places.txt").read_text(encoding="utf-8")
    last = (line.rpartition("\t")[2].lower() for line in text.splitlines() if not line.startswith("#"))
    return frozenset(town for town in last if town.isalpha())


@cache
def names() -> frozenset[str]:
    """Return common given and family names of people, lower-case, from public lists. Raises MissingExtra."""
    return _names_of(("en_US", "en_GB", "en_IN", "de_DE", "es_ES", "fr_FR", "it_IT"))


@cache
def rare_names() -> frozenset[str]:
    """Return names of people of many more countries, lower-case, but for those that English knows well as words."""
    return frozenset(name for name in _names_of(_MORE) if len(name) >= 3 and lexicon.zipf(name) < _RARE)


def _names_of(locales: Sequence[str]) -> frozenset[str]:
    found: set[str] = set()
    try:
        for locale in locales:
            provider = import_module(f"faker.providers.person.{locale}").Provider
            for field in ("first_names", "first_names_male", "first_names_female", "last_names"):
                found.update(name.lower() for name in getattr(provider, field, ()))
    except ImportError as error:
        raise MissingExtra("the list of names", "guard") from error
    return frozenset(found)
