"""A draw is made once, stored and charged together, found again for ever, and never made for an empty account."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stillroom.errors import (
    BadOption,
    DiskFull,
    LedgerMismatch,
)
from stillroom.guard.mechanisms import Mechanism, make
from stillroom.guard.memo import Drawn, Memo, Subject, Wanted
from stillroom.privacy.accounts import Refused, _Book
from stillroom.privacy.boxes import Boxes
from stillroom.privacy.ledger import Ledger
from stillroom.privacy.noise import OpenDPNoise
from stillroom.testing.noise import Draw, RecordedNoise
from tests.privacy.memos import AGE, ANNA, BELA, CITY, HALF, KEY, NAME, WIDE, age, its_ledger, its_memo, its_path, one  # noqa: F401 - fixtures

pytest.importorskip("cryptography")

# Permanent


def test_asking_again_costs_nothing_and_gives_the_same(ledger: Ledger, memo: Memo) -> None:
    noise = RecordedNoise(OpenDPNoise())
    first = one(Memo(ledger, KEY, limit=4.0, noise=noise), age())
    assert first.charged == 1.0 and first.text is not None and len(noise.draws) == 1
    for caller in ("ward", "night shift"):
        again = Memo(ledger, KEY, limit=4.0, noise=noise).draw([age(), age()], caller=caller)
        assert [(each.text, each.charged) for each in again] == [(first.text, 0.0)] * 2
    assert len(noise.draws) == 1 and memo.spent(ANNA) == 1.0


def test_thirty_notes_of_one_patient_are_one_draw_and_one_charge(ledger: Ledger) -> None:
    noise = RecordedNoise(OpenDPNoise())
    memo = Memo(ledger, KEY, limit=4.0, noise=noise)
    answers = [one(memo, age()) for _ in range(15)] + memo.draw([age()] * 15, caller="ward")
    assert len({answer.text for answer in answers}) == 1 and len(noise.draws) == 1
    assert [answer.charged for answer in answers] == [1.0] + [0.0] * 29
    standing = ledger.accounts().standing()
    assert (standing.draws, standing.subjects, standing.most) == (1, 1, 1.0)


def test_control_with_the_document_as_subject_thirty_notes_are_thirty_draws(memo: Memo) -> None:
    names = memo.draw(
        [Wanted("person", "Anna Nkemelu", Subject(f"note {i}", unit=False), NAME) for i in range(30)], caller="ward"
    )
    assert len({name.text for name in names}) > 20
    with pytest.raises(ValueError, match="needs a unit"):
        one(memo, age(subject=Subject("note 1", unit=False)))


def test_another_value_subject_category_mechanism_or_population_is_another_draw(memo: Memo, tmp_path: Path) -> None:
    other_version = make("laplace", "age", low=0, high=10_000_000, step=1, epsilon=0.9)
    asked = [
        age(HALF, ANNA, WIDE), age("5000001", ANNA, WIDE), age(HALF, BELA, WIDE), Wanted("dose", HALF, ANNA, WIDE),
        age(HALF, ANNA, other_version),
    ]  # fmt: skip
    answers = memo.draw(asked, caller="ward")
    assert all(answer.charged > 0 for answer in answers)
    texts = [answer.text for answer in answers if answer.text not in ("0", "10000000")]
    assert len(set(texts)) == len(texts)
    away = tmp_path / "away"
    with Ledger.open(tmp_path / "other", epsilon=1, delta=1e-6, population="ward", installation=away) as other:
        assert one(Memo(other, KEY, limit=4.0), asked[0]).charged == 1.0


def test_what_is_wanted_shows_neither_value_nor_subject() -> None:
    shown = repr(Wanted("person", "Anna Nkemelu", ANNA, NAME))
    assert "Nkemelu" not in shown and ANNA.id not in shown


def test_control_fresh_draws_would_be_averaged_away(memo: Memo) -> None:
    mechanism, noise = make("laplace", "age", low=0, high=8, step=1, epsilon=4.0), OpenDPNoise()
    fresh = [int(mechanism.draw("3", noise)) for _ in range(501)]
    assert sorted(fresh)[250] == 3  # the median: wrong once in 60 million runs
    assert len({one(memo, age("3", ANNA, mechanism)).text for _ in range(30)}) == 1


def test_surrogates_cost_nothing_and_are_as_permanent(memo: Memo) -> None:
    anna = Wanted("person", "Anna Nkemelu", ANNA, NAME)
    first = one(memo, anna)
    assert first.charged == 0.0 and one(memo, anna, quota=0.0) == first
    assert memo.spent(ANNA) == 0.0


@pytest.mark.parametrize(
    ("mechanism", "value", "other"),
    [(AGE, "47", "not a number"), (CITY, "Paris", "Nkemelu"), (NAME, "Anna Nkemelu", "王小明")],
    ids=["laplace", "tree", "surrogate"],
)
def test_with_equal_noise_another_value_leaves_no_other_trace(
    path: Path, mechanism: Mechanism, value: str, other: str
) -> None:
    traces = []
    recorded: list[Draw] = []
    for at, each in enumerate((value, other)):
        noise = RecordedNoise(OpenDPNoise()) if at == 0 else RecordedNoise(replay=recorded)
        away = path.with_name(f"installation {at}")
        with Ledger.open(
            path.with_name(str(at)), epsilon=1, delta=1e-6, population="clinic", installation=away
        ) as ledger:
            drawn = Memo(ledger, KEY, limit=4.0, noise=noise).draw(
                [Wanted(mechanism.category, each, ANNA, mechanism)] * 2, caller="ward"
            )
            raw = sqlite3.connect(ledger.path)
            boxes = raw.execute("SELECT length(key), length(box) FROM guard_boxes").fetchall()
            raw.close()
            traces.append((drawn, boxes, ledger.accounts().standing(), ledger.export()["spent"]))
        recorded = noise.draws
    assert traces[0] == traces[1]


# Accounts


def test_an_account_never_holds_more_than_its_limit_and_says_no_for_the_rest(memo: Memo) -> None:
    answers = memo.draw([age(str(year)) for year in range(6)], caller="ward")
    assert [answer.refused for answer in answers] == [None] * 4 + [Refused.SUBJECT] * 2
    assert answers[5].text is None and answers[5].charged == 0.0 and memo.spent(ANNA) == 4.0
    assert one(memo, age("0")).text == answers[0].text  # what was drawn before is still answered
    assert one(memo, age("0", BELA)).refused is None
    assert one(memo, Wanted("person", "x", ANNA, NAME)).text  # ε 0 is never refused


def test_a_quota_holds_for_one_caller_and_for_new_draws_alone(memo: Memo) -> None:
    first = one(memo, age("1"), quota=1.5)
    assert one(memo, age("2"), quota=1.5).refused is Refused.CALLER
    assert one(memo, age("1"), quota=1.5) == Drawn(first.text, 0.0, None, AGE.guarantee)
    assert memo.draw([age("2")], caller="night shift", quota=1.5)[0].charged == 1.0
    assert memo.used("ward") == memo.used("night shift") == 1.0 and memo.used("nobody") == 0.0


def test_ten_times_a_tenth_is_one(ledger: Ledger) -> None:
    memo, tenth = Memo(ledger, KEY, limit=1.0), make("laplace", "age", low=0, high=9, step=1, epsilon=0.1)
    answers = memo.draw([age(str(i), ANNA, tenth) for i in range(11)], caller="ward", quota=1.0)
    assert [answer.refused for answer in answers] == [None] * 10 + [Refused.SUBJECT]


def test_the_limit_is_fixed_for_good(ledger: Ledger, memo: Memo) -> None:
    Memo(ledger, KEY, limit=5.0)  # nothing was drawn yet
    memo.draw([age("40")], caller="ward")
    with pytest.raises(LedgerMismatch, match="an ε per subject of 4, but 5"):
        Memo(ledger, KEY, limit=5.0)
    for limit in (0.0, float("inf"), float("nan"), -1.0):
        with pytest.raises(BadOption):
            Memo(ledger, KEY, limit=limit)


def test_the_accounts_do_not_touch_the_book_of_the_collection(ledger: Ledger, memo: Memo) -> None:
    before, export = ledger.state(), ledger.export()
    memo.draw([age(str(i)) for i in range(4)], caller="ward")
    assert ledger.state() == before and ledger.export() == export and ledger.check() == before.head


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    asks=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.sampled_from([0.1, 0.3, 0.7, 1.1, 2.0])), max_size=25
    ),
    cuts=st.sets(st.integers(0, 25)),
)
def test_never_over_never_lost_never_twice(path: Path, asks: list[tuple[int, int, float]], cuts: set[int]) -> None:
    for old in path.parent.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    home = path.parent / "home"
    Ledger.open(path, epsilon=1, delta=1e-6).close()
    noise, seen = RecordedNoise(OpenDPNoise()), dict[tuple[int, int, float], str]()
    paid: dict[int, list[float]] = {0: [], 1: [], 2: []}
    batches: list[list[tuple[int, int, float]]] = [[]]
    for at, ask in enumerate(asks):
        batches[-1].append(ask)
        if at in cuts:
            batches.append([])
    for batch in batches:  # opened anew each time: what was drawn must come from the disk
        with Ledger.open(path, installation=home) as ledger:
            memo = Memo(ledger, KEY, limit=3.0, noise=noise)
            wanted = [
                age(str(value), Subject(str(who)), make("laplace", "age", low=0, high=9, step=1, epsilon=epsilon))
                for who, value, epsilon in batch
            ]
            for ask, drawn in zip(batch, memo.draw(wanted, caller="c"), strict=True):
                if drawn.text is None:
                    assert sum(paid[ask[0]]) + ask[2] > 3.0 - 1e-9 and ask not in seen
                    continue
                assert seen.setdefault(ask, drawn.text) == drawn.text
                if drawn.charged:
                    assert drawn.charged == ask[2]
                    paid[ask[0]].append(ask[2])
            for who, charges in paid.items():
                assert math.fsum(charges) == memo.spent(Subject(str(who))) <= 3.0
    assert len(noise.draws) == len(seen) == sum(map(len, paid.values()))


# Processes and crashes

Told = list[tuple[str | None, float]]


class Child:
    """A forked process that opens the ledger and draws; `told` waits for its end."""

    def __init__(self, path: Path, *, values: int = 1, die: tuple[type, str, bool] | None = None) -> None:
        reading, writing = os.pipe()
        self._pid, self._reading = os.fork(), reading
        if self._pid:
            os.close(writing)
            return
        try:
            if die is not None:
                kill(*die)
            with Ledger.open(path, wait=60) as ledger:
                memo, said = Memo(ledger, KEY, limit=4.0), []
                while not Path(f"{path}.go").exists():
                    time.sleep(0.002)
                for i in range(values):
                    drawn = memo.draw([age(str(i), ANNA, WIDE)], caller="child")[0]
                    said.append((drawn.text, drawn.charged))
            os.write(writing, json.dumps(said).encode())
            os._exit(0)
        finally:
            os._exit(1)

    def told(self) -> Told | None:
        """Return what was drawn; None when the process was killed."""
        _, status = os.waitpid(self._pid, 0)
        with os.fdopen(self._reading, "rb") as pipe:
            said = pipe.read()
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL and not said
            return None
        assert status == 0
        return [tuple(each) for each in json.loads(said)]


def kill(owner: type, name: str, after: bool) -> None:
    """Let this process die by kill -9 in place of a step, or right after it."""
    right = getattr(owner, name)

    def dying(*arguments: object) -> None:
        if after:
            right(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, dying)


def test_two_processes_at_once_draw_once(path: Path) -> None:
    Ledger.open(path, epsilon=10, delta=1e-6).close()
    both = [Child(path, values=4) for _ in range(2)]
    time.sleep(0.1)
    Path(f"{path}.go").touch()
    one_told, other_told = [child.told() for child in both]
    assert one_told is not None and other_told is not None and len(one_told) == 4
    assert [text for text, _ in one_told] == [text for text, _ in other_told]
    assert [a + b for (_, a), (_, b) in zip(one_told, other_told, strict=True)] == [1.0] * 4
    with Ledger.open(path) as ledger:
        assert ledger.accounts().standing().draws == 4 and Memo(ledger, KEY, limit=4.0).spent(ANNA) == 4.0


@pytest.mark.parametrize(
    "die",
    [(_Book, "charge", False), (Boxes, "put", False), (Boxes, "put", True)],
    ids=["drawn, nothing written", "charged, not stored", "charged and stored, not committed"],
)
def test_killed_inside_a_draw_nothing_was_charged_and_nothing_was_told(path: Path, die: tuple[type, str, bool]) -> None:
    Ledger.open(path, epsilon=10, delta=1e-6).close()
    Path(f"{path}.go").touch()
    assert Child(path, die=die).told() is None
    with Ledger.open(path) as ledger:
        assert Memo(ledger, KEY, limit=4.0).spent(ANNA) == 0.0 and ledger.accounts().standing().draws == 0
    first = Child(path).told()
    assert first is not None and first[0][1] == 1.0
    assert Child(path).told() == [(first[0][0], 0.0)]


def test_a_mechanism_that_fails_charges_nothing(ledger: Ledger) -> None:
    class Broken(OpenDPNoise):
        def laplace(self, value: int, *, sensitivity: int, scale: float) -> int:
            if value == 2:
                raise RuntimeError("broken")
            return super().laplace(value, sensitivity=sensitivity, scale=scale)

    memo = Memo(ledger, KEY, limit=4.0, noise=Broken())
    with pytest.raises(RuntimeError):
        memo.draw([age("1"), age("2")], caller="ward")
    assert memo.spent(ANNA) == 0.0 and ledger.accounts().standing().draws == 0


def test_a_full_disk_charges_nothing(tiny_disk: Path, fill: object) -> None:
    with Ledger.open(tiny_disk / "x.ledger", epsilon=1, delta=1e-6) as ledger:
        memo = Memo(ledger, KEY, limit=1000.0)
        one(memo, age("1"))
        filler = fill(tiny_disk)  # type: ignore[operator]
        with pytest.raises(DiskFull):
            for i in range(2, 400):
                one(memo, age(str(i % 110), Subject(f"patient {i}")))
        drawn = ledger.accounts().standing().draws
        filler.unlink()
        assert one(memo, age("1")).charged == 0.0
        assert one(memo, age("1", BELA)).charged == 1.0 and ledger.accounts().standing().draws == drawn + 1
