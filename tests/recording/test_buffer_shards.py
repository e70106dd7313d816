"""What waits for the shards of a store on a cluster: nothing is lost, nothing goes astray."""

import math
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from redmeter.recording.buffer import FIELDS_PER_BATCH, UNPLACED, BatchContents, Buffer
from redmeter.recording.logging.marks import PendingMarks
from redmeter.recording.logging.messages import PendingLog
from redmeter.recording.pending import (
    GaugeSample,
    PendingCounter,
    PendingGauge,
    PendingSeries,
    with_instance,
)
from redmeter.recording.status import RecorderStats
from redmeter.results import Mark
from redmeter.stored.keys import Kept, Keys
from redmeter.stored.message import LogHour, PatternHour
from redmeter.stored.shards import SHARDS, shard_of
from support.examples import scaled

KEYS = Keys()
NOW = 1_700_000_000.0
HOUR = int(NOW) // 3600 * 3600
KEPT = Kept({1: 120, 60: 120, 3600: 48}, {60: 120})

PER_PROCESS = ['m{instance=""}', 'm{a="b",instance=""}', 'n{instance=""}']
counters = st.sampled_from(["a", "b", 'c{x="1"}', 'c{x="2"}', *PER_PROCESS])
gauges = st.sampled_from(["a", "g", *PER_PROCESS])
logs = st.sampled_from(["app:info", "app:error", "a:b:info", 'l{instance=""}:info'])
numbers = st.none() | st.integers(0, 3)

steps = st.lists(
    st.tuples(st.just("count"), counters, st.integers(0, 5000))
    | st.tuples(st.just("many"), counters, st.integers(1, 400))
    | st.tuples(st.just("set"), gauges, st.integers(0, 100))
    | st.tuples(st.just("log"), logs, st.integers(1, 3))
    | st.tuples(st.just("mark"), st.sampled_from(["v1", "v2"]), st.integers(0, 100))
    | st.tuples(st.just("number"), numbers, st.just(0))
    | st.tuples(st.just("take"), st.integers(0, 10**6), st.booleans())
    | st.tuples(st.just("roll_up"), st.just(""), st.integers(1, 5000)),
    max_size=30,
)


def home(kind: type[PendingSeries], name: str, instance: int | None) -> int:
    """Return the shard in which it has to lie, once it is stored."""
    if kind is PendingMarks:
        return 0
    if kind is PendingLog:
        return shard_of(name.rpartition(":")[0])
    return shard_of(with_instance(name, instance))


def hour_of(messages: int) -> LogHour:
    """Return an hour in which so many messages were logged."""
    hour = LogHour(10)
    hour.add("hello", PatternHour(messages, NOW, NOW, "hello"))
    return hour


def add(
    buffer: Buffer, stats: RecorderStats, what: str, name: Any, number: int, now: float
) -> None:
    """Have something happen."""
    events: list[tuple[type[PendingSeries], Any, float, Any]] = []
    match what:
        case "count":
            events.append((PendingCounter, name, now - number, 1))
        case "many":
            events += [(PendingCounter, name, now + second, 1) for second in range(number)]
        case "set":
            events.append((PendingGauge, name, now - number, GaugeSample(now - number, 1.0)))
        case "log":
            events.append((PendingLog, name, HOUR, hour_of(number)))
        case "mark":
            events.append((PendingMarks, "marks", now - number, [Mark(now - number, name)]))
    for kind, series, time, value in events:
        stats.recorded += kind.events_of(value)
        buffer.add(kind, series, time, value, now)


def events_of(batches: list[BatchContents]) -> Counter[tuple[type[PendingSeries], str]]:
    """Return how many events of each series are in parts."""
    found: Counter[tuple[type[PendingSeries], str]] = Counter()
    for batch in batches:
        for kind, _, name, pending in batch.pending():
            found[kind, name] += pending.events
    return found


@settings(max_examples=scaled(200))
@given(steps)
def test_everything_comes_out_once_and_in_its_shard(steps: list[Any]) -> None:
    """By the name as it is stored, whatever number the process has then; and fits a batch."""
    stats = RecorderStats(NOW)
    buffer = Buffer(KEPT, stats, math.inf, shard_of)
    instance, sent, now = None, list[BatchContents](), NOW

    def check(batch: BatchContents | None, number: int) -> None:
        if batch is None:
            return
        assert 0 < batch.fields <= FIELDS_PER_BATCH
        for kind, _, name, _ in batch.pending():
            assert home(kind, name, instance) == number
            assert instance is not None or kind is PendingLog or name not in PER_PROCESS

    for what, name, number in steps:
        if what == "number":
            instance = name
        elif what == "take":
            waiting = sorted(buffer.numbers - {UNPLACED}) or [0]
            chosen = waiting[name % len(waiting)]
            batch = buffer.take(chosen, instance=instance)
            check(batch, chosen)
            if batch and number:
                buffer.put_back(batch)
            elif batch:
                sent.append(batch)
        elif what == "roll_up":
            now += number
            buffer.roll_up(now)
        else:
            add(buffer, stats, what, name, number, now)
    instance = 7
    for number in range(SHARDS):
        while batch := buffer.take(number, instance=instance):
            check(batch, number)
            sent.append(batch)
    assert not buffer.numbers
    assert sum(events_of(sent).values()) == stats.buffered


@given(st.sampled_from(PER_PROCESS), st.integers(0, 50), st.integers(0, 50))
def test_a_batch_keeps_the_number_that_it_was_taken_for(name: str, one: int, other: int) -> None:
    """What comes later may go elsewhere, under another number."""
    buffer = Buffer(KEPT, RecorderStats(NOW), math.inf, shard_of)
    for instance in (one, other):
        buffer.add(PendingGauge, name, NOW, GaugeSample(NOW, 1.0), NOW)
        assert all(buffer.take(number) is None for number in range(SHARDS))
        stored = with_instance(name, instance)
        batch = buffer.take(shard_of(stored), instance=instance)
        assert batch is not None
        keys = [key for made in batch.operations(KEYS, KEPT) for key in made.keys]
        assert {KEYS.series_of(key) for key in keys} >= {(60, stored)}
        assert not buffer.numbers


def test_a_limit_is_for_all_shards_together() -> None:
    """Slices roll_up before their time wherever they lie."""
    stats = RecorderStats(NOW)
    buffer = Buffer(KEPT, stats, 40_000, shard_of)
    for number in range(60):
        for second in range(120):
            buffer.add(PendingCounter, f"n{number}", NOW - second, 1, NOW)
            stats.recorded += 1
    assert buffer.bytes > 80_000
    buffer.shrink(NOW)
    assert buffer.bytes <= 40_000
    batches = []
    for number in buffer.numbers:
        while batch := buffer.take(number):
            batches.append(batch)
    assert sum(events_of(batches).values()) == stats.buffered == 7200
