"""Statistics by the hour: rotated whoever comes first, right where sums of squares are not."""

import inspect
import math
import random
import statistics as exact
import time
from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

import pytest
import redis

from redmeter import (
    InvalidName,
    InvalidSetting,
    InvalidValue,
    Meter,
    StoreError,
    StoreRefused,
    book,
)
from redmeter.maintenance.forgetting import forget
from redmeter.store import Store
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.histogram import STATISTICS, statistics_moments, statistics_operations
from redmeter.stored.keys import HOUR, Kept
from redmeter.stored.moments import MAX_DOUBLE, Moments
from redmeter.testing import MemoryMeter
from redmeter.types import Operations, Outcome
from support import listings
from support.proxy import Proxy
from support.servers import Server
from support.stores import OpenMeter, OpenStore, SetTime, server_time

pytestmark = pytest.mark.servers

DAY = 86400
ENDS = ("start", "last", "pstart")
#: Midnight of a day, and some hours about it, Unix seconds.
MIDNIGHT = 1_700_006_400
KEY = "redmeter:stats:x"
FOUR = (KEY, f"{KEY}:start", f"{KEY}:last", f"{KEY}:pstart")


def moments_of(values: list[float]) -> Moments:
    """Return the moments of some values."""
    found = Distribution()
    found.add_all(values)
    return found.moments


