"""The expected range of a series: of its next intervals, and of those that are over.

Problem: a chart shows values, not whether they are as usual. There are 120 samples of a series, 254
at most; they are counts, with empty nights, bursts, deploys that double all, and gaps.

Idea: one pass through the samples, in order. Before each one, forecast it from those before it
alone; then compare, note the error, and learn. So the past ranges are honest: none of them knew the
value that it is compared with. After the last sample, the same state forecasts the next ones.

    transform   counts become sqrt(x + 3/8), where their noise is the same at any height
                (Anscombe, "The transformation of Poisson, binomial and negative-binomial data",
                1948); gauges are not transformed
    season      of hours the time of day; of days the day of the week: see seasons.py
    methods     exponential smoothing of the level, slow and fast, without and with the season; a
                damped trend (Gardner and McKenzie, "Forecasting trends in time series", 1985); the
                last value; the value a cycle ago. smoothing.py has them
    robust      an error moves a level as far as one of some deviations would, no further (Gelper,
                Fried and Croux, "Robust forecasting with exponential and Holt-Winters smoothing",
                2010); several in a row on one side set it anew. If the values return within a few
                intervals, that was a burst, and the state before it is restored: smoothing.py
    outliers    of the first day may come each day, or not: they are not learned until the next day
                has them, too: seasons.py
    ticks       of a counter that is mostly 0, the range has room for its usual tick: ticks.py
    range       horizons.py combines the methods by their errors, and makes the range of its own
    marks       an interval outside its range is marked once UNMARKED values are known, and ranked
                by its z-score: its distance from the mean of the values before it, in their
                standard deviations

Bound: one pass, some 40 us a sample. The current interval is neither learned from nor judged: it is
the first of those ahead. Hours know no week: 240 of them hold one and a half. Nothing knows
holidays.

benchmarks/forecasting.py compares it with "as the last interval" and "as yesterday".
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from redmeter.analysis.horizons import LEVEL
from redmeter.analysis.seasons import Season
from redmeter.analysis.smoothing import Smoothing
from redmeter.analysis.ticks import Ticks
from redmeter.keys import span
from redmeter.results import Anomaly, Forecast, ForecastCheck, ForecastPoint, Series

#: Finished slices that a forecast needs.
FEWEST_SLICES: Final = 12
#: Measured intervals before the first one that can be marked.
UNMARKED: Final = 24
#: How far it looks at most, slices.
MOST_AHEAD: Final = 48
#: How far it looks unless one says: with a season of the day, of the week, with none.
_AHEAD_DAY, _AHEAD_WEEK, _AHEAD = 24, 14, 12
#: Slices without a measurement after which a gauge has ended.
_ENDED: Final = 24
#: Of a count, what varies anyway, beside the noise of counting.
_VARIES: Final = 0.05


def forecast(
    series: Series[int] | Series[float | None], *, counts: bool, ahead: int | None = None
) -> Forecast:
    """Return what was to be expected of each finished slice, and of the next ones.

    Args:
        series: of a counter, or of a gauge with None for gaps.
        counts: whether it is a counter's.
        ahead: how many slices, the running one included; at most MOST_AHEAD, which are taken where
            there are more. If not given, a day of hours, two weeks of days, else a dozen.

    Returns:
        Without bands and with a `reason` where there is too little to go by.
    """
    finished = series.values[:-1] if series.partial else series.values
    season = Season(series.precision, factors=counts)
    empty = Forecast(
        series.name,
        "counter" if counts else "gauge",
        series.precision,
        method=_method(season, counts),
        level=LEVEL,
        running=series.values[-1] if series.partial and series.values else None,
        reason=_too_little(finished, series.precision),
    )
    if empty.reason:
        return empty
    scale = _Counts() if counts else _Measures(finished)
    state = Smoothing(
        season,
        series.start,
        series.precision,
        factors=counts,
        least=scale.least,
        widest=scale.widest,
        noise=scale.noise,
    )
    past, anomalies, before = list[ForecastCheck](), list[Anomaly](), list[float]()
    ticks = Ticks()
    for start, value in series[: len(finished)]:
        found = state.expected(1)
        band = scale.out(*found) if found is not None else None
        if band is not None and value is not None:
            usual = ticks.widen(band, learned=season.known) if counts else band
            low, mid, high = usual
            outside = len(before) >= UNMARKED and not low <= value <= high
            past.append(ForecastCheck(start, value, low, mid, high, outside))
            if outside:
                anomalies.append(Anomaly(start, value, low, mid, high, _strength(value, before)))
        if value is not None:
            before.append(value)
            ticks.take(value, band[2] if band is not None and season.known else None)
        state.take(None if value is None else scale.into(value))
    coming = []
    end = series.start + len(finished) * series.precision
    for step in range(min(_ahead(season) if ahead is None else ahead, MOST_AHEAD)):
        found = state.expected(step + 1)
        assert found is not None, "so many slices have errors to tell a width by"
        band = scale.out(*found)
        usual = ticks.widen(band, learned=season.known) if counts else band
        coming.append(ForecastPoint(end + step * series.precision, *usual))
    anomalies.sort(key=lambda one: -one.strength)
    return replace(empty, past=tuple(past), ahead=tuple(coming), anomalies=tuple(anomalies))


def _strength(value: float, before: Sequence[float]) -> float:
    """Return the distance of a value from the mean of those before, in their standard deviations.

    Values are scaled, so that no square is infinite; the deviation of a constant is taken as one
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
    what = "level and trend"
    if season.places:
        what = f"level, trend and {'day of the week' if season.lag == 7 else 'time of day'}"
    return f"{what}, combined exponential smoothing" + (" of square roots" if counts else "")


