"""A run that is killed goes on with the draws that it committed; it is paid once, and nobody else can go on with it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from stillroom.distil import run
from stillroom.documents import Document, Documents
from stillroom.errors import FileMissing, OutputExists, RunChanged, RunClosed, RunCopied, RunHeld
from stillroom.privacy.journal import Journal
from stillroom.privacy.ledger import Ledger
from stillroom.release import folder
from stillroom.release.folder import Release
from stillroom.release.verify import verify
from tests.e2e.whole import Desk, Logged, Rough, die, draws, in_child, note, noted, plan, watched
from tests.privacy.mechanics import collection


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Desk]:
    """A desk in memory where there is one: kill -9 leaves what was written, and fsync is quick there."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as place:
        monkeypatch.setenv("STILLROOM_HOME", f"{place}/home")
        made = Desk(Path(place))
        made.ledger().close()
        yield made


@pytest.fixture
def log(desk: Desk) -> Path:
    return desk.folder / "log"


def killed(desk: Desk, log: Path, *, noise_at: int | None = None, commit: int | None = None) -> bool:
    """Run in a process of its own that kills itself; return whether it did, or was done before."""

    def go() -> None:
        run.Journal = watched(log, commit)  # type: ignore[misc]
        desk.release(noise=Logged(Rough(), log, noise_at, die))

    return in_child(go) == SIGKILL


def values_of(lines: list[list[Any]]) -> dict[str, set[str]]:
    """Return the values that the journal let out, by key."""
    found: dict[str, set[str]] = {}
    for line in lines:
        if len(line) == 2:
            found.setdefault(line[0], set()).add(repr(line[1]))
    return found


def goes_on(desk: Desk, log: Path, *, lost: int = 0) -> Release:
    """Go on in another process; check that draws stayed what they were, were made once, and were paid once.

    Args:
        lost: calls of the noise that were made and whose values nobody saw.
    """
    before = draws(desk.run_folder)
    seen = noted(log)
    assert not killed(desk, log)
    again = values_of(noted(log)[len(seen) :])
    for key, value in before.items():
        of_a_text_that_is_done = "/".join(key.split("/")[:3]) + "/done" in before
        assert key in again or of_a_text_that_is_done
        assert again.get(key, {repr(json.loads(value))}) == {repr(json.loads(value))}, key  # and no other value
    used = values_of(noted(log))
    assert all(len(values) == 1 for values in used.values())  # in no process another value
    drawn = [key for key in used if not key.endswith(("/offered", "/done"))]
    assert sum(len(line) == 1 for line in noted(log)) == len(drawn) + lost
    desk.spent_once()
    assert not desk.run_folder.exists()
    return verify(desk.out).release


def test_noise_is_asked_as_often_as_is_declared(desk: Desk, log: Path) -> None:
    assert not killed(desk, log)
    calls = Counter(line[0] for line in noted(log) if len(line) == 1)
    released, record = Release.open(desk.out), plan().record
    parts = sum(topic.parts for topic in released.statistics.topics)
    silent = sum("stand out" in entry.reason for entry in released.statistics.left_out)
    assert calls["histogram"] == 1
    assert calls["gaussian"] == 1 + len(released.statistics.topics) + silent
    assert parts <= calls["noisy_max"] <= parts * record.text.draws
    per_unit = {event.name: event.times for event in run.events_of(record)}
    assert per_unit == {
        "keywords": 1, "topic sizes": 1, "co-keywords": record.topics.per_unit,
        "text": record.topics.per_unit * record.text.draws,
    }  # fmt: skip


@pytest.mark.parametrize("call", [*range(1, 8), 11, 17, 25, 38])
def test_killed_in_the_middle_of_a_draw_a_run_goes_on(desk: Desk, log: Path, call: int) -> None:
    assert killed(desk, log, noise_at=call)
    assert [kind for kind, _ in desk.entries()] == ["open", "reserve"]  # held, not given back
    assert not desk.out.exists()
    goes_on(desk, log)


@pytest.mark.parametrize("commit", [*range(1, 13), 31, 40, 64, 90])
def test_killed_after_a_commit_a_run_goes_on(desk: Desk, log: Path, commit: int) -> None:
    assert killed(desk, log, commit=commit)
    assert draws(desk.run_folder)
    goes_on(desk, log)


def test_killed_again_and_again_a_run_still_comes_to_its_end(desk: Desk, log: Path) -> None:
    times = 0
    while killed(desk, log, noise_at=4):
        times += 1
    assert times > 5
    assert all(kind != "abandon" for kind, _ in desk.entries())
    assert all(len(values) == 1 for values in values_of(noted(log)).values())
    desk.spent_once()


def before(owner: Any, name: str) -> Callable[[], None]:
    def patch() -> None:
        setattr(owner, name, lambda *a, **k: die())

    return patch


