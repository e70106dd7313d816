"""A store of the listings gets a prefix, or loses it: every reader answers as before."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redmeter import Meter, book
from redmeter.errors import StoreMoving
from redmeter.migrating import MigrationError, migrate, survey
from redmeter.migrating import copy as copying
from redmeter.store.config import read_states
from redmeter.stored.keys import HOUR, slice_start
from support import listings
from support.answers import answers
from support.invoking import Run, invoking
from support.migrating import Killed, Killer, fill, held
from support.servers import Server
from support.stores import HastyClock, OpenStore, opened_stores, server_time

#: Names that only the listings write, and no index has.
LOGGERS, STATISTICS = ("worker", "theirs", "moved-on", "silent"), ("cart:value", "page:ms")
#: Keys of other programs, some of which have the names of Redmeter's families.
OTHERS: dict[str, Callable[[Any, str], object]] = {
    "session:1": lambda client, key: client.set(key, "x"),
    "count:users": lambda client, key: client.hset(key, "1", "2"),
    "count:60:users": lambda client, key: client.hset(key, "60", "2"),
    "stats:today": lambda client, key: client.zadd(key, {"ada": 3}),
    "stats:a:start": lambda client, key: client.set(key, "14"),
    "recent:items": lambda client, key: client.rpush(key, "book", "pen"),
    "recent:shop:items": lambda client, key: client.rpush(key, "book", "pen"),
    "common:words:en": lambda client, key: client.zadd(key, {"the": 3}),
    "common:words:en:start": lambda client, key: client.set(key, "a"),
    "gauge:60:x": lambda client, key: client.hset(key, "60", "1 60.0"),
    "total:": lambda client, key: client.hset(key, "x", "1"),
}


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    """Open stores, and close them after the test."""
    yield from opened_stores()


@pytest.fixture
def redmeter() -> Iterator[Run]:
    """The command."""
    with invoking() as run:
        yield run


def fill_bare(server: Server) -> None:
    """Store something of each kind without a prefix: by Redmeter, its book and the listings."""
    fill(server.url, prefix="")
    with server.client() as client:
        now = server_time(client)
        hour = slice_start(now, HOUR)
        book.update_counter(client, "sales", 3)
        book.log_common(client, "worker", "retrying")
        book.update_stats(client, "cart", "value", 2.0)
        for ago in range(0, 5 * HOUR, 900):
            listings.update(client, "visits", 5, now - ago, listings.float_start)
        for each in (hour - HOUR, hour):
            of_day = each // HOUR % 24
            listings.log_common(client, "theirs", "saved", "warning", hour=of_day)
            listings.update_stats(client, "page", "ms", 2.0, hour=of_day)
        listings.update_stats_as_printed(client, "cart", "value", 4.0, hour // HOUR % 24)
        # The listings have moved the hours on since Redmeter wrote; and nobody has for a day.
        for name, ours, shown in (
            ("moved-on", hour - 2 * HOUR, hour // HOUR % 24),
            ("silent", hour - 24 * HOUR, hour // HOUR % 24),
        ):
            key = f"common:{name}:info"
            client.lpush(f"recent:{name}:info", "Sun Jun 23 11:57:38 2019 hello")
            client.zadd(key, {"hello": 7})
            client.zadd(f"{key}:last", {"hello": 5})
            client.set(f"redmeter:bare:{key}:start", ours)
            client.set(f"redmeter:bare:{key}:pstart", ours - HOUR)
            client.set(f"{key}:start", shown)
            client.set(f"{key}:pstart", (shown - 1) % 24)


def check_alike(redmeter: Run, *stores: tuple[str, str]) -> None:
    """Check that stores, of URL and prefix, answer alike; none of which is written to."""
    at = int(time.time())
    names: dict[str, Any] = {"at": at, "loggers": LOGGERS, "statistics": STATISTICS}
    for attempt in itertools.count():
        first, *rest, again = [answers(redmeter, *one, **names) for one in (*stores, stores[0])]
        if first == again:  # no interval has ended meanwhile
            break
        assert attempt < 5, {
            key: (first[key], again[key]) for key in first if first[key] != again[key]
        }
    for other in rest:
        assert other.keys() == first.keys()
        assert {key: (other[key], first[key]) for key in first if other[key] != first[key]} == {}
    assert first["counter"] == ['hits{n="0"}', 'hits{n="1"}', 'hits{n="2"}', "sales", "visits"]
    assert [one.count for one in first["log_frequencies theirs warning"]] != [0]
    assert [one.count for one in first["log_frequencies moved-on info"]] == [7]
    assert first["log_frequencies silent info"] == []
    assert first["statistics page:ms"].this.count
    assert first["statistics cart:value"].this.count == 2


@pytest.mark.parametrize("where", ["same database", "another server", "cluster"])
def test_a_store_gets_a_prefix_and_loses_it_again(
    server: Server, open_store: OpenStore, redmeter: Run, request: Any, where: str
) -> None:
    """Every reader answers alike in each; keys of other programs are left alone."""
    fill_bare(server)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(server.client())
        for key, write in OTHERS.items():
            write(client, key)
        others = {key: client.dump(key) for key in OTHERS}
        url = server.url
        if where == "another server":
            url = stack.enter_context(Server("valkey-9.1")).url
        elif where == "cluster":
            url = request.getfixturevalue("cluster").url
        report = migrate(open_store(server.url, prefix=""), open_store(url, prefix="app:"))
        assert {*report.foreign_keys} == OTHERS.keys() - {"session:1", "gauge:60:x", "total:"}
        back = server.url.removesuffix("0") + "2"
        check_alike(redmeter, (server.url, ""), (url, "app:"))
        migrate(open_store(url, prefix="app:"), open_store(back, prefix=""))
        check_alike(redmeter, (server.url, ""), (url, "app:"), (back, ""))
        # Back to where it came from: what is there is replaced, but not what is others'.
        migrate(open_store(back, prefix=""), open_store(server.url, prefix=""), replace=True)
        migrate(open_store(server.url, prefix=""), open_store(url, prefix="b:"), erase=True)
        assert {key: client.dump(key) for key in OTHERS} == others
        left = {key.decode() for key in client.scan_iter() if not key.startswith((b"app:", b"b:"))}
        bare = {key for key in left if key.startswith("redmeter:bare:")}
        assert left - bare == OTHERS.keys()
        assert {key.removeprefix("redmeter:bare:").partition(":")[0] for key in bare} <= {
            *("meta", "batch", "cleaned")
        }
        check_alike(redmeter, (url, "b:"))


def test_what_is_copied_lives_as_long_as_new_keys(server: Server, open_store: OpenStore) -> None:
    """The listings' keys have no time to live; with a prefix all data have one."""
    fill_bare(server)
    source, target = open_store(server.url, prefix=""), open_store(server.url, prefix="app:")
    migrate(source, target)
    stay = {b"known:", b"gauges:", b"hists:", b"total:", b"sums:", b"spreads:", b"meta:"}
    with server.client() as client, server.client(db=2) as other:
        names = [*client.scan_iter("app:*")]
        without = {name.removeprefix(b"app:") for name in names if client.ttl(name) == -1}
        assert without == stay
        assert 121 * 60 < client.ttl("app:count:60:visits") <= 136 * 60
        assert client.ttl("app:count:3600:visits") > 240 * HOUR
        hour = slice_start(server_time(client), HOUR)
        assert int(client.get("app:common:theirs:warning:start")) in (hour, hour - HOUR)
        assert not [name for name in names if name.startswith(b"app:bare")]
        with Meter(server.url, prefix="app:", sync=True) as meter:
            meter.count("visits")
            meter.observe("page:ms", 1.0)
        # Back: counters never expire under the listings, which go on with the hours.
        back = open_store(server.url.removesuffix("0") + "2", prefix="")
        migrate(target, back)
        assert {other.ttl(name) for name in other.scan_iter("count:*")} == {-1}
        before = int(other.hget("count:86400:visits", str(slice_start(hour, 86400))) or 0)
        listings.update(other, "visits", 5, hour)
        assert int(other.hget("count:86400:visits", str(slice_start(hour, 86400)))) == before + 5
        assert not other.exists("stats:page:ms:start")
        assert int(other.get("common:moved-on:info:start")) == hour // HOUR % 24
        book.log_common(other, "worker", "retrying")
        assert other.zscore("common:worker:info", "retrying") == 2


