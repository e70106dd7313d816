"""What a log call costs until its message is stored. Rows for run.py."""

import logging
import statistics
import time
from collections.abc import Callable, Iterator

import redis

from redmeter import Meter
from redmeter.integrations.logging import RedmeterHandler
from support import listings
from table import Row, micro, sized

#: Log calls of one turn; every other one is by a format, the rest are texts that differ.
CALLS = sized(10_000, 100)


def logging_calls(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Log calls through the handler, until all are stored, next to the listing's log_common."""
    rounds = []
    for _ in range(sized(7, 1)):
        conn.flushall()
        with Meter(url) as meter:
            handler = RedmeterHandler(meter)
            warm, log = _logger("bench.warm", handler), _logger("bench", handler)
            warm.info("connected, and the script is known")
            assert meter.flush()
            began = time.perf_counter()
            _burst(log)
            called = time.perf_counter() - began
            assert meter.flush(30)
            stored = time.perf_counter() - began
            assert meter.recorder_health().stored == CALLS + 1
        floor = _seconds(lambda: _burst(_logger("bench.floor", _Empty())))
        conn.flushall()
        theirs = _seconds(lambda: _listing(conn, CALLS // 10)) * 10
        rounds.append([seconds / CALLS for seconds in (stored, called, floor, theirs)])
    stored, called, floor, theirs = (statistics.median(c) for c in zip(*rounds, strict=True))
    ratio = statistics.median(r[0] / r[3] for r in rounds)
    note = f"the call alone {micro(called)}, with an empty handler {micro(floor)}"
    yield Row("a log call, until stored", micro(stored), micro(theirs), ratio, "<= 0.04", note)


def _burst(log: logging.Logger) -> None:
    for number in range(CALLS // 2):
        log.info("served %s in %d ms", "/", number)
        log.info(f"user {number} bought article {7 * number} for {number / 100} EUR")


class _Empty(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Do nothing with it."""


def _logger(name: str, handler: logging.Handler) -> logging.Logger:
    log = logging.Logger(name, logging.INFO)  # hangs below no other
    log.addHandler(handler)
    return log


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _listing(conn: redis.Redis, calls: int) -> None:
    for number in range(calls // 2):
        listings.log_common(conn, "bench", f"served / in {number} ms")
        listings.log_common(
            conn, "bench", f"user {number} bought {7 * number} for {number / 100} EUR"
        )


ROWS = {"logging": logging_calls}
