"""Forecasts of a series that follows local time, through changes of the clocks."""

import math
import random
from collections.abc import Callable

import pytest

from redmeter.analysis.forecasting.forecast import forecast
from redmeter.analysis.forecasting.seasons import DAY, Season
from redmeter.clock import UTC, Zone
from redmeter.results import Forecast, Series
from redmeter.stored.keys import HOUR

BERLIN, HOWE = Zone("Europe/Berlin"), Zone("Australia/Lord_Howe")
#: 2026-03-29 and 2026-10-25, 01:00 UTC.
SPRING, AUTUMN = 1_774_746_000, 1_792_890_000


def wave(hour: float) -> float:
    """Return the level at an hour of the day."""
    return 400 + 350 * math.cos((hour - 15) / 12 * math.pi)


def series(
    zone: Zone,
    end: int,
    precision: int = HOUR,
    shape: Callable[[float], float] = wave,
    seed: int = 0,
) -> Series[int]:
    """Return 240 counts before a time."""
    chance, count = random.Random(end + seed), 240
    starts = [end - number * precision for number in range(count, 0, -1)]
    values = []
    for start in starts:
        hour = (start + precision / 2 + zone.offset(start)) % DAY / HOUR
        level = shape(hour) * precision / HOUR
        values.append(max(0, round(chance.gauss(level, math.sqrt(level)))))
    return Series("x", precision, starts[0], tuple(values), partial=False)


def marked(found: Forecast, since: int) -> int:
    """Return how many intervals are marked from a time on."""
    return sum(point.outside for point in found.past if point.start >= since)


@pytest.mark.parametrize("change", [SPRING, AUTUMN])
def test_the_day_after_a_change_is_as_any_other(change: int) -> None:
    """In UTC, it is a surprise."""
    local, utc, calm = 0, 0, 0
    for seed in range(10):
        some = series(BERLIN, change + DAY, shape=lambda hour: 10 * wave(hour), seed=seed)
        local += marked(forecast(some, counts=True, zone=BERLIN), change)
        utc += marked(forecast(some, counts=True), change)
        some = series(BERLIN, change, shape=lambda hour: 10 * wave(hour), seed=seed)
        calm += marked(forecast(some, counts=True), change - DAY)
    assert local < calm + 8
    assert utc > calm + 25


@pytest.mark.parametrize("change", [SPRING, AUTUMN])
def test_the_next_day_is_forecast_by_its_own_clock(change: int) -> None:
    """Right before a change, the middles ahead are those of the local hours."""
    some = series(BERLIN, change - 2 * HOUR)

    def error(zone: Zone) -> float:
        ahead = forecast(some, counts=True, ahead=26, zone=zone).ahead[4:]
        wanted = [wave((p.start + HOUR / 2 + BERLIN.offset(p.start)) % DAY / HOUR) for p in ahead]
        return sum(abs(p.mid - w) for p, w in zip(ahead, wanted, strict=True)) / len(ahead)

    assert error(BERLIN) < 30 < 60 < error(UTC)


@pytest.mark.parametrize(
    ("zone", "change"), [(BERLIN, SPRING), (BERLIN, AUTUMN), (Zone("America/New_York"), AUTUMN)]
)
@pytest.mark.parametrize("precision", [HOUR, 2 * HOUR, 5 * HOUR, 8 * HOUR])
def test_places_move_with_the_clock(zone: Zone, change: int, precision: int) -> None:
    """An interval has the place of its first local hour, or the nearest of its width."""
    start = change // precision * precision - 50 * precision
    season = Season(precision, factors=True, start=start, zone=zone)
    for at in range(100):
        moment = start + at * precision
        local = moment + zone.offset(moment) - zone.offset(start)
        width = DAY // season.places
        gap = (local - season.place(at) * width + width / 2) % DAY - width / 2
        assert abs(gap) <= HOUR if precision > HOUR else gap == 0
    for at in range(season.lag + 1, 100):
        before, later = season.before(at)
        moments = [start + each * precision for each in (at, before)]
        hours = [each + zone.offset(each) for each in moments]
        days = season.lag * precision
        assert hours[0] - hours[1] - later * precision in (days, days - HOUR)
        assert later == 0 if precision == HOUR else abs(later) <= 0.5


def test_half_an_hour_is_a_mix_of_two_places() -> None:
    """Lord Howe's clocks change by half an hour, on 5 April 2026 at 15:00 UTC the day before."""
    change = 1_775_314_800
    assert [HOWE.offset(change - 1), HOWE.offset(change)] == [11 * HOUR, 10 * HOUR + 1800]
    season = Season(HOUR, factors=True, start=change - DAY, zone=HOWE)
    season.alone = season.smooth = [float(place) for place in range(24)]
    before, after = season.place(20), season.place(44)
    assert before == after
    assert season.effects(20) == (before, before)
    assert season.effects(44) == (before - 0.5, before - 0.5)
    assert [season.before(44), season.before(20 + 72)] == [(20, -0.5), (68, 0.0)]
    some = series(HOWE, change + DAY)
    assert marked(forecast(some, counts=True, zone=HOWE), change) <= 2


def same(one: Forecast, other: Forecast) -> bool:
    """Return whether two forecasts have the same ranges."""
    return (one.past, one.ahead, one.anomalies) == (other.past, other.ahead, other.anomalies)


@pytest.mark.parametrize("precision", [300, HOUR, 5 * HOUR, DAY])
@pytest.mark.parametrize("name", ["Etc/GMT-5", "Asia/Kolkata", "Asia/Kathmandu", "Etc/GMT+12"])
def test_where_clocks_never_change_the_ranges_are_those_in_utc(precision: int, name: str) -> None:
    """A plain shift makes no difference; neither does a change to minutes and days."""
    some = series(UTC, AUTUMN // precision * precision + 5 * precision, precision)
    found = forecast(some, counts=True)
    assert same(forecast(some, counts=True, zone=Zone(name)), found)
    if precision in (300, DAY):
        assert same(forecast(some, counts=True, zone=BERLIN), found)
