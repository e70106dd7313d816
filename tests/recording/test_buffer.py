"""Buffer: whatever becomes of an event there, it comes out, or the stats says what lacks it."""

import math
from collections import Counter
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redmeter.recording.buffer import FIELDS_PER_BATCH, SERIES_BYTES, BatchContents, Buffer
from redmeter.recording.pending import GaugeSample, PendingCounter, PendingGauge
from redmeter.recording.status import RecorderStats
from redmeter.results.recorder import AGED, MEMORY, OVERFLOW, RETENTION, TOTAL
from redmeter.stored.intervals import parse_runs
from redmeter.stored.keys import DEFAULT_RETENTION, MAX_TIME, Kept, Keys
from support.examples import scaled

MAX = 2**63 - 1
KEYS = Keys()
NOW = 1_700_000_000.0

#: (series, precision) -> slice start -> how many; of gauges, time and value.
Slices = dict[tuple[str, int], dict[int, Any]]

retentions = st.sampled_from(
    [
        {1: 120, 5: 120, 60: 120},
        {1: 5, 7: 10, 60: 3},
        {5: 3, 300: 2},
        {60: 10},
        {1: 2, 5: 60, 60: 4, 300: 1},
        DEFAULT_RETENTION,
    ]
)
names = st.sampled_from(["a", 'b{x="1"}', "c"])
#: When an event happened, seconds before the present.
ages = (
    st.integers(-3, 8)
    | st.integers(0, 1000).map(lambda eighths: eighths / 8)
    | st.integers(-(10**4), 10**5)
)
steps = st.lists(
    st.tuples(st.just("add"), names, ages, st.integers(0, 9))
    | st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 7.0, 60.0, 130.0, 3600.0, 86400.0]))
    | st.tuples(st.sampled_from(["roll_up", "take", "send", "back"])),
    max_size=40,
)


def slices_of(
    batches: list[BatchContents], retention: dict[int, int]
) -> tuple[Slices, Counter[str]]:
    """Take the operations of parts apart: what each slice gets, and each grand total."""
    slices: Slices = {}
    totals: Counter[str] = Counter()
    for batch in batches:
        for made in batch.operations(KEYS, Kept(retention, {})):
            if made.code == "add":
                assert set(made.keys) == {KEYS.total}
                for name, amount in zip(made.args[::2], made.args[1::2], strict=True):
                    totals[name] += int(amount)
                continue
            rows = parse_runs(made.args[-1])
            for key, (precision, samples, text, held_text) in zip(made.keys[1:], rows, strict=True):
                start = int(text)
                assert samples == retention[precision]
                found = KEYS.series_of(key)
                assert found is not None
                assert found[0] == precision
                held = slices.setdefault((found[1], precision), {})
                if made.code == "slice":
                    held[start] = held.get(start, 0) + int(held_text)
                else:
                    value, time = map(float, held_text.split())
                    held[start] = max(held.get(start, (time, value)), (time, value))
    return slices, totals


def lost(stats: RecorderStats) -> Counter[tuple[str, int]]:
    """Return what was written down as lost: (series, precision) -> events."""
    found: Counter[tuple[str, int]] = Counter()
    for loss in stats.health(producer="", instance=None).losses:
        assert loss.reason in (AGED, MEMORY, OVERFLOW, RETENTION)
        found[loss.series, loss.precision] += loss.events
    return found


def all_of(buffer: Buffer) -> list[BatchContents]:
    """Take everything out."""
    batches = []
    while (batch := buffer.take()) is not None:
        batches.append(batch)
    return batches


def events_of(batches: list[BatchContents]) -> int:
    """Return how many events are in parts."""
    return sum(batch.events for batch in batches)


# --- Nothing is lost untold ----------------------------------------------------------------


