"""A network that loses, breaks and delays, a server that dies: what is acknowledged counts once."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redmeter import AccessDenied, Meter, StoreError, StoreRefused, StoreUnavailable, book
from redmeter import store as stores
from redmeter.book import stores as book_stores
from redmeter.store.servers import retry
from support.proxy import Proxy
from support.servers import Server
from support.stores import HastyClock, batch_keys, count, samples, server_time
from support.waiting import eventually

#: The time of all events: one field per precision.
EXAMPLE = 1336376410
DAY = 86400
CALLS = 60

SECRET = "s3cret-word"

Fault = Callable[[Proxy], None]


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a twentieth as long between two tries."""
    monkeypatch.setattr(retry, "BACKOFF_SECONDS", 0.001)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again for a minute, however busy the machine is."""
    monkeypatch.setattr(retry, "ATTEMPTS", 1000)
    monkeypatch.setattr(retry, "SHORT_SECONDS", 60.0)


@pytest.fixture(params=["the client's own retries", "no retries"])
def retries(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of the caller's client."""
    return {"retry": Retry(NoBackoff(), 0)} if request.param == "no retries" else {}


@pytest.fixture
def callers(proxy: Proxy, retries: dict[str, Any]) -> Iterator[redis.Redis]:
    """The caller's client through the proxy."""
    with redis.Redis("127.0.0.1", proxy.port, **retries) as client:
        yield client


#: The client's own retries add to ours, so they are the harder case.
RETRIES = ("the client's own retries", pytest.param("no retries", marks=pytest.mark.nightly))

LOSSES = {
    "one reply": lambda proxy: proxy.drop_replies(1, skip=10),
    "three replies in a row": lambda proxy: proxy.drop_replies(3, skip=10),
    "two in three": lambda proxy: proxy.drop_pattern("xx."),
    "every other": lambda proxy: proxy.drop_pattern(".x"),
    "requests cut in half": lambda proxy: proxy.reset_after(900, of="requests", times=12),
    "replies cut in half": lambda proxy: proxy.reset_after(3, of="replies", times=12),
}


@pytest.fixture(params=LOSSES)
def loss(request: pytest.FixtureRequest) -> Fault:
    """What the network does."""
    return LOSSES[request.param]


# --- Lost replies --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retries", "loss"),
    [
        *(("the client's own retries", loss) for loss in LOSSES),
        ("no retries", "two in three"),
        *(
            pytest.param("no retries", loss, marks=pytest.mark.nightly)
            for loss in LOSSES
            if loss != "two in three"
        ),
    ],
    indirect=True,
)
def test_sixty_updates_of_the_book_are_stored_sixty_times(
    proxy: Proxy, conn: Any, callers: redis.Redis, loss: Fault, brisk: None, patient: None
) -> None:
    """Whatever is lost on the way, and whatever the caller's client would do about it."""
    loss(proxy)
    for _ in range(CALLS):
        book.update_counter(callers, "hits", 1, EXAMPLE)
    proxy.heal()
    for precision in book.PRECISION:
        ((_, stored),) = book.get_counter(conn, "hits", precision)
        assert stored == CALLS
    assert len(batch_keys(conn)) == 1
    assert proxy.connections > 1


def test_the_fault_is_one_that_doubles_what_is_sent_without_numbers(
    proxy: Proxy, conn: Any
) -> None:
    """The same losses make the client's own retries store more: the test above can fail."""
    proxy.drop_pattern("xx.", commands=None)
    with redis.Redis("127.0.0.1", proxy.port) as client:
        for _ in range(10):
            client.hincrby("plain", "hits", 1)
    assert conn.hget("plain", "hits") == b"30"


def test_sixty_counts_of_a_meter_are_stored_sixty_times(
    proxy: Proxy, conn: Any, loss: Fault, brisk: None, patient: None
) -> None:
    """By a client of its own."""
    with Meter(proxy.url, sync=True) as meter:
        meter.count("x", 0)
        loss(proxy)
        for _ in range(CALLS):
            meter.count("x")
        proxy.heal()
        assert meter.total("x") == CALLS
        assert meter.series("x", precision=DAY).total == CALLS
    assert len(batch_keys(conn)) == 1
    assert proxy.connections > 1


