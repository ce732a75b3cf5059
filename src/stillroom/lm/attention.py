"""Attention whose every row is computed alike, wherever it stands in the batch.

The fused CPU kernel gives a row other bits at another place of the batch (measured with PyTorch 2.13), which would
make one document's votes depend on the number of documents before it. Batched matrix products do not; grouping the
queries of one key/value head also spares the copies that grouped-query models need otherwise.

Rows stand at the left: column j of a row holds its j-th token, and a query at place p sees the columns 0..p. What lies
behind is masked, and adds exact zeros. A prefix that all rows share lies in memory once (`memory.Layer`).
"""

from __future__ import annotations

from typing import Any

NAME = "stillroom"
FEW = 4
"""Tokens of a pass up to which each has products of its own. For several at once the kernel may cut a sum over more
than about 200 columns at a place that follows from their number (measured with MKL), and so from the row's block."""
PREFIX = "stillroom_prefix"
"""Attribute of a tensor of keys that names the shared keys and values before them."""


def register() -> str:
    """Make the attention known to transformers and return its name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)
    return NAME


def visible(torch: Any, places: Any, columns: int, dtype: Any) -> Any:
    """Return the mask (rows, 1, n, columns) to add to scores: 0 where a column is at the query's place or before.

    Args:
        places: int of shape (rows, n), the place of each query among the row's own columns.
    """
    hidden = torch.arange(columns, device=places.device)[None, None, None] > places[:, None, :, None]
    mask = torch.zeros(hidden.shape, dtype=dtype, device=places.device)
    return mask.masked_fill_(hidden, torch.finfo(dtype).min)


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
    if 1 < queries <= FEW:
        alone = [(query[:, :, i : i + 1], _of_query(attention_mask, i)) for i in range(queries)]
        each = [attend(module, one, key, value, mask, scaling, dropout, softcap)[0] for one, mask in alone]
        return torch.cat(each, dim=1), None
    groups, length = key.shape[1], key.shape[2]
    share = heads // groups
    many = share * queries
    scale = scaling if scaling is not None else dim**-0.5
    grouped = (query * scale).reshape(batch, groups, many, dim)
    keys, values = key.reshape(batch * groups, length, dim), value.reshape(batch * groups, length, dim)
    scores = torch.bmm(grouped.view(batch * groups, many, dim), keys.transpose(1, 2))
    scores = scores.view(batch, groups, share, queries, length)
    if attention_mask is not None and softcap is None:
        scores += _spread(attention_mask, length, batch, groups, share, queries)
    shared = getattr(key, PREFIX, None)
    before = 0
    if shared is not None:
        before = shared[0].shape[1]  # (groups, places, dim)
        flat = grouped.transpose(0, 1).reshape(groups, batch * many, dim)
        early = torch.bmm(flat, shared[0].transpose(1, 2)).view(groups, batch, share, queries, before)
        scores = torch.cat([early.transpose(0, 1), scores], dim=-1)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
        if attention_mask is not None:
            scores[..., before:] += _spread(attention_mask, length, batch, groups, share, queries)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    late = weights[..., before:].reshape(batch * groups, many, length)
    out = torch.bmm(late, values).view(batch, groups, many, dim)
    if shared is not None:
        early = weights[..., :before].transpose(0, 1).reshape(groups, batch * many, before)
        out = out + torch.bmm(early, shared[1]).view(groups, batch, many, dim).transpose(0, 1)
    return out.reshape(batch, heads, queries, dim).transpose(1, 2).contiguous(), None


def _of_query(mask: Any, number: int) -> Any:
    return None if mask is None else mask[:, :, number : number + 1]


def _spread(mask: Any, length: int, batch: int, groups: int, share: int, queries: int) -> Any:
    """Return the mask as the grouped scores need it."""
    mask = mask[..., :length]
    return mask.unsqueeze(2) if mask.shape[1] == 1 else mask.view(batch, groups, share, queries, length)
