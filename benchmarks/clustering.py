"""A cluster of three masters beside one server, and with one of them in trouble. Rows for run.py.

The primaries have no replicas here: those would take turns with them on a small machine.
"""

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis

from redmeter import Meter
from redmeter import store as stores
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.recording.recorder import Recorder
from redmeter.recording.sending.flusher import FlushFailed
from redmeter.stored.shards import shard_of
from support.clusters import Cluster
from support.history import check
from support.progress import at_risk, goes_on, replicated, shards_on
from support.progress import read as read_all
from support.writers import Writers
from table import Row, milli, sized

#: Series of a flush.
SERIES = sized(2_000, 100)
#: Series that events of the past are of, and seconds of each.
PAST, SECONDS = sized(500, 20), sized(100, 5)
ROUNDS = sized(15, 1)
#: Primaries that are killed, one after the other.
KILLED = sized(2, 1)


@contextmanager
def masters() -> Iterator[Cluster]:
    """Three primaries alone."""
    with Cluster("valkey-9.1") as cluster:
        cluster.keep_masters()
        for replica in cluster.replicas():
            cluster.kill(replica)
        yield cluster


def storing(_conn: redis.Redis, url: str) -> Iterator[Row]:
    """Events stored a second, those of a flush and those of the past."""
    with masters() as cluster:
        for what, writer, events in (
            (f"a flush of {SERIES:,} series", _flushing, SERIES),
            ("events of the past", _past, PAST * SECONDS),
        ):
            with writer(cluster.url) as ours, writer(url) as other:
                ours()
                other()
                rounds = [(ours(), other()) for _ in range(ROUNDS)]
            mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratio = statistics.median(one / three for three, one in rounds)
            yield Row(
                f"cluster / one server, {what}",
                f"{events / mine:,.0f}/s",
                f"{events / theirs:,.0f}/s",
                ratio,
                ">= 0.8",
                "the ratio is of events a second",
            )


@contextmanager
def _flushing(url: str) -> Iterator[Callable[[], float]]:
    """Yield what flushes, and returns the seconds that it takes."""
    with Meter(url, flush_interval=3600) as meter:
        counters = [meter.counter(f"n{number}") for number in range(SERIES)]

        def flush() -> float:
            for counter in counters:
                counter.inc()
            started = time.perf_counter()
            assert meter.flush(30)
            return time.perf_counter() - started

        yield flush


@contextmanager
def _past(url: str) -> Iterator[Callable[[], float]]:
    """Yield what stores events of the past, and returns the seconds that it takes."""
    store = stores.open(url)
    assert store is not None, "it is not off"
    store.config()

    def write() -> float:
        bulk, now = BulkWriter(store), int(time.time())
        for number in range(PAST):
            for second in range(SECONDS):
                bulk.add(f"n{number}", now - second, 1, now)
        started = time.perf_counter()
        bulk.write(30, now)
        return time.perf_counter() - started

    yield write
    store.close()


def losing(_conn: redis.Redis, _url: str) -> Iterator[Row]:
    """A flush while a node stands still, or is dead: until all is stored that is for the others."""
    for how in ("paused", "killed"):
        with masters() as cluster, Meter(cluster.url, flush_interval=3600, timeout=2) as meter:
            node = cluster.nodes[1]
            here = shards_on(cluster, node)
            names = [f"n{number}" for number in range(SERIES)]
            others = [name for name in names if shard_of(name) not in here]
            rest = [name for name in names if shard_of(name) in here]
            _until_stored(meter, others, rest)
            usual = [_until_stored(meter, others, rest) for _ in range(ROUNDS)]
            cluster.pause(node) if how == "paused" else cluster.kill(node)
            times = [_until_stored(meter, others, rest) for _ in range(ROUNDS)]
            mine, normal = (statistics.median(one for one, _ in some) for some in (times, usual))
            floor = f"whole flushes at most {milli(max(whole for _, whole in times))}"
            floor += f", usually {milli(max(whole for _, whole in usual))}"
            what = f"flush of the others, a node {how}"
            yield Row(what, milli(mine), milli(normal), mine / normal, "<= 1.2", floor)
            cluster.resume(node) if how == "paused" else cluster.start_again(node)
            cluster.wait_ok()


def failover(_conn: redis.Redis, _url: str) -> Iterator[Row]:
    """A primary killed under load: until its replica serves, and until all is stored again.

    What is stored then is held against what was recorded: see support/history.py.
    """
    until: list[tuple[float, float]] = []
    acknowledged = lost = 0
    with Cluster("valkey-9.1") as cluster, Writers(cluster.url, processes=1) as writers:
        goes_on(cluster)
        died: list[tuple[frozenset[int], dict[str, int], float]] = []
        for master in cluster.masters()[:KILLED]:
            died.append((shards_on(cluster, master), replicated(cluster, master), time.monotonic()))
            started = time.perf_counter()
            cluster.kill(master)
            cluster.wait_failover(master)
            served = time.perf_counter() - started
            goes_on(cluster)  # each shard has stored something new
            until.append((served, time.perf_counter() - started))
            cluster.start_again(master)
            cluster.wait_ok()
        ledger = writers.finish()
        stored = read_all(cluster)
        risks = [at_risk(ledger, *one) for one in died]
        check(ledger, stored, missing=lambda series: sum(risk(series) for risk in risks))
        for series, seconds in ledger.recorded().items():
            acknowledged += sum(seconds.values())
            lost += sum(seconds.values()) - stored.amount(series)
    served, again = (max(column) for column in zip(*until, strict=True))
    floor = f"its replica serves after {served:.1f} s; {lost:,} of {acknowledged:,} events lost"
    yield Row("a master killed: until all is stored", f"{again:.1f} s", "", None, "none", floor)


def _until_stored(meter: Meter, others: list[str], rest: list[str]) -> tuple[float, float]:
    """Flush once; return the seconds until all is stored that counts as one, and those in all."""
    recorder = meter._recorder
    assert isinstance(recorder, Recorder), "it is not sync"
    million = 1_000_000
    for names, amount in ((others, 1), (rest, million)):
        for name in names:
            meter.count(name, amount)
    wanted = recorder._stats.stored % million + len(others)
    taken = [0.0]

    def watch() -> None:
        while recorder._stats.stored % million != wanted % million:
            time.sleep(0.0005)
        taken[0] = time.perf_counter() - started

    watcher = threading.Thread(target=watch)
    started = time.perf_counter()
    watcher.start()
    with contextlib.suppress(FlushFailed):
        recorder._flush(last=False, requested=False)
    whole = time.perf_counter() - started
    watcher.join()
    return taken[0], whole


ROWS = {"cluster": storing, "cluster-down": losing, "cluster-failover": failover}
