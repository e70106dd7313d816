"""Observations: values that are merged now and then, and runs of distributions."""

import decimal
import fractions
import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.clock import ManualClock
from redmeter.recording.buffer import Buffer
from redmeter.recording.events import HistogramEvents
from redmeter.recording.instruments import NOW, Gauge, Histogram, Instrument, histogram_class
from redmeter.recording.pending import IntervalFull, NonFiniteCount, NotFinite, PendingHistogram
from redmeter.recording.status import RecorderStats
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.histogram import histogram_operations
from redmeter.stored.keys import HOUR, Kept, Keys
from redmeter.stored.packed_text import MAX_INTERVAL_VALUES
from support.recorders import sent

KEYS = Keys()
KEPT = Kept({60: 120}, {5: 24, 60: 120, 3600: 120})

times = st.integers(-6, 6).flatmap(lambda n: st.sampled_from([n, n + 0.25, n + 0.75])) | st.floats(
    -(2.0**40), 2.0**40
)
values = st.floats(-1e9, 1e9) | st.sampled_from([math.nan, math.inf, -math.inf])
events = st.lists(st.tuples(times, values), max_size=40)


class Attendant:
    """Notes which cells it was called to, and how many events they had."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def attend(self, cell: Instrument) -> None:
        """See InstrumentOwner in instruments.py."""
        self.seen.append(len(cell._events) // cell._LIST.ELEMENTS)

    def record_error(self, kind: str, text: str) -> None:
        """See InstrumentOwner in instruments.py."""

    def process_gauge(self, series: str) -> Gauge:
        """No test here asks for one."""
        raise AssertionError(series)

    def drop_value(self, series: str) -> None:
        """Drop nothing: no test here records such a value."""
        raise AssertionError(series)


def histograms(clock: ManualClock) -> type[Histogram]:
    """Return a class of histograms with a clock."""
    return histogram_class(clock.wall, clock.monotonic)


def flat(pairs: list[tuple[float, Any]]) -> list[Any]:
    """Return a list of events as a cell has them."""
    return [element for pair in pairs for element in pair]


def of(some: list[float]) -> Distribution:
    """Return the distribution of some values."""
    found = Distribution()
    found.add_all(some)
    return found


def by_second(given_: list[tuple[float, float]]) -> dict[int, tuple[list[float], int]]:
    """Return the finite values of each second, sorted, and how many others it has."""
    found: dict[int, tuple[list[float], int]] = {}
    for time, value in given_:
        finite, others = found.get(math.floor(time), ([], 0))
        if math.isfinite(value):
            finite = sorted([*finite, value])
        else:
            others += 1
        found[math.floor(time)] = finite, others
    return found


def same(one: Distribution, other: Distribution) -> bool:
    """Whether two have the same values, but for the rounding of their sums."""
    return (one.positive, one.negative, one.zeros, one.count) == (
        other.positive,
        other.negative,
        other.zeros,
        other.count,
    ) and math.isclose(one.moments.m2, other.moments.m2, rel_tol=1e-6, abs_tol=1e-3)


def check_merged(merged: list[Any], expected: dict[int, tuple[list[float], int]]) -> None:
    """Check that merged events are one distribution for each second, and what does not fit."""
    pairs = list(HistogramEvents.pairs(merged))
    fit = {time: value for time, value in pairs if isinstance(value, Distribution)}
    assert fit.keys() == {second for second, (finite, _) in expected.items() if finite}
    for second, distribution in fit.items():
        assert same(distribution, of(expected[int(second)][0]))
    unfit: dict[float, int] = {}
    for time, value in pairs:
        if isinstance(value, NonFiniteCount):
            unfit[time] = unfit.get(time, 0) + value.count
    assert unfit == {second: others for second, (_, others) in expected.items() if others}


# Merging


@given(events)
def test_merged_values_are_those_of_each_second(given_: list[tuple[float, float]]) -> None:
    """Also before 1970, in any order; nothing is changed, and what is not finite stands apart."""
    before = flat(given_)
    held = list(before)
    merged = HistogramEvents.merged(held)
    assert all(one is other for one, other in zip(held, before, strict=True))
    check_merged(merged, by_second(given_))
    assert HistogramEvents.size(held) == HistogramEvents.size(merged) == len(given_)


@given(events, events)
def test_what_was_merged_before_merges_with_what_came_since(
    first: list[tuple[float, float]], then: list[tuple[float, float]]
) -> None:
    """And stays as it is, since somebody may hold it."""
    merged = HistogramEvents.merged(flat(first))
    copies = [(time, value, repr(value)) for time, value in HistogramEvents.pairs(merged)]
    again = HistogramEvents.merged(merged + flat(then))
    check_merged(again, by_second(first + then))
    assert [(time, value, repr(value)) for time, value in HistogramEvents.pairs(merged)] == copies
    assert HistogramEvents.size(merged + flat(then)) == len(first + then)


def test_values_of_one_second_are_one_distribution() -> None:
    """However many."""
    given_ = [(5 + n / 1000, n / 7) for n in range(1000)]
    (second, found) = HistogramEvents.merged(flat(given_))
    assert second == 5
    assert found == of([value for _, value in given_])


def test_one_value_that_does_not_fit_takes_no_other_with_it() -> None:
    """In whatever place it stands."""
    for odd in (math.nan, math.inf, -math.inf):
        for at in range(4):
            some = [1.0, 2.0, 3.0]
            some.insert(at, odd)
            merged = HistogramEvents.merged(flat([(7.5, value) for value in some]))
            assert list(HistogramEvents.pairs(merged)) == [
                (7, NonFiniteCount(1)),
                (7, of([1.0, 2.0, 3.0])),
            ]


# Observing


def test_a_cell_is_attended_to_only_when_it_is_due() -> None:
    """After the value is in the list, by the fast way and by the longer one."""
    clock, attendant = ManualClock(100.0), Attendant()
    cell = histograms(clock)("a", attendant)
    assert (cell._due, repr(cell)) == (NOW, "<Histogram a>")
    cell.observe(1.5)
    cell._due = 100.5
    cell.observe(2.5)
    cell.observe(3)
    assert attendant.seen == [1]
    clock.set_wall(100.5)
    cell.observe(4.5)
    cell.observe(5)
    assert attendant.seen == [1, 4, 5]
    assert cell._events == [100.0, 1.5, 100.0, 2.5, 100.0, 3.0, 100.5, 4.5, 100.5, 5.0]
    cell._shorten()
    assert cell._events == [100, of([1.5, 2.5, 3.0, 4.5, 5.0])]


class Own(float):
    """A number of a class of its own, as numpy's are."""


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0.0),
        (-7, -7.0),
        (2**70, 2.0**70),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        (Own(1.5), 1.5),
        (fractions.Fraction(1, 4), 0.25),
        (decimal.Decimal("0.5"), 0.5),
    ],
)
def test_any_number_is_observed(value: Any, number: float) -> None:
    """As a float, and as nothing else; one that no float holds as an infinite one."""
    cell = histograms(ManualClock(5.0))("a", Attendant())
    cell.observe(value)
    assert cell._events == [5.0, number]
    assert type(cell._events[1]) is float


