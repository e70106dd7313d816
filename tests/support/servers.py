"""Private servers for tests, started in a folder of their own.

The rule: a test never talks to a server that something else started. Every `Server` is a child
of the test process, on a port and a socket of its own, without persistence unless asked, and the
kernel ends it when the test process dies, however it dies (Linux). Only such children are ever
signalled, by their process id. Where their binaries come from: binaries.py.

Ports come from below the range that the kernel hands to outgoing connections: a client that
connects to a *closed* port inside that range can be given that same port as its own, and then
talks to itself.
"""

import contextlib
import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import redis

from support.binaries import binary, environment, version
from support.lifetimes import Started
from support.waiting import eventually

#: Seconds a server has to answer its first PING, and to end when asked to.
START_TIMEOUT, STOP_TIMEOUT = 60.0, 20.0

#: Ports to choose from. The cluster bus of port P is P + 10000, still below 32768.
PORTS = range(11000, 22000)
#: Whose turn it is. Another run of tests begins elsewhere.
_turn = itertools.count(secrets.randbelow(len(PORTS)))


class StartFailed(Exception):
    """A server that ended, or did not answer in time; the message ends with its log's tail."""


# Becomes a program, after asking the kernel to end it together with its parent. Its arguments: the
# parent's id, the path of the program, and what that is given. Not a preexec_fn: that would run the
# fork hooks of the code under test in the child.
ENDED_WITH_PARENT = """
import ctypes, os, sys
if sys.platform == "linux" and sys.argv[1]:
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""

Config = Mapping[str, str | int | Sequence[str]] | Sequence[str]


class Server(Started):
    """A server of one's own; a context manager that starts and ends it.

    The kernel ends a child when the *thread* that started it ends. A server started from
    another thread than the main one is therefore left without that safeguard.

    Args:
        name: a key of `BINARIES`.
        port: listen on a TCP port of 127.0.0.1 too, not only on the unix socket.
        config: settings as on the command line: {"maxmemory": "10mb", "save": ["60", "1"]}, or
            the arguments themselves: ["--maxmemory", "10mb"]. Later ones win over the defaults
            (no persistence).
        dir: where the server's data lie; a temporary folder unless given.

    Raises:
        Unavailable: there is no such binary here.
    """

    def __init__(
        self,
        name: str = "valkey-9.1",
        *,
        port: bool = True,
        config: Config = (),
        dir: Path | None = None,  # noqa: A002
    ) -> None:
        self.name = name
        self.binary = binary(name)
        self.config: list[str] = _arguments(config)
        self._wants_port = port
        self._port = 0
        self._paused = False
        self._clients: weakref.WeakSet[redis.Redis] = weakref.WeakSet()
        # Apart from `dir`, whose path may be too long for a socket.
        self._home = Path(tempfile.mkdtemp(prefix="rm-test-"))
        self.dir = dir or self._home / "data"
        self.dir.mkdir(parents=True, exist_ok=True)
        self._child: list[subprocess.Popen[bytes]] = []  # none or one; shared with the finalizer
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _abandon, self._child, self._home, self._owner)

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.running else "not running"
        return f"<Server {self.name} at {self.url if self._port else self.socket}, {state}>"

    @property
    def port(self) -> int:
        """The TCP port, the same over every restart."""
        if not self._port:
            raise RuntimeError(f"{self.name} has no port: not started yet, or made without one")
        return self._port

    @property
    def socket(self) -> Path:
        """The path of the unix socket."""
        return self._home / "s"

    @property
    def url(self) -> str:
        """The address of database 0 over TCP."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def unix_url(self) -> str:
        """The address of database 0 over the unix socket."""
        return f"unix://{self.socket}?db=0"

    @property
    def pid(self) -> int:
        """The process id; the server has to run."""
        if not self._child:
            raise RuntimeError(f"{self.name} is not running")
        return self._child[0].pid

    @property
    def running(self) -> bool:
        """Whether the process is there, paused or not."""
        return bool(self._child) and self._child[0].poll() is None

    @property
    def paused(self) -> bool:
        """Whether it stands still: see pause()."""
        return self._paused

    @property
    def version(self) -> str:
        """The server's own version, such as "9.1.2": for Valkey not the one of Redis it mimics."""
        return version(self.binary)

    @property
    def log(self) -> str:
        """What the server wrote, over all its starts."""
        path = self._home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def client(self, **kw: Any) -> redis.Redis:
        """Return a client, over TCP where there is a port. Closed at the latest with the server.

        Args:
            kw: options of `redis.Redis`.
        """
        where: dict[str, Any] = (
            {"host": "127.0.0.1", "port": self._port}
            if self._wants_port
            else {"unix_socket_path": str(self.socket)}
        )
        client = redis.Redis(**where, **kw)
        self._clients.add(client)
        return client

    def close_clients(self) -> None:
        """Close every client handed out so far."""
        for client in list(self._clients):
            client.close()
        self._clients.clear()

    def start(self, *, loaded: bool = True) -> Self:
        """Start the process and wait until it answers.

        Args:
            loaded: wait until it has read its data too; else -LOADING counts as an answer.

        Raises:
            StartFailed: it ended, or did not answer within `START_TIMEOUT`.
        """
        if self.running:
            return self
        self._child.clear()
        chosen = bool(self._port) or not self._wants_port
        for _ in range(20):
            if not chosen:
                self._port = free_port()
            logged = len(self.log)
            self._launch()
            try:
                eventually(lambda: self._answers(loaded), START_TIMEOUT, "the server answers")
            except (AssertionError, StartFailed) as exc:
                self.kill()
                said = self.log[logged:]
                if not chosen and "ddress already in use" in said:
                    continue  # someone took the port since we looked
                raise StartFailed(f"{self.name}: {exc}\n{said[-2000:]}") from None
            return self
        raise StartFailed(f"{self.name}: no free port in twenty tries")

    def _command(self) -> list[str]:
        """Return the program and its arguments."""
        arguments = [str(self.binary), "--port", str(self._port), "--bind", "127.0.0.1"]
        arguments += ["--unixsocket", str(self.socket), "--dir", str(self.dir)]
        arguments += ["--save", "", "--appendonly", "no"]
        if not self.name.startswith("redis-6"):
            arguments += ["--enable-debug-command", "yes"]  # always on before Redis 7
        return [*arguments, *self.config]

    def _launch(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        parent = str(os.getpid()) if in_main else ""
        with (self._home / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", ENDED_WITH_PARENT, parent, *self._command()],
                cwd=self.dir,
                env=environment(self.binary),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the terminal is for the tests alone
            )
        self._child[:] = [process]
        self._paused = False

    def _answers(self, loaded: bool) -> bool:
        """Ask PING over the socket, whose path is ours alone: a port might be another's."""
        if not self.running:
            raise StartFailed(f"ended with status {self._child[0].returncode}")
        try:
            with connected(self.socket, timeout=1.0) as sock:
                sock.sendall(b"PING\r\n")
                reply = sock.recv(512)
        except OSError:
            return False
        return bool(reply) and not (loaded and reply.startswith(b"-LOADING"))

    def stop(self) -> None:
        """End the process in good order, by SIGKILL when that takes too long."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process by SIGKILL: whatever it had not written is lost."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if os.getpid() != self._owner or not self._child:
            return  # in a forked child the server is not ours
        _finish(self._child[0], how)
        self._child.clear()
        self._paused = False

    def restart(self, *, loaded: bool = True) -> Self:
        """Stop it and start it again: same folder, same port."""
        self.stop()
        return self.start(loaded=loaded)

    def pause(self) -> None:
        """Stop the process in its tracks (SIGSTOP): connections open, nothing answered."""
        if not self._paused:
            os.kill(self.pid, signal.SIGSTOP)
            os.waitpid(self.pid, os.WUNTRACED)  # the signal takes a moment to arrive
            self._paused = True

    def resume(self) -> None:
        """Let a paused process go on."""
        if self._paused:
            os.kill(self.pid, signal.SIGCONT)
            self._paused = False

    def close(self) -> None:
        """Stop it, close its clients, delete its folder (not one that was given)."""
        self.close_clients()
        self.stop()
        self._finalizer()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on, nor on the one 10,000 above it.

    Each test worker has ports of its own and takes them in turn, so that a port which is taken now
    and used later is not taken by another test in between.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = max(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), worker + 1)
    own = PORTS[worker::workers]
    for _ in range(len(own)):
        port = own[next(_turn) % len(own)]
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port in {PORTS}")


@contextlib.contextmanager
def connected(path: Path, timeout: float) -> Iterator[socket.socket]:
    """Yield a connection over a unix socket; each of its calls takes `timeout` seconds at most."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout)
        sock.connect(str(path))
        yield sock


def _arguments(config: Config) -> list[str]:
    if not isinstance(config, Mapping):
        return [str(argument) for argument in config]
    arguments = []
    for name, value in config.items():
        values = [str(value)] if isinstance(value, str | int) else [str(part) for part in value]
        arguments += [f"--{name}", *values]
    return arguments


def _finish(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Signal a child of ours and collect it."""
    if process.poll() is None:
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # a paused process would not see SIGTERM
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _abandon(child: list[subprocess.Popen[bytes]], home: Path, owner: int) -> None:
    """Clear up after a server that nobody closed."""
    if os.getpid() == owner:
        for process in child:
            _finish(process, signal.SIGKILL)
        shutil.rmtree(home, ignore_errors=True)
