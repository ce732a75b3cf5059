"""What is saved changes no vote: several texts in a pass, slots used again, candidates alone, tokens in one go."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stillroom.distil.votes import Votes, one_sided
from stillroom.lm.base import Apart, Prompt
from stillroom.testing.toylm import ToyLM, ToySession

pytestmark = pytest.mark.model
pytest.importorskip("torch")
pytest.importorskip("transformers")

from stillroom.distil.workers import Pass, Told, Worker  # noqa: E402
from stillroom.lm import pool  # noqa: E402
from stillroom.lm.huggingface import HuggingFaceLM  # noqa: E402
from stillroom.lm.lanes import Lanes  # noqa: E402
from tests.unit.small import NOTES, its_lm, prompts, small_blocks, votes  # noqa: E402, F401 - fixtures

COLUMNS = list(range(500, 540))
ROUNDING = 0.02
"""Share of the votes that are not zero which another shape of the same sums may move, by one level: float32 rounds."""


def all_but_rounding(ours: Votes, theirs: Votes) -> None:
    """Raise AssertionError unless votes are the same but for what rounding may move."""
    gaps, cast = np.abs(ours - theirs), (ours > 0) | (theirs > 0)
    assert cast.sum() > 100
    assert gaps.max() <= 1
    assert (gaps > 0).sum() <= ROUNDING * cast.sum()


def alone(lm: HuggingFaceLM, rows: Sequence[int], said: str) -> list[Votes]:
    """Return the votes of rows that have the model to themselves, at the start and after every token."""
    session = lm.open(lm.read(prompts()), rows)
    seen = [votes(session)]
    for token in lm.encode(said):
        session.push([token])
        seen.append(votes(session))
    return seen


def test_texts_that_share_passes_vote_as_each_alone(lm: HuggingFaceLM) -> None:
    together = lm.pool(lm.read(prompts()))
    groups = {" tea and rest": [0, 2, 4], " a fever": [1, 0], " both": [3]}
    sessions = {said: together.open(rows) for said, rows in groups.items()}
    seen: dict[str, list[Votes]] = {said: [votes(session)] for said, session in sessions.items()}
    left = {said: lm.encode(said) for said in groups}
    while any(left.values()):
        for said, session in sessions.items():
            if left[said]:
                session.push([left[said].pop(0)])
        together.step()
        for said, session in sessions.items():
            if len(seen[said]) <= len(lm.encode(said)):
                seen[said].append(votes(session))
    for said, rows in groups.items():
        for mine, ours in zip(alone(lm, rows, said), seen[said], strict=True):
            assert np.array_equal(mine, ours)


def test_a_slot_that_was_used_before_leaves_no_trace(lm: HuggingFaceLM) -> None:
    broken = lm.read(prompts(["x " * 40]))
    broken.rows[0].keys[:] = float("nan")  # a row that cannot be read, in the slot before
    shared = lm.pool(lm.read(prompts()))
    first = shared._place(broken.rows[0])
    first.block.clear(first.slot)
    session = shared.open([1, 2])
    session.push(lm.encode(" tea"))
    assert np.array_equal(votes(session), alone(lm, [1, 2], " tea")[-1])


def test_a_session_that_left_makes_room_and_the_others_keep_their_votes(lm: HuggingFaceLM) -> None:
    shared = lm.pool(lm.read(prompts()))
    stays, leaves = shared.open([0, 1]), shared.open([2, 3])
    for session in (stays, leaves):
        session.push(lm.encode(" tea"))
    votes(leaves)
    leaves.close()
    comes = shared.open([4])
    assert len(shared.blocks) == 1
    comes.push(lm.encode(" tea"))
    stays.push(lm.encode(" rest"))
    assert np.array_equal(votes(stays), alone(lm, [0, 1], " tea rest")[-1])
    assert np.array_equal(votes(comes), alone(lm, [4], " tea")[-1])
    stays.close()
    comes.close()
    assert not shared.blocks


def test_short_rows_have_slots_that_long_ones_leave_over_and_move_when_others_have_left(lm: HuggingFaceLM) -> None:
    notes = [*NOTES, "a long walk in the garden, " * 12, *NOTES, *NOTES, *NOTES]
    shared = lm.pool(lm.read(prompts(notes)))
    leaves, stays = shared.open([0, 1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]), shared.open([5, 2, 3, 4])
    assert [(block.bucket, len(block.held)) for block in shared.blocks] == [(64, 16), (128, 2)]
    for session in (stays, leaves):
        session.push(lm.encode(" tea"))
    votes(leaves)
    before = votes(stays)
    leaves.close()
    stays.push(lm.encode(" rest"))
    after = votes(stays)
    assert [(block.bucket, len(block.held)) for block in shared.blocks] == [(128, 4)]
    for i, note in ((0, notes[5]), (1, notes[2]), (2, notes[3]), (3, notes[4])):
        session = lm.open(lm.read(prompts([note])))
        session.push(lm.encode(" tea"))
        assert np.array_equal(votes(session)[0], before[i])
        session.push(lm.encode(" rest"))
        assert np.array_equal(votes(session)[0], after[i])


def test_where_kernels_may_differ_rows_keep_to_their_bucket(lm: HuggingFaceLM) -> None:
    shared = lm.pool(lm.read(prompts(["a long walk in the garden, " * 12, *NOTES])))
    shared._mixed = False
    shared.open()
    assert [(block.bucket, len(block.held)) for block in shared.blocks] == [(128, 1), (64, 5)]


def test_candidates_alone_get_the_votes_that_they_get_among_all(lm: HuggingFaceLM) -> None:
    session = lm.open(lm.read(prompts()))
    among_all = one_sided(session.scores()[:, COLUMNS], 1000)
    assert np.array_equal(one_sided(session.scores(COLUMNS), 1000), among_all)


def test_tokens_pushed_in_one_go_count_as_pushed_one_by_one(lm: HuggingFaceLM) -> None:
    session = lm.open(lm.read(prompts()))
    session.push(lm.encode(" helped by tea and rest"))
    one_by_one = alone(lm, range(len(NOTES)), " helped by tea and rest")[-1]
    all_but_rounding(votes(session), one_by_one)


def test_all_threads_on_one_block_vote_as_a_pass_on_every_core(lm: HuggingFaceLM) -> None:
    """With two threads: two lanes, which share out blocks and the tokens of the head, and none."""
    said, before, seen = lm.encode(" helped by tea"), lm.torch.get_num_threads(), []
    lm.torch.set_num_threads(2)
    try:
        for lanes in (Lanes(lm.torch, "cpu"), Lanes(lm.torch, "elsewhere")):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(lm, "lanes", lanes)
                patch.setattr(lm.head, "_lanes", lanes)
                session = lm.open(lm.read(prompts()))
                session.push(said)
                seen.append(votes(session))
                assert lanes.count == (2 if lanes.on_cpu else 1)
    finally:
        lm.torch.set_num_threads(before)
    all_but_rounding(*seen)


def test_a_document_read_once_for_many_texts_votes_as_if_read_again(lm: HuggingFaceLM) -> None:
    readings = lm.read(prompts())
    first, again = lm.open(readings, [0, 3]), lm.open(readings, [3, 0])
    readings.forget([0])
    later = lm.open(readings, [0, 3])
    assert readings.rows[0].keys is None
    assert np.array_equal(votes(first), votes(later))
    assert np.array_equal(votes(first), votes(again)[::-1])


def test_votes_are_those_of_the_model_s_own_forward_pass(lm: HuggingFaceLM) -> None:
    session = lm.open(lm.read(prompts()))
    session.push(lm.encode(" tea"))
    ours, theirs = votes(session), []
    for prompt in prompts():
        before, body, after = lm._pieces(prompt)
        ids = lm.torch.tensor([[*before, *body, *after, *lm.encode(" tea")]])
        with lm.torch.inference_mode():
            theirs.append(one_sided(lm.model(input_ids=ids).logits[:, -1].float().numpy(), 1000)[0])
    all_but_rounding(ours, np.stack(theirs))


@pytest.mark.parametrize("waiting", range(1, 10))
def test_passes_have_two_lengths(lm: HuggingFaceLM, waiting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    plain = pool.Block.step

    def counted(self: pool.Block, ids: Any, counts: Any, pushed: int) -> None:
        lengths.append(ids.shape[1])
        plain(self, ids, counts, pushed)

    monkeypatch.setattr(pool.Block, "step", counted)
    session = lm.open(lm.read(prompts()), [0])
    session.push(lm.encode(" helped by tea and rest and a long walk in the garden")[:waiting])
    session.scores()
    assert lengths == [4] * (waiting // 4) + [1] * (waiting % 4)


def test_memory_grows_by_what_is_pushed_and_no_vote_moves(lm: HuggingFaceLM, monkeypatch: pytest.MonkeyPatch) -> None:
    said = " helped by tea and rest and a long walk in the garden before noon"
    plain = alone(lm, range(len(NOTES)), said)
    monkeypatch.setattr(pool, "ROOM", 3)
    monkeypatch.setattr(pool, "TRIM", 4)
    for before, after in zip(plain, alone(lm, range(len(NOTES)), said), strict=True):
        assert np.array_equal(before, after)


def test_rows_of_another_pool_may_run_beside(lm: HuggingFaceLM) -> None:
    public = lm.pool(lm.read([Prompt("Note: ", "tea", "\n", public=True)]), public=True, size=1)
    shared = lm.pool(lm.read(prompts()))
    ours, theirs = shared.open([1, 2]), public.open()
    for session in (ours, theirs):
        session.push(lm.encode(" tea"))
    shared.step(public)
    assert ours.ready and theirs.ready
    assert np.array_equal(votes(ours), alone(lm, [1, 2], " tea")[-1])


def test_several_moves_leave_every_row_its_own(lm: HuggingFaceLM) -> None:
    notes = [f"{note} {'and a long walk in the garden ' * (i % 3 * 5)}{i}" for i, note in enumerate(NOTES * 8)]
    shared = lm.pool(lm.read(prompts(notes)))
    groups = [[*range(i, len(notes), 5)] for i in range(5)]
    sessions = [shared.open(rows) for rows in groups]
    said = lm.encode(" tea and rest for him")
    for i, session in enumerate(sessions):
        for each in sessions[i:]:
            each.push(said[i : i + 1])
        shared.step()
        if i < 4:
            session.close()
    for row, seen in zip(groups[4], votes(sessions[4]), strict=True):
        own = lm.open(lm.read(prompts([notes[row]])))
        for token in said[:5]:
            own.push([token])
            own.run()
        assert np.array_equal(votes(own)[0], seen)


def test_a_pass_that_breaks_off_is_not_gone_on_with(lm: HuggingFaceLM, monkeypatch: pytest.MonkeyPatch) -> None:
    session = lm.open(lm.read(prompts()))
    session.push(lm.encode(" tea"))

    def fails(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(pool.Block, "step", fails)
        with pytest.raises(MemoryError):
            session.run()
    session.push(lm.encode(" rest"))
    with pytest.raises(RuntimeError, match="opened anew"):
        session.scores()


def test_a_closed_session_says_nothing_any_more(lm: HuggingFaceLM) -> None:
    session = lm.open(lm.read(prompts()), [0])
    session.push_each([5])
    with pytest.raises(ValueError, match="2 tokens for 1 rows"):
        session.push_each([5, 6])
    session.close()
    session.close()
    for call in (session.scores, lambda: session.push([5]), lambda: session.push_each([5])):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_a_model_travels_to_another_process_as_what_it_was_loaded_from(lm: HuggingFaceLM) -> None:
    lm.digest = "sha256:x"
    lm.rows_independent(64)
    lm.lanes.map(str, [1, 2])
    there = pickle.loads(pickle.dumps(lm))
    assert (there.name, there.digest, there.placed) == (lm.name, lm.digest, lm.placed) and not there._independent
    lm.digest = ""


def test_a_worker_that_replaces_another_runs_the_same_passes(
    lm: HuggingFaceLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions share passes; a worker that comes later runs what one has that was there all the time."""
    lengths: list[int] = []
    plain = pool.Block.step

    def counted(self: pool.Block, ids: Any, counts: Any, pushed: int) -> None:
        lengths.append(ids.shape[1])
        plain(self, ids, counts, pushed)

    monkeypatch.setattr(HuggingFaceLM, "rows_independent", lambda self, body: True)
    monkeypatch.setattr(pool.Block, "step", counted)
    count = Counted(1000)
    said = lm.encode(" helped by tea and rest and a long walk")
    passes = [Pass(tuple(said[:4]), 4), Pass((said[4],), 5), Pass((said[5],), 6), Pass(tuple(said[:4]), 10)]
    rows = {1: (0, 1), 2: (3,)}
    there, new = Worker(lm), Worker(lm)
    for worker in (there, new):
        assert Worker.read.__wrapped__(worker, 7, prompts(), 192).independent
    step, tally = Worker.step.__wrapped__, Worker.tally.__wrapped__

    def told(n: int) -> list[Told]:
        return [Told(number, chosen, tuple(passes[:n])) for number, chosen in rows.items()]

    for n in range(len(passes) + 1):
        step(there, 7, told(n))
        seen = [tally(there, 7, each, count) for each in told(n)]
    assert lengths == [4, 1, 1, 4]
    lengths.clear()
    assert step(new, 8, told(4)) is None and tally(new, 8, told(4)[0], count) is None
    assert step(new, 7, told(4))
    assert lengths == [4, 1, 1, 4, 1, 1, 4]  # what each lacks alone, and the last pass together
    for each, before in zip(told(4), seen, strict=True):
        assert np.array_equal(tally(new, 7, each, count), before)
    Worker.close.__wrapped__(there, 1)
    Worker.forget.__wrapped__(there, 7, [0, 1])
    assert np.array_equal(tally(there, 7, told(4)[0], count), seen[0])  # opened and read again