@pytest.mark.parametrize("value", ["1", None, True, [1.0], 1j])
def test_what_is_no_number_leaves_nothing_behind(value: Any) -> None:
    """Neither in the list nor with whoever attends."""
    attendant = Attendant()
    cell = histograms(ManualClock())("a", attendant)
    with pytest.raises(TypeError):
        cell.observe(value)
    assert (cell._events, attendant.seen) == ([], [])


# Runs

starts = st.integers(-8, 8).map(lambda n: n * 60)
distributions = st.lists(st.integers(-40, 40).map(float), min_size=1, max_size=5)
cuts = st.tuples(st.just("cut"), st.integers(0, 12))


@given(st.lists(st.tuples(starts, distributions) | cuts, max_size=30))
def test_a_run_has_all_values_of_each_slice(steps: list[tuple[Any, Any]]) -> None:
    """As a dictionary of lists would, the oldest taken out first."""
    pending, model = PendingHistogram(), dict[int, list[float]]()
    for start, some in steps:
        if start == "cut":
            oldest = sorted(model)[:some]
            batch = dict(pending.cut(some))
            assert batch.keys() == set(oldest)
            assert all(same(batch[at], of(model.pop(at))) for at in oldest)
        else:
            pending.add(start, of(some))
            model.setdefault(start, []).extend(some)
        assert (len(pending), pending.events) == (len(model), sum(map(len, model.values())))
        assert all(same(each, of(model[at])) for at, each in pending)
        if model:
            assert (pending.first, pending.last) == (min(model), max(model))
        for time in (-60, 0.5, 60):
            assert pending.older(time) == sum(start < time for start in model)


def test_a_run_refuses_what_cannot_be_stored_and_nothing_else() -> None:
    """With what is to be written down as the reason."""
    pending = PendingHistogram()
    many = of([1.0])
    many.moments.count = MAX_INTERVAL_VALUES
    pending.add(0, many)
    with pytest.raises(IntervalFull) as full:
        pending.add(0, of([1.0]))
    with pytest.raises(NotFinite) as unfit:
        pending.add(0, NonFiniteCount(3))
    assert (full.value.reason, unfit.value.reason) == ("overflow", "not-finite")
    assert PendingHistogram.events_of(NonFiniteCount(3)) == 3
    assert pending.events == MAX_INTERVAL_VALUES


def test_what_a_run_takes_is_about_what_it_says() -> None:
    """For few buckets as for many."""
    for number in (1, 50):
        pending = PendingHistogram()
        for start in range(100):
            pending.add(start, of([1.1**n for n in range(number)]))
        assert 0.5 * taken(pending) <= pending.bytes <= 2 * taken(pending)


