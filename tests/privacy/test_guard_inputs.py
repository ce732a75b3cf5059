"""Whatever a passage is written like, what identifies in it does not come out: with the real detectors, whole guard."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from stillroom.embed.hashing import HashEmbedder
from stillroom.guard.policy import load_policy
from stillroom.guard.strict import Guard
from tests.guarding import KEY, book, note, real

pytest.importorskip("presidio_analyzer")

PHONE = "555-867-5309"
NESTED = json.dumps({"a": json.dumps({"who": ["Ngozi Okonkwo"], "call": {"no": PHONE}}), "b": "jos\u00e9@example.org"})
PAGE = (
    "<html><body onload=\"x('Ngozi Okonkwo')\"><p title='Ngozi Okonkwo'>Seen by <b>Ngozi</b> <i>Okonkwo</i>, "
    f"&#78;gozi Okonkwo, {PHONE}</p><!-- Ngozi Okonkwo --></body></html>"
)

INPUTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Arabic": ("اسم المريض هو محمد الأحمدي وهاتفه ٥٥٥٨٦٧٥٣٠٩", ("محمد", "الأحمدي", "٥٥٥٨٦٧٥٣٠٩", "5558675309")),
    "Japanese": ("患者の山田太郎さんは東京に住んでいます。電話は〇九〇です。", ("山田", "太郎", "東京")),
    "Yoruba": ("Orúkọ aláìsàn náà ni Adébáyọ̀ Ògúnlésì, ó ń gbé ní Ìbàdàn.", ("Adébáyọ̀", "Ògúnlésì", "Ìbàdàn")),
    "Yoruba inside English": ("The patient Adébáyọ̀ Ògúnlésì was seen today.", ("Adébáyọ̀", "Ògúnlésì")),
    "zero-width": ("Call 5\u200b5\u200b5-8\u200b67-53\u200b09 for N\u200bg\u200bozi.", ("867", "5309", "gozi")),
    "full-width": ("Call ５５５-８６７-５３０９ now.", ("867", "５３０９", "5309")),
    "homoglyphs": ("Аnnа Nkemеlu was seen.", ("Аnnа", "Nkemеlu")),  # Cyrillic letters among Latin ones
    "mail in words": ("Write to john dot doe at example dot org today.", ("john", "doe", "example")),
    "digits in words": (
        "Her number is five five five, eight six seven, five three zero nine.",
        ("five", "eight", "seven", "nine"),
    ),
    "nested JSON": (NESTED, ("Ngozi", "Okonkwo", "867", "jos", "example")),
    "HTML": (PAGE, ("gozi", "Okonkwo", "867")),
    "a key": (f"token {'Ab3x' * 60} here", ("Ab3x",)),
    "lone surrogates": ("Seen: Ngozi \ud800 Okonkwo \udfff.", ("Ngozi", "Okonkwo")),
    "bidirectional": ("Seen: \u202eowknokO izogN\u202c and Ngozi Okonkwo.", ("Ngozi", "Okonkwo", "owknokO")),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    policy = load_policy("clinic")
    with book(tmp_path_factory.mktemp("books")) as ledger:
        yield Guard(policy, ledger=ledger, key=KEY, embedder=HashEmbedder(), finder=real(policy))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("whole", [True, False], ids=["text", "metadata"])
def test_nothing_that_identifies_comes_out(guarded: Guard, name: str, whole: bool) -> None:
    text, private = INPUTS[name]
    document = note(text, name) if whole else note("A visit.", name, 2, title=text)
    (kept,) = guarded.ingest([document])
    answer = guarded.sanitise("Please repeat all the context.", [kept])
    shown = f"{kept.text} {dict(kept.metadata)} {answer.texts} {answer.metadata} {answer.receipt}"
    assert [each for each in private if each.casefold() in shown.casefold()] == []


def test_an_empty_passage_is_an_empty_answer(guarded: Guard) -> None:
    answer = guarded.sanitise("Who?", ["", " \n "])
    assert [text.strip() for text in answer.texts] == ["", ""]


def test_a_megabyte_is_read_as_far_as_a_public_length(guarded: Guard) -> None:
    text = "Ngozi Okonkwo was seen on 5 March 2021. " * 26_000
    began = time.process_time()
    answer = guarded.sanitise("Who was seen?", [text])
    assert time.process_time() - began < 60
    assert "Okonkwo" not in answer.text and "too long" in answer.receipt.says()
    unbroken = guarded.sanitise("Who was seen?", ["Okonkwo" * 150_000])
    assert "Okonkwo" not in unbroken.text
