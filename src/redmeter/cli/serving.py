"""up, stop: what runs beside the application.

`up` is one process for each store and prefix: it starts the embedded server where no URL names
another, and keeps the cleaner running. A file in the user's state directory, locked for as long
as the process lives, says that it runs, with its pid: no stale file can be taken for a process.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from redmeter import cleaning, settings
from redmeter.cli import output
from redmeter.cli.app import STORE, Prefix, Url, command, fail, opened
from redmeter.errors import ClockDisagreement, InvalidSetting
from redmeter.store import embedded, urls

#: How long `up --detach` waits for an answer, and `stop` for an end, seconds.
PATIENCE = 20.0

_NEXT = (
    "try:  redmeter replay access.log --shift-to-now",
    "      redmeter series hits -p 1h",
    "      redmeter doctor",
)


@command(
    name="up",
    epilog="Examples: redmeter up · redmeter up --detach · redmeter up --url redis://localhost",
)
def up(
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when all answers; `stop` ends it.")
    ] = False,
    url: Url = None,
    prefix: Prefix = None,
) -> None:
    """Run the cleaner, and the embedded server.

    In the foreground until Ctrl-C. With a URL, that server is used and none is started.
    """
    place = _Place(url, prefix)
    if detach:
        _detach(place)
        return
    if not place.take():
        _say_running(place)
        return
    with opened(url, prefix) as store:
        store.read()  # the first connection: starts the embedded server, or says what is wrong
        ended = False

        def end(_signal: int, _frame: FrameType | None) -> None:
            nonlocal ended
            ended = True

        signal.signal(signal.SIGTERM, end)
        place.ready(store.location)
        _say("is up", store.location)
        output.note("cleaning every minute; Ctrl-C ends it")
        while not ended:
            try:
                cleaning.run(store, quit=lambda: ended)
            except ClockDisagreement as error:
                output.error(f"{error}; looking again in a minute")
                _sleep(cleaning.INTERVAL, lambda: ended)


@command(name="stop", epilog="Examples: redmeter stop · redmeter stop --url redis://localhost")
def stop(url: Url = None, prefix: Prefix = None) -> None:
    """End what `up` runs; the data stay."""
    place = _Place(url, prefix)
    stopped = []
    state = place.state()
    if state is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state["pid"], signal.SIGTERM)
        if not _wait(lambda: place.state() is None):
            fail(f"the process {state['pid']} does not end; look at {place.log}", STORE)
        stopped.append("redmeter up")
    if place.path is not None and embedded.stop(place.path):
        stopped.append(f"the embedded server in {place.path}")
    output.line(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running")


class _Place:
    """Where it is written that `up` runs for one store and prefix."""

    def __init__(self, url: str | None, prefix: str | None) -> None:
        target = urls.parse(settings.resolve("url", url))
        if target.kind == "off":
            raise InvalidSetting("url", "redmeter is switched off (REDMETER_URL=off); give --url")
        self.url, self.prefix = url, prefix
        self.path = target.path
        self.location = target.location
        named = f"{target.location} {settings.resolve('prefix', prefix)}"
        name = hashlib.sha256(named.encode()).hexdigest()[:16]
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        folder = Path(home) / "redmeter"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.file = folder / f"up-{name}.lock"
        self.log = folder / f"up-{name}.log"
        self._held: int | None = None

    def take(self) -> bool:
        """Become the process that runs for this place; False where there is one."""
        held = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return False
        os.ftruncate(held, 0)
        self._held = held
        return True

    def ready(self, location: str) -> None:
        """Write down that all answers."""
        assert self._held is not None, "take() comes first"
        os.pwrite(self._held, json.dumps({"pid": os.getpid(), "location": location}).encode(), 0)

    def state(self) -> dict[str, Any] | None:
        """Return what was written by the process that runs; None where none does, or not yet."""
        try:
            with self.file.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    content = file.read()
                    return json.loads(content) if content else None
        except (FileNotFoundError, ValueError):
            pass
        return None


def _detach(place: _Place) -> None:
    if place.state() is not None:
        _say_running(place)
        return
    # Settings travel by the environment: a password must not stand in the list of processes.
    given = {"REDMETER_URL": place.url, "REDMETER_PREFIX": place.prefix}
    environ = os.environ | {name: value for name, value in given.items() if value is not None}
    with place.log.open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "redmeter", "up"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environ,
            start_new_session=True,
        )
    if not _wait(lambda: place.state() is not None or child.poll() is not None):
        child.terminate()
        fail(f"no answer within {PATIENCE:.0f} s; look at {place.log}", STORE)
    if place.state() is None:
        said = place.log.read_text(errors="replace").strip()
        fail(said.removeprefix("error: ") or f"it ended with code {child.returncode}", STORE)
    _say("is up", place.location)
    output.note(f"log: {place.log} · redmeter stop ends it")


def _say_running(place: _Place) -> None:
    state = place.state() or {}
    pid = f" (pid {state['pid']})" if state else ""
    _say(f"runs already{pid}", place.location)


def _say(what: str, location: str) -> None:
    output.line(f"redmeter {what}: {location}")
    for line in _NEXT:
        output.line(line)


def _wait(done: Any) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _sleep(seconds: float, quit: Any) -> None:  # noqa: A002
    deadline = time.monotonic() + seconds
    while not quit() and time.monotonic() < deadline:
        time.sleep(0.5)
