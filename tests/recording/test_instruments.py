"""Cells: lists of events that are merged now and then and mean the same afterwards."""

import math
from collections import Counter as Multiset
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.errors import InvalidValue
from redmeter.recording.events import CounterEvents, GaugeChange, GaugeEvents
from redmeter.recording.instruments import NOW, Gauge, Instrument, ProcessGauge, counter_class
from redmeter.recording.pending import GaugeSample

MAX = 2**63 - 1

times = st.integers(-6, 6).flatmap(lambda n: st.sampled_from([n, n + 0.25, n + 0.75])) | st.floats(
    -(2.0**40), 2.0**40
)
amounts = st.integers(0, 9) | st.sampled_from([MAX, MAX - 1, MAX // 2])
counted = st.lists(times | st.tuples(times, amounts), max_size=40)
settings_of_gauges = st.lists(
    st.builds(GaugeSample, times, st.floats(allow_nan=False), st.integers(1, 3)), max_size=40
)


class Attendant:
    """Notes which cells it was called to."""

    def __init__(self) -> None:
        self.seen: list[tuple[Instrument, int]] = []

    def attend(self, cell: Instrument) -> None:
        """See InstrumentOwner in instruments.py."""
        self.seen.append((cell, len(cell._events)))

    def record_error(self, kind: str, text: str) -> None:
        """There is none."""
        raise AssertionError(kind, text)

    def process_gauge(self, series: str) -> Gauge:
        """No test here asks for one."""
        raise AssertionError(series)

    def drop_value(self, series: str) -> None:
        """Drop nothing: no test here records such a value."""
        raise AssertionError(series)


def by_second(events: list[Any]) -> dict[int, int]:
    """Return the sums of counted events, by the second at whose start or after they happened."""
    found: Multiset[int] = Multiset()
    for event in events:
        time, amount = event if isinstance(event, tuple) else (event, 1)
        found[math.floor(time)] += amount
    return dict(found)


def newest(events: list[GaugeSample]) -> dict[int, GaugeSample]:
    """Return the newest setting of each second, and how many there were."""
    found: dict[int, GaugeSample] = {}
    for event in events:
        second = math.floor(event.time)
        old = found.get(second)
        events_before = old.events if old else 0
        best = event if old is None or event.time >= old.time else old
        found[second] = GaugeSample(best.time, best.value, events_before + event.events)
    return found


# Merging


@given(counted)
def test_merged_events_count_the_same_in_each_second(events: list[Any]) -> None:
    """Of events that happened once and of amounts alike, also before 1970; nothing is changed."""
    before = list(events)
    merged = CounterEvents.merged(events)
    assert events == before
    assert by_second(merged) == by_second(events)
    assert all(type(event) is tuple and 0 <= event[1] <= MAX for event in merged)
    assert len(merged) <= len(events)
    assert CounterEvents.size(events) == sum(by_second(events).values())


@given(counted.filter(lambda events: max(by_second(events).values(), default=0) <= MAX))
def test_merging_leaves_about_one_event_a_second(events: list[Any]) -> None:
    """Merged twice, exactly one: the first time two that happened once may stay as they are."""
    merged = CounterEvents.merged(CounterEvents.merged(events))
    assert sorted(merged) == sorted(by_second(events).items())
    assert len(CounterEvents.merged(events)) <= len(by_second(events)) + 1


@pytest.mark.parametrize("time", [-0.25, -1.0, -0.75, -60.5])
def test_events_before_1970_belong_to_the_second_that_had_begun(time: float) -> None:
    """A quarter of a second before 1970 was second -1, not second 0."""
    expected = {math.floor(time): 4}
    assert dict(CounterEvents.merged([time] * 4)) == expected
    assert dict(CounterEvents.merged([(time, 1), (time, 3)])) == expected
    assert list(
        newest(GaugeEvents.merged([GaugeSample(time, 1.0), GaugeSample(time, 2.0)]))
    ) == list(expected)


def test_amounts_that_would_pass_what_a_slice_holds_stay_apart() -> None:
    """So that one of them is stored, and the other refused by itself."""
    events: list[Any] = [(5.0, MAX), 5.5, (5.75, 3), 6.0, 6.25, 6.5]
    merged = CounterEvents.merged(events)
    assert by_second(merged) == {5: MAX + 4, 6: 3}
    assert max(amount for _, amount in merged) == MAX
    assert CounterEvents.size(events) == MAX + 7
    fits = [(5.0, MAX - 1), 5.5]
    assert CounterEvents.merged(fits) == [(5, MAX)]


@given(settings_of_gauges)
def test_a_merged_gauge_has_the_newest_setting_of_each_second(events: list[GaugeSample]) -> None:
    """Of two at once the later one; how many there were stays known."""
    before = list(events)
    merged = GaugeEvents.merged(events)
    assert events == before
    expected = newest(events)
    assert {math.floor(event.time): event for event in merged} == expected
    assert len(merged) == len(expected)
    assert GaugeEvents.size(events) == sum(event.events for event in events)


@given(counted)
def test_a_list_is_shortened_in_place_and_means_the_same(events: list[Any]) -> None:
    """The very list: someone who counts may hold it."""
    cell = counter_class(ManualClock().wall)("a", Attendant())
    held = cell._events
    held += events
    cell._shorten()
    assert cell._events is held
    assert by_second(held) == by_second(events)
    assert len(held) <= len(events)


def test_an_event_that_comes_while_the_list_is_shortened_stays() -> None:
    """Another thread appends between the reading and the replacing."""

    class Interrupted(counter_class(ManualClock().wall)):  # type: ignore[misc]
        __slots__ = ()

        def _merge(self, events: list[Any]) -> list[Any]:
            self._events.append(9.0)
            return CounterEvents.merged(events)

    cell = Interrupted("a", Attendant())
    cell._events += [1.0, 1.25, 1.5, 2.0]
    cell._shorten()
    assert by_second(cell._events) == {1: 3, 2: 1, 9: 1}


def test_a_list_that_could_not_be_merged_is_as_it_was() -> None:
    """A signal handler that raises finds all of it or nothing."""

    class Broken(counter_class(ManualClock().wall)):  # type: ignore[misc]
        __slots__ = ()

        def _merge(self, events: list[Any]) -> list[Any]:
            raise KeyboardInterrupt(len(events))

    cell = Broken("a", Attendant())
    cell._events += [1.0, 1.25]
    with pytest.raises(KeyboardInterrupt):
        cell._shorten()
    assert cell._events == [1.0, 1.25]


# Counting


def test_a_cell_is_attended_to_only_when_it_is_due() -> None:
    """After the event is in the list, so that whoever attends finds it there."""
    clock, attendant = ManualClock(100.0), Attendant()
    counter = counter_class(clock.wall)("a", attendant)
    assert counter._due == NOW
    counter.inc()
    counter._due = 100.5
    counter.inc()
    counter.inc(3)
    assert attendant.seen == [(counter, 1)]
    clock.set_wall(100.5)
    counter.inc()
    counter.inc(0)
    assert attendant.seen == [(counter, 1), (counter, 4), (counter, 5)]
    assert by_second(counter._events) == {100: 6}
    assert CounterEvents.size(counter._events) == 6


def test_a_gauge_notes_when_it_was_set() -> None:
    """By the clock of the meter; whole numbers become floats."""
    clock, attendant = ManualClock(100.25), Attendant()
    gauge = Gauge("a", attendant, clock.wall)
    gauge.set(7)
    assert gauge._events == [GaugeSample(100.25, 7.0)]
    assert attendant.seen == [(gauge, 1)]
    assert repr(gauge) == "<Gauge a>"


@pytest.mark.parametrize(
    ("amount", "error"), [(-1, InvalidValue), (2**63, InvalidValue), (1.5, TypeError)]
)
def test_what_cannot_be_counted_leaves_nothing_behind(amount: Any, error: type[Exception]) -> None:
    """Neither in the list nor with whoever attends."""
    attendant = Attendant()
    counter = counter_class(ManualClock().wall)("a", attendant)
    with pytest.raises(error):
        counter.inc(amount)
    with pytest.raises(TypeError):
        counter.inc(True)
    assert counter._events == []
    assert attendant.seen == []


# The public face


@pytest.mark.parametrize("url", ["off", "redis://127.0.0.1:1"])
@pytest.mark.parametrize("sync", [False, True])
def test_instruments_show_what_an_application_uses_and_nothing_else(url: str, sync: bool) -> None:
    """No method that discards events, and no list that somebody could change."""
    meter = Meter(url, sync=sync)

    def shown(instrument: object) -> set[str]:
        return {name for name in dir(instrument) if not name.startswith("_")}

    assert shown(meter.counter("a")) == {"name", "inc"}
    assert shown(meter.gauge("b")) == {"name", "set", "inc", "dec", "track_in_progress"}
    assert shown(meter.gauge("b", per_process=True)) == shown(meter.gauge("b"))
    assert shown(meter.histogram("c")) == {"name", "observe", "time"}
    assert meter.gauge("b", per_process=True).name == "b"
    assert meter.counter("a", labels={"x": "1"}).name == 'a{x="1"}'


# Gauges that count


def part(clock: ManualClock) -> tuple[ProcessGauge, Attendant]:
    """Return this process's part of a gauge."""
    owner = Attendant()
    return ProcessGauge('a{instance=""}', owner, clock.wall), owner


def values(merged: list[Any]) -> list[tuple[float, float]]:
    """Return times and values of merged events."""
    return [(time, sample.value) for time, sample in GaugeEvents.pairs(merged)]


def test_a_gauge_counts_up_and_down_from_where_it_is() -> None:
    """Also if the events before were collected already."""
    clock = ManualClock(100.0)
    gauge, _ = part(clock)
    gauge.inc()
    gauge.inc(2.5)
    assert values(gauge._take()) == [(100.0, 3.5)]
    assert not gauge._waiting
    clock.set_wall(101.0)
    gauge.dec()
    assert gauge._waiting
    assert values(gauge._take()) == [(101.0, 2.5)]
    gauge.set(10)
    gauge.dec(4)
    gauge.set(1, at=50.0)
    assert values(gauge._take()) == [(101.0, 6.0), (50.0, 1.0)]
    gauge.inc()
    assert values(gauge._take()) == [(101.0, 7.0)]


def test_a_value_that_was_set_and_collected_is_counted_from() -> None:
    """Of a gauge that each process has."""
    gauge, _ = part(ManualClock(100.0))
    gauge.set(5)
    gauge._take()
    gauge.inc()
    assert values(gauge._take()) == [(100.0, 6.0)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["inc", "dec", "set", "merge", "take"]), st.integers(0, 9)),
        max_size=30,
    )
)
def test_a_gauge_has_the_same_value_however_often_its_events_are_merged(
    steps: list[tuple[str, int]],
) -> None:
    """A change is never counted twice, and never forgotten."""
    gauge, _ = part(ManualClock(100.0))
    expected, events, collected = 0, 0, 0
    for step, number in steps:
        if step == "merge":
            gauge._shorten()
        elif step == "take":
            collected += gauge._LIST.size(gauge._take())
        else:
            getattr(gauge, step)(number)
            expected = {"inc": expected + number, "dec": expected - number, "set": number}[step]
            events += 1
    gauge.inc(0)
    merged = gauge._take()
    assert values(merged)[-1][1] == expected
    assert collected + gauge._LIST.size(merged) == events + 1


