"""A move that is broken off anywhere goes on, and no event is lost or counted twice."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redmeter import StoreUnavailable
from redmeter.migrating import journal, migrate
from redmeter.store import Store
from redmeter.store.link import Link
from redmeter.store.partition import WATERMARK_SECONDS
from support.moving import fill, held, write_series
from support.servers import Server
from support.stores import OpenStore, count, opened_stores

LOCK = "redmeter:moving:lock"


class Killed(BaseException):
    """What nothing catches: the process is gone."""


class Guillotine:
    """Kills at one of the exchanges with either server: before it is sent, or before its answer."""

    def __init__(self, at: int, *, sent: bool) -> None:
        self.left = at
        self._sent = sent
        self._exchange = Link.exchange

    def exchange(self, link: Link, *args: Any, **options: Any) -> Any:
        """Exchange, or kill; whoever was killed exchanges nothing more."""
        self.left -= 1
        if self.left < 0 or (self.left == 0 and not self._sent):
            raise Killed
        replies = self._exchange(link, *args, **options)
        if self.left == 0:
            raise Killed
        return replies


@pytest.fixture
def stores(server: Server, open_any: OpenStore) -> Callable[[], tuple[Store, Store]]:
    """Open FROM and TO, as a new process does."""
    return lambda: (open_any(server.url), open_any(server.url.removesuffix("0") + "1"))


@pytest.fixture
def open_any() -> Iterator[OpenStore]:
    """Open stores, and close them after the test."""
    yield from opened_stores()


@pytest.mark.slow
@pytest.mark.parametrize("sent", [False, True])
def test_a_run_may_be_killed_at_any_step(
    server: Server,
    stores: Callable[[], tuple[Store, Store]],
    monkeypatch: pytest.MonkeyPatch,
    sent: bool,
) -> None:
    """Before a command is sent, or between that and its answer, whichever command it is."""
    with server.client() as one, server.client(db=1) as other:
        for at in range(1, 1000):
            one.flushall()
            fill(stores()[0], series=1, slices=2)
            before = held(one)
            guillotine = Guillotine(at, sent=sent)
            with monkeypatch.context() as patch:
                patch.setattr(
                    Link, "exchange", lambda *args, g=guillotine, **more: g.exchange(*args, **more)
                )
                try:
                    migrate(*stores())
                except Killed:
                    pass
                else:
                    break  # it had fewer steps than that
            one.delete(LOCK)  # as time passes
            report = migrate(*stores())
            assert report.complete
            assert held(other) == before, at
            assert held(one) == {}, at
            whole_sum = report.total()
            assert whole_sum.taken == whole_sum.stored, at
        assert at > 50


def test_series_of_several_batches_go_on_in_the_middle(
    server: Server, stores: Callable[[], tuple[Store, Store]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has arrived is not sent again; each of the others once."""
    patterns = {f"p{n:04}": 1 for n in range(900)}
    hour = int(time.time()) // 3600 * 3600
    with server.client() as one, server.client(db=1) as other:
        for at in range(8, 30, 2):
            one.flushall()
            one.zadd("redmeter:common:app:info", patterns)
            one.set("redmeter:common:app:info:start", hour)
            with monkeypatch.context() as patch:
                guillotine = Guillotine(at, sent=True)
                patch.setattr(
                    Link, "exchange", lambda *args, g=guillotine, **more: g.exchange(*args, **more)
                )
                with contextlib.suppress(Killed):
                    migrate(*stores())
            one.delete(LOCK)
            report = migrate(*stores())
            found = dict(other.zrange("redmeter:common:app:info", 0, -1, withscores=True))
            assert found == {name.encode(): 1.0 for name in patterns}
            assert report.sums["patterns"][3600].stored == 900


