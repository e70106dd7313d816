"""Meter on real servers: recording, asking, threads, forks."""

import os
import pickle
import subprocess
import sys
import threading
from datetime import datetime
from typing import Any

import pytest
import redis.asyncio
import valkey.asyncio

from redmeter import (
    InvalidName,
    InvalidSetting,
    InvalidValue,
    Meter,
    StoreRefused,
    StoreUnavailable,
)
from redmeter.clock import ManualClock
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from redmeter.testing import MemoryMeter
from support.servers import Server
from support.stores import OpenMeter, batch_keys, server_time
from support.waiting import eventually

DAY = 86400


# --- Recording -----------------------------------------------------------------------------


def test_a_count_is_there_when_the_call_returns(client: Any, open_meter: OpenMeter) -> None:
    """At every precision, in the index and in the total."""
    meter = open_meter()
    now = server_time(client)
    meter.count("点击量", at=now)
    meter.count("点击量", 4, at=now)
    for precision in DEFAULT_RETENTION:
        series = meter.series("点击量", precision=precision, until=now)
        assert list(series) == [(slice_start(now, precision), 5)]
    assert meter.names() == ["点击量"]
    assert meter.total("点击量") == 5


def test_two_spellings_of_a_label_set_are_one_series(client: Any, open_meter: OpenMeter) -> None:
    """Labels beside the name, within it, in any order."""
    meter = open_meter()
    meter.count("x", labels={"plan": "pro", "area": "eu"})
    meter.count("x", labels={"area": "eu", "plan": "pro"})
    meter.count('x{plan="pro"}', labels={"area": "eu"})
    meter.count('x{ plan = "pro", area="eu", }')
    assert meter.names() == ['x{area="eu",plan="pro"}']
    assert meter.total("x", labels={"plan": "pro", "area": "eu"}) == 4
    assert meter.series("x", labels={"plan": "pro", "area": "eu"}, precision=DAY).total == 4
    assert meter.total("x", exact=True) == 0


def test_an_event_is_counted_at_its_own_time(client: Any, open_meter: OpenMeter) -> None:
    """`at` if given, else the injected clock; what left the retention is in the total alone."""
    now = server_time(client)
    clock = ManualClock(now - 200)
    meter = open_meter(clock=clock)
    meter.count("x")
    meter.count("x", 2, at=now - 4000)
    assert {int(k) for k in client.hgetall("redmeter:count:60:x")} == {
        slice_start(now - 200, 60),
        slice_start(now - 4000, 60),
    }
    assert {int(k) for k in client.hgetall("redmeter:count:1:x")} == {int(now - 200)}
    assert meter.total("x") == 3


def test_counting_nothing_makes_a_series_of_zeros(client: Any, open_meter: OpenMeter) -> None:
    """Known, and not happened yet."""
    meter = open_meter()
    meter.count("x", 0)
    assert meter.names() == ["x"]
    assert meter.series("x", precision=DAY).values == (0,)


def test_wrong_calls_raise_and_write_nothing(client: Any, open_meter: OpenMeter) -> None:
    """What only a programming error can be; also where everything is switched off."""
    for meter in (open_meter(), Meter("off")):
        count: Any = meter.count
        for arguments, options, error in (
            (("x", 1.5), {}, TypeError),
            (("x", "1"), {}, TypeError),
            (("x", True), {}, TypeError),
            (("x", None), {}, TypeError),
            (("x", -1), {}, InvalidValue),
            (("x", 2**63), {}, InvalidValue),
            (("x",), {"at": float("nan")}, InvalidValue),
            (("x",), {"at": float("inf")}, InvalidValue),
            (("x",), {"at": 1.7e12}, InvalidValue),
            (("x",), {"at": "now"}, InvalidValue),
            (("x",), {"at": datetime.now().astimezone()}, InvalidValue),
            (("",), {}, InvalidName),
            ((b"x",), {}, InvalidName),
            ((["x"],), {}, InvalidName),
            (("x" * 10**6,), {}, InvalidName),
            (("x",), {"labels": {7: "plan"}}, InvalidName),
            (("x",), {"labels": "plan"}, InvalidName),
            (("x",), {"labels": {"a-b": "c"}}, InvalidName),
            (('x{a="1"}',), {"labels": {"a": "2"}}, InvalidName),
        ):
            with pytest.raises(error):
                count(*arguments, **options)
    assert client.dbsize() == 0


