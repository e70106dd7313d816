"""The logs of the book: its functions and keys, beside programs that still have its code."""

import gc
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redmeter import (
    InvalidName,
    InvalidSetting,
    InvalidValue,
    StoreRefused,
    StoreUnavailable,
    book,
)
from redmeter import store as stores
from redmeter.book import stores as book_stores
from redmeter.clock import ManualClock
from redmeter.store.servers.connection import ServerLink
from redmeter.stored.keys import HOUR
from redmeter.stored.message import parse_recent
from support import listings
from support.proxy import Proxy
from support.servers import Server
from support.stores import SetTime, server_time

pytestmark = pytest.mark.servers

KEY = "common:test:info"
RECENT = "recent:test:info"
DAY = 86400


@pytest.fixture(params=[(False, 2), (True, 2), (False, 3), (True, 3)], ids=str)
def conn(request: pytest.FixtureRequest, any_server: Server) -> Iterator[Any]:
    """The caller's client: decoding or not, by protocol 2 or 3."""
    decode, protocol = request.param
    with any_server.client(decode_responses=decode, protocol=protocol) as conn:
        yield conn


@pytest.fixture
def plain(any_server: Server) -> Iterator[Any]:
    """A client that does not decode."""
    with any_server.client() as conn:
        yield conn


@pytest.fixture
def hour(any_server: Server) -> int:
    """The start of the server's hour."""
    with any_server.client() as client:
        return int(server_time(client)) // HOUR * HOUR


def counted(conn: Any, key: str = KEY) -> dict[str, int]:
    """A sorted set of frequencies."""
    found = conn.zrange(key, 0, -1, withscores=True)
    return {m if isinstance(m, str) else m.decode(): int(score) for m, score in found}


def texts(conn: Any, key: str = RECENT) -> list[str]:
    """What a list holds, the newest first, without times."""
    entries = conn.lrange(key, 0, -1)
    return [parse_recent(e.encode() if isinstance(e, str) else e)[1] for e in entries]


# --- Face ----------------------------------------------------------------------------------


def test_names_and_signatures_are_the_books() -> None:
    """By position and by keyword, with the same defaults; levels and names have a severity."""
    expected: dict[str, dict[str, Any]] = {
        "log_recent": {"conn": ..., "name": ..., "message": ..., "severity": 20, "pipe": None},
        "log_common": {"conn": ..., "name": ..., "message": ..., "severity": 20, "timeout": 5},
    }
    for name, parameters in expected.items():
        found = inspect.signature(getattr(book, name)).parameters
        assert {
            key: ... if p.default is inspect.Parameter.empty else p.default
            for key, p in found.items()
        } == parameters
        assert {p.kind for p in found.values()} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    assert book.SEVERITY == {
        10: "debug",
        20: "info",
        30: "warning",
        40: "error",
        50: "critical",
        "debug": "debug",
        "info": "info",
        "warning": "warning",
        "error": "error",
        "critical": "critical",
    }


def test_a_recent_message_is_in_front_of_the_others(conn: Any) -> None:
    """With the time at which it was logged, a hundred of them."""
    before = time.time()
    log: Any = book.log_recent
    assert log(conn, "test", "test_msg") is None
    (entry,) = conn.lrange(RECENT, 0, -1)
    moment, text = parse_recent(entry.encode() if isinstance(entry, str) else entry)
    assert text == "test_msg"
    assert moment is not None
    assert before - 0.001 <= moment <= time.time()
    for n in range(105):
        book.log_recent(conn, "test", f"m{n}")
    assert texts(conn) == [f"m{n}" for n in range(104, 4, -1)]


def test_a_common_message_is_counted_and_recent_as_well(conn: Any, hour: int) -> None:
    """As the message that it is, by the hour."""
    log: Any = book.log_common
    assert log(conn, "test", "msg 17") is None
    book.log_common(conn, "test", "msg 17")
    book.log_common(conn, "test", "msg 18", timeout=1)
    assert counted(conn) == {"msg 17": 2, "msg 18": 1}
    assert texts(conn) == ["msg 18", "msg 17", "msg 17"]
    assert int(conn.get(f"{KEY}:start")) == hour % DAY // HOUR
    assert int(conn.get(f"redmeter:bare:{KEY}:start")) == hour
    assert not conn.exists(f"{KEY}:last", f"{KEY}:pstart", f"redmeter:bare:{KEY}:pstart")


