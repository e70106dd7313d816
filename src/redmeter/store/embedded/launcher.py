"""Start, join, look at and stop the embedded server of a data directory.

Problem: many processes and threads ask for the same server at the same moment, and any of them
may be killed at any line. Idea: none of them owns anything. A starter only spawns a supervisor
(supervisor.py) and hears how it went; supervisors compete for a lock, and all but one leave. A
starter holds no lock and no handle afterwards, so neither its end nor a fork of it matters.

Bounds: a join is two system calls on a lock, one small file and one PING, below 1 ms. A start
takes 50 to 100 ms. Not done: waiting longer than START_TIMEOUT for a server that loads its data.
"""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from redmeter.clock import SYSTEM
from redmeter.errors import EmbeddedServerError
from redmeter.store.embedded import files
from redmeter.store.embedded.paths import find_binary, prepare, resolve_path, socket_path

#: Seconds without any client after which the server is ended. The first starter's choice counts.
IDLE_TIMEOUT = 3600.0
#: Seconds to wait for a server to answer.
START_TIMEOUT = 30.0
#: Seconds within which a supervisor that has taken its lock has written its pid there.
WRITTEN_TIMEOUT = 5.0
#: The environment variables that the server may see; no passwords of the application.
KEPT_ENVIRONMENT = ("PATH", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")


class Info(NamedTuple):
    """A running server.

    Attributes:
        pid: of the server.
        supervisor_pid: of the process that owns it.
        socket: where it listens.
        version: what runs, e.g. ``valkey 9.1.2``.
        started: when it first answered, Unix seconds.
    """

    pid: int
    supervisor_pid: int
    socket: Path
    version: str
    started: float


def ensure(path: str | os.PathLike[str], *, idle_timeout: float = IDLE_TIMEOUT) -> Path:
    """Return the socket of the server in this directory, started if it does not run.

    Safe for any number of processes and threads at once. A client whose connection is lost may
    call it again: the server may have been ended or killed in between.

    Args:
        path: the data directory; made if it is not there.
        idle_timeout: seconds without any client after which the server is ended; math.inf for
            never. Counts only if this call starts it.

    Raises:
        EmbeddedServerError: it cannot be started, and why.
    """
    data = resolve_path(path)
    if math.isnan(idle_timeout) or idle_timeout <= 0:
        raise EmbeddedServerError(data, f"idle_timeout is {idle_timeout!r}: give seconds above 0")
    deadline = SYSTEM.monotonic() + START_TIMEOUT
    with _in_words(data):
        while True:
            info = _look(data)
            if info and files.is_serving(files.ask_socket(str(info.socket), "PING")):
                return info.socket
            if SYSTEM.monotonic() > deadline:
                raise EmbeddedServerError(
                    data,
                    f"no answer for {START_TIMEOUT:.0f} s. If its log ends with loading, wait; "
                    "else `redmeter stop` ends it. The log:\n"
                    + files.tail(str(data / files.LOG_FILE)),
                )
            cared_for = files.is_locked(data / files.SUPERVISOR_LOCK)  # it starts, or ends: wait
            if cared_for or _start(data, idle_timeout) != "ready":
                SYSTEM.sleep(0.005)


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether a server's data are in this directory, or are being created there.

    Raises:
        EmbeddedServerError: the path cannot be used.
    """
    data = resolve_path(path)
    with _in_words(data):
        return any((data / name).exists() for name in (files.SERVER_LOCK, files.SUPERVISOR_LOCK))


def make(path: str | os.PathLike[str]) -> None:
    """Make the data directory of a server that may be started later, for its owner alone.

    Raises:
        EmbeddedServerError: it cannot be made, or not be used.
    """
    data = resolve_path(path)
    with _in_words(data):
        prepare(data)


def running(path: str | os.PathLike[str]) -> Info | None:
    """Return what runs in this directory, None if nothing does or does not answer yet.

    Never starts anything, and does not count as a client.

    Raises:
        EmbeddedServerError: the directory cannot be read.
    """
    data = resolve_path(path)
    with _in_words(data):
        return _look(data)


def stop(path: str | os.PathLike[str], *, timeout: float = 10.0) -> bool:
    """End the server in this directory, its data synced to disk; False if none ran.

    Afterwards the server and the supervisor that ran are gone, and so is the socket. A client that
    calls ensure() meanwhile gets a new server.

    Args:
        timeout: seconds to wait. A server that hangs is killed after 5.

    Raises:
        EmbeddedServerError: it has not ended in time, or belongs to another user.
    """
    data = resolve_path(path)
    deadline = SYSTEM.monotonic() + timeout
    with _in_words(data):
        owner = None  # the supervisor that was asked; 0: there is none
        while True:
            now = _owner(data)
            if now is None or (owner and now != owner):
                return owner is not None
            if now != owner and now:
                with suppress(ProcessLookupError):
                    os.kill(now, signal.SIGTERM)
            elif not now:  # again, as it may not listen yet
                files.end_orphan(data)
            owner = now
            if SYSTEM.monotonic() > deadline:
                who = f"its supervisor (pid {owner})" if owner else "the server"
                raise EmbeddedServerError(
                    data, f"{who} has not ended within {timeout:.0f} s: end it with kill -9"
                )
            SYSTEM.sleep(0.005)


def _look(data: Path) -> Info | None:
    if not files.is_locked(data / files.SUPERVISOR_LOCK):
        return None
    try:
        return _info_of(json.loads((data / files.STATE_FILE).read_bytes()))
    except FileNotFoundError:  # it starts, or ends
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(data, files.STATE_FILE) from None


def _info_of(state: Any) -> Info:
    """Read what a supervisor has written. Raises ValueError, KeyError, TypeError if it has not."""
    pid, supervisor, started = state["pid"], state["supervisor"], float(state["started"])
    if not isinstance(pid, int) or not isinstance(supervisor, int) or min(pid, supervisor) < 1:
        raise ValueError("processes have numbers above 0")
    return Info(pid, supervisor, Path(state["socket"]), str(state["version"]), started)


def _damaged(data: Path, name: str) -> EmbeddedServerError:
    reason = f"{name} is damaged: end what runs there (`fuser {files.SERVER_LOCK}` shows its pid)"
    return EmbeddedServerError(data, f"{reason}, remove that file, and try again")


def _owner(data: Path) -> int | None:
    """Return the pid of the supervisor, 0 for a server that has none, None if nothing runs."""
    lock = data / files.SUPERVISOR_LOCK
    deadline = SYSTEM.monotonic() + WRITTEN_TIMEOUT
    while files.is_locked(lock):
        written = lock.read_bytes().strip()
        # A process is going to be ended by it, and -1 would be all of them.
        if written.isdigit() and len(written) < 11 and int(written) > 0:
            return int(written)
        if written or SYSTEM.monotonic() > deadline:  # else it took the lock a moment ago
            raise _damaged(data, files.SUPERVISOR_LOCK)
        SYSTEM.sleep(0.001)
    return 0 if files.is_locked(data / files.SERVER_LOCK) else None


def _start(data: Path, idle_timeout: float) -> str:
    """Spawn a supervisor; return "ready", or "held" if another one was faster."""
    prepare(data)
    binary, version = find_binary(data)
    command = [_interpreter(data), "-I", "-S", str(Path(__file__).with_name("__main__.py"))]
    command += [str(data), str(binary), version, str(socket_path(data)), repr(float(idle_timeout))]
    environment = {key: os.environ[key] for key in KEPT_ENVIRONMENT if key in os.environ}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # no Ctrl-C of the starter's terminal reaches it
        env=environment,
        cwd="/",
    ) as process:
        try:
            output, _ = process.communicate(timeout=START_TIMEOUT)
        except subprocess.TimeoutExpired:  # it continues without us; the caller checks again
            return "held"
    word, _, text = output.decode(errors="replace").partition(" ")
    if word not in ("ready", "held"):
        reason = text if word == "error" else f"the supervisor failed: {output[-500:]!r}"
        raise EmbeddedServerError(data, reason)
    return word


def _interpreter(data: Path) -> str:
    """Return a Python to run the supervisor: in an embedding program this one is no Python."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for program in (sys.executable, f"{sys.base_prefix}/bin/{version}", shutil.which("python3")):
        name = Path(program or "").name
        if program and name.startswith(("python", "pypy")) and os.access(program, os.X_OK):
            return program
    raise EmbeddedServerError(
        data, f"no Python interpreter found next to {sys.executable!r}: put python3 on PATH"
    )


@contextmanager
def _in_words(data: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise EmbeddedServerError(data, files.why(exc)) from exc
