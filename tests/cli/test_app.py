"""The root command: fast help, one sentence an error, exit codes that scripts can trust."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import stillroom.cli.app as app
from stillroom.cli.progress import Lines, Terminal, showing
from stillroom.errors import BadOption, BudgetTooSmall, CertificateMismatch, LeakFound, LedgerMissing, UnitsShared

SECRET = "Mary Poppins, record 4711"
ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        app.main(list(arguments))
    assert isinstance(end.value.code, int)
    return end.value.code


def shell(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **extra}
    command = [sys.executable, "-W", "error", "-m", "stillroom.cli.app", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Put a function in the place of `stillroom verify`."""

    def put(body: Callable[[], None]) -> None:
        module = ModuleType("stillroom.cli.verify")
        module.verify = body  # type: ignore[attr-defined]
        module.__spec__ = app.importlib.util.find_spec("stillroom.cli.verify")
        monkeypatch.setitem(sys.modules, "stillroom.cli.verify", module)

    return put


def test_help_lists_every_command_that_is_there() -> None:
    shown = shell("--help", NO_COLOR="1", COLUMNS="120").stdout
    there = [name for name in app.COMMANDS if (ROOT / "src/stillroom/cli" / f"{name}.py").exists()]
    assert {"verify", "inspect", "ask"} <= set(there)
    for name in app.COMMANDS:
        assert (re.search(rf"^\W*{name}\s+{re.escape(app.COMMANDS[name][:30])}", shown, re.M) is not None) == (
            name in there
        )


def test_help_imports_no_command_and_nothing_heavy() -> None:
    look = (
        "import sys\nfrom stillroom.cli.app import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'numpy', 'bm25s', 'stillroom.release', 'stillroom.cli.verify'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    end = subprocess.run([sys.executable, "-c", look], env=environment, capture_output=True, text=True)
    assert (end.returncode, end.stderr) == (0, "")


def test_help_is_quick() -> None:
    def processor_seconds() -> float:
        before = os.times()
        assert shell("--help").returncode == 0
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(processor_seconds() for _ in range(3)) < 1.5


@pytest.mark.parametrize("name", ["verify", "inspect", "ask"])
def test_every_command_has_a_help_page_without_completion_options(name: str) -> None:
    shown = shell(name, "--help", NO_COLOR="1")
    assert shown.returncode == 0
    assert f"stillroom {name}" in shown.stdout
    assert "completion" not in shown.stdout


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("stillroom")


@pytest.mark.parametrize("line", ["nonsense", "verify", "verify a b", "inspect a --samples x", "--nonsense", ""])
def test_wrong_use_exits_2(line: str) -> None:
    assert run(*line.split()) == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LedgerMissing("x"), 1),
        (BadOption("ε", -1, "above 0"), 2),
        (BudgetTooSmall(1, 1e-6, 0.1, 0.2, "more"), 2),
        (UnitsShared("a", "b"), 3),
        (CertificateMismatch("x", ["y"]), 4),
        (LeakFound(1, 2), 5),
    ],
)
def test_an_error_is_one_sentence_on_stderr_with_its_exit_code(
    error: Exception, code: int, command: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    def body() -> None:
        raise error

    command(body)
    assert run("verify") == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"Error: {error}\n")


def test_an_accident_shows_its_type_and_never_its_text(
    command: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def body() -> None:
        note = SECRET
        raise KeyError(note)

    monkeypatch.delenv(app.TRACEBACK, raising=False)
    command(body)
    assert run("verify") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "KeyError" in err
    assert err.count("\n") == 1
    assert "Mary" not in err


def test_the_trace_is_shown_where_its_owner_asks(
    command: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def body() -> None:
        raise KeyError("made up")

    monkeypatch.setenv(app.TRACEBACK, "1")
    command(body)
    assert run("verify") == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_says_how_to_go_on(command: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> None:
        raise KeyboardInterrupt

    command(body)
    assert run("verify") == 130
    assert capsys.readouterr().err == "interrupted; run the same command again to go on\n"


def test_a_command_that_fails_to_import_is_not_passed_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> ModuleType:
        raise ImportError(name)

    monkeypatch.setattr(app.importlib, "import_module", broken)
    assert run("verify", "x") == 1
    assert "ImportError" in capsys.readouterr().err


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_reader_who_goes_away_is_no_error(lines: int) -> None:
    source = (
        "import sys, types\nimport stillroom.cli.app as app\nmodule = types.ModuleType('m')\n"
        f"def verify():\n    input()\n    for _ in range({lines}):\n        print('line')\n"
        "module.verify = verify\nmodule.__spec__ = app.importlib.util.find_spec('stillroom.cli.verify')\n"
        "sys.modules['stillroom.cli.verify'] = module\napp.main(['verify'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": ""}  # one line stays buffered
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", source], env=environment, **pipes) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdout.close()
        process.stdin.write(b"go\n")
        process.stdin.close()
        assert process.stderr.read() == b""


# -- progress -------------------------------------------------------------------------------------------------
def test_off_a_terminal_progress_is_json_lines_not_too_many() -> None:
    now = 0.0
    stream = io.StringIO()
    lines = Lines(stream, every=2.0, clock=lambda: now)
    lines.stage("texts", 100)
    for _ in range(100):
        now += 0.1
        lines.advance()
    lines.stage("filter", None)
    lines.advance(3)
    lines.done()
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert said[0] == {"stage": "texts", "done": 0, "of": 100}
    assert {"stage": "texts", "done": 100, "of": 100} in said
    assert said[-2:] == [{"stage": "filter", "done": 0, "of": None}, {"stage": "filter", "done": 3, "of": None}]
    assert 5 <= len(said) <= 9


def test_on_a_terminal_progress_is_bars_that_end_full() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    with showing(screen) as progress:
        assert isinstance(progress, Terminal)
        progress.stage("[red]texts", 4)
        progress.advance(2)
        progress.stage("filter", None)
    shown = screen.getvalue()
    assert "[red]texts" in shown
    assert "2/2" in shown  # it ended early
    with showing(io.StringIO()) as other:
        assert isinstance(other, Lines)


def test_progress_ends_when_the_work_fails() -> None:
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), showing(stream) as progress:
        progress.stage("texts", 2)
        progress.advance()
        raise ZeroDivisionError
    assert json.loads(stream.getvalue().splitlines()[-1])["done"] == 1
