"""Requests and response times by route: sums of label sets. No I/O; http.py reads them.

Counts are from `http_requests{method,route,status}`. Durations are from
`http_request_seconds{method,route}`: means and totals of all label sets from their moments,
percentiles from the histograms of some.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.format.exponential_histogram import Distribution
from redmeter.format.moments import Sums, merge_all
from redmeter.format.packed_text import merge_moments
from redmeter.names import HITS, is_failure
from redmeter.reading.join import Joined, series_in
from redmeter.reading.label_sets import OTHER
from redmeter.reading.ranking import bound
from redmeter.reading.samples import counts_of, summed
from redmeter.reading.windows import Window
from redmeter.store.replies import Reply

#: Series of which histograms are read: of the busiest, and of those that may be the slowest.
MAX_READ = 40
#: The quantile that routes are compared by.
SLOW = 0.95
#: Series of requests of which small curves are made.
MAX_DRAWN = 300


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
    #: Requests that failed, and their part of its own, 0 to 1.
    failed: int = 0
    failing: float = 0.0
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
        values = {"count": self.count, "p95": self.p95, "failing": self.failed}
        return values.get(order, self.total) or 0.0


@dataclass(slots=True)
class RouteTable:
    """The routes within a window, and right before it."""

    routes: list[Route]
    #: Routes that there are.
    found: int = 0
    #: Label sets of requests that there are, and how many were looked at.
    of: int = 0
    examined: int = 0
    #: Series of durations that there are, and of how many histograms were read.
    timed: int = 0
    timed_read: int = 0
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


class RouteCounts:
    """Sums the counts of requests up by route.

    Args:
        found: is filled in.
        window: of counters.
        requests: the members of the index with their counts.
    """

    def __init__(self, found: RouteTable, window: Window, requests: Sequence[Joined]) -> None:
        self.by_route: dict[str, Route] = {}
        self._series: dict[str, list[str]] = {}
        found.count_before = before = 0 if window.earlier else None
        for name, (_, labels), replies in series_in(requests):
            found.examined += 1
            route = route_of(labels)
            page = self.by_route.setdefault(route, Route(route, before=before))
            self._series.setdefault(route, []).append(name)
            counts = counts_of(replies[0])
            if counts:
                oldest = min(counts)
                found.oldest = oldest if found.oldest is None else min(found.oldest, oldest)
            count = sum(counts.values())
            page.count += count
            found.count += count
            if is_failure(dict(labels).get("status")):
                page.failed += count
            if len(replies) > 1:
                earlier = sum(counts_of(replies[1]).values())
                page.before = (page.before or 0) + earlier
                found.count_before = (found.count_before or 0) + earlier

    def set_shares(self, found: RouteTable) -> None:
        """Set the shares and rates of the routes."""
        all_counted = found.examined >= found.of or found.hits_name != HITS
        everything = found.count if all_counted else max(found.hits, found.count)
        for page in self.by_route.values():
            if found.count_before is None:
                page.before = None
            page.per_second = page.count / found.seconds
            page.share = page.count / everything if everything else 0.0
            page.failing = page.failed / page.count if page.count else 0.0

    def ordered(self, order: str, containing: str) -> list[Route]:
        """Return the routes that contain a text, the highest first."""
        pages = [page for page in self.by_route.values() if containing in page.route]
        if order == "failing":
            pages = [page for page in pages if page.failed]
        return sorted(pages, key=lambda page: (-page.value(order), page.route))

    def drawn(self, order: str, offset: int, limit: int, containing: str) -> list[str]:
        """Return the series whose curves are drawn: of the routes likely to be shown."""
        likely = self.ordered("total" if order == "p95" else order, containing)
        pages = likely[: offset + limit] if order == "p95" else likely[offset : offset + limit]
        names = [name for page in pages for name in self._series.get(page.route, ())]
        return names[:MAX_DRAWN]

    def draw(
        self,
        found: RouteTable,
        window: Window,
        names: list[str],
        replies: Sequence[Reply],
        now: float,
    ) -> None:
        """Set the curves of the routes."""
        slots = window.slots(now, window.drawn())
        found.values_start, found.values_precision = slots.start, slots.step
        answers = dict(zip(names, replies, strict=True))
        for route, some in self._series.items():
            if some[0] in answers:
                parts = [answers[name] for name in some if name in answers]
                self.by_route[route].values = summed(parts, slots)


def route_of(labels: Iterable[tuple[str, str]]) -> str:
    values = dict(labels)
    return values.get("route", OTHER if values.get("overflow") == "true" else "")


class RouteDurations:
    """Sums durations up by route, and chooses those of which histograms are read."""

    def __init__(self, durations: Sequence[Joined]) -> None:
        self._sums: dict[str, Sums] = {}
        self._routes: dict[str, list[str]] = {}
        #: The timed share of the series that are sampled.
        self._shares: dict[str, float] = {}
        for name, (_, labels), replies in series_in(durations):
            whole = merge_moments(replies[0][1::2])
            if not whole.count:
                continue
            self._sums[name] = whole
            self._routes.setdefault(route_of(labels), []).append(name)
            share = _share(dict(labels).get("sampled"))
            if share is not None:
                self._shares[name] = share

    def busiest(self) -> list[str]:
        """Return the series, those with most values first."""
        return sorted(self._sums, key=lambda name: -self._sums[name].count)

    def chosen(self) -> list[str]:
        """Return the series of which histograms are read: half the busiest, half the slowest."""
        sums, busiest = self._sums, self.busiest()
        slowest = sorted(sums, key=lambda name: -bound(sums[name], SLOW))
        half = [*busiest[: MAX_READ // 2], *slowest[: MAX_READ // 2]]
        return list(dict.fromkeys([*half, *busiest[:MAX_READ]]))[:MAX_READ]

    def set_sums(self, found: RouteTable, pages: dict[str, Route]) -> None:
        """Set the total and the mean of each route."""
        totals: dict[str, float | None] = {}
        for route, names in self._routes.items():
            page = pages.setdefault(route, Route(route))
            page.mean = merge_all(Sums(), (self._sums[name] for name in names)).exact_mean
            totals[route] = self._total(names)
        everything = finite_sum(totals.values())
        for route, total in totals.items():
            pages[route].total = total
            if total is not None and everything is not None:
                pages[route].total_share = total / everything if everything > 0 else 0.0
        found.sampled = bool(self._shares)

    def _total(self, names: Iterable[str]) -> float | None:
        """Return the estimated sum of series of which some are samples."""
        totals = [(self._sums[name].exact_total, self._shares.get(name, 1.0)) for name in names]
        return finite_sum(None if total is None else total / share for total, share in totals)

    def set_percentiles(
        self,
        found: RouteTable,
        pages: dict[str, Route],
        spreads: Mapping[str, Distribution],
        before: Mapping[str, Distribution],
    ) -> None:
        """Set the percentiles of the routes, and the slowest route."""
        for route, names in self._routes.items():
            pages[route].p95 = _quantile(spreads.get(name) for name in names)
        found.timed_read = len(spreads)
        slow = [page for page in pages.values() if page.p95 is not None]
        if slow:
            found.slowest = max(slow, key=lambda page: (page.p95 or 0.0, page.route))
            names = self._routes[found.slowest.route]
            found.slowest_before = _quantile(before.get(name) for name in names)


def finite_sum(totals: Iterable[float | None]) -> float | None:
    """Return a sum; None where a part is unknown, or past the largest double."""
    known = [math.nan if total is None else total for total in totals]
    whole = sum(known)
    return whole if math.isfinite(whole) else None


def _quantile(spreads: Iterable[Distribution | None]) -> float | None:
    both = merge_all(Distribution(), filter(None, spreads))
    return both.quantile(SLOW) if both.count else None


def _share(text: str | None) -> float | None:
    try:
        share = float(text or "")
    except ValueError:
        return None
    return share if 0.0 < share <= 1.0 else None
