"""The shape of the business: a day looks like a day, and all follows from the seed."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.demo import shape
from redmeter.demo.database import POPULARITY, PRODUCTS

#: A Wednesday, midnight.
DAY = 1_795_564_800
assert DAY % 86400 == 0


def test_more_people_come_by_day_than_by_night() -> None:
    """Before noon and in the evening most; on every day."""
    for day in range(7):
        at = DAY + day * 86400
        night, noon, evening = (shape.visits(at + h * 3600, 1) for h in (3, 10.5, 19.5))
        assert night < 0.45 * min(noon, evening)
        assert night > 0


@given(st.integers(0, 2**40), st.integers())
def test_the_level_follows_from_time_and_seed_and_is_bounded(at: int, seed: int) -> None:
    """Whatever they are."""
    level = shape.visits(at, seed)
    assert level == shape.visits(at, seed)
    assert 0 < level < shape.BUSY * shape.BURST_HEIGHT * 1.2


def test_a_burst_comes_on_most_days_and_passes() -> None:
    """It rises within minutes, and is gone some hours later."""
    days = [
        [shape.burst(DAY + day * 86400 + minute * 60, 1) for minute in range(1440)]
        for day in range(40)
    ]
    highest = [max(day) for day in days]
    assert 20 < sum(level > 2 for level in highest) < 40
    assert all(level < shape.BURST_HEIGHT + 0.01 for level in highest)
    assert all(day[0] == 1.0 and day[-1] < 1.01 for day in days)


@pytest.mark.parametrize("mean", [0.0, 0.3, 4.0, 49.0, 51.0, 3000.0])
def test_what_happens_so_often_on_average_does(mean: float) -> None:
    """And scatters as it should."""
    chance = random.Random(1)
    drawn = [shape.poisson(mean, chance) for _ in range(3000)]
    assert statistics.fmean(drawn) == pytest.approx(mean, rel=0.06)
    assert statistics.pvariance(drawn) == pytest.approx(mean, rel=0.12)
    assert min(drawn) >= 0


def test_the_catalogue_is_one_of_a_shop() -> None:
    """Every product has a name, a price and a shelf of its own."""
    assert len({each.name for each in PRODUCTS}) == len(PRODUCTS) >= 30
    assert [each.id for each in PRODUCTS] == list(range(1, len(PRODUCTS) + 1))
    assert {each.category for each in PRODUCTS} == set(POPULARITY)
    assert all(300 < each.price < 10_000 for each in PRODUCTS)
