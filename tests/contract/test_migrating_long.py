"""A move that takes long: it holds its lock, and writes no more than it needs."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redmeter.migrating import MigrationError, journal, migrate, reading, walk
from redmeter.store import Store
from redmeter.store.link import Link
from support.moving import Databases, fill, held, write_log
from support.servers import Server
from support.stores import count, opened_stores

LOCK = "redmeter:moving:lock"
Stores = tuple[Store, Store]


@pytest.fixture
def stores(server: Server) -> Iterator[Stores]:
    """FROM and TO."""
    for open_one in opened_stores():
        yield open_one(server.url), open_one(server.url.removesuffix("0") + "1")


@pytest.fixture
def clients(server: Server) -> Iterator[Databases]:
    """Clients of both."""
    with server.client() as one, server.client(db=1) as other:
        yield one, other


def behind_last_page(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object]) -> None:
    """Do something at the end of each walk, which is told its number."""
    pages, walks = walk.Walk.pages, itertools.count(1)

    def walked(self: walk.Walk) -> Any:
        yield from pages(self)
        act(next(walks))

    monkeypatch.setattr(walk.Walk, "pages", walked)


# --- The lock ------------------------------------------------------------------------------


def test_the_lock_is_held_while_nothing_of_ours_is_found(
    stores: Stores, clients: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many keys of others, for longer than a lock lives."""
    monkeypatch.setattr(journal, "LOCK", 1.2)
    monkeypatch.setattr(walk, "PAGE", 10)
    pages, slept = walk.Walk.pages, [0.0]

    def slowly(self: walk.Walk) -> Any:
        for page in pages(self):
            time.sleep(0.1)
            slept[0] += 0.1
            yield page

    monkeypatch.setattr(walk.Walk, "pages", slowly)
    fill(stores[0], series=1)
    before = held(clients[0])
    clients[0].mset({f"redmeter:other:{number}": 1 for number in range(200)})
    assert migrate(*stores).complete
    assert slept[0] > 2 * journal.LOCK
    assert held(clients[1]) == before
    assert clients[0].hget("redmeter:moving:", "complete") == b"1"


