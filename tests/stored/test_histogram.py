"""Histograms: distributions of intervals, summed up to those of each precision."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.histogram import histogram_operations
from redmeter.stored.intervals import parse_runs as parse_runs
from redmeter.stored.keys import HOUR, Keys
from redmeter.stored.packed_text import parse_distribution
from redmeter.types import Operations

KEYS = Keys()
RETENTION = {5: 24, 7: 3, 60: 120, 3600: 120}

observed = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6)


def of(values: list[float]) -> Distribution:
    """Return the distribution of some values."""
    found = Distribution()
    found.add_all(values)
    return found


def by_code(operations: Operations) -> dict[str, Any]:
    """Return the operations by their codes."""
    return {operation.code: operation for operation in operations}


def written(operations: Operations) -> dict[tuple[str, int], Distribution]:
    """Return what is written of histograms: entry and interval start -> distribution."""
    made = by_code(operations)
    hist, moments = made["hist"], made["moments"]
    assert hist.keys[0] == KEYS.hists
    found = {}
    both = zip(parse_runs(hist.args[1]), parse_runs(moments.args[1]), strict=True)
    for at, (one, other) in enumerate(both):
        assert one[:3] == other[:3]
        entry = hist.keys[1 + at].removeprefix(KEYS.key("hist"))
        assert moments.keys[at] == KEYS.key("moments", entry)
        assert entry.startswith(f"{one[0]}:")
        assert one[1] == RETENTION[one[0]]
        read = parse_distribution(one[3], other[3])
        assert read is not None
        found[entry, int(one[2])] = read
    return found


@given(
    st.dictionaries(
        st.sampled_from(["a", 'b{c=" "}', "点;:"]),
        st.dictionaries(st.integers(-1500, 1500).map(lambda n: 5 * n), observed, min_size=1),
        max_size=3,
    )
)
def test_each_precision_has_all_values_of_its_slices(
    given_: dict[str, dict[int, list[float]]],
) -> None:
    """Those of no multiple of the width are left out; what was handed in stays as it is."""
    slices = {name: {at: of(some) for at, some in each.items()} for name, each in given_.items()}
    before = copy.deepcopy(slices)
    made = histogram_operations(KEYS, RETENTION, slices, width=5)
    assert slices == before
    expected: dict[tuple[str, int], list[float]] = {}
    for name, each in given_.items():
        for at, some in each.items():
            for precision in (5, 60, 3600):
                start = at // precision * precision
                expected.setdefault((f"{precision}:{name}", start), []).extend(some)
    if not given_:
        assert made == ()
        return
    found = written(made)
    assert found.keys() == expected.keys()
    for place, values in expected.items():
        one, other = found[place], of(values)
        assert (one.positive, one.negative, one.zeros) == (
            other.positive,
            other.negative,
            other.zeros,
        )
        assert (one.count, one.moments.low, one.moments.high) == (
            len(values),
            min(values) + 0.0,
            max(values) + 0.0,
        )


def test_one_slice_is_the_same_at_every_precision() -> None:
    """As it mostly is in a flush."""
    made = written(histogram_operations(KEYS, RETENTION, {"a": {605: of([1.0, -3.0, 0.0])}}))
    assert made == {(f"{p}:a", 605 // p * p): of([1.0, -3.0, 0.0]) for p in RETENTION}


def test_what_is_lost_is_told_in_values_and_of_each_key() -> None:
    """By interval start; the index stands for none, and four keys for each hour."""
    slices = {"a": {0: of([1.0] * 3), 60: of([2.0])}, "b": {HOUR - 5: of([3.0]), HOUR: of([4.0])}}
    made = by_code(histogram_operations(KEYS, {60: 5}, slices, width=5))
    four = [("0", 3), ("60", 1), (str(HOUR - 60), 1), (str(HOUR), 1)]
    assert made["hist"].at_stake() == [("", 0), *four]
    assert made["moments"].at_stake() == four
    nothing = [("", 0)] * 3
    assert made["stat"].at_stake() == [
        *(("0", 4), *nothing),
        *(("0", 1), *nothing),
        *((str(HOUR), 1), *nothing),
    ]
    for operation in made.values():
        assert len(operation.at_stake()) == len(operation.keys)


def test_statistics_are_of_hours_whatever_is_kept_of_histograms() -> None:
    """Where the hour can be made of the intervals."""
    slices = {"a": {0: of([1.0]), 1800: of([5.0]), HOUR: of([7.0])}}
    sums, stat = histogram_operations(KEYS, {7: 3}, slices, width=1800)
    assert sums.keys == (KEYS.sums, KEYS.spreads)
    assert stat.keys == (*KEYS.stats("a"), *KEYS.stats("a"))
    assert [stat.args[at] for at in (3, 4, 5, 6, 7, 8)] == ["a", "0", "2", "1", "5", "6"]
    assert [stat.args[at] for at in (12, 13, 14, 15)] == ["a", str(HOUR), "1", "7"]
    assert list(by_code(histogram_operations(KEYS, RETENTION, slices, width=7200))) == ["sums"]
    made = histogram_operations(KEYS, {86400: 3}, {"a": {0: of([1.0])}}, width=86400)
    assert list(by_code(made)) == ["hist", "moments", "sums"]
    assert list(by_code(histogram_operations(KEYS, RETENTION, slices, width=0))) == ["sums"]