@pytest.mark.parametrize("retries", RETRIES, indirect=True)
def test_sixty_counts_by_a_callers_client_are_stored_sixty_times(
    proxy: Proxy, conn: Any, callers: redis.Redis, brisk: None
) -> None:
    """From a store's very first word on."""
    proxy.drop_pattern("xx.")
    meter = Meter(client=callers, sync=True)
    for _ in range(CALLS):
        meter.count("x")
    proxy.heal()
    assert meter.total("x") == CALLS
    assert proxy.dropped >= 2 * CALLS


def test_threads_through_a_bad_network_count_exactly(
    proxy: Proxy, conn: Any, brisk: None, patient: None
) -> None:
    """Each with a connection to itself; no reply is taken for another's."""
    done: list[bool] = []
    with Meter(proxy.url, sync=True) as meter:
        meter.count("x", 0)
        proxy.drop_pattern("..x.x")

        def work() -> None:
            for _ in range(40):
                meter.count("x")
            done.append(True)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        proxy.heal()
        assert done == [True] * 6
        assert meter.total("x") == 240
    assert len(batch_keys(conn)) <= 8


def test_readings_survive_a_reply_that_is_lost(proxy: Proxy, conn: Any) -> None:
    """Asked once more, and never mixed up with another's answer."""
    with Meter(proxy.url, sync=True) as meter:
        meter.count("x", 7)
        asks: tuple[Callable[[], bool], ...] = (
            lambda: meter.total("x") == 7,
            lambda: meter.series("x", precision=DAY).total == 7,
            lambda: meter.names() == ["x"],
            lambda: meter.top(precision=DAY)[0].count == 7,
        )
        for ask in asks:
            proxy.drop_replies(1, commands=None)
            assert ask()
        assert proxy.dropped == 4


def test_a_write_that_never_hears_an_answer_says_that_it_was_sent(
    proxy: Proxy, conn: Any, brisk: None
) -> None:
    """The batch may have been applied: here it was, once."""
    with Meter(proxy.url, timeout=0.05, sync=True) as meter:
        meter.count("x", 0)
        proxy.drop_pattern("x")
        with pytest.raises(StoreUnavailable) as caught:
            meter.count("x", 5)
        assert caught.value.sent
        proxy.heal()
        assert meter.total("x") == 5
        meter.count("x", 1)
        assert meter.total("x") == 6


