"""Whether released texts hold the facts of a made-up collection, and none of its private strings.

How names are matched: texts and names are brought to NFKC and lower case and split into words of letters and digits,
so case, punctuation, line breaks and spacing do not matter. A name is found when all its words stand next to each
other in order; the last word may gain or lose a plural s. "Giggle-drop" is found for "Giggle Drops"; "Giggly Drops"
is not.

How symptoms are matched: wording varies more, so a symptom is found when at least half of its content words stand in
the text, in any order. Content words are what is left without stop words, compared by a crude stem: -ing, -ed, -es
and -s are cut off while three letters remain, then a final e and a doubled final consonant. The strict count asks
for all content words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
STOP_WORDS = frozenset(
    _WORD.findall(
        "a an the of in on at to for from with without and or but by as is are was be been this that these those his "
        "her their its my your our when while after before during under over upon into than then very some any"
    )
)
_DIGIT_RUN = re.compile(r"\d(?:[\s().+/\-]{0,3}\d)*")
_NUMERIC = 5  # a canary with so many digits is compared by its digits
_LONG = 8  # so many letters in a row do not come up by chance


@dataclass(frozen=True)
class Fact:
    """What a made-up topic is about: one disease, its treatment and its symptoms."""

    disease: str
    treatment: str
    symptoms: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What the released texts hold of one topic.

    Attributes:
        topic: its key among the facts.
        texts: how many released texts name the disease.
        disease: some text names the disease.
        treatment: some text that names the disease names its treatment.
        symptoms: some text that names the disease holds at least half of the symptoms (half of the words of each).
        symptoms_strict: the same with all content words of each symptom.
        most_symptoms, most_symptoms_strict: most symptoms found in one such text.
        of_symptoms: how many there are.
    """

    topic: str
    texts: int
    disease: bool
    treatment: bool
    symptoms: bool
    symptoms_strict: bool
    most_symptoms: int
    most_symptoms_strict: int
    of_symptoms: int


@dataclass(frozen=True)
class Shares:
    """Shares of topics for which the released texts are right, each in [0, 1].

    Attributes:
        topics, texts: how many were judged.
        disease, treatment, symptoms, symptoms_strict: shares of topics, see Verdict.
        wrong_pairs: share of all texts that name a disease and the treatment of another one.
        verdicts: topic by topic, in the order of the facts.
    """

    topics: int
    texts: int
    disease: float
    treatment: float
    symptoms: float
    symptoms_strict: float
    wrong_pairs: float
    verdicts: tuple[Verdict, ...]


def words(text: str) -> list[str]:
    """Return the words of a text as they are compared: NFKC, lower case, letters and digits only."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def stem(word: str) -> str:
    """Return a crude stem of a word that is in lower case: twitching, twitched, twitches → twitch."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word


def names(text: str, name: str) -> bool:
    """Say whether a text holds a whole name."""
    return _within(words(text), words(name))


def symptoms_in(text: str, symptoms: Sequence[str], strict: bool = False) -> int:
    """Return how many of the symptoms a text holds; strict asks for all content words of each."""
    there = {stem(word) for word in words(text)}
    return sum(_holds(there, symptom, strict) for symptom in symptoms)


