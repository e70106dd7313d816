"""Requests and response times by route, with the totals of all requests (totals.py).

Two round trips: counts and moments of label sets, up to a limit; then the histograms of the routes
whose percentiles are shown: the busiest, and those that may be the slowest (see ranking.py). More
label sets than one round trip reads take further ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redmeter.errors import InvalidValue, LimitExceeded
from redmeter.keys import Keys
from redmeter.names import HITS, REQUESTS, SECONDS
from redmeter.reading.curves import asked_counts
from redmeter.reading.distributions import slices_answered, slices_asked
from redmeter.reading.join import Ask, Joined, of_before, of_window
from redmeter.reading.label_sets import LabelSets
from redmeter.reading.routes import Route, RouteCounts, RouteDurations, RouteTable
from redmeter.reading.samples import number_of
from redmeter.reading.totals import Totals, totals
from redmeter.reading.windows import Frame, Span, Window, histogram_window, span_of, whole_window
from redmeter.store import Store
from redmeter.store.query import Query, run, together
from redmeter.store.replies import Reply

#: Label sets that one round trip reads: of requests, and of their durations.
MAX_REQUESTS, MAX_SECONDS = 1_000, 500


def requests(
    keys: Keys,
    window: Window,
    observed: Window,
    *,
    order: str = "count",
    limit: int = 50,
    offset: int = 0,
    containing: str = "",
    durations: bool = True,
    label_sets: int = MAX_REQUESTS,
) -> Query[tuple[Totals, RouteTable]]:
    """Read totals and routes.

    Args:
        window: of counters.
        observed: of histograms.
        order, limit, offset, containing: which routes are returned: see read_routes().
        durations: read the durations of all requests, too.
        label_sets: how many label sets of requests are read at most; of durations half as many.
    """
    questions: list[Query[Any]] = [
        totals(keys, window, observed, durations=durations),
        _routes(keys, window, observed, order, limit, offset, containing, label_sets),
    ]
    everything, (found, pages, now) = yield from together(questions)
    _compare(found, everything, window, now)
    pages.set_shares(found)
    return everything, found


def _routes(
    keys: Keys,
    window: Window,
    observed: Window,
    order: str,
    limit: int,
    offset: int,
    containing: str,
    label_sets: int,
) -> Query[tuple[RouteTable, RouteCounts, float]]:
    """Read routes; return also the server's time, Unix seconds."""
    counts = _asks(keys.key("count"), window)
    moments = _asks(keys.key("moments"), observed, before=False)
    requests = LabelSets(keys, keys.known, window.fine, REQUESTS)
    seconds = LabelSets(keys, keys.hists, observed.fine, SECONDS)
    _, replies = yield [
        requests.join(counts, MAX_REQUESTS),
        seconds.join(moments, MAX_SECONDS),
        requests.size(),
        seconds.size(),
    ]
    table = RouteTable([], of=number_of(replies[2]), timed=number_of(replies[3]))
    first, first_timed = (
        Joined(reply, len(asks), needed=False)
        for reply, asks in zip(replies, (counts, moments), strict=False)
    )
    joined, timed = yield from together(
        [
            requests.read_on(first, counts, MAX_REQUESTS, label_sets),
            seconds.read_on(first_timed, moments, MAX_SECONDS, label_sets // 2),
        ]
    )
    pages, timings = RouteCounts(table, window, joined), RouteDurations(timed)
    timings.set_sums(table, pages.by_route)

    now = first_timed.now
    chosen = timings.chosen()
    drawn = pages.drawn(order, offset, limit, containing)
    fields, before = observed.slices(now), observed.slices_before(now)
    parts_asked = [
        slices_asked(keys, chosen, fields),
        slices_asked(keys, chosen, before) if before else [],
        asked_counts(keys, drawn, window.drawn()),
    ]
    parts: list[Sequence[Reply]] = [[] for _ in parts_asked]
    if any(parts_asked):
        _, replies = yield [command for commands in parts_asked for command in commands]
        answers = iter(replies)
        parts = [[next(answers) for _ in commands] for commands in parts_asked]
    spreads = slices_answered(chosen, fields, parts[0], needed=False)
    spreads_before = slices_answered(chosen, before, parts[1], needed=False) if before else {}
    timings.set_percentiles(table, pages.by_route, spreads, spreads_before)
    pages.draw(table, window, drawn, parts[2], now)
    ordered = pages.ordered(order, containing)
    table.routes, table.found = ordered[offset : offset + limit], len(ordered)
    return table, pages, now


def _compare(found: RouteTable, totals: Totals, window: Window, now: float) -> None:
    """Write down how many requests there were in all, before, and within how many seconds."""
    started = totals.hits.start if totals.hits.values else found.oldest
    if totals.exist:
        found.hits_name, found.hits = HITS, totals.count
        found.hits_before = totals.count_before
        if totals.began:
            found.hits_before = found.count_before = None
    elif found.count:
        found.hits_name, found.hits, found.hits_before = REQUESTS, found.count, found.count_before
    if not found.hits_before and not found.count_before:
        # Nothing is known of the time before: who counts now may not have been there.
        found.hits_before = found.count_before = None
    now = window.moment(now)
    found.seconds = window.seconds(now)
    if not found.hits_before and started is not None:
        # It began within the window: the time before does not count.
        found.seconds = min(found.seconds, max(now - started, 1.0))


def _asks(family: str, window: Window, *, before: bool = True) -> list[Ask]:
    asks = [of_window(family, window)]
    if before and window.earlier:
        asks.append(of_before(family, window))
    return asks


# --- As a list ----------------------------------------------------------------------------

#: Most rows.
MAX_ROWS = 200
#: Label sets of requests that are read at most, MAX_REQUESTS in each round trip.
MAX_LABEL_SETS = 10_000

ORDERS = ("count", "p95", "failing", "total")


@dataclass(slots=True)
class Routes:
    """The highest first."""

    window: Span
    rows: list[Route]
    #: Routes that there are, of those that were asked for.
    found: int
    #: Label sets of requests that there are, and that were looked at.
    of: int
    examined: int
    #: Series of durations, and those of which percentiles were read.
    timed: int
    timed_read: int
    sampled: bool
    values_start: int
    values_precision: int


def read_routes(
    store: Store,
    precision: int,
    *,
    order: str = "count",
    limit: int = 50,
    offset: int = 0,
    containing: str = "",
    frame: Frame | None = None,
) -> tuple[float, Routes]:
    """Read the routes of a web application.

    In two round trips, and one more for each 1,000 label sets of requests beyond the first.

    Args:
        precision: interval width, seconds; its samples are the window.
        order: `count`, `p95`, `failing` (failed requests; routes without any are left out),
            or `total`: the time that all requests of a route take in all, count x mean.
        limit, offset: which rows.
        containing: only routes that contain this text.
        frame: the window; None: all samples of the precision.

    Returns:
        The server's clock, Unix seconds, and the routes.

    Raises:
        InvalidValue: there is no such order.
        UnknownPrecision, LimitExceeded, StoreError: see redmeter.reading.top.top.
    """
    if order not in ORDERS:
        raise InvalidValue(order, f"order by one of {', '.join(ORDERS)}")
    if not 1 <= limit <= MAX_ROWS:
        raise LimitExceeded("rows", limit, MAX_ROWS, "ask for 1 or more, up to the limit")
    view, (_, found) = run(
        store,
        lambda kept: requests(
            store.keys,
            window := whole_window(kept.series, precision, frame),
            histogram_window(kept.histograms, window),
            order=order,
            limit=limit,
            offset=offset,
            containing=containing,
            durations=False,
            label_sets=MAX_LABEL_SETS,
        ),
    )
    window = whole_window(view.retention, precision, frame)
    return view.now, Routes(
        span_of(window, histogram_window(view.histograms, window), view.now),
        found.routes,
        found.found,
        found.of,
        found.examined,
        found.timed,
        found.timed_read,
        found.sampled,
        found.values_start,
        found.values_precision,
    )
