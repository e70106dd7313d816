"""What is to be expected of a counter or a gauge, by the samples that are kept of it.

One round trip: both kinds are asked for, and a counter goes before a gauge of its name. How it is
told is in analysis/forecast.py.
"""

from redmeter.analysis.forecast import MOST_AHEAD, forecast
from redmeter.errors import LimitExceeded
from redmeter.keys import Keys
from redmeter.reading.foreign_keys import readable
from redmeter.reading.gauges import laid
from redmeter.reading.series import Grid, window
from redmeter.reading.summaries import check_whole
from redmeter.store import Store
from redmeter.store.query import Query
from redmeter.types import Forecast, Series


def read_forecast(store: Store, name: str, precision: int, *, ahead: int | None = None) -> Forecast:
    """Read what is to be expected of a series, and what was of each slice that is kept.

    Args:
        name: in its stored spelling.
        precision: slice width, seconds.
        ahead: how many slices; see analysis/forecast.py.

    Returns:
        Without bands and with a `reason` where there is too little to go by.

    Raises:
        UnknownPrecision: the store does not keep it; the error lists those that it keeps.
        LimitExceeded: more slices ahead than there may be, or none.
        TypeError: their number is no whole one.
        StoreError: the server cannot be reached or refuses.
    """
    question = expecting(store.keys, name, precision, ahead)
    try:
        question.send(store.read(next(question)))
    except StopIteration as end:
        found: Forecast = end.value
        return found
    raise AssertionError("one exchange answers it")


def expecting(keys: Keys, name: str, precision: int, ahead: int | None = None) -> Query[Forecast]:
    """Ask the same."""
    check_ahead(ahead)
    # Whether the precision is kept, the answer tells; until then it must only be a number.
    width = precision if isinstance(precision, int) else 0
    view, (count, gauge) = yield [
        ("HGETALL", keys.count(width, name)),
        ("HGETALL", keys.gauge(width, name)),
    ]
    first, last = window(view.retention, precision, view.now)
    found = readable({"counter": [count], "gauge": [gauge]})
    grid = Grid(precision, first, last, view.now)
    counted = Series[int](name, precision, first, (), partial=False)
    if "counter" in found:
        counted = grid.series(name, count)
    measured = Series[float | None](name, precision, first, (), partial=False)
    if "gauge" in found:
        measured = laid(grid, name, gauge)
    return either(counted, measured, ahead)


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