def test_a_part_of_an_event_that_the_server_refuses_is_an_error(
    client: Any, open_meter: OpenMeter
) -> None:
    """The other parts are stored."""
    client.rpush("redmeter:count:60:x", "theirs")
    meter = open_meter()
    with pytest.raises(StoreRefused) as caught:
        meter.count("x", 3)
    assert caught.value.code == "WRONGTYPE"
    assert "redmeter:count:60:x" in str(caught.value)
    assert meter.total("x") == 3
    assert meter.series("x", precision=DAY).total == 3


def test_times_that_are_not_stored_are_no_errors(client: Any, open_meter: OpenMeter) -> None:
    """Being late or early is nobody's mistake."""
    meter = open_meter(retention={60: 5})
    meter.count("x", at=0)
    meter.count("x", at=server_time(client) + 10**6)
    assert meter.series("x", precision=60).values == ()
    assert meter.names() == []


# --- Life ----------------------------------------------------------------------------------


def test_nothing_happens_before_the_first_use(any_server: Server, client: Any) -> None:
    """No connection, no thread, no key."""
    threads = threading.active_count()
    connections = client.info("stats")["total_connections_received"]
    meter = Meter(any_server.url, sync=True)
    assert repr(meter)
    assert threading.active_count() == threads
    assert client.info("stats")["total_connections_received"] == connections
    assert client.dbsize() == 0
    meter.close()


def test_off_does_nothing_and_answers_nothing() -> None:
    """No server, no thread; readings are empty."""
    with Meter("off") as meter:
        meter.count("x", 3, labels={"a": "b"}, at=5)
        assert meter.total("x", exact=True) == 0
        assert meter.names() == []
        assert list(meter.top(precision=60)) == []
        assert meter.series("x", precision=60).values == ()
        assert meter.series_many(["x", "y"], precision=60).keys() == {"x", "y"}
        assert repr(meter) == "<Meter off>"


