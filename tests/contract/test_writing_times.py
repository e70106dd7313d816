"""Writing at any time: what is too old or far ahead is refused, and pushes out nothing live."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter.clock import ManualClock
from redmeter.stored.keys import slice_start
from redmeter.types import Outcome
from support.examples import scaled
from support.stores import (
    OpenMeter,
    OpenStore,
    count,
    samples,
    server_time,
    store_all,
)
from support.writing import DAY, key, reasons

pytestmark = pytest.mark.servers


@pytest.mark.parametrize(("precision", "kept"), [(1, 120), (7, 3), (60, 120)])
def test_a_slice_is_aged_once_it_ended_before_the_retention(
    client: Any, open_store: OpenStore, precision: int, kept: int
) -> None:
    """To the instant: what ended exactly then is written, what ended earlier is not."""
    clock = ManualClock()
    store = open_store(retention={precision: kept}, clock=clock)
    start = slice_start(server_time(client), precision) - 500 * precision
    clock.set_wall(start + precision + kept * precision)
    assert count(store, "x", start, trim=False) == Outcome()
    clock.set_wall(start + precision + kept * precision + 0.01)
    (rejected,) = count(store, "x", start + precision - 1, 7, trim=False).rejections
    assert (rejected.key, rejected.reason) == (key(precision), "aged")
    assert (rejected.field, rejected.amount) == (str(start), 7)
    assert samples(client, key(precision)) == {start: 1}
    assert client.hget("redmeter:total:", "x") == b"8"


@pytest.mark.parametrize(("precision", "kept"), [(60, 120), (3600, 5)])
def test_a_slice_is_future_once_it_starts_a_whole_retention_ahead_of_the_server(
    client: Any, open_store: OpenStore, precision: int, kept: int
) -> None:
    """However far ahead the producer's own clock is."""
    server = server_time(client)
    store = open_store(retention={precision: kept}, clock=ManualClock(server + 10**6))
    edge = slice_start(server, precision) + kept * precision
    assert count(store, "x", edge) == Outcome()
    # One slice further; two, should the server's clock have gone over an edge meanwhile.
    assert reasons(count(store, "x", edge + 2 * precision)) == [(key(precision), "future")]
    assert samples(client, key(precision)) == {edge: 1}


def test_without_refusal_every_time_is_written(client: Any, open_store: OpenStore) -> None:
    """As the functions of the book want it: their own example is of 2012."""
    store = open_store()
    times = [1336376410, -1, 0, int(server_time(client)) + 10**7]
    for second in times:
        assert count(store, "x", second, refuse=False, trim=False) == Outcome()
    assert samples(client, key(1)) == dict.fromkeys(times, 1)


def _full_hash(client: Any, precision: int, kept: int, name: str = "x") -> dict[int, int]:
    """Write as many samples as are kept, the newest being the running slice."""
    newest = slice_start(server_time(client), precision)
    live = {newest - i * precision: 1000 + i for i in range(kept)}
    client.hset(key(precision, name), mapping={str(k): v for k, v in live.items()})
    client.expire(key(precision, name), (kept + 1) * precision)
    client.zadd("redmeter:known:", {f"{precision}:{name}": 0})
    return live


@pytest.mark.parametrize("off", [DAY, -DAY, 40 * DAY, -40 * DAY, 3 * 3600])
def test_a_clock_that_is_wrong_pushes_out_nobody_elses_sample(
    client: Any, open_store: OpenStore, off: int
) -> None:
    """No sample is trimmed and no time to live shortened by a writer days ahead or behind."""
    retention = {3600: 120, DAY: 120}
    live = {precision: _full_hash(client, precision, 120) for precision in retention}
    # A long life, as a writer with intervals ahead gives it, must not be cut either.
    client.expire(key(DAY), 500 * DAY)
    before = {precision: client.ttl(key(precision)) for precision in retention}
    clock = ManualClock(server_time(client) + off)
    store = open_store(retention=retention, clock=clock)
    for step in range(6):
        clock.advance(1800 * step)
        count(store, "x", int(clock.wall()))
    for precision in retention:
        stored = samples(client, key(precision))
        # Its own counts may have gone to a slice that is kept, and only added to it.
        for start, value in live[precision].items():
            assert stored.get(start, 0) >= value, (precision, start)
        assert client.ttl(key(precision)) >= before[precision] - 5


def test_a_writer_a_day_behind_is_measured_by_its_own_clock(
    client: Any, open_store: OpenStore
) -> None:
    """Its present is written, although the server has long left it behind; the server's too."""
    now = int(server_time(client))
    store = open_store(clock=ManualClock(now - DAY))
    for second in (now - DAY, now):
        assert count(store, "x", second) == Outcome()
    assert samples(client, key(1)) == {now - DAY: 1, now: 1}


def test_a_writer_a_day_ahead_is_measured_by_the_servers_clock(
    client: Any, open_store: OpenStore
) -> None:
    """Its seconds and minutes lie a retention ahead and are rejected; its hours are taken."""
    clock = ManualClock(server_time(client) + DAY)
    outcome = count(open_store(clock=clock), "x", int(clock.wall()))
    assert reasons(outcome) == [(key(p), "future") for p in (1, 5, 60, 300)]
    assert not client.exists(key(60))
    assert samples(client, key(3600)) == {slice_start(clock.wall(), 3600): 1}


def test_one_old_and_one_far_time_change_nothing_that_lives(
    client: Any, open_meter: OpenMeter
) -> None:
    """`at=` 1,000 s ago and a million s ahead: only slices that still hold them are written."""
    meter = open_meter()
    now = server_time(client)
    meter.count("x", 2, at=now)
    ttl = client.ttl(key(60))
    meter.count("x", 1, at=now - 1000)
    meter.count("x", 1, at=now + 10**6)
    assert samples(client, key(1)) == {int(now): 2}
    assert samples(client, key(60)) == {
        slice_start(now, 60): 2,
        slice_start(now - 1000, 60): 1,
    }
    assert samples(client, key(DAY))[slice_start(now, DAY)] >= 2
    assert client.ttl(key(60)) >= ttl - 2
    assert meter.total("x") == 4


@settings(max_examples=scaled(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    now=st.integers(-(10**9), 10**9),
    back=st.lists(st.integers(0, 4000), min_size=1, max_size=12),
    amounts=st.lists(st.integers(0, 2**40), min_size=12, max_size=12),
)
def test_every_event_lies_in_the_slice_of_its_floor(
    client: Any, open_store: OpenStore, now: int, back: list[int], amounts: list[int]
) -> None:
    """Also before 1970, and for widths that do not divide each other: sums agree."""
    client.flushall()
    store = open_store(retention={1: 120, 7: 120, 60: 120, 3600: 120}, clock=ManualClock(now))
    events: dict[int, int] = {}
    for ago, amount in zip(back, amounts, strict=False):
        events[now - ago] = events.get(now - ago, 0) + amount
    store_all(store, {"x": events})
    for precision in (1, 7, 60, 3600):
        expected: dict[int, int] = {}
        for second, amount in events.items():
            start = second - second % precision
            if start + precision >= now - 120 * precision:
                expected[start] = expected.get(start, 0) + amount
        # A slice that is about to go may be trimmed by the write itself.
        newest_gone = now - now % precision - 121 * precision
        stored = samples(client, key(precision))
        assert {s: n for s, n in stored.items() if s > newest_gone} == {
            s: n for s, n in expected.items() if s > newest_gone
        }
        assert stored.items() <= expected.items()
    store.close()
