"""Forecasts of public series: as many values in the range as it promises, and real anomalies."""

import os

import pytest

from support.public_series import HOUR, MINUTE, SERIES, coverage, hits, mean_coverage, read
from support.realdata import NAMED

#: Forecasts of each series: so few that a mean over series is right to about 2 %.
ORIGINS = 20

pytestmark = pytest.mark.realdata


@pytest.fixture(autouse=True)
def there() -> None:
    """Skip where there are no series."""
    if not SERIES.exists():
        if os.environ.get(NAMED):
            pytest.fail(f"missing: {SERIES}, of {NAMED}")
        pytest.skip(f"missing: {SERIES}: set {NAMED} to the folder that holds it")


@pytest.mark.parametrize("precision", [HOUR, 5 * MINUTE])
def test_the_range_holds_what_it_promises(precision: int) -> None:
    """As a mean over the series, at each distance up to a day of hours; see docs/forecast.md."""
    held = mean_coverage([coverage(series, ORIGINS) for series in read(precision)])
    assert len(held) == 24
    assert 0.94 <= sum(held.values()) / len(held) <= 0.965
    assert all(0.89 <= share <= 0.99 for share in held.values())


def test_the_strongest_anomalies_are_as_good_as_those_of_a_z_score() -> None:
    """The strongest 1 % of hours hit as many labeled windows, or one less; the shorter series."""
    found = [hits(series) for series in read(HOUR) if len(series.values) < 2_000]
    ours, scores = (sum(one) for one in zip(*found, strict=True))
    assert ours >= scores - 1 > 5
