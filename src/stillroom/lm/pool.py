"""Sessions that go on together: the rows of many share blocks of one public shape, each at its own place.

A block has a fixed number of slots for rows whose prompts have one length bucket, which follows from a row's length.
A pass runs the same number of tokens for every row of the pool: CHUNK where every session with something to push has
that many waiting, else one, so it follows from released text alone. Free slots, and rows whose session waits, run along
as dummies. Which slot a row gets depends on how many rows there are; that it does not change a bit is tried by the row
test.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stillroom.lm.attention import visible
from stillroom.lm.base import Pool, Scores, Session

if TYPE_CHECKING:
    from stillroom.lm.huggingface import HuggingFaceLM, HuggingFaceReadings, Row

STEP_ROWS = 64
STEP_BUCKET = 64
ROOM = 48
"""Columns for what is pushed that are allocated at a time."""
CHUNK = 4
"""Tokens of a pass in which every session that waits has as many: two lengths of passes are all that there are."""
TRIM = 16
"""Attention looks at columns up to a multiple of this behind the last one in use."""
HEAD_ROWS = 32
"""Rows of a pass of the output head, whatever the number of rows asked for."""


class Block:
    """Slots for rows of one bucket that run together."""

    def __init__(self, lm: HuggingFaceLM, memory: Any, size: int, bucket: int) -> None:
        torch = lm.torch
        self.lm, self.memory, self.size, self.bucket = lm, memory, size, bucket
        layers, _, heads, self.prefix, dim = memory.shape
        self.own = torch.zeros((layers, 2, size, heads, bucket + ROOM, dim), dtype=lm.dtype, device=lm.device)
        self.filled = torch.zeros((size,), dtype=torch.long, device=lm.device)
        self.hidden = torch.zeros((size, lm.width), dtype=lm.dtype, device=lm.device)
        self.free = list(range(size))

    def place(self, row: Row) -> int:
        """Put a row that was read into the first free slot and return it."""
        slot, n = self.free.pop(0), len(row.tokens)
        self.own[:, :, slot] = 0  # a masked place counts nothing, but zero times what cannot be read is no zero
        self.own[:, :, slot, :, :n] = row.keys
        self.filled[slot] = n
        self.hidden[slot] = row.hidden
        return slot

    def clear(self, slot: int) -> None:
        """Make a slot free again."""
        self.own[:, :, slot] = 0
        self.filled[slot] = 0
        self.hidden[slot] = 0
        self.free.append(slot)
        self.free.sort()

    def step(self, ids: Any, counts: Any, pushed: int) -> None:
        """Run ids (size, n), of which the first counts (size,) of each row are real.

        Args:
            pushed: tokens pushed to any row so far at most, these included.
        """
        torch, n = self.lm.torch, ids.shape[1]
        used = -(-(self.bucket + pushed) // TRIM) * TRIM
        if used > self.own.shape[-2]:
            more = [*self.own.shape]
            more[-2] = max(ROOM, used - more[-2])
            self.own = torch.cat([self.own, torch.zeros(more, dtype=self.lm.dtype, device=self.lm.device)], -2)
        columns = self.filled[:, None] + torch.arange(n, device=self.lm.device)
        mask = visible(torch, columns, used, self.lm.dtype)
        states = self.lm.forward(ids, columns + self.prefix, mask, self.memory, self.own, columns, used)
        last = states[torch.arange(self.size, device=self.lm.device), (counts - 1).clamp(min=0)]
        self.hidden = torch.where(counts[:, None] > 0, last, self.hidden)
        self.filled = self.filled + counts


class HuggingFaceSession(Session):
    """Rows of one session, wherever they lie in the pool's blocks."""

    def __init__(self, pool: HuggingFacePool, places: list[tuple[Block, int]]) -> None:
        self.pool, self.places = pool, places
        self.rows = len(places)
        self.pushed = 0
        self.pending: deque[int | tuple[int, ...]] = deque()

    @property
    def ready(self) -> bool:
        return not self.pending

    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        while self.pending:
            self.pool.step()
        lm = self.pool.lm
        if not self.places:
            return np.zeros((0, lm.vocabulary_size if vocabulary is None else len(vocabulary)), np.float32)
        size = HEAD_ROWS if not self.pool.readings.public else min(HEAD_ROWS, self.rows)
        hidden = lm.torch.zeros((-(-self.rows // size) * size, lm.width), dtype=lm.dtype, device=lm.device)
        for i, (block, slot) in enumerate(self.places):
            hidden[i] = block.hidden[slot]
        parts = [lm.head(hidden[i : i + size], vocabulary) for i in range(0, len(hidden), size)]
        return np.concatenate(parts)[: self.rows]

    def push(self, tokens: Sequence[int]) -> None:
        self.pending.extend(int(token) for token in tokens)

    def push_each(self, tokens: Sequence[int]) -> None:
        """Append one token to each row, each its own: for text that every row writes by itself."""
        self.pending.append(tuple(int(token) for token in tokens))

    def close(self) -> None:
        self.pool.leave(self)


class HuggingFacePool(Pool):
    """See `lm.base.Pool`."""

    shares = True

    def __init__(self, lm: HuggingFaceLM, readings: HuggingFaceReadings, size: int) -> None:
        self.lm, self.readings, self.size = lm, readings, size
        self.blocks: dict[int, list[Block]] = {}
        self.sessions: list[HuggingFaceSession] = []

    def open(self, rows: Sequence[int] | None = None) -> HuggingFaceSession:
        chosen = range(len(self.readings)) if rows is None else rows
        session = HuggingFaceSession(self, [self._place(row) for row in self.lm.ready(self.readings, chosen)])
        self.sessions.append(session)
        return session

    def _place(self, row: Row) -> tuple[Block, int]:
        bucket = max(1, -(-len(row.tokens) // STEP_BUCKET)) * STEP_BUCKET
        blocks = self.blocks.setdefault(bucket, [])
        block = next((b for b in blocks if b.free), None)
        if block is None:
            block = Block(self.lm, self.readings.memory, self.size, bucket)
            blocks.append(block)
        return block, block.place(row)

    def leave(self, session: HuggingFaceSession) -> None:
        """Free the slots of a session, and the memory of blocks that nobody is in."""
        if session not in self.sessions:
            return
        self.sessions.remove(session)
        for block, slot in session.places:
            block.clear(slot)
        for bucket, blocks in self.blocks.items():
            self.blocks[bucket] = [b for b in blocks if len(b.free) < b.size]

    def step(self) -> None:
        """Run one pass over every block in which a session has something to push."""
        waiting = [session for session in self.sessions if session.pending]
        if not waiting:
            return
        n = CHUNK if min(len(session.pending) for session in waiting) >= CHUNK else 1
        pushed = max(session.pushed for session in self.sessions) + n
        torch, device = self.lm.torch, self.lm.device
        ids: dict[int, Any] = {}
        counts: dict[int, Any] = {}
        moved: dict[int, Block] = {}
        for session in waiting:
            chunk = [session.pending.popleft() for _ in range(n)]
            session.pushed += n
            for i, (block, slot) in enumerate(session.places):
                if id(block) not in moved:
                    moved[id(block)] = block
                    ids[id(block)] = np.zeros((block.size, n), np.int64)
                    counts[id(block)] = np.zeros(block.size, np.int64)
                ids[id(block)][slot] = [token[i] if isinstance(token, tuple) else token for token in chunk]
                counts[id(block)][slot] = n
        for name, block in moved.items():
            block.step(torch.from_numpy(ids[name]).to(device), torch.from_numpy(counts[name]).to(device), pushed)
