"""Marks: noted once, however many note them; kept for a while; read back."""

import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import redmeter
from redmeter import InvalidValue, Mark, Meter, StoreUnavailable
from redmeter.clock import ManualClock
from redmeter.maintenance.forgetting import forget_mark
from redmeter.reading.marks import read_marks
from redmeter.store import Store
from redmeter.stored.mark import MARK_LIFE, MAX_MARKS, NEAR_SECONDS, Noted, mark_operations
from redmeter.testing import MemoryMeter
from redmeter.types import Batch, Outcome
from support.servers import Server
from support.stores import OpenMeter, OpenStore, exchanges, send, server_time

KEY = "redmeter:marks:"


def note(store: Store, *marks: tuple[float, str], release: bool = False) -> list[str]:
    """Note marks in one batch; return what the script says of each: 1, it is new."""
    noted = [Noted(time, label, release) for time, label in marks]
    outcome = store.shard("").write(lambda _: mark_operations(store.keys, noted))
    assert outcome.rejections == ()
    return [answer for _, answer in outcome.answers]


def test_a_mark_is_stored_with_its_time(client: Any, open_meter: OpenMeter) -> None:
    """By the caller's clock, or as told; read back in order."""
    meter = open_meter()
    now = server_time(client)
    meter.mark("v2", at=now - 3600.25)
    meter.mark("v3")
    meter.mark("v1", at=now - 7200)
    first, second, third = meter.marks()
    assert (first.label, second.label, third.label) == ("v1", "v2", "v3")
    assert second.time == pytest.approx(now - 3600.25, abs=0.001)
    assert abs(third.time - now) < 5
    assert client.ttl(KEY) > MARK_LIFE - 10
    assert meter.marks(since=now - 3700, until=now - 60) == [second]
    assert meter.marks(until=now - 8000) == []


def test_a_mark_goes_through_the_buffer(client: Any, any_server: Server) -> None:
    """Noting one does not wait for the network; flush() stores it, and the books balance."""
    with Meter(any_server.url, release="v9", flush_interval=60) as meter:
        meter.mark()
        meter.mark()
        meter.mark("other")
        meter.count("hits")
        assert not client.exists(KEY)
        assert meter.recorder_health().buffered == 3
        assert meter.flush()
        assert {one.label for one in meter.marks()} == {"v9", "other"}
        assert len(meter.marks()) == 2
        health = meter.recorder_health()
        assert (health.recorded, health.stored, health.losses) == (3, 3, ())


def test_marks_wait_while_the_store_is_away(client: Any, any_server: Server) -> None:
    """Under the time at which they were noted."""
    with Meter(any_server.url, flush_interval=60, timeout=0.2) as meter:
        meter.count("hits")
        meter.flush()
        client.config_set("maxmemory", "1")
        client.config_set("maxmemory-policy", "noeviction")
        before = time.time()
        meter.mark("v1")
        after = time.time()
        assert not meter.flush(0.3)
        client.config_set("maxmemory", "0")
        assert meter.flush()
        (one,) = meter.marks()
        assert before - 0.001 <= one.time <= after + 0.001  # it is kept in milliseconds


def test_no_more_marks_wait_than_are_kept(client: Any, any_server: Server) -> None:
    """The others are lost, and said to be."""
    with Meter(any_server.url, flush_interval=60) as meter:
        for number in range(MAX_MARKS + 3):
            meter.mark(f"m{number}")
        assert meter.flush()
        health = meter.recorder_health()
        assert (health.stored, health.dropped) == (MAX_MARKS, 3)
        assert health.lost() == {"marks": {0: 3, 1: 3}}
        assert len(meter.marks()) == MAX_MARKS