def test_the_lock_is_held_while_something_large_is_read(
    stores: Stores, clients: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step by step."""
    monkeypatch.setattr(journal, "LOCK", 1.2)
    monkeypatch.setattr(reading, "AT_ONCE", 10)
    monkeypatch.setattr(reading, "STEP", 5)
    exchange, slept = Link.exchange, [0.0]

    def slowly(self: Link, commands: Any, *args: Any, **options: Any) -> Any:
        if commands[0][0] == "LRANGE":
            time.sleep(0.1)
            slept[0] += 0.1
        return exchange(self, commands, *args, **options)

    monkeypatch.setattr(Link, "exchange", slowly)
    write_log(stores[0], "app", "info", [(time.time() - n, f"job {n}") for n in range(90)])
    before = held(clients[0])
    assert migrate(*stores).complete
    assert slept[0] > journal.LOCK
    assert held(clients[1]) == before


def test_the_end_is_written_down_though_the_lock_ran_out(
    stores: Stores, clients: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the last round, that of a run that stood still, where nobody else has gone on."""
    behind_last_page(monkeypatch, lambda number: number > 1 and clients[0].delete(LOCK))
    fill(stores[0], series=1)
    assert migrate(*stores).complete
    assert clients[0].hget("redmeter:moving:", "complete") == b"1"
    assert 0 < clients[0].ttl("redmeter:moving:") <= journal.KEPT
    assert not clients[0].exists(LOCK)


@pytest.mark.parametrize("at_work", [False, True])
def test_who_lost_the_lock_does_not_write_over_another_run(
    stores: Stores, clients: Databases, monkeypatch: pytest.MonkeyPatch, at_work: bool
) -> None:
    """That took what came late, and is at work still or has ended before all was done."""

    def go_on(number: int) -> None:
        if number != 2:
            return
        clients[0].delete(LOCK)
        for name in ("late", "later"):
            count(stores[0], name, int(time.time()))
        assert not migrate(*stores, quit=lambda: True).finished
        if at_work:
            clients[0].set(LOCK, "another")

    behind_last_page(monkeypatch, go_on)
    fill(stores[0], series=1)
    with pytest.raises(MigrationError, match="has gone on with"):
        migrate(*stores)
    assert clients[0].hget("redmeter:moving:", "complete") == b"0"
    assert clients[0].ttl("redmeter:moving:") == -1
    assert clients[0].get(LOCK) == (b"another" if at_work else None)


def test_a_lost_reply_at_the_end_does_no_harm(
    stores: Stores, clients: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock was given back and all is written down: a second try finds both."""
    end = journal.Journal.end

    def twice(self: Any, *args: Any, **options: Any) -> None:
        end(self, *args, **options)
        end(self, *args, **options)

    monkeypatch.setattr(journal.Journal, "end", twice)
    fill(stores[0], series=1)
    assert migrate(*stores).complete
    assert clients[0].hget("redmeter:moving:", "complete") == b"1"
    assert not clients[0].exists(LOCK)


# --- What is left --------------------------------------------------------------------------


def test_what_is_left_is_asked_for_and_written_down_once(
    stores: Stores, clients: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many series TO refuses: not all of them again with each that follows."""
    now = int(time.time())
    for number in range(250):
        count(stores[0], f"hits{number}", now)
        clients[1].set(f"redmeter:count:60:hits{number}", "theirs")
    exchange, asked = Link.exchange, list[str]()

    def counted(self: Link, commands: Any, *args: Any, **options: Any) -> Any:
        asked.extend(command[1] for command in commands if command[0] == "EXISTS")
        return exchange(self, commands, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Link, "exchange", counted)
        report = migrate(*stores)
    assert len(report.left) == 250
    assert sorted(asked) == sorted(report.left)
    written = clients[0].hgetall("redmeter:moving:")
    text = b"\n".join(value for name, value in written.items() if name != b"target")
    for key in report.left:
        assert text.count(f'"{key}"'.encode()) == 1
    assert migrate(*stores).left == report.left


def test_what_an_earlier_round_of_a_group_has_left_is_known_after_a_kill(
    stores: Stores, clients: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written down with each round."""
    hour = int(time.time()) // 3600 * 3600
    clients[0].zadd("redmeter:common:app:info", {f"p{n:04}": 1 for n in range(700)})
    clients[0].set("redmeter:common:app:info:start", hour)
    clients[1].set("redmeter:common:app:info", "theirs")
    progress = journal.Journal.progress

    def kill(self: Any, *args: Any) -> None:
        progress(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(journal.Journal, "progress", kill)
        with pytest.raises(KeyboardInterrupt):
            migrate(*stores)
    clients[1].delete("redmeter:common:app:info")
    report = migrate(*stores)
    told = report.sums["patterns"][3600]
    assert (told.refused, told.stored) == (300, 400)
    assert set(report.left.values()) == {"patterns app:info"}
    assert all(clients[0].ttl(key) == -1 for key in report.left)


# --- Late messages -------------------------------------------------------------------------


def test_late_messages_are_never_without_their_logger(
    stores: Stores, clients: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever they come: the logger leaves the index only in the moment that it has nothing."""
    exchange = Link.exchange
    texts = [(time.time() - n, f"job {n} failed") for n in range(3)]
    for at in itertools.count(1):
        for client in clients:
            client.flushdb()
        write_log(stores[0], "app", "info", texts)
        left = [at]

        def late(self: Link, *args: Any, left: list[int] = left, **options: Any) -> Any:
            replies = exchange(self, *args, **options)
            left[0] -= 1
            if left[0] == 0:
                with monkeypatch.context() as patch:
                    patch.setattr(Link, "exchange", exchange)
                    write_log(stores[0], "app", "info", texts)
            return replies

        with monkeypatch.context() as patch:
            patch.setattr(Link, "exchange", late)
            migrate(*stores)
        if clients[0].exists("redmeter:recent:app:info"):
            assert clients[0].zrange("redmeter:messages:", 0, -1) == [b"app:info"], at
        assert migrate(*stores).complete
        common = held(clients[1])["common:app:info"]
        if left[0] > 0:
            assert common == {b"job <n> failed": 3.0}
            break  # it had fewer steps than that
        assert common == {b"job <n> failed": 6.0}, at
    assert at > 20
