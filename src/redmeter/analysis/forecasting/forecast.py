"""The expected range of a series, for its past intervals and for the next ones.

Problem: a chart shows values, not whether they are usual. A series has 120 samples, 254 at most:
counts with empty nights, bursts, deploys that double everything, and gaps.

Idea: one pass through the samples, in order. Forecast each one from the earlier ones alone, then
compare, record the error, and learn. So the past ranges are honest: none has seen the value it is
compared with. After the last sample, the same state forecasts the next ones.

    transform   counts become sqrt(x + 3/8), which makes their noise the same at any level
                (Anscombe, "The transformation of Poisson, binomial and negative-binomial data",
                1948); gauges are not transformed
    season      the local time of day for hours, the day of the week for days: see seasons.py
    methods     exponential smoothing of the level, slow and fast, without and with the season; a
                damped trend (Gardner and McKenzie, "Forecasting trends in time series", 1985); the
                last value; the value one cycle ago: see smoothing.py
    robustness  the effect of an error on a level is limited to a few deviations (Gelper, Fried and
                Croux, "Robust forecasting with exponential and Holt-Winters smoothing", 2010);
                several in a row on one side reset the level. If the values return within a few
                intervals, that was a burst, and the earlier state is restored: see smoothing.py
    outliers    one on the first day may recur daily or not, so it enters the season only if the
                next day has it too: see seasons.py
    ticks       the range of a counter that is mostly 0 covers its usual tick: see _Ticks
    range       the methods are combined by their errors; the errors of the combination make the
                range: see horizons.py
    anomalies   values outside their range, by more than the rounding of a gauge, once UNMARKED
                values are known; ranked by z-score: the distance from the mean of the earlier
                values, in their standard deviations

Bound: one pass, some 40 us per sample. The current interval is neither learned nor checked: it is
the first one ahead. Hourly series have no weekly season: 240 hours are a week and a half. Holidays
are unknown.

benchmarks/forecasting.py compares it with "as the last interval" and "as yesterday".
"""

import math
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from redmeter.analysis.forecasting.horizons import COVERAGE, covering
from redmeter.analysis.forecasting.seasons import Season
from redmeter.analysis.forecasting.smoothing import Smoothing
from redmeter.clock import UTC, Zone
from redmeter.results.forecasts import Anomaly, Forecast, ForecastCheck, ForecastPoint
from redmeter.results.series import Series
from redmeter.stored.keys import span

#: Minimum number of complete intervals with a value.
MIN_INTERVALS: Final = 12
#: Values before the first one that can be an anomaly.
UNMARKED: Final = 24
#: Maximum number of intervals ahead.
MOST_AHEAD: Final = 48
#: Default number of intervals ahead: with a daily season, a weekly one, none.
_AHEAD_DAY, _AHEAD_WEEK, _AHEAD = 24, 14, 12
#: Intervals without a value after which a gauge has ended.
_ENDED: Final = 24
#: Relative variation of a count, in addition to Poisson noise.
_VARIES: Final = 0.05
#: Ticks: number of recent intervals and of recent ticks to use; intervals of the short window.
_INTERVALS, _TICKS, _SHORT = 64, 32, 8
#: Ticks that make them usual rather than chance.
_USUAL: Final = 3
#: Maximum distance of a usual tick from the median, in robust deviations of the square roots; a
#: deviation is at least one half, the noise of counting.
_BEYOND, _DEVIATION, _LEAST_DEVIATION = 3.5, 1.4826, 0.5

_Range = tuple[float, float, float]


