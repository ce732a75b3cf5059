"""Every shipped detector keeps to the seam."""

from __future__ import annotations

import pytest

from stillroom.guard.detect.base import Detector
from stillroom.guard.detect.disguise import DisguiseDetector
from stillroom.guard.detect.identifiers import IdentifierDetector
from stillroom.guard.detect.lists import countries, nationalities, states
from stillroom.guard.detect.patterns import PatternDetector, UserPatterns
from stillroom.guard.detect.words import MedicalDetector, WordDetector
from stillroom.testing.detectors import DetectorConformance
from tests.detection import presidio


class TestPatterns(DetectorConformance):
    finds = (
        ("Write to anna.nowak@example.org today.", "anna.nowak@example.org", "email"),
        ("It is john dot doe at example dot org.", "john dot doe at example dot org", "email"),
        ("john [at] example [dot] org", "john [at] example [dot] org", "email"),
        ("See https://example.org/anna?x=1 for more.", "https://example.org/anna?x=1", "url"),
        ("It came from 192.0.2.17 then.", "192.0.2.17", "ip"),
        ("Born on 13/07/1970 there.", "13/07/1970", "date"),
        ("Seen on 5th of April 2001.", "5th of April 2001", "date"),
        ("It was in 1977.", "1977", "date"),
        ("This 79 year old woman", "79", "age"),
        ("She is forty-two years old", "forty-two", "age"),
        ("He paid $1,200.50 then", "$1,200.50", "amount"),
        ("He takes 500 mg twice", "500 mg", "dose"),
        ("Glucose was 110 mg/dl", "110 mg/dl", "laboratory"),
        ("My zip code is 35350", "35350", "postcode"),
        ("He lives at 12 Oak Street now", "12 Oak Street", "address"),
        ("Go to Apt. 595 now", "Apt. 595", "address"),
        ("The password is hunter2!", "hunter2", "password"),
        ('{"username": "anna_k"}', "anna_k", "username"),
        ("MRN: 778-1234 was seen", "778-1234", "record_number"),
        ("Policy no. AB-1234", "AB-1234", "account"),
        ("Mr. Leiva flew home", "Leiva", "person"),
        ("my name is sarah", "sarah", "person"),
        ("five five five one two three four", "five five five one two three four", "number"),
        ("five, then five / six. One", "five, then five / six. One", "number"),
        ("She is sixty two now", "sixty two", "age"),
        ("about sixty two of them", "sixty two", "number"),
        ("his pin is four nine", "four nine", "password"),
        ("john dot doe at gmail", "john dot doe at gmail", "email"),
        ("write john.doe at example", "john.doe at example", "email"),
        ("as a Rolling machine operator there", "Rolling machine operator", "profession"),
        ("An<b>na</b>", "An<b>na", "unknown"),
        ("called &#65;nna here", "&#65;nna", "unknown"),
        ("so [PERSON_1] said", "[PERSON_1]", "unknown"),
    )

    @pytest.fixture(scope="class")
    @classmethod
    def detector(cls) -> Detector:
        return PatternDetector()


class TestDisguise(DetectorConformance):
    finds = (
        ("Call ❺❺❺-❶❷ now", "❺❺❺-❶❷", "unknown"),
        ("Seen was M🅰🆁i🅰 today", "M🅰🆁i🅰", "unknown"),
        ("It is n g o z i again", "n g o z i", "unknown"),
        ("<td>M</td><td>a</td><td>r</td>", "M</td><td>a</td><td>r", "unknown"),
    )

    @pytest.fixture(scope="class")
    @classmethod
    def detector(cls) -> Detector:
        return DisguiseDetector()


class TestIdentifiers(DetectorConformance):
    finds = (
        ("Card 4111 1111 1111 1111 is lost", "4111 1111 1111 1111", "card"),
        ("Pay to GB82 WEST 1234 5698 7654 32 now", "GB82 WEST 1234 5698 7654 32", "iban"),
        ("SSN 536-90-4399", "536-90-4399", "national_id"),
        ("NHS number 943 476 5919", "943 476 5919", "national_id"),
        ("NIF 54362315K", "54362315K", "national_id"),
        ("Call (650) 253-0000 now", "(650) 253-0000", "phone"),
        ("Call +49 30 901820 now", "+49 30 901820", "phone"),
    )

    @pytest.fixture(scope="class")
    @classmethod
    def detector(cls) -> Detector:
        return IdentifierDetector()


class TestMedical(DetectorConformance):
    finds = (
        ("She has type 2 diabetes.", "type 2 diabetes", "diagnosis"),
        ("It is sarcoidosis.", "sarcoidosis", "diagnosis"),
        ("After a hysterectomy", "hysterectomy", "treatment"),
        ("He takes metformin.", "metformin", "drug"),
    )

    @pytest.fixture(scope="class")
    @classmethod
    def detector(cls) -> Detector:
        return MedicalDetector()


class TestPlaces(DetectorConformance):
    finds = (
        ("I live in United Kingdom.", "United Kingdom", "country"),
        ("I am cambodian", "cambodian", "nationality"),
        ("from alberta", "alberta", "city"),
    )

    @pytest.fixture(scope="class")
    @classmethod
    def detector(cls) -> Detector:
        return WordDetector({"country": countries(), "nationality": nationalities(), "city": states()})


class TestPolicyWords(DetectorConformance):
    finds = (("Ask the Old Mill about it", "Old Mill", "organisation"), ("at the OLD MILL", "OLD MILL", "organisation"))

    @pytest.fixture(scope="class")
    @classmethod
    def detector(cls) -> Detector:
        return WordDetector({"organisation": ["Old Mill"]})


class TestPolicyPatterns(DetectorConformance):
    finds = (("ward W-17 is full", "W-17", "record_number"),)

    @pytest.fixture(scope="class")
    @classmethod
    def detector(cls) -> Detector:
        return UserPatterns({"record_number": [r"\bW-\d+\b"]})


class TestPresidio(DetectorConformance):
    finds = (
        ("Angela Merkel was in Paris on Tuesday.", "Angela Merkel", "person"),
        ("Angela Merkel was in Paris on Tuesday.", "Paris", "city"),
        ("He works for Microsoft Corporation in Ohio.", "Microsoft Corporation", "organisation"),
    )

    @pytest.fixture(scope="class")
    @classmethod
    def detector(cls) -> Detector:
        return presidio()
