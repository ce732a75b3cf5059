"""Numbers that carry their own proof: cards, bank accounts, national identity numbers, phone numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from stillroom.errors import MissingExtra
from stillroom.guard.detect.base import Detector
from stillroom.guard.spans import Span

_WORD = re.compile(r"[^\W_]{6,40}")
_DIGITS = re.compile(r"\+?\(?\d(?:[ ./()-]{0,3}\d){5,24}")
_IBAN = re.compile(r"\b[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}\b")
_NATIONAL = (
    "us.ssn", "us.itin", "gb.nhs", "ca.sin", "fr.nir", "de.idnr", "it.codicefiscale", "es.dni", "es.nie", "nl.bsn",
    "be.nn", "se.personnummer", "fi.hetu", "dk.cpr", "no.fodselsnummer", "pl.pesel", "pt.cc", "br.cpf", "in_.aadhaar",
    "in_.pan", "au.tfn", "ch.ssn", "cz.rc", "ro.cnp", "bg.egn", "mx.curp", "za.idnr", "ie.pps",
)  # fmt: skip
_REGIONS = ("US", "GB")
_LEAST_PHONE = 7


class IdentifierDetector(Detector):
    """Finds cards and bank accounts by their check digits, national identity numbers of 28 kinds, phone numbers.

    A number whose check digit is wrong is not found here: the closed-world rule takes it. Raises MissingExtra without
    python-stdnum or phonenumbers.
    """

    name = "identifiers"

    def __init__(self) -> None:
        try:
            import phonenumbers
            from stdnum import iban, luhn

            self._national: list[Callable[[str], bool]] = [
                import_module(f"stdnum.{module}").is_valid for module in _NATIONAL
            ]
        except ImportError as error:
            raise MissingExtra("checking identity numbers", "guard") from error
        self._luhn, self._iban, self._phone = luhn, iban, phonenumbers

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return what passes its check, and what reads as a phone number in the USA, Britain or with a + anywhere."""
        return [list(self._spans(sentence)) for sentence in sentences]

    def _spans(self, sentence: str) -> Iterator[Span]:
        if sum(map(str.isdigit, sentence)) < _LEAST_PHONE - 1:
            return
        for match in _IBAN.finditer(sentence):
            # A written-out IBAN runs on into the words behind it: the longest start that passes is the number.
            ends = [match.end(), *(match.start() + i for i in range(len(match[0]) - 1, 14, -1) if match[0][i] in " -")]
            end = next((end for end in ends if self._iban.is_valid(sentence[match.start() : end])), None)
            if end is not None:
                yield Span(match.start(), end, "iban", self.name, 1.0)
        for match in _DIGITS.finditer(sentence):
            digits = re.sub(r"\D", "", match[0])
            if 12 <= len(digits) <= 19 and self._luhn.is_valid(digits):
                yield Span(*match.span(), "card", self.name, 1.0)
            if any(valid(match[0]) or valid(digits) for valid in self._national):
                yield Span(*match.span(), "national_id", self.name, 1.0)
        for match in _WORD.finditer(sentence):
            form = match[0]
            if form.isascii() and not form.isalpha() and not form.isdigit() and any(v(form) for v in self._national):
                yield Span(*match.span(), "national_id", self.name, 1.0)
        for region in _REGIONS:
            leniency = self._phone.Leniency.POSSIBLE
            for found in self._phone.PhoneNumberMatcher(sentence, region, leniency=leniency):
                yield Span(found.start, found.end, "phone", self.name, 1.0)