def test_common_messages_of_a_name_are_bounded_over_its_severities(conn: Any, hour: int) -> None:
    """Also those whose severity is a text; what is known still counts."""
    conn.hset("redmeter:bare:distinct:test", str(hour), 998)
    for severity in (logging.INFO, logging.ERROR, "odd", logging.INFO):
        book.log_common(conn, "test", "msg", severity)
    book.log_common(conn, "other", "msg")
    assert counted(conn) == {"msg": 2}
    assert counted(conn, "common:test:error") == {"msg": 1}
    assert counted(conn, "common:test:odd") == {"(other)": 1}
    assert counted(conn, "common:other:info") == {"msg": 1}


@pytest.mark.parametrize(
    ("severity", "key"),
    [
        (logging.ERROR, "error"),
        ("error", "error"),
        ("ERROR", "error"),
        (25, "25"),
        ("Notice", "notice"),
        ("a:b", "a:b"),
    ],
)
def test_severities_are_spelled_as_in_the_book(conn: Any, severity: Any, key: str) -> None:
    """Levels by their names, all others as text, in lower case."""
    book.log_recent(conn, "x:y", "a", severity)
    book.log_common(conn, "x:y", "a", severity=severity)
    assert texts(conn, f"recent:x:y:{key}") == ["a", "a"]
    assert counted(conn, f"common:x:y:{key}") == {"a": 1}


def test_messages_are_cleaned_and_their_secrets_masked(conn: Any) -> None:
    """In the list and in what is counted."""
    book.log_common(conn, "test", "to redis://bob:hunter2@db \x1b[2J\ud800")
    assert counted(conn) == {"to redis://bob:***@db \ufffd": 1}
    assert texts(conn) == ["to redis://bob:***@db \ufffd"]
    book.log_common(conn, "test", "x" * 2**20)
    assert len(texts(conn)[0]) <= 2000
    book.log_common(conn, "test", "")
    assert texts(conn)[0] == "(empty)"


def test_arguments_that_cannot_be_used_are_errors_and_nothing_is_written(conn: Any) -> None:
    """Names, severities, messages, timeouts, clients and pipelines."""
    wrong: Any = book.log_common
    for name in ("", "a\nb", "x" * 201, None):
        with pytest.raises(InvalidName):
            wrong(conn, name, "a")
    with pytest.raises(InvalidName):
        wrong(conn, "test", "a", "a\nb")
    for message in (None, 5, b"a"):
        with pytest.raises(TypeError, match="text"):
            wrong(conn, "test", message)
    for timeout in (0, -1, None, True, float("nan"), float("inf"), "5"):
        with pytest.raises(InvalidValue, match="timeout"):
            wrong(conn, "test", "a", timeout=timeout)
    with pytest.raises(InvalidSetting, match="client"):
        wrong(object(), "test", "a")
    with pytest.raises(InvalidSetting, match="pipe"):
        book.log_recent(conn, "test", "a", pipe=conn)
    assert conn.dbsize() == 0


def test_somebody_elses_key_is_an_error_and_all_else_is_written(conn: Any) -> None:
    """Of the list alone, or of the count alone."""
    conn.set(RECENT, "theirs")
    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        book.log_common(conn, "test", "a")
    assert counted(conn) == {"a": 1}
    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        book.log_recent(conn, "test", "a", pipe=conn.pipeline())


# --- pipe= ---------------------------------------------------------------------------------


def test_a_pipeline_takes_the_message_along_and_is_executed(conn: Any) -> None:
    """Also as a transaction; what was queued before goes first."""
    for transaction in (True, False):
        pipe = conn.pipeline(transaction=transaction)
        pipe.set("mine", str(transaction))
        book.log_recent(conn, "test", f"m {transaction}", pipe=pipe)
        assert conn.get("mine") in (str(transaction), str(transaction).encode())
        assert pipe.execute() == []
    assert texts(conn) == ["m False", "m True"]


