"""A server that deletes keys when its memory is full: what is promised then, and what is not.

Under noeviction everything is exact. Where keys with a time to live are evicted, counts may vanish,
and the watermark with them: a batch whose reply was lost is then uncertain. The grand totals have
no time to live, so they stay. Where any key is evicted, everything may vanish. Never is anything
stored twice by a recorder that the store has answered once. (`redmeter doctor` fails on all of
these policies but volatile-ttl: tests/reading/test_health.py.)
"""

from typing import Any

import pytest

from redmeter import Meter
from support.proxy import Proxy
from support.recorders import (
    TOTAL,
    OpenBuffered,
    check_exact,
    check_promise,
    check_sums,
    kept,
    lost,
    stored,
)

pytestmark = pytest.mark.servers

#: Series that fill the memory, and how many of them are there before it is full.
SERIES, BEFORE = 360, 240


def fill(proxy: Proxy, conn: Any, meter: Meter, policy: str) -> None:
    """Count many series through a network that loses replies, until memory is full and beyond."""
    conn.config_set("maxmemory-policy", policy)
    proxy.drop_pattern("..x")
    for number in range(SERIES):
        if number == BEFORE:
            conn.config_set("maxmemory", conn.info("memory")["used_memory"])
        meter.count(f"series-{number}", 3)
        meter.count("always")
        if number % 12 == 11:
            assert meter.flush(60.0)
    proxy.heal()
    assert meter.flush(60.0)
    assert meter.recorder_health().retried > 5
    check_sums(meter.recorder_health())
    assert meter.recorder_health().recorded == 4 * SERIES


@pytest.mark.parametrize(
    "policy",
    [
        *("allkeys-lru", "volatile-lru"),
        *(pytest.param(p, marks=pytest.mark.nightly) for p in ("allkeys-lfu", "volatile-ttl")),
    ],
)
def test_eviction_takes_counts_but_never_doubles_them(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, policy: str
) -> None:
    """No precision has more than was recorded; what has no time to live is complete."""
    meter = open_buffered(proxy.url, flush_interval=3600)
    meter.count("always", 0)
    assert meter.flush(60.0)
    precisions = [precision for precision, _ in kept(conn)]  # may be evicted as well
    fill(proxy, conn, meter, policy)
    assert conn.info("stats")["evicted_keys"] > 50
    health, found = meter.recorder_health(), stored(conn)
    for precision, number in found.items():
        assert number <= health.recorded - lost(health)[precision]
    if policy.startswith("volatile"):
        assert health.recorded - health.uncertain <= found[TOTAL] <= health.recorded
    # Some precision lacks what nobody has written down: that is not promised here.
    fewest = min(found.get(precision, 0) for precision in precisions)
    assert fewest < health.recorded


def test_eviction_by_time_to_live_takes_the_finest_slices_first(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """volatile-ttl: while there are seconds to evict, watermarks stay, and all is certain."""
    meter = open_buffered(proxy.url, flush_interval=3600)
    for number in range(BEFORE):
        meter.count(f"series-{number}", 3)
    assert meter.flush(60.0)
    conn.config_set("maxmemory-policy", "volatile-ttl")
    # What requests and replies take comes and goes.
    conn.config_set("maxmemory", conn.info("memory")["used_memory"] + 100_000)
    proxy.drop_pattern("..x")
    for number in range(400):
        meter.count(f"more-{number}", 3)
        assert meter.flush(60.0)
        if conn.info("stats")["evicted_keys"] > 20:
            break
    assert conn.info("stats")["evicted_keys"] > 20
    proxy.heal()
    health, found = meter.recorder_health(), stored(conn)
    assert health.uncertain == 0
    assert found[1] < health.recorded
    assert {found[p] for p in (TOTAL, 18000, 86400)} == {health.recorded}


def test_without_eviction_nothing_vanishes(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """noeviction: what the server refuses stays in memory until it has room again."""
    meter = open_buffered(proxy.url, flush_interval=3600)
    meter.count("always", 0)
    assert meter.flush(60.0)
    proxy.drop_pattern("..x")
    for number in range(SERIES):
        if number == BEFORE:
            conn.config_set("maxmemory", conn.info("memory")["used_memory"])
        meter.count(f"series-{number}", 3)
        if number % 12 == 11:
            meter.flush(5.0 if number < BEFORE else 0.0)
    assert not meter.flush(0.1)
    assert meter.recorder_health().buffered > 0
    check_sums(meter.recorder_health())
    conn.config_set("maxmemory", "0")
    proxy.heal()
    assert meter.flush(60.0)
    check_exact(conn, meter.recorder_health())
    check_promise(conn, meter.recorder_health())
    assert meter.recorder_health().recorded == 3 * SERIES
