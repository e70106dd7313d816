"""up, stop: what runs beside the application.

`up` is one process for each store and prefix (place.py): it starts the embedded server where no
URL names another, and keeps the cleaner running. Killing it loses nothing: the embedded server
has a keeper of its own, and a cleaning pass may end anywhere.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import Annotated

import typer

from redmeter import cleaning
from redmeter.cli import output
from redmeter.cli.app import STORE, Prefix, Url, called, command, fail, opened
from redmeter.cli.place import PATIENCE, Place, has_ended, running, wait
from redmeter.errors import ClockDisagreement
from redmeter.store import Store, embedded

#: The log of a detached process is begun anew beyond this size, bytes.
LOG_SIZE = 1_000_000

_NEXT = ("replay access.log --shift-to-now", "series hits -p 1h", "doctor")


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
    place = Place(url, prefix)
    if detach:
        _detach(place)
        return
    if not place.take():
        _say_running(place)
        return
    output.log_warnings()
    with opened(url, prefix) as store:
        store.read()  # the first connection: starts the embedded server, or says what is wrong
        with contextlib.suppress(KeyboardInterrupt):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            place.ready()
            _say("is up", place.location)
            output.note("cleaning every minute; Ctrl-C ends it")
            _clean(store)
    more = f"; {called()} stop ends the embedded server too" if place.path else ""
    output.note(f"ended{more}")


def _clean(store: Store) -> None:
    while True:
        try:
            cleaning.run(store, quit=lambda: False)
        except ClockDisagreement as error:
            output.error(f"{error}; looking again in a minute")
            time.sleep(cleaning.INTERVAL)


@command(name="stop", epilog="Examples: redmeter stop · redmeter stop --url redis://localhost")
def stop(url: Url = None) -> None:
    """End what `up` runs for a store; the data stay."""
    place = Place(url, None)
    stopped = []
    for file, state in running(place.location):
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGTERM)
        if not wait(lambda file=file, state=state: has_ended(file, state)):  # type: ignore[misc]
            fail(f"process {state.pid} does not end: kill -9 {state.pid} makes it", STORE)
        stopped.append(f"redmeter up (pid {state.pid})")
    if place.path is not None and embedded.stop(place.path):
        stopped.append(f"the embedded server in {place.path}")
    output.line(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running")


def _detach(place: Place) -> None:
    if _is_ready(place):
        _say_running(place)
        return
    # Settings travel by the environment: a password must not stand in the list of processes.
    given = {"REDMETER_URL": place.url, "REDMETER_PREFIX": place.prefix}
    environ = os.environ | {name: value for name, value in given.items() if value is not None}
    mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    log = os.open(place.log, mode, 0o600)
    try:
        if os.fstat(log).st_size > LOG_SIZE:
            os.ftruncate(log, 0)
        start = os.fstat(log).st_size
        child = subprocess.Popen(
            # -P: what lies in the working directory is no part of the program.
            [sys.executable, "-P", "-m", "redmeter", "up"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environ,
            start_new_session=True,
        )
    finally:
        os.close(log)
    if not wait(lambda: _is_ready(place) or child.poll() is not None):
        child.terminate()
        fail(f"no answer within {PATIENCE:.0f} s; look at {place.log}", STORE)
    state = place.state()
    if state is None or not state.ready:
        said = place.log.read_bytes()[start:].decode(errors="replace").strip()
        fail(said.removeprefix("error: ") or f"it ended with code {child.returncode}", STORE)
    if state.pid == child.pid:
        _say("is up", place.location)
        output.note(f"log: {place.log} · {called()} stop ends it")
    else:  # somebody else was faster
        child.wait()
        _say_running(place)
    child.returncode = 0  # it goes on without us: nothing to be warned of


def _is_ready(place: Place) -> bool:
    state = place.state()
    return state is not None and state.ready


def _say_running(place: Place) -> None:
    state = place.state()
    if state is None or not state.ready:
        fail("another one has begun to start and does not go on: try again", STORE)
    _say(f"runs already (pid {state.pid})", place.location)


def _say(what: str, location: str) -> None:
    output.line(f"redmeter {what}: {location}")
    call = called()
    for number, words in enumerate(_NEXT):
        output.line(f"{'      ' if number else 'try:  '}{call} {words}")