def test_a_pipeline_may_stand_for_the_connection_as_in_the_book(conn: Any) -> None:
    """Its log_common calls log_recent that way, with what it watches."""
    pipe = conn.pipeline()
    pipe.watch("mine")
    pipe.multi()
    pipe.set("mine", "1")
    book.log_recent(pipe, "test", "msg", "info", pipe)
    assert texts(conn) == ["msg"]
    pipe.watch("mine")
    book.log_recent(pipe, "test", "at once", "info", pipe)
    assert texts(conn) == ["at once", "msg"]


def test_what_a_pipeline_watches_holds_for_the_message(conn: Any) -> None:
    """Where it changed, nothing is logged, and the error is redis-py's."""
    pipe = conn.pipeline()
    pipe.watch("mine")
    conn.set("mine", "changed")
    pipe.multi()
    with pytest.raises(redis.WatchError):
        book.log_recent(conn, "test", "msg", pipe=pipe)
    assert texts(conn) == []


@pytest.mark.parametrize("transaction", [True, False])
def test_a_pipeline_that_is_sent_again_logs_once(
    proxy: Proxy, server: Server, transaction: bool
) -> None:
    """The client library repeats it by itself; the message is in the list once."""
    with (
        server.client() as direct,
        redis.Redis("127.0.0.1", proxy.port, retry=Retry(NoBackoff(), 3)) as conn,
    ):
        conn.ping()
        commands = {"EXEC"} if transaction else {"EVAL"}
        proxy.drop_replies(2, commands=commands)
        pipe = conn.pipeline(transaction=transaction)
        pipe.incr("counted by hand")
        book.log_recent(conn, "test", "msg", pipe=pipe)
        assert proxy.dropped == 2
        assert texts(direct) == ["msg"]
        assert int(direct.get("counted by hand")) == 3


def test_many_pipelines_leave_few_keys(plain: Any) -> None:
    """One producer after the other is lent to them, not one each."""
    for n in range(20):
        book.log_recent(plain, "test", f"m{n}", pipe=plain.pipeline())
    assert len(plain.keys("redmeter:bare:batch:*")) == 1
    assert len(texts(plain)) == 20


# --- timeout= ------------------------------------------------------------------------------


def hole_in_use(proxy: Proxy, conn: Any) -> None:
    """It answered, and does no more."""
    book.log_common(conn, "test", "before")
    proxy.black_hole()


