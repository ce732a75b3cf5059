"""One form for a value however it is written, so that the same value is one slot and one draw."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation

from stillroom.text import normalise

_ONES = {
    "zero": 0, "oh": 0, "nought": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9,
}  # fmt: skip
_TEENS = {
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fourty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
    "ninety": 90,
}  # fmt: skip
_NUMBERS = _ONES | _TEENS | _TENS
_REPEATS = {"double": 2, "triple": 3}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CURRENCIES = {
    "$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "usd": "usd", "eur": "eur", "gbp": "gbp", "chf": "chf",
    "dollar": "usd", "dollars": "usd", "euro": "eur", "euros": "eur", "pound": "gbp", "pounds": "gbp",
}  # fmt: skip
_TIMES = {"k": 1000, "m": 1_000_000, "million": 1_000_000, "bn": 1_000_000_000}
_DECIMAL = re.compile(r"\d+(?:\.\d+)?")
_TITLES = frozenset(["dr", "mr", "mrs", "ms", "miss", "prof", "professor", "sir", "madam", "rev"])
_CODES = frozenset(["card", "iban", "national_id", "record_number", "licence", "account", "postcode"])
_SPELLED = frozenset(["phone", "number", "card", "account", "national_id", "record_number", "postcode"])


def canonical(category: str, surface: str, *, day_first: bool = False) -> str:
    """Return one form for a value of a category.

    Dates become 1970-07-13 (or 1970-07, 1970), ages and numbers digits, amounts "1200.5 usd", phones digits with the
    country, codes capitals and digits alone, e-mail addresses small letters with their signs; everything else small
    letters with single blanks. What does not read as its category is treated as text, and nothing fails.

    Args:
        day_first: how 3/4/1970 is read; where one of the two is above 12, it is the day.
    """
    plain = " ".join(normalise(surface).split())
    if category in _SPELLED and (digits := spelled_digits(plain)):
        plain = digits
    if category == "date":
        return _date(plain, day_first) or plain.casefold()
    if category == "time":
        return _time(plain) or plain.casefold()
    if category == "age":
        number = re.search(r"\d+", plain)
        return str(int(number[0])) if number else spelled_number(plain) or plain.casefold()
    if category == "amount":
        return _amount(plain) or plain.casefold()
    if category == "email":
        return _email(plain)
    if category == "phone":
        return _phone(plain)
    if category in _CODES:
        return re.sub(r"[\W_]", "", plain).upper() or plain
    if category == "person":
        return _person(plain)
    return plain.casefold().strip(" .,;:'\"")


def readable(category: str, value: str) -> bool:
    """Say whether a canonical date is a day, and a canonical age, amount or number a number; True for all others."""
    if category == "date":
        return date_of(value) is not None
    return category not in ("age", "amount", "number") or _DECIMAL.fullmatch(value.split(" ", 1)[0]) is not None


def number_of(value: str) -> float | None:
    """Return the number that a canonical age, number or amount is, or None."""
    try:
        return float(value.split(" ", 1)[0])
    except ValueError:
        return None


def date_of(value: str) -> datetime.date | None:
    """Return the day that a canonical date is, or None where it is less than a day or no date at all."""
    try:
        return datetime.date.fromisoformat(value) if len(value) == 10 else None
    except ValueError:
        return None


def spelled_digits(text: str) -> str:
    """Return the digits that a run of number words spells one after the other, or "" if there is another word in it."""
    digits, repeat, ten = "", 1, False
    for word in re.findall(r"[^\W_]+", text.lower()):
        if word in _REPEATS:
            repeat, ten = _REPEATS[word], False
            continue
        if word in _ONES and ten and _ONES[word]:
            digits = digits[:-1] + str(_ONES[word])  # "twenty one" is 21, not 201
        elif word in _NUMBERS or word.isdecimal():
            digits += str(_NUMBERS.get(word, word)) * repeat
        elif word != "and":
            return ""
        repeat, ten = 1, word in _TENS
    return digits


def spelled_number(text: str) -> str:
    """Return the number below 1,000 that words spell ("forty-two"), or "" if they do not."""
    total = 0
    found = False
    for word in re.findall(r"[^\W_]+", text.lower()):
        if word == "hundred":
            total = max(total, 1) * 100
        elif word in _NUMBERS:
            total += _NUMBERS[word]
        elif word not in ("and", "a"):
            return ""
        found = found or word != "and"
    return str(total) if found else ""


def _date(text: str, day_first: bool) -> str:
    low = text.lower()
    if match := re.fullmatch(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[t ].*)?", low):
        return _day(int(match[1]), int(match[2]), int(match[3]))
    if match := re.fullmatch(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{2}|\d{4})", low):
        one, two, year = int(match[1]), int(match[2]), _year(match[3])
        day, month = (one, two) if one > 12 or (day_first and two <= 12) else (two, one)
        return _day(year, month, day)
    if re.fullmatch(r"\d{4}", low):
        return low
    month_name = re.search(rf"\b({'|'.join(_MONTHS)})", low)
    if month_name is None:
        return ""
    month = _MONTHS.index(month_name[1]) + 1
    numbers = re.findall(r"\d+", low)
    years = [n for n in numbers if len(n) == 4]
    days = [int(n) for n in numbers if len(n) <= 2]
    if years and days:
        return _day(int(years[0]), month, days[0])
    if years:
        return f"{years[0]}-{month:02d}"
    return f"{month:02d}-{days[0]:02d}" if days else f"month {month:02d}"


def _year(text: str) -> int:
    year = int(text)
    return year if len(text) == 4 else year + (2000 if year < 40 else 1900)


def _day(year: int, month: int, day: int) -> str:
    try:
        return datetime.date(year, month, day).isoformat()
    except ValueError:
        return ""


def _time(text: str) -> str:
    match = re.fullmatch(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s?(?:([ap])\.?m\.?)?", text.lower())
    if match is None:
        return ""
    hour = int(match[1]) % 12 + (12 if match[4] == "p" else 0) if match[4] else int(match[1])
    return f"{hour:02d}:{match[2] or '00'}" + (f":{match[3]}" if match[3] else "")


def _amount(text: str) -> str:
    low = text.lower()
    number = re.search(r"\d[\d,]*(?:\.\d+)?", low)
    if number is None:
        return ""
    try:
        value = Decimal(number[0].replace(",", ""))
    except InvalidOperation:
        return ""
    rest = re.findall(r"[$€£¥₹]|[^\W\d_]+", low)
    for word in rest:
        value *= _TIMES.get(word, 1)
    currency = next((_CURRENCIES[word] for word in rest if word in _CURRENCIES), "")
    return f"{value.normalize():f} {currency}".strip()


def _email(text: str) -> str:
    low = text.lower()
    low = re.sub(r"\s*[(\[<]?\s*(?:\bat\b|@)\s*[)\]>]?\s*", "@", low)
    return re.sub(r"\s*[(\[]?\s*(?:\bdot\b|\bpunkt\b|(?<=[(\[])\.)\s*[)\]]?\s*", ".", low).replace(" ", "")


def _phone(text: str) -> str:
    digits = re.sub(r"\D", "", text)
    if not digits:
        return text.casefold()
    if digits.startswith("00"):
        return digits[2:]
    return digits if "+" in text or len(digits) != 10 or digits[0] in "01" else f"1{digits}"


def _person(text: str) -> str:
    parts = [re.sub(r"['’]s$", "", part.casefold()).strip(".,;:'\"()") for part in text.split()]
    kept = [part for part in parts if part and part not in _TITLES]
    return " ".join(kept) or text.casefold()
