"""What servers hold, computed from what batches and series cost: the tables of docs/scaling.md.

The problem: no one has sixty primaries at hand to try. The idea: a process sends a number of
batches and, within them, intervals; each costs so many microseconds of the server, bytes on the
wire and so many in memory, which scaling.py measures. The rest is counting how many of them come to
the busiest primary, by the names of the series and the table of shards. What one node does with
the batches of 10,000 processes is measured as well, and held against what is computed here.

The bound: a primary is busy when its one thread is. So a cluster is full when its busiest primary
is, however idle the others are. Not covered: reading, replicas and what else runs there.

Pure: no I/O, no clock.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from redmeter.recording.buffer import FIELDS_PER_BATCH
from redmeter.recording.status import REPORT_SECONDS
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION
from redmeter.stored.shards import SHARDS, TAGS, shard_of

#: How much of the time of a primary's thread recording may take. The rest is for readers, for the
#: cleaner, for a failover, and for the hour in which everybody comes.
BUSY = 0.5
#: Bytes of data that a primary is planned with.
MEMORY = 8e9
#: How many services the load is spread over when its unevenness is computed.
SERVICES = 100


class Costs(NamedTuple):
    """What was measured: microseconds of the server; *_bytes on the wire; *_memory, bytes.

    What stands for what is told in LABELS of scaling_tables.py.
    """

    batch: float
    alone: float
    counters: float
    counter: float
    counter_slice: float
    gauges: float
    gauge_slice: float
    histograms: float
    histogram: float
    histogram_slice: float
    new_slice: float
    report: float
    batch_bytes: float
    counters_bytes: float
    counter_bytes: float
    counter_slice_bytes: float
    gauges_bytes: float
    gauge_slice_bytes: float
    histograms_bytes: float
    histogram_bytes: float
    histogram_slice_bytes: float
    report_bytes: float
    counter_memory: float
    counter_young: float
    gauge_memory: float
    histogram_memory: float
    logger_memory: float
    watermark_memory: float
    report_memory: float
    connection_memory: float
    among: float


class Workload(NamedTuple):
    """A process of a web application, and how many there are of a kind."""

    #: Series that the processes of a service share.
    counters: int = 28
    gauges: int = 2
    histograms: int = 8
    #: Gauges that each process has for itself, and seconds from one setting to the next.
    own: int = 2
    own_every: float = 5.0
    #: Processes of a service.
    sharing: int = 100
    #: Seconds from one flush to the next.
    interval: float = 1.0
    precisions: Sequence[int] = tuple(DEFAULT_RETENTION)
    histogram_precisions: Sequence[int] = tuple(DEFAULT_HISTOGRAMS)
    #: Requests of a process in a second, and what it counts, observes or sets for each.
    requests: int = 50
    events: int = 6


#: What is said of ever so many processes: the usual one.
USUAL = Workload()


class Capacity(NamedTuple):
    """What so many primaries do for a workload."""

    primaries: int
    #: Shards of the primary that has most.
    shards: int
    #: Batches of a flush, and the time of all primaries together for it, microseconds.
    batches: float
    flush: float
    #: The part of all load that the busiest primary has.
    busiest: float
    #: Processes until that one is busy.
    processes: float
    #: What they record in a second.
    events: float
    #: What comes in at the busiest one, bits a second.
    network: float
    #: What the fullest one holds for them, bytes.
    memory: float
    #: Series of the usual mix of which the fullest one holds MEMORY bytes.
    series: float


def shared_names(service: int, work: Workload) -> dict[str, list[str]]:
    """Return the series that all processes of a service share, by kind."""
    at = f'service="shop-{service:02}"'
    counters = [f"hits{{{at}}}"]
    for number in range(work.counters - 1):
        if number < 12:
            route, status = number // 3, ("2xx", "4xx", "5xx")[number % 3]
            labels = f'method="GET",route="/articles/{route}/{{id}}",{at},status="{status}"'
            counters.append(f"http_requests{{{labels}}}")
        else:
            counters.append(f"step_{number}_done{{{at}}}")
    return {
        "counter": counters,
        "gauge": [f"queue_{number}_depth{{{at}}}" for number in range(work.gauges)],
        "histogram": [
            f'http_request_seconds{{method="GET",route="/articles/{number}/{{id}}",{at}}}'
            for number in range(work.histograms)
        ],
    }


def own_names(process: int, work: Workload) -> list[str]:
    """Return the gauges that a process has for itself; its number is the store's."""
    usual = ("process_cpu_ratio", "process_memory_bytes")
    more = tuple(f"process_figure_{number}" for number in range(work.own - len(usual)))
    return [f'{name}{{instance="{process}"}}' for name in (usual + more)[: work.own]]