def test_the_width_of_a_pass_follows_from_what_is_pushed_anywhere(
    lm: HuggingFaceLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker does not know of sessions that have no rows there."""
    told: list[int] = []
    plain = pool.Block.step

    def counted(self: pool.Block, ids: Any, counts: Any, pushed: int) -> None:
        told.append(pushed)
        plain(self, ids, counts, pushed)

    monkeypatch.setattr(pool.Block, "step", counted)
    shared = lm.pool(lm.read(prompts()))
    session = shared.open([0])
    session.push(lm.encode(" tea and"))
    shared.step(pushed=45)
    shared.step()
    assert told == [45, 2]


class Counted:
    """What travels: votes of each row."""

    def __init__(self, levels: int) -> None:
        self.levels = levels

    def __call__(self, scores: Any) -> Votes:
        return one_sided(scores, self.levels)


class Lagging(ToySession):
    """Runs what is pushed when it is told to."""

    waiting: tuple[int, ...] = ()

    @property
    def ready(self) -> bool:
        return not self.waiting

    def push(self, tokens: Sequence[int]) -> None:
        self.waiting += tuple(tokens)

    def run(self) -> None:
        super().push(self.waiting)
        self.waiting = ()


class LaggingLM(ToyLM):
    def open(self, readings: Any, rows: Any = None, *, public: bool = False) -> Lagging:
        return Lagging(self, [readings.prompts[row] for row in rows])


def test_sessions_that_lag_are_run_by_a_step_of_any_pool() -> None:
    lm = LaggingLM()
    readings = lm.read([Prompt("Read.", "fever and rash")])
    shared = lm.pool(readings)
    session, once = shared.open([0]), ToyLM().open(readings, [0])
    for each in (session, once):
        each.push(lm.encode(" fever"))
    assert not session.ready
    lm.pool(lm.read([])).step(beside=shared)
    assert session.ready and np.array_equal(session.scores(), once.scores())


def test_models_without_a_pool_of_their_own_run_sessions_apart() -> None:
    lm = ToyLM()
    readings = lm.read([Prompt("Read.", "fever and rash"), Prompt("Read.", "cough")])
    shared = lm.pool(readings)
    assert isinstance(shared, Apart)
    session = shared.open([1])
    session.push(lm.encode(" fever"))
    assert session.ready
    shared.step()
    apart = lm.open(readings, [1])
    apart.push(lm.encode(" fever"))
    assert np.array_equal(session.scores(), apart.scores())
