"""The server process, as the child of the supervisor, and the signals that concern it."""

import contextlib
import os
import select
import signal
import sys
import time

from redmeter.store.embedded.files import LOG
from redmeter.store.embedded.wire import ask

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


class Server:
    """The server process, child of this one."""

    def __init__(self, binary: str, socket_path: str, lock: int) -> None:
        log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
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
            ask(self._socket_path, "SHUTDOWN")  # at once; it looks for signals every 100 ms
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
    os.execv(binary, [binary, *(w for k, v in settings.items() for w in (f"--{k}", v))])  # noqa: S606
