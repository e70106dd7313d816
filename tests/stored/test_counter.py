"""Counters: events become slices and grand totals, in batches, and not one is lost or doubled."""

from collections import Counter
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redmeter.errors import InvalidValue
from redmeter.stored.counter import MAX_COUNT, check_amount, counter_operations, event
from redmeter.stored.intervals import parse_runs
from redmeter.stored.keys import Keys
from redmeter.types import Operations
from support.examples import scaled

KEYS = Keys()


class Size(int, Enum):
    """Numbers that have names."""

    LARGE = 3


Counts = dict[str, dict[int, int]]

#: Widths that divide each other, and 7 s, which divides nothing here.
WIDTHS = (1, 5, 7, 60, 300, 3600, 18000, 86400)
seconds = st.integers(-400, 400) | st.integers(-(10**6), 10**6) | st.integers(-(2**40), 2**40)
amounts = st.integers(0, 9) | st.integers(0, MAX_COUNT)
counts = st.dictionaries(
    st.sampled_from(["a", 'b{x="1"}', "点", "60:a"]),
    st.dictionaries(seconds, amounts, min_size=1, max_size=30),
    max_size=4,
)
retentions = st.dictionaries(
    st.sampled_from(WIDTHS) | st.integers(1, 10**5), st.integers(1, 254), min_size=1, max_size=16
)
#: Many seconds of many series: close together, or far apart.
many = st.builds(
    lambda names, count, step: {
        f"n{name}": {second * step: 1 + second for second in range(count)} for name in range(names)
    },
    st.integers(1, 12),
    st.integers(1, 150),
    st.sampled_from([1, 7, 100_000]),
)


