"""Key/value memory in which every row stands at the left and goes on at its own place. Imported with transformers."""

from __future__ import annotations

from typing import Any

from transformers import Cache
from transformers.cache_utils import DynamicLayer

from stillroom.lm.attention import PREFIX


class Layer(DynamicLayer):  # type: ignore[misc]
    """One layer's memory of rows, behind a prefix that they share.

    Args:
        shared: (2, heads, places, dim), keys and values of the prefix.
        own: (2, rows, heads, columns, dim), allocated; None keeps what is read (`states`).
        columns: int of shape (rows, n): where each row's next tokens go.
        used: columns that attention looks at.
    """

    def __init__(self, shared: Any, own: Any = None, columns: Any = None, used: int = 0) -> None:
        super().__init__()
        self.shared, self.own, self.columns, self.used = shared, own, columns, used
        self.states: tuple[Any, Any] | None = None
        self.is_initialized = True

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        if self.own is None:
            keys, values = key_states, value_states
            self.states = (keys, values)
        else:
            rows, heads, n, dim = key_states.shape
            place = self.columns[:, None, :, None].expand(rows, heads, n, dim)
            self.own[0].scatter_(2, place, key_states)
            self.own[1].scatter_(2, place, value_states)
            keys, values = self.own[0][:, :, : self.used], self.own[1][:, :, : self.used]
        if self.shared.shape[-2]:
            setattr(keys, PREFIX, (self.shared[0], self.shared[1]))
        return keys, values

    def get_seq_length(self) -> int:
        return int(self.shared.shape[-2]) + self.used


def memory_of(shared: Any, own: Any = None, columns: Any = None, used: int = 0) -> Cache:
    """Return a model's memory: shared (layers, 2, heads, places, dim), own (layers, 2, rows, heads, columns, dim)."""
    owned = [None] * len(shared) if own is None else own
    return Cache(layers=[Layer(s, o, columns, used) for s, o in zip(shared, owned, strict=True)])
