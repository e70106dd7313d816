"""Gauges: of all values of a slice the newest one is sent, at every precision, in few batches."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redmeter.stored.gauge import Measured, gauge_operations
from redmeter.stored.intervals import parse_runs
from redmeter.stored.keys import Keys
from redmeter.types import Operations
from support.examples import scaled

KEYS = Keys()
Values = dict[str, dict[int, Measured]]

finite = st.floats(allow_nan=False, allow_infinity=False)
retentions = st.dictionaries(
    st.sampled_from((1, 5, 7, 60, 300, 3600, 86400)) | st.integers(1, 10**5),
    st.integers(1, 254),
    min_size=1,
    max_size=16,
)
widths = st.sampled_from((1, 1, 5, 7, 60))
names = st.sampled_from(["a", 'b{x="1"}', "点", "60:a"])


@st.composite
def measured(draw: st.DrawFn, width: int = 1) -> Values:
    """Values of some series, each at a time within its interval."""
    times = st.integers(-400, 400) | st.integers(-(10**6), 10**6) | st.integers(-(2**40), 2**40)
    found: Values = {}
    for name in draw(st.sets(names)):
        slices = {time // width * width for time in draw(st.sets(times, min_size=1, max_size=20))}
        within = st.integers(0, 8 * width - 1).map(lambda eighths: eighths / 8)
        found[name] = {start: (start + draw(within), draw(finite)) for start in slices}
    return found


def decoded(made: Operations) -> dict[tuple[str, int], tuple[int, int, float, float]]:
    """Take operations apart as the script does: key, start -> precision, samples, value, time."""
    if not made:
        return {}
    (only,) = made
    index, *keys = only.keys
    before, text = only.args
    assert (only.code, index, before) == ("last", KEYS.gauges, str(len(KEYS.key("gauge").encode())))
    found = {}
    rows = list(parse_runs(str(text)))
    assert only.at_stake() == [("", 0), *((start, 1) for _, _, start, _ in rows)]
    for key, (precision, samples, start, both) in zip(keys, rows, strict=True):
        value, time = both.split()
        at = key, int(start)
        assert at not in found
        found[at] = precision, samples, float(value), float(time)
    return found


# Intervals


@settings(max_examples=scaled(60))
@given(st.data(), widths, retentions)
def test_each_slice_gets_its_newest_value_at_every_precision_that_fits(
    data: st.DataObject, width: int, retention: dict[int, int]
) -> None:
    """Exactly as it was, to the last bit; precisions that are no multiple are left out."""
    values = data.draw(measured(width))
    expected: dict[tuple[str, int], tuple[int, int, float, float]] = {}
    for name, slices in values.items():
        for precision, samples in retention.items():
            if precision % width:
                continue
            for time, value in sorted(slices.values(), key=lambda entry: entry[0]):
                start = math.floor(time) // precision * precision
                expected[KEYS.gauge(precision, name), start] = precision, samples, value, time
    assert decoded(gauge_operations(KEYS, retention, values, width=width)) == expected


def test_of_two_values_at_one_time_the_later_one_is_sent() -> None:
    """Whoever set it last meant it."""
    values = {"a": {10: (10.5, 1.0), 11: (10.5, 2.0)}}
    made = decoded(gauge_operations(KEYS, {60: 5}, values))
    assert made == {("redmeter:gauge:60:a", 0): (60, 5, 2.0, 10.5)}


def test_operations_look_as_the_script_reads_them() -> None:
    """One run of one text, and a key for each operation; numbers as a float's repr."""
    values: Values = {"a": {61: (61.25, 17)}, "b": {-1: (-0.5, 1e-7)}}
    (made,) = gauge_operations(KEYS, {1: 10, 60: 20}, values)
    assert made.keys == (
        "redmeter:gauges:",
        *("redmeter:gauge:1:a", "redmeter:gauge:60:a", "redmeter:gauge:1:b", "redmeter:gauge:60:b"),
    )
    text = (
        '[1,10,["61"],["17.0 61.25"],60,20,["60"],["17.0 61.25"],'
        '1,10,["-1"],["1e-07 -0.5"],60,20,["-60"],["1e-07 -0.5"]]'
    )
    assert made.args == ("15", text)


@pytest.mark.parametrize("width", [0, 7])
def test_without_a_precision_that_fits_there_is_nothing_to_do(width: int) -> None:
    """A gauge has no grand total."""
    values = {"a": {70: (70.0, 1.0)}}
    assert gauge_operations(KEYS, {60: 5}, values, width=width) == ()
    assert gauge_operations(KEYS, {60: 5}, {}) == ()


def test_the_hashes_of_a_gauge_stand_together() -> None:
    """The script settles a hash after the last of its operations."""
    values = {name: {t: (t + 0.5, 1.0) for t in range(0, 600, 50)} for name in ("a", "b")}
    (made,) = gauge_operations(KEYS, {5: 120, 60: 120, 7: 9}, values)
    keys = made.keys[1:]
    changes = sum(one != other for one, other in itertools.pairwise(keys))
    assert changes + 1 == len(set(keys)) == 6
