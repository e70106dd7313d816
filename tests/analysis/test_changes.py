"""What counts as new, spiking and gone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.comparing.changes import (
    KINDS,
    SETTLED,
    SPIKE_FACTOR,
    SPIKE_MESSAGES,
    find_changes,
    rises,
)
from redmeter.results import Frequency
from redmeter.stored.keys import HOUR

#: The start of an hour.
NOON = 1700000000 - 1700000000 % HOUR
LONG_AGO = float(NOON - 90 * HOUR)


def frequency(
    count: int, before: int, first: float | None = LONG_AGO, pattern: str = "p"
) -> Frequency:
    """So many in this hour and in the one before."""
    return Frequency("app", "info", pattern, count, before, first, first, "")


def change(count: int, before: int, minutes: float, first: float | None = LONG_AGO) -> str:
    """What is found so many minutes into the hour; "" for nothing."""
    found = find_changes([frequency(count, before, first)], NOON + 60 * minutes)
    return found[0].kind if found else ""


@pytest.mark.parametrize(
    ("first", "what"),
    [
        (NOON + 60.0, "new"),
        (float(NOON), "new"),
        (float(NOON - HOUR), "new"),
        (NOON - HOUR - 1.0, ""),
        (LONG_AGO, ""),
        (None, ""),
    ],
)
def test_new_is_what_was_first_seen_in_these_two_hours(first: float | None, what: str) -> None:
    """Where no one knows when it was first seen, it is not new."""
    assert change(1, 0, 30, first) == what


@pytest.mark.parametrize(
    ("ago", "count", "before", "minutes", "what"),
    [
        (1, 100_000, 1, 30, "spiking"),
        (1, 76, 1, 30, "spiking"),  # one in five minutes may have been five
        (1, 75, 1, 30, "new"),
        (10, 30, 10, 30, "new"),  # one a minute, as before
        (10, 92, 10, 30, "spiking"),
        (10, 91, 10, 30, "new"),
        (60, 21, 10, 30, "spiking"),
        (60, 20, 10, 30, "new"),
        (58, 0, 5_000, 30, "gone"),
        (1, 0, 5, 10, "new"),
        (1, 0, 23, 30, "gone"),
        (1, 0, 22, 30, "new"),
        (-1, 100_000, 0, 30, "new"),
    ],
)
def test_what_was_first_seen_in_the_hour_before_may_spike_or_be_gone(
    ago: float, count: int, before: int, minutes: float, what: str
) -> None:
    """By its rate since then; so many minutes before this hour began. Else it is still new."""
    assert change(count, before, minutes, NOON - 60 * ago) == what


@pytest.mark.parametrize(
    ("count", "before", "minutes", "what"),
    [
        (31, 20, 30, "spiking"),  # 10 would be as before
        (30, 20, 30, ""),
        (60, 40, 30, "spiking"),
        (59, 40, 30, ""),
        (14, 0, 59, "spiking"),  # after an hour of silence
        (13, 0, 59, ""),
        (10, 0, 9, "spiking"),
        (9, 0, 9, ""),
        (9, 1, 1, ""),
        (60, 20, 60 - 1e-6, "spiking"),
        (30, 120, 0.1, "spiking"),  # 10 would be as before in the first five minutes
        (29, 120, 0.1, ""),
        (29, 120, 5, ""),
    ],
)
def test_spiking_is_three_times_the_rate_of_the_hour_before(
    count: int, before: int, minutes: float, what: str
) -> None:
    """Of ten messages and more; the first minutes of an hour count as five."""
    assert change(count, before, minutes) == what


@pytest.mark.parametrize(
    ("before", "minutes", "what"),
    [
        (23, 30, "gone"),
        (22, 30, ""),
        (1000, 0.6, "gone"),
        (1000, 0.5, ""),
        (14, 59.9, "gone"),
        (13, 59.9, ""),
    ],
)
def test_gone_is_what_was_to_be_expected_by_now(before: int, minutes: float, what: str) -> None:
    """By the rate of the hour before, which is not exact."""
    assert change(0, before, minutes) == what
    assert change(1, before, minutes) == ""


def test_what_stands_for_many_patterns_does_not_change() -> None:
    """Nobody knows what is in it."""
    assert find_changes([frequency(1000, 0, float(NOON), "(other)")], NOON + 60) == []


def test_changes_come_by_severity_before_anything_else() -> None:
    """Critical first, a custom severity between error and warning, and info after all of these."""
    rows = [
        Frequency("app", severity, "p", count, 0, NOON + 1.0, None, "")
        for severity, count in (
            ("info", 800),
            ("warning", 50),
            ("payment", 9),
            ("error", 3),
            ("critical", 1),
            ("alert", 2),
            ("notice", 70),
            ("trace", 900),
            ("debug", 90),
        )
    ]
    rows += [Frequency("app", "critical", "q", 0, 60, LONG_AGO, None, "")]
    found = find_changes(rows, NOON + 1800)
    assert [(c.severity, c.kind) for c in found] == [
        ("alert", "new"),
        ("critical", "new"),
        ("critical", "gone"),
        ("error", "new"),
        ("payment", "new"),
        ("warning", "new"),
        ("notice", "new"),
        ("info", "new"),
        ("debug", "new"),
        ("trace", "new"),
    ]


def test_changes_come_by_kind_and_then_by_number() -> None:
    """New ones first, then those that spike, then those that are gone."""
    found = find_changes(
        [
            frequency(0, 100, pattern="gone"),
            frequency(99, 1, pattern="some more"),
            frequency(1, 0, float(NOON), "new"),
            frequency(200, 1, pattern="many more"),
            frequency(5, 5, pattern="as ever"),
        ],
        NOON + HOUR - 1,
    )
    assert [(c.kind, c.pattern) for c in found] == [
        ("new", "new"),
        ("spiking", "many more"),
        ("spiking", "some more"),
        ("gone", "gone"),
    ]


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, HOUR - 0.001))
def test_a_change_is_one_of_three_and_never_two(count: int, before: int, passed: float) -> None:
    """The same rate is no change, and more messages never make a spike go away."""
    found = find_changes([frequency(count, before)], NOON + passed)
    assert len(found) <= 1
    assert all(c.kind in KINDS for c in found)
    expected = before * max(passed, SETTLED) / HOUR
    spikes = count >= SPIKE_MESSAGES and count >= SPIKE_FACTOR * expected
    spikes = spikes and rises(count, before, max(passed, SETTLED) / HOUR)
    assert spikes == any(c.kind == "spiking" for c in found)


def chances(rate: float, times: float) -> dict[str, float]:
    """The probability of each change of a random pattern with so many messages an hour.

    Args:
        times: by how much its rate of the last hour is higher.
    """
    kinds: dict[str, float] = {}
    for before in range(45):
        for count in range(180):
            kind = change(count, before, 60 - 1e-6)
            kinds[kind] = kinds.get(kind, 0.0) + poisson(before, rate) * poisson(
                count, rate * times
            )
    return kinds


def poisson(count: int, mean: float) -> float:
    return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))


@pytest.mark.parametrize("rate", [1, 5, 7, 10])
def test_a_stationary_pattern_changes_once_in_ten_thousand_readings(rate: float) -> None:
    """The hour before is as random as the last one, so both counts are."""
    kinds = chances(rate, 1)
    assert (kinds.get("spiking", 0) < 1e-4, kinds.get("gone", 0) < 1e-4) == (True, True), kinds


def test_a_fivefold_rise_is_found() -> None:
    """A pattern with few messages: in five of six cases; with some: nearly always."""
    assert chances(8, 5)["spiking"] >= 0.84
    assert chances(15, 5)["spiking"] >= 0.97
