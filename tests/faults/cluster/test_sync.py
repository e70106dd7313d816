"""Events that are stored one by one, each before its call returns, on a cluster in trouble.

A call that returned has stored its event. One that raised has not, unless its error says that it
was sent: then nobody can know.
"""

import itertools
import threading
import time
from typing import Self

from redmeter import Meter
from redmeter.errors import StoreError
from support.clusters import Cluster
from support.history import Event, Ledger, check
from support.progress import at_risk, goes_on, read, replicated, shards_on, slot_of
from support.waiting import eventually
from support.writers import names


class Caller:
    """A thread that counts until told to stop, each event by itself; a context manager."""

    def __init__(self, url: str, timeout: float) -> None:
        self._meter = Meter(url, sync=True, timeout=timeout)
        self._stop = threading.Event()
        self.stored: list[Event] = []
        self.unknown: list[Event] = []
        self.refused: list[StoreError] = []
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        for series in itertools.cycle(names()[:64]):
            if self._stop.is_set():
                return
            now = time.time()
            event = Event(time.monotonic(), int(now), series, 1)
            try:
                self._meter.count(series, at=now)
                self.stored.append(event)
            except StoreError as error:
                self.refused.append(error)
                if error.sent:
                    self.unknown.append(event)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._meter.close()

    def ledger(self) -> Ledger:
        """Return what it knows, once it has stopped."""
        assert not self._thread.is_alive()
        return Ledger([*self.stored, *self.unknown], uncertain=len(self.unknown))


def test_calls_follow_slots_that_move(any_cluster: Cluster) -> None:
    """MOVED, ASK and TRYAGAIN end within the call: none raises, each event is stored once."""
    cluster = any_cluster
    with Caller(cluster.url, 5.0) as one, Caller(cluster.url, 5.0) as other:
        goes_on(cluster)
        source, to, _ = cluster.masters()
        for shard in sorted(shards_on(cluster, source))[:5]:
            cluster.migrate_slot(slot_of(shard), to)
        goes_on(cluster)
    for caller in (one, other):
        assert caller.refused == []
    check(one.ledger() + other.ledger(), read(cluster))


def test_calls_for_a_node_that_is_gone_raise_and_others_return(cluster: Cluster) -> None:
    """Until another node has taken its place; what was stored by then and replicated is there."""
    master = cluster.nodes[0]
    with Caller(cluster.url, 0.2) as caller:
        goes_on(cluster)
        shards, safe = shards_on(cluster, master), replicated(cluster, master)
        cluster.kill(master)
        died = time.monotonic()
        eventually(lambda: caller.refused, 20.0)
        goes_on(cluster, but=shards)
        cluster.wait_failover(master)
        goes_on(cluster)
    assert all(str(master.port) in str(error) for error in caller.refused[:1])
    ledger = caller.ledger()
    check(ledger, read(cluster), missing=at_risk(ledger, shards, safe, died))