def test_the_next_run_waits_for_the_lock_of_one_that_was_killed(
    server: Server, stores: Callable[[], tuple[Store, Store]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees that nobody renews it, and goes on once it has run out."""
    with server.client() as one:
        fill(stores()[0], series=1)
        one.set(LOCK, "of one that is gone", px=1500)
        told: list[float] = []
        assert migrate(*stores(), waiting=told.append).complete
        assert told == [journal.LOCK]


def test_one_need_not_wait_for_the_lock(
    server: Server, stores: Callable[[], tuple[Store, Store]]
) -> None:
    """Who is to end while it waits ends, and has changed nothing."""
    with server.client() as one, server.client(db=1) as other:
        fill(stores()[0], series=1)
        one.set(LOCK, "of one that is gone", px=60_000)
        before = held(one)
        assert not migrate(*stores(), quit=lambda: True).finished
        assert (held(one), other.dbsize()) == (before, 0)
        assert one.get(LOCK) == b"of one that is gone"


def test_a_batch_whose_watermark_is_gone_is_told_of(
    server: Server, stores: Callable[[], tuple[Store, Store]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TO had answered before, and has lost who wrote: it is not applied again, and not lost."""
    with server.client() as one, server.client(db=1) as other:
        source, target = stores()
        fill(source, series=2)
        migrate(source, target)
        count(source, "late", int(time.time()), 7)
        sending = type(target.parts[0]).sending

        def kill(self: Any, *args: Any, **options: Any) -> Any:
            yield from sending(self, *args, **options)
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(type(target.parts[0]), "sending", kill)
            with pytest.raises(Killed):
                migrate(*stores())
        one.delete(LOCK)
        other.delete(*other.scan_iter("redmeter:batch:*"))
        # A day later there is nothing of what had arrived.
        moved = one.scan_iter("redmeter:moving:[0-9]*")
        one.delete(*(key for key in moved if one.ttl(key) > 0))
        before = other.hgetall("redmeter:count:86400:late")
        report = migrate(*stores())
        assert report.total().uncertain > 0
        assert report.left
        assert all(one.ttl(key) == -1 for key in report.left)
        there = sum(map(int, other.hgetall("redmeter:count:86400:late").values()))
        assert there in (0, 7)
        assert before in ({}, other.hgetall("redmeter:count:86400:late"))


def test_a_batch_that_is_older_than_a_watermark_is_not_sent_again(
    server: Server, stores: Callable[[], tuple[Store, Store]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed with the very first batch under way, and gone on with days later."""
    with server.client() as one, server.client(db=1) as other:
        count(stores()[0], "a", int(time.time()), 7)
        at = 1
        while not one.hexists("redmeter:moving:", "group"):
            one.delete(LOCK)
            with monkeypatch.context() as patch:
                guillotine = Guillotine(at, sent=True)
                patch.setattr(
                    Link, "exchange", lambda *args, g=guillotine, **more: g.exchange(*args, **more)
                )
                with pytest.raises(Killed):
                    migrate(*stores())
            at += 1
        one.delete(LOCK)
        group = json.loads(one.hget("redmeter:moving:", "group"))
        group[-1] -= WATERMARK_SECONDS
        one.hset("redmeter:moving:", "group", json.dumps(group))
        report = migrate(*stores())
        assert report.total().uncertain > 0
        assert report.total().stored + report.total().uncertain == report.total().taken
        assert other.exists("redmeter:meta:")


@pytest.mark.parametrize("seed", range(5))
def test_lost_replies_do_no_harm(
    server: Server,
    stores: Callable[[], tuple[Store, Store]],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    """Of one exchange in six the answer is lost, with either server, and late writers write."""
    source, target = stores()
    fill(source, series=4)
    chance, exchange, late = random.Random(seed), Link.exchange, [0]

    def lossy(self: Link, *args: Any, **options: Any) -> Any:
        replies = exchange(self, *args, **options)
        if chance.random() < 1 / 6:
            with monkeypatch.context() as patch:
                patch.setattr(Link, "exchange", exchange)
                count(writer, 'moved{n="1"}', int(time.time()))
            late[0] += 1
            raise StoreUnavailable(self.location, "the reply is lost", sent=True)
        return replies

    writer, _ = stores()
    with monkeypatch.context() as patch:
        patch.setattr(Link, "exchange", lossy)
        for _ in range(100):
            with contextlib.suppress(StoreUnavailable):
                if migrate(source, target).complete:
                    break
            with server.client() as one:
                one.delete(LOCK)
    report = migrate(source, target)
    assert report.complete
    assert late[0] > 3
    with server.client(db=1) as other:
        there = held(other)
    assert int(there["total:"][b'moved{n="1"}']) == 4 * 2 + late[0]
    assert sum(map(int, there['count:86400:moved{n="1"}'].values())) == 4 * 2 + late[0]
    assert report.total().uncertain == 0
    assert there['stats:moved{n="0"}'][b"count"] in (3, 6, 9, 12)
    assert len(there["marks:"]) == 3  # two marks, and which release is the newest
    assert len(there["recent:app:error"]) == 20


@pytest.mark.slow
def test_a_process_that_is_killed_again_and_again_comes_to_an_end(
    server: Server, stores: Callable[[], tuple[Store, Store]], tmp_path: Any
) -> None:
    """While writers go on in both stores: what they counted is what there is."""
    source, target = stores()
    for number in range(60):
        write_series(source, f"s{number}", 3, 2)
    ended = threading.Event()
    counted = [0, 0]

    def write(number: int, store: Store) -> None:
        while not ended.is_set():
            count(store, f"s{random.randrange(60)}", int(time.time()))
            counted[number] += 1
            time.sleep(0.001)

    threads = [
        threading.Thread(target=write, args=(number, store))
        for number, store in enumerate((source, target))
    ]
    for thread in threads:
        thread.start()
    urls = server.url, server.url.removesuffix("0") + "1"
    command = [sys.executable, "-m", "redmeter", "migrate", *urls]
    environment = {**os.environ, "PYTHONPATH": "src", "HOME": str(tmp_path)}
    environment.pop("REDMETER_URL", None)
    kills = 0
    with server.client() as one:
        try:
            for turn in range(8):
                with subprocess.Popen(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                ) as process:
                    time.sleep(0.45 + 0.04 * turn)
                    process.send_signal(signal.SIGKILL)
                    kills += process.wait() == -signal.SIGKILL
                one.delete(LOCK)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert kills > 0
        report = migrate(*stores())
        assert report.complete
        assert not report.left
    with server.client(db=1) as other:
        there = held(other)
    total = sum(int(n) for n in there["total:"].values())
    assert total == 60 * 3 * 2 + sum(counted)
    days = [key for key in there if key.startswith("count:86400:")]
    assert sum(int(n) for key in days for n in there[key].values()) == total
