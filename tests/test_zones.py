"""Local time through changes of the clocks, and zones that do not exist."""

import zoneinfo
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.clock import UTC, Zone
from redmeter.errors import InvalidSetting
from redmeter.settings import resolve
from support.zones import HOUR, NAME, install

DAY = 86_400
BERLIN = "Europe/Berlin"
CHANGING = (BERLIN, "America/New_York", "Australia/Sydney", "Australia/Lord_Howe", "Asia/Kolkata")


def moment(text: str, fold: int = 0) -> int:
    """Return the Unix time of a local time in Berlin."""
    local = datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(BERLIN), fold=fold)
    return int(local.timestamp())


@pytest.mark.parametrize(
    ("now", "fold", "yesterday"),
    [
        ("2026-03-28T02:30", 0, "2026-03-27T02:30"),
        # The hour from 2 to 3 is missing on 29 March.
        ("2026-03-29T01:59", 0, "2026-03-28T01:59"),
        ("2026-03-29T03:00", 0, "2026-03-28T03:00"),
        ("2026-03-30T00:30", 0, "2026-03-29T00:30"),
        ("2026-03-30T02:30", 0, "2026-03-29T03:30"),
        ("2026-03-30T03:00", 0, "2026-03-29T03:00"),
        # And there twice on 25 October.
        ("2026-10-25T02:30", 0, "2026-10-24T02:30"),
        ("2026-10-25T02:30", 1, "2026-10-24T02:30"),
        ("2026-10-25T23:00", 0, "2026-10-24T23:00"),
        ("2026-10-26T01:30", 0, "2026-10-25T01:30"),
        ("2026-10-26T03:30", 0, "2026-10-25T03:30"),
    ],
)
def test_a_day_ago_is_the_same_time_of_day(now: str, fold: int, yesterday: str) -> None:
    """Whether the day has 23, 24 or 25 hours."""
    at = moment(now, fold)
    assert at - Zone(BERLIN).back(at, DAY) == moment(yesterday)


def test_a_change_counts_in_whole_intervals() -> None:
    """The nearest number of them; half an hour is no hour."""
    at = moment("2026-10-25T12:00")
    assert [Zone(BERLIN).back(at, DAY, step) - DAY for step in (60, HOUR, 2 * HOUR, DAY)] == [
        HOUR,
        HOUR,
        0,
        0,
    ]
    howe = Zone("Australia/Lord_Howe")
    at = int(datetime(2026, 4, 5, 12, tzinfo=zoneinfo.ZoneInfo(howe.name)).timestamp())
    assert [howe.back(at, DAY, step) - DAY for step in (60, 1800, HOUR)] == [1800, 1800, 0]


@given(name=st.sampled_from(CHANGING), at=st.integers(0, 2**32), days=st.sampled_from([1, 7]))
def test_the_same_local_time_is_that_of_the_standard_library(name: str, at: int, days: int) -> None:
    """Except where that time was skipped or repeated."""
    zone, rules = Zone(name), zoneinfo.ZoneInfo(name)
    wanted = datetime.fromtimestamp(at, rules) - timedelta(days=days)
    both = {wanted.replace(fold=fold).timestamp() for fold in (0, 1)}
    found = at - zone.back(at, days * DAY)
    assert found in both
    local = datetime.fromtimestamp(at, rules)
    assert local.utcoffset() == timedelta(seconds=zone.offset(at))


@given(at=st.floats(-(2.0**40), 2.0**40), name=st.sampled_from([*CHANGING, "UTC", "Etc/GMT-5"]))
def test_any_time_has_an_offset(at: float, name: str) -> None:
    """Also before 1970 and after 9999; where clocks never change, a day has 24 hours."""
    zone = Zone(name)
    assert -DAY < zone.offset(at) < DAY
    if name in ("UTC", "Etc/GMT-5"):
        assert zone.back(at, DAY) == DAY


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Europe/Berln",
        "Europe",
        "../etc/passwd",
        "/etc/passwd",
        "x\0",
        "CEST+1x",
        "\ud800",
        "x" * 999,
    ],
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    """With the fix, in code and in the environment."""
    with pytest.raises(InvalidSetting, match=r"^timezone: .* such as Europe/Berlin$"):
        Meter("off", timezone=name)
    with pytest.raises(InvalidSetting, match=r"^REDMETER_TIMEZONE: .*"):
        resolve("timezone", environ={"REDMETER_TIMEZONE": name})
    with pytest.raises(InvalidSetting, match="timezone: text, not int"):
        Meter("off", timezone=5)  # type: ignore[arg-type]


def test_a_machine_without_a_database_has_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is told how to get others."""
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    with pytest.raises(InvalidSetting, match="no time zone database here: pip install tzdata"):
        Zone("No/Zone")
    assert (Zone("UTC").offset(0), UTC.back(0, DAY)) == (0, DAY)


def test_a_zone_of_a_test_changes_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other zones are as they were."""
    install(monkeypatch, 1_000_000, HOUR, 2 * HOUR)
    assert [Zone(NAME).offset(at) for at in (999_999, 1_000_000)] == [HOUR, 2 * HOUR]
    assert Zone(BERLIN).offset(moment("2026-07-01T00:00")) == 2 * HOUR
