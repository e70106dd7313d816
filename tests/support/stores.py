"""Stores on private servers: opened for a test, written by the batch, broken while one waits."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from redmeter import Meter
from redmeter import store as stores
from redmeter.clock import SystemClock
from redmeter.health.writers import Writer, parse_writers, writer_commands
from redmeter.reading.top import read_top
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.recording.recorder import Recorder
from redmeter.results import Ranking, RecorderHealth
from redmeter.store import Store
from redmeter.store.fan_out import FanOut
from redmeter.store.scripts import run_steps
from redmeter.store.servers.cluster import ClusterLink
from redmeter.store.servers.connection import ServerLink
from redmeter.store.shard import BatchConditions
from redmeter.stored.counter import counter_operations
from redmeter.stored.gauge import gauge_operations
from redmeter.stored.keys import Kept, slice_start
from redmeter.types import Batch, Operations, Outcome, Top, Window
from support.servers import Server

#: What the fixtures `open_store` and `open_meter` give: call them with the options of either.
OpenStore = Callable[..., Store]
OpenMeter = Callable[..., Meter]
#: What the fixture `set_time` gives: it sets the time that scripts go by, Unix seconds.
SetTime = Callable[[float], None]


@contextlib.contextmanager
def opened_store(url: str | None = None, **options: Any) -> Iterator[Store]:
    """Open a store as store.open() does, and close it in the end."""
    assert url or "client" in options, "it would be the user's own store"
    store = stores.open(url, **options)
    assert store is not None
    with contextlib.closing(store):
        yield store


def opened_stores(home: str = "") -> Iterator[OpenStore]:
    """Open several, and close them in the end: the body of a fixture.

    Args:
        home: the URL of those that are opened without one.
    """
    with contextlib.ExitStack() as opened:

        def open_one(url: str = "", **options: Any) -> Store:
            return opened.enter_context(opened_store(url or home, **options))

        yield open_one


def opened_meters(home: str | None = None, **defaults: Any) -> Iterator[OpenMeter]:
    """Open meters, and close them in the end: the body of a fixture.

    Args:
        home: the URL of those that are opened with neither a URL nor a client.
        defaults: options of all that do not say otherwise.
    """
    with contextlib.ExitStack() as opened:

        def open_one(url: str | None = None, **options: Any) -> Meter:
            where = None if "client" in options else url or home
            meter = Meter(where, **{**defaults, **options})
            opened.callback(give_up, meter)
            return opened.enter_context(meter)

        yield open_one


def give_up(meter: Meter) -> None:
    """Have a closed meter forget what it could not store, as a forked child does.

    Its thread would go on trying: its log would be among that of other tests, and its events in
    their servers, once one has the port of the server that is unreachable.
    """
    recorder = meter._recorder
    if isinstance(recorder, Recorder) and recorder.health().buffered:
        recorder.after_fork()


def link_of(store: Store) -> ClusterLink:
    """Return the link of a store on a cluster, beneath the fan-out."""
    assert isinstance(store.link, FanOut)
    return store.link.cluster


class HastyClock(SystemClock):
    """The machine's clock, on which no one waits: each wait calls `on_sleep` instead.

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
        return counter_operations(store.keys, kept.series, counts)

    return store.shard("").write(build, **options)


def store_all(store: Store, counts: Mapping[str, Mapping[int, int]]) -> RecorderHealth:
    """Write counts in as many batches as they need; tell what became of them."""
    bulk, now = BulkWriter(store), store.clock.wall()
    for name, seconds in counts.items():
        for second, amount in seconds.items():
            bulk.add(name, second, amount, now)
    bulk.write(store.timeout, now)
    return bulk.health()


def measure(store: Store, values: Mapping[str, float], time: float, **options: Any) -> Outcome:
    """Set gauges at a time, in one batch."""
    given = {name: {slice_start(time, 1): (time, value)} for name, value in values.items()}

    def build(kept: Kept) -> Operations:
        return gauge_operations(store.keys, kept.series, given)

    return store.shard("").write(build, **options)


def send(store: Store, batch: Batch, version: str, **options: Any) -> Outcome:
    """Send a batch once, to a store of one shard."""
    (part,) = store.shards
    return run_steps(part.link.collect, part.applying(batch, version, BatchConditions(**options)))


def batch_of(
    store: Store, number: int, name: str, second: int, amount: int = 1, producer: str = "p" * 32
) -> Batch:
    """Return the batch that counts at a second."""
    operations = counter_operations(store.keys, store.config().retention, {name: {second: amount}})
    return Batch(producer, number, operations)


def samples(client: Any, key: str) -> dict[int, int]:
    """Return a counter's hash as it is stored, read by a client that does not decode."""
    return {int(start): int(value) for start, value in client.hgetall(key).items()}


def total_on(server: Server, name: str = "hits") -> int:
    """Return the grand total that a server itself holds of a counter."""
    with server.client() as client:
        return int(client.hget("redmeter:total:", name) or 0)


def read_writers(store: Store) -> list[Writer]:
    """Return the writers whose reports can be parsed, newest first."""
    view, replies = store.read(writer_commands(store.keys))
    return parse_writers(view.now, replies)[0]


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
    whole = ServerLink.exchange

    def counted(self: ServerLink, commands: Any, *take: Any, **options: Any) -> Any:
        seen.append(len(commands))
        return whole(self, commands, *take, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ServerLink, "exchange", counted)
        yield seen


def rank(store: Store, name: str, precision: int, **options: Any) -> Ranking:
    """Return a ranking; the options are those of a Window and of Top."""
    ends = {key: options.pop(key) for key in ("since", "until", "last") if key in options}
    return read_top(store, Top(name, Window(precision, **ends), **options))
