"""One database with programs that run the listings: hours move on for both, whoever comes first."""

from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import Meter, book
from redmeter.book import stores as book_stores
from redmeter.maintenance.forgetting import forget
from redmeter.reading.logs.recent import read_common
from redmeter.reading.statistics import read_statistics
from redmeter.store import Store
from redmeter.stored.keys import HOUR
from redmeter.stored.message import MESSAGE_LIFE
from support import listings
from support.logs import read_log_overview
from support.servers import Server
from support.stores import SetTime

DAY = 86400
#: 00:00 UTC of a day, Unix seconds.
MIDNIGHT = 1_795_219_200
KEY, OWN = "common:app:info", "redmeter:bare:common:app:info"
STATS, OWN_STATS = "stats:page:ms", "redmeter:bare:stats:page:ms"


@pytest.fixture
def conn(any_server: Server) -> Iterator[Any]:
    """A client that does not decode, as the listings want."""
    with any_server.client() as conn:
        yield conn


class Clock:
    """The time of day for the listings and for ours."""

    def __init__(self, set_time: SetTime) -> None:
        self._set = set_time
        self.now = 0.0

    def at(self, hour: int, minute: int = 5) -> None:
        """Make it so many hours and minutes after MIDNIGHT."""
        self.now = MIDNIGHT + hour * HOUR + minute * 60
        self._set(self.now)

    @property
    def hour(self) -> int:
        """The hour of the day."""
        return int(self.now % DAY // HOUR)


@pytest.fixture
def clock(set_time: SetTime) -> Clock:
    """One that both go by."""
    return Clock(set_time)


def texts(conn: Any, *keys: str) -> list[str | None]:
    """What some strings hold."""
    return [None if text is None else text.decode() for text in conn.mget(keys)]


def events(conn: Any, key: str) -> int:
    """How many messages are counted in a sorted set."""
    return int(sum(score for _, score in conn.zrange(key, 0, -1, withscores=True)))


def theirs(conn: Any, clock: Clock) -> None:
    """Log one message by the listing."""
    listings.log_common(conn, "app", "hello", hour=clock.hour)


def ours(conn: Any, _: Clock) -> None:
    """Log one message by ours."""
    book.log_common(conn, "app", "hello")


def expire(conn: Any) -> None:
    """Let a month pass: keys that have a time to live are gone."""
    for key in conn.keys("*"):
        if 0 < conn.ttl(key) <= MESSAGE_LIFE:
            conn.delete(key)


def test_the_listing_moves_on_an_hour_that_ours_began(conn: Any, clock: Clock) -> None:
    """Which it does where `:start` is an hour of the day: it is compared as a number."""
    clock.at(13)
    ours(conn, clock)
    assert texts(conn, f"{KEY}:start", f"{OWN}:start") == ["13", str(MIDNIGHT + 13 * HOUR)]
    clock.at(14)
    theirs(conn, clock)
    assert (events(conn, KEY), events(conn, f"{KEY}:last")) == (1, 1)
    ours(conn, clock)
    assert (events(conn, KEY), events(conn, f"{KEY}:last")) == (2, 1)
    assert texts(conn, f"{KEY}:start", f"{KEY}:pstart") == ["14", "13"]
    assert texts(conn, f"{OWN}:start", f"{OWN}:pstart") == [
        str(MIDNIGHT + 14 * HOUR),
        str(MIDNIGHT + 13 * HOUR),
    ]


@pytest.mark.parametrize("first", ["theirs", "ours", "in turn"])
def test_hours_hold_their_own_messages_over_a_day(conn: Any, clock: Clock, first: str) -> None:
    """At midnight it takes ours: by the listing's comparison 0 is not after 23."""
    store = book_stores.store_of(conn)
    before = 0
    for hour in (21, 22, 23, 24, 25, 26, 27 + 48, 28 + 48, 33 + 31 * 24):
        clock.at(hour)
        if hour > 24 * 30:
            expire(conn)
            before = events(conn, KEY)  # of an hour that the listing began
        mine_first = first == "ours" or (first == "in turn" and hour % 2) or clock.hour == 0
        order = (ours, theirs) if mine_first or hour in (24, 75) else (theirs, ours)
        for number in range(hour % 3 + 1):
            for log in order:
                log(conn, clock)
            assert events(conn, KEY) == 2 * (number + 1)
        assert events(conn, f"{KEY}:last") == before
        begun = int(texts(conn, f"{OWN}:start")[0] or 0)
        assert begun == MIDNIGHT + hour * HOUR
        assert texts(conn, f"{KEY}:start") == [str(clock.hour)]
        before = events(conn, KEY)
    assert store is book_stores.store_of(conn)


def test_readings_know_the_day_of_an_hour(
    conn: Any, clock: Clock, bare: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a day of silence, the hour of the day alone would be that of today."""
    clock.at(14)
    ours(conn, clock)
    monkeypatch.setattr(Store, "read", shifted(Store.read, clock))
    assert [f.count for f in read_common(bare, "app")] == [1]
    clock.at(15)
    assert [(f.count, f.before) for f in read_common(bare, "app")] == [(0, 1)]
    clock.at(24 + 14)
    assert read_common(bare, "app") == []


def shifted(read: Any, clock: Clock) -> Any:
    """Make the present of a reading the clock's."""

    def read_at(self: Store, *args: Any, **options: Any) -> Any:
        view, replies = read(self, *args, **options)
        return view._replace(now=clock.now), replies

    return read_at


def test_the_page_reads_hours_of_both(conn: Any, bare: Store) -> None:
    """Of all loggers, by the index, and of one."""
    book.log_common(conn, "app", "hello")
    listings.log_common(conn, "app", "hello", hour=int(texts(conn, f"{KEY}:start")[0] or 0))
    for talk in (read_log_overview(bare), read_log_overview(bare, logger="app")):
        assert [f.count for f in talk.frequent] == [2]


def test_the_data_and_its_hour_expire_together(conn: Any, clock: Clock) -> None:
    """Without `:start`, the listing would take old counts for those of the present."""
    for hour in (10, 34, 35):  # the second has the same hour of the day as the first
        conn.expire(f"{KEY}:start", 1000)
        clock.at(hour)
        ours(conn, clock)
        lives = [conn.ttl(key) for key in (KEY, f"{KEY}:start", f"{OWN}:start")]
        assert all(MESSAGE_LIFE - 60 <= life <= MESSAGE_LIFE for life in lives)
    clock.at(36)
    theirs(conn, clock)  # what it begins never expires
    ours(conn, clock)
    assert [conn.ttl(key) for key in (KEY, f"{KEY}:start", f"{OWN}:start")] == [-1, -1, -1]
    clock.at(36 + 60 * 24)  # the same hour of the day
    expire(conn)
    ours(conn, clock)
    assert (events(conn, KEY), events(conn, f"{KEY}:last")) == (1, 2)
    conn.persist(KEY)
    conn.delete(f"{KEY}:start", f"{OWN}:start")
    ours(conn, clock)
    assert [conn.ttl(key) for key in (KEY, f"{KEY}:start")] == [-1, -1]


def test_seconds_in_the_listings_keys_are_set_right(conn: Any, clock: Clock) -> None:
    """As a database holds them in which the listings have stopped moving hours on."""
    clock.at(14)
    conn.zadd(KEY, {"hello": 3})
    conn.set(f"{KEY}:start", MIDNIGHT + 14 * HOUR)
    conn.set(f"{KEY}:pstart", MIDNIGHT + 13 * HOUR)
    ours(conn, clock)
    assert texts(conn, f"{KEY}:start", f"{OWN}:start") == ["14", str(MIDNIGHT + 14 * HOUR)]
    clock.at(15)
    theirs(conn, clock)
    assert (events(conn, KEY), events(conn, f"{KEY}:last")) == (1, 4)


def test_a_clock_that_is_ahead_does_not_cost_an_hour(conn: Any, clock: Clock) -> None:
    """A listing on another machine begins the next hour a minute early."""
    clock.at(13)
    theirs(conn, clock)
    theirs(conn, clock)
    clock.at(13, 59)
    listings.log_common(conn, "app", "hello", hour=14)
    ours(conn, clock)
    assert (events(conn, KEY), events(conn, f"{KEY}:last")) == (2, 2)
    clock.at(14)
    ours(conn, clock)
    assert (events(conn, KEY), events(conn, f"{KEY}:last")) == (3, 2)


def test_statistics_leave_the_listings_start_alone(conn: Any, clock: Clock) -> None:
    """As printed, the listing fails where `:start` exists and moves no hour on; ours does."""
    clock.at(13)
    for _ in range(10):
        listings.update_stats_as_printed(conn, "page", "ms", 2.0, clock.hour)
    for hour in (13, 14, 23, 24, 24 + 23, 48 + 23, 31 * 24):
        clock.at(hour)
        assert book.update_stats(conn, "page", "ms", 2.0)[0] == (11 if hour == 13 else 1)
        listings.update_stats_as_printed(conn, "page", "ms", 2.0, clock.hour)
        assert not conn.exists(f"{STATS}:start", f"{STATS}:pstart")
        assert texts(conn, f"{OWN_STATS}:start") == [str(MIDNIGHT + hour * HOUR)]
        assert conn.zscore(STATS, "count") == (12 if hour == 13 else 2)
    assert conn.zscore(f"{STATS}:last", "count") == 2


def test_seconds_in_the_start_of_statistics_are_removed(conn: Any, clock: Clock) -> None:
    """They are ours, of earlier versions, and the listing as printed fails at them."""
    clock.at(13)
    conn.mset({f"{STATS}:start": MIDNIGHT + 12 * HOUR, f"{STATS}:pstart": MIDNIGHT})
    conn.zadd(STATS, {"min": 1, "max": 1, "count": 1, "sum": 1, "sumsq": 1})
    assert book.update_stats(conn, "page", "ms", 2.0)[0] == 1
    assert conn.zscore(f"{STATS}:last", "count") == 1
    assert not conn.exists(f"{STATS}:start", f"{STATS}:pstart")
    listings.update_stats_as_printed(conn, "page", "ms", 2.0, clock.hour)


def test_statistics_of_a_meter_without_a_prefix_have_their_hour(
    conn: Any, bare: Store, any_server: Server
) -> None:
    """Read back in the hour in which they were written, and forgotten with all their keys."""
    with Meter(any_server.url, prefix="", sync=True) as meter:
        meter.observe("page:ms", 2.0)
        found = read_statistics(bare, "page:ms")
        assert found.this is not None
        assert found.this.count == 1
    assert texts(conn, f"{STATS}:start") == [None]
    assert conn.exists(f"{OWN_STATS}:start")
    assert forget(bare, "page:ms")
    assert not list(conn.scan_iter("*page:ms*"))
