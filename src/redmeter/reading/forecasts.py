"""Forecasts of series that are read already: of a counter, or of a gauge if there is no counter.

The method is in analysis/forecast.py, the reading of all label sets in aggregates.py.
"""

from redmeter.analysis.forecast import MOST_AHEAD, forecast
from redmeter.errors import LimitExceeded
from redmeter.reading.distributions import check_whole
from redmeter.results import Forecast, Series


def either(
    counted: Series[int], measured: Series[float | None], ahead: int | None = None
) -> Forecast:
    """Return what is to be expected of a counter, or of a gauge where there is no such counter."""
    check_ahead(ahead)
    if not counted and measured:
        return forecast(measured, counts=False, ahead=ahead)
    return forecast(counted, counts=True, ahead=ahead)


def check_ahead(ahead: int | None) -> None:
    """Check how many slices are asked for.

    Raises:
        LimitExceeded: none, or more than there may be.
        TypeError: not a whole number.
    """
    if ahead is None:
        return
    check_whole("ahead", ahead)
    if not 1 <= ahead <= MOST_AHEAD:
        fix = "ask for 1 or more, up to the limit; a coarser precision looks further"
        raise LimitExceeded("intervals ahead", ahead, MOST_AHEAD, fix)
