"""What the totals of requests cost, compared with recording label sets alone. Rows for run.py.

Both sides are meters of this process with 11 routes, one request in 25 of which fails; the other
one records neither `hits_failed` nor `hits_seconds`. They take turns. Times are processor times.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from table import Row, micro, sized

if TYPE_CHECKING:
    import redis

    from redmeter import Meter

#: Requests of a flush: those of a second.
REQUESTS = 50


def rows(conn: "redis.Redis", url: str) -> Iterator[Row]:
    """A request, and a flush."""
    from redmeter import Meter

    with (
        Meter(url, prefix="with:", flush_interval=3600) as ours,
        Meter(url, prefix="without:", flush_interval=3600) as other,
    ):
        record, without = _recording(ours, totals=True), _recording(other, totals=False)
        count = ours.counter("floor").inc
        rounds = []
        for _ in range(sized(60, 1)):
            rounds.append([_taken(function) for function in (record, without, count)])
            ours.flush()
            other.flush()
        mine, theirs, floor = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(a / b for a, b, _ in rounds)
        note = f"one inc() {micro(floor)}"
        yield Row("totals, a request", micro(mine), micro(theirs), ratio, "none", note)

        flushes = [
            (_flush(conn, ours, record), _flush(conn, other, without)) for _ in range(sized(100, 2))
        ]
        for at, what in enumerate(("this process", "server")):
            pairs = [(mine[at], theirs[at]) for mine, theirs in flushes]
            mine, theirs = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
            part = mine / theirs if theirs else None
            what = f"totals, a flush of {REQUESTS} requests, {what}"
            yield Row(what, micro(mine), micro(theirs), part, "none")


def _recording(meter: "Meter", *, totals: bool) -> Callable[[], None]:
    """Return what records a request."""
    from redmeter.integrations.shared.options import Options
    from redmeter.integrations.shared.web import Requests
    from redmeter.names import HITS

    requests, chance, number = Requests(meter, Options()), random.Random(1), 0
    if not totals:
        meter.counter(HITS)._zero_series = ""
        requests._count_failed = lambda: None
        requests._observe_hit = lambda _: None
    routes = [f"/part{route}/{{id}}" for route in range(11)]
    took = [chance.lognormvariate(-4, 0.5) for _ in range(997)]

    def record() -> None:
        nonlocal number
        number += 1
        status = 500 if number % 25 == 0 else 200
        requests.record("GET", "/part/7", routes[number % 11], status, took[number % 997])

    return record


def _taken(function: Callable[[], None]) -> float:
    """Return the processor time of a call, seconds."""
    calls = sized(2_000, 5)
    started = time.thread_time()
    for _ in range(calls):
        function()
    return (time.thread_time() - started) / calls


def _flush(conn: "redis.Redis", meter: "Meter", record: Callable[[], None]) -> tuple[float, float]:
    """Return processor time of a flush, here and of the server, seconds."""
    for _ in range(REQUESTS):
        record()
    server, here = _server_cpu(conn), time.process_time()
    meter.flush()
    here = time.process_time() - here
    return here, _server_cpu(conn) - server


def _server_cpu(conn: "redis.Redis") -> float:
    found = conn.info("cpu")
    return float(found["used_cpu_user"]) + float(found["used_cpu_sys"])


ROWS = {"totals": rows}