def test_a_dry_run_counts_what_a_run_copies(server: Server, open_store: OpenStore) -> None:
    """Also where the dates of hours have another form."""
    fill_bare(server)
    stores = open_store(server.url, prefix=""), open_store(server.url)
    found = survey(stores[0])
    assert found.keys == migrate(*stores).keys


def test_a_store_of_the_listings_alone_moves(server: Server, open_store: OpenStore) -> None:
    """It has no `meta:`, no totals, and no key of Redmeter."""
    with server.client() as client:
        listings.update(client, "visits", 5)
        listings.log_common(client, "theirs", "saved")
        listings.update_stats(client, "page", "ms", 2.0)
        assert not [*client.scan_iter("redmeter:*")]
        migrate(open_store(server.url, prefix=""), open_store(server.url))
    with Meter(server.url, sync=True) as meter:
        assert meter.names() == ["visits"]
        assert meter.series("visits", precision=86400)[-1].value == 5
        assert meter.log_frequencies("theirs")[0].count == 1
        assert meter.statistics("page:ms").this is not None


def test_the_book_is_refused_after_the_move(server: Server, open_store: OpenStore) -> None:
    """Its functions know no prefix; a program of the listings writes on to the old keys."""
    with server.client() as client:
        book.update_counter(client, "sales")
        migrate(open_store(server.url, prefix=""), open_store(server.url))
        with pytest.raises(StoreMoving):
            book.update_counter(client, "sales")
        before = held([client])
        listings.update(client, "sales", 5)
        assert held([client]) == before


