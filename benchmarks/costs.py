"""What a batch, an interval and a series cost: measured on a server of our own, for capacity.py.

Processor time is the server's own, so a client that is slow does not count. Each cost is a
difference: of batches that do the same but for one thing. Series have their retention full, as
after months; a histogram's intervals hold what a hundred processes observed.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import cast

from batches import Bench, Packed, command_of, exchange, server_time, together
from batches import packed as as_sent
from capacity import Workload, shared_names
from filling import MANY, copy, fill, observed
from redmeter import Meter
from redmeter.store import producers
from redmeter.store.servers.replies import Command, Link, Reply
from redmeter.store.shard import Shard
from redmeter.stored.counter import counter_operations
from redmeter.stored.gauge import gauge_operations
from redmeter.stored.histogram import histogram_operations
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, Kept
from redmeter.stored.message import LogHour, PatternHour, message_operations
from redmeter.types import Operations

KEPT = Kept(DEFAULT_RETENTION, DEFAULT_HISTOGRAMS)

#: Values that a process observes in a second, of each series.
VALUES = 6


class Shape:
    """Batches of one kind.

    Args:
        kind: "counter", "gauge" or "histogram".
        series: in each batch.
        precisions: how many of them are written, the widest.
    """

    def __init__(self, kind: str, series: int, precisions: int) -> None:
        self.kind = kind
        self.series = series
        kept: Mapping[int, int] = KEPT.histograms if kind == "histogram" else KEPT.series
        self.kept = dict(list(kept.items())[-precisions:])

    def operations(self, part: Shard, names: Sequence[str], second: int) -> Operations:
        """Return what a batch does, of one second."""
        if not names:
            return ()
        if self.kind == "counter":
            counts = {name: {second: 4} for name in names}
            return counter_operations(part.keys, self.kept, counts)
        if self.kind == "gauge":
            values = {name: {second: (second + 0.123456, 1 / 3)} for name in names}
            return gauge_operations(part.keys, self.kept, values)
        spread = {name: {second: observed(VALUES)} for name in names}
        return histogram_operations(part.keys, self.kept, spread)


class Series:
    """Full series of each kind to write to: those of a hundred services, or nearly.

    There are more of them than a processor's caches hold, as there are on a busy server.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.empty()
        self.part = bench.shard()
        #: The second that is written; the intervals it is in are not there yet.
        self.second = int(time.time()) - 2
        many = {"counter": 2800, "gauge": 1000, "histogram": 800}
        self.names = {kind: _names(kind, number) for kind, number in many.items()}
        for kind, names in self.names.items():
            fill(self.part, KEPT, kind, names[:1], self.second)
        # Others have observed in the intervals at hand before.
        spread = {names[0]: {self.second: observed(MANY)}}
        self.part.write(lambda _: histogram_operations(self.part.keys, KEPT.histograms, spread))
        for kind in self.names:
            self.renew(kind)
        self._producers = count()

    def renew(self, kind: str) -> None:
        """Have no series of a kind hold what was written last."""
        template, *others = self.names[kind]
        copy(
            self.bench.conn,
            self.part.keys,
            KEPT,
            kind,
            template,
            [(self.part.keys, name) for name in others],
        )

    def commands(self, shape: Shape, batches: int) -> Iterator[bytes]:
        """Return batches of one producer, over all series but the template, in turn."""
        names = self.names[shape.kind][1:]
        producer = f"{next(self._producers):032x}"
        for number in range(batches):
            at = number * shape.series % len(names)
            chosen = (names + names)[at : at + shape.series]
            operations = shape.operations(self.part, chosen, self.second)
            yield command_of(self.part, producer, number + 1, operations)

    def time(self, shape: Shape, batches: int, *, new: bool = False, depth: int = 20) -> float:
        """Return the server's time for a batch, microseconds.

        Args:
            new: whether their intervals are new; there have to be series enough.
            depth: how many go out in one piece.
        """
        commands = list(self.commands(shape, batches))
        pieces = [together(commands[at : at + depth]) for at in range(0, batches, depth)]
        with self.bench.wires(1) as wires:
            if new:
                assert batches * shape.series < len(self.names[shape.kind]), "one time each"
                self.renew(shape.kind)
            else:
                exchange(wires, [together(list(self.commands(shape, batches)))])
            return server_time(self.bench, lambda: exchange(wires, pieces), batches)

    def size(self, shape: Shape, first: int = 0) -> int:
        """Return the bytes of a batch of series from a first one on."""
        names = self.names[shape.kind][1 + first :][: shape.series]
        operations = shape.operations(self.part, names, self.second)
        return len(command_of(self.part, "a" * 32, 1000, operations))


