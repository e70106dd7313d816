"""Cells: lists of events that are merged now and then and mean the same afterwards."""

import math
from collections import Counter as Multiset
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.clock import ManualClock
from redmeter.errors import InvalidValue
from redmeter.recording.instruments import NOW, Counter, Gauge, Instrument, counter_class
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
        self.seen.append((cell, len(cell.events)))

    def trouble(self, kind: str, text: str) -> None:
        """There is none."""
        raise AssertionError(kind, text)


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
    merged = Counter.merged(events)
    assert events == before
    assert by_second(merged) == by_second(events)
    assert all(type(event) is tuple and 0 <= event[1] <= MAX for event in merged)
    assert len(merged) <= len(events)
    assert Counter.size(events) == sum(by_second(events).values())


@given(counted.filter(lambda events: max(by_second(events).values(), default=0) <= MAX))
def test_merging_leaves_about_one_event_a_second(events: list[Any]) -> None:
    """Merged twice, exactly one: the first time two that happened once may stay as they are."""
    merged = Counter.merged(Counter.merged(events))
    assert sorted(merged) == sorted(by_second(events).items())
    assert len(Counter.merged(events)) <= len(by_second(events)) + 1


@pytest.mark.parametrize("time", [-0.25, -1.0, -0.75, -60.5])
def test_events_before_1970_belong_to_the_second_that_had_begun(time: float) -> None:
    """A quarter of a second before 1970 was second -1, not second 0."""
    expected = {math.floor(time): 4}
    assert dict(Counter.merged([time] * 4)) == expected
    assert dict(Counter.merged([(time, 1), (time, 3)])) == expected
    assert list(newest(Gauge.merged([GaugeSample(time, 1.0), GaugeSample(time, 2.0)]))) == list(
        expected
    )


def test_amounts_that_would_pass_what_a_slice_holds_stay_apart() -> None:
    """So that one of them is stored, and the other refused by itself."""
    events: list[Any] = [(5.0, MAX), 5.5, (5.75, 3), 6.0, 6.25, 6.5]
    merged = Counter.merged(events)
    assert by_second(merged) == {5: MAX + 4, 6: 3}
    assert max(amount for _, amount in merged) == MAX
    assert Counter.size(events) == MAX + 7
    fits = [(5.0, MAX - 1), 5.5]
    assert Counter.merged(fits) == [(5, MAX)]


@given(settings_of_gauges)
def test_a_merged_gauge_has_the_newest_setting_of_each_second(events: list[GaugeSample]) -> None:
    """Of two at once the later one; how many there were stays known."""
    before = list(events)
    merged = Gauge.merged(events)
    assert events == before
    expected = newest(events)
    assert {math.floor(event.time): event for event in merged} == expected
    assert len(merged) == len(expected)
    assert Gauge.size(events) == sum(event.events for event in events)


@given(counted)
def test_a_list_is_shortened_in_place_and_means_the_same(events: list[Any]) -> None:
    """The very list: someone who counts may hold it."""
    cell = counter_class(ManualClock().wall)("a", Attendant())
    held = cell.events
    held += events
    cell.shorten()
    assert cell.events is held
    assert by_second(held) == by_second(events)
    assert len(held) <= len(events)


def test_an_event_that_comes_while_the_list_is_shortened_stays() -> None:
    """Another thread appends between the reading and the replacing."""

    class Interrupted(counter_class(ManualClock().wall)):  # type: ignore[misc]
        __slots__ = ()

        def merged(self, events: list[Any]) -> list[Any]:
            self.events.append(9.0)
            return Counter.merged(events)

    cell = Interrupted("a", Attendant())
    cell.events += [1.0, 1.25, 1.5, 2.0]
    cell.shorten()
    assert by_second(cell.events) == {1: 3, 2: 1, 9: 1}


def test_a_list_that_could_not_be_merged_is_as_it_was() -> None:
    """A signal handler that raises finds all of it or nothing."""

    class Broken(counter_class(ManualClock().wall)):  # type: ignore[misc]
        __slots__ = ()

        @staticmethod
        def merged(events: list[Any]) -> list[Any]:
            raise KeyboardInterrupt(len(events))

    cell = Broken("a", Attendant())
    cell.events += [1.0, 1.25]
    with pytest.raises(KeyboardInterrupt):
        cell.shorten()
    assert cell.events == [1.0, 1.25]


# Counting


def test_a_cell_is_attended_to_only_when_it_is_due() -> None:
    """After the event is in the list, so that whoever attends finds it there."""
    clock, attendant = ManualClock(100.0), Attendant()
    counter = counter_class(clock.wall)("a", attendant)
    assert counter.due == NOW
    counter.inc()
    counter.due = 100.5
    counter.inc()
    counter.inc(3)
    assert attendant.seen == [(counter, 1)]
    clock.set_wall(100.5)
    counter.inc()
    counter.inc(0)
    assert attendant.seen == [(counter, 1), (counter, 4), (counter, 5)]
    assert by_second(counter.events) == {100: 6}
    assert counter.size(counter.events) == 6


def test_a_gauge_notes_when_it_was_set() -> None:
    """By the clock of the meter; whole numbers become floats."""
    clock, attendant = ManualClock(100.25), Attendant()
    gauge = Gauge("a", attendant, clock.wall)
    gauge.set(7)
    assert gauge.events == [GaugeSample(100.25, 7.0)]
    assert attendant.seen == [(gauge, 1)]
    assert repr(gauge) == "<Gauge a>"


@pytest.mark.parametrize(
    ("amount", "error"), [(-1, InvalidValue), (2**63, InvalidValue), (1.0, TypeError)]
)
def test_what_cannot_be_counted_leaves_nothing_behind(amount: Any, error: type[Exception]) -> None:
    """Neither in the list nor with whoever attends."""
    attendant = Attendant()
    counter = counter_class(ManualClock().wall)("a", attendant)
    with pytest.raises(error):
        counter.inc(amount)
    with pytest.raises(TypeError):
        counter.inc(True)
    assert counter.events == []
    assert attendant.seen == []


def test_a_gauge_refuses_what_is_no_finite_number() -> None:
    """And leaves nothing behind."""
    gauge = Gauge("a", Attendant(), ManualClock().wall)
    with pytest.raises(InvalidValue):
        gauge.set(math.nan)
    with pytest.raises(TypeError):
        gauge.set("7")  # type: ignore[arg-type]
    assert gauge.events == []