def decoded(made: Operations) -> tuple[list[tuple[str, int, int, int, int]], list[tuple[str, int]]]:
    """Take operations apart as the script does: the intervals, with their keys, and the totals."""
    slices: list[tuple[str, int, int, int, int]] = []
    totals: list[tuple[str, int]] = []
    for each in made:
        if each.code == "slice":
            index, *keys = each.keys
            assert (index, *each.args[:2]) == (
                KEYS.known,
                str(len(KEYS.key("count").encode())),
                "1",
            )
            rows = parse_runs(each.args[2])
            found = [
                (key, p, s, int(start), int(n))
                for key, (p, s, start, n) in zip(keys, rows, strict=True)
            ]
            assert each.at_stake() == [("", 0), *((str(row[3]), row[4]) for row in found)]
            slices += found
            continue
        assert each.code == "add"
        assert each.keys == (KEYS.total,) * (len(each.args) // 2)
        found_totals = [
            (name, int(n)) for name, n in zip(each.args[::2], each.args[1::2], strict=True)
        ]
        assert each.at_stake() == found_totals
        totals += found_totals
    return slices, totals


# Intervals


@pytest.mark.parametrize(
    ("second", "width", "start"),
    [
        *((0, 60, 0), (59, 60, 0), (60, 60, 60), (-1, 60, -60), (-60, 60, -60), (-61, 60, -120)),
        *((6, 7, 0), (7, 7, 7), (-1, 7, -7), (-7, 7, -7), (-8, 7, -14), (61, 7, 56)),
    ],
)
def test_an_event_falls_into_the_slice_below_it(second: int, width: int, start: int) -> None:
    """Before 1970 too, alone or together with another event."""
    alone, _ = decoded(counter_operations(KEYS, {width: 9}, {"a": {second: 4}}))
    assert alone == [(KEYS.count(width, "a"), width, 9, start, 4)]
    both, _ = decoded(
        counter_operations(KEYS, {width: 9}, {"a": {second: 4, start: 3, start - 1: 1}})
    )
    expected = 4 if second == start else 7
    if second == start:
        both, _ = decoded(counter_operations(KEYS, {width: 9}, {"a": {second: 4, start - 1: 1}}))
    assert (KEYS.count(width, "a"), width, 9, start, expected) in both
    assert (KEYS.count(width, "a"), width, 9, start - width, 1) in both


@settings(max_examples=scaled(60))
@given(counts, retentions)
def test_every_event_is_counted_once_at_every_precision(
    events: Counts, retention: dict[int, int]
) -> None:
    """The operations are the sums over each slice, one operation a slice, and the grand totals."""
    slices, totals = decoded(counter_operations(KEYS, retention, events))
    expected: Counter[tuple[str, int, int, int]] = Counter()
    for name, by_second in events.items():
        for second, amount in by_second.items():
            for width, samples in retention.items():
                start = (second - second % width, width)
                assert 0 <= second - start[0] < width
                expected[KEYS.count(width, name), width, samples, start[0]] += amount
    assert {tuple(row[:4]): row[4] for row in slices} == expected
    assert len(slices) == len(expected)
    assert dict(totals) == {name: sum(by_second.values()) for name, by_second in events.items()}
    assert len(totals) == len(events)


@given(st.dictionaries(seconds, amounts, min_size=1, max_size=40))
def test_fine_slices_add_up_to_the_coarse_one(by_second: dict[int, int]) -> None:
    """Wherever one precision divides the other."""
    slices, _ = decoded(counter_operations(KEYS, dict.fromkeys(WIDTHS, 120), {"a": by_second}))
    found = {(width, start): amount for _, width, _, start, amount in slices}
    for fine in WIDTHS:
        for coarse in (width for width in WIDTHS if width % fine == 0):
            sums: Counter[int] = Counter()
            for (width, start), amount in found.items():
                if width == fine:
                    sums[start // coarse * coarse] += amount
            assert sums == {start: n for (width, start), n in found.items() if width == coarse}


@settings(max_examples=scaled(60))
@given(counts, retentions, st.sampled_from([1, 2, 5, 7, 60, 3600]))
def test_only_precisions_that_are_a_multiple_of_the_width_are_made(
    events: Counts, retention: dict[int, int], width: int
) -> None:
    """They are as if every second were known; the totals count everything."""
    by_width: Counts = {}
    for name, by_second in events.items():
        for second, amount in by_second.items():
            start, slices = second // width * width, by_width.setdefault(name, {})
            slices[start] = slices.get(start, 0) + amount
    everything, totals = decoded(counter_operations(KEYS, retention, events))
    made, totals_too = decoded(counter_operations(KEYS, retention, by_width, width=width))
    assert sorted(made) == sorted(row for row in everything if row[1] % width == 0)
    assert totals_too == totals


def test_a_width_of_zero_adds_to_the_grand_total_alone() -> None:
    """Events whose intervals are no longer kept still count in the grand total."""
    events = {"a": {600: 1, 540: 2}, "b": {0: 5}}
    made = counter_operations(KEYS, {1: 5, 60: 5}, events, width=0)
    assert decoded(made) == ([], [("a", 3), ("b", 5)])


def test_operations_look_as_the_script_reads_them() -> None:
    """The index and a key for each interval, with a text of runs; and one key for each total."""
    slices, totals = counter_operations(KEYS, {1: 10, 60: 20}, {"a": {61: 2}, "b": {-1: 3}})
    assert slices.keys == (
        "redmeter:known:",
        *("redmeter:count:1:a", "redmeter:count:60:a", "redmeter:count:1:b", "redmeter:count:60:b"),
    )
    assert slices.args == (
        "15",
        "1",
        ('[1,10,["61"],["2"],60,20,["60"],["2"],1,10,["-1"],["3"],60,20,["-60"],["3"]]'),
    )
    assert (totals.keys, totals.args) == (("redmeter:total:",) * 2, ("a", "2", "b", "3"))
    counts = {"a": {61: 2, 1: 3}, "b": {62: 4, 2: 5}}
    slices, _ = counter_operations(Keys(""), {60: 20}, counts)
    assert slices.keys == ("known:", *["count:60:a"] * 2, *["count:60:b"] * 2)
    assert slices.args == (
        "6",
        "0",
        '[60,20,["60","0"],["2","3","4","5"]]',
    )  # the same intervals: written once
    assert counter_operations(KEYS, {1: 10}, {}) == ()


def test_a_number_that_has_a_name_is_spelled_as_a_number() -> None:
    """That of an enumeration, for instance, whose text is its name."""
    made = event(KEYS, {1: 5}, "a", 7, Size.LARGE)
    assert [each.args[-1] for each in made] == ['[1,5,["7"],["3"]]', "3"]
    assert [list(each.at_stake())[-1] for each in made] == [("7", 3), ("a", 3)]


@given(st.sampled_from(["a", "点"]), seconds, amounts, st.just({}) | retentions, st.booleans())
def test_one_event_alone_does_what_it_does_among_others(
    name: str, second: int, amount: int, retention: dict[int, int], totals: bool
) -> None:
    """Built in a faster way; the total is last, and is left out on request."""
    alone = event(KEYS, retention, name, second, amount, totals=totals)
    among = counter_operations(KEYS, retention, {name: {second: amount}})
    assert [(each.code, each.keys, each.args, list(each.at_stake())) for each in alone] == [
        (each.code, each.keys, each.args, list(each.at_stake()))
        for each in (among if totals else among[:-1])
    ]


# Amounts


@given(st.integers(0, MAX_COUNT))
def test_a_whole_number_is_an_amount(amount: int) -> None:
    """From nothing to what the server can hold."""
    assert check_amount(amount) == amount


@pytest.mark.parametrize("amount", [-1, 2**63, -(2**63), 10**5000, -(10**5000)], ids=range(5))
def test_an_amount_out_of_range_is_refused(amount: int) -> None:
    """Below zero, and past what the server can hold."""
    with pytest.raises(InvalidValue, match=r"a count is 0 to 2\^63 - 1"):
        check_amount(amount)
