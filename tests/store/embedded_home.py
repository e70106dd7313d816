"""A place for embedded servers in tests: knows every process that runs there, and leaves none.

A server and its supervisor have the data directory as working directory, so /proc shows all of
them, also those that a killed starter left and whose directory is deleted.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import redis

import redmeter
from redmeter.store import embedded
from redmeter.store.embedded import Info
from support.waiting import eventually

SOURCES = Path(redmeter.__file__).parents[1]

#: Imports the embedded server alone, without the client library that redmeter.store brings: it is
#: faster, and the system's Python, which an unprivileged user may run, may be too old for that.
ALONE = f"""
import sys, types
for name in ("redmeter", "redmeter.store"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{str(SOURCES)!r} + "/" + name.replace(".", "/")]
from redmeter.store import embedded
"""

#: Starts the server in argv[1] once a line comes, tells its socket, waits for the end of input.
STARTER = """
print("here", flush=True)
sys.stdin.readline()
print(embedded.ensure(sys.argv[1]), flush=True)
sys.stdin.read()
"""


class Home:
    """A temporary directory with servers in it.

    Attributes:
        root: everything is below it.
        data: the data directory most tests use; not made.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        self._children: list[subprocess.Popen[str]] = []
        self._clients: list[redis.Redis] = []

    def client(self, socket: Path | None = None) -> redis.Redis:
        """Return a client of the server, which is started if need be."""
        path = socket or embedded.ensure(self.data)
        client = redis.Redis(unix_socket_path=str(path), decode_responses=True)
        self._clients.append(client)
        return client

    def info(self) -> Info:
        """Return what runs."""
        info = embedded.running(self.data)
        assert info is not None
        return info

    def processes(self) -> dict[int, str]:
        """Return the processes that work below root: pid and command line."""
        found = {}
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and int(process.name) != os.getpid():
                try:
                    if (process / "cwd").readlink().is_relative_to(self.root):
                        found[int(process.name)] = (process / "cmdline").read_text()
                except OSError:  # it has ended, or is none of ours
                    continue
        return found

    def servers(self) -> set[int]:
        """Return the pids of the server processes below root."""
        lines = self.processes().items()  # a process that is ending has an empty one
        return {pid for pid, line in lines if line and "__main__.py" not in line}

    def empty(self, timeout: float = 8.0) -> None:
        """Wait until nothing runs below root."""
        eventually(lambda: not self.processes(), timeout, "nothing runs any more")

    def python(self, code: str, *arguments: object) -> subprocess.Popen[str]:
        """Start a Python in a session of its own that has imported `sys` and `embedded`."""
        child = subprocess.Popen(
            [sys.executable, "-c", ALONE + code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._children.append(child)
        return child

    def run(self, code: str, *arguments: object) -> str:
        """Run a Python to its end; return what it printed."""
        child = self.python(code, *arguments)
        told, _ = child.communicate(timeout=20)
        assert child.returncode == 0, told
        return told

    def close_clients(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def close(self) -> None:
        """End everything; fail if anything had to be killed."""
        self.close_clients()
        for child in self._children:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe:
                    pipe.close()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGCONT)
                embedded.stop((Path("/proc") / str(pid) / "cwd").readlink())
            except (FileNotFoundError, ProcessLookupError):
                continue
        try:
            self.empty(timeout=3.0)
        finally:
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(name="home")
def home_of_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A Home with a runtime directory of its own, empty afterwards.

    Not below tmp_path: pytest clears away what earlier runs left there, and a run that was killed
    can have left a mounted file system, which it cannot clear away.
    """
    place = Path(tempfile.mkdtemp(prefix="rm-", dir="/tmp"))
    root, runtime = place / "home", place / "run"
    for each in (root, runtime):
        each.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    home = Home(root)
    yield home
    home.close()
    sockets = list(runtime.rglob("*.sock"))
    shutil.rmtree(place)
    assert not sockets


def kill(*pids: int) -> None:
    """End processes without a word to them, and wait until the kernel has done so."""
    first, *others = pids
    os.kill(first, signal.SIGKILL)
    for pid in others:
        with contextlib.suppress(ProcessLookupError):  # it ended when it saw the first one die
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        eventually(partial(gone, pid))


def gone(pid: int) -> bool:
    """Whether the process has ended, reaped or not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
