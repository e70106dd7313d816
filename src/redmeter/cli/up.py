"""up, stop: the processes next to the application.

`up` is one process for each store and prefix (lock.py): it starts the embedded server unless a URL
names another one, serves the page, and runs the cleaner. Killing it loses no data: the embedded
server has its own supervisor, and a cleaning pass may stop anywhere.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from redmeter import dashboard, settings
from redmeter.cli import output
from redmeter.cli.app import STORE, USAGE, Prefix, Url, again, called, command, fail, opened_store
from redmeter.cli.lock import LOCK_WAIT_SECONDS, UpLock, up_has_ended, wait
from redmeter.errors import ClockDisagreement, StoreError
from redmeter.extras import needs
from redmeter.maintenance import cleaning
from redmeter.store import Store, embedded, indexes
from redmeter.store.servers.replies import raised
from redmeter.stored.families import INDEXES

if TYPE_CHECKING:
    from redmeter.dashboard import server

#: The log of a detached process is truncated beyond this size, bytes; how often that is checked,
#: seconds.
_LOG_SIZE, LOG_CHECK_SECONDS = 1_000_000, 5.0

#: Commands to try on an empty store, and with a sample log; in this order.
_FIRST = ("doctor", "replay --help")
_WITH_LOG = ("replay {log} --shift-to-now", "series hits -p 1h", "doctor")


@command(
    name="up",
    epilog="Examples: redmeter up · redmeter up --detach · redmeter up --url redis://localhost · "
    "redmeter up --host 0.0.0.0 (for other machines, with a token)",
)
def up(
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return once everything runs; `stop` ends it.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="Address that the page listens on. Other than on loopback, the page asks for a "
            "token, which is generated and printed unless you give credentials.",
        ),
    ] = dashboard.HOST,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            help=f"Port of the page; 0: any free port. Default: {dashboard.PORT} or the next free.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help=f"File with the token of the page; see also {dashboard.TOKEN}."
        ),
    ] = None,
    users_file: Annotated[
        Path | None,
        typer.Option(
            "--users-file",
            help=f"File with a line NAME:PASSWORD for each user; see also {dashboard.USERS}.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="<name>",
            help="Host name under which the page may be opened. Repeatable.",
        ),
    ] = None,
    no_page: Annotated[
        bool, typer.Option("--no-page", help="Run the cleaner without the page.")
    ] = False,
    sample_log: Annotated[
        Path | None, typer.Option("--sample-log", hidden=True, help="For `make up`: a log to try.")
    ] = None,
    url: Url = None,
    prefix: Prefix = None,
) -> None:
    """Run the page, the cleaner, and the embedded server.

    Runs in the foreground until Ctrl-C. With a URL, it uses that server and starts none.

    By default the page listens on 127.0.0.1 only, and is open to everyone on this machine.
    """
    lock = UpLock(url, prefix)
    options = _UpOptions(
        host, port, token_file, users_file, tuple(allow_host or ()), no_page, sample_log
    )
    if detach:
        _detach(lock, options)
        return
    if not lock.acquire():
        _print_running(lock, options)
        return
    output.log_warnings()
    _bound_log(lock)
    with opened_store(url, prefix, create=True) as store:
        page = None if no_page else options.page(store)
        store.read()  # the first connection: starts the embedded server, or raises
        with contextlib.suppress(KeyboardInterrupt):
            signal.signal(signal.SIGTERM, signal.default_int_handler)

            def ready() -> None:
                lock.ready(page.address if page else "")
                _print_running_at("is up", lock, page.link if page else "", _lack(page))
                _print_first_steps(lock, options)
                output.note("cleaning every minute; Ctrl-C ends it")

            if page is None:
                ready()
                _clean(store)
            else:
                _serve(page, store, ready)
    more = f"; {called()} stop{again(url)} ends the embedded server too" if lock.path else ""
    output.note(f"ended{more}")


class _UpOptions(NamedTuple):
    """The options of the page."""

    host: str
    port: int | None
    token_file: Path | None
    users_file: Path | None
    allow_host: tuple[str, ...]
    no_page: bool
    #: An access log that there is to try; no option of what runs.
    sample_log: Path | None

    def credentials(self) -> "server.Credentials":
        """Return the credentials of the page."""
        with needs("standard", "redmeter up"):
            from redmeter.dashboard import server  # when it is used: it imports many packages

        return server.Credentials(self.host, self.token_file, self.users_file, os.environ)

    def page(self, store: Store) -> "server.PageServer":
        """Return the page of a store, its port bound."""
        with needs("standard", "redmeter up"):
            from redmeter.dashboard import server

        return server.PageServer(
            store,
            host=self.host,
            port=self.port,
            credentials=self.credentials(),
            allow_hosts=self.allow_host,
        )

    def secrets(self) -> bool:
        """Return whether credentials are given by any option or variable."""
        named = any(os.environ.get(name) for name in (dashboard.TOKEN, dashboard.USERS))
        files = self.token_file is not None or self.users_file is not None
        return not self.no_page and (named or files)

    def words(self) -> list[str]:
        """Return the same options as words of a command line."""
        options = [] if self.host == dashboard.HOST else ["--host", self.host]
        if self.port is not None:
            options += ["--port", str(self.port)]
        for option, file in (("--token-file", self.token_file), ("--users-file", self.users_file)):
            if file is not None:
                options += [option, str(file)]
        for name in self.allow_host:
            options += ["--allow-host", name]
        return [*options, "--no-page"] if self.no_page else options


def _serve(page: "server.PageServer", store: Store, ready: Callable[[], None]) -> None:
    """Run the page and the cleaner; if one ends, so does the other."""
    failed: list[Exception] = []

    def clean() -> None:
        try:
            _clean(store)
        except Exception as error:  # noqa: BLE001  raised below, in the main thread
            failed.append(error)
            page.stop()

    # Not to be waited for: it may wait for the network.
    cleaner = threading.Thread(target=clean, name="redmeter-cleaner", daemon=True)

    def begin() -> None:
        ready()
        cleaner.start()

    page.run(begin)
    if failed:
        raise failed[0]


def _lack(page: "server.PageServer | None") -> str:
    return (
        " (the page is not built: only the API is served)"
        if page and not page.dashboard.built
        else ""
    )


def _clean(store: Store) -> None:
    while True:
        try:
            cleaning.clean_every_minute(
                store, quit=lambda: False, store_bytes=settings.resolve("store_bytes")
            )
        except ClockDisagreement as error:
            output.error(f"{error}; checking again in a minute")
            time.sleep(cleaning.PASS_INTERVAL)


@command(name="stop", epilog="Examples: redmeter stop · redmeter stop --url redis://localhost")
def stop_command(url: Url = None) -> None:
    """Stop everything that `up` runs for a store. Its data is kept."""
    lock = UpLock(url, None)
    stopped = []
    for file, state in lock.running():
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGTERM)
        if not wait(lambda file=file, state=state: up_has_ended(file, state)):  # type: ignore[misc]
            fail(f"process {state.pid} does not end", STORE, f"force it: kill -9 {state.pid}")
        stopped.append(f"redmeter up (pid {state.pid})")
    if lock.path is not None and embedded.stop(lock.path):
        stopped.append(f"the embedded server in {lock.path}")
    output.line(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running")


def _detach(lock: UpLock, options: _UpOptions) -> None:
    if _is_ready(lock):
        _print_running(lock, options)
        return
    minted = None if options.no_page else options.credentials().minted
    # Settings are passed in the environment: a password must not show in the list of processes.
    passed = {
        "REDMETER_URL": lock.url,
        "REDMETER_PREFIX": lock.prefix,
        dashboard.TOKEN: minted,
    }
    environ = os.environ | {name: value for name, value in passed.items() if value is not None}
    mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    lock.prepare()
    log = os.open(lock.log, mode, 0o600)
    try:
        if os.fstat(log).st_size > _LOG_SIZE:
            os.ftruncate(log, 0)
        start = os.fstat(log).st_size
        child = subprocess.Popen(
            # -P: modules in the working directory are not part of the program.
            [sys.executable, "-P", "-m", "redmeter", "up", *options.words()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environ,
            start_new_session=True,
        )
    finally:
        os.close(log)
    try:
        answered = wait(lambda: _is_ready(lock) or child.poll() is not None)
    except KeyboardInterrupt:
        if not _is_ready(lock):  # otherwise it is the requested process
            child.terminate()
            child.wait()
        raise
    if not answered:
        child.terminate()
        fail(f"no answer within {LOCK_WAIT_SECONDS:.0f} s", STORE, f"see the log, {lock.log}")
    state = lock.state()
    if state is None or not state.ready:
        text = lock.log.read_bytes()[start:].decode(errors="replace").strip()
        code = child.returncode or 0
        text = text.removeprefix("error: ") or f"it ended with code {code}"
        fail(text, code if code > 0 else STORE, lines=True)
    if state.pid == child.pid:
        link = f"{state.page}?token={minted}" if state.page and minted else state.page
        _print_running_at("is up", lock, link)
        _print_first_steps(lock, options)
        output.note(f"log: {lock.log} · {called()} stop{again(lock.url)} ends it")
    else:  # another process was faster
        child.wait()
        _print_running(lock, options)
    child.returncode = 0  # it goes on without us: nothing to be warned of


def _bound_log(lock: UpLock) -> None:
    """Truncate the log whenever it is too large, if it is our standard error."""
    try:
        ours = os.path.samestat(os.fstat(2), lock.log.stat())
    except OSError:
        return
    if ours:
        threading.Thread(target=_keep_small, name="redmeter-log", daemon=True).start()


def _keep_small() -> None:
    while True:
        if os.fstat(2).st_size > _LOG_SIZE:
            os.ftruncate(2, 0)
        time.sleep(LOG_CHECK_SECONDS)


def _is_ready(lock: UpLock) -> bool:
    state = lock.state()
    return state is not None and state.ready


def _print_running(lock: UpLock, options: _UpOptions) -> None:
    state = lock.state()
    if state is None or not state.ready:
        fail("another redmeter up is starting and does not finish", STORE, "try again")
    _print_running_at(f"is already running (pid {state.pid})", lock, state.page)
    _print_first_steps(lock, options)
    first = f"run {called()} stop{again(lock.url)} first"
    if options.secrets():
        # The user believes that the page is protected by them.
        fail(f"the running process does not use these credentials: {first}", USAGE)
    if words := options.words():
        output.note(
            f"the running process keeps its own options, without {' '.join(words)}: {first}"
        )


def _print_running_at(what: str, lock: UpLock, page: str, lack: str = "") -> None:
    output.line(f"redmeter {what}: {lock.location}")
    if page:
        output.line(f"page: {page}{lack}")


def _print_first_steps(lock: UpLock, options: _UpOptions) -> None:
    """Print commands to try on an empty store; they work as printed."""
    if not _is_empty(lock):
        return
    log = options.sample_log
    words = [each.format(log=shlex.quote(str(log))) for each in (_WITH_LOG if log else _FIRST)]
    call, same = called(), again(lock.url, lock.prefix)
    for number, each in enumerate(words):
        rest = "" if each.endswith("--help") else same
        output.line(f"{'      ' if number else 'try:  '}{call} {each}{rest}")


def _is_empty(lock: UpLock) -> bool:
    """Return whether nothing is recorded yet; False if that cannot be read."""
    try:
        with opened_store(lock.url, lock.prefix, reading=True) as store:
            keys = store.keys
            sizes = store.ask([indexes.size(keys, keys.key(index.name)) for index in INDEXES])
            return not any(map(raised, sizes))
    except StoreError:  # it runs; other commands report the error
        return False
