"""Writers while a store is migrated: they wait, follow, and store each event once."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import Meter
from redmeter.errors import InvalidSetting, StoreMoving
from redmeter.migrating import migrate
from redmeter.store.config import read_states
from support.proxy import Proxy
from support.servers import Server
from support.stores import OpenStore, opened_stores, server_time
from support.waiting import eventually

META = "redmeter:meta:"


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    """Open stores, and close them after the test."""
    yield from opened_stores()


@pytest.fixture
def target_url(server: Server) -> str:
    """Another database of the same server."""
    return server.url.removesuffix("0") + "1"


def balanced(meter: Meter) -> tuple[int, int]:
    """Return how many events were recorded and stored; there are no others."""
    health = meter.recorder_health()
    assert health.recorded == health.stored + health.buffered + health.uncertain + health.dropped
    assert (health.uncertain, health.dropped, health.losses) == (0, 0, ())
    return health.recorded, health.stored


class Writers:
    """Threads that count in meters of their own, until they are stopped."""

    def __init__(self, url: str, next_url: str, number: int = 3, **more: Any) -> None:
        options: dict[str, Any] = {"next_url": next_url, "flush_interval": 0.05, **more}
        self.meters = [Meter(url, **options) for _ in range(number)]
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(m,)) for m in self.meters]
        for thread in self._threads:
            thread.start()

    def _run(self, meter: Meter) -> None:
        number = 0
        while not self._ended.wait(0.002):
            number += 1
            meter.count("hits", labels={"n": str(number % 5)})
            meter.observe("took", 0.5)
            meter.gauge("queue", per_process=True).set(number)
            meter.log("app", "job %s failed", number)

    def stop(self) -> int:
        """Stop counting; return how many events were recorded, all of which are stored."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        recorded = 0
        for meter in self.meters:
            assert meter.flush(10.0), meter.recorder_health()
            mine, stored = balanced(meter)
            assert mine == stored
            recorded += mine
            meter.close()
        return recorded


@pytest.mark.parametrize(
    ("where", "prefixes"),
    [
        ("server", ("redmeter:", "redmeter:")),
        ("cluster", ("redmeter:", "redmeter:")),
        ("server", ("", "redmeter:")),
        ("cluster", ("", "redmeter:")),
        ("same database", ("", "redmeter:")),
        ("same database", ("redmeter:", "")),
        ("same database", ("redmeter:", "app:")),
    ],
)
def test_writers_follow_and_each_event_counts_once(
    server: Server,
    target_url: str,
    open_store: OpenStore,
    request: Any,
    where: str,
    prefixes: tuple[str, str],
) -> None:
    """Counters, histograms, messages and gauges of their processes, also to another prefix."""
    if where == "cluster":
        target_url = request.getfixturevalue("cluster").url
    elif where == "same database":
        target_url = server.url
    before, after = prefixes
    writers = Writers(server.url, target_url, prefix=before)
    eventually(lambda: all(meter.recorder_health().stored > 20 for meter in writers.meters))
    migrate(open_store(server.url, prefix=before), open_store(target_url, prefix=after))
    then = [meter.recorder_health().stored for meter in writers.meters]
    eventually(
        lambda: all(
            m.recorder_health().stored > n for m, n in zip(writers.meters, then, strict=True)
        )
    )
    assert all(meter.names() for meter in writers.meters)  # reads follow as well
    instances = {meter.recorder_health().instance for meter in writers.meters}
    recorded = writers.stop()
    assert len(instances - {None}) == len(instances - {None}) <= 3
    with Meter(target_url, prefix=after) as meter:
        hits = sum(meter.total(f'hits{{n="{n}"}}') for n in range(5))
        took = meter.summary("took", precision=3600).count
        logged = sum(row.count + row.before for row in meter.log_frequencies("app"))
    assert 4 * hits == recorded
    assert (took, logged) == (hits, hits)


@pytest.mark.parametrize("applied", [True, False], ids=["applied", "not applied"])
def test_a_batch_in_doubt_is_settled_before_the_writer_follows(
    server: Server, target_url: str, open_store: OpenStore, applied: bool
) -> None:
    """Its reply was lost right before the move: the source still knows whether it was applied."""
    with Proxy(server.port) as proxy, server.client() as client:
        meter = Meter(proxy.url, next_url=target_url, flush_interval=60.0, timeout=0.5)
        meter.count("hits")
        assert meter.flush()
        if applied:
            proxy.drop_replies(1000)
        else:
            proxy.reset_after(100, of="requests", times=1000)
        meter.count("hits", 10)
        assert not meter.flush(0.3)
        assert client.hget("redmeter:total:", "hits") == (b"11" if applied else b"1")
        migrate(open_store(server.url), open_store(target_url))
        meter.count("hits", 100)
        proxy.heal()
        eventually(lambda: meter.flush(2.0))
        assert balanced(meter) == (111, 111)
        assert meter.total("hits") == 111
        assert client.hget("redmeter:total:", "hits") == (b"11" if applied else b"1")
        meter.close()


def test_without_a_next_url_events_are_kept(
    server: Server, target_url: str, open_store: OpenStore
) -> None:
    """And reported; they are stored should the store come back."""
    meter = Meter(server.url, flush_interval=60.0)
    meter.count("hits")
    assert meter.flush()
    source, target = open_store(server.url), open_store(target_url)
    migrate(source, target)
    meter.count("hits", 5)
    assert not meter.flush(0.2)
    health = meter.recorder_health()
    assert (health.buffered, health.dropped) == (5, 0)
    assert health.troubles["moved"] >= 1
    migrate(target, source, replace=True)
    eventually(lambda: meter.flush(2.0))
    assert meter.total("hits") == 6
    meter.close()