def after(owner: Any, name: str) -> Callable[[], None]:
    def patch() -> None:
        right = getattr(owner, name)

        def then(*a: Any, **k: Any) -> None:
            right(*a, **k)
            die()

        setattr(owner, name, then)

    return patch


@pytest.mark.parametrize(
    "patch, kinds",
    [
        (before(run, "_journal"), ["open"]),
        (before(Journal, "_set"), ["open"]),
        (before(run, "_spool"), ["open"]),
        (before(Journal, "bind"), ["open"]),
        (after(Journal, "bind"), ["open"]),
        (before(Ledger, "reserve"), ["open"]),
        (after(Ledger, "reserve"), ["open", "reserve"]),
        (before(run, "distil"), ["open", "reserve"]),
        (after(run, "distil"), ["open", "reserve"]),
        (before(folder, "_write_file"), ["open", "reserve"]),
        (after(folder, "_write_file"), ["open", "reserve"]),
        (before(Path, "rename"), ["open", "reserve"]),
        (after(Path, "rename"), ["open", "reserve"]),
        (before(Ledger, "complete"), ["open", "reserve"]),
        (after(Ledger, "complete"), ["open", "reserve", "complete"]),
        (before(run.shutil, "rmtree"), ["open", "reserve", "complete"]),
    ],
    ids=lambda value: None if isinstance(value, list) else "",
)
def test_killed_between_two_steps_a_run_goes_on(
    desk: Desk, log: Path, patch: Callable[[], None], kinds: list[str]
) -> None:
    def go() -> None:
        run.Journal = watched(log)  # type: ignore[misc]
        patch()
        desk.release(noise=Logged(Rough(), log))

    assert in_child(go) == SIGKILL
    assert [kind for kind, _ in desk.entries()] == kinds
    released = desk.out.exists()
    content = {path.name: path.read_bytes() for path in desk.out.iterdir()} if released else {}
    calls = len([line for line in noted(log) if len(line) == 1])
    if released:  # no step but telling the ledger is left
        assert not killed(desk, log)
        assert {path.name: path.read_bytes() for path in desk.out.iterdir()} == content
        assert len([line for line in noted(log) if len(line) == 1]) == calls
        desk.spent_once()
        assert not desk.run_folder.exists()
        verify(desk.out)
    else:
        goes_on(desk, log)
    assert not [path for path in desk.folder.iterdir() if path.name.endswith(".writing")]


def stopped(desk: Desk, log: Path, call: int = 9) -> None:
    """Leave a run that was killed at a call of the noise."""
    assert killed(desk, log, noise_at=call)


def refused(desk: Desk, error: type[Exception], *documents: Any, **how: Any) -> None:
    """Assert that going on is refused, and that no draw and no entry comes of it."""
    kept, entries = draws(desk.run_folder), desk.entries()
    noise = Logged(Rough(), desk.folder / "refused")
    with pytest.raises(error):
        desk.release(*documents, noise=noise, **how)
    assert (draws(desk.run_folder), desk.entries()) == (kept, entries)
    assert noise.calls == 0 and not desk.out.exists()


def test_a_changed_collection_is_refused_and_the_right_one_goes_on(desk: Desk, log: Path) -> None:
    stopped(desk, log)
    fewer = Documents([*collection()][:-1])
    more = Documents([*collection(), Document.of("pain", "new")])
    other = Documents([Document.of(d.text + " so", d.id, d.unit) for d in collection()])
    for documents in (fewer, more, other):
        refused(desk, RunChanged, documents)
    goes_on(desk, log)


def test_a_changed_plan_or_model_is_refused(desk: Desk, log: Path) -> None:
    from stillroom.testing.toylm import ToyLM

    stopped(desk, log)
    for changed in ({"topics_per_unit": 1}, {"task": "another one"}, {"without": ("abstain",)}, {"epsilon": 4000.0}):
        refused(desk, RunChanged, plan=plan(**changed))
    refused(desk, RunChanged, lm=ToyLM(name="another"))
    goes_on(desk, log)


def test_the_same_collection_in_another_order_goes_on(desk: Desk, log: Path) -> None:
    stopped(desk, log)
    desk.release(Documents(reversed([*collection()])), noise=Rough())
    desk.spent_once()


def test_a_copied_run_folder_is_refused(desk: Desk, log: Path) -> None:
    stopped(desk, log)
    shutil.copytree(desk.run_folder, desk.folder / "other.release.run")
    before_ = desk.entries()
    with pytest.raises(RunCopied):
        desk.release(out=desk.folder / "other.release", noise=Rough())
    assert desk.entries() == before_ and not (desk.folder / "other.release").exists()
    goes_on(desk, log)


