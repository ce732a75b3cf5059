"""Made-up people: names, phone numbers and record numbers that stand for nobody, each once a collection."""

from __future__ import annotations

import random
from dataclasses import dataclass

from stillroom.errors import BadOption


def _each(text: str) -> tuple[str, ...]:
    return tuple(text.split())


WOMEN = _each(
    "Adele Agnes Amara Annika Beatriz Bridget Carmen Celeste Dagmar Daphne Eleni Esther Farida Frances Gudrun Helga "
    "Imogen Ingrid Joanna Katya Leonie Lucinda Malika Marguerite Nadia Noemi Odile Paloma Renata Rosalind Saskia "
    "Sunniva Tamsin Ursula Valentina Winifred Yasmin Zuzana"
)
MEN = _each(
    "Abel Alaric Anselm Bartholomew Benedict Bruno Casimir Cedric Dimitri Edmund Emeka Fergus Florian Gareth Gustav "
    "Hamish Henrik Ivor Jasper Joachim Kenji Konrad Lambert Leopold Marek Matthias Nikolai Osman Percival Quentin "
    "Rafael Rupert Sanjay Stellan Tobias Ulrich Viktor Wilfred"
)
# Every beginning fits every ending, no joined name is an English word, and none stands inside another: a name found in
# a released text is then a leak and not a coincidence.
BEGINNINGS = _each(
    "Asp Bern Brand Cald Corv Dorn Elst Fald Garv Grims Hald Hask Ild Jorv Kest Korb Lind Lorm Marv Nord Olv Ott Pell "
    "Quist Rusk Rosk Sald Sorn Tarn Thorv Ulv Vand Vest Wend Yarv Zell"
)
ENDINGS = _each(
    "acek ahl ander ardsen aros asco avel eford elli enko erby erud escu etti iakos ieux ingham inski olai omer "
    "onsen oury ovic unga"
)


@dataclass(frozen=True)
class Person:
    """Somebody who does not exist.

    Attributes:
        first, last: the name; `name` joins them.
        phone: like 555-0100-4821, a form that no network uses.
        record: a hospital record number, like MRN-482913-KQ.
        patient: the unit id, tied to nothing else.
        woman: whether "she" is meant.
    """

    first: str
    last: str
    phone: str
    record: str
    patient: str
    woman: bool

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    def words(self) -> dict[str, str]:
        """Return what templates need to speak of this person: name, contact, pronouns and address."""
        she, he = ("She", "Her", "her", "Ms"), ("He", "His", "him", "Mr")
        subject, possessive, object_, title = she if self.woman else he
        return {
            "name": self.name,
            "first": self.first,
            "last": self.last,
            "phone": self.phone,
            "mrn": self.record,
            "Sub": subject,
            "sub": subject.lower(),
            "Pos": possessive,
            "pos": possessive.lower(),
            "obj": object_,
            "mr": title,
        }


def people(count: int, random: random.Random) -> list[Person]:
    """Return so many people; full names, phones, record numbers and patient ids are unique among them.

    Last names are unique too as far as the 864 that can be composed reach; after that they repeat.

    Raises:
        BadOption: more people than four-digit phone endings, 9,000.
    """
    if not 0 < count <= 9000:
        raise BadOption("the number of people", count, "between 1 and 9,000")
    lasts = [beginning + ending for beginning in BEGINNINGS for ending in ENDINGS]
    random.shuffle(lasts)
    firsts = [(name, True) for name in WOMEN] + [(name, False) for name in MEN]
    phones = random.sample(range(1000, 10000), count)
    # From 600000 on, because smaller ones may stand within the digits of a phone number (555-0[100-123]4).
    records = random.sample(range(600000, 1000000), count)
    patients = random.sample(range(0x10000, 0x100000), count)
    found: list[Person] = []
    names: set[str] = set()
    while len(found) < count:
        at = len(found)
        (first, woman), last = random.choice(firsts), lasts[at % len(lasts)]
        if f"{first} {last}" in names:
            continue
        names.add(f"{first} {last}")
        letters = "".join(random.choices("BCDFGHJKLMNPQRTVWXZ", k=2))
        found.append(
            Person(first, last, f"555-0100-{phones[at]}", f"MRN-{records[at]}-{letters}", f"pt-{patients[at]:x}", woman)
        )
    return found


def listed(items: list[str] | tuple[str, ...], word: str = "and") -> str:
    """Return "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"
