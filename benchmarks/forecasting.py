"""Hold the forecast against "as the last slice" and "as yesterday", and print one table.

    python benchmarks/forecasting.py [--every N]

From each interval on, as far as its series goes, the next ones are forecast from the 120 before it,
and compared with what came. The series are the hits of the real log by the hour, and the demo's
visitors as they would be counted for weeks. The last slice is the naive forecast; yesterday, or a
week ago of intervals of a day, or five days ago of five hours, the seasonal naive one. Their bands
are quantiles of their own errors within the same 120.

    MAE       mean absolute error, ours and theirs; `ratio` is ours to the better of the two
    MASE      ours to that of the naive forecast of the next interval within the 120 (Hyndman and
              Koehler, "Another look at measures of forecast accuracy", 2006)
    held      part of values that lay within the band, of which 95 % should
    width     mean width of the band
    score     interval score of the bands, ours to the better of theirs (Gneiting and Raftery,
              "Strictly proper scoring rules", 2007; as Winkler, 1972): width and misses in one

A second table has counters that vary by chance alone, and the width of their ranges relative to
that of Poisson's.

With statsmodels installed (pip install statsmodels) its Holt-Winters method of roots is a column of
its own, its MAE to the better of the two at every seventh interval: it is slow.
"""

import argparse
import importlib
import math
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import redis

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from redmeter.analysis.forecasting.forecast import UNMARKED, forecast
from redmeter.analysis.forecasting.horizons import COVERAGE
from redmeter.demo import shape
from redmeter.demo.past import SHOP_PAGES
from redmeter.ingest import access_log
from redmeter.results import Series
from support.chance import exact_range
from support.realdata import REAL_LOG
from table import Row, sized

MINUTE, HOUR, DAY = 60, 3600, 86400
#: Samples that are kept, and of the short log those that the first forecast is made from.
KEPT, FEWEST = 120, 36
#: Pages of a visit, and a page that is hardly asked for.
BUSY = sum(page.often for page in SHOP_PAGES if page.visitors)
RARE = 0.003
#: When the demo's weeks begin, Unix seconds: a Monday.
MONDAY = 1_699_833_600

#: Lowest, middle and highest.
Band = tuple[float, float, float]
#: The samples that are known, where they begin, and how many are wanted.
Forecaster = Callable[[Sequence[int], int, int], list[Band]]


class Case(NamedTuple):
    what: str
    precision: int
    start: int
    values: list[int]
    #: Intervals after which the same time of day or day of the week comes again; 0 for none.
    season: int
    #: How many intervals ahead are looked at.
    ahead: tuple[int, ...]


class Score(NamedTuple):
    """Means over all forecasts of a case, so many intervals ahead."""

    ahead: int
    mae: float
    last: float
    ago: float
    mase: float
    held: float
    width: float
    interval: float
    interval_of_others: float

    @property
    def ratio(self) -> float:
        best = min(self.last, self.ago)
        return self.mae / best if best else math.inf