def test_a_frozen_store_is_waited_for(server: Server) -> None:
    """Events stay in memory, and are stored once; a writer with a next URL waits as well."""
    with server.client() as client:
        meter = Meter(server.url, next_url="redis://127.0.0.1:1", flush_interval=60.0)
        meter.count("hits")
        assert meter.flush()
        client.hset(META, "frozen", f"token {server_time(client) + 60}")
        meter.count("hits", 5)
        assert not meter.flush(0.2)
        assert meter.recorder_health().buffered == 5
        client.hdel(META, "frozen")
        assert meter.flush(5.0)
        assert meter.total("hits") == 6
        assert balanced(meter) == (6, 6)
        meter.close()


def test_only_the_store_that_it_was_moved_to_is_followed_to(
    server: Server, target_url: str, open_store: OpenStore
) -> None:
    """A mistyped URL leads nowhere: nothing is written there."""
    wrong = server.url.removesuffix("0") + "2"
    meter = Meter(server.url, next_url=wrong, flush_interval=60.0)
    meter.count("hits")
    assert meter.flush()
    migrate(open_store(server.url), open_store(target_url))
    meter.count("hits", 5)
    assert not meter.flush(0.3)
    assert meter.recorder_health().buffered == 5
    assert "next-url" in meter.recorder_health().troubles
    with server.client(db=2) as client:
        assert client.dbsize() == 0
    # Its events are stored before the next test, which would count them otherwise.
    with server.client() as client:
        client.hdel(META, "moved")
    eventually(lambda: meter.flush(2.0))
    meter.close()
    with pytest.raises(InvalidSetting):
        Meter(server.url, next_url="nonsense")


def test_a_synchronous_meter_follows(
    server: Server, target_url: str, open_store: OpenStore
) -> None:
    """With each kind of event, by several threads, and reads follow as well."""
    with Meter(server.url, next_url=target_url, sync=True) as meter:
        queue = meter.gauge("queue", per_process=True)
        queue.set(1)
        meter.count("hits")
        migrate(open_store(server.url), open_store(target_url))
        queue.set(2)
        threads = [threading.Thread(target=meter.count, args=("hits",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        meter.observe("took", 0.5)
        meter.log("shop", "paid")
        meter.mark("v2")
        meter.counter("hits").inc(3)
        assert meter.total("hits") == 12
        assert meter.summary("took", precision=60).count == 1
        assert meter.gauge_series("queue", precision=60)[-1].value == 2.0
        recorded, stored = balanced(meter)
        assert recorded == stored == 17
    with Meter(target_url, sync=True) as there:
        assert there.total("hits") == 12


def test_a_synchronous_meter_follows_to_another_prefix(
    server: Server, open_store: OpenStore
) -> None:
    """Which it reads from the store that was moved, once for each move."""
    with Meter(server.url, next_url=server.url, prefix="", sync=True) as meter:
        meter.count("hits")
        migrate(open_store(server.url, prefix=""), open_store(server.url, prefix="a:"))
        meter.count("hits")
        assert meter.total("hits") == 2
    moved = Meter(server.url, next_url=server.url, prefix="", sync=True)
    with moved, server.client() as client:
        client.hset("redmeter:bare:meta:", "moved_prefix", "b{")
        with pytest.raises(StoreMoving):
            moved.count("hits")
        assert moved.recorder_health().troubles["next-url"] == 1
        client.hset("redmeter:bare:meta:", "moved_prefix", "other:")
        with pytest.raises(StoreMoving):
            moved.count("hits")
        assert not [*client.scan_iter("other:*")]
        migrate(*(open_store(server.url, prefix=prefix) for prefix in ("", "b:")), replace=True)
        moved.count("hits")
        assert moved.total("hits") == 2
    with Meter(server.url, prefix="a:", sync=True) as meter:
        assert meter.total("hits") == 2


def test_a_synchronous_meter_without_a_next_store_reports_the_move(
    server: Server, target_url: str, open_store: OpenStore
) -> None:
    """Also if the store was moved to another one than `next_url` names."""
    other = server.url.removesuffix("0") + "2"
    with Meter(server.url, sync=True) as alone, Meter(server.url, next_url=other, sync=True) as led:
        alone.count("hits")
        migrate(open_store(server.url), open_store(target_url))
        for meter in (alone, led):
            with pytest.raises(StoreMoving):
                meter.count("hits")
            assert meter.recorder_health().dropped == 1
        assert set(led.recorder_health().troubles) == {"moved", "next-url"}


def test_a_writer_that_comes_too_early_waits_until_the_target_opens(
    server: Server, target_url: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mover was killed between the two: the target has everything, and is not open."""
    from redmeter.migrating import states

    meter = Meter(server.url, next_url=target_url, flush_interval=60.0)
    meter.gauge("queue", per_process=True).set(1)
    meter.count("hits")
    assert meter.flush()
    stores = open_store(server.url), open_store(target_url)
    with monkeypatch.context() as patched:
        patched.setattr(states, "open_shards", lambda *_: None)
        migrate(*stores)
    meter.count("hits", 5)
    meter.gauge("queue", per_process=True).set(2)
    assert not meter.flush(0.3)
    assert read_states(stores[1])[0].receiving
    assert meter.recorder_health().buffered >= 5
    assert migrate(*stores).already
    eventually(lambda: meter.flush(2.0))
    assert meter.total("hits") == 6
    balanced(meter)
    meter.close()