@settings(max_examples=scaled(150))
@given(retentions, steps, st.sampled_from([math.inf, 0, 700, 2000]))
def test_each_precision_gets_every_event_or_the_tally_says_that_it_lacks_it(
    retention: dict[int, int], steps: list[Any], limit: float
) -> None:
    """In the right slice; also after batches were taken and put back; totals get everything."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept(retention, {}), stats, limit)
    recorded: Slices = {}
    totals: Counter[str] = Counter()
    now, sent, waiting = NOW, list[BatchContents](), list[BatchContents]()
    for step in steps:
        match step:
            case ("add", name, age, amount):
                buffer.add(PendingCounter, name, now - age, amount, now)
                stats.recorded += amount
                totals[name] += amount
                for precision in retention:
                    held = recorded.setdefault((name, precision), {})
                    start = math.floor(now - age) // precision * precision
                    held[start] = held.get(start, 0) + amount
            case ("pass", seconds):
                now += seconds
            case ("roll_up",):
                buffer.roll_up(now)
            case ("take",):
                if batch := buffer.take():
                    waiting.append(batch)
            case ("send",) if waiting:
                sent.append(waiting.pop())
            case ("back",) if waiting:
                buffer.put_back(waiting.pop())
    batches = [*sent, *waiting, *all_of(buffer)]
    assert events_of(batches) == stats.recorded - stats.dropped
    assert stats.dropped == 0
    made, made_totals = slices_of(batches, retention)
    assert +made_totals == +totals
    told = lost(stats)
    for at, expected in recorded.items():
        found = made.get(at, {})
        assert all(amount <= expected.get(start, 0) for start, amount in found.items())
        assert sum(found.values()) + told[at] == sum(expected.values())
    assert made.keys() <= recorded.keys()


@settings(max_examples=scaled(100))
@given(retentions, steps, st.sampled_from([math.inf, 0, 700]))
def test_a_gauge_comes_out_with_the_newest_value_of_each_slice_or_the_tally_says_so(
    retention: dict[int, int], steps: list[Any], limit: float
) -> None:
    """Of slices of which nothing was given up exactly the newest; the events all add up."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept(retention, {}), stats, limit)
    recorded: Slices = {}
    now, taken = NOW, list[BatchContents]()
    for value, step in enumerate(steps):
        match step:
            case ("add", name, age, _):
                time = now - age
                buffer.add(PendingGauge, name, time, GaugeSample(time, float(value)), now)
                stats.recorded += 1
                for precision in retention:
                    held = recorded.setdefault((name, precision), {})
                    start = math.floor(time) // precision * precision
                    held[start] = max(held.get(start, (time, 0.0)), (time, float(value)))
            case ("pass", seconds):
                now += seconds
            case ("roll_up",):
                buffer.roll_up(now)
            case ("take",):
                if batch := buffer.take():
                    taken.append(batch)
            case ("back",) if taken:
                buffer.put_back(taken.pop())
    batches = [*taken, *all_of(buffer)]
    assert events_of(batches) + stats.dropped == stats.recorded
    made, totals = slices_of(batches, retention)
    assert not totals
    told = lost(stats)
    for at, expected in recorded.items():
        found = made.get(at, {})
        assert found.keys() <= expected.keys()
        if not told[at]:
            times = {start: time for start, (time, _) in found.items()}
            assert times == {start: time for start, (time, _) in expected.items()}
        elif told[at] == sum(name == at[0] for _, name in _settings_of(steps)):
            assert not found


def _settings_of(steps: list[Any]) -> list[tuple[str, str]]:
    return [(step[0], step[1]) for step in steps if step[0] == "add"]