def _names(kind: str, many: int) -> list[str]:
    """Return names as services have them."""
    found = ["template"]
    work, service = Workload(), 0
    while len(found) <= many:
        found += shared_names(service, work)[kind]
        service += 1
    return found[: many + 1]


def times(series: Series, rounds: int) -> dict[str, float]:
    """Measure the server's time: each kind of batch in turn, and of each the median."""
    measured: dict[str, list[float]] = {}
    for _ in range(rounds):
        for what, (kind, many, precisions, batches) in _BATCHES.items():
            found = series.time(
                Shape(kind, many, precisions),
                batches,
                new=what == "new",
                depth=1 if what == "alone" else 20,
            )
            measured.setdefault(what, []).append(found)
    took = {what: statistics.median(each) for what, each in measured.items()}
    counter = (took["counters"] - took["counter"]) / 10
    counter_slice = (took["counters"] - took["counters, one"]) / 11 / 6
    gauge = (took["gauges"] - took["gauge"]) / 10
    histogram = (took["histograms"] - took["histogram"]) / 7
    histogram_slice = (took["histograms"] - took["histograms, one"]) / 8 / 2
    return {
        "batch": took["nothing"],
        "alone": took["alone"] - took["counter"],
        "counters": took["counter"] - counter - took["nothing"],
        "counter": counter - 7 * counter_slice,
        "counter_slice": counter_slice,
        "gauges": took["gauge"] - gauge - took["nothing"],
        "gauge_slice": gauge / 7,
        "histograms": took["histogram"] - histogram - took["nothing"],
        "histogram": histogram - 3 * histogram_slice,
        "histogram_slice": histogram_slice,
        "new_slice": (took["new"] - took["old"]) / 40 / 7,
    }


#: What is measured -> kind, series, precisions, and how many such batches.
_BATCHES = {
    "nothing": ("counter", 0, 7, 1000),
    "counter": ("counter", 1, 7, 1000),
    "alone": ("counter", 1, 7, 1000),
    "counters": ("counter", 11, 7, 250),
    "counters, one": ("counter", 11, 1, 250),
    "gauge": ("gauge", 1, 7, 1000),
    "gauges": ("gauge", 11, 7, 250),
    "histogram": ("histogram", 1, 3, 800),
    "histograms": ("histogram", 8, 3, 100),
    "histograms, one": ("histogram", 8, 1, 100),
    "old": ("counter", 40, 7, 60),
    "new": ("counter", 40, 7, 60),
}


def sizes(series: Series) -> dict[str, float]:
    """Measure what goes over the wire."""

    def size(kind: str, count: int, precisions: int) -> int:
        """Return the bytes of a batch of so many series, the same ones each time."""
        return series.size(Shape(kind, count, precisions))

    nothing = size("counter", 0, 7)
    found = {"batch_bytes": float(nothing)}
    for kind, many, precisions in (("counter", 28, 7), ("gauge", 2, 7), ("histogram", 8, 3)):
        whole = size(kind, many, precisions)
        # Of each series alone, so that names of all lengths are in both.
        alone = sum(series.size(Shape(kind, 1, precisions), at) for at in range(many))
        first = (alone - whole) / (many - 1) - nothing
        each = (whole - nothing - first) / many
        by_slice = (whole - size(kind, many, 1)) / many / (precisions - 1)
        found[f"{kind}s_bytes"] = first
        if kind == "gauge":
            found["gauge_slice_bytes"] = each / precisions
        else:
            found |= {
                f"{kind}_slice_bytes": by_slice,
                f"{kind}_bytes": each - precisions * by_slice,
            }
    return found


