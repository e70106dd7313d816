"""Messages behind a bad network and on a server that refuses: each is stored once, or told."""

import threading
import time
from typing import Any

import pytest

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.results import Loss, RecorderHealth
from redmeter.stored.keys import HOUR
from support.proxy import Proxy
from support.recorders import INTERVAL, OpenBuffered, check_sums, fail_again
from support.servers import Server
from support.stores import server_time
from support.waiting import eventually

KEY = "redmeter:common:app:info"
RECENT = "redmeter:recent:app:info"


def counted(client: Any, key: str = KEY) -> dict[str, int]:
    """A sorted set of frequencies."""
    return {m.decode(): int(score) for m, score in client.zrange(key, 0, -1, withscores=True)}


def texts(client: Any) -> list[str]:
    """What the list holds, the newest first."""
    return [entry.decode().partition("Z ")[2] for entry in client.lrange(RECENT, 0, -1)]


def lost(health: RecorderHealth) -> set[Loss]:
    """What is written down as lost, where the books balance."""
    check_sums(health)
    return set(health.losses)


@pytest.mark.parametrize("times", [1, 3])
def test_a_batch_of_messages_whose_reply_is_lost_is_stored_once(
    proxy: Proxy, conn: Any, times: int
) -> None:
    """Lists, counts, patterns, and groups of exceptions."""
    with Meter(proxy.url, flush_interval=INTERVAL) as meter:
        meter.log("app", "first")
        assert meter.flush(5.0)
        proxy.drop_replies(times)
        for n in range(10):
            meter.log("app", "message %d", n)
            meter.record_exception(KeyError(n), route="/buy")
        assert meter.flush(10.0)
        health = meter.recorder_health()
        assert proxy.dropped == health.retried == times
        assert (health.recorded, health.stored, lost(health)) == (21, 21, set())
        (group,) = meter.exceptions().groups
        assert (group.count, group.total, group.routes[0].count) == (10, 10, 10)
    assert counted(conn) == {"first": 1, "message %d": 10}
    assert texts(conn) == [*(f"message {n}" for n in range(9, -1, -1)), "first"]


def test_at_once_it_is_the_same(proxy: Proxy, conn: Any) -> None:
    """A message whose call returned is stored once."""
    with Meter(proxy.url, sync=True) as meter:
        meter.log("app", "a")
        proxy.drop_replies(2)
        meter.log("app", "b")
    assert counted(conn) == {"a": 1, "b": 1}
    assert texts(conn) == ["b", "a"]


def test_an_outage_loses_no_message(
    proxy: Proxy, conn: Any, outage: Any, open_buffered: OpenBuffered
) -> None:
    """They are counted, and the newest hundred are there once it is over."""
    meter = open_buffered(proxy.url, timeout=0.2)
    meter.log("app", "before")
    assert meter.flush(5.0)
    outage(proxy)
    for n in range(500):
        meter.log("app", "message %d", n)
    fail_again(meter)
    for n in range(500, 1000):
        meter.log("app", "message %d", n)
    proxy.heal()
    assert meter.flush(20.0)
    assert counted(conn) == {"before": 1, "message %d": 1000}
    assert texts(conn) == [f"message {n}" for n in range(999, 899, -1)]
    assert lost(meter.recorder_health()) == set()