def test_a_day_of_outage_leaves_the_day_and_says_what_the_rest_lack() -> None:
    """Precision by precision, as each loses sight of it: too old, not for want of memory."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept({1: 120, 60: 120, 86400: 120}, {}), stats, math.inf)
    for second in range(100):
        buffer.add(PendingCounter, "a", NOW + second, 2, NOW + second)
    assert lost(stats) == {}
    buffer.roll_up(NOW + 1 + 121 + 50)
    assert lost(stats) == {("a", 1): 2 * 50}  # slices whose newest event is over 121 s old
    buffer.roll_up(NOW + 3600)
    assert lost(stats) == {("a", 1): 200}
    buffer.roll_up(NOW + 86400)
    assert lost(stats) == {("a", 1): 200, ("a", 60): 200}
    slices, totals = slices_of(all_of(buffer), {1: 120, 60: 120, 86400: 120})
    assert slices == {("a", 86400): {int(NOW) // 86400 * 86400: 200}}
    assert totals == {"a": 200}
    health = stats.health(producer="", instance=None)
    assert health.lost() == {AGED: {1: 200, 60: 200}}


def test_a_slice_past_63_bits_gives_up_what_is_too_much_and_says_so() -> None:
    """Whole: neither a slice nor the grand total has it."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept({1: 120, 60: 120}, {}), stats, math.inf)
    stats.recorded = MAX + 5
    buffer.add(PendingCounter, "a", NOW, MAX, NOW)
    buffer.add(PendingCounter, "a", NOW, 5, NOW)
    assert stats.dropped == 5
    assert stats.buffered == MAX
    assert lost(stats) == {("a", 1): 5, ("a", 60): 5, ("a", TOTAL): 5}
    _, totals = slices_of(all_of(buffer), {1: 120, 60: 120})
    assert totals == {"a": MAX}


def test_events_before_1970_lie_in_the_slice_that_had_begun() -> None:
    """Second -1 in the minute from -60 on."""
    stats = RecorderStats(0.0)
    buffer = Buffer(Kept({1: 120, 60: 120}, {}), stats, math.inf)
    buffer.add(PendingCounter, "a", -0.5, 1, 0.0)
    buffer.add(PendingCounter, "a", -60.0, 2, 0.0)
    buffer.add(PendingCounter, "a", -60.5, 4, 0.0)
    slices, _ = slices_of(all_of(buffer), {1: 120, 60: 120})
    assert slices == {("a", 1): {-1: 1, -60: 2, -61: 4}, ("a", 60): {-60: 3, -120: 4}}


def test_old_events_before_1970_lie_in_the_right_minute_too() -> None:
    """Remembered by their minute at once, since no second of that age is kept."""
    stats = RecorderStats(0.0)
    buffer = Buffer(Kept({1: 120, 60: 120}, {}), stats, math.inf)
    buffer.add(PendingCounter, "a", -601.0, 1, 0.0)
    buffer.add(PendingCounter, "a", -10.0, 2, 0.0)
    buffer.roll_up(600.0)
    slices, _ = slices_of(all_of(buffer), {1: 120, 60: 120})
    assert slices == {("a", 60): {-660: 1, -60: 2}}
    assert lost(stats) == {("a", 1): 3}


# --- A retention that changes --------------------------------------------------------------