def cases() -> Iterator[Case]:
    hours = (1, 3, 6, 12, 24)
    if REAL_LOG.exists():
        hits, missing = Counter[int](), Counter[int]()
        for line in REAL_LOG.read_text("utf-8", "replace").splitlines():
            hit = access_log.parse_hit(line)
            if hit is not None:
                hits[int(hit.time) // HOUR * HOUR] += 1
                missing[int(hit.time) // HOUR * HOUR] += str(hit.status) == "404"
        starts = range(min(hits), max(hits) + 1, HOUR)
        for what, counts in (("log, hits", hits), ("log, 404s", missing)):
            values = [counts[start] for start in starts]
            yield Case(f"{what}, 1h", HOUR, starts[0], values, 24, hours)
    for seed in (1, 2):
        yield demo(f"demo, hits, 1h, seed {seed}", HOUR, 28, BUSY, seed, 24, hours)
    yield demo("demo, a rare page, 1h", HOUR, 28, RARE, 3, 24, hours)
    yield demo("demo, hits, 5h", 5 * HOUR, 90, BUSY, 1, 24, hours)
    yield demo("demo, hits, 1d", DAY, 200, BUSY, 1, 7, (1, 2, 7, 14))
    yield demo("demo, hits, 5min", 5 * MINUTE, 3, BUSY, 1, 0, (1, 3, 6, 12))
    yield demo("demo, a rare page, 5min", 5 * MINUTE, 3, 0.1, 2, 0, (1, 3, 6, 12))


def demo(
    what: str,
    precision: int,
    days: int,
    often: float,
    seed: int,
    season: int,
    ahead: tuple[int, ...],
) -> Case:
    chance = random.Random(seed)
    start, fine = MONDAY - MONDAY % precision, min(precision, 5 * MINUTE)
    values = []
    for at in range(start, start + days * DAY, precision):
        rates = [shape.visits(at + part, seed) for part in range(fine // 2, precision, fine)]
        values.append(shape.poisson(sum(rates) * fine * often, chance))
    return Case(what, precision, start, values, season, ahead)


def ours(precision: int) -> Forecaster:
    def of(values: Sequence[int], start: int, ahead: int) -> list[Band]:
        series = Series("x", precision, start, tuple(values), partial=False)
        found = forecast(series, counts=True, ahead=ahead)
        assert not found.reason, found.reason
        return [(one.low, one.mid, one.high) for one in found.ahead]

    return of


def scores(case: Case, forecaster: Forecaster, every: int) -> Iterator[Score]:
    values, furthest = case.values, max(case.ahead)
    rows: dict[int, list[tuple[float, ...]]] = {ahead: [] for ahead in case.ahead}
    first = FEWEST if len(values) <= KEPT else KEPT
    for end in range(first, len(values), every):
        begin = max(0, end - KEPT)
        known = values[begin:end]
        bands = forecaster(known, case.start + begin * case.precision, furthest)
        steps = [abs(b - a) for a, b in pairwise(known)]
        for ahead in case.ahead:
            if end + ahead <= len(values):
                value, (low, mid, high) = values[end + ahead - 1], bands[ahead - 1]
                last, ago = naive(known, ahead, 0), naive(known, ahead, case.season)
                rows[ahead].append(
                    (
                        *(abs(value - middle) for middle in (mid, last[1], ago[1])),
                        abs(value - mid) / (sum(steps) / len(steps)),
                        low <= value <= high,
                        high - low,
                        *(interval_score(value, band) for band in ((low, mid, high), last, ago)),
                    )
                )
    for ahead, found in rows.items():
        mae, last, ago, mase, held, width, *intervals = (
            sum(column) / len(column) for column in zip(*found, strict=True)
        )
        best = min(intervals[1:])
        yield Score(ahead, mae, last, ago, mase, held, width, intervals[0], best)


def naive(known: Sequence[int], ahead: int, season: int) -> Band:
    """Forecast the last value, or the newest one of the same place in a season."""
    lag = season * -(-ahead // season) if season else ahead
    middle = known[ahead - 1 - lag] if season and lag <= len(known) else known[-1]
    errors = sorted(abs(b - a) for a, b in zip(known, known[lag:], strict=False))
    width = errors[min(len(errors), math.ceil((len(errors) + 1) * COVERAGE)) - 1] if errors else 0
    return max(0.0, middle - width), middle, middle + width


def interval_score(value: float, band: Band) -> float:
    low, _, high = band
    return high - low + 2 / (1 - COVERAGE) * max(low - value, 0.0, value - high)


def holt_winters(season: int) -> Forecaster | None:
    try:
        models: Any = importlib.import_module("statsmodels.tsa.holtwinters")
    except ImportError:
        return None

    def of(values: Sequence[int], start: int, ahead: int) -> list[Band]:  # noqa: ARG001
        roots = [math.sqrt(value + 0.375) for value in values]
        known = season and len(values) >= 2 * season
        seasonal = {"seasonal": "add", "seasonal_periods": season} if known else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = models.ExponentialSmoothing(roots, trend="add", damped_trend=True, **seasonal)
            fit = model.fit()
        off = 1.96 * math.sqrt(sum(each * each for each in fit.resid) / len(roots))
        middles = [float(each) for each in fit.forecast(ahead)]
        bands = [[max(0.0, m + by) ** 2 - 0.375 for by in (-off, 0, off)] for m in middles]
        return [(max(0.0, low), max(0.0, mid), high) for low, mid, high in bands]

    return of


def milliseconds() -> float:
    """Return the time of one forecast of a full series, the best of many."""
    case, best = demo("", HOUR, 5, BUSY, 1, 24, ()), math.inf
    for _ in range(sized(50, 1)):
        started = time.perf_counter()
        ours(HOUR)(case.values, case.start, 24)
        best = min(best, time.perf_counter() - started)
    return best * 1e3


def forecasting(_conn: redis.Redis, _url: str) -> Iterator[Row]:
    """Mean absolute errors against the better of the two naive forecasts, for `make bench`."""
    yield Row("a forecast of 120 samples", f"{milliseconds():.1f} ms", "", None, "none")
    for case in cases():
        for one in scores(case, ours(case.precision), every=sized(1, 100)):
            if one.ahead in (1, 6, 24, 7, 12):
                told = f"held {one.held:.0%}, interval score x "
                told += f"{one.interval / one.interval_of_others:.2f}"
                yield Row(
                    f"{case.what}, {one.ahead} ahead",
                    f"{one.mae:,.4g}",
                    f"{min(one.last, one.ago):,.4g}",
                    one.ratio,
                    "<= 1",
                    told,
                )


def small_counters() -> Iterator[tuple[float, tuple[int, int], float, float, float]]:
    """Return the mean of counts, Poisson's range, and means over 30 counters.

    The means are the width of the range relative to Poisson's, the share of counts outside of it,
    and the share of counters that are marked in the first interval after they stopped.
    """
    for mean in (0.5, 1, 2, 3, 5, 8, 10, 15, 20, 50):
        widths, outside, stopped = list[float](), list[bool](), 0
        for seed in range(30):
            chance = random.Random(seed)
            counts = (*(shape.poisson(mean, chance) for _ in range(KEPT)), 0)
            series = Series("x", MINUTE, 0, counts, partial=False)
            *past, last = forecast(series, counts=True).past[UNMARKED:]
            widths += [check.high - check.low for check in past]
            outside += [check.outside for check in past]
            stopped += last.outside
        low, high = exact_range(mean)
        width = sum(widths) / len(widths) / (high - low)
        yield mean, (low, high), width, sum(outside) / len(outside), stopped / 30


ROWS = {"forecast": forecasting}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--every", type=int, default=1, help="look at every Nth slice")
    every = parser.parse_args().every
    line = "{:<27} {:>5} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6} {:>10} {:>6} {:>7}"
    print(
        line.format(
            *("", "ahead", "MAE", "last", "ago", "ratio", "MASE", "held", "width", "score", "HW")
        )
    )
    for case in cases():
        other = holt_winters(case.season)
        theirs = {s.ahead: s for s in scores(case, other, 7 * every)} if other else {}
        for one in scores(case, ours(case.precision), every):
            errors = (f"{each:,.1f}" for each in (one.mae, one.last, one.ago))
            score = one.interval / one.interval_of_others
            print(
                line.format(
                    case.what,
                    one.ahead,
                    *errors,
                    f"{one.ratio:.2f}",
                    f"{one.mase:.2f}",
                    f"{one.held:.1%}",
                    f"{one.width:,.1f}",
                    f"{score:.2f}",
                    f"{theirs[one.ahead].ratio:.2f}" if theirs else "-",
                ),
                flush=True,
            )
    print("\nmean  Poisson's range  width  outside  marked when it stops")
    for mean, (low, high), width, outside, stopped in small_counters():
        print(f"{mean:>4} {low:>8} to {high:<5} {width:>6.2f} {outside:>8.1%} {stopped:>8.0%}")
    print(f"one forecast of 120 samples: {milliseconds():.1f} ms")


if __name__ == "__main__":
    main()