def forecast(
    series: Series[int] | Series[float | None],
    *,
    counts: bool,
    ahead: int | None = None,
    zone: Zone = UTC,
) -> Forecast:
    """Return the expected range of each complete interval, and of the next ones.

    Args:
        series: of a counter, or of a gauge with None for gaps.
        counts: whether the series is a counter.
        ahead: number of intervals, including the current one; limited to MOST_AHEAD. The default
            is a day of hours, two weeks of days, else 12.
        zone: whose time of day makes the season.

    Returns:
        A forecast; without ranges and with a `reason` if there is too little data.
    """
    finished = series.values[:-1] if series.partial else series.values
    season = Season(series.precision, factors=counts, start=series.start, zone=zone)
    empty = Forecast(
        series.name,
        "counter" if counts else "gauge",
        series.precision,
        method=_method(season, counts),
        level=COVERAGE,
        running=series.values[-1] if series.partial and series.values else None,
        reason=_missing_data(finished, series.precision),
    )
    if empty.reason:
        return empty
    scale = _Counts() if counts else _Measures(finished)
    state = Smoothing(
        season,
        factors=counts,
        least=scale.least,
        widest=scale.widest,
        noise=scale.noise,
    )
    past, anomalies, before = list[ForecastCheck](), list[Anomaly](), list[float]()
    ticks = _Ticks()
    for start, value in series[: len(finished)]:
        scaled = state.expected(1)
        expected = scale.out(*scaled) if scaled is not None else None
        if expected is not None and value is not None:
            low, mid, high = ticks.widen(expected, learned=season.known) if counts else expected
            near = scale.rounding
            outside = len(before) >= UNMARKED and not low - near <= value <= high + near
            past.append(ForecastCheck(start, value, low, mid, high, outside))
            if outside:
                anomalies.append(Anomaly(start, value, low, mid, high, _strength(value, before)))
        if value is not None:
            before.append(value)
            ticks.take(value, expected[2] if expected is not None and season.known else None)
        state.take(None if value is None else scale.into(value))
    coming = []
    end = series.start + len(finished) * series.precision
    for step in range(min(_ahead(season) if ahead is None else ahead, MOST_AHEAD)):
        scaled = state.expected(step + 1)
        assert scaled is not None, "the minimum of intervals has enough errors for a width"
        expected = scale.out(*scaled)
        expected = ticks.widen(expected, learned=season.known) if counts else expected
        coming.append(ForecastPoint(end + step * series.precision, *expected))
    anomalies.sort(key=lambda anomaly: -anomaly.strength)
    return replace(empty, past=tuple(past), ahead=tuple(coming), anomalies=tuple(anomalies))


def _strength(value: float, before: Sequence[float]) -> float:
    """Return the z-score of a value: its distance from the mean of the earlier values.

    Values are scaled, so that no square is infinite; the deviation of a constant counts as one
    billionth of the largest value.
    """
    size = max(abs(value), *map(abs, before)) or 1.0
    scaled = [each / size for each in before]
    mean = sum(scaled) / len(scaled)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in scaled) / len(scaled))
    return abs(value / size - mean) / max(deviation, 1e-9)


def _ahead(season: Season) -> int:
    if not season.places:
        return _AHEAD
    return _AHEAD_WEEK if season.places == season.cycle == 7 else _AHEAD_DAY


def _method(season: Season, counts: bool) -> str:
    parts = "level and trend"
    if season.places:
        parts = f"level, trend and {'day of the week' if season.lag == 7 else 'time of day'}"
    return f"{parts}, combined exponential smoothing" + (" of square roots" if counts else "")


def _missing_data(finished: Sequence[float | None], precision: int) -> str:
    known = sum(value is not None for value in finished)
    if not finished:
        return f"no complete interval of {span(precision)} is stored"
    if known < MIN_INTERVALS:
        noun, verb = ("interval", "is") if known == 1 else ("intervals", "are")
        stored = f"{known} complete {noun} of {span(precision)} {verb} stored"
        return f"{stored}, and a forecast needs {MIN_INTERVALS}"
    if all(value is None for value in finished[-_ENDED:]):
        return f"no values in the last {_ENDED} intervals of {span(precision)}"
    return ""


