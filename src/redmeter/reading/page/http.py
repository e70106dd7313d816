"""Requests and response times by route, with the totals of all requests (totals.py).

Counts are from `http_requests{method,route,status}`. Durations are from
`http_request_seconds{method,route}`: means and totals of all label sets from their moments,
percentiles from the histograms of some.

Two round trips: counts and moments of label sets, up to a limit; then the histograms and curves of
the routes that are shown, and the histograms of those that may be the slowest (see ranking.py).
More label sets than one round trip reads take further ones.

Requests beyond the limit of label sets have no labels, so what failed of them is what the routes
with labels leave of all failed requests, `hits_failed`. It is unknown unless both count the same
requests.

By error rate, routes are ordered by the rate that they have at least: see ranking.at_least().
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redmeter.errors import InvalidValue, LimitExceeded
from redmeter.names import HITS, REQUESTS, SECONDS, is_failure
from redmeter.reading.distributions import slices_answered, slices_asked
from redmeter.reading.join import Ask, Joined, of_before, of_window, series_in
from redmeter.reading.ranking import (
    MAX_RANKED_HISTOGRAMS,
    RankedGroup,
    at_least,
    choose_candidates,
    highest,
    quantile_of,
    sums_of,
)
from redmeter.reading.samples import counts_of, number_of, summed
from redmeter.reading.selection import OTHER, LabelSets, hashes_of
from redmeter.reading.totals import Totals, request_totals
from redmeter.reading.windows import Coverage, Frame, Span, histogram_window, span_of, whole_window
from redmeter.store import Store
from redmeter.store.query import Query, in_parts, run_query, together
from redmeter.store.servers.replies import Reply
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Keys
from redmeter.stored.moments import Sums

#: Label sets that one round trip reads: of requests, and of their durations.
REQUEST_PAGE, _DURATION_PAGE = 1_000, 500
#: Label sets of requests that a list reads at most, and rows that it has.
MAX_REQUESTS, _MAX_ROWS = 10_000, 200
#: Routes of which one is the slowest: four times as many are read, those that may be.
SLOWEST_OF = 10
#: The quantile that routes are compared by.
_SLOW = 0.95
#: Series of requests of which small curves are made.
_MAX_DRAWN = 4_000
#: How far the requests of all routes and `hits` may differ, if they are the same requests.
_ALIKE = 0.02

ROUTE_ORDERS = ("count", "p95", "failing", "total")


@dataclass(slots=True)
class Route:
    """A route within a window."""

    route: str
    count: int = 0
    #: Requests within as long a time before the window; None where nothing keeps it.
    before: int | None = None
    per_second: float = 0.0
    #: Its share of all requests, 0 to 1.
    share: float = 0.0
    #: Requests that failed, and their part of its own, 0 to 1; None where it is unknown.
    failed: int | None = 0
    failing: float | None = 0.0
    #: The mean of its durations, and their p95, seconds; None where none is known.
    mean: float | None = None
    p95: float | None = None
    #: The sum of its durations, seconds, and its share of that of all routes.
    total: float | None = None
    total_share: float | None = None
    #: Its counts by intervals, see `RouteTable.values_start` and `values_precision`; None
    #: before its first request, nothing if there are too many routes.
    values: list[float | None] = field(default_factory=list)

    def value(self, order: str) -> float:
        """Return the value that routes are ordered by: see read_routes()."""
        if order == "failing":
            return at_least(self.failed or 0, self.count)
        values = {"count": self.count, "p95": self.p95}
        return values.get(order, self.total) or 0.0


@dataclass(slots=True)
class RouteTable:
    """The routes within a window, and right before it."""

    window: Span
    #: The highest first.
    rows: list[Route]
    #: Routes that there are, of those that were asked for.
    found: int = 0
    #: Label sets of requests that there are, and how many were looked at.
    of: int = 0
    examined: int = 0
    #: Series of durations that there are, and of how many histograms were read.
    timed: int = 0
    timed_read: int = 0
    #: When they were read, Unix seconds, if they are of very many label sets: the overview keeps
    #: these for a while. None: just now.
    ranked_at: float | None = None
    #: Whether only some requests were timed: then totals are estimates.
    sampled: bool = False
    values_start: int = 0
    values_precision: int = 1
    #: Start of the oldest interval with a request.
    oldest: int | None = None
    #: Requests of the label sets that were looked at; the same before the window, None where
    #: nothing keeps it.
    count: int = 0
    count_before: int | None = None
    slowest: Route | None = None
    slowest_before: float | None = None
    #: All requests. By `hits`, or, where nobody counts that, of the label sets that were looked at:
    #: which of them it is; "" where there is neither. Then how many, the same before the window,
    #: and how many seconds that took.
    hits_name: str = ""
    hits: int = 0
    hits_before: int | None = None
    seconds: float = 1.0


class _Routes:
    """Sums label sets up by route, and chooses those of which histograms and curves are read.

    Args:
        table: is filled in.
        window: of counters.
        requests: the label sets of requests, with their counts.
        durations: the label sets of durations, with their moments.
    """

    def __init__(
        self,
        table: RouteTable,
        window: Coverage,
        requests: Sequence[Joined],
        durations: Sequence[Joined],
    ) -> None:
        self._table = table
        self.by_route: dict[str, Route] = {}
        #: The series of each route, counted and timed.
        self._counted, self._timed = dict[str, RankedGroup](), dict[str, RankedGroup]()
        #: Requests whose labels are lost, beyond the limit of label sets.
        self._nameless = 0
        #: The moments of each timed series, and the timed share of those that are sampled.
        self._sums: dict[str, Sums] = {}
        self._shares: dict[str, float] = {}
        self._count(requests, window)
        self._time(durations)

    def _count(self, requests: Sequence[Joined], window: Coverage) -> None:
        table = self._table
        for name, (_, labels), replies in series_in(requests):
            table.examined += 1
            counts, *earlier = map(counts_of, replies)
            if counts:
                oldest = min(counts)
                table.oldest = oldest if table.oldest is None else min(table.oldest, oldest)
            sums = [Sums(sum(each.values())) for each in (counts, *earlier)]
            if ("overflow", "true") in labels:
                self._nameless += sums[0].count
            self._counted.setdefault(route_of(labels), RankedGroup()).add(
                name,
                *sums,
                failed=is_failure(dict(labels).get("status")),
            )
        for route, group in self._counted.items():
            self.by_route[route] = Route(
                route, group.sums.count, group.count_before, failed=group.failed
            )
        table.count = sum(row.count for row in self.by_route.values())
        if window.earlier:
            table.count_before = sum(row.before or 0 for row in self.by_route.values())

    def _time(self, durations: Sequence[Joined]) -> None:
        for name, (_, labels), (reply,) in series_in(durations):
            sums = sums_of("histogram", reply)
            if not sums.count:
                continue
            self._sums[name] = sums
            self._timed.setdefault(route_of(labels), RankedGroup()).add(name, sums)
            share = _share(dict(labels).get("sampled"))
            if share is not None:
                self._shares[name] = share
        self._table.sampled = bool(self._shares)
        for route, group in self._timed.items():
            row = self.by_route.setdefault(route, Route(route))
            row.mean = group.sums.exact_mean
            # An estimate, where series are samples.
            totals = [
                (self._sums[name].exact_total, self._shares.get(name, 1.0)) for name in group.series
            ]
            row.total = _finite_sum(None if n is None else n / share for n, share in totals)
        timed = [self.by_route[route] for route in self._timed]
        everything = _finite_sum(row.total for row in timed)
        for row in timed:
            if row.total is not None and everything is not None:
                row.total_share = row.total / everything if everything > 0 else 0.0

    def set_shares(self) -> None:
        """Set the shares and rates of the routes."""
        table = self._table
        all_counted = table.examined >= table.of or table.hits_name != HITS
        everything = table.count if all_counted else max(table.hits, table.count)
        for row in self.by_route.values():
            if table.count_before is None:
                row.before = None
            row.per_second = row.count / table.seconds
            row.share = row.count / everything if everything else 0.0
            if row.failed is None:
                row.failing = None
            else:
                row.failing = row.failed / row.count if row.count else 0.0

    def set_failures(self, totals: Totals) -> None:
        """Set how many requests beyond the limit of label sets failed, if that can be known."""
        table, failures = self._table, totals.failures
        if not self._nameless:
            return
        other = self.by_route[OTHER]
        named = sum(row.failed or 0 for row in self.by_route.values())
        alike = abs(table.count - totals.count) <= _ALIKE * table.count
        if alike and table.examined >= table.of and failures.of >= totals.count:
            rest = min(max(0, failures.failed - named), self._nameless)
            other.failed = (other.failed or 0) + rest
        else:
            other.failed = None

    def ordered(self, order: str, containing: str) -> list[Route]:
        """Return the routes that contain a text, the highest first."""
        rows = [row for row in self.by_route.values() if containing in row.route]
        if order == "failing":
            rows = [row for row in rows if row.failed]
        return highest(rows, lambda row: row.value(order), name=lambda row: row.route)

    def counters_of(self, rows: Sequence[Route]) -> list[str]:
        """Return their series of requests, all those of a row or none."""
        return _whole(rows, self._counted, _MAX_DRAWN)

    def draw(self, names: list[str], replies: Sequence[Reply], slots: range) -> None:
        """Set the curves of the routes."""
        answers = dict(zip(names, replies, strict=True))
        for route, group in self._counted.items():
            parts = [answers[name] for name in group.series if name in answers]
            if parts:
                self.by_route[route].values = summed(parts, slots)

    def compared(self, rows: Sequence[Route], most: int, containing: str) -> list[Route]:
        """Return the routes whose percentiles are read.

        Args:
            rows: routes that are shown.
            most: how many of the slowest routes are wanted; of these,
            containing: only routes that contain this text.
        """
        groups: dict[str | None, RankedGroup] = {
            route: group for route, group in self._timed.items() if containing in route
        }
        slowest, _ = choose_candidates(groups, _SLOW, most)
        routes = [*(row.route for row in rows), *map(str, slowest)]
        return [self.by_route[route] for route in dict.fromkeys(routes)]

    def histograms_of(self, rows: Sequence[Route]) -> list[str]:
        """Return their timed series, all those of a row or none."""
        return _whole(rows, self._timed, MAX_RANKED_HISTOGRAMS)

    def set_percentiles(
        self, spreads: Mapping[str, Distribution], before: Mapping[str, Distribution]
    ) -> None:
        """Set the percentiles of the routes, and the slowest route."""
        table = self._table
        for route, group in self._timed.items():
            if all(name in spreads for name in group.series):
                self.by_route[route].p95 = quantile_of(_SLOW, map(spreads.get, group.series))
        table.timed_read = len(spreads)
        slow = [row for row in self.by_route.values() if row.p95 is not None]
        if slow:
            table.slowest = max(slow, key=lambda row: (row.p95 or 0.0, row.route))
            slowest = self._timed[table.slowest.route].series
            table.slowest_before = quantile_of(_SLOW, map(before.get, slowest))


def _whole(rows: Sequence[Route], groups: Mapping[str, RankedGroup], most: int) -> list[str]:
    names: list[str] = []
    for row in rows:
        series = groups[row.route].series if row.route in groups else ()
        if len(names) + len(series) <= most:
            names += series
    return names


def route_of(labels: Iterable[tuple[str, str]]) -> str:
    """Return the route of labels; "" if they have none."""
    values = dict(labels)
    return values.get("route", OTHER if values.get("overflow") == "true" else "")


def _finite_sum(totals: Iterable[float | None]) -> float | None:
    """Return a sum; None where a part is unknown, or past the largest double."""
    known = [math.nan if total is None else total for total in totals]
    whole = sum(known)
    return whole if math.isfinite(whole) else None


def _share(text: str | None) -> float | None:
    try:
        share = float(text or "")
    except ValueError:
        return None
    return share if 0.0 < share <= 1.0 else None


# --- Reading -------------------------------------------------------------------------------


def requests(
    keys: Keys,
    window: Coverage,
    observed: Coverage,
    *,
    order: str = "count",
    limit: int = 50,
    offset: int = 0,
    containing: str = "",
    durations: bool = True,
    kept: RouteTable | None = None,
) -> Query[tuple[Totals, RouteTable]]:
    """Read totals and routes.

    Args:
        window: of counters.
        observed: of histograms.
        order, limit, offset, containing: which routes are returned: see read_routes().
        durations: read the durations of all requests, too.
        kept: the routes, if they were read before.
    """
    everything = request_totals(keys, window, observed, durations=durations)
    if kept is not None:
        both: list[Query[Any]] = [everything, _now()]
        totals, now = yield from together(both)
        table = replace(kept, rows=list(kept.rows), window=span_of(window, observed, now))
        _compare(table, totals, window, now)
        return totals, table
    questions: list[Query[Any]] = [
        everything,
        _routes(keys, window, observed, order, limit, offset, containing),
    ]
    totals, (routes, table, now) = yield from together(questions)
    _compare(table, totals, window, now)
    routes.set_failures(totals)
    routes.set_shares()
    return totals, table


def _now() -> Query[float]:
    view, _ = yield ()
    return view.now


def _routes(
    keys: Keys,
    window: Coverage,
    observed: Coverage,
    order: str,
    limit: int,
    offset: int,
    containing: str,
) -> Query[tuple[_Routes, RouteTable, float]]:
    """Read routes; return also the server's time, Unix seconds."""
    counts: list[Ask] = [of_window(keys.key("count"), window)]
    if window.earlier:
        counts.append(of_before(keys.key("count"), window))
    moments = [of_window(keys.key("moments"), observed)]
    requests = LabelSets(keys, keys.known, window.fine, REQUESTS)
    seconds = LabelSets(keys, keys.hists, observed.fine, SECONDS)
    view, (counted, timed, of, timed_of) = yield [
        requests.join(counts, REQUEST_PAGE),
        seconds.join(moments, _DURATION_PAGE),
        requests.size(),
        seconds.size(),
    ]
    now = view.now
    first, first_timed = Joined(counted, len(counts), needed=False), Joined(timed, 1, needed=False)
    pages = yield from together(
        [
            requests.read_on(first, counts, REQUEST_PAGE, MAX_REQUESTS),
            seconds.read_on(first_timed, moments, _DURATION_PAGE, MAX_REQUESTS // 2),
        ]
    )
    span, of_sets = span_of(window, observed, now), number_of(of)
    table = RouteTable(span, [], of=of_sets, timed=number_of(timed_of))
    table.ranked_at = now if of_sets > REQUEST_PAGE else None
    routes = _Routes(table, window, *pages)

    shown = [] if order == "p95" else routes.ordered(order, containing)[offset : offset + limit]
    most = offset + limit if order == "p95" else SLOWEST_OF
    rows = routes.compared(shown, most, containing)
    compared, drawn = routes.histograms_of(rows), routes.counters_of(shown or rows)
    fields, before, slots = observed.slices(now), observed.slices_before(now), window.slots(now)
    table.values_start, table.values_precision = slots.start, slots.step
    spreads, spreads_before, curves = yield from in_parts(
        [
            slices_asked(keys, compared, fields),
            slices_asked(keys, compared, before) if before else [],
            hashes_of(keys, "counter", drawn, slots.step),
        ]
    )
    routes.set_percentiles(
        slices_answered(compared, fields, spreads, needed=False),
        slices_answered(compared, before, spreads_before, needed=False) if before else {},
    )
    ordered = routes.ordered(order, containing)
    table.rows, table.found = ordered[offset : offset + limit], len(ordered)
    routes.draw(drawn, curves, slots)
    return routes, table, now


def _compare(table: RouteTable, totals: Totals, window: Coverage, now: float) -> None:
    """Write down how many requests there were in all, before, and within how many seconds."""
    started = totals.hits.start if totals.hits.values else table.oldest
    if totals.exist:
        table.hits_name, table.hits = HITS, totals.count
        table.hits_before = totals.count_before
        if totals.began:
            table.hits_before = table.count_before = None
    elif table.count:
        table.hits_name, table.hits, table.hits_before = REQUESTS, table.count, table.count_before
    if not table.hits_before and not table.count_before:
        # Nothing is known of the time before: who counts now may not have been there.
        table.hits_before = table.count_before = None
    now = window.moment(now)
    table.seconds = window.seconds(now)
    if not table.hits_before and started is not None:
        # It began within the window: the time before does not count.
        table.seconds = min(table.seconds, max(now - started, 1.0))


def read_routes(
    store: Store,
    precision: int,
    *,
    order: str = "count",
    limit: int = 50,
    offset: int = 0,
    containing: str = "",
    frame: Frame | None = None,
) -> tuple[float, RouteTable]:
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
    if order not in ROUTE_ORDERS:
        raise InvalidValue(order, f"order by one of {', '.join(ROUTE_ORDERS)}")
    if not 1 <= limit <= _MAX_ROWS:
        raise LimitExceeded("rows", limit, _MAX_ROWS, "ask for 1 or more, up to the limit")
    view, (_, table) = run_query(
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
        ),
    )
    return view.now, table
