"""What the time of day does to a series: which slices share a place, and what is learned of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.forecasting.seasons import DAY, Season
from redmeter.stored.keys import HOUR


@pytest.mark.parametrize(
    ("precision", "places", "cycle", "lag"),
    [
        (60, 0, 0, 0),
        (HOUR, 24, 24, 24),
        (2 * HOUR, 12, 12, 12),
        (5400, 16, 16, 16),
        (5 * HOUR, 24, 5, 24),
        (DAY // 2, 0, 0, 0),
        (DAY, 7, 7, 7),
        (7 * DAY, 0, 0, 0),
    ],
)
def test_slices_of_hours_have_a_time_of_day_and_those_of_days_a_day_of_the_week(
    precision: int, places: int, cycle: int, lag: int
) -> None:
    """Others have none: they are too short, or too long."""
    season = Season(precision, factors=True)
    assert (season.places, season.cycle, season.lag) == (places, cycle, lag)


@given(
    precision=st.sampled_from([HOUR, 2 * HOUR, 5400, 5 * HOUR, 7000, 8 * HOUR, DAY]),
    number=st.integers(-1000, 100_000),
)
def test_a_place_comes_again_after_the_lag_and_nowhere_in_between_but_near_it(
    precision: int, number: int
) -> None:
    """Intervals share a place where they begin at the same hour of the day, or day of the week."""
    start = number * precision
    season = Season(precision, factors=True, start=start)
    place = season.place(0)
    assert 0 <= place < season.places
    assert season.place(season.lag) == place
    assert season.before(season.lag) == (0, 0.0)
    if precision < DAY:
        assert place == start % DAY * season.places // DAY


@pytest.mark.parametrize("precision", [HOUR, 5 * HOUR, DAY])
@pytest.mark.parametrize("factors", [True, False])
def test_what_repeats_is_learned_whatever_the_level_does(precision: int, factors: bool) -> None:
    """As a factor or a difference; half a cycle late, so from the second cycle on."""
    season = Season(precision, factors=factors)

    def shape(start: int) -> float:
        if precision == DAY:
            return 1.6 if season.place(start // DAY) < 4 else 0.4
        return 1.6 if 8 * HOUR <= start % DAY < 20 * HOUR else 0.4

    values: list[float | None] = []
    for at in range(120):
        level, part = 100 + at, shape(at * precision)
        values.append(level * part if factors else level + 40 * part)
        season.learn(values, values)
        assert season.known == (at + 1 >= season.cycle)
    learned = {
        season.place(at): (season.alone[season.place(at)], shape(at * precision))
        for at in range(season.lag)
    }
    highs = [found for found, part in learned.values() if part > 1]
    lows = [found for found, part in learned.values() if part < 1]
    flat = 1.0 if factors else 0.0
    assert min(highs) > flat > max(lows)
    assert min(highs) - max(lows) > (0.5 if factors else 20)


def test_gaps_teach_nothing() -> None:
    """A place that was never seen is as any other."""
    season = Season(HOUR, factors=False)
    values: list[float | None] = []
    for at in range(96):
        values.append(None if at % 24 == 3 else 10.0 + at % 24)
        season.learn(values, values)
    assert season.alone[3] == 0.0
    assert season.alone[2] < 0 < season.alone[20]
    assert season.smooth[3] == pytest.approx((season.alone[2] + season.alone[4]) / 2, abs=1.5)
