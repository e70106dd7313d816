"""Watch a running server, and decide when it ends.

Idle is: nobody is connected but this census itself, and nobody came since the last one. So a
client that stays connected keeps the server, and so do many that come and go. The census is
taken eight times per idle time, so the server ends up to a quarter of it late.
"""
# ruff: noqa: PTH105, PTH116

import contextlib
import os
import time

from redmeter.store.embedded.files import LOG
from redmeter.store.embedded.server import Server, Signals
from redmeter.store.embedded.wire import census

#: Seconds between looks at the directory, the socket and the log.
TICK = 2.0
#: The log is put aside beyond this size, bytes; one older file is kept.
LOG_SIZE = 1_000_000


def watch(server: Server, data: str, socket_path: str, idle: float, signals: Signals) -> str:
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
        if os.stat(LOG).st_size > LOG_SIZE:
            os.replace(LOG, LOG + ".1")
