"""Sessions that go on together: the rows of many share blocks of one public shape, each at its own place.

A block has a fixed number of slots for rows of one length bucket, which follows from a row's own length; on a CPU, rows
of shorter ones may have slots that are left over. When a session has left and the others fit into fewer blocks, rows
move. A pass runs the same number of tokens for every row of the pool: CHUNK where every session with something to push
has that many waiting, else one, so it follows from released text alone. Free slots, and rows whose session waits, run
along as dummies. Which block and slot a row has depends on how many rows there are; that it does not change a bit is
tried by the row test.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stillroom.lm.attention import visible
from stillroom.lm.base import CHUNK, Pool, Scores, Session, tokens_of_a_pass

if TYPE_CHECKING:
    from stillroom.lm.huggingface import HuggingFaceLM, HuggingFaceReadings, Row

STEP_ROWS = 80
STEP_BUCKET = 64
ROOM = 48
"""Columns for what is pushed that are allocated at a time."""
MARGIN = 256
"""Columns behind a bucket up to which the attention of mixed blocks is tried: more tokens than any text says."""
TRIM = 16
"""Attention looks at columns up to a multiple of this behind the last one in use."""
HEAD_ROWS = 40
"""Rows of a pass of the output head, whatever the number of rows asked for."""


@dataclass
class Place:
    """Where a row lies now, and the least bucket that holds it."""

    block: Block
    slot: int
    bucket: int


class Block:
    """Slots for rows of one bucket, or less, that run together."""

    def __init__(self, lm: HuggingFaceLM, memory: Any, size: int, bucket: int) -> None:
        torch = lm.torch
        self.lm, self.memory, self.size, self.bucket = lm, memory, size, bucket
        layers, _, heads, self.prefix, dim = memory.shape
        self.own = torch.zeros((layers, 2, size, heads, bucket + ROOM, dim), dtype=lm.dtype, device=lm.device)
        self.filled = torch.zeros((size,), dtype=torch.long, device=lm.device)
        self.hidden = torch.zeros((size, lm.width), dtype=lm.dtype, device=lm.device)
        self.free = list(range(size))
        self.held: dict[int, Place] = {}

    def put(self, keys: Any, hidden: Any, bucket: int) -> Place:
        """Put a row, keys (layers, 2, heads, n, dim) and state, into the first free slot and return its place."""
        slot, n = self.free.pop(0), keys.shape[-2]
        self._reach(n)
        self.own[:, :, slot, :, :n] = keys
        self.own[:, :, slot, :, n:CHUNK] = 0  # the rest of a free slot is zero but for what dummies wrote at its start
        self.filled[slot] = n
        self.hidden[slot] = hidden
        self.held[slot] = Place(self, slot, bucket)
        return self.held[slot]

    def clear(self, slot: int) -> None:
        """Make a slot free again."""
        self.own[:, :, slot] = 0  # a masked place counts nothing, but zero times what cannot be read is no zero
        self.filled[slot] = 0
        self.hidden[slot] = 0
        del self.held[slot]
        self.free.append(slot)
        self.free.sort()

    def move(self, place: Place, other: Block) -> None:
        """Give a row of this block a slot in another."""
        slot = place.slot
        n = int(self.filled[slot])
        there = other.put(self.own[:, :, slot, :, :n], self.hidden[slot], place.bucket)
        self.clear(slot)
        place.block, place.slot = other, there.slot
        other.held[there.slot] = place

    def _reach(self, columns: int) -> None:
        """Allocate columns, ROOM at a time."""
        if columns > self.own.shape[-2]:
            more = [*self.own.shape]
            more[-2] = max(ROOM, columns - more[-2])
            self.own = self.lm.torch.cat(
                [self.own, self.lm.torch.zeros(more, dtype=self.lm.dtype, device=self.lm.device)], -2
            )

    def step(self, ids: Any, counts: Any, pushed: int) -> None:
        """Run ids (size, n), of which the first counts (size,) of each row are real.

        Args:
            pushed: tokens pushed to any row so far at most, these included.
        """
        torch, n = self.lm.torch, ids.shape[1]
        used = -(-(self.bucket + pushed) // TRIM) * TRIM
        self._reach(used)
        columns = self.filled[:, None] + torch.arange(n, device=self.lm.device)
        mask = visible(torch, columns, used, self.lm.dtype)
        states = self.lm.forward(ids, columns + self.prefix, mask, self.memory, self.own, columns, used)
        last = states[torch.arange(self.size, device=self.lm.device), (counts - 1).clamp(min=0)]
        self.hidden = torch.where(counts[:, None] > 0, last, self.hidden)
        self.filled = self.filled + counts


class HuggingFaceSession(Session):
    """Rows of one session, wherever they lie in the pool's blocks."""

    def __init__(self, pool: HuggingFacePool, places: list[Place]) -> None:
        self.pool, self.places = pool, places
        self.rows = len(places)
        self.pushed = 0
        self.pending: deque[int | tuple[int, ...]] = deque()

    @property
    def ready(self) -> bool:
        return not self.pending

    def run(self) -> None:
        while self.pending:
            self.pool.step()

    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        self._open()
        self.run()
        lm = self.pool.lm
        if not self.places:
            return np.zeros((0, lm.vocabulary_size if vocabulary is None else len(vocabulary)), np.float32)
        size = HEAD_ROWS if not self.pool.readings.public else min(HEAD_ROWS, self.rows)
        hidden = lm.torch.zeros((-(-self.rows // size) * size, lm.width), dtype=lm.dtype, device=lm.device)
        for i, place in enumerate(self.places):
            hidden[i] = place.block.hidden[place.slot]
        return lm.head.of_blocks(hidden.split(size), vocabulary, public=self.pool.readings.public)[: self.rows]

    def push(self, tokens: Sequence[int]) -> None:
        self._open()
        self.pending.extend(int(token) for token in tokens)

    def push_each(self, tokens: Sequence[int]) -> None:
        """Append one token to each row, each its own: for text that every row writes by itself."""
        self._open()
        if len(tokens) != self.rows:
            raise ValueError(f"{len(tokens)} tokens for {self.rows} rows")
        self.pending.append(tuple(int(token) for token in tokens))

    def close(self) -> None:
        self.pool.leave(self)
        self.pending.clear()

    def _open(self) -> None:
        if self not in self.pool.sessions:
            raise ValueError("this session was closed: its rows are gone")


class HuggingFacePool(Pool):
    """See `lm.base.Pool`."""

    def __init__(self, lm: HuggingFaceLM, readings: HuggingFaceReadings, size: int) -> None:
        self.lm, self.readings, self.size = lm, readings, size
        self.blocks: list[Block] = []
        self.sessions: list[HuggingFaceSession] = []
        self._mixed: bool | None = False if readings.public else None
        self._holes = False
        self._broken = False

    @property
    def mixed(self) -> bool:
        """Whether rows may lie in blocks of longer buckets: where attention gives the same bits at every width."""
        if self._mixed is None:
            widest = max(map(_bucket, self.readings.rows), default=STEP_BUCKET)
            self._mixed = self.lm.mixes(self.readings.memory, widest + MARGIN)
        return self._mixed

    def open(self, rows: Sequence[int] | None = None) -> HuggingFaceSession:
        chosen = range(len(self.readings)) if rows is None else rows
        ready = self.lm.ready(self.readings, chosen)
        places: dict[int, Place] = {}
        for i in sorted(range(len(ready)), key=lambda i: -_bucket(ready[i])):  # long ones have less to choose from
            places[i] = self._place(ready[i])
        session = HuggingFaceSession(self, [places[i] for i in range(len(ready))])
        self.sessions.append(session)
        return session

    def _place(self, row: Row) -> Place:
        bucket = _bucket(row)
        block = self._room(bucket)
        if block is None:
            block = Block(self.lm, self.readings.memory, self.size, bucket)
            self.blocks.append(block)
        return block.put(row.keys, row.hidden, bucket)

    def _room(self, bucket: int, without: Block | None = None) -> Block | None:
        """Return the block of the least bucket that has a free slot for a row of this one."""
        fit = [
            block
            for block in self.blocks
            if block.free
            and block is not without
            and (block.bucket == bucket or (block.bucket > bucket and self.mixed))
        ]
        return min(fit, key=lambda block: block.bucket, default=None)

    def leave(self, session: HuggingFaceSession) -> None:
        """Free the slots of a session, and the memory of blocks that nobody is in."""
        if session not in self.sessions:
            return
        self.sessions.remove(session)
        for place in session.places:
            place.block.clear(place.slot)
        self.blocks = [block for block in self.blocks if block.held]
        self._holes = True

    def _close_up(self) -> None:
        """Move the rows of blocks that are not needed any more into free slots of others, the emptiest block first."""
        for block in sorted(self.blocks, key=lambda block: len(block.held)):
            free = {id(other): len(other.free) for other in self.blocks if other is not block}
            if len(block.held) > sum(free.values()):
                break
            for place in sorted(block.held.values(), key=lambda place: (-place.bucket, place.slot)):
                other = self._room(place.bucket, block)
                if other is None:
                    break
                block.move(place, other)
            self.blocks = [b for b in self.blocks if b.held]
        self._holes = False

    def step(self, beside: Pool | None = None, pushed: int = 0) -> None:
        with_us = [self, *([beside] if isinstance(beside, HuggingFacePool) else [])]
        if any(pool._broken for pool in with_us):
            raise RuntimeError("a pass of these rows broke off before: they must be opened anew")
        if beside is not None and beside not in with_us:
            beside.step()
        try:
            due = [run for pool in with_us for run in pool._due(pushed if pool is self else 0)]
            self.lm.side_by_side(lambda run: run(), due, public=self.readings.public)
        except BaseException:  # some rows have the token and some do not
            for pool in with_us:
                pool._broken = True
            raise

    def _due(self, pushed: int) -> list[Callable[[], None]]:
        """Return what runs the next pass: one call for every block in which a session has something to push."""
        waiting = [session for session in self.sessions if session.pending]
        if not waiting:
            return []
        if self._holes:
            self._close_up()
        n = tokens_of_a_pass(len(session.pending) for session in waiting)
        pushed = max(pushed, *(session.pushed + n for session in self.sessions))
        ids: dict[int, Any] = {}
        counts: dict[int, Any] = {}
        moved: dict[int, Block] = {}
        for session in waiting:
            chunk = [session.pending.popleft() for _ in range(n)]
            session.pushed += n
            for i, place in enumerate(session.places):
                block, slot = place.block, place.slot
                if id(block) not in moved:
                    moved[id(block)] = block
                    ids[id(block)] = np.zeros((block.size, n), np.int64)
                    counts[id(block)] = np.zeros(block.size, np.int64)
                ids[id(block)][slot] = [token[i] if isinstance(token, tuple) else token for token in chunk]
                counts[id(block)][slot] = n
        torch, device = self.lm.torch, self.lm.device
        return [
            partial(
                block.step, torch.from_numpy(ids[name]).to(device), torch.from_numpy(counts[name]).to(device), pushed
            )
            for name, block in moved.items()
        ]


def _bucket(row: Row) -> int:
    """Return the columns that hold a row: its own length, rounded up."""
    return max(1, -(-len(row.tokens) // STEP_BUCKET)) * STEP_BUCKET
