"""Ctrl-C while the command starts, runs and ends, at moments that are chosen, not hit by chance."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from redmeter import interrupts
from support.commands import SOURCES, Done

#: Python imports a module of this name as it starts. This one sends the signal just before a
#: certain module is imported, or as the process ends.
CUSTOM = """
import atexit, os, signal, sys
moment = {moment!r}
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            interrupt()
sys.meta_path.insert(0, Finder())
if moment == "the end":
    atexit.register(interrupt)
"""

#: Both ways to call the command, as far as Python sees them.
SCRIPT = "import sys\nfrom redmeter.cli import main\nsys.exit(main())\n"


def run(folder: Path, moment: str, *words: str, script: bool) -> Done:
    """Run the command, interrupted at a moment."""
    (folder / "sitecustomize.py").write_text(CUSTOM.format(moment=moment))
    command = ["-P", "-m", "redmeter"]
    if script:
        (folder / "redmeter").write_text(SCRIPT)
        command = [str(folder / "redmeter")]
    env = {**os.environ, "PYTHONPATH": f"{folder}:{SOURCES}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *command, *words], env=env, capture_output=True, text=True, timeout=60
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("moment", "script"),
    [
        ("redmeter.errors", True),
        ("redmeter.errors", False),
        ("redis", True),
        ("redmeter.cli", True),
        ("redmeter.cli", False),
        ("typer", True),
        ("redmeter.cli.names", False),
    ],
)
def test_ctrl_c_during_the_imports_is_one_line_and_exit_code_130(
    tmp_path: Path, moment: str, script: bool
) -> None:
    """From the first module of our own on, however the command was called."""
    assert run(tmp_path, moment, "names", script=script) == Done(130, "", "error: interrupted\n")


def test_ctrl_c_after_the_output_is_exit_code_130(tmp_path: Path) -> None:
    """The output is complete; the interpreter says nothing of its own."""
    done = run(tmp_path, "the end", "--version", script=True)
    assert done.out.startswith("redmeter ")
    assert (done.code, done.err) == (130, "error: interrupted\n")


def test_another_program_keeps_its_own_handler() -> None:
    """Importing the library changes nothing about signals."""
    assert not interrupts.is_command()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("argv", "orig_argv", "found"),
    [
        (["/a/bin/redmeter", "up"], [], True),
        (["redmeter"], [], True),
        (["/a/bin/gunicorn", "redmeter"], [], False),
        (["/a/redmeter.py"], [], False),
        ([""], ["python"], False),
        (["-m", "up"], ["python", "-P", "-m", "redmeter", "up"], True),
        (["-m"], ["python", "-Pmredmeter"], True),
        (["-m"], ["python", "-m", "myredmeter"], False),
        (["-m", "redmeter"], ["python", "-m", "pytest", "redmeter"], False),
        (["-m", "1"], ["python", "-m", "redmeter.demo.server", "1"], False),
    ],
)
def test_the_command_is_told_apart_from_other_programs(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], orig_argv: list[str], found: bool
) -> None:
    """By what Python was called with."""
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig_argv)
    assert interrupts.is_command() is found
