"""Logs: messages in a buffer, and what gives way there where memory is short."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from redmeter.recording.buffer import Buffer
from redmeter.recording.logging.messages import PendingLog
from redmeter.recording.pending import PendingCounter
from redmeter.recording.status import RecorderStats
from redmeter.results import Loss
from redmeter.stored.keys import HOUR, OTHER, Kept, Keys
from redmeter.stored.message import MAX_HOURLY_PATTERNS, LogHour, PatternHour
from support.messages import NOON, digest


def test_a_run_adds_up_what_comes_in_parts() -> None:
    """By hour, and may be cut and put together again."""
    pending = PendingLog()
    for event in ((NOON, None, "a"), (NOON + 1, None, "a"), (NOON - 5, None, "b")):
        for start, hour in digest(event).items():
            pending.add(start, hour)
    assert (len(pending), pending.events, pending.first, pending.last) == (2, 3, NOON - HOUR, NOON)
    assert pending.older(NOON) == 1
    batch = pending.cut(1)
    assert (batch.events, pending.events) == (1, 2)
    assert pending.fields((HOUR,)) == 1 + 2 + 3
    assert pending.fields(()) == 1 + 2  # older than any hour that is kept
    assert pending.bytes > 0
    kept = Kept({1: 1}, {1: 1})
    assert PendingLog.retention(kept) == {HOUR: 2}
    codes = [o.code for o in PendingLog.operations(Keys(), kept, {"app:info": pending}, HOUR)]
    assert codes == ["push", "steps", "tally", "seen", "touch"]
    assert [o.code for o in PendingLog.operations(Keys(), kept, {"app:info": pending}, 0)] == [
        "push",
        "touch",
    ]


def test_many_patterns_are_sent_in_several_batches() -> None:
    """So that none takes the server long; the texts come with the last."""
    stats = RecorderStats(NOON)
    buffer = Buffer(Kept({1: 9}, {1: 9}), stats, 2**30)
    events = [(NOON + n / 1000, f"p{n} %s", f"text {n}") for n in range(1200)]
    for start, hour in digest(*events, (NOON - 5, "late %s", "late")).items():
        buffer.add(PendingLog, "app:info", start, hour, NOON)
    counts: Counter[str] = Counter()
    pushed: list[int] = []
    while (batch := buffer.take()) is not None:
        assert batch.fields <= 500
        made = {o.code: o for o in batch.operations(Keys(), Kept({}, {}))}
        pushed.append(len(made["push"].args) if "push" in made else 0)
        for _, _, _, pending in batch.pending():
            for _, hour in pending:
                counts.update({p: g.events for p, g in hour.patterns.items()})
                assert hour.events == sum(g.events for g in hour.patterns.values())
        assert batch.events == sum(pending.events for _, _, _, pending in batch.pending())
    assert len(pushed) > 3
    assert pushed[-1] > 100
    assert not any(pushed[1:-1])
    assert len(counts) == MAX_HOURLY_PATTERNS + 2
    assert counts["… (2 words)"] == 200
    assert sum(counts.values()) == 1201


def test_in_a_buffer_messages_are_counted_while_their_hour_is_kept() -> None:
    """Afterwards they are only among the newest, and that is written down."""
    stats = RecorderStats(NOON)
    buffer = Buffer(Kept({1: 9}, {1: 9}), stats, 2**30)
    for text, at in (("new", NOON), ("late", NOON - 1.5 * HOUR), ("old", NOON - 9 * HOUR)):
        for start, hour in digest((at, None, text)).items():
            buffer.add(PendingLog, 'a{instance=""}:info', start, hour, NOON)
    stats.recorded = 3
    batch = buffer.take()  # also while this process has no number
    assert batch is not None
    buffer.put_back(batch)
    batch = buffer.take(instance=7)
    assert batch is not None
    made = batch.operations(Keys(), Kept({}, {}))
    # The name of a logger is no series' name, whatever it looks like.
    assert made[0].keys == ('redmeter:recent:a{instance=""}:info',)
    # What is oldest comes first, or it would push out what is new.
    assert [o.code for o in made] == ["push", "touch", "push", "steps", "tally", "seen", "touch"]
    assert "old" in str(made[0].args)
    assert {"new", "late"} <= {*made[3].args}
    losses = stats.health(producer="", instance=None).losses
    assert losses == (Loss("aged", 'a{instance=""}:info', HOUR, 1),)


def flood(buffer: Buffer, logs: int, patterns: int = 500) -> None:
    """Fill a buffer with messages, each log with one more pattern than the one before."""
    for log in range(logs):
        events = [(NOON + n, f"p{n} {'x' * 100} %s", "y" * 900) for n in range(patterns + log)]
        for start, hour in digest(*events).items():
            buffer.add(PendingLog, f"log{log}:info", start, hour, NOON)


def test_messages_push_no_number_out_of_the_buffer() -> None:
    """They take what numbers leave, or half of the limit; their texts go first, and are told."""
    stats = RecorderStats(NOON)
    buffer = Buffer(Kept({1: 120, 60: 120}, {1: 9}), stats, 1_000_000)
    for second in range(60):
        buffer.add(PendingCounter, "hits", NOON + second, 1, NOON + 60)
    flood(buffer, 8)
    stats.recorded = 60 + sum(500 + n for n in range(8))
    assert buffer.bytes > 2_000_000
    buffer.shrink(NOON + 60)
    assert 900_000 < buffer.bytes <= 1_000_000
    losses = stats.health(producer="", instance=None).losses
    assert {(loss.reason, loss.precision) for loss in losses} == {("memory", 0)}
    assert not [loss for loss in losses if loss.series == "hits"]
    batch, events, hits = buffer.take(), 0, 0
    while batch is not None:
        for kind, _, _, pending in batch.pending():
            events += pending.events
            hits += len(pending) if kind is PendingCounter else 0
        batch = buffer.take()
    assert (events, hits) == (stats.recorded, 60)


def test_numbers_give_way_for_what_numbers_take() -> None:
    """With messages beside them that take their half at most."""
    stats = RecorderStats(NOON)
    buffer = Buffer(Kept({1: 120, 60: 120}, {1: 9}), stats, 400_000)
    for series in range(400):
        for second in range(100):
            buffer.add(PendingCounter, f"s{series}", NOON + second, 1, NOON + 100)
    flood(buffer, 4)
    buffer.shrink(NOON + 100)
    assert buffer.bytes <= 400_000
    logs = sum(pending.bytes for kind, _, _, pending in buffer._pending() if kind is PendingLog)
    assert 150_000 < logs <= 200_000
    assert stats.health(producer="", instance=None).lost()["memory"].keys() == {0, 1}


def test_messages_do_not_get_older_for_the_sake_of_numbers() -> None:
    """However much numbers roll_up: what was logged this hour is counted in it."""
    buffer = Buffer(Kept({1: 120, 60: 120}, {1: 9}), RecorderStats(NOON), 65_000)
    for series in range(400):
        buffer.add(PendingCounter, f"s{series}", NOON, 1, NOON)
    flood(buffer, 1, patterns=3)
    buffer.shrink(NOON)
    assert {width for kind, width, _, _ in buffer._pending() if kind is PendingLog} == {HOUR}


def test_of_what_is_given_up_the_largest_log_gives_first() -> None:
    """And a small one keeps all it has, where that is enough."""
    stats = RecorderStats(NOON)
    buffer = Buffer(Kept({1: 9}, {1: 9}), stats, 300_000)
    flood(buffer, 1)
    for start, hour in digest((NOON, None, "small")).items():
        buffer.add(PendingLog, "small:info", start, hour, NOON)
    buffer.shrink(NOON)
    assert {loss.series for loss in stats.health(producer="", instance=None).losses} == {
        "log0:info"
    }


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 9)), max_size=30))
def test_whatever_is_given_up_the_books_of_an_hour_add_up(some: list[tuple[str, int]]) -> None:
    """Its messages and its bytes, whichever of it goes."""
    hour = LogHour(3)
    for at, (pattern, count) in enumerate(some):
        hour.add(pattern, PatternHour(count, at, at, pattern * count))
        hour.add_texts([(at, pattern)])
    events = hour.events
    for give_up in (hour.give_up_texts, hour.give_up_samples, hour.give_up_patterns):
        give_up(100)
        give_up(10**9)
        same = LogHour(3)
        for pattern, group in hour.patterns.items():
            same.add(pattern, group)
        same.add_texts(hour.texts)
        assert (same.bytes, same.events) == (hour.bytes, events)
    assert set(hour.patterns) <= {OTHER}
    assert hour.texts == []
