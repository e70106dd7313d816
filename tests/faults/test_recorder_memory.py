"""A buffer that is full for hours: memory stays bounded, and what was lost is known exactly."""

import gc
from collections import Counter
from typing import Any

import pytest

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from support.proxy import Proxy
from support.recorders import (
    TOTAL,
    OpenBuffered,
    check_exact,
    check_sums,
    check_whole,
    lost,
    stored,
    tries,
)
from support.servers import Server
from support.stores import samples, server_time
from support.waiting import eventually

DAY = 86400
SMALL, LARGE = 2**16, 2**24

#: A retention other than the default.
OTHER = {7: 100, 60: 100, 3600: 48, DAY: 30}

#: Next to the small buffer: what single series take, and what is not collected yet.
SPARE = 40_000


def collect(meter: Meter) -> None:
    """Have the background take in what was counted so far, while the store is unreachable."""
    wanted = tries(meter) + 1
    assert not meter.flush(0.0)
    eventually(lambda: tries(meter) >= wanted, 10.0, "the try has failed")


def settled(age: float, retention: dict[int, int]) -> bool:
    """Whether no precision is about to drop what is of that age.

    An interval at the very end of a retention may be trimmed by the batch that writes it.
    """
    return all(abs(age - samples * p) > 2 * p for p, samples in retention.items())


@pytest.mark.parametrize(
    ("limit", "retention"),
    [
        pytest.param(SMALL, DEFAULT_RETENTION, id="small-as it is"),
        pytest.param(SMALL, OTHER, id="small-7 s and 60 s", marks=pytest.mark.nightly),
        pytest.param(LARGE, DEFAULT_RETENTION, id="large-as it is"),
        pytest.param(LARGE, OTHER, id="large-7 s and 60 s"),
    ],
)
def test_hours_without_the_store_lose_what_is_written_down_and_nothing_else(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, retention: dict[int, int], limit: int
) -> None:
    """By series and precision; grand totals are complete, and what is stored is in its slices."""
    end, hours = int(server_time(conn)), 9
    names = [f"series-{i}" for i in range(30 if limit == SMALL else 10)]  # 30 do not fit
    clock = ManualClock(end - hours * 3600)
    meter = open_buffered(
        proxy.url, clock=clock, retention=retention, buffer_bytes=limit, flush_interval=3600
    )
    meter.count("first")
    assert meter.flush(5.0)
    proxy.refuse()
    counted: dict[str, Counter[int]] = {name: Counter() for name in names}
    most, collected = 0, clock.wall()
    while clock.wall() < end:
        clock.advance(17.0)
        now = int(clock.wall())
        if settled(end - now, retention):
            for i, name in enumerate(names):
                meter.count(name, i)
                counted[name][now] += i
        if now > collected + 240:
            collected = now
            collect(meter)
            most = max(most, meter.recorder_health().buffer_bytes)
    clock.set_wall(end)
    check_sums(meter.recorder_health())
    proxy.heal()
    assert meter.flush(5.0)

    health = meter.recorder_health()
    check_exact(conn, health)
    assert ("memory" in health.lost()) == (limit == SMALL)
    assert set(health.lost()) <= {"memory", "aged"}
    if limit == SMALL:
        assert SMALL / 2 < most < SMALL + SPARE
    for name, seconds in counted.items():
        found = stored(conn, name)
        assert found[TOTAL] == seconds.total()
        for precision in retention:
            assert found[precision] == seconds.total() - lost(health, name)[precision]
            slices: Counter[int] = Counter()
            for second, amount in seconds.items():
                slices[slice_start(second, precision)] += amount
            # The sums are equal; so no interval has what is another's, if none has too much.
            key = f"redmeter:count:{precision}:{name}"
            assert all(slices[start] >= n for start, n in samples(conn, key).items())


def test_an_outage_shorter_than_the_finest_retention_loses_nothing(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Every second is there, although they came all at once."""
    end = int(server_time(conn))
    clock = ManualClock(end - 115)
    meter = open_buffered(proxy.url, clock=clock, flush_interval=3600)
    proxy.refuse()
    for second in range(115):
        for _ in range(second % 5):
            meter.count("x")
        clock.advance(1.0)
        if second % 10 == 0:
            meter.count("x", 0)
            collect(meter)
    proxy.heal()
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), 230)
    found = samples(conn, "redmeter:count:1:x")
    assert [found.get(end - 115 + i, 0) for i in range(115)] == [i % 5 for i in range(115)]


def test_memory_does_not_grow_with_how_often_something_is_counted(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Also where nobody collects: a long list is merged on the spot."""
    clock = ManualClock(server_time(conn))
    meter = open_buffered(proxy.url, clock=clock, flush_interval=3600)
    proxy.refuse()
    meter.count("x")
    collect(meter)
    sizes = []
    for _ in range(20):
        for _ in range(2_000):
            meter.count("x")
        clock.advance(0.1)
        sizes.append(meter.recorder_health().buffer_bytes)
    assert max(sizes) < 2 * 2_000 * 40
    proxy.heal()
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), 40_001)


def test_a_buffer_that_is_too_small_loses_nothing_while_the_store_is_there(
    server: Server, conn: Any
) -> None:
    """What is sent at once need not be remembered for long; also far more series than fit."""
    with Meter(server.url, buffer_bytes=SMALL) as meter:
        for n in range(600):
            meter.count(f"series-{n}", 2)
        meter.gauge("g").set(3)
        assert meter.flush(10.0)
        assert sum(map(int, conn.hvals("redmeter:total:"))) == 1200
        assert (meter.recorder_health().stored, meter.recorder_health().losses) == (1201, ())


def test_many_seconds_of_the_past_are_counted_without_merging_them_each_time() -> None:
    """The list of a cell is merged when it has doubled, not once for each further event."""
    meter = Meter("redis://127.0.0.1:1/0", flush_interval=3600)
    recorder: Any = meter._recorder
    merged = []
    counter = meter.counter("x")
    shorten = type(counter)._shorten
    with pytest.MonkeyPatch.context() as patch:

        def noted(cell: Any) -> None:
            merged.append(len(cell._events))
            shorten(cell)

        patch.setattr(type(counter), "_shorten", noted)
        patch.setattr(recorder._flusher, "start", lambda: False)
        for n in range(20_000):
            meter.count("x", at=n)
    assert counter._LIST.size(counter._events) == 20_000
    assert len(merged) < 20


def test_what_a_closed_meter_could_not_store_is_stored_when_the_store_is_back(
    proxy: Proxy, conn: Any
) -> None:
    """Also of one that nobody holds any more."""
    proxy.refuse()
    closed = Meter(proxy.url, flush_interval=0.05)
    closed.count("x", 7)
    assert not closed._recorder.close(0.1)
    dropped = Meter(proxy.url, flush_interval=0.05)
    dropped.count("x", 5)
    assert not dropped.flush(0.1)
    del closed, dropped
    gc.collect()
    proxy.heal()
    eventually(lambda: conn.hget("redmeter:total:", "x") == b"12", 10.0, "all is stored")