TROUBLES: dict[str, Callable[[Proxy, Any], object]] = {
    "refused": lambda proxy, _: proxy.refuse(),
    "black hole": lambda proxy, _: proxy.black_hole(),
    "black hole in use": hole_in_use,
    "reset": lambda proxy, _: proxy.reset_after(0, of="requests", times=10**6),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_timeout_bounds_the_call(proxy: Proxy, trouble: str) -> None:
    """Whatever the client would wait for: it has no timeouts of its own, and many retries."""
    with redis.Redis("127.0.0.1", proxy.port) as conn:
        TROUBLES[trouble](proxy, conn)

        def log(timeout: float) -> None:
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                book.log_common(conn, "test", "msg", timeout=timeout)
            assert timeout * 0.5 < time.monotonic() - began < timeout + 0.7
            done.append(timeout)

        done: list[float] = []
        for timeout in (0.3, 0.6):
            thread = threading.Thread(target=log, args=(timeout,), daemon=True)
            thread.start()  # by itself, since without a bound it may last for minutes
            thread.join(timeout + 5)
            assert done[-1:] == [timeout]
        proxy.heal()
        book.log_common(conn, "test", "after")
        assert counted(conn)["after"] == 1


@pytest.mark.parametrize("timeout", [0.05, 1.0])
def test_no_pause_between_two_tries_is_longer_than_what_is_left(
    proxy: Proxy, timeout: float
) -> None:
    """So a call ends when it was to end, by the clock of its store."""
    proxy.refuse()
    clock = ManualClock(1e9)
    with redis.Redis("127.0.0.1", proxy.port) as conn:
        store = stores.open(client=conn, clock=clock)
        assert store is not None
        with pytest.raises(StoreUnavailable):
            store.shard("").write(lambda _: (), within=timeout)
    assert timeout / 2 < clock.monotonic() <= timeout


def test_a_lost_reply_counts_once(proxy: Proxy, server: Server) -> None:
    """Within the time that is given."""
    with server.client() as direct, redis.Redis("127.0.0.1", proxy.port) as conn:
        book.log_common(conn, "test", "msg")
        proxy.drop_replies(2)
        book.log_common(conn, "test", "msg")
        assert proxy.dropped == 2
        assert counted(direct) == {"msg": 2}
        assert texts(direct) == ["msg", "msg"]


def test_the_callers_client_keeps_its_own_timeouts(any_server: Server) -> None:
    """And connections that were made for a call are closed with it."""
    client: redis.Redis = any_server.client()
    before = dict(client.connection_pool.connection_kwargs)
    book.log_common(client, "test", "msg", timeout=1)
    assert client.connection_pool.connection_kwargs == before
    assert client.get_connection_kwargs() == before
    link = book_stores.store_of(client).link
    assert isinstance(link, ServerLink)
    (connection,) = link._bounded
    assert connection._sock is not None
    client.close()
    any_server.close_clients()
    stores = len(book_stores.stores)
    del client
    gc.collect()
    assert len(book_stores.stores) <= stores
    assert connection._sock is None


# --- Beside the listings -------------------------------------------------------------------


def test_both_log_into_one_list_and_one_count(plain: Any, hour: int) -> None:
    """In turn, whoever begins; ours are read by theirs and theirs by ours."""
    for first, second in ((book, listings), (listings, book)):
        plain.flushall()
        logs: list[Any] = [first, second]
        for n in range(6):
            logs[n % 2].log_common(plain, "test", f"msg {n // 2}")
        assert counted(plain) == {"msg 0": 2, "msg 1": 2, "msg 2": 2}
        assert texts(plain) == [f"msg {n // 2}" for n in range(5, -1, -1)]
        for n in range(100):
            logs[n % 2].log_recent(plain, "test", f"m{n}")
        assert texts(plain) == [f"m{n}" for n in range(99, -1, -1)]
    assert int(plain.get(f"{KEY}:start")) == hour % DAY // HOUR


def test_an_hour_that_they_began_is_moved_on_also_over_midnight(
    plain: Any, hour: int, set_time: SetTime
) -> None:
    """Theirs compares hours of the day, and stays where it is when they start again at 0."""
    this = hour % DAY // HOUR
    set_time(hour + 1800)
    for ago in (1, 5, 23):
        plain.flushall()
        began = (this - ago) % 24
        listings.log_common(plain, "test", "old", hour=began)
        listings.log_common(plain, "test", "old", hour=began)
        book.log_common(plain, "test", "new")
        assert counted(plain) == {"new": 1}
        assert counted(plain, f"{KEY}:last") == {"old": 2}
        assert int(plain.get(f"{KEY}:pstart")) == began
        assert int(plain.get(f"redmeter:bare:{KEY}:pstart")) == hour - ago * HOUR
        # From now on theirs counts into the hour that ours has begun.
        listings.log_common(plain, "test", "new", hour=this)
        assert counted(plain) == {"new": 2}


def test_an_hour_that_they_moved_on_is_understood(plain: Any, hour: int) -> None:
    """With hours of the day in `:start` and `:pstart`."""
    this = hour % DAY // HOUR
    if this == 0:  # theirs does not move on at midnight
        return
    listings.log_common(plain, "test", "old", hour=this - 1)
    listings.log_common(plain, "test", "new", hour=this)
    book.log_common(plain, "test", "new")
    assert counted(plain) == {"new": 2}
    assert counted(plain, f"{KEY}:last") == {"old": 1}
    assert int(plain.get(f"{KEY}:start")) == this


def test_both_at_once_lose_nothing(any_server: Server, plain: Any, hour: int) -> None:
    """Theirs watches, ours is one script."""
    plain.set(f"{KEY}:start", hour - HOUR)
    plain.zadd(KEY, {"old": 7})
    book.log_common(plain, "test", "new")

    def run(log: Any) -> None:
        with any_server.client() as client:
            for _ in range(30):
                log(client, "test", "new")

    threads = [
        threading.Thread(target=run, args=(log,))
        for log in (book.log_common, listings.log_common, book.log_common, listings.log_common)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(plain) == {"new": 121}
    assert counted(plain, f"{KEY}:last") == {"old": 7}
    assert len(texts(plain)) == 100