def test_the_environment_chooses_where_nothing_is_given(
    any_server: Server, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Address, prefix and retention; what is given in code wins."""
    monkeypatch.setenv("REDMETER_URL", any_server.url)
    monkeypatch.setenv("REDMETER_PREFIX", "env:")
    monkeypatch.setenv("REDMETER_RETENTION", "60=5")
    with Meter(sync=True) as meter:
        meter.count("x")
    with Meter(prefix="code:", sync=True) as meter:
        meter.count("x")
    with Meter("off") as meter:
        meter.count("y")
    assert set(client.scan_iter("*:count:*")) == {b"env:count:60:x", b"code:count:60:x"}


def test_closing_ends_the_connections_and_a_later_call_opens_another(
    any_server: Server, client: Any
) -> None:
    """Also as a context manager, twice, and without ever having been used."""

    def connected() -> int:
        return len(client.client_list())

    before = connected()
    with Meter(any_server.url, sync=True) as meter:
        meter.count("x")
        assert connected() == before + 1
    eventually(lambda: connected() == before, what="the server sees the end")
    meter.close()
    meter.count("x")
    assert meter.total("x") == 2
    meter.close()
    eventually(lambda: connected() == before, what="the server sees the end")
    Meter(any_server.url, sync=True).close()


#: A client of the caller's: decoding or not, by protocol 2 or 3, or by its own defaults.
CLIENTS: list[dict[str, Any]] = [
    {},
    *({"decode_responses": decode, "protocol": n} for decode in (False, True) for n in (2, 3)),
]


@pytest.mark.parametrize("options", CLIENTS, ids=str)
def test_a_callers_client_is_used_and_never_closed(
    any_server: Server, options: dict[str, Any]
) -> None:
    """Whatever its settings: all is recorded, every reading answers the same, and it stays open."""
    with any_server.client(**options) as own:
        with Meter(client=own, sync=True) as meter:
            _fill(meter)
            _check(meter)
        assert own.ping()
        meter.count("x", labels={"a": "1"})
    with pytest.raises(InvalidSetting):
        Meter("redis://", client=own)


def test_a_client_in_place_of_the_url_is_told_where_it_goes(server: Server) -> None:
    """By the name of the argument; what else is no text is not called a client."""
    with server.client() as own, pytest.raises(InvalidSetting) as caught:
        Meter(own)
    assert str(caught.value) == "url: text, not Redis: a client goes in as Meter(client=…)"
    with pytest.raises(InvalidSetting, match=r"url: text, not int$"):
        Meter(6379)  # type: ignore[arg-type]


def test_a_client_that_is_none_is_told_with_its_module() -> None:
    """A cluster's of asyncio is called as one that may be given."""
    told = "redis.Redis or redis.RedisCluster.*, not redis.client.Pipeline"
    with pytest.raises(InvalidSetting, match=told):
        Meter(client=redis.Redis().pipeline())
    for client, named in (
        (redis.asyncio.Redis(), "redis.asyncio.client.Redis"),
        (redis.asyncio.RedisCluster("127.0.0.1", 1), "redis.asyncio.cluster.RedisCluster"),
        (valkey.asyncio.Valkey(), "valkey.asyncio.client.Valkey"),
    ):
        with pytest.raises(InvalidSetting, match=rf"of asyncio \({named}\): .*the URL instead"):
            Meter(client=client)
    for other in (7, object(), valkey.Valkey().pubsub(), valkey.Valkey().pipeline()):  # type: ignore[no-untyped-call]
        with pytest.raises(InvalidSetting, match="a redis-py client"):
            Meter(client=other)


def _fill(meter: Meter) -> None:
    """Record something of each kind."""
    meter.count("x", 2, labels={"a": "1"})
    meter.count("x", labels={"a": "2"})
    meter.gauge("depth").set(1.5)
    for value in (1.0, 3.0):
        meter.observe("spent", value, labels={"a": "1"})
    meter.observe("spent", 8.0, labels={"a": "2"})
    meter.log("app", "retrying %s", "a")
    meter.log("app", "retrying %s", "b")
    meter.log("app", "gone", severity="error")
    meter.mark("v1")


def _check(meter: Meter) -> None:
    """Ask everything that a meter answers."""
    assert meter.total("x", labels={"a": "1"}) == 2
    assert meter.series("x", labels={"a": "1"}, precision=DAY).values == (2,)
    assert meter.gauge_series("depth", precision=DAY).values == (1.5,)
    assert meter.names() == ['x{a="1"}', 'x{a="2"}']
    assert meter.names(kind="gauge") == ["depth"]
    assert meter.names(kind="histogram") == ['spent{a="1"}', 'spent{a="2"}']

    merged = meter.summary("spent", precision=3600)
    assert (merged.count, merged.low, merged.high) == (3, 1.0, 8.0)
    assert meter.summary("spent", precision=60, labels={"a": "1"}).total == 4.0
    summaries = meter.summary_many(meter.names(kind="histogram"), precision=3600)
    assert [found.count for found in summaries.values()] == [2, 1]
    hour = meter.statistics("spent", labels={"a": "1"}).this
    assert hour is not None
    assert (hour.count, hour.low, hour.high, hour.mean) == (2, 1.0, 3.0, 2.0)

    assert [row.count for row in meter.top(precision=DAY)] == [2, 1]
    ranking = meter.top("x", by="a", precision=DAY, order="failing", failing={"a": "2"})
    assert [(row.key, row.value) for row in ranking] == [("2", 1)]
    for order in ("count", "total", "mean", "p95"):
        ranked = meter.top("spent", by="a", precision=3600, order=order)
        assert [row.key for row in ranked] == (["1", "2"] if order == "count" else ["2", "1"])

    assert [m.text for m in meter.log_messages("app")] == ["gone", "retrying b", "retrying a"]
    found = [(f.pattern, f.count, f.sample) for f in meter.log_frequencies("app")]
    assert found == [("retrying %s", 2, "retrying b"), ("gone", 1, "gone")]
    assert {(s.logger, s.severity) for s in meter.loggers()} == {("app", "info"), ("app", "error")}
    assert meter.log_changes().compared == 2
    assert len(meter.log_changes("app")) == len(meter.log_changes())
    assert [mark.label for mark in meter.marks()] == ["v1"]


def test_over_a_unix_socket_it_is_the_same(any_server: Server, open_meter: OpenMeter) -> None:
    """By URL."""
    meter = open_meter(any_server.unix_url)
    meter.count("x", 7)
    assert meter.total("x") == 7


def test_a_store_without_prefix_and_one_with_it_share_nothing(
    client: Any, open_meter: OpenMeter
) -> None:
    """Neither counters nor totals nor retention."""
    bare, usual = open_meter(prefix="", retention={7: 5}), open_meter(retention={60: 5})
    bare.count("x", 2)
    usual.count("x", 3)
    assert (bare.total("x"), usual.total("x")) == (2, 3)
    assert client.keys("*count:*") in (
        [b"count:7:x", b"redmeter:count:60:x"],
        [b"redmeter:count:60:x", b"count:7:x"],
    )


def test_an_event_that_is_stored_in_part_is_said_to_have_been_sent(
    client: Any, open_meter: OpenMeter
) -> None:
    """So that nobody tries again; what is stored and in no index is no loss."""
    client.set("redmeter:known:", "theirs")
    meter = open_meter(retention={60: 5})
    with pytest.raises(StoreRefused, match="redmeter:known:") as caught:
        meter.count("x")
    assert (caught.value.code, caught.value.sent, meter.total("x")) == ("unkept", True, 1)
    health = meter.recorder_health()
    assert (health.stored, health.losses, health.troubles) == (1, (), {"unkept": 1})
    client.set("redmeter:count:60:y", "theirs")
    with pytest.raises(StoreRefused) as caught:
        meter.count("y")
    assert (caught.value.code, caught.value.sent, meter.total("y")) == ("WRONGTYPE", True, 1)
    assert meter.recorder_health().lost() == {"WRONGTYPE": {60: 1}}


def test_no_server_is_an_error_that_says_where_it_was_looked_for(any_server: Server) -> None:
    """Without credentials, and within about the timeout."""
    from support.servers import free_port

    meter = Meter(f"redis://me:s3cret-word@127.0.0.1:{free_port()}/2", timeout=0.1, sync=True)
    for call in (lambda: meter.count("x"), lambda: meter.total("x"), lambda: meter.names()):
        with pytest.raises(StoreUnavailable) as caught:
            call()
        assert not caught.value.sent
        assert "s3cret-word" not in str(caught.value) + repr(meter) + repr(caught.value.__dict__)
        assert "127.0.0.1" in str(caught.value)
    meter.close()


# --- Threads and forks ---------------------------------------------------------------------


def test_eight_threads_count_exactly_and_share_few_producers(
    client: Any, open_meter: OpenMeter
) -> None:
    """Three series by turns; at most eight watermarks for 1,600 calls."""
    meter = open_meter()

    def work(number: int) -> None:
        for i in range(200):
            meter.count(f"x{i % 3}", number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [meter.total(f"x{i}") for i in range(3)] == [67 * 36, 67 * 36, 66 * 36]
    assert [meter.series(f"x{i}", precision=DAY).total for i in range(3)] == [
        meter.total(f"x{i}") for i in range(3)
    ]
    assert len(batch_keys(client)) <= 8


def test_calls_one_after_another_need_one_producer(client: Any, open_meter: OpenMeter) -> None:
    """From however many threads that come and go."""
    meter = open_meter()
    for _ in range(30):
        thread = threading.Thread(target=meter.count, args=("x",))
        thread.start()
        thread.join()
    (found,) = batch_keys(client)
    assert client.get(found) == b"30"
    producer = found.removeprefix(b"redmeter:batch:").decode()
    assert len(bytes.fromhex(producer)) == 16
    assert str(os.getpid()) != producer


_FORKS = """
import os, sys, threading
from redmeter import Meter

meter = Meter(sys.argv[1], sync=True)
for _ in range(20):
    meter.count("x")
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for _ in range(50):
                meter.count("x")
            grandchild = os.fork()
            for _ in range(30):
                meter.count("x")
            if grandchild:
                assert os.waitpid(grandchild, 0)[1] == 0
            code = 0
        finally:
            os._exit(code)
    children.append(pid)
for _ in range(50):
    meter.count("x")
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
meter.count("x")
print(meter.total("x"))
"""

_FORKED_WHILE_BUSY = """
import os, sys, threading
from redmeter import Meter

meter = Meter(sys.argv[1], sync=True)
meter.count("x")
stop = threading.Event()
counted = [0] * 12

def work(i):
    while not stop.is_set():
        meter.count("x")
        counted[i] += 1

threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
for thread in threads:
    thread.start()
children = []
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            inner = [
                threading.Thread(target=lambda: [meter.count("y") for _ in range(20)])
                for _ in range(10)
            ]
            for thread in inner:
                thread.start()
            for thread in inner:
                thread.join()
            code = 0
        finally:
            os._exit(code)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
print(meter.total("x") == sum(counted) + 1, meter.total("y"))
"""


_APART = """
import os, sys
import redis
from redmeter import Meter

def connected():
    with redis.Redis.from_url(sys.argv[1]) as client:
        return len(client.client_list())

meter = Meter(sys.argv[1], sync=True)
meter.count("parent", 11)
meter.count("child", 7)
before = connected()
pid = os.fork()
if pid == 0:
    code = 1
    try:
        assert meter.total("child") == 7
        assert connected() == before + 1
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(pid, 0)[1] == 0
assert meter.total("parent") == 11
"""


def _script(text: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_parent_children_and_grandchildren_count_exactly(any_server: Server, client: Any) -> None:
    """Each process has a producer and a connection of its own."""
    assert _script(_FORKS, any_server.url) == str(20 + 3 * (50 + 30 + 30) + 50 + 1)
    assert len(batch_keys(client)) == 1 + 3 + 3


def test_a_child_opens_a_connection_of_its_own(any_server: Server, client: Any) -> None:
    """And leaves its parent's alone, or each would read the other's answers."""
    assert _script(_APART, any_server.url) == ""


def test_a_fork_beside_busy_threads_neither_hangs_nor_miscounts(
    any_server: Server, client: Any
) -> None:
    """The child has none of the threads that hold producers and places in the pool."""
    assert _script(_FORKED_WHILE_BUSY, any_server.url) == "True 1000"


@pytest.fixture
def spoiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to look a name up or to connect fail."""
    import socket

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be connected to")

    monkeypatch.setattr(socket, "create_connection", fail)
    monkeypatch.setattr(socket.socket, "connect", fail)


def test_a_meter_that_is_off_never_touches_the_network(spoiled: None) -> None:
    """Nor does making any other."""
    with Meter("off") as meter:
        meter.count("x")
    Meter("redis://example.invalid").close()


_HANDLER = """
import signal, sys
from redmeter import Meter
meter = Meter(sys.argv[1], sync=True)
meter.count("x")
handled = 0
def handler(*_):
    global handled
    handled += 1
    meter.count("x")
signal.signal(signal.SIGALRM, handler)
for turn in range(500):
    signal.setitimer(signal.ITIMER_REAL, 0.00001 + turn % 20 * 0.00002)
    meter.count("x")
signal.setitimer(signal.ITIMER_REAL, 0)
print(meter.total("x") - handled, handled > 10)
meter.close()
"""


def test_a_signal_handler_may_count_in_the_midst_of_a_count(any_server: Server) -> None:
    """Nothing that it interrupts is waited for, and each event is stored once."""
    assert _script(_HANDLER, any_server.url) == "501 True"


def test_a_meter_that_is_pickled_names_what_to_do() -> None:
    """Processes that are spawned, and pools, pickle what they are given."""
    for meter in (Meter("off"), Meter("redis://127.0.0.1:1"), MemoryMeter()):
        for held in (meter, meter.counter("c"), meter.histogram("h"), meter.gauge("g")):
            with pytest.raises(TypeError, match=r"cannot be pickled: make .* in each process"):
                pickle.dumps(held)
