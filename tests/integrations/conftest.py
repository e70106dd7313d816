"""What is logged, on a private server and in memory."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redmeter import Meter
from redmeter.testing import ManualClock, MemoryMeter
from support.programs import Programs
from support.servers import Server


@pytest.fixture
def meter(server: Server) -> Iterator[Meter]:
    """A meter on a private server that flushes only when it is told to."""
    with Meter(server.url, flush_interval=3600) as meter:
        yield meter


@pytest.fixture
def programs(server: Server, tmp_path: Path) -> Iterator[Programs]:
    """Starts programs that are given the address of `server`."""
    with Programs(tmp_path, server.url) as programs:
        yield programs


@pytest.fixture
def full() -> Iterator[Server]:
    """A server whose memory is full."""
    with Server(config={"maxmemory": "1", "maxmemory-policy": "noeviction"}) as server:
        yield server


@pytest.fixture
def memory() -> MemoryMeter:
    """A meter in memory."""
    return MemoryMeter(clock=ManualClock(time.time()))


@pytest.fixture
def log() -> logging.Logger:
    """A logger by itself: on all others hang pytest's handlers, which raise by odd messages."""
    return logging.Logger("app.jobs", logging.DEBUG)


@pytest.fixture
def app_log() -> Iterator[logging.Logger]:
    """A logger below the root, as an application has it; root and it are as before afterwards."""
    root, log = logging.getLogger(), logging.getLogger("app.jobs")
    before = root.level, list(root.handlers)
    log.setLevel(logging.DEBUG)
    yield log
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    log.setLevel(logging.NOTSET)
    log.handlers[:] = []