def _too_little(finished: Sequence[float | None], precision: int) -> str:
    known = sum(value is not None for value in finished)
    if not finished:
        return f"no complete interval of {span(precision)} is stored"
    if known < FEWEST_SLICES:
        noun, verb = ("interval", "is") if known == 1 else ("intervals", "are")
        stored = f"{known} complete {noun} of {span(precision)} {verb} stored"
        return f"{stored}, and a forecast needs {FEWEST_SLICES}"
    if all(value is None for value in finished[-_ENDED:]):
        return f"no values in the last {_ENDED} intervals of {span(precision)}"
    return ""


class _Counts:
    """Counts as roots, whose noise is a half at any height, and a part of what they are."""

    #: See Horizon. The noise of counts is known, and a wider range would hold any count.
    least, widest = (0.1, 0.0), 3.0

    def into(self, value: float) -> float:
        return math.sqrt(max(value, 0) + 0.375)

    def noise(self, value: float) -> float:
        return math.sqrt(1.0 + (2 * _VARIES * value) ** 2)

    def out(self, low: float, mid: float, high: float) -> tuple[float, float, float]:
        """Return lowest, middle and highest of the counts: whole numbers around what may be."""
        low, mid, high = map(self._count, (low, mid, high))
        # Squares of roots are a whole number only nearly.
        rounding = 1e-9 + 1e-12 * high
        low, high = math.floor(low + rounding), math.ceil(high - rounding)
        if low > high:
            low = high = round(mid)
        return low, max(low, min(mid, high)), high

    def _count(self, root: float) -> float:
        return max(0.0, root * abs(root) - 0.375)


class _Measures:
    """Measured values, brought near to 1 so that no square of them is beyond a float's range."""

    #: See Horizon.
    least, widest = (0.0, 0.15), 20.0

    def __init__(self, values: Sequence[float | None]) -> None:
        known = [value for value in values if value is not None]
        self._size = max(map(abs, known)) or 1.0
        self._first = known[0] / self._size

    def into(self, value: float) -> float:
        return value / self._size - self._first

    def noise(self, _: float) -> float:
        return 1.0

    def out(self, low: float, mid: float, high: float) -> tuple[float, float, float]:
        return self._value(low), self._value(mid), self._value(high)

    def _value(self, scaled: float) -> float:
        most = sys.float_info.max
        return max(-most, min(most, (scaled + self._first) * self._size))
