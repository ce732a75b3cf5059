"""Surrogates: another value of the same category, drawn from public pools whatever the value is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stillroom.errors import UnknownName
from stillroom.guarantee import Guarantee
from stillroom.guard.dictionaries import lines, pool
from stillroom.guard.dictionaries import tree as dictionary
from stillroom.guard.mechanisms.base import Mechanism, check_category
from stillroom.privacy.noise import Noise


class Surrogate(Mechanism):
    """Answers with an invented value of the category: ε is 0, as it is drawn independently of the value.

    It may by chance be equal to the value; then it stays, as drawing again would tell what the value is not. Nothing
    of it belongs to anybody: phones are 555-01xx, addresses of machines and mail lie in ranges kept for examples
    (RFC 2606, 5737), numbers of cards, accounts and offices begin as none that was ever given out, last names and towns
    are in no list.

    Raises: BadOption for what must never be swapped, UnknownName for a category without surrogates.
    """

    def __init__(self, category: str) -> None:
        check_category(category, "surrogate")
        if category not in FORMS:
            raise UnknownName("surrogate for the category", category, list(FORMS))
        self.category, self.epsilon, self.guarantee = category, 0.0, Guarantee.LDP_PER_VALUE
        self.version = "surrogate-2"

    def draw(self, value: str, noise: Noise) -> str:
        return FORMS[self.category](noise)


def pick(noise: Noise, pool: Sequence[str]) -> str:
    """Return one of the pool, all equally likely."""
    return pool[noise.choose(np.zeros(len(pool), dtype=np.int64), sensitivity=1, scale=1.0)]


def digits(noise: Noise, count: int, least: int = 0) -> str:
    """Return so many decimal digits of a number drawn from `least` on, all equally likely."""
    drawn = noise.choose(np.zeros(10**count - least, dtype=np.int64), sensitivity=1, scale=1.0)
    return str(drawn + least).zfill(count)


def mail_of(name: str) -> str:
    """Return the address that goes with a surrogate name."""
    return f"{user_of(name)}@example.org"


def user_of(name: str) -> str:
    """Return the user name that goes with a surrogate name."""
    return ".".join(name.lower().split())


def _person(noise: Noise) -> str:
    return f"{pick(noise, pool('first_names'))} {pick(noise, pool('last_names'))}"


def _organisation(noise: Noise) -> str:
    tree = dictionary("organisations")
    kinds = [node[-1] for node in tree.nodes if len(node) == 2]
    return f"{pick(noise, pool('last_names'))} {pick(noise, kinds).title()}"


def _country(noise: Noise) -> str:
    tree = dictionary("countries")
    return pick(noise, [node[-1] for node in tree.nodes if len(node) == 2])


def _street(noise: Noise) -> str:
    return f"{digits(noise, 2, 1).lstrip('0')} {pick(noise, pool('last_names'))} {pick(noise, STREETS)}"


def _ip(noise: Noise) -> str:
    # RFC 5737: for documentation; no machine has them.
    return f"{pick(noise, ('192.0.2', '198.51.100', '203.0.113'))}.{digits(noise, 2, 1).lstrip('0')}"


STREETS = ("Avenue", "Close", "Lane", "Road", "Row", "Street", "Terrace", "Way")
AREAS = ("202", "303", "404", "505", "606", "707", "808")

FORMS: dict[str, Callable[[Noise], str]] = {
    "account": lambda noise: f"0000{digits(noise, 3)}{digits(noise, 3)}",
    "address": lambda noise: f"{_street(noise)}, {pick(noise, pool('towns'))}",
    "card": lambda noise: f"0000 0000 {digits(noise, 4)} {digits(noise, 4)}",  # no network begins with 0
    "city": lambda noise: pick(noise, pool("towns")),
    "country": _country,
    "email": lambda noise: mail_of(_person(noise)),
    "iban": lambda noise: f"XX00 0000 {digits(noise, 4)} {digits(noise, 4)}",  # ISO 3166 keeps XX for private use
    "identity": _person,
    "ip": _ip,
    "licence": lambda noise: f"X0000{digits(noise, 4)}",
    "national_id": lambda noise: f"000-{digits(noise, 2)}-{digits(noise, 4)}",  # area 000 is never given out
    "organisation": _organisation,
    "person": _person,
    # 555-0100 to 555-0199 are kept for fiction by the North American Numbering Plan.
    "phone": lambda noise: f"{pick(noise, AREAS)}-555-01{digits(noise, 2)}",
    "postcode": lambda noise: f"00{pick(noise, '01234')}{digits(noise, 2)}",  # those of the USA begin at 00501
    "profession": lambda noise: pick(noise, pool("jobs")),
    "record_number": lambda noise: f"X-{digits(noise, 3)}{digits(noise, 3)}",
    "url": lambda noise: f"https://example.org/{pick(noise, pool('last_names')).lower()}",
    "username": lambda noise: user_of(_person(noise)),
}
"""How a surrogate of each category is drawn. The forms are public and the same for all values of a category."""

INVENTED = frozenset(lines("last_names")) | frozenset(lines("towns"))
"""The names in surrogates that stand in no list: what an evaluation may take for a surrogate's."""