def test_a_run_folder_put_back_from_a_copy_is_refused(desk: Desk, log: Path) -> None:
    stopped(desk, log, 5)
    saved = desk.folder / "saved"
    shutil.copytree(desk.run_folder, saved)
    assert killed(desk, log, noise_at=6)
    shutil.rmtree(desk.run_folder)
    saved.rename(desk.run_folder)
    refused(desk, RunCopied)


def test_a_run_of_another_ledger_is_refused(desk: Desk, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(desk, log)
    monkeypatch.setenv("STILLROOM_HOME", str(desk.folder / "other home"))
    with Ledger.open(desk.folder / "other.ledger", epsilon=2 * 5000.0, delta=1e-6) as other:
        refused(desk, RunCopied, ledger=other)
        assert [entry.kind for entry in other.history()] == ["open"]


@pytest.mark.parametrize("fresh", [True, False])
def test_of_two_that_work_at_once_one_is_told_to_wait_and_the_other_comes_through(
    desk: Desk, log: Path, fresh: bool
) -> None:
    if not fresh:
        stopped(desk, log, 4)
    ready, go = os.pipe(), os.pipe()

    def wait() -> None:
        os.write(ready[1], b".")
        os.read(go[0], 1)

    child = os.fork()
    if child == 0:
        code = 1
        try:
            desk.release(noise=Logged(Rough(), log, 3, wait))
            code = 0
        finally:
            os._exit(code)
    os.read(ready[0], 1)
    try:
        held = {path.name for path in desk.run_folder.iterdir()}
        noise = Logged(Rough(), log)
        for documents in (collection(), Documents([Document.of("another collection", "x")])):
            with pytest.raises(RunHeld):
                desk.release(documents, noise=noise)
        with desk.ledger() as ledger, pytest.raises(RunHeld):
            run.abandon(desk.out, ledger)
        assert noise.calls == 0 and {path.name for path in desk.run_folder.iterdir()} == held
    finally:
        os.write(go[1], b".")
        _, status = os.waitpid(child, 0)
        for end in (*ready, *go):
            os.close(end)
    assert os.waitstatus_to_exitcode(status) == 0
    desk.spent_once()
    verify(desk.out)


def test_one_that_comes_in_between_keeps_the_run_folder(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process makes the folder and works there at the very moment when this one would make it."""
    other: list[Journal] = []
    right = run._made

    def late(place: Path) -> bool:
        place.mkdir()
        other.append(Journal.begin(place, run="other", settings={}, ledger=ledger))
        return right(place)

    monkeypatch.setattr(run, "_made", late)
    with desk.ledger() as ledger:
        with pytest.raises(RunHeld):
            desk.release(ledger=ledger)
        assert (desk.run_folder / "journal.sqlite").exists()
        other[0].close()


def test_giving_up_keeps_the_budget_spent_and_takes_the_private_folder_away(desk: Desk, log: Path) -> None:
    stopped(desk, log)
    with desk.ledger() as ledger:
        spent = ledger.state().rho
        run.abandon(desk.out, ledger)
        assert ledger.state().rho == spent == pytest.approx(plan().rho)
    assert [kind for kind, _ in desk.entries()] == ["open", "reserve", "abandon"]
    assert not desk.run_folder.exists() and not desk.out.exists()
    with desk.ledger() as ledger, pytest.raises(FileMissing):
        run.abandon(desk.out, ledger)


def test_what_was_given_up_cannot_go_on(desk: Desk, log: Path) -> None:
    stopped(desk, log)
    with desk.ledger() as ledger:
        ledger.abandon(next(name for kind, name in desk.entries() if kind == "reserve") or "")
    refused(desk, RunClosed)


def test_a_release_of_somebody_else_in_the_place_of_an_unfinished_one_is_left_alone(desk: Desk, log: Path) -> None:
    stopped(desk, log)
    elsewhere = Desk(desk.folder / "elsewhere", epsilon=desk.epsilon)
    elsewhere.folder.mkdir()
    elsewhere.release(Documents([Document.of("Zonkitis", "z1"), Document.of("Zonkitis", "z2")]), noise=Rough())
    shutil.copytree(elsewhere.out, desk.out)
    with pytest.raises(OutputExists):
        desk.release(noise=Rough())
    assert [kind for kind, _ in desk.entries()] == ["open", "reserve"]
    shutil.rmtree(desk.out)
    goes_on(desk, log)


def test_the_log_of_these_tests_sees_a_value_that_is_drawn_twice(desk: Desk, log: Path) -> None:
    assert killed(desk, log, commit=12)
    key, value = next(line for line in noted(log) if len(line) == 2 and line[0].startswith("text/"))
    note(log, key, [value, "another"])
    with pytest.raises(AssertionError):
        goes_on(desk, log)
