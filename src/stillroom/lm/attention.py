"""Attention whose every row is computed alike, wherever it stands in the batch.

The fused CPU kernel gives a row other bits at another place of the batch (measured with PyTorch 2.13), which would
make one document's votes depend on the number of documents before it. Batched matrix products do not; grouping the
queries of one key/value head also spares the copies that grouped-query models need otherwise.
"""

from __future__ import annotations

from typing import Any

NAME = "stillroom"


def register() -> str:
    """Make the attention known to transformers and return its name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)
    return NAME


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Any, None]:
    """Return attention of shape (batch, queries, heads, dim), in float32 inside the softmax."""
    import torch

    batch, heads, queries, dim = query.shape
    groups, length = key.shape[1], key.shape[2]
    share = heads // groups
    scale = scaling if scaling is not None else dim**-0.5
    grouped = (query * scale).reshape(batch * groups, share * queries, dim)
    keys = key.reshape(batch * groups, length, dim)
    scores = torch.bmm(grouped, keys.transpose(1, 2)).view(batch, groups, share, queries, length)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if attention_mask is not None:
        mask = attention_mask[..., :length]
        shared = mask.shape[1] == 1
        scores = scores + (mask.unsqueeze(2) if shared else mask.view(batch, groups, share, queries, length))
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    out = torch.bmm(weights.view(batch * groups, share * queries, length), value.reshape(batch * groups, length, dim))
    return out.view(batch, heads, queries, dim).transpose(1, 2).contiguous(), None
