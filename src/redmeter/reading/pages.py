"""The pages of a web application as a list: see traffic.py."""

from dataclasses import dataclass

from redmeter.errors import InvalidValue, LimitExceeded
from redmeter.reading.overview import Span, span_of
from redmeter.reading.requested import Page
from redmeter.reading.traffic import traffic
from redmeter.reading.windows import histogram_window, whole_window
from redmeter.store import Store
from redmeter.store.query import run

#: Most rows.
MAX_ROWS = 200
#: Label sets of requests that are read at most, MAX_REQUESTS in each round trip.
MAX_LABEL_SETS = 10_000

ORDERS = ("count", "p95", "failing", "total")


@dataclass(slots=True)
class Pages:
    """The highest first."""

    window: Span
    rows: list[Page]
    #: Pages that there are, of those that were asked for.
    found: int
    #: Label sets of requests that there are, and that were looked at.
    of: int
    looked_at: int
    #: Series of durations, and those of which percentiles were read.
    timed: int
    timed_read: int
    sampled: bool
    values_start: int
    values_precision: int


def read_pages(
    store: Store,
    precision: int,
    *,
    order: str = "count",
    limit: int = 50,
    offset: int = 0,
    containing: str = "",
) -> Pages:
    """Read the pages of a web application.

    In two round trips, and one more for each 1,000 label sets of requests beyond the first.

    Args:
        precision: slice width, seconds; its samples are the window.
        order: `count`, `p95`, `failing` (the number of requests that failed; pages that have some),
            or `total`: the time that all requests to a page take together, hits x mean.
        limit, offset: which rows.
        containing: only routes that contain this text.

    Raises:
        InvalidValue: there is no such order.
        UnknownPrecision, LimitExceeded, StoreError: see redmeter.reading.top.top.
    """
    return read_pages_now(
        store, precision, order=order, limit=limit, offset=offset, containing=containing
    )[1]


def read_pages_now(
    store: Store, precision: int, *, order: str, limit: int, offset: int, containing: str
) -> tuple[float, Pages]:
    """Return the pages, and the server's clock, Unix seconds: see read_pages()."""
    if order not in ORDERS:
        raise InvalidValue(order, f"order by one of {', '.join(ORDERS)}")
    if not 1 <= limit <= MAX_ROWS:
        raise LimitExceeded("rows", limit, MAX_ROWS, "ask for 1 or more, up to the limit")
    view, (_, found) = run(
        store,
        lambda kept: traffic(
            store.keys,
            window := whole_window(kept.series, precision),
            histogram_window(kept.histograms, window),
            order=order,
            limit=limit,
            offset=offset,
            containing=containing,
            durations=False,
            label_sets=MAX_LABEL_SETS,
        ),
    )
    window = whole_window(view.retention, precision)
    return view.now, Pages(
        span_of(window, histogram_window(view.histograms, window), view.now),
        found.pages,
        found.found,
        found.of,
        found.looked_at,
        found.timed,
        found.timed_read,
        found.sampled,
        found.values_start,
        found.values_precision,
    )
