"""Baselines of another day, and pairs of a verdict, on days of 23 and of 25 hours."""

import pytest

from redmeter.clock import UTC, Zone
from redmeter.queries.arguments import explanation_of
from redmeter.reading.diagnosis.verdict_data import plan
from redmeter.reading.diagnosis.windows import compare
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, Retention
from redmeter.types import Selection

HOUR, DAY = 3600, 86_400
BERLIN, HOWE = Zone("Europe/Berlin"), Zone("Australia/Lord_Howe")
#: 2026-03-29 and 2026-10-25, 01:00 UTC.
SPRING, AUTUMN = 1_774_746_000, 1_792_890_000
KEPT = Retention(DEFAULT_RETENTION)


def baseline(since: int, until: int, zone: Zone, kind: str = "yesterday") -> tuple[int, int]:
    """Return the baseline of a window of hours, relative to its start: hours before it."""
    asked = explanation_of(Selection("x"), since=since, until=until, against=kind, precision=HOUR)
    found = compare(asked, KEPT, until + HOUR, zone)
    assert not found.reason
    assert (found.window.start, found.window.stop) == (since, until)
    end = found.baseline.start + len(found.baseline) * HOUR
    assert found.scale == (until - since) / (end - found.baseline.start)
    return (since - found.baseline.start) // HOUR, (since - end) // HOUR


@pytest.mark.parametrize(
    ("change", "first", "last", "utc", "local"),
    [
        # From 00:00 to 00:00 of the next day: 23 hours with 24, 25 hours with 24.
        (SPRING, -2, 21, (24, 1), (24, 0)),
        (AUTUMN, -3, 22, (24, -1), (24, 0)),
        # The day after: 24 hours with 23, or with 25.
        (SPRING, 21, 45, (24, 0), (23, 0)),
        (AUTUMN, 22, 46, (24, 0), (25, 0)),
        # Some hours after the change, on the same day.
        (SPRING, 3, 5, (24, 22), (23, 21)),
        (AUTUMN, 3, 5, (24, 22), (25, 23)),
        # Both passes of the hour from two to three, with the one of the day before.
        (AUTUMN, -1, 1, (24, 22), (24, 23)),
        # The hours on both sides of the missing one, with three.
        (SPRING, -1, 1, (24, 22), (24, 21)),
        # Two days later, all is as usual.
        (SPRING, 48, 50, (24, 22), (24, 22)),
    ],
)
def test_a_baseline_of_yesterday_has_the_same_local_times(
    change: int, first: int, last: int, utc: tuple[int, int], local: tuple[int, int]
) -> None:
    """Its length differs if the clocks changed within one of both."""
    window = change + first * HOUR, change + last * HOUR
    assert baseline(*window, UTC) == utc
    assert baseline(*window, Zone("Asia/Kolkata")) == utc
    assert baseline(*window, BERLIN) == local


def test_a_week_has_one_hour_more_or_less() -> None:
    """Up to a week after the change."""
    window = SPRING + 6 * DAY, SPRING + 6 * DAY + 2 * HOUR
    assert baseline(*window, BERLIN, "last-week") == (7 * 24 - 1, 7 * 24 - 3)
    later = window[0] + 2 * DAY, window[1] + 2 * DAY
    assert baseline(*later, BERLIN, "last-week") == (7 * 24, 7 * 24 - 2)


def test_half_an_hour_moves_minutes_and_no_hours() -> None:
    """A baseline is made of whole intervals."""
    change = 1_775_314_800
    since, until = change + 3 * HOUR, change + 4 * HOUR
    assert baseline(since, until, HOWE) == (24, 23)
    asked = explanation_of(Selection("x"), since=since, until=until, against="yesterday")
    found = compare(asked, Retention({900: 254, HOUR: 240}), until + HOUR, HOWE)
    assert since - found.baseline.start == DAY + HOUR // 2


@pytest.mark.parametrize(("change", "back"), [(SPRING, 23), (AUTUMN, 25)])
def test_each_pair_of_a_verdict_has_the_same_local_time(change: int, back: int) -> None:
    """Also where some of the hours before a deploy are before the change, and others after it."""
    deploy = change + 6 * HOUR + 60
    now = deploy + 3 * HOUR
    kept = KEPT, Retention(DEFAULT_HISTOGRAMS)
    found = plan(deploy, now, "yesterday", HOUR, *kept, BERLIN)
    assert found.after is not None
    assert found.before is not None
    assert found.after.since - found.before.since == back * HOUR
    assert found.after.until - found.before.until == back * HOUR
    distances = [(one - other) // HOUR for one, other in found.pairs]
    assert distances == [back] * 6 + [24] * 18
    utc = plan(deploy, now, "yesterday", HOUR, *kept)
    assert {one - other for one, other in utc.pairs} == {DAY}
