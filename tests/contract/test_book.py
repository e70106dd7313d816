"""The functions of the book: its names and results, beside programs that still have its code."""

import inspect
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import (
    InvalidName,
    InvalidSetting,
    InvalidValue,
    StoreRefused,
    UnknownPrecision,
    book,
)
from redmeter.book import stores as book_stores
from support import listings
from support.examples import scaled
from support.servers import Server
from support.stores import server_time
from support.waiting import eventually

pytestmark = pytest.mark.servers

#: The example of the book: hits of a second in May 2012.
EXAMPLE = 1336376410


@pytest.fixture(params=[(False, 2), (True, 2), (False, 3), (True, 3)], ids=str)
def conn(request: pytest.FixtureRequest, any_server: Server) -> Iterator[Any]:
    """The caller's client: decoding or not, by protocol 2 or 3."""
    decode, protocol = request.param
    with any_server.client(decode_responses=decode, protocol=protocol) as conn:
        yield conn


_cleaners: list[threading.Thread] = []


@pytest.fixture(autouse=True)
def as_delivered() -> Iterator[None]:
    """Put the module's variables back after each test."""
    before = (book.PRECISION, book.SAMPLE_COUNT, book.QUIT)
    yield
    book.QUIT = True  # or a cleaner that a failed test left behind would run for ever
    while _cleaners:
        _cleaners.pop().join()
    book.PRECISION, book.SAMPLE_COUNT, book.QUIT = before


def test_a_precision_that_a_counter_is_not_kept_at_is_an_error(conn: Any) -> None:
    """It names those that are kept; what nothing is known of is empty, as it is in the book."""
    assert book.get_counter(conn, "hits", 7) == []
    book.PRECISION = [1, 60, 300]
    book.update_counter(conn, "hits")
    with pytest.raises(
        UnknownPrecision, match=r"precision 7 is not kept; .*: 1, 60, 300"
    ) as caught:
        book.get_counter(conn, "hits", 7)
    assert caught.value.kept == (1, 60, 300)
    assert len(book.get_counter(conn, "hits", 60)) == 1
    assert book.get_counter(conn, "other", 7) == []


def test_a_counter_that_rests_has_no_samples_and_is_no_error(conn: Any) -> None:
    """Its fine samples went first; also those of another program, whose precisions nobody knows."""
    book.PRECISION = [7, 3600]
    book.update_counter(conn, "hits", now=int(server_time(conn)) - 8 * 120)
    conn.delete("count:7:hits")
    conn.zrem("known:", "7:hits")
    conn.hset("count:3600:hits", "1336374000", 5)
    oldest = int(server_time(conn)) - 7 * 120
    for start in conn.hkeys("count:3600:hits"):
        if int(float(start)) >= oldest:  # the hour began a moment ago
            conn.hdel("count:3600:hits", start)
    assert book.get_counter(conn, "hits", 7) == []


def test_who_may_not_read_the_index_gets_what_there_is(conn: Any) -> None:
    """The question about other precisions is asked for the sake of an error alone."""
    conn.set("known:", "theirs")
    assert book.get_counter(conn, "hits", 7) == []


# --- Face ----------------------------------------------------------------------------------


def test_names_and_signatures_are_the_books() -> None:
    """By position and by keyword, with the same defaults."""
    expected = {
        "update_counter": {"conn": ..., "name": ..., "count": 1, "now": None},
        "get_counter": {"conn": ..., "name": ..., "precision": ..., "data_format": None},
        "clean_counters": {"conn": ...},
    }
    for name, parameters in expected.items():
        found = inspect.signature(getattr(book, name)).parameters
        assert {
            key: ... if p.default is inspect.Parameter.empty else p.default
            for key, p in found.items()
        } == parameters
        assert {p.kind for p in found.values()} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    assert list(book.PRECISION) == [1, 5, 60, 300, 3600, 18000, 86400]
    assert (book.SAMPLE_COUNT, book.QUIT) == (120, False)


