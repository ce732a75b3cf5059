"""The layers of DESIGN section 2, read from the imports themselves, and the house rules that a machine can hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "stillroom"
LEAST_FILES = 30
"""So that the test cannot pass by reading nothing; raise it as the package grows."""

LAYERS = (
    ("errors", "documents", "guarantee", "text", "lexicon", "threads", "hub"),
    ("privacy", "lm", "embed", "models", "readers"),
    ("release", "index", "loading"),
    ("distil", "guard"),
    ("rag",),
    ("baselines", "attacks"),
    ("evals",),
    ("server", "integrations"),
    ("cli",),
)
LAYER = {part: number for number, parts in enumerate(LAYERS) for part in parts}
TALKING = frozenset({"errors", "documents", "guarantee", "text", "lexicon"})
"""Parts of one layer that may import each other; everywhere else only lower layers are imported."""

LONGEST = 450
VAGUE = re.compile(r"(^|_)(utils?|helpers?|common|misc|managers?)(_|$)")
DICE = re.compile(r"\bnp\.random\b|\bnumpy\.random\b|\btorch\.(multinomial|rand\w*|normal|bernoulli)\b")


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    """Return the part of the package that a file is in; the root's own file is ""."""
    first = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return "" if first in ("__init__", "__main__") else first


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every module imported anywhere in a file, in functions too, as a dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            # "from stillroom import errors" imports stillroom.errors; of deeper names, the first two parts tell.
            yield from ((f"{node.module}.{name.name}", node.lineno) for name in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            given = node.args[0]
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                yield given.value, node.lineno


def parts_used(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the parts of stillroom that a file imports; "" is the root itself."""
    for name, line in imports(tree):
        first, *rest = name.split(".")
        if first == "stillroom":
            yield (rest[0] if rest and (rest[0] in LAYER or rest[0] == "testing") else ""), line


def wrong(part: str, used: str, name: str) -> str | None:
    """Return what is wrong with a file of `part` importing `used`."""
    if part in ("", "testing") or used == part:
        return None  # the root offers everything (lazily, see below); the fakes may look everywhere
    if used == "testing":
        return None if name == "cli/demo.py" else "imports testing"
    if used == "":
        return None if part == "cli" else "imports the root, which offers all layers"
    if LAYER[used] > LAYER[part]:
        return f"(layer {LAYER[part]}) imports {used} (layer {LAYER[used]})"
    if LAYER[used] == LAYER[part] and not {used, part} <= TALKING:
        return f"imports {used}, its neighbour in layer {LAYER[part]}"
    return None


def read(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_there_is_something_to_read() -> None:
    assert len(modules()) >= LEAST_FILES
    assert sum(len(list(parts_used(read(path)))) for path in modules()) >= 40


def test_every_part_has_a_layer() -> None:
    assert {part_of(path) for path in modules()} - {"", "testing"} <= set(LAYER)


def test_every_file_imports_lower_layers_alone() -> None:
    broken = []
    for path in modules():
        name = path.relative_to(SOURCE).as_posix()
        for used, line in parts_used(read(path)):
            reason = wrong(part_of(path), used, name)
            if reason:
                broken.append(f"{name}:{line} {reason}")
    assert broken == []


def test_the_root_imports_nothing_until_it_is_asked() -> None:
    eager = [
        ast.unparse(node)
        for node in read(SOURCE / "__init__.py").body
        if isinstance(node, ast.Import | ast.ImportFrom) and any(True for _ in parts_used(node))
    ]
    assert eager == []


@pytest.mark.parametrize(
    ("part", "source", "caught"),
    [
        ("lm", "from stillroom.privacy.events import Event", True),
        ("lm", "from stillroom import privacy", True),
        ("lm", "def f():\n    import stillroom.privacy.noise", True),
        ("lm", "import importlib\nimportlib.import_module('stillroom.privacy.noise')", True),
        ("lm", "from stillroom.errors import BadOption\nfrom stillroom.lm.base import Prompt", False),
        ("privacy", "from stillroom.text import words", False),
        ("privacy", "from stillroom.release.schema import Text", True),
        ("index", "from stillroom.release.folder import Release", True),
        ("distil", "from stillroom.guard import vault", True),
        ("distil", "from stillroom.release.costs import events_of", False),
        ("distil", "from stillroom import distil", False),
        ("evals", "import stillroom", True),
        ("cli", "import stillroom", False),
        ("cli", "from stillroom.testing.toylm import ToyLM", True),
        ("testing", "from stillroom.cli.app import main", False),
    ],
)
def test_what_breaks_the_layers_is_caught(part: str, source: str, caught: bool) -> None:
    found = [wrong(part, used, f"{part}/any.py") for used, _ in parts_used(ast.parse(source))]
    assert any(found) is caught


def test_no_file_is_too_long_or_vaguely_named() -> None:
    files = [path for path in modules() if path.name != "__init__.py"]
    assert {str(p): n for p in files if (n := len(p.read_text(encoding="utf-8").splitlines())) > LONGEST} == {}
    names = {part for path in files for part in path.relative_to(SOURCE).with_suffix("").parts}
    assert {name for name in names if VAGUE.search(name)} == set()
    assert VAGUE.search("text_utils")


def test_noise_comes_through_one_door_and_nothing_else_rolls_dice() -> None:
    rolled = []
    for path in modules():
        part, name = part_of(path), path.relative_to(SOURCE).as_posix()
        if part == "testing":
            continue
        used = {name for name, _ in imports(read(path))}
        if any(re.match(r"random(\.|$)|numpy\.random(\.|$)", each) for each in used):
            rolled.append(f"{name} imports random numbers")
        if name != "privacy/noise.py" and any(re.match(r"opendp(\.|$)", each) for each in used):
            rolled.append(f"{name} imports opendp, but noise comes through privacy/noise.py")
        rolled += [f"{name}: {found[0]}" for found in DICE.finditer(path.read_text(encoding="utf-8"))]
    assert rolled == []
    assert DICE.search("x = np.random.normal()")
    assert DICE.search("torch.multinomial(p, 1)")