def touched(precisions: Iterable[int], interval: float, every: float = 0.0) -> float:
    """Return in how many intervals of all precisions there are events, on average over intervals.

    Args:
        interval: seconds.
        every: seconds between two events; 0: there is one in each interval.
    """
    most = interval / every if every else math.inf
    return sum(min(most, 1 + interval / precision) for precision in precisions)


def begun(precisions: Iterable[int], interval: float, every: float = 0.0) -> float:
    """Return how many of these intervals had no event before."""
    most = interval / every if every else math.inf
    return sum(min(most, interval / precision) for precision in precisions)


def series_us(costs: Costs, work: Workload) -> dict[str, float]:
    """Return what a series costs the server in one flush, by kind; "own" is a process's gauge."""
    slices = touched(work.precisions, work.interval)
    wide = touched(work.histogram_precisions, work.interval)
    own = touched(work.precisions, work.interval, work.own_every)
    new = begun(work.precisions, work.interval) / work.sharing
    new_own = begun(work.precisions, work.interval, work.own_every)
    return {
        "counter": costs.counter + slices * costs.counter_slice + new * costs.new_slice,
        "gauge": slices * costs.gauge_slice + new * costs.new_slice,
        "own": own * costs.gauge_slice + new_own * costs.new_slice,
        "histogram": costs.histogram + wide * costs.histogram_slice,
    }


def series_bytes(costs: Costs, work: Workload) -> dict[str, float]:
    """Return what a series takes on the wire in one flush, by kind."""
    slices = touched(work.precisions, work.interval)
    wide = touched(work.histogram_precisions, work.interval)
    own = touched(work.precisions, work.interval, work.own_every)
    return {
        "counter": costs.counter_bytes + slices * costs.counter_slice_bytes,
        "gauge": slices * costs.gauge_slice_bytes,
        "own": own * costs.gauge_slice_bytes,
        "histogram": costs.histogram_bytes + wide * costs.histogram_slice_bytes,
    }


def _batches_alone(work: Workload) -> int:
    """Return how many batches a flush is on one server: by fields, as recording/buffer.py cuts."""

    def slices(precisions: Iterable[int]) -> float:
        most = work.interval + 1
        return sum(min(most, work.interval / p + 2) for p in precisions)

    gauges = work.gauges + work.own * _with_own(work)
    fields = (work.counters + gauges) * (1 + slices(work.precisions))
    fields += work.histograms * (4 * slices(work.histogram_precisions) + 4)
    return math.ceil(fields / FIELDS_PER_BATCH)


def _with_own(work: Workload) -> float:
    """Return the part of all flushes in which a process's own gauges are."""
    return min(1.0, work.interval / work.own_every)


def primary_of(shard: int, primaries: int) -> int:
    """Return which of some primaries that share the slots evenly has a shard."""
    return (shard * 2 + 1) * primaries // (2 * SHARDS)


class _Load(NamedTuple):
    """What the processes of some services bring in one flush each, by primary, on average."""

    #: Primaries that are spoken to, batches, in how many there are series of a kind, and series.
    alone: list[float]
    batches: list[float]
    kinds: dict[str, list[float]]
    series: dict[str, list[float]]
    #: Watermarks of a process.
    watermarks: float


@lru_cache
def _load(work: Workload, primaries: int, spread: bool) -> _Load:

    def zeros() -> list[float]:
        return [0.0] * primaries

    kinds = {kind: zeros() for kind in ("counter", "gauge", "histogram")}
    load = _Load(zeros(), zeros(), kinds, {kind: zeros() for kind in series_us(_ONES, work)}, 0.0)
    often, watermarks = _with_own(work), 0
    for service in range(SERVICES):
        found: dict[str, set[int]] = {kind: set() for kind in kinds}
        for kind, names in shared_names(service, work).items():
            for name in names:
                part = shard_of(name) if spread else 0
                load.series[kind][primary_of(part, primaries)] += work.sharing
                found[kind].add(part)
        for kind, places in found.items():
            for part in places:
                kinds[kind][primary_of(part, primaries)] += work.sharing
        shared = {part for places in found.values() for part in places}
        spoken = {primary_of(part, primaries) for part in shared}
        for part in shared:
            load.batches[primary_of(part, primaries)] += work.sharing
        for primary in spoken:
            load.alone[primary] += work.sharing
        for process in range(service * work.sharing, (service + 1) * work.sharing):
            own = [shard_of(name) if spread else 0 for name in own_names(process, work)]
            for part in own:
                load.series["own"][primary_of(part, primaries)] += 1
            for part in {*own} - found["gauge"]:
                kinds["gauge"][primary_of(part, primaries)] += often
            more = {*own} - shared
            for part in more:
                load.batches[primary_of(part, primaries)] += often
            for primary in {primary_of(part, primaries) for part in more} - spoken:
                load.alone[primary] += often
            watermarks += len(shared) + len(more)
    if not spread:
        # One after the other, each when the one before was answered.
        load.batches[0] = load.alone[0] = load.batches[0] * _batches_alone(work)
    return load._replace(watermarks=watermarks / (SERVICES * work.sharing))


