"""On a real cluster of two workers a run releases what it releases here; one that dies repeats, it never redraws."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ray = pytest.importorskip("ray")

from ray import _raylet  # noqa: E402
from ray._private.node import Node  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import stillroom  # noqa: E402
from stillroom.distil import run  # noqa: E402
from stillroom.distil.blocks import BlockEmbedder, BlockExtractor  # noqa: E402
from stillroom.distil.cluster import ClusterLM  # noqa: E402
from stillroom.distil.engines import QUIET, connected  # noqa: E402
from stillroom.distil.keywords import FastExtractor  # noqa: E402
from stillroom.distil.votes import Ballot  # noqa: E402
from stillroom.distil.workers import Worker, threads_of  # noqa: E402
from stillroom.embed.hashing import HashEmbedder  # noqa: E402
from stillroom.errors import (  # noqa: E402
    BadOption,
    RowsNotIndependent,
    UnknownName,
    WorkersLost,
    WorkersUnlike,
)
from stillroom.lexicon import word_list  # noqa: E402
from stillroom.lm.base import Prompt  # noqa: E402
from stillroom.release.verify import verify  # noqa: E402
from stillroom.testing.noise import RecordedNoise  # noqa: E402
from stillroom.testing.toylm import CrowdedLM, ToyLM  # noqa: E402
from tests.e2e.strange import Breaking, Dying, Turning, Wrong, fast  # noqa: E402
from tests.e2e.whole import Desk, Logged, Rough, fixed, lm, noted, watched  # noqa: E402
from tests.privacy.mechanics import NOTES, unit  # noqa: E402
from tests.unit.small import smollm2  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("cluster")]  # warnings of Ray's own


PORTS = ("metrics_agent", "metrics_export", "dashboard_agent_listen", "runtime_env_agent")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """Be on a real cluster of two CPUs in processes of its own; give the folder that Ray writes to.

    Ray gives its own agents 15 s to tell their ports, which is too little on a busy machine, and nobody can give them
    more (ray-project/ray#65983): here the ports are chosen before, and told for them.
    """
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    start = Node.start_raylet

    def told(self: Any, *given: Any, **how: Any) -> Any:
        for name, port in ports.items():
            named = getattr(_raylet, f"{name.upper()}_PORT_NAME")
            _raylet.persist_port(self._session_dir, self._node_id, named, port)
        return start(self, *given, **how)

    given: dict[str, Any] = {f"{name}_port": port for name, port in ports.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, "start_raylet", told)
        for name, value in QUIET.items():
            patch.setenv(name, value)
        here = [str(Path(__file__).parents[2]), str(Path(stillroom.__file__).parents[1])]
        patch.setenv("PYTHONPATH", os.pathsep.join([*here, *filter(None, [os.environ.get("PYTHONPATH")])]))
        made = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 2, "include_dashboard": False, "no_monitor": True, "object_store_memory": 100 << 20, **given
            },
        )  # fmt: skip
        patch.setenv("RAY_ADDRESS", made.address)
        try:
            with connected(2):
                yield Path(made.head_node.get_session_dir_path())
        finally:
            made.shutdown()


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listened at a moment ago."""
    with contextlib.ExitStack() as close:
        sockets = [close.enter_context(contextlib.closing(socket.socket())) for _ in range(count)]
        for each in sockets:
            each.bind(("", 0))
        return [each.getsockname()[1] for each in sockets]


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
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
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
    assert there == {**here, "certificate.json": there["certificate.json"]}  # it names the noise
    assert len(noted(log)) == len(noise.draws) == len(replay.draws)  # each draw once
    keys = [key for key, _ in noted(desk.folder / "drawn")]
    assert len(keys) == len(set(keys))
    said = capfd.readouterr()  # Ray tells of the loss itself
    assert not [word for word in ("Zonkitis", "Snurflepox", "Blergon", "unit-") if word in said.out + said.err]


def prompts() -> list[Prompt]:
    return [Prompt("", text, "", "Diagnosis:") for text in NOTES]


def test_sums_are_those_of_one_process_also_after_a_loss_at_any_time() -> None:
    here = lm()
    there = ClusterLM(here, here, 2)
    barred = np.array([9], np.int64)
    ballots = [
        Ballot(100),
        Ballot(100, clip=0.4),
        Ballot(100, (3, 4, 5, 6, 7, 8), stops=(0, 1), stop=0, barred=barred, abstain=True),
        Ballot(100, (0, 4, 5), stops=(0, 1), stop=0, closed=True),
    ]
    rows = [5, 1, 2, 6, 0, 3, 4]
    read: Any = there.read(prompts())
    ours, theirs = here.open(here.read(prompts()), rows), there.open(read, rows)
    for step in range(3):
        for ballot in ballots:
            assert theirs.tally(ballot).tolist() == ours.tally(ballot).tolist()
        if step < 2:
            os.kill(pids(there)[step], signal.SIGKILL)
        for session in (ours, theirs):
            session.push([5 + step, 7])
    with pytest.raises(TypeError):
        theirs.scores()
    theirs.close()
    for call in (lambda: theirs.push([5]), lambda: theirs.tally(ballots[0])):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert there.open(read, []).tally(ballots[2]).tolist() == [0] * 6
    # A row stays with its worker whoever else is there.
    less: Any = there.read(prompts()[1:])
    assert [w for w, _ in read.places][1:] == [w for w, _ in less.places]
    assert {w for w, _ in read.places} == {0, 1}
    there.close()


def test_words_and_vectors_are_those_of_one_process_also_after_a_loss(tmp_path: Path) -> None:
    units = [unit(f"u{n}", f"{NOTES[n % 8]} Quxbert{'abcdefgh'[n % 8]}", "\ud800 \x00") for n in range(300)]
    extractor, embedder = FastExtractor(word_list(), 4), HashEmbedder(16)
    assert BlockExtractor(Dying(tmp_path / "dead")).extract_many(units) == extractor.extract_many(units)
    assert (tmp_path / "dead").exists()
    texts = [*NOTES, "", "\ud800"]
    assert np.array_equal(BlockEmbedder(embedder, embedder).embed(texts), embedder.embed(texts))
    assert BlockEmbedder(embedder, embedder).embed([]).shape == (0, 16)


def in_files(folder: Path, text: str) -> bool:
    """Say whether a text stands in what Ray wrote."""
    files = [path for path in (folder / "logs").rglob("*") if path.is_file()]
    return any(text.encode() in path.read_bytes() for path in files)


def test_a_worker_that_fails_says_nothing_of_a_text(cluster: Path, capfd: pytest.CaptureFixture[str]) -> None:
    there = ClusterLM(lm(), Breaking(), 1)
    session = there.open(there.read(prompts()))
    with pytest.raises(WorkersLost, match="RuntimeError") as failed:
        session.tally(Ballot(100))
    there.close()
    with pytest.raises(WorkersLost, match="RuntimeError") as wrong:
        BlockExtractor(Wrong()).extract_many([unit("u", *NOTES)])
    for error in (failed, wrong):
        assert "Zonkitis" not in "".join(traceback.format_exception(error.value))
        assert error.value.__cause__ is None and error.value.__context__ is None
    said = capfd.readouterr()
    assert "Zonkitis" not in said.out + said.err and not in_files(cluster, "Zonkitis")
    # The control: what other work prints, in a process that was never silenced, does stand there.
    aloud = ray.remote(lambda: print("said aloud", flush=True))
    ray.get(aloud.options(runtime_env={"env_vars": {"APART": "1"}}).remote())
    until = time.monotonic() + 20
    while not in_files(cluster, "said aloud"):
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_worker_that_comes_in_the_middle_is_tried_before_it_votes(tmp_path: Path) -> None:
    there = ClusterLM(lm(), Turning(tmp_path / "once"), 1)
    assert there.rows_independent()
    session = there.open(there.read(prompts()))
    assert session.tally(Ballot(100)).sum() > 0
    os.kill(pids(there)[0], signal.SIGKILL)
    with pytest.raises(WorkersUnlike, match="other"):
        session.tally(Ballot(100))
    there.close()


def test_workers_with_another_model_or_dependent_rows_are_refused(desk: Desk) -> None:
    other = ClusterLM(lm(), ToyLM(name="other"), 1)
    with pytest.raises(WorkersUnlike, match="other"):
        other.rows_independent()
    other.close()
    crowded = ClusterLM(lm(), CrowdedLM(), 1)
    assert not crowded.rows_independent()
    with pytest.raises(RowsNotIndependent):
        crowded.read(prompts())
    crowded.close()
    with pytest.raises(RowsNotIndependent):
        desk.release(lm=CrowdedLM(), engine="ray")
    with pytest.raises(UnknownName):
        desk.release(engine="spark")
    for workers in (0, 3):  # the cluster has two CPUs
        with pytest.raises(BadOption):
            desk.release(engine="ray", workers=workers)
    desk.nothing_happened()


def test_a_worker_holds_neither_noise_nor_journal() -> None:
    assert {name for name in vars(Worker) if not name.startswith("_")} == {
        "about", "read", "step", "tally", "close", "forget"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cpus", "workers", "threads"), [([2], 2, 1), ([2], 1, 2), ([16, 16], 2, 16), ([16, 4], 2, 8), ([8, 8, 8], 4, 4)]
)
def test_workers_have_the_threads_of_their_machines(cpus: list[int], workers: int, threads: int) -> None:
    assert threads_of(cpus, workers) == threads


@pytest.mark.model
def test_sessions_that_share_passes_on_workers_vote_as_here_also_after_a_loss() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from stillroom.lm.huggingface import HuggingFaceLM

    folder = smollm2()
    model = HuggingFaceLM(folder, name="smollm2")
    notes = [Prompt("Note: ", note, "\n", "Diagnosis:") for note in NOTES]
    there = ClusterLM(model, fast(folder), 2)
    assert there.shares_passes
    models: list[Any] = [model, there]
    pools = [lm.pool(lm.read(notes)) for lm in models]
    public = [lm.pool(lm.read([Prompt("", "tea", public=True)]), public=True) for lm in models]
    told = [(pools[i].open([0, 2, 4, 6]), pools[i].open([1, 0, 5]), public[i].open()) for i in range(2)]
    said = model.encode(" helped by tea and rest, then a walk")
    ballots = [Ballot(1000), Ballot(1000, tuple(range(500, 540)), closed=True)]
    for n, word in enumerate(model.encode(" fever and a cough")):
        for sessions, pool, other in zip(told, pools, public, strict=True):
            sessions[0].push([word] if n else said)
            sessions[1].push([word] if n else said[:5])
            sessions[2].push([word])
            while not all(session.ready for session in sessions):
                pool.step(other)
        if n == 2:
            os.kill(pids(there)[0], signal.SIGKILL)
        for ours, theirs in zip(*told, strict=True):
            for ballot in ballots:
                assert ours.tally(ballot).tolist() == theirs.tally(ballot).tolist()
    pools[1].readings.forget([0, 2])
    told[1][0].close()
    assert pools[1].open([0, 2]).tally(ballots[0]).sum() > 0
    there.close()