def test_a_mark_needs_a_label_or_a_release(
    client: Any, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given in code or by the environment; a label wins."""
    with pytest.raises(InvalidValue, match="REDMETER_RELEASE"):
        open_meter().mark()
    monkeypatch.setenv("REDMETER_RELEASE", "from env")
    meter = open_meter()
    meter.mark()
    meter.mark("given")
    open_meter(release="by code").mark()
    assert {one.label for one in meter.marks()} == {"from env", "given", "by code"}
    wrong: Any = 7
    with pytest.raises(TypeError):
        meter.mark(wrong)
    with pytest.raises(InvalidValue):
        meter.mark("x", at=float("nan"))


def test_the_same_label_is_another_mark_after_ten_minutes(
    client: Any, open_store: OpenStore
) -> None:
    """Before and after; other labels meanwhile are marks of their own."""
    store, now = open_store(), server_time(client)
    assert note(store, (now, "v1"), (now + 1, "v1")) == ["1", "0"]
    assert note(store, (now - NEAR_SECONDS + 1, "v1"), (now + NEAR_SECONDS, "v1")) == ["0", "0"]
    assert note(store, (now + 2, "v2")) == ["1"]
    assert note(store, (now - NEAR_SECONDS - 1, "v1")) == ["1"]
    assert note(store, (now + NEAR_SECONDS + 1, "v1")) == ["1"]
    assert note(store, (now, "v1 "), (now, "V1")) == ["1", "1"]
    assert len(read_marks(store)) == 6


def test_going_back_to_a_label_is_a_mark_of_its_own(client: Any, open_store: OpenStore) -> None:
    """Whichever of them comes first; on either side, and as it is told of what is in memory."""
    for prefix, order in (("a:", (0, 1, 2)), ("b:", (2, 1, 0)), ("c:", (1, 2, 0))):
        store, now = open_store(prefix=prefix), server_time(client)
        back = [(now, "v1"), (now + 120, "v2"), (now + 240, "v1")]
        for at in order:
            assert note(store, back[at]) == ["1"]
        assert note(store, (now + 250, "v1"), (now - 5, "v1"), (now + 130, "v2")) == ["0"] * 3
        assert [one.label for one in read_marks(store)] == ["v1", "v2", "v1"]
    store = open_store(prefix="d:")
    assert note(store, (now, "v1"), (now + 61, "v2"), (now + 120, "v1")) == ["1", "1", "0"]


def together(calls: Sequence[Callable[[], None]]) -> None:
    """Call each in a thread of its own, all at the same moment."""
    barrier = threading.Barrier(len(calls))

    def call_one(call: Callable[[], None]) -> None:
        barrier.wait()
        call()

    threads = [threading.Thread(target=call_one, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def start(any_server: Server, release: str, clock: ManualClock) -> None:
    """Start a process with a release, and end it."""
    with Meter(any_server.url, release=release, clock=clock, sync=True) as meter:
        meter.mark()


def test_a_release_is_noted_once_until_another_one_follows(
    client: Any, open_store: OpenStore, any_server: Server
) -> None:
    """A restart adds nothing, whatever was noted meanwhile; a rollback and a redeploy are new."""
    store, clock = open_store(), ManualClock(server_time(client) - 86400)
    start(any_server, "v1", clock)
    for pause in (960, 7200):
        clock.advance(pause)
        start(any_server, "v1", clock)
    note(store, (clock.wall() + 1, "cache switched on"))
    clock.advance(960)
    start(any_server, "v1", clock)
    for release in ("v2", "v2", "v1", "v1", "v2"):
        clock.advance(960)
        start(any_server, release, clock)
    labels = [one.label for one in read_marks(store)]
    assert labels == ["v1", "cache switched on", "v2", "v1", "v2"]


def test_a_deploy_within_a_minute_is_noted_whatever_the_order_of_arrival(
    client: Any, open_store: OpenStore
) -> None:
    """A process that stores late what it noted before the newest release is no rollback."""
    store, now = open_store(), server_time(client)
    assert note(store, (now, "v1"), (now + 120, "v2"), (now + 1, "v1"), release=True) == [
        *("1", "1", "0")
    ]
    assert note(store, (now + 5000, "v2"), release=True) == ["0"]


def test_a_label_that_the_deployment_noted_is_the_release_of_its_processes(
    client: Any, open_store: OpenStore
) -> None:
    """Also in a store whose marks are older than releases; an explicit label may come again."""
    store, now = open_store(), server_time(client)
    note(store, (now, "v1"))
    assert note(store, (now + 30, "v1"), (now + 5000, "v1"), release=True) == ["0", "0"]
    assert note(store, (now + 6000, "v1")) == ["1"]
    assert note(store, (now + 6000, "v2")) == ["1"]
    assert note(store, (now + 6001, "v2"), (now + 9000, "v2"), release=True) == ["0", "0"]


def test_a_release_whose_mark_was_removed_is_noted_again(
    client: Any, open_store: OpenStore
) -> None:
    """Nothing of it is left."""
    store, now = open_store(), server_time(client)
    assert note(store, (now, "v1"), release=True) == ["1"]
    assert forget_mark(store, "v1") == 1
    assert not client.exists(KEY)
    assert note(store, (now + 1, "v1"), release=True) == ["1"]


def test_workers_that_start_at_once_note_their_release_once(
    client: Any, open_store: OpenStore, any_server: Server
) -> None:
    """Each decides in the same step in which it would add a mark; a restart adds none."""
    store, now = open_store(), server_time(client)
    note(store, (now - 5000, "v1"), release=True)
    for release, labels in (("v1", ["v1"]), ("v2", ["v1", "v2"])):
        meters = [Meter(any_server.url, sync=True, release=release) for _ in range(10)]
        together([meter.mark for meter in meters])
        for meter in meters:
            meter.close()
        assert [one.label for one in read_marks(store)] == labels


def test_fifty_hosts_that_deploy_at_once_make_one_mark(
    client: Any, open_store: OpenStore, any_server: Server
) -> None:
    """Each with its own clock and connection, all at the same moment."""
    now = time.time()
    meters = [
        Meter(any_server.url, sync=True, clock=ManualClock(now + host % 10)) for host in range(50)
    ]

    def deploy(meter: Meter) -> None:
        meter.mark("v1.4.2")
        meter.mark("v1.4.3-rc1")

    together([functools.partial(deploy, meter) for meter in meters])
    assert sorted(one.label for one in read_marks(open_store())) == ["v1.4.2", "v1.4.3-rc1"]
    for meter in meters:
        meter.close()


@pytest.mark.slow
def test_processes_that_mark_at_their_start_make_one_mark(
    client: Any, open_store: OpenStore, any_server: Server
) -> None:
    """Through the buffer of each, stored as it ends."""
    program = "from redmeter import Meter; Meter().mark('v7')"
    environ = os.environ | {
        "REDMETER_URL": any_server.url,
        "PYTHONPATH": str(Path(redmeter.__file__).parents[1]),
    }
    children = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", program], env=environ)
        for _ in range(4)
    ]
    assert [child.wait(30) for child in children] == [0] * 4
    assert [one.label for one in read_marks(open_store())] == ["v7"]


def test_a_batch_of_marks_sent_again_changes_nothing(client: Any, open_store: OpenStore) -> None:
    """And is told what it was told before."""
    store, now = open_store(), server_time(client)
    version = store.config().version
    batch = Batch("p" * 32, 1, mark_operations(store.keys, [Noted(now, "v1")]))
    told = Outcome(answers=((KEY, "1"),))
    assert send(store, batch, version, must_exist=False) == told
    assert send(store, batch, version, must_exist=True) == told
    assert len(read_marks(store)) == 1


def test_old_marks_and_too_many_go(client: Any, open_store: OpenStore) -> None:
    """After 90 days, and the oldest past a thousand."""
    store, now = open_store(), server_time(client)
    note(store, (now - MARK_LIFE - 5, "old"), (now - MARK_LIFE + 60, "young"))
    assert [one.label for one in read_marks(store)] == ["young"]
    client.zadd(KEY, {f"{now - n:.3f} m{n}": now - n for n in range(MAX_MARKS + 50)})
    note(store, (now + 1, "newest"))
    found = read_marks(store)
    assert (len(found), client.zcard(KEY)) == (MAX_MARKS, MAX_MARKS)
    assert found[-1].label == "newest"
    assert "young" not in {one.label for one in found}


def test_marks_of_others_that_are_none_are_left_out(
    client: Any, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And reading them is one round trip."""
    client.zadd(KEY, {"nonsense": 5, "12 v1": 12, b"x \xff": 13})
    meter = open_meter()
    with exchanges(monkeypatch) as seen:
        assert meter.marks() == [Mark(12.0, "v1")]
    assert len(seen) == 1


def test_a_mark_that_cannot_be_stored_is_lost_by_itself(
    client: Any, open_meter: OpenMeter, any_server: Server
) -> None:
    """What is counted beside it is stored, and the loss is told."""
    client.set(KEY, "theirs")
    with Meter(any_server.url, flush_interval=60) as meter:
        meter.mark("v1")
        meter.count("hits", 2)
        meter.flush()
        assert meter.total("hits") == 2
        (loss,) = meter.recorder_health().losses
        assert (loss.reason, loss.series, loss.events) == ("WRONGTYPE", "v1", 1)


def test_a_store_that_is_away_is_an_error_of_a_synchronous_mark(client: Any) -> None:
    """As of count()."""
    meter = Meter("redis://127.0.0.1:1", sync=True, timeout=0.1)
    with meter, pytest.raises(StoreUnavailable):
        meter.mark("v1")


def test_without_a_store_a_mark_is_checked_and_no_more() -> None:
    """A URL of off; and a meter in memory shows what was noted."""
    off = Meter("off")
    off.mark("v1")
    assert off.marks() == []
    with pytest.raises(InvalidValue):
        off.mark("")
    shop = MemoryMeter()
    shop.mark("v1")
    shop.mark("v1")
    shop.clock.advance(601)
    shop.mark("v1")
    assert [one.time - shop.clock.wall() for one in shop.marks()] == [-601.0, 0.0]
    assert shop.marks(since=shop.clock.wall() - 1) == [Mark(shop.clock.wall(), "v1")]
    released = MemoryMeter(release="v1")
    for _ in range(3):
        released.mark()
        released.clock.advance(960)
    assert [one.label for one in released.marks()] == ["v1"]
