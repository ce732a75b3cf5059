"""What has a form of its own: addresses of the web and of streets, dates, ages, amounts, labelled and spelled values.

Every pattern is bounded: its time grows with the length of the sentence alone. Coverage comes before precision; what
a pattern takes too much is replaced, what all miss is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from stillroom.guard.detect.base import Detector
from stillroom.guard.spans import Span

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)\\b\\.?"
)
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_DIGIT = "(?:zero|oh|nought|one|two|three|four|five|six|seven|eight|nine|double|triple)"
_TENS = "(?:ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)"
_SPELLED = f"(?:{_TENS}(?:[- ]{_DIGIT})?|{_DIGIT}|hundred)"
_DOT = r"(?:\s?[(\[]?\s?\b(?:dot|punkt)\b\s?[)\]]?\s?|\s?[(\[]\.[)\]]\s?)"
_AT = r"(?:\s+at\s+|\s?[(\[<]\s?(?:at|@)\s?[)\]>]\s?|\s?@\s?)"
_SUFFIX = (
    "street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|place|pl|square|sq|terrace|ter|way|highway"
    "|hwy|parkway|pkwy|crescent|close|gardens|grove|circle|cir|trail|trl|row|mews|quay|plaza|alley|wharf"
)
_NAME = r"[^\W\d_][\w'.-]{0,30}"
_CAPITAL = r"[A-Z\u00c0-\u00de\u0100-\u024f\u0370-\u03ff\u0400-\u042f][\w'.-]{0,30}"
_IS = r"(?:\s{0,3}(?:\bis\b|\bwas\b|=|:|#)){0,2}\s{0,3}[\"'“]?"
_KEY = r"[\"']?"
_CODE = r"(?=[\w/-]{0,30}\d)[\w/-]{2,40}(?:[ ][\w/-]{0,10}\d[\w/-]{0,10}){0,4}"
_CURRENCY = (
    "(?:usd|eur|gbp|chf|cad|aud|inr|jpy|dollars?|euros?|pounds?|cents?|pence|francs?|rupees?|yen|k|m|bn|million)"
)

_JOB = (
    "(?:administrator|writer|operator|consultant|cleaner|clerk|specialist|engineer|manager|nurse|teacher|technician"
    "|officer|assistant|analyst|developer|designer|driver|worker|supervisor|accountant|attorney|lawyer|agent|mechanic"
    "|director|secretary|inspector|therapist|surgeon|physician|pharmacist|dentist|scientist|architect|electrician"
    "|plumber|carpenter|painter|farmer|chef|cook|waiter|waitress|cashier|receptionist|librarian|journalist|editor"
    "|translator|instructor|professor|lecturer|researcher|trainer|coach|guard|packager|installer|repairer|assembler"
    "|maker|tender|setter|attendant|representative|examiner|adviser|advisor|planner|coordinator|aide|host|hostess)"
)

# Category, pattern, the group that is the value. All are tried; the union decides where they overlap.
_PATTERNS: tuple[tuple[str, str, int], ...] = (
    ("unknown", r"\[[A-Z_]{1,30}_\d{1,6}\]", 0),  # looks like a slot of a template, but stands in the text
    ("email", r"[^\s@<>()\[\]{}\"',;:=|]{1,64}@[^\s@<>()\[\]{}\"',;:=|]{1,100}\.[^\W\d_]{2,24}\b", 0),
    ("email", rf"\b\w[\w+-]{{0,30}}(?:(?:{_DOT}|\.)[\w+-]{{1,30}}){{0,4}}{_AT}[\w-]{{1,40}}(?:(?:{_DOT}|\.)\w{{2,24}}){{1,3}}\b", 0),
    ("url", r"\b(?:https?|ftp|file|mailto)\b:/{0,3}[^\s<>\"'|]{1,300}", 0),
    ("url", r"\bwww\.[^\s<>\"'|]{1,300}", 0),
    ("url", r"\b(?:[\w-]{1,63}\.){1,4}(?:com|org|net|edu|gov|info|biz|io|co|eu|uk|de|fr|it|es|nl|ch|at|be|se|dk|fi|pl|us|ca|au|in|ru|br|jp|cn)\b(?:/[^\s<>\"'|]{0,200})?", 0),
    ("ip", r"\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b", 0),
    ("ip", r"(?<![\w:])(?=[\da-f:]{0,39}::|(?:[\da-f]{1,4}:){7})[\da-f:]{3,39}(?![\w:])", 0),
    ("date", r"\b\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:T[\d:.]{4,15}Z?)?\b", 0),
    ("date", rf"\b(?:{_WEEKDAY},?\s)?\d{{1,2}}(?:st|nd|rd|th)?[\s-](?:of\s)?{_MONTH}(?:,?[\s-]\d{{2,4}}\b)?", 0),
    ("date", rf"\b(?:{_WEEKDAY},?\s)?{_MONTH}[\s-]\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[\s-]\d{{4}}\b)?", 0),
    ("date", rf"\b{_MONTH},?[\s-](?:of\s)?\d{{4}}\b", 0),
    ("date", r"\b(?-i:January|February|March|April|June|July|August|September|October|November|December)\b", 0),
    ("date", rf"\b{_WEEKDAY}\b", 0),
    ("date", r"(?<![\d.,/-])(?:1[89]|20)\d\d(?:s\b|(?![\d/-]|[.,]\d))", 0),
    ("time", r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b)?", 0),
    ("time", r"\b\d{1,2}\s?[ap]\.?m\b", 0),
    ("age", rf"\b(\d{{1,3}}|{_SPELLED})[\s-]?(?:(?:year|yr|month|week|day)s?[\s-]{{1,2}}old|y/?o\b|y\.o\.|yrs?\b)", 1),
    ("age", rf"\b(?:aged?|turn(?:s|ed|ing)?|age\s?(?:is|of|:))\s(?:just\s)?(\d{{1,3}}|{_SPELLED})\b", 1),
    ("age", rf"[\"']age[\"']\s?:\s?[\"']?(\d{{1,3}})\b", 1),
    ("amount", rf"[$€£¥₹]\s?\d[\d,.]{{0,20}}(?:\s?{_CURRENCY}\b)?", 0),
    ("amount", rf"\b\d[\d,.]{{0,20}}\s?(?:[€£$¥₹]|{_CURRENCY}\b)", 0),
    ("dose", r"\b\d[\d,.]{0,8}\s?(?:mg|mcg|µg|μg|g|ml|iu|units?|mmol|meq|tablets?|puffs?|drops)\b(?:/(?:kg|day|h|ml|l|dl)\b)?", 0),
    ("laboratory", r"\b\d[\d,.]{0,8}\s?(?:mmol/l|mg/dl|g/dl|g/l|u/l|iu/l|mmhg|bpm|ng/ml|pg/ml|µmol/l|%)(?!\w)", 0),
    ("laboratory", r"\b\d{2,3}/\d{2,3}\s?mm\s?hg\b", 0),
    ("postcode", rf"\b(?:zip|post(?:al)?)[ _-]?(?:code)?\b{_KEY}{_IS}(\w{{2,10}}(?:[ -]\w{{0,6}}\d\w{{0,6}})?)", 1),
    ("postcode", r"\b(?-i:[A-Z]{1,2}\d[\dA-Z]? ?\d[A-Z]{2})\b", 0),
    ("postcode", r"\b\d{5}-\d{4}\b", 0),
    ("address", rf"\b\d{{1,6}}[a-z]?,?\s(?:{_NAME}\s){{1,4}}?(?:{_SUFFIX})\b\.?", 0),
    ("address", rf"\b(?-i:{_CAPITAL}\s){{1,3}}(?-i:Street|Avenue|Road|Lane|Boulevard|Court|Square|Terrace|Parkway|Crescent)\b", 0),
    ("address", r"\b(?:apt|apartment|suite|ste|unit|flat|psc|box|p\.?\s?o\.?\s?box|room|floor|building|bldg)\b\.?,?\s?#?\s?\w{0,6}\d\w{0,6}\b", 0),
    ("address", rf"\b\d{{1,6}}[a-z]?\s{{1,3}}(?-i:{_CAPITAL}\s{{1,3}}){{1,4}}(?:\d{{1,6}}[a-z]?\b)?", 0),
    ("address", rf"\b(?-i:(?:{_CAPITAL}|de|del|da|do|la|van|von|der|den)\s){{1,4}}\d{{1,5}}[a-z]?,?\s", 0),
    ("address", r"\b(?-i:AA|AE|AP|APO|FPO|DPO)\b[,\s]{1,3}(?-i:(?:AA|AE|AP)\s)?\d{5}\b", 0),
    ("address", rf"(?:\bthe\s)?\bcorner\sof\s[^,;?!\n]{{3,80}}", 0),
    ("address", rf"(?-i:\b{_CAPITAL})\sand\s(?:\w{{1,4}}\.\s)?(?-i:{_CAPITAL})(?:\s\w{{1,12}}\.?){{0,2}}\s\d{{1,5}}\b", 0),
    ("organisation", rf"(?-i:\b{_CAPITAL},\s{_CAPITAL}(?:,?\sand\s|\s?&\s?){_CAPITAL})", 0),
    ("organisation", rf"(?-i:\b(?:{_CAPITAL}\s){{1,4}})(?:ltd|inc|llc|plc|gmbh|corp|corporation|limited|s\.a|ag|co|company|group|partners|hospital|clinic|university|bank)\b\.?", 0),
    ("profession", rf"^(?:{_NAME}[ -](?:and\s)?){{1,4}}{_JOB}\s*$", 0),
    ("profession", rf"\b(?:as|as\san?|as\sthe|,\sthe|,\san?)\s((?:{_NAME}[ -](?:and\s)?){{0,4}}?{_JOB})\b", 1),
    ("password", rf"\b(?:password|passwd|pwd|passcode|passphrase|pin(?:\scode)?)\b{_KEY}{_IS}(\S{{2,64}})", 1),
    ("username", rf"\b(?:user\s?name|user\s?id|login|screen\s?name|nickname)\b{_KEY}{_IS}(\S{{2,64}})", 1),
    ("username", r"(?<![\w@.])@\w{2,40}\b", 0),
    ("record_number", rf"\b(?:mrn|medical\srecord|record|patient|case|chart|hospital|encounter|visit)\b[\s_]?(?:number|no|nr|id|#)?\b\.?{_KEY}{_IS}({_CODE})", 1),
    ("licence", rf"\b(?:licen[cs]e|passport|plate|registration|vin|permit)\b[\s_]?(?:number|no|nr|id)?\b\.?{_KEY}{_IS}({_CODE})", 1),
    ("account", rf"\b(?:account|acct|a/c|policy|claim|invoice|order|customer|employee|member|reference|ref|contract|serial)\b[\s_]?(?:number|no|nr|id)?\b\.?{_KEY}{_IS}({_CODE})", 1),
    ("national_id", rf"\b(?:ssn|social\ssecurity|national\sinsurance|nhs|tax|nin|nino|sin|aadhaar|pesel)\b[\s_]?(?:number|no|nr|id)?\b\.?{_KEY}{_IS}({_CODE})", 1),
    ("national_id", r"\b(?-i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\s?\d{2}\s?\d{2}\s?\d{2}\s?[A-D])\b", 0),
    ("title", r"\b(?-i:Dr|Mr|Mrs|Ms|Miss|Prof|Professor|Sir|Madam|Rev)\b\.?(?=\s)", 0),
    ("person", rf"\b(?:mr|mrs|ms|miss|dr|prof|professor|sir|madam|rev)\b\.?\s{{1,2}}({_NAME}(?:\s(?-i:{_CAPITAL})){{0,3}})", 1),
    ("person", rf"\b(?:my|his|her|the|maiden|full|first|last|sur|patient)\s?name{_KEY}{_IS}({_NAME}(?:\s(?-i:{_CAPITAL})){{0,3}})", 1),
    ("person", rf"[\"']?\b(?:full_?|first_?|last_?|sur)?name\b[\"']?\s?[:=]\s{{0,3}}[\"']?({_NAME}(?:[ ]{_CAPITAL}){{0,3}})", 1),
    ("person", rf"\b(?:named|called|signed(?:\sby)?|sincerely|regards|dear|nurse|patient|attn)\b[,:]?\s{{1,3}}((?-i:{_CAPITAL})(?:\s(?-i:{_CAPITAL})){{0,3}})", 1),
    ("number", rf"\b{_SPELLED}(?:[\s,-]{{1,2}}(?:and\s)?{_SPELLED}){{2,40}}\b", 0),
    # A value that markup or escapes pull apart is read by nobody else: the whole run goes.
    ("unknown", r"[^\s<>]{0,60}[^\W_]<[^<>\s]{1,40}>[^\W_][^\s<>]{0,60}", 0),
    ("unknown", r"[^\s\"'<>]{0,60}(?:&#x?[\da-f]{2,6};|\\u[\da-f]{4}|\\x[\da-f]{2}|%[\da-f]{2})[^\s\"'<>]{0,60}", 0),
)  # fmt: skip


class PatternDetector(Detector):
    """Finds what its form or its label gives away."""

    name = "patterns"

    def __init__(self) -> None:
        self._patterns = [(category, re.compile(pattern, re.I | re.M), group) for category, pattern, group in _PATTERNS]

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return every match of every pattern."""
        return [list(self._spans(sentence)) for sentence in sentences]

    def _spans(self, sentence: str) -> Iterator[Span]:
        for category, pattern, group in self._patterns:
            for match in pattern.finditer(sentence):
                start, end = match.span(group)
                end = start + len(sentence[start:end].rstrip(" \t\n.,;:!?\"')]}"))
                if start < end:
                    yield Span(start, end, category, self.name, 1.0)


class UserPatterns(Detector):
    """Finds what a policy's own regular expressions match; each gets `seconds` for a sentence, then it counts as failed.

    Raises MissingExtra without the package regex, whose matching can be stopped.
    """

    name = "policy patterns"

    def __init__(self, patterns: Mapping[str, Sequence[str]], seconds: float = 0.5) -> None:
        from stillroom.errors import MissingExtra

        try:
            import regex
        except ImportError as error:
            raise MissingExtra("a policy with patterns", "guard") from error
        self._patterns = [(category, regex.compile(p)) for category, several in patterns.items() for p in several]
        self._seconds = seconds

    def detect(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return every match that is not empty. Raises TimeoutError when a pattern takes too long."""
        found: list[list[Span]] = []
        for sentence in sentences:
            spans = []
            for category, pattern in self._patterns:
                for match in pattern.finditer(sentence, timeout=self._seconds):
                    if match.start() < match.end():
                        spans.append(Span(match.start(), match.end(), category, self.name, 1.0))
            found.append(spans)
        return found
