"""The output head: scores of the next token from states, over all tokens or over a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stillroom.errors import ModelUnfit
from stillroom.lm.base import Scores
from stillroom.lm.lanes import Lanes

MOST = 1024
"""Tokens whose scores are computed alone; of more, they are taken from those of all."""


class Head:
    """The output head of a model of transformers.

    Args:
        lanes: on which the head of private rows runs.

    Attributes:
        weight: (vocabulary, width).
    """

    def __init__(self, torch: Any, model: Any, device: str, lanes: Lanes) -> None:
        self._torch, self._model, self._device, self._lanes = torch, model, device, lanes
        self._config = model.config.get_text_config()
        head = model.get_output_embeddings()
        self.weight, self._bias = head.weight.detach(), getattr(head, "bias", None)
        self._some: tuple[tuple[int, ...], Any, Any] | None = None
        self._plain = True

    def __call__(self, hidden: Any, vocabulary: Sequence[int] | None) -> Scores:
        """Return scores of states (rows, width) over the given token ids, or over all, in float32."""
        torch = self._torch
        with torch.inference_mode():
            if vocabulary is None or not self._plain or len(vocabulary) > MOST:
                scores = self._full(hidden)
                if vocabulary is not None:
                    scores = scores[:, torch.tensor([*vocabulary], dtype=torch.long, device=self._device)]
            else:
                _, weight, bias = self._part(tuple(vocabulary))
                scores = torch.nn.functional.linear(hidden, weight, bias)
            out: Scores = scores.to(torch.float32).cpu().numpy()
        return out

    def of_blocks(self, blocks: Sequence[Any], vocabulary: Sequence[int] | None, *, public: bool) -> Scores:
        """Return scores of blocks of states, all of one size, one below the other.

        Over all tokens each lane has its share of the tokens, as reading the weights is half of the work; over a few,
        its share of the blocks. Where all is public one block comes after the other, with all threads.
        """
        if public:
            return np.concatenate([self(block, vocabulary) for block in blocks])
        if vocabulary is not None or not self._plain or self._lanes.count == 1:
            return np.concatenate(self._lanes.map(lambda block: self(block, vocabulary), blocks))
        size, tokens = len(blocks[0]), len(self.weight)
        share = -(-tokens // self._lanes.count)
        scores: Scores = np.empty((size * len(blocks), tokens), np.float32)

        def part(first: int) -> None:
            some = slice(first, first + share)
            bias = None if self._bias is None else self._bias[some]
            with self._torch.inference_mode():
                for i, block in enumerate(blocks):
                    out = self._torch.nn.functional.linear(block, self.weight[some], bias)
                    scores[i * size : (i + 1) * size, some] = out.to(self._torch.float32).cpu().numpy()

        self._lanes.map(part, range(0, tokens, share))
        return scores

    def parts(self) -> Iterator[Any]:
        """Yield weights of every number of tokens whose scores may be computed alone."""
        return (self.weight[:count] for count in range(1, min(MOST, len(self.weight)) + 1))

    def check(self, body: Any, name: str, tokens: Sequence[int]) -> None:
        """Find out whether the head is one matrix product, by the model's own full forward pass over some tokens.

        Raises: ModelUnfit where its scores cannot be had at all.
        """
        torch = self._torch
        ids = torch.tensor([[*tokens]], dtype=torch.long, device=self._device)
        with torch.inference_mode():
            truth = self._model(input_ids=ids).logits[0, -1].float()
            state = body(input_ids=ids).last_hidden_state[:, -1]
            plain = torch.nn.functional.linear(state, self.weight, self._bias)[0].float()
            self._plain = bool(torch.allclose(plain, truth, atol=1e-2, rtol=1e-3))
            if not self._plain and not torch.allclose(self._full(state)[0].float(), truth, atol=1e-2, rtol=1e-3):
                raise ModelUnfit(name, "scores that match its own", "its output head is of a kind not known here")

    def _part(self, key: tuple[int, ...]) -> tuple[tuple[int, ...], Any, Any]:
        """Return the weights of some tokens; lanes may ask at once, so what is kept is one value."""
        part = self._some
        if part is None or part[0] != key:
            index = self._torch.tensor(key, dtype=self._torch.long, device=self._device)
            part = (key, self.weight[index].contiguous(), None if self._bias is None else self._bias[index])
            self._some = part
        return part

    def _full(self, hidden: Any) -> Any:
        logits = self._model.get_output_embeddings()(hidden)
        cap = getattr(self._config, "final_logit_softcapping", None)
        scale = getattr(self._config, "logits_scaling", None)
        if scale:
            logits = logits / scale
        return self._torch.tanh(logits / cap) * cap if cap else logits
