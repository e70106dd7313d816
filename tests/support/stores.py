"""Stores on private servers: writing by the batch, and clocks that break things while one waits."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from redmeter import Meter
from redmeter.clock import SystemClock
from redmeter.keys import Kept, slice_start
from redmeter.kinds import counter, gauge
from redmeter.model import Batch, Operations, Outcome, RecorderHealth
from redmeter.recording.bulk import Bulk
from redmeter.store import Store
from redmeter.store.link import Link
from redmeter.store.steps import drive

#: What the fixtures `open_store` and `open_meter` give: call them with the options of either.
OpenStore = Callable[..., Store]
OpenMeter = Callable[..., Meter]


class HastyClock(SystemClock):
    """The machine's clock, on which nobody waits: each wait calls `on_sleep` instead.

    That is the moment between two tries of a write, where a test can change the server.
    """

    def __init__(self, on_sleep: Callable[[], object] = lambda: None) -> None:
        self.on_sleep = on_sleep
        self.waits = 0

    def sleep(self, _: float) -> None:
        """Do what the test wants done between two tries."""
        self.waits += 1
        self.on_sleep()


def count(store: Store, name: str, second: int, amount: int = 1, **options: Any) -> Outcome:
    """Count at a second, as a Meter does."""
    return count_all(store, {name: {second: amount}}, **options)


def count_all(store: Store, counts: dict[str, dict[int, int]], **options: Any) -> Outcome:
    """Write counts in one batch."""

    def build(kept: Kept) -> Operations:
        return counter.operations(store.keys, kept.series, counts)

    return store.part("").write(build, **options)


def store_all(store: Store, counts: Mapping[str, Mapping[int, int]]) -> RecorderHealth:
    """Write counts in as many batches as they need; tell what became of them."""
    bulk, now = Bulk(store), store.clock.wall()
    for name, seconds in counts.items():
        for second, amount in seconds.items():
            bulk.add(name, second, amount, now)
    bulk.write(store.timeout, now)
    return bulk.health()


def measure(store: Store, values: Mapping[str, float], time: float, **options: Any) -> Outcome:
    """Set gauges at a time, in one batch."""
    given = {name: {slice_start(time, 1): (time, value)} for name, value in values.items()}

    def build(kept: Kept) -> Operations:
        return gauge.operations(store.keys, kept.series, given)

    return store.part("").write(build, **options)


def send(store: Store, batch: Batch, version: str, **options: Any) -> Outcome:
    """Send a batch once, to a store of one partition."""
    (part,) = store.parts
    return drive(part.link, part.applying(batch, version, **options))


def batch_of(
    store: Store, number: int, name: str, second: int, amount: int = 1, producer: str = "p" * 32
) -> Batch:
    """Return the batch that counts at a second."""
    operations = counter.operations(store.keys, store.binding().retention, {name: {second: amount}})
    return Batch(producer, number, operations)


def samples(client: Any, key: str) -> dict[int, int]:
    """Return a counter's hash as it is stored, read by a client that does not decode."""
    return {int(start): int(value) for start, value in client.hgetall(key).items()}


def server_time(client: Any) -> float:
    """Return the server's clock."""
    seconds, microseconds = client.time()
    return float(seconds) + float(microseconds) / 1e6


def batch_keys(client: Any) -> list[bytes]:
    """Return the watermarks, of the default prefix and of the bare one."""
    return sorted(client.scan_iter("redmeter:*batch:*", count=1000))


@contextlib.contextmanager
def exchanges(monkeypatch: Any) -> Iterator[list[int]]:
    """Record each round trip: how many commands went out together."""
    seen: list[int] = []
    whole = Link.exchange

    def counted(self: Link, commands: Any, *take: Any) -> Any:
        seen.append(len(commands))
        return whole(self, commands, *take)

    with monkeypatch.context() as patch:
        patch.setattr(Link, "exchange", counted)
        yield seen