def verdict(topic: str, fact: Fact, texts: Iterable[str]) -> Verdict:
    """Return what texts hold of one topic. No text, or none that names the disease, gives False throughout."""
    about = [text for text in texts if names(text, fact.disease)]
    most = max((symptoms_in(text, fact.symptoms) for text in about), default=0)
    strict = max((symptoms_in(text, fact.symptoms, strict=True) for text in about), default=0)
    enough = max(1, -(-len(fact.symptoms) // 2))
    return Verdict(
        topic=topic,
        texts=len(about),
        disease=bool(about),
        treatment=any(names(text, fact.treatment) for text in about),
        symptoms=most >= enough,
        symptoms_strict=strict >= enough,
        most_symptoms=most,
        most_symptoms_strict=strict,
        of_symptoms=len(fact.symptoms),
    )


def wrong_pair(text: str, facts: Mapping[str, Fact]) -> bool:
    """Say whether a text names a disease and a treatment that belongs to another one and not to it."""
    spoken = words(text)
    named = [fact for fact in facts.values() if _within(spoken, words(fact.disease))]
    given = {fact.treatment for fact in facts.values() if _within(spoken, words(fact.treatment))}
    return any(words(treatment) != words(fact.treatment) for fact in named for treatment in given)


def shares(facts: Mapping[str, Fact], texts: Sequence[str]) -> Shares:
    """Return the shares of topics whose facts the texts hold, and of texts that mix topics up.

    Args:
        facts: the truth, by topic.
        texts: all released texts together.
    """
    verdicts = tuple(verdict(topic, fact, texts) for topic, fact in facts.items())
    of = len(verdicts) or 1
    return Shares(
        topics=len(verdicts),
        texts=len(texts),
        disease=sum(each.disease for each in verdicts) / of,
        treatment=sum(each.treatment for each in verdicts) / of,
        symptoms=sum(each.symptoms for each in verdicts) / of,
        symptoms_strict=sum(each.symptoms_strict for each in verdicts) / of,
        wrong_pairs=sum(wrong_pair(text, facts) for text in texts) / (len(texts) or 1),
        verdicts=verdicts,
    )


def canaries_found(texts: Iterable[str], canaries: Iterable[str]) -> int:
    """Return how many different canaries stand in the texts.

    A canary with at least five digits (phone, record number) is found when its digits stand in one run of digits,
    whatever separates them. Others are found as whole words; from eight letters on also inside longer words and
    with their spaces or hyphens moved, because a leak is no less one for being spelt carelessly.
    """
    wanted = [(canary, _digits(canary), words(canary)) for canary in dict.fromkeys(canaries)]
    found: set[str] = set()
    for text in texts:
        spoken = words(text)
        squeezed = "".join(spoken)
        runs = [_digits(run) for run in _DIGIT_RUN.findall(unicodedata.normalize("NFKC", text))]
        for canary, digits, parts in wanted:
            if len(digits) >= _NUMERIC:
                hit = any(digits in run for run in runs)
            else:
                joined = "".join(parts)
                hit = bool(parts) and ((len(joined) >= _LONG and joined in squeezed) or _adjacent(spoken, parts))
            if hit:
                found.add(canary)
    return len(found)


def canaries_in(texts: Iterable[str], records: Iterable[str], canaries: Sequence[str]) -> int:
    """Return how many different canaries stand in a release.

    Args:
        texts: what was drawn or counted: searched as `canaries_found` does, however spelt.
        records: certificates: searched to the letter, as their hashes and parameters are long runs of digits in which
            any six digits turn up by chance.
    """
    certified = list(records)
    found = canaries_found(texts, canaries)
    exact = sum(any(canary in record for record in certified) for canary in dict.fromkeys(canaries))
    return found + exact


def _digits(text: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKC", text) if each.isdecimal())


def _adjacent(spoken: list[str], parts: list[str]) -> bool:
    size, first = len(parts), parts[0]
    return any(word == first and spoken[at : at + size] == parts for at, word in enumerate(spoken))


def _within(spoken: list[str], parts: list[str]) -> bool:
    if not parts:
        return False
    last = parts[-1]
    lasts = {last, last + "s"} | ({last[:-1]} if last.endswith("s") and len(last) > 3 else set())
    return any(_adjacent(spoken, [*parts[:-1], each]) for each in lasts)


def _holds(there: set[str], symptom: str, strict: bool) -> bool:
    spoken = words(symptom)
    content = {stem(word) for word in spoken if word not in STOP_WORDS} or {stem(word) for word in spoken}
    found = len(content & there)
    return bool(content) and (found == len(content) if strict else 2 * found >= len(content))
