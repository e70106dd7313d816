"""The demo in a home of its own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import Home
from support.servers import Server


@pytest.fixture
def home(server: Server, tmp_path: Path) -> Iterator[Home]:
    """A home in which commands run as processes, on the private server."""
    home = _made(tmp_path, server.url)
    yield home
    home.close()


@pytest.fixture
def lone_home(tmp_path: Path) -> Iterator[Home]:
    """A home in which commands run as processes, on the embedded server."""
    home = _made(tmp_path, None)
    yield home
    home.close()


def _made(path: Path, url: str | None) -> Home:
    home = Home(path, url)
    home.env["PATH"] = f"{Path(sys.executable).parent}:{home.env['PATH']}"
    (path / "tmp").mkdir()
    home.env["TMPDIR"] = str(path / "tmp")
    return home
