"""Runs the demo: a store of its own, the past, two workers, a job, visitors, and a deploy.

Every process that is started here ends with it, however that ends: in good order it ends them, and
if it is killed they see that their standard input has ended. Stored data stays until the next
start, or `redmeter demo --remove`.

Files are in a temporary folder, and a run locks a file in it. The lock ends with the process,
however that ends, so a folder whose lock nobody holds was left behind by a run that was killed, and
the next one removes it. The folder's name identifies the store: a process that finds it locked
would remove what the other run has stored, and does not begin.

Bound: minutes. Two workers, one job, 24 visitors at once. The folders are those of this user on
this machine: a run elsewhere that stores in the same place is not seen.
"""

import contextlib
import fcntl
import hashlib
import http.client
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from redmeter import Meter, settings
from redmeter import store as stores
from redmeter.errors import InvalidSetting, MissingExtra, RedmeterError
from redmeter.extras import PACKAGES, install
from redmeter.store import Store, embedded
from redmeter.store.embedded.files import is_locked
from redmeter.store.query import scan
from redmeter.store.servers import urls
from redmeter.store.servers.replies import Link, raised

#: Prefix of everything that the demo stores.
PREFIX = "demo:"
#: Seconds that processes may take to be there, and to end.
PROCESS_TIMEOUT = 30.0
#: A burst in the course of a run: from when to when, as parts of it, and how many times as many
#: come. The deploy is after it.
BURST_FROM, BURST_TO, BURST_FACTOR, DEPLOY_AT = 0.2, 0.35, 2.5, 0.5

#: The folder of a run, and the file in it that it locks.
_FOLDER, _LOCK = "redmeter-demo-", "lock"
_PREFIX = re.compile(r"demo[A-Za-z0-9_.:-]*")


class DemoFailed(RedmeterError):
    """The demo cannot go on.

    Args:
        reason: why.
    """


def check_needs() -> None:
    """Check that the packages of the extra `demo` are installed.

    Raises:
        MissingExtra: one is missing.
    """
    missing = [each for each in sorted(PACKAGES["demo"]) if importlib.util.find_spec(each) is None]
    if missing:
        raise MissingExtra("the demo", " and ".join(missing), install("demo"))


def check_demo_prefix(prefix: str) -> str:
    """Check that a prefix is the demo's own, since all that it holds is removed.

    Raises:
        InvalidSetting: it is another one.
    """
    settings.resolve("prefix", prefix)
    if not _PREFIX.fullmatch(prefix):
        raise InvalidSetting("--prefix", f"{prefix!r:.40}: the demo's own begins with demo")
    return prefix


def remove(url: str | None, prefix: str) -> int:
    """Remove all that a demo has stored; return how many keys there were.

    Raises:
        InvalidSetting: the prefix is not a demo's.
        StoreError: the store cannot be reached or refuses.
    """
    with _opened(url, check_demo_prefix(prefix)) as store:
        store.read()  # the first connection
        return sum(_remove(store, server, prefix) for server in store.link.servers())


def _remove(store: Store, server: Link, prefix: str) -> int:
    """Remove what one server has."""
    removed = 0
    for keys in scan(
        server.exchange, lambda at: ("SCAN", at, "MATCH", f"{prefix}*", "COUNT", "1000")
    ):
        removed += sum(int(raised(gone)) for gone in store.ask([("UNLINK", key) for key in keys]))
    return removed


def _opened(url: str | None, prefix: str) -> contextlib.closing[Store]:
    store = stores.open(url, prefix=prefix)
    if store is None:
        raise InvalidSetting("url", "redmeter is switched off (REDMETER_URL=off); give --url")
    return contextlib.closing(store)


