"""Any causal language model of Hugging Face transformers behind the seam.

Reading runs in blocks of READ_ROWS rows of one length bucket, which follows from a row's own length; going on runs in
blocks of STEP_ROWS rows that are all as long as the public cap on a document. Blocks are filled with dummy rows, so
the shape of every pass over private rows is public and a row's numbers do not depend on the others;
`rows_independent` tries that bit for bit.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stillroom.errors import MissingExtra, ModelUnfit
from stillroom.lm.base import LanguageModel, Prompt, Readings, Scores, Session
from stillroom.threads import wait_patiently

READ_ROWS = 8
STEP_ROWS = 64
BUCKET = 16
ROOM = 64
"""Tokens for which a session allocates memory at a time."""


@dataclass(frozen=True)
class _Row:
    """One prompt as tokens: what follows the shared prefix, and its key/value memory once read."""

    tokens: tuple[int, ...]
    keys: Any = None  # (layers, 2, heads, len(tokens), dim)
    hidden: Any = None  # (width,): state after the last token


class HuggingFaceReadings(Readings):
    """Prompts with their key/value memory; past the memory cap only tokens are kept and read again when opened."""

    def __init__(
        self, prefix: tuple[int, ...], memory: Any, rows: list[_Row], longest: int, public: bool = False
    ) -> None:
        self.prefix, self.memory, self.rows, self.longest, self.public = prefix, memory, rows, longest, public

    def __len__(self) -> int:
        return len(self.rows)


class _Block:
    """Rows that run together: fixed in number, all as long as the public cap."""

    def __init__(
        self, lm: HuggingFaceLM, readings: HuggingFaceReadings, rows: Sequence[_Row], size: int, length: int
    ) -> None:
        torch = lm.torch
        self.lm, self.count, self.size = lm, len(rows), size
        prefix = len(readings.prefix)
        self.start = prefix + length
        self.pushed = 0
        layers, _, heads, _, dim = readings.memory.shape
        self.buffer = torch.zeros((layers, 2, size, heads, self.start + ROOM, dim), dtype=lm.dtype, device=lm.device)
        self.mask = torch.zeros((size, self.start + ROOM), dtype=torch.long, device=lm.device)
        self.positions = torch.full((size,), prefix, dtype=torch.long, device=lm.device)
        self.hidden = torch.zeros((size, lm.width), dtype=lm.dtype, device=lm.device)
        self.mask[:, :prefix] = 1
        self.mask[:, self.start :] = 1
        for layer in range(layers):
            for part in range(2):
                self.buffer[layer, part, :, :, :prefix] = readings.memory[layer, part]
        for i, row in enumerate(rows):
            n = len(row.tokens)
            self.buffer[:, :, i, :, self.start - n : self.start] = row.keys
            self.mask[i, self.start - n : self.start] = 1
            self.positions[i] = prefix + n
            self.hidden[i] = row.hidden

    def push(self, tokens: Any) -> None:
        """Append tokens of shape (n,) to every row, or of shape (size, n), one line for each."""
        torch = self.lm.torch
        ids = tokens if tokens.dim() == 2 else tokens.unsqueeze(0).expand(self.size, -1)
        n = ids.shape[1]
        used = self.start + self.pushed
        while used + n > self.buffer.shape[-2]:
            more = [*self.buffer.shape]
            more[-2] = ROOM
            self.buffer = torch.cat([self.buffer, torch.zeros(more, dtype=self.lm.dtype, device=self.lm.device)], -2)
            ones = torch.ones((self.size, ROOM), dtype=torch.long, device=self.lm.device)
            self.mask = torch.cat([self.mask, ones], -1)
        positions = self.positions[:, None] + torch.arange(self.pushed, self.pushed + n, device=self.lm.device)
        self.hidden = self.lm.forward(ids, self.buffer, used, self.mask[:, : used + n], positions)[:, -1]
        self.pushed += n


class HuggingFaceSession(Session):
    def __init__(self, lm: HuggingFaceLM, blocks: list[_Block]) -> None:
        self.lm, self.blocks = lm, blocks
        self.rows = sum(block.count for block in blocks)

    def scores(self, vocabulary: Sequence[int] | None = None) -> Scores:
        if not self.blocks:
            return np.zeros((0, self.lm.vocabulary_size if vocabulary is None else len(vocabulary)), np.float32)
        return np.concatenate([self.lm.head(block.hidden, vocabulary)[: block.count] for block in self.blocks])

    def push(self, tokens: Sequence[int]) -> None:
        if len(tokens) == 0:
            return
        ids = self.lm.torch.tensor([*tokens], dtype=self.lm.torch.long, device=self.lm.device)
        for block in self.blocks:
            block.push(ids)


class HuggingFaceLM(LanguageModel):
    """A causal language model of transformers.

    Args:
        model: a local folder or a model id of a hub.
        name: what certificates call it; the folder's name by default.
        device: "cpu" or "cuda".
        dtype: "float32"; others only where the row test passes.
        memory: bytes of key/value memory that readings may hold; beyond it rows are read again when opened.

    Raises:
        MissingExtra: torch or transformers is not installed.
        ModelUnfit: the model is not a causal language model that can be read here.
    """

    capabilities = frozenset({"scores", "generate"})

    def __init__(
        self,
        model: str | Path,
        *,
        name: str | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        memory: int = 6 * 2**30,
    ) -> None:
        wait_patiently()
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as missing:
            raise MissingExtra("a local language model", "local") from missing
        from stillroom.lm.attention import register

        self.torch = torch
        self.name = name or Path(str(model)).name
        self.device, self.dtype_name, self.memory = device, dtype, memory
        self.placed = f"{device}, {dtype}"
        self.dtype = getattr(torch, dtype)
        with _quiet():
            try:
                self.tokenizer = AutoTokenizer.from_pretrained(str(model))
                self.model = AutoModelForCausalLM.from_pretrained(
                    str(model), dtype=self.dtype, attn_implementation=register()
                )
            except (OSError, ValueError, KeyError) as wrong:
                raise ModelUnfit(
                    str(model),
                    "text",
                    "it is no causal language model that transformers can load here "
                    f"({type(wrong).__name__}); see stillroom models list",
                ) from wrong
        self.model.eval().to(device)
        self.body = self.model.get_decoder() if hasattr(self.model, "get_decoder") else self.model.model
        head = self.model.get_output_embeddings()
        self._weight, self._bias = head.weight.detach(), getattr(head, "bias", None)
        self.width = self._weight.shape[1]
        self.vocabulary_size = self._weight.shape[0]
        self.stop_tokens = self._stops()
        self._subset: tuple[tuple[int, ...], Any, Any] | None = None
        self._plain_head = self._head_is_plain()
        self._independent: dict[int, bool] = {}

    # -- tokens ---------------------------------------------------------------------------------------------------
    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(_whole(text), add_special_tokens=False)
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode([*tokens], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def _stops(self) -> frozenset[int]:
        ends = self.model.generation_config.eos_token_id
        ids = set(ends if isinstance(ends, list) else [ends] if ends is not None else [])
        ids.update(self.tokenizer.all_special_ids)
        return frozenset(int(i) for i in ids if i is not None)

    def _pieces(self, prompt: Prompt) -> tuple[list[int], list[int], list[int]]:
        """Return the tokens of prefix, body and suffix; the chat template is split around a marker."""
        marker = "\x1a"
        turn = [{"role": "user", "content": marker}]
        if self.tokenizer.chat_template:
            whole: str = self.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        else:
            whole = f"{marker}\n"
        opening, closing = whole.split(marker)
        special = self.tokenizer.encode
        return (
            special(opening + prompt.before, add_special_tokens=False),
            self.encode_body(prompt.body),
            special(prompt.after + closing + prompt.reply, add_special_tokens=False),
        )

    def encode_body(self, text: str) -> list[int]:
        """Return the tokens of a private text, in which nothing is a special token."""
        ids: list[int] = self.tokenizer.encode(
            _whole(text), add_special_tokens=False, split_special_tokens=True, verbose=False
        )  # verbose would log the length of a long document
        return ids

    # -- reading --------------------------------------------------------------------------------------------------
    def read(self, prompts: Sequence[Prompt], body_tokens: int = 192) -> HuggingFaceReadings:
        pieces = [self._pieces(prompt) for prompt in prompts]
        if len({tuple(p[0]) for p in pieces}) > 1:
            raise ValueError("prompts that are read together must share what stands before the body")
        prefix = tuple(pieces[0][0]) if pieces else tuple(self._pieces(Prompt(""))[0])
        memory = self._read_prefix(prefix)
        longest = body_tokens + max((len(p[2]) for p in pieces), default=0)
        rows = [_Row(tuple(body[:body_tokens] + suffix)) for _, body, suffix in pieces]
        public = bool(prompts) and all(prompt.public for prompt in prompts)
        readings = HuggingFaceReadings(prefix, memory, rows, longest, public)
        per_token = memory[..., 0, :].numel() * memory.element_size()
        room = self.memory
        keep = []
        for i, row in enumerate(rows):
            room -= per_token * len(row.tokens)
            if room < 0:
                break
            keep.append(i)
        readings.rows = [*self._read_rows(readings, [rows[i] for i in keep]), *rows[len(keep) :]]
        return readings

    def _read_prefix(self, prefix: tuple[int, ...]) -> Any:
        torch, config = self.torch, self.model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        shape = (config.num_hidden_layers, 2, 1, heads, len(prefix), dim)
        buffer = torch.zeros(shape, dtype=self.dtype, device=self.device)
        if prefix:
            ids = torch.tensor([prefix], dtype=torch.long, device=self.device)
            places = torch.arange(len(prefix), device=self.device)[None]
            self.forward(ids, buffer, 0, torch.ones_like(ids), places)
        return buffer[:, :, 0]

    def _read_rows(self, readings: HuggingFaceReadings, rows: Sequence[_Row]) -> list[_Row]:
        """Read rows in blocks of one bucket, each block filled up with dummy rows unless all of it is public."""
        torch, prefix = self.torch, len(readings.prefix)
        size = min(READ_ROWS, max(1, len(rows))) if readings.public else READ_ROWS
        buckets: dict[int, list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            buckets[-(-len(row.tokens) // BUCKET) * BUCKET].append(i)
        done = list(rows)
        layers, _, heads, _, dim = readings.memory.shape
        for length, members in sorted(buckets.items()):
            for first in range(0, len(members), size):
                chosen = members[first : first + size]
                shape = (layers, 2, size, heads, prefix + length, dim)
                buffer = torch.zeros(shape, dtype=self.dtype, device=self.device)
                for layer in range(layers):
                    for part in range(2):
                        buffer[layer, part, :, :, :prefix] = readings.memory[layer, part]
                ids = torch.zeros((size, length), dtype=torch.long, device=self.device)
                mask = torch.ones((size, prefix + length), dtype=torch.long, device=self.device)
                places = torch.arange(prefix, prefix + length, device=self.device).repeat(size, 1)
                for j, i in enumerate(chosen):
                    n = len(rows[i].tokens)
                    ids[j, length - n :] = torch.tensor(rows[i].tokens, dtype=torch.long)
                    mask[j, prefix : prefix + length - n] = 0
                    places[j] = (places[j] - (length - n)).clamp(min=prefix)
                hidden = self.forward(ids, buffer, prefix, mask, places)[:, -1]
                for j, i in enumerate(chosen):
                    n = len(rows[i].tokens)
                    keys = buffer[:, :, j, :, prefix + length - n :].clone()
                    done[i] = _Row(rows[i].tokens, keys, hidden[j].clone())
        return done

    # -- going on -------------------------------------------------------------------------------------------------
    def open(
        self, readings: Readings, rows: Sequence[int] | None = None, *, public: bool = False
    ) -> HuggingFaceSession:
        if not isinstance(readings, HuggingFaceReadings):
            raise TypeError("these readings were made by another language model")
        chosen = [readings.rows[i] for i in (range(len(readings)) if rows is None else rows)]
        size = min(STEP_ROWS, max(1, len(chosen))) if public else STEP_ROWS
        length = max((len(row.tokens) for row in chosen), default=0) if public else readings.longest
        blocks = []
        for first in range(0, len(chosen), size):
            part = chosen[first : first + size]
            unread = [i for i, row in enumerate(part) if row.keys is None]
            for i, row in zip(unread, self._read_rows(readings, [part[i] for i in unread]), strict=True):
                part[i] = row
            blocks.append(_Block(self, readings, part, size, length))
        return HuggingFaceSession(self, blocks)

    def forward(self, ids: Any, buffer: Any, used: int, mask: Any, positions: Any) -> Any:
        """Run tokens (rows, n) after `used` places of the key/value buffer; return states (rows, n, width)."""
        from stillroom.lm.memory import cache_on

        cache = cache_on(buffer, used)
        with self.torch.inference_mode():
            out = self.body(input_ids=ids, attention_mask=mask, position_ids=positions, cache=cache, use_cache=True)
        return out.last_hidden_state

    def head(self, hidden: Any, vocabulary: Sequence[int] | None) -> Scores:
        """Return scores of states (rows, width) over the given token ids, or over all, in float32."""
        torch = self.torch
        with torch.inference_mode():
            if vocabulary is None or not self._plain_head:
                scores = self._full_head(hidden)
                if vocabulary is not None:
                    scores = scores[:, torch.tensor([*vocabulary], dtype=torch.long, device=self.device)]
            else:
                key = tuple(vocabulary)
                if self._subset is None or self._subset[0] != key:
                    index = torch.tensor(key, dtype=torch.long, device=self.device)
                    bias = None if self._bias is None else self._bias[index]
                    self._subset = (key, self._weight[index].contiguous(), bias)
                scores = torch.nn.functional.linear(hidden, self._subset[1], self._subset[2])
            out: Scores = scores.to(torch.float32).cpu().numpy()
        return out

    def _full_head(self, hidden: Any) -> Any:
        logits = self.model.get_output_embeddings()(hidden)
        config = self.model.config.get_text_config()
        cap = getattr(config, "final_logit_softcapping", None)
        scale = getattr(config, "logits_scaling", None)
        if scale:
            logits = logits / scale
        return self.torch.tanh(logits / cap) * cap if cap else logits

    def _head_is_plain(self) -> bool:
        """Check the model against its own full forward pass, and say whether its head is one matrix product."""
        torch = self.torch
        ids = torch.tensor([self.encode("The quick brown fox")], dtype=torch.long, device=self.device)
        with torch.inference_mode():
            truth = self.model(input_ids=ids).logits[0, -1].float()
            state = self.body(input_ids=ids).last_hidden_state[:, -1]
            plain = torch.nn.functional.linear(state, self._weight, self._bias)[0].float()
            if torch.allclose(plain, truth, atol=1e-2, rtol=1e-3):
                return True
            if not torch.allclose(self._full_head(state)[0].float(), truth, atol=1e-2, rtol=1e-3):
                raise ModelUnfit(self.name, "scores that match its own", "its output head is of a kind not known here")
        return False

    # -- row test -------------------------------------------------------------------------------------------------
    def rows_independent(self, body_tokens: int = 128) -> bool:
        from stillroom.lm.rowtest import rows_independent

        if body_tokens not in self._independent:  # the same device, dtype and threads for this model's whole life
            self._independent[body_tokens] = rows_independent(self, body_tokens)
        return self._independent[body_tokens]

    # -- text -----------------------------------------------------------------------------------------------------
    def generate(self, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        from stillroom.lm.greedy import generate

        return generate(self, prompts, max_tokens, stop)


def _whole(text: str) -> str:
    """Return the text without lone surrogates, at which tokenizers fail."""
    return text.encode("utf-8", "replace").decode("utf-8")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from drawing bars and printing advice."""
    from transformers.utils import logging as messages

    level, bars = messages.get_verbosity(), messages.is_progress_bar_enabled()
    messages.set_verbosity_error()
    messages.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        yield
    finally:
        messages.set_verbosity(level)
        if bars:
            messages.enable_progress_bar()