class _Counts:
    """Counts as square roots: their noise is one half at any level, plus a relative part."""

    #: Limits of a Horizon. The noise of counts is known, and a wider range would hold any count.
    least, widest = (0.1, 0.0), 3.0
    #: How far beyond its range a value is inside.
    rounding = 0.0

    def into(self, value: float) -> float:
        return math.sqrt(max(value, 0) + 0.375)

    def noise(self, value: float) -> float:
        return math.sqrt(1.0 + (2 * _VARIES * value) ** 2)

    def out(self, low: float, mid: float, high: float) -> tuple[float, float, float]:
        """Return the lowest, middle and highest count; the range ends at whole numbers."""
        low, mid, high = map(self._count, (low, mid, high))
        # The square of a root is only nearly a whole number.
        rounding = 1e-9 + 1e-12 * high
        low, high = math.floor(low + rounding), math.ceil(high - rounding)
        if low > high:
            low = high = round(mid)
        return low, max(low, min(mid, high)), high

    def _count(self, root: float) -> float:
        return max(0.0, root * abs(root) - 0.375)


class _Measures:
    """Values of a gauge, scaled to about 1 so that no square exceeds the range of a float."""

    #: Limits of a Horizon.
    least, widest = (0.0, 0.15), 20.0

    def __init__(self, values: Sequence[float | None]) -> None:
        known = [value for value in values if value is not None]
        self._size = max(map(abs, known)) or 1.0
        self._first = known[0] / self._size
        #: How far beyond its range a value is inside: a constant is not always computed alike.
        self.rounding = 1e-9 * self._size

    def into(self, value: float) -> float:
        return value / self._size - self._first

    def noise(self, _: float) -> float:
        return 1.0

    def out(self, low: float, mid: float, high: float) -> tuple[float, float, float]:
        return self._value(low), self._value(mid), self._value(high)

    def _value(self, scaled: float) -> float:
        most = sys.float_info.max
        return max(-most, min(most, (scaled + self._first) * self._size))


class _Ticks:
    """The ticks of a counter that is mostly 0, with one every seven minutes for example.

    No level predicts the next tick, and the errors of most intervals are close to 0, so a range
    made from them has no room for a tick. This widens the range: from 0 to the usual tick, which is
    a robust empirical quantile of the ticks alone, so that one far larger than the others remains
    outside. Learned interval by interval.

    Bound: ticks that the season predicts, such as a job at three each night, do not count here, and
    neither do values that follow another one directly. It takes three ticks to make them usual.
    """

    def __init__(self) -> None:
        self._empty: deque[bool] = deque(maxlen=_INTERVALS)
        self._ticks: deque[float] = deque(maxlen=_TICKS)
        self._usual = 0.0

    def take(self, value: float, high: float | None) -> None:
        """Learn from the next interval.

        Args:
            value: its count.
            high: upper limit of the range that the season predicts, without ticks; None if it is
                unknown, so that any count is a tick.
        """
        after_zero = not self._empty or self._empty[-1]
        self._empty.append(value <= 0)
        if value > 0 and after_zero and (high is None or value > high):
            self._ticks.append(value)
            self._usual = self._largest_usual()

    def widen(self, expected: _Range, *, learned: bool) -> _Range:
        """Return a range that covers both 0 and the usual tick if the counter is intermittent.

        Args:
            expected: lowest, middle and highest.
            learned: whether the range includes the season: then only ticks that the season did not
                predict lower its start to 0.
        """
        low, middle, high = expected
        if not self._mostly_zero():
            return expected
        if len(self._ticks) >= _USUAL:
            return 0, middle, max(high, self._usual)
        return (low if learned else 0), middle, high

    def _mostly_zero(self) -> bool:
        return all(
            2 * sum(window) > len(window) for window in (self._empty, [*self._empty][-_SHORT:])
        )

    def _largest_usual(self) -> float:
        ticks = sorted(self._ticks)
        half = len(ticks) // 2
        roots = [math.sqrt(tick) for tick in ticks]
        median = roots[half]
        residual = sorted(abs(root - median) for root in roots)[half]
        root = median + _BEYOND * max(_DEVIATION * residual, _LEAST_DEVIATION)
        quantile = covering(ticks)
        return quantile if root >= math.sqrt(quantile) else math.ceil(root * root)