def test_after_a_change_of_retention_what_is_there_comes_out_still() -> None:
    """What was remembered by 5 s makes no 7 s; those get what is counted from now on."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept({5: 120, 60: 120}, {}), stats, math.inf)
    buffer.add(PendingCounter, "a", NOW, 1, NOW)
    wanted = {7: 120, 60: 120}
    buffer.retain(Kept(wanted, {}))
    assert buffer.precisions(PendingCounter) == (7, 60)
    buffer.add(PendingCounter, "a", NOW, 2, NOW)
    buffer.roll_up(NOW + 1)
    slices, totals = slices_of(all_of(buffer), wanted)
    assert totals == {"a": 3}
    assert {at: sum(held.values()) for at, held in slices.items()} == {("a", 7): 2, ("a", 60): 3}
    assert lost(stats) == {("a", 7): 1}


def test_what_was_taken_out_before_a_change_of_retention_lacks_what_came() -> None:
    """By the minute, or by nothing but the grand total: neither makes seconds."""
    buffer = Buffer(Kept({60: 120}, {}), RecorderStats(NOW), math.inf)
    for age, amount in ((0, 2), (10**5, 3)):
        buffer.add(PendingCounter, "a", NOW - age, amount, NOW)
    (batch,) = all_of(buffer)
    assert list(batch.lacking(Kept({60: 120}, {}))) == []
    assert sorted(batch.lacking(Kept({1: 9, 60: 120, 120: 9}, {}))) == [
        ("a", (1,), 2),
        ("a", (1, 120), 3),
    ]


def test_the_newest_events_of_a_series_come_last_in_a_batch() -> None:
    """A hash that is new lives as long as what was written to it last needs."""
    buffer = Buffer(Kept({1: 120, 5: 120}, {}), RecorderStats(NOW), math.inf)
    for age in (-60, 300, 0):
        buffer.add(PendingCounter, "a", NOW - age, 1, NOW)
    (batch,) = all_of(buffer)
    first, *_ = batch.operations(KEYS, Kept({5: 120}, {}))
    starts = [int(start) for _, _, start, _ in parse_runs(first.args[-1])]
    assert starts[0] == min(starts)


# --- Memory --------------------------------------------------------------------------------


@settings(max_examples=scaled(60))
@given(
    retentions,
    st.lists(st.tuples(names, st.integers(-(10**5), 10**7)), max_size=60),
    st.sampled_from([0, 1000, 3000]),
)
def test_a_small_limit_is_kept_and_the_grand_totals_stay_right(
    retention: dict[int, int], events: list[tuple[str, int]], limit: float
) -> None:
    """What always remains is a number for each series."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept(retention, {}), stats, limit)
    for name, age in events:
        buffer.add(PendingCounter, name, NOW - age, 1, NOW)
        buffer.add(PendingGauge, "g" + name, NOW - age, GaugeSample(NOW - age, 1.0), NOW)
        stats.recorded += 2
        buffer.shrink(NOW)
        widths = {width for _, width, _, _ in buffer._pending()}
        # What is left where that is not enough is what is not given up.
        assert buffer.bytes <= limit or widths <= {0, buffer._resolution(PendingCounter).widest}
    batches = all_of(buffer)
    assert events_of(batches) + stats.dropped == stats.recorded
    _, totals = slices_of(batches, retention)
    assert totals == Counter(name for name, _ in events)
    assert buffer.bytes == 0


def test_events_of_the_far_future_give_way_too() -> None:
    """As far ahead as a time may lie."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept(DEFAULT_RETENTION, {}), stats, 1000)
    for ahead in range(1, 1001):
        buffer.add(PendingCounter, "a", MAX_TIME - ahead, 1, NOW)
    buffer.shrink(NOW)
    assert buffer.bytes <= 1000
    _, totals = slices_of(all_of(buffer), DEFAULT_RETENTION)
    assert totals == {"a": 1000}


def test_where_memory_is_short_the_oldest_fine_slices_go_first() -> None:
    """The seconds of what is oldest; it is told that it was for want of memory."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept({1: 120, 60: 120}, {}), stats, SERIES_BYTES * 2 + 70 * 16)
    for second in range(100):
        buffer.add(PendingCounter, "a", NOW - 99 + second, 1, NOW)
    buffer.shrink(NOW)
    ((series, precision), events), *more = lost(stats).items()
    assert (series, precision, more) == ("a", 1, [])
    assert 25 <= events < 100
    assert set(stats.health(producer="", instance=None).lost()) == {MEMORY}
    slices, _ = slices_of(all_of(buffer), {1: 120, 60: 120})
    assert sorted(slices["a", 1]) == [int(NOW) - 99 + n for n in range(events, 100)]
    assert sum(slices["a", 60].values()) == 100


