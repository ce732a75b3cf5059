"""Whether products and attention give a row the same bits wherever it stands, in every shape that a run may have.

The row test runs the whole model in a few shapes; these run its parts in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from stillroom.lm.attention import PREFIX, attend, visible


class Numbers:
    """Numbers of every size that are no multiples of each other, the same ones for every object of this class."""

    def __init__(self, torch: Any, like: Any) -> None:
        self._torch, self._like, self._drawn = torch, like, 0

    def draw(self, *shape: int) -> Any:
        self._drawn += 1
        places = self._torch.arange(math.prod(shape), dtype=self._torch.float64)
        numbers = self._torch.sin(places * (0.618 + 0.1 * self._drawn))
        return numbers.reshape(shape).to(dtype=self._like.dtype, device=self._like.device)


def widths_alike(
    torch: Any, prefix: Any, heads: int, rows: int, queries: Sequence[int], widest: int, step: int
) -> bool:
    """Return whether attention gives each row the same bits at every width, so that masked columns count nothing.

    Args:
        prefix: (2, groups, places, dim), keys and values that all rows share: shape, type and device are taken.
        heads: of the queries.
        queries: numbers of tokens of a pass.
        widest, step: columns are tried up to the first, in steps of the second.
    """
    _, groups, places, dim = prefix.shape
    draw = Numbers(torch, prefix).draw
    own, shared = draw(2, rows, groups, widest, dim), draw(2, groups, places, dim)
    for n in queries:
        asked = draw(rows, heads, n, dim)
        last = torch.arange(rows, device=prefix.device) * (widest - n) // max(1, rows - 1)  # of every length
        at = last[:, None] + torch.arange(n, device=prefix.device)
        seen: dict[int, Any] = {}
        for width in range(step, widest + 1, step):
            fit = [row for row in range(rows) if int(at[row, -1]) < width]
            keys, values = own[0][:, :, :width], own[1][:, :, :width]
            if places:
                setattr(keys, PREFIX, (shared[0], shared[1]))
            out, _ = attend(None, asked, keys, values, visible(torch, at.clamp(max=width - 1), width, prefix.dtype))
            for row in fit:
                if not torch.equal(seen.setdefault(row, out[row]), out[row]):
                    return False
    return True


def places_alike(torch: Any, weights: Iterable[Any], rows: int, tokens: Iterable[int]) -> bool:
    """Return whether products of blocks give a row the same bits at every place, by blocks of one row repeated.

    Args:
        weights: matrices (to, from); of several of one shape the first is tried.
        rows: of a block.
        tokens: of each row; every number is tried.
    """
    tokens = [*tokens]
    for weight in {(*weight.shape,): weight for weight in weights}.values():
        row = Numbers(torch, weight).draw(max(tokens, default=0), weight.shape[1])
        for n in tokens:
            out = torch.nn.functional.linear(row[:n].repeat(rows, 1), weight).view(rows, n, -1)
            if not torch.equal(out, out[:1].expand_as(out)):
                return False
    return True


def reading_alike(torch: Any, prefix: Any, heads: int, rows: int, tokens: Iterable[int]) -> bool:
    """Return whether attention gives rows that are read the same bits at every place of their block.

    Args: as of `widths_alike` and `places_alike`.
    """
    _, groups, places, dim = prefix.shape
    draw = Numbers(torch, prefix).draw
    for n in tokens:
        asked, keys, values = (draw(1, h, n, dim).repeat(rows, 1, 1, 1) for h in (heads, groups, groups))
        if places:
            setattr(keys, PREFIX, (prefix[0], prefix[1]))
        at = torch.arange(n, device=prefix.device).repeat(rows, 1)
        out, _ = attend(None, asked, keys, values, visible(torch, at, n, prefix.dtype))
        if not torch.equal(out, out[:1].expand_as(out)):
            return False
    return True