def take(store: Store, values: list[float], time: float, *, return_totals: bool = False) -> Outcome:
    """Take values of a time into the statistics of x."""
    hours = {"x": {int(time // HOUR * HOUR): moments_of(values)}}

    def build(_: Kept) -> Operations:
        return statistics_operations(store.keys, hours, return_totals=return_totals)

    return store.shard("").write(build)


def read(client: Any, key: str = KEY) -> Moments:
    """Return what a sorted set says."""
    members = {m.decode(): score for m, score in client.zrange(key, 0, -1, withscores=True)}
    return statistics_moments(members)


def lives(client: Any, key: str) -> bool:
    """Tell whether a key lives for a week from now."""
    left: int = client.ttl(key)
    return -10 <= left - 7 * DAY <= 0


def counts(client: Any) -> tuple[int, int | None, int, int | None]:
    """Return how many values this hour has and which it is; and the same of the one before."""
    start, pstart = (client.get(key) for key in (FOUR[1], FOUR[3]))
    return (
        read(client).count,
        None if start is None else int(start),
        read(client, FOUR[2]).count,
        None if pstart is None else int(pstart),
    )


# --- By the hour ---------------------------------------------------------------------------


def test_values_of_an_hour_are_put_together(client: Any, open_store: OpenStore) -> None:
    """As the members that the listings keep, and those of ours; they live for a week."""
    store, now = open_store(), server_time(client)
    assert take(store, [3.0, 1.5], now) == Outcome()
    assert take(store, [-2.0], now) == Outcome()
    members = dict(client.zrange(KEY, 0, -1, withscores=True))
    assert set(members) == {member.encode() for member in STATISTICS}
    assert [members[m] for m in (b"min", b"max", b"count", b"n")] == [-2, 3, 3, 3]
    assert (members[b"sum"], members[b"sumsq"]) == (2.5, pytest.approx(15.25))
    assert int(client.get(FOUR[1])) == now // HOUR * HOUR
    assert [lives(client, key) for key in FOUR] == [True, True, False, False]


def test_a_new_hour_moves_the_old_one_on(
    client: Any, open_store: OpenStore, set_time: SetTime
) -> None:
    """Across midnight as at any other time, and after days without a value."""
    store = open_store()
    for at, (hour, expected) in enumerate(
        [
            (-1, (1, -1, 0, None)),
            (0, (1, 0, 1, -1)),
            (1, (1, 1, 1, 0)),
            (1, (2, 1, 1, 0)),
            (74, (1, 74, 2, 1)),
        ]
    ):
        set_time(MIDNIGHT + hour * HOUR + 600 + at)
        take(store, [float(at)], MIDNIGHT + hour * HOUR)
        now, start, last, pstart = expected
        assert counts(client) == (
            now,
            MIDNIGHT + start * HOUR,
            last,
            None if pstart is None else MIDNIGHT + pstart * HOUR,
        )
    assert all(lives(client, key) for key in FOUR)


def test_what_comes_late_goes_to_its_own_hour(
    client: Any, open_store: OpenStore, set_time: SetTime
) -> None:
    """Of a writer that was slow at the turn of the hour; what is older than both is left out."""
    store = open_store()
    set_time(MIDNIGHT + 1)
    take(store, [1.0], MIDNIGHT)
    take(store, [2.0], MIDNIGHT - 1)
    assert counts(client) == (1, MIDNIGHT, 1, MIDNIGHT - HOUR)
    take(store, [3.0, 4.0], MIDNIGHT - 1)
    assert counts(client) == (1, MIDNIGHT, 3, MIDNIGHT - HOUR)
    assert take(store, [5.0], MIDNIGHT - 2 * HOUR) == Outcome()
    assert counts(client) == (1, MIDNIGHT, 3, MIDNIGHT - HOUR)
    assert lives(client, FOUR[2])


def test_a_late_hour_takes_the_place_of_an_older_one(
    client: Any, open_store: OpenStore, set_time: SetTime
) -> None:
    """What is kept is the last hour before this one that had something."""
    store = open_store()
    set_time(MIDNIGHT - 5 * HOUR)
    take(store, [1.0] * 5, MIDNIGHT - 5 * HOUR)
    set_time(MIDNIGHT)
    take(store, [1.0], MIDNIGHT)
    assert counts(client) == (1, MIDNIGHT, 5, MIDNIGHT - 5 * HOUR)
    take(store, [1.0, 2.0], MIDNIGHT - HOUR)
    assert counts(client) == (1, MIDNIGHT, 2, MIDNIGHT - HOUR)


def test_a_clock_that_steps_back_begins_no_hour_anew(
    client: Any, open_store: OpenStore, set_time: SetTime
) -> None:
    """Neither the server's nor that of a writer, which may also be ahead."""
    store = open_store()
    set_time(MIDNIGHT)
    take(store, [1.0], MIDNIGHT)
    take(store, [1.0], MIDNIGHT + HOUR)  # this writer is ahead
    assert counts(client) == (2, MIDNIGHT, 0, None)
    set_time(MIDNIGHT - HOUR)
    take(store, [1.0], MIDNIGHT - HOUR)
    assert counts(client) == (3, MIDNIGHT, 0, None)
    set_time(MIDNIGHT + HOUR)
    take(store, [1.0], MIDNIGHT + HOUR)
    assert counts(client) == (1, MIDNIGHT + HOUR, 3, MIDNIGHT)


@pytest.mark.parametrize("hours", [2, 9, 24 * 365 * 1000])
def test_what_is_of_an_hour_after_the_next_is_left_out(
    client: Any, open_store: OpenStore, set_time: SetTime, hours: int
) -> None:
    """What is lost of it the slices tell, which do not take it either."""
    store = open_store()
    set_time(MIDNIGHT)
    assert not take(store, [1.0], MIDNIGHT + hours * HOUR).rejections
    assert not lives(client, KEY)
    take(store, [1.0], MIDNIGHT)
    take(store, [1.0], MIDNIGHT + hours * HOUR)
    assert counts(client) == (1, MIDNIGHT, 0, None)


def test_what_comes_late_begins_no_hour_before_the_last(
    client: Any, open_store: OpenStore, set_time: SetTime
) -> None:
    """Be it the first of all, or newer than what is there; to that hour itself it is added."""
    store = open_store()
    set_time(MIDNIGHT)
    take(store, [1.0], MIDNIGHT - 2 * HOUR)
    assert not lives(client, KEY)
    set_time(MIDNIGHT - 10 * DAY)
    take(store, [1.0], MIDNIGHT - 10 * DAY)
    set_time(MIDNIGHT)
    take(store, [1.0], MIDNIGHT - 9 * DAY)
    take(store, [1.0, 2.0], MIDNIGHT - 10 * DAY)
    assert counts(client) == (3, MIDNIGHT - 10 * DAY, 0, None)
    take(store, [1.0], MIDNIGHT - HOUR)
    assert counts(client) == (1, MIDNIGHT - HOUR, 3, MIDNIGHT - 10 * DAY)


@pytest.mark.parametrize("sync", [False, True])
def test_a_value_that_nothing_holds_is_told_the_same_at_once_and_later(
    client: Any, open_meter: OpenMeter, sync: bool
) -> None:
    """Too old: given up before it is sent. Too new: refused. Neither is in the statistics."""
    meter, now = open_meter(sync=sync), server_time(client)
    meter.observe("old", 1.0, at=now - 11 * DAY)
    meter.observe("new", 1.0, at=now + 11 * DAY)
    meter.flush(5.0)
    health = meter.recorder_health()
    assert (health.recorded, health.stored, health.dropped) == (2, 1, 1)
    assert {(loss.reason, loss.series, loss.precision) for loss in health.losses} == {
        (reason, name, precision)
        for reason, name in (("aged", "old"), ("future", "new"))
        for precision in (5, 60, HOUR)
    }
    for name in ("old", "new"):
        found = meter.statistics(name)
        assert (found.this, found.before) == (None, None)


def test_names_that_end_like_keys_have_statistics_of_their_own(
    client: Any, open_meter: OpenMeter
) -> None:
    """Also at the turn of an hour, and where one of them is forgotten."""
    meter = open_meter()
    names = ["job", *(f"job:{end}{marks}" for end in ENDS for marks in ("", "~", "~~"))]
    for number, name in enumerate(names):
        meter.observe(name, float(number))
    this = int(client.get("redmeter:stats:job:start"))
    client.set("redmeter:stats:job:start", this - HOUR)
    meter.observe("job", 100.0)
    for number, name in enumerate(names[1:], 1):
        found = meter.statistics(name)
        assert found.this is not None
        assert (found.this.count, found.this.low) == (1, number)
        assert found.before is None
    assert meter._store is not None
    assert forget(meter._store, "job")
    assert meter.statistics("job").this is None
    for name in names[1:]:
        assert meter.statistics(name).this is not None


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        (str(MIDNIGHT + 7 * HOUR), 0),
        (str(MIDNIGHT + 7 * HOUR + 1800), 0),
        ("7", 0),
        ("7.0", 0),
        ("2023-11-15T07:00:00", 0),
        ("2023-11-15 07:00:00", 0),
        (str(MIDNIGHT + 6 * HOUR), 1),
        ("6", 1),
        ("0", 7),
        ("23", 8),
        ("8", 23),
        ("2023-11-15T06:59:59", 1),
        ("2023-11-14T23:00:00", 8),
        ("2019-06-23T06:00:00", 24 * 1606 + 1),
        ("1", 6),
    ],
)
def test_what_began_it_is_read_as_whoever_wrote_it_means_it(
    client: Any, open_store: OpenStore, set_time: SetTime, text: str, hours: int
) -> None:
    """Unix seconds, an hour of the day, which is the latest one that has come, or ISO."""
    set_time(MIDNIGHT + 7 * HOUR + 60)
    client.set(FOUR[1], text)
    client.zadd(KEY, {"min": 5, "max": 5, "count": 1, "sum": 5, "sumsq": 25})
    take(open_store(), [9.0], MIDNIGHT + 7 * HOUR)
    began = MIDNIGHT + 7 * HOUR
    if hours:
        assert counts(client) == (1, began, 1, began - hours * HOUR)
        assert lives(client, FOUR[2])
        assert read(client, FOUR[2]).total == 5
    else:
        assert (read(client).count, read(client).total) == (2, 14)
        assert client.get(FOUR[1]) == text.encode()
        assert client.ttl(KEY) == -1  # as it was: there is a program that it belongs to


@pytest.mark.parametrize("text", ["soon", "", "nan", "inf", "7h", "0x"])
def test_what_means_no_hour_is_set_right(client: Any, open_store: OpenStore, text: str) -> None:
    """And what is there goes on."""
    now = server_time(client)
    client.set(FOUR[1], text)
    client.zadd(KEY, {"min": 5, "max": 5, "count": 1, "sum": 5, "sumsq": 25})
    take(open_store(), [9.0], now)
    assert counts(client) == (2, now // HOUR * HOUR, 0, None)


def test_an_hour_of_the_future_goes_on_until_it_has_come(
    client: Any, open_store: OpenStore, set_time: SetTime
) -> None:
    """Whoever set it: a clock that was ahead, for instance."""
    store = open_store()
    client.set(FOUR[1], str(MIDNIGHT + 2 * HOUR))
    for hour in range(4):
        set_time(MIDNIGHT + hour * HOUR)
        take(store, [1.0], MIDNIGHT + hour * HOUR)
        if hour < 3:
            assert counts(client) == (hour + 1, MIDNIGHT + 2 * HOUR, 0, None)
            assert lives(client, KEY)
    assert counts(client) == (1, MIDNIGHT + 3 * HOUR, 3, MIDNIGHT + 2 * HOUR)


def test_two_writers_at_the_turn_of_the_hour_move_it_on_once(
    client: Any, open_store: OpenStore, set_time: SetTime
) -> None:
    """Whoever comes second finds it done."""
    stores = [open_store(), open_store()]
    set_time(MIDNIGHT)
    for store in stores:
        take(store, [1.0], MIDNIGHT)
    set_time(MIDNIGHT + HOUR)
    for store in stores:
        take(store, [1.0], MIDNIGHT + HOUR)
    assert counts(client) == (2, MIDNIGHT + HOUR, 2, MIDNIGHT)


def test_a_key_of_another_type_is_refused_and_stays(client: Any, open_store: OpenStore) -> None:
    """Whichever of the four it is; the batch goes on."""
    store, now = open_store(), server_time(client)
    for key in FOUR[:2]:
        client.flushall()
        client.rpush(key, "theirs")
        (refused,) = take(store, [1.0, 2.0], now).rejections
        assert (refused.reason, refused.amount) == ("WRONGTYPE", 2)
        assert refused.field == str(int(now // HOUR * HOUR))
        assert client.lrange(key, 0, -1) == [b"theirs"]
    (refused,) = take(store, [1.0], now).rejections
    assert store.keys.series_of(refused.key) == (HOUR, "x")


# --- Numbers -------------------------------------------------------------------------------


def test_any_order_gives_what_one_writer_would(client: Any, open_store: OpenStore) -> None:
    """To the rounding of sums, whatever the values."""
    rng, now = random.Random(5), server_time(client)
    store = open_store()
    values = [rng.choice([rng.gauss(0, 1), rng.lognormvariate(3, 4), -5.0]) for _ in range(400)]
    for at in range(0, 400, 16):
        take(store, values[at : at + 16], now)
    found, whole = read(client), moments_of(values)
    assert (found.count, found.low, found.high) == (400, whole.low, whole.high)
    assert found.total == pytest.approx(math.fsum(values), rel=1e-12)
    assert found.stddev() == pytest.approx(exact.stdev(values), rel=1e-9)


@pytest.mark.parametrize("digits", range(1, 7))
def test_values_around_a_billion_keep_their_spread(
    client: Any, open_store: OpenStore, digits: int
) -> None:
    """Written one by one."""
    store, now = open_store(), server_time(client)
    spread = 10.0 ** (digits - 1)
    values = [1e9 + spread * (n % 10) / 9 for n in range(100)]
    for value in values:
        take(store, [value], now)
    assert read(client).stddev() == pytest.approx(exact.stdev(values), rel=1e-6)


def test_nothing_becomes_infinite(client: Any, open_store: OpenStore) -> None:
    """Sums stop at the largest double, and go on to be read."""
    store, now = open_store(), server_time(client)
    for values in ([MAX_DOUBLE] * 2, [MAX_DOUBLE], [-MAX_DOUBLE], [1.0]):
        assert take(store, values, now) == Outcome()
    scores = [score for _, score in client.zrange(KEY, 0, -1, withscores=True)]
    assert all(math.isfinite(score) for score in scores)
    assert read(client).count == 5


def test_sums_past_the_largest_double_are_none(server: Server) -> None:
    """In summaries and in hourly statistics, of a store and of MemoryMeter alike."""
    with Meter(server.url) as real:
        memory = MemoryMeter()
        for meter in (real, memory):
            for value in (1.5e308, 1.7e308):
                meter.observe("huge", value)
            assert meter.flush()
            told = meter.summary("huge", precision=3600, last="2h")
            assert (told.count, told.low, told.high) == (2, 1.5e308, 1.7e308)
            assert (told.total, told.mean, told.stddev) == (None, None, None)
            hour = meter.statistics("huge")
            hour_told = hour.this or hour.before
            assert hour_told is not None
            assert astuple(hour_told)[1:] == (2, 1.5e308, 1.7e308, None, None, None)


# --- The functions of the book -------------------------------------------------------------


@pytest.fixture(params=[(False, 2), (True, 2), (False, 3), (True, 3)], ids=str)
def conn(request: pytest.FixtureRequest, any_server: Server) -> Iterator[Any]:
    """The caller's client: decoding or not, by protocol 2 or 3."""
    decode, protocol = request.param
    with any_server.client(decode_responses=decode, protocol=protocol) as conn:
        yield conn


def test_names_and_signatures_are_the_books() -> None:
    """By position and by keyword, with the same defaults."""
    expected: dict[str, dict[str, Any]] = {
        "update_stats": {"conn": ..., "context": ..., "type": ..., "value": ..., "timeout": 5},
        "get_stats": {"conn": ..., "context": ..., "type": ...},
        "access_time": {"conn": ..., "context": ...},
    }
    for name, parameters in expected.items():
        found = inspect.signature(getattr(book, name)).parameters
        assert {
            key: ... if p.default is inspect.Parameter.empty else p.default
            for key, p in found.items()
        } == parameters
        assert {p.kind for p in found.values()} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


def test_an_update_returns_count_sum_and_sum_of_squares(conn: Any) -> None:
    """As floats, as the listing's pipeline does."""
    assert book.update_stats(conn, "page", "AccessTime", 2) == [1.0, 2.0, 4.0]
    found = book.update_stats(conn, "page", "AccessTime", 0.5, timeout=1)
    assert found == [2.0, 2.5, 4.25]
    assert all(type(number) is float for number in found)
    assert book.get_stats(conn, "page", "AccessTime") == {
        "min": 0.5,
        "max": 2.0,
        "count": 2.0,
        "sum": 2.5,
        "sumsq": 4.25,
        "average": 1.25,
        "stddev": pytest.approx(exact.stdev([2, 0.5])),
    }
    assert book.get_stats(conn, "page", "other") == {}


def test_a_single_value_has_no_spread(conn: Any) -> None:
    """And the average is the value."""
    book.update_stats(conn, "a", "b", 1e9 + 0.1)
    found = book.get_stats(conn, "a", "b")
    assert (found["average"], found["stddev"]) == (1e9 + 0.1, 0.0)


def test_sums_of_the_book_past_the_largest_double_are_none(conn: Any) -> None:
    """As they are in summaries: no cut number is shown."""
    for value in (1.5e308, 1.7e308):
        book.update_stats(conn, "huge", "b", value)
    assert book.get_stats(conn, "huge", "b") == {
        "min": 1.5e308,
        "max": 1.7e308,
        "count": 2.0,
        **dict.fromkeys(("sum", "sumsq", "average", "stddev")),
    }


def test_listings_and_ours_take_turns_on_the_same_keys(any_server: Server) -> None:
    """Each reads what both wrote; ours tells the spread, also where its own values are large."""
    rng = random.Random(2)
    with any_server.client(decode_responses=True) as conn:
        values = [rng.gauss(50, 9) for _ in range(60)]
        for number, value in enumerate(values):
            update: Any = rng.choice([book.update_stats, listings.update_stats])
            if number == 0:
                update = listings.update_stats  # whose hour of the day ours must understand
            found = update(conn, "page", "size", value)
            assert found == pytest.approx(
                [
                    number + 1,
                    math.fsum(values[: number + 1]),
                    math.fsum(v * v for v in values[: number + 1]),
                ]
            )
        ours = book.get_stats(conn, "page", "size")
        theirs = listings.get_stats(conn, "page", "size")
        assert {name: theirs[name] for name in ours} == pytest.approx(ours)
        assert ours["stddev"] == pytest.approx(exact.stdev(values))


def test_the_listing_moves_on_an_hour_that_it_began_and_ours_reads_on(
    any_server: Server, set_time: SetTime
) -> None:
    """And ours moves on one that the listing cannot: at midnight."""
    with any_server.client(decode_responses=True) as conn:
        for hour in (21, 22, 22, 23):
            listings.update_stats(conn, "a", "b", 1.0, hour=hour)
        assert book.get_stats(conn, "a", "b")["count"] == 1
        assert conn.zscore("stats:a:b:last", "count") == 2
        listings.update_stats(conn, "a", "b", 1.0, hour=0)
        assert book.get_stats(conn, "a", "b")["count"] == 2  # the listing has not
        set_time(MIDNIGHT + 5)
        assert book.update_stats(conn, "a", "b", 3.0) == [1, 3, 9]
        assert conn.zscore("stats:a:b:last", "count") == 2
        assert [conn.get(f"stats:a:b:{end}") for end in ("start", "pstart")] == ["0", "23"]
        exact_hours = [conn.get(f"redmeter:bare:stats:a:b:{end}") for end in ("start", "pstart")]
        assert exact_hours == [str(MIDNIGHT), str(MIDNIGHT - HOUR)]


def test_ours_are_right_where_the_listings_are_not(any_server: Server) -> None:
    """Around a billion the sum of squares has lost all of the spread, or says it is below zero."""
    values = [1e9 + n % 10 for n in range(50)]
    with any_server.client(decode_responses=True) as conn:
        for value in values:
            book.update_stats(conn, "ours", "b", value)
            listings.update_stats(conn, "theirs", "b", value)
        found = book.get_stats(conn, "ours", "b")["stddev"]
        assert found is not None
        assert found == pytest.approx(exact.stdev(values), rel=1e-6)
        theirs = listings.get_stats(conn, "theirs", "b")["stddev"]
        assert isinstance(theirs, complex) or abs(theirs - found) > 0.1
        assert (book.get_stats(conn, "theirs", "b")["stddev"] or 0) >= 0


def test_a_lost_reply_is_told_again_and_counts_once(proxy: Proxy, server: Server) -> None:
    """The very numbers that it had, not those that came since."""
    with redis.Redis("127.0.0.1", proxy.port) as conn, server.client() as other:
        book.update_stats(conn, "a", "b", 1)
        proxy.drop_replies(2)
        assert book.update_stats(conn, "a", "b", 2) == [2, 3, 5]
        assert proxy.dropped == 2
        assert other.zscore("stats:a:b", "count") == 2


def test_the_timeout_bounds_the_call(proxy: Proxy) -> None:
    """Of a server that says nothing, with a client that would wait for ever."""
    with redis.Redis("127.0.0.1", proxy.port, socket_timeout=None) as conn:
        book.update_stats(conn, "a", "b", 1)
        proxy.black_hole()
        began = time.monotonic()
        with pytest.raises(StoreError):
            book.update_stats(conn, "a", "b", 2, timeout=0.3)
        assert time.monotonic() - began < 2.0
        proxy.heal()


def test_arguments_that_cannot_be_used_are_errors_and_nothing_is_written(conn: Any) -> None:
    """Of the kind that says what is wrong."""
    update: Any = book.update_stats
    for arguments, error in (
        (("", "b", 1), InvalidName),
        (("a", "", 1), InvalidName),
        (("a\n", "b", 1), InvalidName),
        (("a" * 150, "b" * 150, 1), InvalidName),
        ((7, "b", 1), InvalidName),
        (("a", "b", "1"), TypeError),
        (("a", "b", True), TypeError),
        (("a", "b", math.nan), InvalidValue),
        (("a", "b", math.inf), InvalidValue),
        (("a", "b", 10**400), InvalidValue),
        (("a", "b", 1, 0), InvalidValue),
        (("a", "b", 1, -1), InvalidValue),
    ):
        with pytest.raises(error):
            update(conn, *arguments)
    for wrong in (None, "redis://"):
        with pytest.raises(InvalidSetting):
            book.update_stats(wrong, "a", "b", 1)  # type: ignore[arg-type]
        with pytest.raises(InvalidSetting), book.access_time(wrong, "a"):  # type: ignore[arg-type]
            raise AssertionError("not reached")
    assert conn.dbsize() == 0


def test_a_key_of_another_type_is_an_error(conn: Any) -> None:
    """Reading and writing."""
    conn.set("stats:a:b", "theirs")
    with pytest.raises(StoreRefused):
        book.update_stats(conn, "a", "b", 1)
    with pytest.raises(StoreRefused):
        book.get_stats(conn, "a", "b")


def test_a_body_is_timed_also_where_it_raises(conn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In seconds, and the exception passes on."""
    ticks = iter([5.0, 5.25, 7.0, 8.0, 9.0, 9.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    with book.access_time(conn, "page"):
        pass
    with pytest.raises(KeyError), book.access_time(conn, "page"):
        raise KeyError
    found = book.get_stats(conn, "page", "AccessTime")
    assert (found["count"], found["min"], found["max"]) == (2, 0.25, 1.0)
    conn.set("stats:odd:AccessTime", "theirs")
    with pytest.raises(KeyError), book.access_time(conn, "odd"):  # not that it cannot be stored
        raise KeyError


def test_a_body_whose_time_cannot_be_stored_is_an_error(conn: Any) -> None:
    """Where nothing else went wrong; a name that is not allowed, before the body."""
    conn.set("stats:odd:AccessTime", "theirs")
    with pytest.raises(StoreRefused), book.access_time(conn, "odd"):
        pass
    with pytest.raises(InvalidName), book.access_time(conn, ""):
        raise AssertionError("not reached")
