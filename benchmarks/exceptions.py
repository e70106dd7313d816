"""What exceptions cost: the application, the server, memory. Rows for run.py."""

import io
import logging
import time
from collections.abc import Callable, Iterator

import redis

from redmeter import Meter
from table import Row, sized

#: Exceptions that are recorded, and groups whose memory is measured.
RECORDED, GROUPS = sized(4_000, 20), sized(200, 3)
#: Exceptions of one flush.
FLUSHED = sized(500, 10)


def exceptions(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Recording compared with logging the traceback to memory; the server's time; stored bytes."""
    conn.flushall()
    log = logging.getLogger("bench.exceptions")
    log.propagate = False
    log.addHandler(logging.StreamHandler(io.StringIO()))
    with Meter(url, flush_interval=3600.0) as meter:
        ours = _cpu(lambda error: meter.record_exception(error, route="/buy"), meter)
        other = _cpu(lambda error: log.error("failed", exc_info=error), None)
        yield Row(
            "exception, CPU with flush", _micro(ours), _micro(other), ours / other, "", "log.error"
        )
    conn.flushall()
    conn.config_resetstat()
    with Meter(url, sync=True) as meter:
        for number in range(FLUSHED):
            _fail(number, 3, lambda error: meter.record_exception(error, route="/buy"))
    calls = conn.info("commandstats")
    spent = sum(calls[each]["usec"] for each in calls if each.startswith("cmdstat_eval")) / FLUSHED
    yield Row("exception, server's time, sent alone", _micro(spent / 1e6), "", None, "")
    for name, depth, routes in (("small group", 1, 1), ("large group", 30, 20)):
        yield Row(f"{name}, bytes", f"{_bytes(conn, url, depth, routes):,.0f}", "", None, "")


def _fail(number: int, depth: int, record: Callable[[Exception], object]) -> None:
    try:
        _raise(number, depth)
    except LookupError as error:
        record(error)


def _raise(number: int, depth: int) -> None:
    if depth:
        _raise(number, depth - 1)
    raise LookupError(f"no card for order {number}")


def _cpu(record: Callable[[Exception], object], meter: Meter | None) -> float:
    """Return the CPU time of this process for one exception, in seconds."""
    begun = time.process_time()
    for number in range(RECORDED):
        _fail(number, 8, record)
        if meter is not None and number % FLUSHED == FLUSHED - 1:
            meter.flush()
    if meter is not None:
        meter.flush()
    return (time.process_time() - begun) / RECORDED


def _bytes(conn: redis.Redis, url: str, depth: int, routes: int) -> float:
    """Return the memory of a group, in bytes; each has functions of its own and all its routes."""
    conn.flushall()
    with Meter(url, flush_interval=3600.0) as meter:
        for group in range(GROUPS):
            functions: dict[str, Callable[[], None]] = {"f0": _missing}
            for level in range(depth):
                code = f"def f{level + 1}_{group}():\n    f{level}()\n"
                exec(code, functions)  # noqa: S102 - names of their own
                functions[f"f{level + 1}"] = functions[f"f{level + 1}_{group}"]
            for route in range(routes):
                try:
                    functions[f"f{depth}"]()
                except LookupError as error:
                    meter.record_exception(error, route=f"/orders/{route}", group=str(group))
            meter.flush()  # so that none has to be merged as (other)
    keys = list(conn.scan_iter("redmeter:exception*"))
    return sum(conn.memory_usage(key, samples=0) or 0 for key in keys) / GROUPS


def _missing() -> None:
    raise LookupError("no card for order 17 of customer 4711")


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us"


ROWS = {"exceptions": exceptions}