def test_where_memory_is_full_nothing_is_stored_and_nothing_lost(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """The server takes none of a batch; all of it comes once there is room."""
    meter = open_buffered(server.url)
    meter.log("app", "before")
    assert meter.flush(5.0)
    conn.config_set("maxmemory", "1")
    meter.log("app", "message %d", 1)
    fail_again(meter, 2)
    assert meter.recorder_health().troubles["OOM"]
    conn.config_set("maxmemory", "0")
    assert meter.flush(20.0)
    assert counted(conn) == {"before": 1, "message %d": 1}
    assert texts(conn) == ["message 1", "before"]


def test_what_a_key_does_not_take_is_counted_and_all_else_is_stored(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Precision 3600 lacks what was not counted, 0 what is not among the newest."""
    clock = ManualClock(server_time(conn))
    meter = open_buffered(server.url, clock=clock, flush_interval=3600)
    conn.set(KEY, "theirs")
    conn.set("redmeter:recent:list:info", "theirs")
    conn.set("redmeter:patterns:third:info", "theirs")
    for name in ("app", "list", "third"):
        meter.log(name, "a")
        meter.log(name, "b")
    assert meter.flush(5.0)
    health = meter.recorder_health()
    assert lost(health) == {
        Loss("WRONGTYPE", "app:info", HOUR, 2),
        Loss("WRONGTYPE", "list:info", 0, 2),
    }
    assert health.troubles == {"unkept": 1}
    assert health.stored == 6
    assert texts(conn) == ["b", "a"]
    assert counted(conn, "redmeter:common:list:info") == {"a": 1, "b": 1}
    assert counted(conn, "redmeter:common:third:info") == {"a": 1, "b": 1}


def test_messages_that_wait_for_hours_are_only_among_the_newest(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """An hour that is gone is counted no more, which is reported; and nothing new is pushed out."""
    now = server_time(conn)
    clock = ManualClock(now - 5 * HOUR)
    meter = open_buffered(
        server.url, clock=clock, flush_interval=3600, recent_messages=3, timeout=0.2
    )
    for n in range(5):
        meter.log("app", "old %d", n)
    clock.advance(5 * HOUR)
    meter.log("app", "new")
    assert meter.flush(5.0)
    assert counted(conn) == {"new": 1}
    assert texts(conn) == ["new", "old 4", "old 3"]
    assert lost(meter.recorder_health()) == {Loss("aged", "app:info", HOUR, 5)}


def test_a_masking_function_that_breaks_leaks_nothing_and_costs_no_message(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """It is counted as trouble, and everything else is stored."""

    def mask(text: str) -> str:
        if "secret" in text:
            raise ValueError(text)
        return text

    meter = open_buffered(server.url, mask=mask)
    meter.log("app", "the secret of %s", "ada")
    meter.log("app", "fine")
    assert meter.flush(5.0)
    health = meter.recorder_health()
    assert counted(conn) == {"(masking failed)": 1, "fine": 1}
    assert texts(conn) == ["fine", "(masking failed)"]
    assert health.troubles["mask"] == 2  # the format, and the text
    assert health.stored == 2
    for key in conn.keys("*"):
        assert b"secret" not in conn.dump(key)


def test_a_masking_function_is_not_waited_for(server: Server, open_buffered: OpenBuffered) -> None:
    """Whoever logs goes on while the background is at it."""
    entered, leave = threading.Event(), threading.Event()

    def mask(text: str) -> str:
        entered.set()
        assert leave.wait(20)
        return text

    meter = open_buffered(server.url, mask=mask)
    meter.log("app", "message %d", 0)
    assert entered.wait(10)
    began = time.monotonic()
    for n in range(3000):
        meter.log("app", "message %d", n)
    meter.recorder_health()
    assert time.monotonic() - began < 5
    leave.set()
    assert meter.flush(10.0)
    assert meter.recorder_health().stored == 3001


def test_many_threads_log_while_it_is_stored(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Texts with and without formats; each is counted once."""
    meter = open_buffered(server.url)

    def run(number: int) -> None:
        for n in range(2000):
            if n % 2:
                meter.log("app", "format %d", n)
            else:
                meter.log("app", f"text {n % 50} of {number}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.flush(20.0)
    assert counted(conn) == {"format %d": 6000, "text <n> of <n>": 6000}
    health = meter.recorder_health()
    assert (health.recorded, health.stored, lost(health)) == (12_000, 12_000, set())


@pytest.mark.parametrize(
    "text",
    ["", "x" * 2**20, "\x1b]0;title\x07\x1b[2Jgone", "half \ud83d", "a\x00b", "\u202eexe.gnp"],
    ids=["empty", "a megabyte", "terminal", "surrogate", "zero", "direction"],
)
def test_whatever_is_logged_is_stored_as_what_can_be_seen(
    server: Server, conn: Any, open_buffered: OpenBuffered, text: str
) -> None:
    """As a text, as a format, as what an exception says; and all next to it is stored."""
    meter = open_buffered(server.url)
    meter.count("beside")
    meter.log("app", text)
    meter.log("app", text + " %s", text)
    meter.log("app", "failed", exception=ValueError(text))
    assert meter.flush(5.0)
    assert (meter.recorder_health().stored, lost(meter.recorder_health())) == (4, set())
    assert sum(counted(conn).values()) == 3
    assert len(texts(conn)) == 3
    for shown in [*counted(conn), *texts(conn)]:
        assert len(shown) <= 2000
        assert not set(shown) & set("\x00\x07\x1b\u202e")
    assert conn.hget("redmeter:total:", "beside") == b"1"


def test_an_application_that_logs_while_it_masks_goes_on(
    server: Server, open_buffered: OpenBuffered
) -> None:
    """Also by way of the very meter that masks."""
    opened: list[Meter] = []

    def mask(text: str) -> str:
        if opened and text == "outer":
            opened[0].log("app", "within")
        return text

    opened.append(open_buffered(server.url, mask=mask))
    opened[0].log("app", "outer")
    eventually(lambda: opened[0].recorder_health().stored >= 2, 10.0, "both are stored")


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, BaseException])
def test_a_masking_function_that_ends_everything_ends_nothing(
    server: Server, conn: Any, open_buffered: OpenBuffered, kind: type[BaseException]
) -> None:
    """In the background, where what it raises is its own; what else is recorded is stored."""

    def mask(text: str) -> str:
        if "hunter2" in text:
            raise kind(text)
        return text

    meter = open_buffered(server.url, mask=mask)
    meter.count("hits")
    meter.log("app", "a hunter2")
    meter.log("app", "fine")
    assert meter.flush(5.0)
    assert counted(conn) == {"(masking failed)": 1, "fine": 1}
    assert meter.recorder_health().troubles == {"mask": 1}
    assert meter.total("hits") == 1
    assert "hunter2" not in meter.recorder_health().last_trouble


def test_what_ends_an_application_passes_where_it_stores_at_once(server: Server) -> None:
    """A signal handler may raise it while the function is at it."""

    def mask(text: str) -> str:
        raise SystemExit

    with Meter(server.url, sync=True, mask=mask) as meter, pytest.raises(SystemExit):
        meter.log("app", "text")


def test_many_texts_are_collected_before_it_is_time_to_flush(
    server: Server, open_buffered: OpenBuffered
) -> None:
    """By the thread that stores, which masks them; and nothing is sent before its time."""
    threads: set[int] = set()
    seen: set[str] = set()

    def mask(text: str) -> str:
        threads.add(threading.get_ident())
        seen.add(text.split()[0])
        return text

    meter = open_buffered(server.url, mask=mask, flush_interval=3600)
    for turn in ("first", "second"):
        for n in range(3000):
            meter.log("app", f"{turn} order {n} is lost")
        eventually(lambda turn=turn: turn in seen, 10.0, "the texts are masked")  # type: ignore[misc]
    assert meter.recorder_health().batches == 0
    assert meter.flush(20.0)
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    assert meter.recorder_health().stored == 6000
