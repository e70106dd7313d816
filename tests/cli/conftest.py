"""The command on a private server: in this process where that tells enough, else in its own."""

import functools
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from redmeter.cli import output
from redmeter.cli.app import app
from support.commands import Done, Home
from support.invoking import Run, invoking
from support.servers import Server


@pytest.fixture
def redmeter(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """The command in this process, its output a pipe's."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("REDMETER_URL", server.url)
    monkeypatch.delenv("REDMETER_PREFIX", raising=False)
    with invoking() as run:
        yield run


class Screen(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, errors="backslashreplace")

    def isatty(self) -> bool:
        """Say so."""
        return True

    def seen(self) -> str:
        """Return what was written."""
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def screen(redmeter: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, its output and errors a terminal's of `columns` columns."""

    def run(*arguments: str, columns: int = 80, encoding: str = "utf-8", **env: str) -> Done:
        seen = Screen(encoding)
        output.take_any(seen)
        with monkeypatch.context() as patch:
            for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
                patch.delenv(name, raising=False)
            for name, text in ({"TERM": "xterm-256color", "COLUMNS": str(columns)} | env).items():
                patch.setenv(name, text)
            patch.setattr(sys, "stdout", seen)
            patch.setattr(sys, "stderr", seen)
            patch.setattr(output, "_console", functools.cache(output._console.__wrapped__))
            with pytest.raises(SystemExit) as ended:
                app(list(arguments))
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, seen.seen(), "")

    return run


@pytest.fixture
def meter(server: Server) -> Iterator[Meter]:
    """A meter on the server of the commands."""
    with Meter(server.url, sync=True) as meter:
        yield meter


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    """A client on the server of the commands."""
    with server.client() as client:
        yield client


def with_command(path: str) -> str:
    """Return a PATH on which this environment's `redmeter` is found, as it is when activated."""
    return f"{Path(sys.executable).parent}{os.pathsep}{path}"


@pytest.fixture
def home(server: Server, tmp_path: Path) -> Iterator[Home]:
    """A home in which commands run as processes, on the private server."""
    home = Home(tmp_path, server.url)
    home.env["PATH"] = with_command(home.env["PATH"])
    yield home
    home.close()


@pytest.fixture
def lone_home(tmp_path: Path) -> Iterator[Home]:
    """A home in which commands run as processes, on the embedded server."""
    home = Home(tmp_path)
    home.env["PATH"] = with_command(home.env["PATH"])
    yield home
    home.close()