def taken(pending: PendingHistogram) -> int:
    """Return what the distributions of a run take in memory, bytes."""
    size = sys.getsizeof
    return sum(
        size(each) + size(each.moments) + 5 * 24 + size(each.positive) + size(each.negative)
        for _, each in pending
    )


def test_a_batch_holds_fewer_histograms_than_counters() -> None:
    """By about what they take of the server's time: about ten busy ones, or thirty idle ones."""
    for number, least, most in ((1, 20, 40), (80, 8, 16)):
        buffer = Buffer(KEPT, RecorderStats(0.0), math.inf)
        for name in range(100):
            values = of([1.1**n for n in range(number)])
            buffer.add(PendingHistogram, f"s{name}", 7000, values, 7000)
        batch = buffer.take()
        assert batch is not None
        assert least <= len(list(batch.pending())) <= most


def test_an_hour_is_told_apart_for_the_statistics() -> None:
    """Whatever is kept of histograms."""
    assert PendingHistogram.retention(KEPT) == KEPT.histograms
    assert PendingHistogram.retention(Kept({}, {7: 5})) == {7: 5, HOUR: 2}


@given(st.dictionaries(st.integers(-20, 20), distributions, max_size=12))
def test_runs_of_histograms_become_their_operations(slices: dict[int, list[float]]) -> None:
    """At the precisions of histograms."""
    pending = PendingHistogram()
    for start, some in slices.items():
        pending.add(start * 5, of(some))
    made = PendingHistogram.operations(KEYS, KEPT, {"a": pending} if slices else {}, 5)
    expected = {"a": {start * 5: of(some) for start, some in slices.items()}} if slices else {}
    assert sent(made) == sent(histogram_operations(KEYS, KEPT.histograms, expected, width=5))


def test_what_is_not_finite_is_lost_at_every_precision_and_nothing_with_it() -> None:
    """As events that were given up whole."""
    stats = RecorderStats(0.0)
    buffer = Buffer(KEPT, stats, math.inf)
    for time, value in HistogramEvents.pairs(
        HistogramEvents.merged([7.5, math.nan, 7.5, 1.0, 7.5, math.inf])
    ):
        stats.recorded += PendingHistogram.events_of(value)
        buffer.add(PendingHistogram, "a", time, value, 8.0)
    health = stats.health(producer="", instance=None)
    assert (health.recorded, health.dropped, health.buffered) == (3, 2, 1)
    assert health.lost() == {"not-finite": {0: 2, 5: 2, 60: 2, 3600: 2}}
    batch = buffer.take()
    assert batch is not None
    assert batch.events == 1


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_series_of_nothing_finite_takes_no_room_and_harms_no_other(odd: float) -> None:
    """It is as if nothing had been observed, but for the loss that is told."""
    stats = RecorderStats(0.0)
    buffer = Buffer(KEPT, stats, math.inf)
    for name, some in (("a", [1.0]), ("bad", [odd, odd]), ("z", [2.0])):
        for time, value in HistogramEvents.pairs(
            HistogramEvents.merged(flat([(7.5, one) for one in some]))
        ):
            stats.recorded += PendingHistogram.events_of(value)
            buffer.add(PendingHistogram, name, time, value, 8.0)
    buffer.roll_up(1000.0)
    buffer.shrink(1000.0)
    batch = buffer.take()
    assert batch is not None
    assert [(name, pending.events) for *_, name, pending in batch.pending()] == [("a", 1), ("z", 1)]
    assert buffer.take() is None
    assert buffer.bytes == 0
    health = stats.health(producer="", instance=None)
    assert (health.recorded, health.dropped, health.lost()["not-finite"][0]) == (4, 2, 2)


def test_what_waits_through_an_outage_is_put_together_and_stays() -> None:
    """Within the memory there may be: by the hour at last, and no value is given up."""
    stats = RecorderStats(0.0)
    buffer = Buffer(KEPT, stats, 400_000)
    values = of([1.1**n for n in range(40)])
    for second in range(7200, 7200 + 300, 5):
        for name in range(50):
            stats.recorded += values.count
            copy = Distribution()
            copy.merge(values)
            buffer.add(PendingHistogram, f"s{name}", second, copy, second)
        buffer.roll_up(second)
        buffer.shrink(second)
        assert buffer.bytes <= 400_000
    health = stats.health(producer="", instance=None)
    assert (health.buffered, health.dropped) == (60 * 50 * 40, 0)
    assert set(health.lost()) <= {"memory", "aged"}
    assert all(3600 not in lost for lost in health.lost().values())
    stored = 0
    while batch := buffer.take():
        stored += batch.events
        buckets = sum(len(each.positive) for *_, pending in batch.pending() for _, each in pending)
        assert buckets == 40 * len(list(batch.pending()))
    assert stored == health.buffered
