"""Runs: slices of one series that are not stored yet, against dictionaries that do the same."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.recording.pending import GaugeSample, IntervalFull, PendingCounter, PendingGauge
from redmeter.stored.counter import counter_operations
from redmeter.stored.gauge import gauge_operations
from redmeter.stored.keys import Kept, Keys
from support.recorders import sent

MAX = 2**63 - 1
KEYS = Keys()
RETENTION = {1: 120, 5: 120, 60: 120}

starts = st.integers(-8, 8).map(lambda n: n * 60) | st.integers(-(2**40), 2**40)
amounts = st.integers(0, 50) | st.sampled_from([MAX, MAX - 1, MAX // 2, MAX // 2 + 1])
lasts = st.builds(
    GaugeSample,
    st.integers(0, 5).map(float) | st.floats(-(2.0**40), 2.0**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(1, 4),
)
cuts = st.tuples(st.just("cut"), st.integers(0, 12))


# Counters


@given(st.lists(st.tuples(starts, amounts) | cuts, max_size=60))
def test_sums_are_what_a_dictionary_would_add_up(steps: list[tuple[Any, int]]) -> None:
    """In the order of the slices; what would pass 2^63 - 1 is refused and changes nothing."""
    pending, model = PendingCounter(), dict[int, int]()
    for start, number in steps:
        if start == "cut":
            oldest = sorted(model)[:number]
            assert list(pending.cut(number)) == [(at, model.pop(at)) for at in oldest]
        elif model.get(start, 0) + number > MAX:
            with pytest.raises(IntervalFull):
                pending.add(start, number)
        else:
            pending.add(start, number)
            model[start] = model.get(start, 0) + number
        assert list(pending) == sorted(model.items())
        assert (len(pending), pending.events) == (len(model), sum(model.values()))
        if model:
            assert (pending.first, pending.last) == (min(model), max(model))


@given(st.sets(starts), st.integers(-600, 600) | st.floats(-600, 600))
def test_sums_know_how_many_slices_start_before_a_time(at: set[int], time: float) -> None:
    """Which are the ones that cut() takes out first."""
    pending = PendingCounter()
    for start in at:
        pending.add(start, 1)
    older = pending.older(time)
    assert older == sum(start < time for start in at)
    assert [start for start, _ in pending.cut(older)] == sorted(s for s in at if s < time)
    assert all(start >= time for start, _ in pending)


def test_a_slice_that_is_full_refuses_one_more_and_no_others() -> None:
    """Neither an amount past 2^63 - 1 by itself nor one that would make it so is taken."""
    pending = PendingCounter()
    pending.add(60, MAX)
    pending.add(60, 0)
    for start, amount in ((60, 1), (60, MAX), (0, MAX + 1), (120, MAX + 1)):
        with pytest.raises(IntervalFull):
            pending.add(start, amount)
    pending.add(0, MAX)
    assert list(pending) == [(0, MAX), (60, MAX)]
    assert pending.events == 2 * MAX


def test_a_slice_of_sums_takes_sixteen_bytes() -> None:
    """As the buffer's limit reckons, with what an array keeps in reserve."""
    pending = PendingCounter()
    for start in range(10_000):
        pending.add(start, 1)
    taken = sys.getsizeof(pending._starts) + sys.getsizeof(pending._amounts)
    assert taken <= 1.2 * pending.bytes


@given(st.dictionaries(st.integers(-20, 20), st.integers(0, 9), max_size=12))
def test_runs_of_counters_become_the_operations_of_counters(slices: dict[int, int]) -> None:
    """Precisions that are no multiple of the width are left out."""
    pending = PendingCounter()
    for start, amount in slices.items():
        pending.add(start * 5, amount)
    made = PendingCounter.operations(KEYS, Kept(RETENTION, {}), {"a": pending}, 5)
    counts = {"a": {start * 5: slices[start] for start in sorted(slices)}}
    assert sent(made) == sent(counter_operations(KEYS, RETENTION, counts, width=5))
    assert sum(PendingCounter.events_of(amount) for _, amount in pending) == pending.events


# Gauges


@given(st.lists(st.tuples(starts, lasts) | cuts, max_size=60))
def test_lasts_keep_the_newest_as_a_dictionary_would(steps: list[tuple[Any, Any]]) -> None:
    """By the time at which it was set, of two at once the later one; all settings are counted."""
    pending, model = PendingGauge(), dict[int, GaugeSample]()
    for start, given_ in steps:
        if start == "cut":
            oldest = sorted(model)[:given_]
            assert dict(pending.cut(given_)) == {at: model.pop(at) for at in oldest}
        else:
            pending.add(start, given_)
            old = model.get(start)
            if old is None:
                model[start] = given_
            else:
                time, value = given_[:2] if given_.time >= old.time else old[:2]
                model[start] = GaugeSample(time, value, old.events + given_.events)
        assert dict(pending) == model
        assert (len(pending), pending.events) == (len(model), sum(m.events for m in model.values()))
        if model:
            assert (pending.first, pending.last) == (min(model), max(model))
        for time in (-60, 0.5, 60):
            assert pending.older(time) == sum(start < time for start in model)


def test_a_value_that_comes_late_does_not_replace_a_newer_one() -> None:
    """Of three settings of one slice the newest stays, whatever the order."""
    pending = PendingGauge()
    for time, value in ((61.5, 1.0), (63.0, 2.0), (62.0, 3.0), (63.0, 4.0)):
        pending.add(60, GaugeSample(time, value))
    assert dict(pending) == {60: GaugeSample(63.0, 4.0, 4)}
    assert PendingGauge.events_of(dict(pending)[60]) == pending.events == 4


@given(st.dictionaries(st.integers(-20, 20), lasts, max_size=12))
def test_runs_of_gauges_become_the_operations_of_gauges(slices: dict[int, GaugeSample]) -> None:
    """How often each was set is not told."""
    pending = PendingGauge()
    for start, last in slices.items():
        pending.add(start * 60, last)
    made = PendingGauge.operations(KEYS, Kept(RETENTION, {}), {"a": pending}, 60)
    values = {"a": {start * 60: (last.time, last.value) for start, last in slices.items()}}
    assert sent(made) == sent(gauge_operations(KEYS, RETENTION, values, width=60))