class Demo:
    """A run of the demo; a context manager, which ends all that it has started.

    Args:
        url: of the store; None: from the environment, else the embedded server.
        prefix: of all keys; begins with `demo`.
        seconds: how long people come.
        port: where the shop is; 0: any that is free.
        seed: how chance begins.

    Raises:
        MissingExtra: a package of the extra `demo` is missing.
        DemoFailed: the port is taken.
        InvalidSetting: the prefix is not a demo's.
    """

    def __init__(
        self, url: str | None, prefix: str, *, seconds: float, port: int = 0, seed: int = 1
    ) -> None:
        check_needs()
        self._url, self._prefix = url, check_demo_prefix(prefix)
        self._seconds = seconds
        self._seed = seed
        self.port = _free_port(port)
        self._ending = contextlib.ExitStack()
        self._folder = Path()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._began = 0.0

    def __enter__(self) -> Self:
        target = urls.parse_target(settings.resolve("url", self._url))
        path = target.path
        if path is not None and embedded.running(path) is None:
            self._ending.callback(embedded.stop, path)
        # An empty URL is another place for each user's data directory.
        location = f"embedded://{path.resolve()}" if path is not None else target.location
        place = f"{location} {self._prefix}"
        folder = self._ending.enter_context(_claimed(place))
        if folder is None:
            self._ending.close()
            raise DemoFailed(
                f"a demo with the prefix '{self._prefix}' is already running on {location}; "
                "choose another prefix, e.g. --prefix demo2:"
            )
        self._folder = folder
        self._ending.callback(self._end_processes)
        return self

    def __exit__(self, *_: object) -> None:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:  # the end is not to be interrupted, and takes seconds at most
            signal.signal(number, signal.SIG_IGN)
        try:
            self._ending.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def prepare(self) -> int:
        """Remove what an earlier demo stored, and store the last days; return how many hits.

        Raises:
            StoreError: the store cannot be reached or refuses.
        """
        from redmeter.demo import past

        remove(self._url, self._prefix)
        with _opened(self._url, self._prefix) as store:
            hits = past.fill(store, self._seed)
        with Meter(self._url, prefix=self._prefix, sync=True) as meter:
            for label, ago in past.RELEASES.items():
                meter.mark(label, at=time.time() - ago)
        return hits

    def open(self) -> str:
        """Start the shop; return its address, once it answers.

        Raises:
            DemoFailed: it does not; with its output.
        """
        from redmeter.demo import database, shape

        database.create_database(self._folder / "shop.sqlite3", self._seed)
        self._release(shape.OLD_RELEASE)
        self._start("server", str(self.port))
        self._start("job")
        until = time.monotonic() + PROCESS_TIMEOUT
        while not self._answers():
            self.check()
            if time.monotonic() > until:
                raise DemoFailed(f"the shop does not answer: {self._said()}")
            time.sleep(0.05)
        return f"http://127.0.0.1:{self.port}"

    def page(self) -> str:
        """Serve the dashboard of what the demo stores; return its address, once it answers.

        Raises:
            DemoFailed: it does not.
        """
        from redmeter.dashboard.server import PageServer

        page = PageServer(self._url, prefix=self._prefix)
        ready = threading.Event()
        thread = threading.Thread(
            target=page.run, args=(ready.set,), name="redmeter-demo-page", daemon=True
        )
        thread.start()
        self._ending.callback(thread.join, PROCESS_TIMEOUT)
        self._ending.callback(page.stop)
        if not ready.wait(PROCESS_TIMEOUT):
            raise DemoFailed("the page does not answer")
        return page.address

    def run(self, show: Callable[[str], None], every: float = 15.0) -> None:
        """Let people come, for as long as was asked for.

        Args:
            show: called with a line of progress, from time to time.
            every: seconds from one to the next.

        Raises:
            DemoFailed: a process of it has ended.
        """
        from redmeter.demo import shape
        from redmeter.demo.traffic import Visitors

        self._began = time.time()
        traffic = Visitors(self.port, self._seed, self._boost)
        self._ending.callback(traffic.stop)
        traffic.start()
        began, shown, deployed = time.monotonic(), 0, False
        while (passed := time.monotonic() - began) < self._seconds:
            self.check()
            if not deployed and passed >= DEPLOY_AT * self._seconds:
                self._release(shape.NEW_RELEASE)
                self._processes[0].send_signal(signal.SIGHUP)
                deployed = True
                show(f"{_clock(passed)}  shop {shape.NEW_RELEASE} is deployed")
            if passed >= every * (shown + 1):
                shown += 1
                show(
                    f"{_clock(passed)}  {traffic.answers:,} answers, {traffic.failed:,} failed; "
                    f"{traffic.ordered:,} orders"
                )
            time.sleep(min(0.1, self._seconds - passed))

    def check(self) -> None:
        """Raise DemoFailed where a process has ended."""
        for process in self._processes:
            if process.poll() is not None:
                raise DemoFailed(f"a process of the shop has ended: {self._said()}")

    def _boost(self, now: float) -> float:
        part = (now - self._began) / self._seconds
        return BURST_FACTOR if BURST_FROM <= part < BURST_TO else 1.0

    def _release(self, release: str) -> None:
        (self._folder / "release").write_text(release)

    def _start(self, module: str, *arguments: str) -> None:
        # Settings travel by the environment: a password must not stand in the list of processes.
        environ = os.environ | {
            "REDMETER_PREFIX": self._prefix,
            "SHOP_FOLDER": str(self._folder),
            "SHOP_SEED": str(self._seed),
        }
        if self._url is not None:
            environ["REDMETER_URL"] = self._url
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                # -P: modules in the working directory are not part of the program.
                [sys.executable, "-P", "-m", f"redmeter.demo.{module}", *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environ,
                start_new_session=True,  # Ctrl-C is for us, who end it
            )
        self._processes.append(process)

    def _end_processes(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + PROCESS_TIMEOUT / 3
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, until - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):  # its workers, should they hang
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin is not None:
                process.stdin.close()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2.0)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _said(self) -> str:
        """Return the last lines of what the processes said."""
        lines = (self._folder / "log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-15:]) or "it said nothing"


@contextlib.contextmanager
def _claimed(place: str) -> Iterator[Path | None]:
    """Make the folder of a run, and remove it at the end; None if another run stores there.

    Args:
        place: identifies the store and prefix that the run writes to.
    """
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    with (
        tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{digest}-") as made,
        (Path(made) / _LOCK).open("w") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        taken = False
        for each in _folders():
            if each == Path(made) or not (each / _LOCK).exists():
                continue
            if not is_locked(each / _LOCK):
                shutil.rmtree(each, ignore_errors=True)
            elif each.name.startswith(f"{_FOLDER}{digest}-"):
                taken = True
        yield None if taken else Path(made)


def _folders() -> list[Path]:
    """Return the folders of all runs of this user."""
    folders = []
    for each in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            if each.lstat().st_uid == os.getuid() and each.is_dir() and not each.is_symlink():
                folders.append(each)
    return folders


def _free_port(wanted: int) -> int:
    """Return a port that nobody listens at; the one that is wanted, or for 0 any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            raise DemoFailed(f"port {wanted} cannot be used: {error.strerror}") from error
        return int(probe.getsockname()[1])


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