def test_what_is_enough_is_not_touched() -> None:
    """Fading a young buffer loses nothing."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept(DEFAULT_RETENTION, {}), stats, math.inf)
    for second in range(100):
        buffer.add(PendingCounter, "a", NOW + second, 1, NOW + second)
    before = buffer.bytes
    buffer.shrink(NOW + 110)
    assert buffer.bytes == before == SERIES_BYTES + 100 * 16
    assert lost(stats) == {}


# --- Parts ---------------------------------------------------------------------------------


@settings(max_examples=scaled(40))
@given(
    retentions,
    st.dictionaries(st.integers(0, 40), st.sets(st.integers(0, 600), max_size=200), max_size=8),
    st.sampled_from([PendingCounter, PendingGauge]),
)
def test_each_part_fits_a_batch_and_none_is_lost_between_them(
    retention: dict[int, int], series: dict[int, set[int]], kind: Any
) -> None:
    """No part has more fields than said, nor more than a batch takes."""
    stats = RecorderStats(NOW)
    buffer = Buffer(Kept(retention, {}), stats, math.inf)
    for number, seconds in series.items():
        for second in seconds:
            time = NOW - second
            value = 1 if kind is PendingCounter else GaugeSample(time, 1.0)
            buffer.add(kind, f"n{number}", time, value, NOW)
            stats.recorded += 1
    batches = all_of(buffer)
    for batch in batches:
        assert batch.fields <= FIELDS_PER_BATCH
        made = batch.operations(KEYS, Kept(retention, {}))
        # Each operation on slices has its index among its keys.
        assert sum(len(o.keys) - (o.code != "add") for o in made) <= batch.fields
    assert events_of(batches) == stats.buffered
    for one, other in pairwise(batches):
        assert one.fields + other.fields > FIELDS_PER_BATCH / 4
    assert buffer.take() is None


def test_a_series_of_very_many_slices_comes_out_whole() -> None:
    """In as many parts as it takes, the oldest first; events of the future have such series."""
    buffer = Buffer(Kept({1: 120, 60: 120}, {}), RecorderStats(NOW), math.inf)
    for second in range(5000):
        buffer.add(PendingCounter, "a", NOW + second, 1, NOW)
    batches = all_of(buffer)
    assert max(batch.fields for batch in batches) <= FIELDS_PER_BATCH
    starts = [
        start for batch in batches for _, _, _, pending in batch.pending() for start, _ in pending
    ]
    assert starts == [int(NOW) + second for second in range(5000)]


def test_parts_of_many_series_are_filled_up() -> None:
    """Ten thousand series of one event each, at seven precisions and with a total each."""
    buffer = Buffer(Kept(DEFAULT_RETENTION, {}), RecorderStats(NOW), math.inf)
    for number in range(10_000):
        buffer.add(PendingCounter, f"n{number}", NOW, 1, NOW)
    batches = all_of(buffer)
    each = FIELDS_PER_BATCH // 8
    assert [batch.events for batch in batches[:-1]] == [each] * (10_000 // each)
    assert events_of(batches) == 10_000


def test_a_part_that_was_put_back_comes_out_again_merged_with_what_came_since() -> None:
    """As if it had never been taken."""
    buffers = [Buffer(Kept({1: 120, 60: 120}, {}), RecorderStats(NOW), math.inf) for _ in range(2)]
    for number, buffer in enumerate(buffers):
        for second in range(5):
            buffer.add(PendingCounter, "a", NOW + second, 1, NOW)
            buffer.add(
                PendingGauge, "g", NOW + second, GaugeSample(NOW + second, float(second)), NOW
            )
        batch = buffer.take() if number else None
        for second in range(3, 8):
            buffer.add(PendingCounter, "a", NOW + second, 10, NOW)
        buffer.add(PendingGauge, "g", NOW + 2.5, GaugeSample(NOW + 2.5, 9.0), NOW)
        if batch:
            buffer.put_back(batch)
    one, other = (slices_of(all_of(buffer), {1: 120, 60: 120}) for buffer in buffers)
    assert one == other
    assert one[1] == {"a": 55}


def test_what_comes_back_after_a_change_says_what_it_lacks() -> None:
    """It was not there when the change came; the same is said once, of what was there."""
    before, after = Kept({60: 120}, {}), Kept({60: 120, 90: 120}, {})
    stats = RecorderStats(NOW)
    buffer = Buffer(before, stats, math.inf)
    buffer.add(PendingCounter, "a", NOW - 1000, 3, NOW)
    batch = buffer.take()
    assert batch is not None
    buffer.add(PendingCounter, "b", NOW - 1000, 4, NOW)
    buffer.retain(after)
    buffer.put_back(batch)
    batch = buffer.take()
    assert batch is not None
    buffer.put_back(batch)
    losses = stats.health(producer="", instance=None).losses
    found = {(loss.reason, loss.series, loss.precision): loss.events for loss in losses}
    assert found == {(RETENTION, "a", 90): 3, (RETENTION, "b", 90): 4}


def test_an_empty_buffer_gives_no_part() -> None:
    """Nor after its last part was taken."""
    buffer = Buffer(Kept({60: 120}, {}), RecorderStats(NOW), math.inf)
    assert buffer.take() is None
    buffer.add(PendingCounter, "a", NOW, 0, NOW)
    assert buffer.take() is not None
    assert buffer.take() is None


@pytest.mark.parametrize("after", range(6))
def test_what_was_taken_out_goes_back_where_something_fails(after: int) -> None:
    """Wherever it does: in the first run, in a later one, in one that is too large for a batch."""

    class Brittle(PendingCounter):
        left = after

        def fields(self, precisions: Collection[int]) -> int:
            Brittle.left -= 1
            if Brittle.left < 0:
                raise ZeroDivisionError
            return super().fields(precisions)

    def content() -> dict[tuple[str, int], int]:
        return {(name, at): n for _, _, name, pending in buffer._pending() for at, n in pending}

    stats = RecorderStats(NOW)
    buffer = Buffer(Kept({60: 120}, {}), stats, math.inf)
    for name, slices in (("a", 2), ("b", 3), ("long", 4 * FIELDS_PER_BATCH)):
        for number in range(slices):
            buffer.add(Brittle, name, NOW + 60 * number, number, NOW)
    before = content()
    with pytest.raises(ZeroDivisionError):
        buffer.take()
    assert content() == before
    Brittle.left = 10**9
    batches = []
    while batch := buffer.take():
        batches.append(batch)
    taken = {
        (name, at): n
        for batch in batches
        for _, _, name, pending in batch.pending()
        for at, n in pending
    }
    assert taken == before


# --- The books -----------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**62), min_size=4, max_size=4))
def test_the_books_add_up(numbers: list[int]) -> None:
    """What was taken in and is neither stored, uncertain nor given up is buffered."""
    stats = RecorderStats(NOW)
    buffered, stats.stored, stats.uncertain, dropped = numbers
    stats.recorded = sum(numbers)
    stats.drop(OVERFLOW, "a", (1, 60), dropped)
    stats.record_loss(AGED, "a", (1,), 0)
    health = stats.health(producer="p", instance=None, fresh=3)
    assert health.buffered == buffered + 3
    assert health.recorded == sum(numbers) + 3
    assert health.recorded == (health.stored + health.buffered + health.uncertain + health.dropped)
    expected = {OVERFLOW: {TOTAL: dropped, 1: dropped, 60: dropped}} if dropped else {}
    assert health.lost() == expected


@pytest.mark.parametrize("times", [1, 3])
def test_trouble_is_counted_by_its_kind(times: int) -> None:
    """And the last text is kept."""
    stats = RecorderStats(NOW)
    for number in range(times):
        stats.record_error("OOM", f"text {number}")
    health = stats.health(producer="p", instance=7)
    assert (health.troubles, health.last_trouble) == ({"OOM": times}, f"text {times - 1}")
    assert (health.producer, health.instance, health.started) == ("p", 7, NOW)
