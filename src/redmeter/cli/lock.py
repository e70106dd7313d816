"""The lock file of `up`: which process runs for a store and prefix.

There is one small file for each store and prefix. It is in the data directory of the embedded
server, so every user of that data finds it in any environment; for other stores it is in the
user's state directory. The process holds an exclusive lock on it until it ends, so a stale file is
never taken for a running process. The file holds the process id, and whether the process is ready.

Readers take a shared lock for an instant. Therefore `acquire` retries until it either has the lock
or the file names another process.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from redmeter import settings
from redmeter.errors import InvalidSetting
from redmeter.store import embedded
from redmeter.store.servers import urls

#: How long `up` waits for readiness and `stop` for the end, seconds. Longer than the embedded
#: server's own start timeout, because its error is more specific.
LOCK_WAIT_SECONDS = 40.0


class State(NamedTuple):
    """The process that holds a lock file."""

    pid: int
    ready: bool
    location: str
    #: Address of its page; "" where it has none.
    page: str = ""


class UpLock:
    """The lock file of one store and prefix.

    Raises:
        InvalidSetting: the URL is none, or `off`; there is no home directory.
    """

    def __init__(self, url: str | None, prefix: str | None) -> None:
        target = urls.parse_target(settings.resolve("url", url))
        if target.kind == "off":
            raise InvalidSetting("url", "redmeter is switched off (REDMETER_URL=off); give --url")
        self.url, self.prefix = url, prefix
        #: Data directory of the embedded server, links resolved; None for other servers.
        self.path = target.path and target.path.resolve()
        self.location = f"embedded://{self.path}" if self.path else _sorted(target.location)
        named = f"{self.location} {settings.resolve('prefix', prefix)}"
        name = hashlib.sha256(named.encode(errors="surrogateescape")).hexdigest()[:16]
        self._folder = self.path or _state_folder()
        self.file = self._folder / f"up-{name}.lock"
        self.log = self._folder / f"up-{name}.log"
        self._held: int | None = None

    def prepare(self) -> None:
        """Make the folder of the file and the log.

        Raises:
            InvalidSetting, EmbeddedServerError: it cannot be made, or not be used.
        """
        if self.path:
            embedded.make(self.path)
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InvalidSetting(
                "XDG_STATE_HOME",
                f"{self._folder} cannot be made ({error.strerror}): name a directory that you may "
                "write to",
            ) from error

    def acquire(self) -> bool:
        """Take the lock; return False if another process holds it and is ready.

        If another process is starting, wait for it; if that fails, take the lock.

        Raises:
            InvalidSetting, EmbeddedServerError: see prepare().
        """
        self.prepare()
        held = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)

        def settled() -> bool:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                state = self.state()
                return state is not None and state.ready
            self._held = held
            return True

        wait(settled)
        if self._held is None:
            os.close(held)
            return False
        self._write(ready=False)
        return True

    def ready(self, page: str = "") -> None:
        """Write that the process is ready, and the address of its page."""
        self._write(ready=True, page=page)

    def _write(self, *, ready: bool, page: str = "") -> None:
        assert self._held is not None, "acquire() comes first"
        state = {"pid": os.getpid(), "ready": int(ready), "location": self.location, "page": page}
        # At once, and in its second form no shorter than in its first: nobody sees half of it.
        text = json.dumps(state)
        os.pwrite(self._held, text.encode(), 0)
        os.ftruncate(self._held, len(text))

    def state(self) -> State | None:
        """Return the state written by the running process; None if none runs."""
        return _state(self.file)

    def running(self) -> list[tuple[Path, State]]:
        """Return the lock files and states of all processes for this store, with any prefix."""
        try:
            files = sorted(self._folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        states = [(f, _state(f)) for f in files if f.match("up-*.lock")]
        return [
            (file, state) for file, state in states if state and state.location == self.location
        ]


def _sorted(location: str) -> str:
    """Return a location with its nodes sorted, because URLs name them in any order."""
    scheme, mark, rest = location.partition("://")
    nodes, slash, path = rest.partition("/")
    return f"{scheme}{mark}{','.join(sorted(set(nodes.split(','))))}{slash}{path}"


def up_has_ended(file: Path, state: State) -> bool:
    """Return whether a process has ended."""
    now = _state(file)
    return now is None or now.pid != state.pid


def wait(done: Callable[[], bool]) -> bool:
    """Wait until `done` returns true; return False after WAIT_SECONDS."""
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _state_folder() -> Path:
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        home = named if named.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        raise InvalidSetting(
            "HOME", "there is no home directory: set HOME or XDG_STATE_HOME"
        ) from None
    return home / "redmeter"


def _state(file: Path) -> State | None:
    try:
        with file.open("rb") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                state = json.loads(opened.read())
                pid, ready, location = int(state["pid"]), state["ready"], state["location"]
                if pid > 0:  # `stop` sends a signal to it, and -1 means all processes
                    return State(pid, bool(ready), str(location), str(state.get("page", "")))
    except (FileNotFoundError, NotADirectoryError):
        pass  # no process has run yet
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        pass  # not written yet
    return None