def test_a_change_from_another_thread_that_was_appended_late_counts() -> None:
    """Threads append in another order than that of their times."""
    events: list[Any] = [GaugeChange(5.5, 1), GaugeChange(5.25, 1)]
    assert values(GaugeEvents.merged(events)) == [(5.5, 2.0)]


def test_a_gauge_that_counts_is_reported_again_until_it_is_zero() -> None:
    """Otherwise a job of an hour would be seen in the second in which it began."""
    clock = ManualClock(100.0)
    gauge, owner = part(clock)
    gauge._refresh()
    gauge.inc()
    gauge._refresh()  # it has not been collected yet
    assert values(gauge._take()) == [(100.0, 1.0)]
    for second in (101.0, 102.0):
        clock.set_wall(second)
        gauge._refresh()
        assert values(gauge._take()) == [(second, 1.0)]
    gauge.dec()
    assert values(gauge._take()) == [(102.0, 0.0)]
    gauge._refresh()
    assert not gauge._waiting
    assert len(owner.seen) == 2  # a refresh starts no thread


def test_a_gauge_that_was_only_set_is_not_reported_again() -> None:
    """Its owner decides how often."""
    gauge, _ = part(ManualClock(100.0))
    gauge.set(5)
    gauge._take()
    gauge._refresh()
    assert not gauge._waiting


def test_counting_a_gauge_changes_the_part_of_this_process() -> None:
    """What was set for the application as a whole stays."""
    clock, attendant = ManualClock(100.0), Attendant()
    own = ProcessGauge('a{instance=""}', attendant, clock.wall)
    attendant.process_gauge = lambda series: own if series == "a" else None  # type: ignore[assignment,method-assign,return-value]
    gauge = Gauge("a", attendant, clock.wall)
    gauge.set(7)
    gauge.inc()
    gauge.dec(0.5)
    assert gauge._events == [GaugeSample(100.0, 7.0)]
    assert values(own._take()) == [(100.0, 0.5)]


def test_a_forked_child_begins_at_zero() -> None:
    """What is in progress in its parent is not in progress in the child."""
    gauge, _ = part(ManualClock(100.0))
    gauge.inc(3)
    gauge._take()
    gauge._clear()
    gauge.inc()
    assert values(gauge._take()) == [(100.0, 1.0)]