def test_erasing_goes_on_where_it_was_killed(
    server: Server, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys that show which others are the store's are removed last."""
    fill_bare(server)
    stores = open_store(server.url, prefix=""), open_store(server.url, prefix="app:")
    monkeypatch.setattr(copying, "VALUES_PER_CALL", 20)
    monkeypatch.setattr(copying, "CALLS", 1)
    migrate(*stores)
    with server.client() as client:
        client.hset("count:users", "1", "2")
        runs = [client.dbsize()]
        for at in itertools.count():
            with monkeypatch.context() as patched:
                killer = Killer(patched, stores, at, after=True)
                with contextlib.suppress(Killed):
                    migrate(*stores, erase=True)
            runs.append(client.dbsize())
            if killer.exchanges <= at:
                break
        assert len({*runs}) > 5
        left = {key for key in client.scan_iter() if not key.startswith(b"app:")}
        left.remove(b"count:users")
        families = {key.removeprefix(b"redmeter:bare:").partition(b":")[0] for key in left}
        assert families <= {b"meta", b"batch", b"cleaned"}
        assert client.hgetall("count:users") == {b"1": b"2"}


# --- A target without a prefix ---------------------------------------------------------------


def reason_of(*stores: Any, **options: Any) -> str:
    """Return why a move is refused."""
    with pytest.raises(MigrationError) as raised:
        migrate(*stores, **options)
    return raised.value.reason


def test_data_of_the_listings_in_the_target_are_not_overwritten(
    server: Server, open_store: OpenStore
) -> None:
    """Statistics and messages have no index; they are data all the same."""
    fill(server.url)
    target = server.url.removesuffix("0") + "1"
    stores = open_store(server.url), open_store(target, prefix="")
    with server.client(db=1) as client:
        listings.update_stats(client, "page", "ms", 2.0)
        before = client.dump("stats:page:ms")
        assert reason_of(*stores) == "not-empty"
        assert client.dump("stats:page:ms") == before
        migrate(*stores, replace=True)
        assert not client.exists("stats:page:ms")


def test_a_key_of_another_program_in_the_way_is_not_overwritten(
    server: Server, open_store: OpenStore
) -> None:
    """Not even if data are to be replaced."""
    fill(server.url)
    target = server.url.removesuffix("0") + "1"
    stores = open_store(server.url), open_store(target, prefix="")
    with server.client(db=1) as client:
        client.hset('count:60:hits{n="0"}', "total", "1")
        for replace in (False, True):
            assert reason_of(*stores, replace=replace) == "taken"
        assert client.hgetall('count:60:hits{n="0"}') == {b"total": b"1"}
        assert not read_states(stores[0])[0].moved


@pytest.mark.parametrize("prefixes", [("", "app:"), ("app:", "")])
def test_a_mover_may_be_killed_anywhere_and_run_again(
    server: Server,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
    prefixes: tuple[str, str],
) -> None:
    """What it has copied so far is known as the store's, and everything arrives."""
    urls = server.url, server.url.removesuffix("0") + "1"
    fill(urls[0], series=1, prefix=prefixes[0])
    meta = f"{prefixes[0] or 'redmeter:bare:'}meta:"
    with server.client() as client, server.client(db=1) as other:
        wanted: dict[str, Any] = {}
        before = dict(client.hgetall(meta))
        for at in itertools.count(0, 3):
            other.flushdb()
            client.delete(meta)
            client.hset(meta, mapping=before)
            stores = [
                open_store(url, prefix=prefix, clock=HastyClock())
                for url, prefix in zip(urls, prefixes, strict=True)
            ]
            with monkeypatch.context() as patched:
                killer = Killer(patched, stores, at, after=True)
                with contextlib.suppress(Killed):
                    migrate(*stores)
            if text := client.hget(meta, "frozen"):
                client.hset(meta, "frozen", f"{text.split()[0].decode()} 1")
            migrate(*stores)
            copied = held([other], prefixes[1] or "")
            copied = {key: value for key, value in copied.items() if "bare:meta:" not in key}
            wanted = wanted or copied
            assert copied == wanted, at
            if killer.exchanges <= at:
                break
        assert at > 20