def memory(bench: Bench, many: int) -> dict[str, float]:
    """Measure what series take, each written as it would be over time.

    Args:
        many: series of a kind.
    """
    second = int(time.time()) - 2

    def taken(write: Callable[[Shard, list[str]], object], kind: str) -> float:
        bench.empty()
        part, names = bench.shard(), _names(kind, many)[1:]
        write(part, names)
        return bench.used() / many

    def newest(part: Shard, names: list[str]) -> None:
        counts = {name: {second: 4} for name in names}
        part.write(lambda _: counter_operations(part.keys, KEPT.series, counts))

    def full(kind: str) -> float:
        return taken(lambda part, names: fill(part, KEPT, kind, names, second), kind)

    def totals(part: Shard, names: list[str]) -> None:
        part.write(lambda _: counter_operations(part.keys, {}, {name: {0: 1} for name in names}))

    def logs(part: Shard, names: list[str]) -> None:
        hour = {second // 3600 * 3600: _hour(second)}
        each = {f"shop.orders_{number}:warning": hour for number in range(len(names))}
        part.write(lambda _: message_operations(part.keys, each))

    def send_one(part: Shard, producer: str) -> None:
        with bench.wires(1) as wires:
            exchange(wires, [together([command_of(part, producer, 1, ())])])

    bench.empty()
    part = bench.shard()
    send_one(part, "a" * 32)
    watermark = bench.conn.memory_usage(part.keys.batch("a" * 32))
    assert watermark is not None, "it is there"
    return {
        "counter_memory": full("counter") + taken(totals, "counter"),
        "counter_young": taken(newest, "counter"),
        "gauge_memory": full("gauge"),
        "histogram_memory": full("histogram"),
        "logger_memory": taken(logs, "counter"),
        "watermark_memory": float(watermark),
    }


def _hour(second: int) -> LogHour:
    """Return a hundred messages of fifty patterns."""
    hour = LogHour(100)
    for number in range(50):
        pattern = f"order %d of customer %s was refused by step {number}: %s"
        text = f"order 1234567 of customer 89012 was refused by step {number}: no answer in 2.5 s"
        hour.add(pattern, PatternHour(20, second - 100.0, second + 0.5, text))
        hour.add_texts([(second + half, text) for half in (0.25, 0.75)])
    return hour


def reports(bench: Bench, processes: int) -> dict[str, float]:
    """Measure what it takes that processes tell of themselves, and what their connections take.

    Next to Costs there is "first_report": of a process that comes when all others are there, and
    needs a number; microseconds.
    """
    bench.empty()
    part = bench.shard()
    with Meter(f"unix://{bench.path}") as meter:
        health = meter.recorder_health().as_dict()
    told = {**health, "patterns": "1", "host": "shop-web-17.example", "pid": "1234567"}

    def packed(process: int) -> Packed:
        producer = f"{process:032x}"
        report = json.dumps({**told, "producer": producer, "recorded": 10**6 + process})
        sent = _Sent()
        producers.publish(cast(Link, sent), part.keys, producer, report, instance=True, ended=False)
        return Packed(sent.command, 1, applied=False)

    producers.publish(part.link, part.keys, "0" * 32, "{}", instance=False, ended=False)
    before = bench.used()
    numbers = {f"{process:032x}": process for process in range(processes)}
    bench.conn.hset(part.keys.instances, mapping=numbers)  # type: ignore[arg-type]
    everybody = [packed(process) for process in range(processes)]
    with bench.wires(20) as wires:
        exchange(wires, everybody)
        pieces = [
            Packed(b"".join(each.data for each in everybody[at : at + 20]), 20, applied=False)
            for at in range(0, processes - 19, 20)
        ]
        steady = server_time(bench, lambda: exchange(wires[:1], pieces), 20 * len(pieces))
        late = [packed(processes + number) for number in range(10)]
        first = server_time(bench, lambda: exchange(wires[:1], late), len(late))
    taken = bench.used() - before
    with bench.wires(200) as wires:
        exchange(wires, everybody[:200])
        time.sleep(3.0)  # until the server gives back what it read into
        held = [int(client["tot-mem"]) for client in bench.conn.client_list()]
    return {
        "report": steady,
        "first_report": first,
        "report_bytes": len(everybody[-1].data),
        "report_memory": taken / processes,
        "connection_memory": statistics.median(held),
    }


class _Sent:
    """What takes a command in place of a connection."""

    command = b""

    def collect(self, commands: Sequence[Command]) -> list[Reply]:
        """Keep it."""
        (command,) = commands
        self.command = as_sent(command)
        return [None]