def test_an_event_of_which_nobody_can_know_is_an_error(
    proxy: Proxy, conn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reply was lost and its watermark is gone: it says that it was sent; counted once."""

    def evict() -> None:
        if keys := batch_keys(conn):
            conn.delete(*keys)

    with (
        Meter(proxy.url, clock=HastyClock(evict), sync=True) as meter,
        redis.Redis("127.0.0.1", proxy.port) as callers,
    ):
        book.update_counter(callers, "x", 1, EXAMPLE)
        monkeypatch.setattr(book_stores.store_of(callers).shard(""), "clock", HastyClock(evict))
        meter.count("x")
        calls: tuple[Callable[[], None], ...] = (
            lambda: meter.count("x"),
            lambda: book.update_counter(callers, "x", 1, EXAMPLE),
        )
        for call in calls:
            proxy.drop_replies(1)
            with pytest.raises(StoreUnavailable) as caught:
                call()
            assert caught.value.sent
        meter.count("x")
        assert meter.total("x") == 3
        # The reply that was lost may have been that of the gap.
        assert book.get_counter(callers, "x", 60) in ([(1336376400, 1)], [(1336376400, 2)])


# --- No connection -------------------------------------------------------------------------


BREAKS: dict[str, tuple[Fault, bool]] = {
    "refused": (Proxy.refuse, False),
    "reset": (lambda proxy: proxy.reset_after(0, of="requests", times=10**6), True),
    "black hole": (Proxy.black_hole, True),
}


@pytest.mark.parametrize("way", BREAKS)
def test_a_server_out_of_reach_is_an_error_within_about_the_timeout(
    proxy: Proxy, conn: Any, way: str, brisk: None
) -> None:
    """It says whether anything was sent; once the network heals, everything works again."""
    break_it, sent = BREAKS[way]
    with Meter(proxy.url, timeout=0.2, sync=True) as meter:
        meter.count("x")
        break_it(proxy)
        began = time.monotonic()
        with pytest.raises(StoreUnavailable) as caught:
            meter.count("x", 10)
        # A batch in doubt is tried so often at least.
        assert time.monotonic() - began < 0.2 * retry.ATTEMPTS + 2.0
        assert caught.value.sent == sent
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            meter.total("x")
        assert time.monotonic() - began < 0.2 * 2 + 2.0
        proxy.heal()
        meter.count("x", 100)
        assert meter.total("x") == 101


@pytest.mark.parametrize("retries", RETRIES, indirect=True)
def test_a_callers_client_out_of_reach_is_an_error_too(
    proxy: Proxy, conn: Any, callers: redis.Redis, brisk: None
) -> None:
    """Its own retries add what they take on connecting, but not five times over."""
    book.update_counter(callers, "x", 1, EXAMPLE)
    proxy.refuse()
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as caught:
        book.update_counter(callers, "x", 1, EXAMPLE)
    assert time.monotonic() - began < 9
    assert not caught.value.sent
    proxy.heal()
    book.update_counter(callers, "x", 1, EXAMPLE)
    assert book.get_counter(conn, "x", 60) == [(1336376400, 2)]


def test_a_network_that_heals_between_two_tries_is_not_noticed(
    proxy: Proxy, conn: Any, patient: None
) -> None:
    """The call takes longer, that is all."""
    healed = []

    def heal() -> None:
        healed.append(True)
        if len(healed) == 3:
            proxy.heal()

    for break_it, _ in BREAKS.values():
        healed.clear()
        with Meter(proxy.url, timeout=0.5, clock=HastyClock(heal), sync=True) as meter:
            meter.count("x")
            break_it(proxy)
            meter.count("x")
            assert len(healed) >= 3
    assert conn.hget("redmeter:total:", "x") == b"6"


def test_a_server_that_hangs_is_given_up_after_the_second_try(proxy: Proxy, conn: Any) -> None:
    """Each was waited for in full, and the timeout has passed."""
    clock = HastyClock()
    with Meter(proxy.url, timeout=1.1, clock=clock, sync=True) as meter:
        meter.count("x")
        proxy.black_hole()
        with pytest.raises(StoreUnavailable) as caught:
            meter.count("x", 10)
        assert (caught.value.sent, clock.waits) == (True, 1)
        proxy.heal()


def test_a_slow_network_is_waited_for(proxy: Proxy, conn: Any) -> None:
    """As long as the timeout allows; longer is no answer, and still counts once."""
    with Meter(proxy.url, timeout=0.6, sync=True) as meter:
        meter.count("x")
        proxy.delay(0.1)
        meter.count("x")
        assert meter.total("x") == 2
        proxy.delay(3.0)
        with pytest.raises(StoreUnavailable) as caught:
            meter.count("x")
        assert caught.value.sent
        proxy.heal()
        meter.count("x")
        assert meter.total("x") == 4


@pytest.mark.servers
@pytest.mark.slow
def test_a_server_slower_than_the_timeout_counts_once(
    server: Server, conn: Any, retries: dict[str, Any]
) -> None:
    """CLIENT PAUSE: requests pile up and are all carried out when it ends."""
    with (
        Meter(server.url, timeout=0.2, sync=True) as meter,
        server.client(socket_timeout=0.2, **retries) as callers,
    ):
        for amount in (1, 10):
            meter.count("x", amount)
            book.update_counter(callers, "x", amount, EXAMPLE)
            if amount == 1:
                conn.execute_command("CLIENT", "PAUSE", "500")
        assert meter.total("x") == 11
        assert book.get_counter(callers, "x", 60) == [(1336376400, 11)]


# --- The server dies -----------------------------------------------------------------------


@pytest.mark.servers
def test_a_server_killed_and_started_again_goes_on_counting(
    server_name: str, tmp_path: Any
) -> None:
    """With all that it had on disk; a connection that died meanwhile is found out unsent."""
    config = {"appendonly": "yes", "appendfsync": "always"}
    with (
        Server(server_name, config=config, dir=tmp_path / "data") as server,
        Meter(server.url, sync=True) as meter,
    ):
        for _ in range(3):
            for _ in range(20):
                meter.count("x")
            server.kill()
            server.start()
        meter.count("x")
        assert meter.total("x") == 61
        assert meter.series("x", precision=DAY).total == 61


@pytest.mark.servers
def test_a_restart_without_persistence_begins_anew(server_name: str) -> None:
    """A new store, made by the next write; nothing negative, nothing twice."""
    with (
        Server(server_name) as server,
        Meter(server.url, retention={60: 5, DAY: 5}, sync=True) as meter,
    ):
        meter.count("x", 5)
        server.kill()
        server.start()
        assert meter.total("x") == 0
        assert meter.series("x", precision=DAY).values == ()
        meter.count("x", 2)
        assert meter.total("x") == 2
        with server.client() as client:
            assert client.hget("redmeter:meta:", "retention") == b"60=5 86400=5"


def test_a_server_that_comes_back_between_two_tries_is_not_noticed(
    server_name: str, tmp_path: Any
) -> None:
    """Killed before the write, started while it waits."""
    config = {"appendonly": "yes", "appendfsync": "always"}
    with Server(server_name, config=config, dir=tmp_path / "data") as server:
        clock = HastyClock(lambda: server.start())
        with Meter(server.url, clock=clock, sync=True) as meter:
            meter.count("x", 3)
            server.kill()
            meter.count("x", 4)
            assert clock.waits >= 1
            assert meter.total("x") == 7


@pytest.mark.servers
def test_a_frozen_server_is_no_answer_and_then_counts_once(server: Server, conn: Any) -> None:
    """SIGSTOP: the connection stands, nobody answers; on waking it does all it was sent."""
    now = int(server_time(conn))
    with closing(_open(server.url, timeout=0.1)) as store:
        count(store, "x", now)
        server.pause()
        with pytest.raises(StoreUnavailable) as caught:
            count(store, "x", now)
        assert caught.value.sent
        server.resume()
        # The batch that was given up is in the server's socket and is carried out, once.
        eventually(lambda: samples(conn, "redmeter:count:1:x") == {now: 2})
        count(store, "x", now)
        assert samples(conn, "redmeter:count:1:x") == {now: 3}


def test_a_batch_given_up_does_not_come_after_its_successor(proxy: Proxy, conn: Any) -> None:
    """It was delayed on the way; by then the producer has gone on, and it is refused as old."""
    now = int(server_time(conn))
    with closing(_open(proxy.url, timeout=0.3, clock=HastyClock())) as store:
        count(store, "x", now)
        proxy.delay(1.2, of="requests")
        with pytest.raises(StoreUnavailable):
            count(store, "x", now, 10)
        proxy.heal()
        count(store, "x", now, 100)
        settled = samples(conn, "redmeter:count:1:x")[now]
        assert settled in (101, 111)
        producer = batch_keys(conn)
        assert len(producer) == 1
        proxy.reset()
        eventually(lambda: proxy.open == 0, what="nothing is under way any more")
        assert samples(conn, "redmeter:count:1:x")[now] == settled


def _open(url: str, **options: Any) -> stores.Store:
    store = stores.open(url, **options)
    assert store is not None
    return store


# --- Locked out ----------------------------------------------------------------------------


@pytest.fixture
def locked(server: Server, conn: Any) -> None:
    """A server that wants a password."""
    conn.execute_command("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*", "+@all")
    conn.execute_command("ACL", "SETUSER", "default", "resetpass", ">" + "other-" + SECRET)


@pytest.mark.servers
@pytest.mark.parametrize("user", ["app:wrong-" + SECRET + "@", ":wrong-" + SECRET + "@", ""])
def test_a_wrong_password_is_access_denied_at_once(
    server: Server,
    proxy: Proxy,
    locked: None,
    user: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One try a call, no hammering; nothing that is shown or logged holds the password."""
    clock = HastyClock()
    with (
        caplog.at_level(logging.DEBUG),
        Meter(f"redis://{user}127.0.0.1:{proxy.port}/0", clock=clock, sync=True) as meter,
    ):
        asks: tuple[Callable[[], object], ...] = (
            lambda: meter.count("x"),
            lambda: meter.total("x"),
        )
        for calls, call in enumerate(asks, 1):
            with pytest.raises(AccessDenied) as caught:
                call()
            assert caught.value.code in ("WRONGPASS", "NOAUTH")
            assert proxy.connections == calls
            _keeps_secret(caught.value)
        assert clock.waits == 0
        assert SECRET not in repr(meter)
    assert SECRET not in caplog.text


@pytest.mark.servers
def test_the_right_password_lets_in_and_is_not_shown(server: Server, locked: None) -> None:
    """Neither by the meter nor by the store nor by an error."""
    url = f"redis://app:{SECRET}@127.0.0.1:{server.port}/0"
    with Meter(url, sync=True) as meter:
        meter.count("x", 3)
        assert meter.total("x") == 3
        assert SECRET not in repr(meter)
    with closing(_open(url)) as store:
        assert SECRET not in repr(store) + store.location
    with server.client(username="app", password=SECRET) as client:
        store = book_stores.store_of(client)
        assert SECRET not in repr(store) + store.location
        client.rpush("count:60:x", "theirs")
        with pytest.raises(StoreRefused) as caught:
            book.update_counter(client, "x", 1, EXAMPLE)
        _keeps_secret(caught.value)


@pytest.mark.servers
def test_a_callers_client_with_a_wrong_password_is_access_denied(
    server: Server, proxy: Proxy, locked: None
) -> None:
    """By the functions of the book."""
    options: dict[str, Any] = {"username": "app", "password": "wrong-" + SECRET}
    options["retry"] = Retry(NoBackoff(), 0)  # its own would try to connect ten times more
    with redis.Redis("127.0.0.1", proxy.port, **options) as client:
        for call in (
            lambda: book.update_counter(client, "x"),
            lambda: book.get_counter(client, "x", 60),
        ):
            with pytest.raises(AccessDenied) as caught:
                call()
            _keeps_secret(caught.value)
    assert proxy.connections <= 2


@pytest.mark.servers
def test_a_password_that_changes_while_one_is_connected_is_access_denied(
    server: Server, conn: Any
) -> None:
    """The user is deleted: his connections end, and new ones are not let in."""
    conn.execute_command("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*", "+@all")
    with Meter(f"redis://app:{SECRET}@127.0.0.1:{server.port}/0", sync=True) as meter:
        meter.count("x")
        conn.execute_command("ACL", "DELUSER", "app")
        with pytest.raises(AccessDenied) as caught:
            meter.count("x")
        _keeps_secret(caught.value)
    assert conn.hget("redmeter:total:", "x") == b"1"


@pytest.mark.servers
def test_a_command_that_is_forbidden_ends_the_call_at_once(server: Server, conn: Any) -> None:
    """No second try, no wait; nothing was written."""
    conn.execute_command(
        *("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*", "+@all", "-evalsha", "-eval")
    )
    clock = HastyClock()
    with Meter(f"redis://app:{SECRET}@127.0.0.1:{server.port}/0", clock=clock, sync=True) as meter:
        with pytest.raises(AccessDenied) as caught:
            meter.count("x")
        assert caught.value.code == "NOPERM"
        _keeps_secret(caught.value)
    assert clock.waits == 0
    assert conn.dbsize() == 0


def test_no_error_on_the_way_shows_the_password(proxy: Proxy, conn: Any, brisk: None) -> None:
    """Refused, reset, unanswered: the place is named without it."""
    url = f"redis://default:{SECRET}@127.0.0.1:{proxy.port}/0"
    for break_it, _ in BREAKS.values():
        break_it(proxy)
        with Meter(url, timeout=0.05, clock=HastyClock(), sync=True) as meter:
            with pytest.raises(StoreError) as caught:
                meter.names()
            _keeps_secret(caught.value)
            with pytest.raises(StoreError) as caught:
                meter.count("x")
            _keeps_secret(caught.value)
        proxy.heal()


def _keeps_secret(error: BaseException) -> None:
    """Look for the password in an error and all that caused it."""
    found: BaseException | None = error
    while found is not None:
        for text in (str(found), repr(found), repr(found.args), repr(vars(found))):
            assert SECRET not in text
        found = found.__cause__ or found.__context__