def test_an_update_is_read_back_at_every_precision(conn: Any) -> None:
    """As (start, count) pairs of whole numbers; both functions return nothing else."""
    now = server_time(conn)
    update: Any = book.update_counter
    assert update(conn, "hits", now=now) is None
    assert update(conn, "hits", 4, now) is None
    for precision in book.PRECISION:
        assert book.get_counter(conn, "hits", precision) == [(int(now) // precision * precision, 5)]


def test_without_a_time_it_is_now(conn: Any) -> None:
    """Also for a time of 0, as in the listings."""
    before = int(time.time())
    book.update_counter(conn, "hits")
    book.update_counter(conn, "hits", 1, 0)
    found = book.get_counter(conn, "hits", 1)
    assert sum(n for _, n in found) == 2
    assert all(isinstance(s, int) and before <= s <= int(time.time()) for s, _ in found)


def test_the_example_of_2012_is_accepted_and_read_back(conn: Any) -> None:
    """However long ago, every sample is there, in order of time."""
    for ago, hits in ((0, 45), (5, 28), (15, 17), (10, 29)):
        book.update_counter(conn, "hits", hits, EXAMPLE - ago)
    assert book.get_counter(conn, "hits", 5) == [
        (1336376395, 17),
        (1336376400, 29),
        (1336376405, 28),
        (1336376410, 45),
    ]
    assert book.get_counter(conn, "hits", 60) == [(1336376340, 17), (1336376400, 102)]
    assert len(book.get_counter(conn, "hits", 1)) == 4


def test_an_old_update_pushes_out_nothing_and_is_not_pushed_out(conn: Any) -> None:
    """2012 and today in one hash."""
    now = int(server_time(conn))
    for i in range(130):
        book.update_counter(conn, "hits", 1, EXAMPLE + i)
    for ago in range(100, 0, -1):
        book.update_counter(conn, "hits", 1, now - ago)
    assert len(book.get_counter(conn, "hits", 1)) == 230


@pytest.mark.parametrize("now", [-1, -0.5, -1.0, -59.9, -60, -61, 1, 0.5, 59.999, -86401])
def test_times_about_1970_lie_in_the_slice_of_their_floor(conn: Any, now: float) -> None:
    """Second -1 lies in the minute that starts at -60."""
    book.update_counter(conn, "hits", 3, now)
    for precision in book.PRECISION:
        assert book.get_counter(conn, "hits", precision) == [(int(now // precision) * precision, 3)]


def test_slice_starts_are_given_as_local_time_where_a_format_is(
    conn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the time zone is."""
    book.update_counter(conn, "hits", 2, EXAMPLE)
    book.update_counter(conn, "hits", 1, EXAMPLE - 5)
    try:
        for zone, texts in (
            ("UTC", ["07:40:05", "07:40:10"]),
            ("CST-8", ["15:40:05", "15:40:10"]),
        ):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            found = book.get_counter(conn, "hits", 5, "%Y-%m-%d %H:%M:%S")
            assert found == [(f"2012-05-07 {texts[0]}", 1), (f"2012-05-07 {texts[1]}", 2)]
            assert book.get_counter(conn, "hits", 5, data_format="%H") == [
                (texts[0][:2], 1),
                (texts[1][:2], 2),
            ]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_nothing_is_an_empty_list(conn: Any) -> None:
    """A name that never was."""
    book.update_counter(conn, "hits")
    assert book.get_counter(conn, "none", 60) == []
    assert book.get_counter(conn, "none", 60, "%H") == []


@pytest.mark.parametrize("name", ["点击量", "*", "60*60:hits", "a{b}", 'x{z="1",a="2"}', "🦊:"])
def test_names_are_stored_as_they_are(conn: Any, name: str) -> None:
    """No label is sorted, nothing is escaped."""
    book.update_counter(conn, name, 2, EXAMPLE)
    assert book.get_counter(conn, name, 60) == [(1336376400, 2)]
    entry: Any = f"60:{name}"
    assert conn.zscore("known:", entry) == 0.0
    assert conn.exists("count:" + entry)


def test_arguments_that_cannot_be_used_are_errors_and_nothing_is_written(conn: Any) -> None:
    """Of the kind that says what is wrong."""
    update: Any = book.update_counter
    for arguments, error in (
        (("", 1), InvalidName),
        (("a\n", 1), InvalidName),
        ((7, 1), InvalidName),
        (("x", 1.5), TypeError),
        (("x", "1"), TypeError),
        (("x", True), TypeError),
        (("x", 2**63), InvalidValue),
        (("x", -(2**63)), InvalidValue),
        (("x", 1, float("nan")), InvalidValue),
        (("x", 1, float("inf")), InvalidValue),
        (("x", 1, "now"), InvalidValue),
        (("x", 1, 10**13), InvalidValue),
    ):
        with pytest.raises(error):
            update(conn, *arguments)
    for wrong in (None, "redis://", conn.pipeline()):
        with pytest.raises(InvalidSetting):
            book.update_counter(wrong, "x")  # type: ignore[arg-type]
    assert conn.dbsize() == 0


def test_a_slice_that_is_full_is_an_error(conn: Any) -> None:
    """And keeps its value."""
    book.update_counter(conn, "x", 2**63 - 1, EXAMPLE)
    with pytest.raises(StoreRefused) as caught:
        book.update_counter(conn, "x", 1, EXAMPLE)
    assert caught.value.code == "overflow"
    assert book.get_counter(conn, "x", 1) == [(EXAMPLE, 2**63 - 1)]


def test_a_negative_count_takes_back(conn: Any) -> None:
    """As the listings' HINCRBY does."""
    book.update_counter(conn, "x", 5, EXAMPLE)
    book.update_counter(conn, "x", -2, EXAMPLE)
    assert book.get_counter(conn, "x", 60) == [(1336376400, 3)]


def test_the_callers_client_stays_his(conn: Any) -> None:
    """Its settings, its database, its name; it is neither closed nor left in the middle."""
    book.update_counter(conn, "x")
    conn.set("own", "text")
    decoded = conn.connection_pool.connection_kwargs.get("decode_responses")
    assert conn.get("own") == ("text" if decoded else b"text")
    assert len(conn.hgetall("count:86400:x")) == 1


def test_another_database_is_another_store(any_server: Server) -> None:
    """The one that the client has chosen."""
    with any_server.client(db=3) as third, any_server.client() as first:
        book.update_counter(third, "x", 1, EXAMPLE)
        assert book.get_counter(third, "x", 1) == [(EXAMPLE, 1)]
        assert book.get_counter(first, "x", 1) == []
        assert first.dbsize() == 0


def test_few_keys_beside_the_listings_own(conn: Any) -> None:
    """200 updates, one watermark, which expires; no description of a store, no totals."""
    for _ in range(200):
        book.update_counter(conn, "x", 1, EXAMPLE)
    keys = {os.fsdecode(key) for key in conn.scan_iter("*", count=1000)}
    assert {key for key in keys if not key.startswith("redmeter:bare:batch:")} == {
        "known:",
        *(f"count:{precision}:x" for precision in book.PRECISION),
    }
    assert len(keys) == 1 + 1 + len(book.PRECISION)


# --- Variables of the module ---------------------------------------------------------------


def test_precisions_and_samples_are_read_at_each_call(conn: Any) -> None:
    """A tuple as well as a list; changed in place as well as replaced."""
    book.PRECISION = [7]
    book.update_counter(conn, "a", 1, EXAMPLE)
    book.PRECISION.append(11)
    book.update_counter(conn, "b", 1, EXAMPLE)
    book.PRECISION = (13,)
    book.update_counter(conn, "c", 1, EXAMPLE)
    found = {os.fsdecode(entry) for entry in conn.zrange("known:", 0, -1)}
    assert found == {"7:a", "7:b", "11:b", "13:c"}
    now = int(server_time(conn))
    book.PRECISION, book.SAMPLE_COUNT = [60], 5
    for ago in range(40, 0, -1):
        book.update_counter(conn, "d", 1, now - 60 * ago)
    book.update_counter(conn, "d")
    assert len(book.get_counter(conn, "d", 60)) <= 7
    book.PRECISION = []
    book.update_counter(conn, "e")
    assert not conn.exists("count:60:e")
    book.PRECISION = [0]
    with pytest.raises(InvalidSetting):
        book.update_counter(conn, "e")
    book.PRECISION, book.SAMPLE_COUNT = [60], 0
    with pytest.raises(InvalidSetting):
        book.update_counter(conn, "e")
    for book.PRECISION in (None, [[1]], 5):  # type: ignore[assignment]
        with pytest.raises(InvalidSetting):
            book.update_counter(conn, "e")
    book.SAMPLE_COUNT = "x"  # type: ignore[assignment]
    with pytest.raises(InvalidSetting):
        book.clean_counters(conn)
    book.PRECISION, book.SAMPLE_COUNT = list(range(1, 31)), 100_000
    book.update_counter(conn, "e")
    assert len(book.get_counter(conn, "e", 30)) == 1


@pytest.mark.parametrize(("samples", "left"), [(254, 254), (255, 301)])
def test_an_update_leaves_so_many_samples_up_to_254(conn: Any, samples: int, left: int) -> None:
    """Larger hashes are for the cleaner: they are looked at field by field."""
    now = int(server_time(conn)) // 60 * 60
    book.PRECISION, book.SAMPLE_COUNT = [60], samples
    conn.hset("count:60:x", mapping={str(now - 60 * age): 1 for age in range(1, 301)})
    book.update_counter(conn, "x")
    assert conn.hlen("count:60:x") == left


def test_a_counter_that_both_write_never_expires(conn: Any) -> None:
    """The listings renew no time to live, so a shared hash is given none."""
    book.update_counter(conn, "hits")
    listings.update(conn, "hits")
    book.update_counter(conn, "hits")
    assert {conn.ttl(f"count:{precision}:hits") for precision in listings.PRECISIONS} == {-1}
    assert sum(count for _, count in book.get_counter(conn, "hits", 86400)) == 3


def _cleaner(conn: Any) -> threading.Thread:
    thread = threading.Thread(target=book.clean_counters, args=(conn,))
    _cleaners.append(thread)
    thread.start()
    return thread


def test_quit_ends_the_cleaner_within_a_second(conn: Any) -> None:
    """While it rests between two passes; it has made one by then."""
    conn.hset("count:60:hits", mapping={str(EXAMPLE): 1})
    conn.zadd("known:", {"60:hits": 0, "1:gone": 0})
    thread = _cleaner(conn)
    eventually(lambda: not conn.exists("known:", "count:60:hits"), what="a pass was made")
    began = time.monotonic()
    book.QUIT = True
    thread.join(5)
    assert not thread.is_alive()
    assert time.monotonic() - began < 2.5


def test_quit_ends_the_cleaner_of_a_server_that_stands_still(
    any_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the client would wait for: this one for ever."""
    conn: Any = any_server.client(socket_timeout=None)
    conn.zadd("known:", {f"60:name{number}": 0 for number in range(3_000)})
    any_server.pause()
    try:
        thread = _cleaner(conn)
        eventually(lambda: "tries again in a minute" in caplog.text, 20.0)
        book.QUIT = True
        thread.join(10)
        assert not thread.is_alive()
    finally:
        any_server.resume()


def test_a_cleaner_keeps_the_sample_count_of_the_module(any_server: Server) -> None:
    """Of every precision, whatever PRECISION says: other programs' too."""
    conn: Any = any_server.client()
    now = int(server_time(conn))
    for precision in (60, 7):
        key = f"count:{precision}:x"
        conn.hset(key, mapping={str(now - i * precision): 1 for i in range(200)})
        conn.zadd("known:", {f"{precision}:x": 0})
    book.SAMPLE_COUNT = 100
    thread = _cleaner(conn)
    eventually(lambda: conn.hlen("count:60:x") < 200 and conn.hlen("count:7:x") < 200)
    book.QUIT = True
    thread.join(5)
    assert conn.hlen("count:60:x") == 100
    assert conn.hlen("count:7:x") in (99, 100)


# --- Both directions -----------------------------------------------------------------------


def test_the_listings_read_what_we_write_and_clean_it(any_server: Server) -> None:
    """To them it is a counter like their own."""
    conn: Any = any_server.client()
    now = int(server_time(conn))
    book.update_counter(conn, "hits", 3, now)
    book.update_counter(conn, "hits", 2, EXAMPLE)
    book.update_counter(conn, "old", 1, EXAMPLE)
    for precision in listings.PRECISIONS:
        assert listings.get(conn, "hits", precision) == [
            (EXAMPLE // precision * precision, 2),
            (now // precision * precision, 3),
        ]
    listings.clean(conn)
    for precision in listings.PRECISIONS:
        assert listings.get(conn, "hits", precision) == [(now // precision * precision, 3)]
    found = conn.zrange("known:", 0, -1)
    assert sorted(found) == sorted(f"{p}:hits".encode() for p in listings.PRECISIONS)


@pytest.mark.parametrize("start", [listings.whole_start, listings.float_start])
def test_we_read_what_the_listings_write_and_add_to_it(conn: Any, start: listings.Starts) -> None:
    """In either spelling of a start; their hashes never get a time to live."""
    now = server_time(conn)
    listings.update(conn, "hits", 3, now - 86400 * 2, start)
    listings.update(conn, "hits", 4, now, start)
    book.update_counter(conn, "hits", 10, now)
    for precision in listings.PRECISIONS:
        assert book.get_counter(conn, "hits", precision)[-1] == (
            int(now) // precision * precision,
            14,
        )
        assert conn.ttl(f"count:{precision}:hits") == -1
        total = sum(int(n) for _, n in book.get_counter(conn, "hits", precision))
        assert total in (14, 17)  # what left the retention may have been trimmed


def test_we_clean_what_the_listings_cannot(any_server: Server) -> None:
    """An entry without a hash, which they leave, and one that ends their cleaner."""
    conn: Any = any_server.client()
    now = server_time(conn)
    listings.update(conn, "hits", 1, now, listings.float_start)
    listings.update(conn, "old", 1, EXAMPLE + 0.5, listings.float_start)
    conn.zadd("known:", {"60:gone": 0, "60*60:hits": 0})
    with pytest.raises(ValueError, match="invalid literal"):
        listings.clean(conn)
    thread = _cleaner(conn)
    eventually(lambda: not conn.exists("count:1:old") and conn.zscore("known:", "60:gone") is None)
    book.QUIT = True
    thread.join(5)
    left = set(conn.zrange("known:", 0, -1))
    assert left == {f"{p}:hits".encode() for p in listings.PRECISIONS} | {b"60*60:hits"}
    assert not conn.exists("count:86400:old")


def test_a_hash_without_an_entry_gets_one_with_its_next_slice(conn: Any) -> None:
    """Somebody removed it from the index while it was empty."""
    now = int(server_time(conn))
    conn.hset("count:60:hits", mapping={str(now // 60 * 60 - 60): 4})
    book.update_counter(conn, "hits", 1, now)
    assert conn.zscore("known:", "60:hits") == 0.0
    assert book.get_counter(conn, "hits", 60) == [
        (now // 60 * 60 - 60, 4),
        (now // 60 * 60, 1),
    ]


@settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=st.lists(
        st.tuples(st.booleans(), st.integers(-300, 300), st.integers(0, 10**6)), max_size=12
    )
)
def test_both_together_count_what_either_would_count_alone(
    any_server: Server, calls: list[tuple[bool, int, int]]
) -> None:
    """Ours and theirs in any order, at any time about now."""
    with any_server.client() as conn:
        conn.flushall()
        now = int(time.time())
        expected: dict[int, int] = {}
        for ours, off, amount in calls:
            (book.update_counter if ours else listings.update)(conn, "x", amount, now + off)
            expected[now + off] = expected.get(now + off, 0) + amount
        assert dict(book.get_counter(conn, "x", 1)) == expected
        for precision in book.PRECISION:
            found = book.get_counter(conn, "x", precision)
            assert found == listings.get(conn, "x", precision)
            assert sum(int(n) for _, n in found) == sum(expected.values())


def test_threads_that_share_a_client_count_exactly(conn: Any) -> None:
    """Eight threads of 50 updates; few watermarks."""

    def work() -> None:
        for _ in range(50):
            book.update_counter(conn, "x", 1, EXAMPLE)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert book.get_counter(conn, "x", 1) == [(EXAMPLE, 400)]
    assert len(list(conn.scan_iter("redmeter:bare:batch:*", count=1000))) <= 8


def test_clients_that_are_gone_leave_nothing_behind(any_server: Server) -> None:
    """What is kept of a client goes with it."""
    import gc

    before = len(book_stores.stores)
    for _ in range(5):
        client: redis.Redis = any_server.client()
        book.update_counter(client, "x")
        client.close()
    del client
    any_server.close_clients()
    gc.collect()
    assert len(book_stores.stores) <= before + 1
