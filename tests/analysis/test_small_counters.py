"""Ranges of small counters: those of Poisson if they vary by chance alone, wider if not."""

import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from statistics import fmean

import pytest

from redmeter.analysis.forecasting.forecast import UNMARKED, forecast
from redmeter.analysis.forecasting.scales import HALF_POISSON, RootScale
from redmeter.demo import shape
from redmeter.results import ForecastCheck, Series
from support.chance import exact_range

#: Means of an interval.
SMALL = (0.5, 1, 2, 3, 5, 8, 12, 20)
SEEDS = range(12)


def checks(
    draw: Callable[[random.Random], int], precision: int = 60, *, then: tuple[int, ...] = ()
) -> Iterator[tuple[ForecastCheck, ...]]:
    """Forecast counters of 120 drawn counts and some others, from the first that may be marked."""
    for seed in SEEDS:
        chance = random.Random(seed)
        counts = (*(draw(chance) for _ in range(120)), *then)
        series = Series("x", precision, 0, counts, partial=False)
        past = forecast(series, counts=True, ahead=1).past
        yield tuple(check for check in past if check.start >= UNMARKED * precision)


@pytest.mark.parametrize("precision", [60, 3600])
def test_the_range_of_a_small_counter_is_that_of_poisson(precision: int) -> None:
    """On average, it is as wide to within some percent; the marks are at most the nominal 5 %.

    The exact width is a mean as well, of the counters whose mean is a tenth larger or smaller: at
    1 it is 3, and at 1.1 it is 4.
    """
    ratios = {}
    for mean in SMALL:
        pasts = checks(partial(shape.poisson, mean), precision)
        every = [check for past in pasts for check in past]
        exact = [exact_range(mean * (1 + part / 20)) for part in range(-4, 5)]
        ratios[mean] = fmean(c.high - c.low for c in every) / fmean(b - a for a, b in exact)
        assert fmean(check.outside for check in every) <= 0.06, mean
    assert {mean: ratio for mean, ratio in ratios.items() if not 0.92 <= ratio <= 1.12} == {}
    assert fmean(ratios.values()) == pytest.approx(1, abs=0.07)


@pytest.mark.parametrize("mean", [5, 8, 20])
def test_a_small_counter_that_stops_is_marked(mean: float) -> None:
    """Its first empty interval: nine of ten counters of 5, and all larger ones."""
    stopped = [past[-1].outside for past in checks(partial(shape.poisson, mean), then=(0,))]
    assert sum(stopped) >= (11 if mean == 5 else 12)


@pytest.mark.parametrize(("mean", "excess"), [(2, 2), (10, 2), (20, 4)])
def test_counts_that_vary_by_more_than_chance_have_wider_ranges(mean: float, excess: float) -> None:
    """Negative binomial counts, of twice and four times the variance: some 95 of 100 are inside."""

    def draw(chance: random.Random) -> int:
        return shape.poisson(chance.gammavariate(mean / (excess - 1), excess - 1), chance)

    every = [check for past in checks(draw) for check in past]
    assert 0.93 <= fmean(not check.outside for check in every) <= 0.99


def test_the_ranges_of_poisson_are_those_of_its_quantiles() -> None:
    """The squares of limits of roots, rounded down: nine in ten are exact, no other is off by 2."""
    off = []
    for tenth in range(1, 300):
        root = math.sqrt(tenth / 10)
        low, _, high = RootScale().out(root - HALF_POISSON, root, root + HALF_POISSON)
        exact = exact_range(tenth / 10)
        off.append(max(abs(low - exact[0]), abs(high - exact[1])))
    assert off.count(0) >= 0.88 * len(off)
    assert max(off) == 1
