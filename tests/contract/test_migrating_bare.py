"""A store without a prefix is moved: what the listings and `redmeter.book` wrote, beside others."""

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import Meter, book
from redmeter.keys import HOUR, slice_start
from redmeter.migrating import migrate, survey
from redmeter.reading.series import read_series
from redmeter.store import Store
from support import listings
from support.moving import fill, whole
from support.servers import Server
from support.stores import OpenStore


@pytest.fixture
def target(open_store: OpenStore) -> Store:
    """TO: the same database, under the usual prefix."""
    return open_store()


@pytest.fixture
def meter(any_server: Server) -> Iterator[Meter]:
    """Reads TO."""
    with Meter(any_server.url) as meter:
        yield meter


def test_what_the_listings_counted_moves(
    client: Any, bare: Store, target: Store, meter: Meter
) -> None:
    """Also slices whose start is spelled as a float, and hashes without a time to live."""
    now = int(time.time())
    for _ in range(3):
        listings.update(client, "hits", now=now)
        listings.update(client, "hits", now=now + 0.5, start=listings.float_start)
    report = migrate(bare, target)
    assert report.complete
    assert {p: one.stored for p, one in report.sums["counters"].items()} == dict.fromkeys(
        listings.PRECISIONS, 6
    )
    found = read_series(target, ["hits"], 86400)["hits"]
    assert found.total == 6
    assert client.exists("known:") == 0
    assert not list(client.scan_iter("count:*"))
    assert all(client.ttl(key) > 0 for key in client.scan_iter("redmeter:count:*"))


def test_what_the_listings_logged_and_measured_moves(
    client: Any, bare: Store, target: Store, meter: Meter
) -> None:
    """With an hour of the day in `:start`, times of `asctime`, and no index."""
    for value in (1.0, 2.0, 6.0):
        listings.update_stats(client, "cart", "value", value)
    for text in ("retrying", "retrying", "failed"):
        listings.log_common(client, "worker", text, "warning")
    migrate(bare, target)
    told = meter.statistics("cart:value").this
    assert told is not None
    assert (told.count, told.low, told.high, told.total) == (3, 1.0, 6.0, 9.0)
    common = {f.pattern: f.count for f in meter.common("worker")}
    assert common == {"retrying": 2, "failed": 1}
    assert [m.text for m in meter.recent("worker")][:1] == ["failed"]
    assert [source.logger for source in meter.loggers()] == ["worker"]


def test_what_the_book_wrote_moves(client: Any, bare: Store, target: Store, meter: Meter) -> None:
    """By its functions of the same names."""
    now = int(time.time())
    book.update_counter(client, "hits", 5, now)
    book.update_stats(client, "page", "AccessTime", 0.25)
    book.log_common(client, "worker", "retrying a", logging.ERROR)
    book.log_recent(client, "worker", "hello", logging.INFO)
    migrate(bare, target)
    assert meter.series("hits", precision=60).total == 5
    assert meter.statistics("page:AccessTime").this is not None
    assert {m.text for m in meter.recent("worker")} == {"retrying a", "hello"}


def test_all_kinds_move(client: Any, bare: Store, target: Store) -> None:
    """What a Meter without a prefix wrote; its own families lie under another name there."""
    fill(bare)
    before = whole([client], "") | whole([client], "redmeter:bare:")
    migrate(bare, target)
    assert whole([client], "redmeter:") == before
    assert whole([client], "") == {}


def test_other_programs_are_left_alone(client: Any, bare: Store, target: Store) -> None:
    """Keys that look like ours and are not, and fields that are no slices."""
    now = slice_start(time.time(), 60)
    client.rpush("recent:ada", "contact")
    client.rpush("recent:ada:friends", "bob")
    client.hset("count:60:apples", "green", 3)
    client.set("count:60:text", "x")
    client.zadd("known:", {"60:text": 0, "60*60:hits": 0, "60:mixed": 0})
    client.hset("count:60:mixed", mapping={"note": "theirs", str(now): 2, str(now + 7): 5})
    client.zadd("stats:visits", {"monday": 3})
    client.zadd("common:words:en", {"the": 5})
    client.set("unrelated", "x")
    others = {
        key: client.dump(key)
        for key in client.scan_iter("*")
        if key not in (b"known:", b"count:60:mixed")
    }
    report = migrate(bare, target)
    assert report.complete
    assert {key: client.dump(key) for key in others} == others
    assert client.hgetall("count:60:mixed") == {b"note": b"theirs", str(now + 7).encode(): b"5"}
    assert client.hgetall("redmeter:count:60:mixed") == {str(now).encode(): b"2"}
    assert {"count:60:text", "count:60:apples", "count:60:mixed"} <= {*report.strange}
    assert b"60*60:hits" in client.zrange("known:", 0, -1)
    assert report.total().unread == 0


def test_what_the_listings_write_late_is_taken_later(
    client: Any, bare: Store, target: Store
) -> None:
    """They go on as if nothing had happened."""
    listings.update(client, "hits")
    migrate(bare, target)
    listings.update(client, "hits")
    report = migrate(bare, target)
    assert report.complete
    assert sum(map(int, client.hvals("redmeter:count:86400:hits"))) == 2


def test_precisions_of_others_are_told_before(client: Any, bare: Store, target: Store) -> None:
    """Those that TO does not keep."""
    target.binding()
    client.zadd("known:", {"7:hits": 0, f"{HOUR}:hits": 0})
    for precision in (7, HOUR):
        start = slice_start(time.time(), precision)
        client.hset(f"count:{precision}:hits", start, 1)
    assert survey(bare, target).unkept == {"counters": {7: 1}}
    report = migrate(bare, target)
    assert report.unkept == {"counters": {7: 1}}
    assert client.exists("count:7:hits")
    assert not client.exists(f"count:{HOUR}:hits")


def test_a_prefix_is_no_pattern(any_server: Server, open_store: OpenStore, client: Any) -> None:
    """Stars in it stand for themselves."""
    for prefix in ("a*:", "ab:"):
        fill(open_store(prefix=prefix), series=1)
    before = whole([client], "ab:")
    assert migrate(open_store(prefix="a*:"), open_store(prefix="z:")).complete
    assert whole([client], "ab:") == before
    assert not client.exists("a*:total:")
    assert len(whole([client], "z:")) == len(before)