#: Costs that are all one: for what is counted.
_ONES = Costs(*[1.0] * len(Costs._fields))


def capacity(
    costs: Costs, work: Workload, primaries: int, *, spread: bool | None = None
) -> Capacity:
    """Compute what some primaries do for a workload.

    Args:
        primaries: that share the slots evenly.
        spread: whether there are shards; None: if there are several primaries.
    """
    spread = primaries > 1 if spread is None else spread
    load = _load(work, primaries, spread)
    flushing = SERVICES * work.sharing
    times, bits = [], []
    for primary in range(primaries):
        time = _time(costs, work, load, primary) / work.interval
        size = _size(costs, work, load, primary, spread=spread) / work.interval
        if primary == 0:  # the first shard has what processes tell of themselves
            time += flushing * (costs.report + costs.alone) / REPORT_SECONDS
            size += flushing * costs.report_bytes / REPORT_SECONDS
        times.append(time)
        bits.append(8 * size)
    processes = BUSY * 1e6 * flushing / max(times)
    reports = flushing * (costs.report + costs.alone) / REPORT_SECONDS
    most = max(Counter(primary_of(part, primaries) for part in range(SHARDS)).values())
    batches = sum(load.batches) / flushing
    share = most / SHARDS
    return Capacity(
        primaries=primaries,
        shards=most,
        batches=batches,
        flush=(sum(times) - reports) * work.interval / flushing,
        busiest=max(times) / sum(times),
        processes=processes,
        events=processes * work.requests * work.events,
        network=max(bits) * processes / flushing,
        memory=processes
        * (
            share * (load.watermarks * costs.watermark_memory + _series_memory(costs, work))
            + costs.report_memory
            + costs.connection_memory
        ),
        series=MEMORY / share / _mean_memory(costs, work),
    )


def _time(costs: Costs, work: Workload, load: _Load, primary: int) -> float:
    """Return the microseconds of a primary for one flush of everybody."""
    time = load.alone[primary] * costs.alone + load.batches[primary] * costs.batch
    for kind, count in load.kinds.items():
        time += count[primary] * float(getattr(costs, f"{kind}s"))
    each = series_us(costs, work)
    time += sum(count[primary] * each[kind] for kind, count in load.series.items())
    return costs.among * time


def _size(costs: Costs, work: Workload, load: _Load, primary: int, *, spread: bool) -> float:
    """Return the bytes that go to a primary for one flush of everybody."""
    tag = len(f"{{{TAGS[0]}}}") if spread else 0  # in each key
    slices = touched(work.precisions, work.interval)
    tagged = {
        "counter": 1 + slices,
        "gauge": slices,
        "own": touched(work.precisions, work.interval, work.own_every),
        "histogram": 4 + 2 * touched(work.histogram_precisions, work.interval),
    }
    size = load.batches[primary] * (costs.batch_bytes + 2 * tag)
    for kind, count in load.kinds.items():
        size += count[primary] * (float(getattr(costs, f"{kind}s_bytes")) + tag)
    each = series_bytes(costs, work)
    for kind, count in load.series.items():
        size += count[primary] * (each[kind] + tagged[kind] * tag)
    return size


def _series_memory(costs: Costs, work: Workload) -> float:
    """Return what the series of a process take: its own, and its part of those of its service."""
    return _mean_memory(costs, work) * _shared(work) / work.sharing + (
        work.own * _of_precisions(costs.gauge_memory, work)
    )


def _shared(work: Workload) -> int:
    return work.counters + work.gauges + work.histograms


def _mean_memory(costs: Costs, work: Workload) -> float:
    """Return what a series of the mix that a service shares takes, its retention full."""
    total = work.counters * _of_precisions(costs.counter_memory, work)
    total += work.gauges * _of_precisions(costs.gauge_memory, work)
    total += work.histograms * costs.histogram_memory
    return total / _shared(work)


def _of_precisions(memory: float, work: Workload) -> float:
    return memory * len(work.precisions) / len(DEFAULT_RETENTION)


def checked(costs: Costs, *, spread: bool) -> tuple[float, float]:
    """Return what a flush costs one server: its time, microseconds, and the bytes sent.

    Args:
        spread: whether the server has all 64 shards of a cluster.
    """
    sent = _size(costs, USUAL, _load(USUAL, 1, spread), 0, spread=spread)
    flush = capacity(costs, USUAL, 1, spread=spread).flush
    return flush, sent / SERVICES / USUAL.sharing
