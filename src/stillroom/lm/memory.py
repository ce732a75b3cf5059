"""Key/value memory that is allocated once and written in place. Imported only where transformers is installed."""

from __future__ import annotations

from typing import Any

from transformers import Cache
from transformers.cache_utils import DynamicLayer


class PreallocatedLayer(DynamicLayer):  # type: ignore[misc]
    """One layer's memory of shape (rows, heads, places, dim), filled up to `length`."""

    def __init__(self, keys: Any, values: Any, length: int) -> None:
        super().__init__()
        self.keys, self.values, self.length = keys, values, length
        self.is_initialized = True

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        end = self.length + key_states.shape[-2]
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_seq_length(self) -> int:
        return self.length


def cache_on(buffer: Any, used: int) -> Cache:
    """Return a cache that writes into a buffer (layers, 2, rows, heads, places, dim) after `used` places."""
    return Cache(layers=[PreallocatedLayer(layer[0], layer[1], used) for layer in buffer])
