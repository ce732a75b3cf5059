"""Any causal language model of Hugging Face transformers behind the seam.

Reading runs in blocks of `read_rows` rows of one length bucket, which follows from a row's own length; going on is the
business of `pool`. Blocks are filled with dummy rows, so passes over private rows have few shapes, all public. Which of
them a row is in, and at which place, may follow from how many other rows there are; that this moves no bit of a row is
what `rows_independent` and `mixes` try, on this device, before every run.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from stillroom.errors import MissingExtra, ModelUnfit
from stillroom.hub import only_here
from stillroom.lm.alike import places_alike, reading_alike, widths_alike
from stillroom.lm.attention import FEW, visible
from stillroom.lm.base import CHUNK, LanguageModel, Prompt, Readings
from stillroom.lm.head import Head
from stillroom.lm.lanes import Lanes
from stillroom.lm.pool import HEAD_ROWS, MARGIN, STEP_ROWS, TRIM, HuggingFacePool, HuggingFaceSession
from stillroom.threads import wait_patiently

T = TypeVar("T")
R = TypeVar("R")

READ_ROWS, READ_BUCKET = 2, 8
"""Rows of a block that is read on a CPU, whose products are long enough, and columns up to a multiple of which."""
READ_ROWS_ELSEWHERE = 32
LEAST_WINDOW = 2048
"""Tokens that a model with a sliding window must see at once: every row looks back to its beginning here."""


@dataclass(frozen=True)
class Row:
    """One prompt as tokens: what follows the shared prefix, and its key/value memory once read."""

    tokens: tuple[int, ...]
    keys: Any = None  # (layers, 2, heads, len(tokens), dim)
    hidden: Any = None  # (width,): state after the last token


class HuggingFaceReadings(Readings):
    """Prompts with their key/value memory; past the memory cap only tokens are kept and read again when opened."""

    def __init__(self, prefix: tuple[int, ...], memory: Any, rows: list[Row], public: bool = False) -> None:
        self.prefix, self.memory, self.rows, self.public = prefix, memory, rows, public

    def __len__(self) -> int:
        return len(self.rows)

    def forget(self, rows: Sequence[int]) -> None:
        for i in rows:
            self.rows[i] = Row(self.rows[i].tokens)


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
    shares_passes = True

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
        self.lanes = Lanes(torch, device)
        self.read_rows = READ_ROWS if device == "cpu" else READ_ROWS_ELSEWHERE
        with _quiet():
            here = only_here(model)
            try:
                self.tokenizer = AutoTokenizer.from_pretrained(str(model), local_files_only=here)
                self.model = AutoModelForCausalLM.from_pretrained(
                    str(model), dtype=self.dtype, attn_implementation=register(), local_files_only=here
                )
            except (OSError, ValueError, KeyError) as wrong:
                raise ModelUnfit(
                    str(model),
                    "text",
                    "it is no causal language model that transformers can load "
                    f"{'from a hub' if not here else 'here'} ({type(wrong).__name__}); see stillroom models list",
                ) from wrong
        config = self.model.config.get_text_config()
        if reason := _coupled(config):
            raise ModelUnfit(str(model), f"scores of one row that no other row moves: {reason}", "choose another")
        window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
        if window and window < LEAST_WINDOW:
            raise ModelUnfit(
                str(model),
                f"scores of whole prompts with its window of {window} tokens",
                f"choose one of {LEAST_WINDOW} or more",
            )
        self.model.eval().to(device)
        self.body = self.model.get_decoder() if hasattr(self.model, "get_decoder") else self.model.model
        self.head = Head(torch, self.model, device, self.lanes)
        self.vocabulary_size, self.width = self.head.weight.shape
        self.stop_tokens = self._stops()
        self.head.check(self.body, self.name, self.encode("The quick brown fox"))
        self._independent: dict[int, bool] = {}
        self._mixes: dict[tuple[int, int], bool] = {}
        self._again = (str(model), self.name, device, dtype, memory)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as what it was loaded from: another process has threads, lanes and a row test of its own."""
        return _load, (*self._again, self.digest)

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
        rows = [Row(tuple(body[:body_tokens] + suffix)) for _, body, suffix in pieces]
        public = bool(prompts) and all(prompt.public for prompt in prompts)
        readings = HuggingFaceReadings(prefix, memory, rows, public)
        per_token = memory[..., :1, :].numel() * memory.element_size() or 1
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
        empty = torch.zeros((config.num_hidden_layers, 2, heads, 0, dim), dtype=self.dtype, device=self.device)
        if not prefix:
            return empty
        ids = torch.tensor([prefix], dtype=torch.long, device=self.device)
        _, keys = self._fresh(ids, empty)
        return keys[:, :, 0]

    def _fresh(self, ids: Any, memory: Any) -> tuple[Any, Any]:
        """Return states (rows, n, width) and memory (layers, 2, rows, heads, n, dim) of tokens behind a prefix."""
        from stillroom.lm.memory import memory_of

        torch, (rows, n) = self.torch, ids.shape
        columns = torch.arange(n, device=self.device).repeat(rows, 1)
        cache = memory_of(memory)
        with torch.inference_mode():
            mask = visible(torch, columns, n, self.dtype)
            out = self.body(
                input_ids=ids, attention_mask=mask, position_ids=columns + memory.shape[-2], cache=cache, use_cache=True
            )
            keys = torch.stack([torch.stack(layer.states) for layer in cache.layers])
        return out.last_hidden_state, keys

    def _read_rows(self, readings: HuggingFaceReadings, rows: Sequence[Row]) -> list[Row]:
        """Read rows in blocks of one bucket, each block filled up with dummy rows unless all of it is public."""
        torch = self.torch
        size = min(self.read_rows, max(1, len(rows))) if readings.public else self.read_rows
        buckets: dict[int, list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            buckets[max(1, -(-len(row.tokens) // READ_BUCKET)) * READ_BUCKET].append(i)
        done = list(rows)

        def block(work: tuple[int, list[int]]) -> None:
            length, chosen = work
            ids = torch.zeros((size, length), dtype=torch.long)
            for j, i in enumerate(chosen):
                ids[j, : len(rows[i].tokens)] = torch.tensor(rows[i].tokens, dtype=torch.long)
            states, keys = self._fresh(ids.to(self.device), readings.memory)
            for j, i in enumerate(chosen):
                n = len(rows[i].tokens)
                done[i] = Row(rows[i].tokens, keys[:, :, j, :, :n].clone(), states[j, max(n, 1) - 1].clone())

        blocks = [
            (length, members[first : first + size])
            for length, members in sorted(buckets.items(), reverse=True)  # short ones fill the lanes up at the end
            for first in range(0, len(members), size)
        ]
        self.side_by_side(block, blocks, public=readings.public)
        return done

    def side_by_side(self, work: Callable[[T], R], items: Sequence[T], *, public: bool) -> list[R]:
        """Return what work gives for each item; where all is public, one after the other with all threads for each."""
        return [work(item) for item in items] if public else self.lanes.map(work, items)

    # -- going on -------------------------------------------------------------------------------------------------
    def pool(self, readings: Readings, *, public: bool = False, size: int = 1) -> HuggingFacePool:
        if not isinstance(readings, HuggingFaceReadings):
            raise TypeError("these readings were made by another language model")
        return HuggingFacePool(self, readings, min(STEP_ROWS, max(1, size)) if public else STEP_ROWS)

    def open(
        self, readings: Readings, rows: Sequence[int] | None = None, *, public: bool = False
    ) -> HuggingFaceSession:
        return self.pool(readings, public=public, size=len(readings) if rows is None else len(rows)).open(rows)

    def ready(self, readings: HuggingFaceReadings, rows: Sequence[int]) -> list[Row]:
        """Return rows with their memory; those that were not kept are read again."""
        chosen = [readings.rows[i] for i in rows]
        unread = [i for i, row in enumerate(chosen) if row.keys is None]
        for i, row in zip(unread, self._read_rows(readings, [chosen[i] for i in unread]), strict=True):
            chosen[i] = row
        return chosen

    def mixes(self, memory: Any, widest: int) -> bool:
        """Return whether rows may have more columns than they need, up to `widest`, and keep every bit. Tried once.

        On other devices than a CPU they may not: kernels choose their sums by the shape.
        """
        key = memory.shape[-2], widest
        if key not in self._mixes:
            heads = self.model.config.get_text_config().num_attention_heads
            lengths = (1,) if CHUNK <= FEW else (1, CHUNK)  # few tokens of a pass are asked for one by one
            alike = self.device == "cpu" and self.lanes.map(
                lambda layer: widths_alike(self.torch, layer, heads, STEP_ROWS, lengths, widest, TRIM), [memory[0]]
            )
            self._mixes[key] = alike == [True]
        return self._mixes[key]

    def forward(self, ids: Any, places: Any, mask: Any, memory: Any, own: Any, columns: Any, used: int) -> Any:
        """Run tokens (rows, n) that go to their columns of the rows' own memory; return states (rows, n, width)."""
        from stillroom.lm.memory import memory_of

        cache = memory_of(memory, own, columns, used)
        with self.torch.inference_mode():
            out = self.body(input_ids=ids, attention_mask=mask, position_ids=places, cache=cache, use_cache=True)
        return out.last_hidden_state

    # -- row test -------------------------------------------------------------------------------------------------
    def rows_independent(self, body_tokens: int = 128) -> bool:
        from stillroom.lm.rowtest import rows_independent

        if body_tokens not in self._independent:  # the same device, dtype and threads for this model's whole life
            self._independent[body_tokens] = self._parts_alike(body_tokens) and rows_independent(self, body_tokens)
        return self._independent[body_tokens]

    def _parts_alike(self, body_tokens: int) -> bool:
        """Return whether rows are alike at all places, for every length that is read and every number of candidates."""
        torch, lengths = self.torch, range(READ_BUCKET, body_tokens + MARGIN, READ_BUCKET)
        weights = [part.weight for part in self.body.modules() if isinstance(part, torch.nn.Linear)]
        prefix = self._read_prefix((0,))[0]
        heads = self.model.config.get_text_config().num_attention_heads

        def tried(part: str) -> bool:
            with torch.inference_mode():
                if part == "products":
                    return places_alike(torch, weights, self.read_rows, lengths)
                alike = reading_alike(torch, prefix, heads, self.read_rows, lengths)
                return alike and places_alike(torch, self.head.parts(), HEAD_ROWS, [1])

        return all(self.side_by_side(tried, ["products", "the rest"], public=False))

    # -- text -----------------------------------------------------------------------------------------------------
    def generate(self, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        from stillroom.lm.greedy import generate

        return generate(self, prompts, max_tokens, stop)


def _load(model: str, name: str, device: str, dtype: str, memory: int, digest: str) -> HuggingFaceLM:
    lm = HuggingFaceLM(model, name=name, device=device, dtype=dtype, memory=memory)
    lm.digest = digest
    return lm


def _coupled(config: Any) -> str:
    """Return why rows of one pass are not computed apart in a model of this kind; empty where they are."""
    for experts in ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"):
        if (getattr(config, experts, None) or 0) > 1:
            return "its experts read tokens of all rows together"
    for name in ("rope_scaling", "rope_parameters"):
        rope = getattr(config, name, None) or {}
        kind = rope.get("rope_type", rope.get("type", "")) if isinstance(rope, dict) else ""
        if kind in ("dynamic", "longrope"):
            return f"its {kind} positions follow from the longest row of a pass"
    return ""


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
