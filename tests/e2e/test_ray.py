"""On a real cluster of two workers a run releases what it releases here; one that dies repeats, it never redraws."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ray = pytest.importorskip("ray")

from stillroom.distil import run  # noqa: E402
from stillroom.distil.blocks import BlockEmbedder, BlockExtractor  # noqa: E402
from stillroom.distil.cluster import ClusterLM, Worker  # noqa: E402
from stillroom.distil.keywords import FastExtractor  # noqa: E402
from stillroom.distil.votes import Ballot  # noqa: E402
from stillroom.embed.hashing import HashEmbedder  # noqa: E402
from stillroom.errors import BadOption, RowsNotIndependent, UnknownName, WorkersLost, WorkersUnlike  # noqa: E402
from stillroom.lexicon import word_list  # noqa: E402
from stillroom.lm.base import Prompt, Scores  # noqa: E402
from stillroom.release.verify import verify  # noqa: E402
from stillroom.testing.noise import RecordedNoise  # noqa: E402
from stillroom.testing.toylm import CrowdedLM, ToyLM  # noqa: E402
from tests.e2e.whole import Desk, Logged, Rough, fixed, lm, noted, plan, watched  # noqa: E402
from tests.privacy.mechanics import NOTES, collection, unit  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Two CPUs in processes of their own. On a busy machine Ray may not start in the 15 s that it gives itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_raylet_start_wait_time_s", "45")
        root = str(Path(__file__).parents[2])
        patch.setenv("PYTHONPATH", os.pathsep.join([root, *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]))
        for attempt in range(4):
            try:
                ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
                break
            except Exception:
                ray.shutdown()
                if attempt == 3:
                    raise
        try:
            yield
        finally:
            ray.shutdown()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def pids(model: ClusterLM) -> list[int]:
    """Return the process of every worker."""
    return [ray.get(actor.__ray_call__.remote(lambda self: os.getpid())) for actor in model.workers._actors]


def released(desk: Desk) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(desk.out.iterdir())}


def at(desk: Desk, name: str) -> Desk:
    place = desk.folder / name
    place.mkdir()
    return Desk(place)


def once(desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch, **how: Any) -> dict[str, bytes]:
    """Return the bytes of a run with a clock that stands still and ids that anybody knows."""
    monkeypatch.setenv("STILLROOM_HOME", str(home))
    with desk.ledger(**fixed()) as ledger:
        desk.release(ledger=ledger, run_id=lambda: "run-1", **how)
    verify(desk.out)
    return released(desk)


def test_the_same_draws_give_the_same_bytes_and_the_same_certificate(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    noise = RecordedNoise(Rough())
    here = once(at(desk, "here"), desk.folder / "a", monkeypatch, noise=noise)
    capfd.readouterr()
    replay = RecordedNoise(replay=noise.draws)
    there = once(at(desk, "there"), desk.folder / "b", monkeypatch, noise=replay, engine="ray")
    assert there == here and len(replay.draws) == len(noise.draws)
    assert "ray" not in json.loads(there["certificate.json"])["software"]
    said = capfd.readouterr()
    assert said.out + said.err == ""  # not how many documents there are, either


def test_a_worker_that_is_killed_in_mid_run_is_replaced_and_nothing_is_drawn_twice(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = RecordedNoise(Rough())
    here = once(at(desk, "here"), desk.folder / "a", monkeypatch, noise=noise)
    models: list[ClusterLM] = []
    right = ClusterLM.__init__

    def kept(self: ClusterLM, *given: Any) -> None:
        right(self, *given)
        models.append(self)

    monkeypatch.setattr(ClusterLM, "__init__", kept)
    killed: list[int] = []

    def kill() -> None:
        killed.extend(pids(models[0]))
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    replay, log = RecordedNoise(replay=noise.draws), desk.folder / "log"
    middle = len(noise.draws) - 4
    monkeypatch.setattr(run, "Journal", watched(desk.folder / "drawn"))
    there = once(
        at(desk, "there"), desk.folder / "b", monkeypatch, noise=Logged(replay, log, middle, kill), engine="ray"
    )
    assert len(set(killed)) == 2
    assert json.loads(there["texts.jsonl"].splitlines()[0]) == json.loads(here["texts.jsonl"].splitlines()[0])
    assert there["texts.jsonl"] == here["texts.jsonl"] and there["topics.json"] == here["topics.json"]
    assert len(noted(log)) == len(noise.draws) == len(replay.draws)  # each draw once
    keys = [key for key, _ in noted(desk.folder / "drawn")]
    assert len(keys) == len(set(keys))


def prompts() -> list[Prompt]:
    return [Prompt("", text, "", "Diagnosis:") for text in NOTES]


def test_sums_are_those_of_one_process_also_after_a_loss_at_any_time() -> None:
    here = lm()
    there = ClusterLM(here, here, 2)
    ballot = Ballot(100, tokens=(3, 4, 5, 6, 7, 8), stops=(0,), stop=0, barred=(9,), abstain=True)
    ours, theirs = here.open(here.read(prompts()), [5, 1, 2, 6]), there.open(there.read(prompts()), [5, 1, 2, 6])
    for step in range(4):
        assert theirs.tally(ballot).tolist() == ours.tally(ballot).tolist()
        assert theirs.tally(Ballot(100)).tolist() == ours.tally(Ballot(100)).tolist()
        os.kill(pids(there)[step % 2], signal.SIGKILL)
        for session in (ours, theirs):
            session.push([5 + step, 7])
    with pytest.raises(NotImplementedError):
        theirs.scores()
    nobody = there.open(there.read(prompts()), [])
    assert nobody.tally(ballot).tolist() == [0] * 6
    there.close()


def test_a_row_stays_with_its_worker_whoever_else_is_there() -> None:
    here = lm()
    there = ClusterLM(here, here, 2)
    whole: Any = there.read(prompts())
    less: Any = there.read(prompts()[1:])
    assert [w for w, _ in whole.places][1:] == [w for w, _ in less.places]
    assert {w for w, _ in whole.places} == {0, 1}
    there.close()


def test_words_and_vectors_are_those_of_one_process() -> None:
    units = [unit(f"u{n}", f"{NOTES[n % 8]} Quxbert{'abcdefgh'[n % 8]}", "\ud800 \x00") for n in range(300)]
    extractor, embedder = FastExtractor(word_list(), 4), HashEmbedder(16)
    assert BlockExtractor(extractor).extract_many(units) == extractor.extract_many(units)
    texts = [*NOTES, "", "\ud800"]
    assert np.array_equal(BlockEmbedder(embedder, embedder).embed(texts), embedder.embed(texts))
    assert BlockEmbedder(embedder, embedder).embed([]).shape == (0, 16)


class Breaking(ToyLM):
    """Fails with a text in its message, as libraries do."""

    def row_scores(self, prompt: Prompt, document: Any, said: Any) -> Scores:
        raise RuntimeError(f"cannot score {prompt.body}")


def test_a_worker_that_fails_says_nothing_of_a_text() -> None:
    there = ClusterLM(lm(), Breaking(), 1)
    session = there.open(there.read(prompts()))
    with pytest.raises(WorkersLost, match="RuntimeError") as failed:
        session.tally(Ballot(100))
    assert "Zonkitis" not in str(failed.value) and failed.value.__cause__ is None
    there.close()


def test_workers_with_another_model_or_dependent_rows_are_refused(desk: Desk) -> None:
    other = ClusterLM(lm(), ToyLM(name="other"), 1)
    with pytest.raises(WorkersUnlike, match="other"):
        other.rows_independent()
    crowded = ClusterLM(lm(), CrowdedLM(), 1)
    assert not crowded.rows_independent()
    for model in (other, crowded):
        model.close()
    with pytest.raises(RowsNotIndependent):
        desk.release(lm=CrowdedLM(), engine="ray")
    with pytest.raises(UnknownName):
        desk.release(engine="spark")
    with pytest.raises(BadOption):
        desk.release(engine="ray", workers=0)
    desk.nothing_happened()


def test_a_worker_holds_neither_noise_nor_journal() -> None:
    assert {name for name in vars(Worker) if not name.startswith("_")} == {"about", "read", "tally"}
    assert collection() and plan()
