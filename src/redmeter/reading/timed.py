"""How long requests took, by route: the second half of traffic.py.

From `http_request_seconds{method,route}`: sums of all from their moments, percentiles from the
histograms of some.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from redmeter.format.exponential_histogram import Distribution
from redmeter.format.moments import Sums
from redmeter.format.packed_text import merge_moments
from redmeter.reading.join import Joined, series_in
from redmeter.reading.ranking import bound
from redmeter.reading.requested import Page, Traffic, route_of

#: Series of which histograms are read: of the busiest, and of those that may be the slowest.
MAX_READ = 40
#: The quantile by which pages are slow.
SLOW = 0.95


class Timed:
    """Sums durations up by route, and chooses those of which histograms are read."""

    def __init__(self, durations: Sequence[Joined]) -> None:
        self._sums: dict[str, Sums] = {}
        self._routes: dict[str, list[str]] = {}
        #: Of those that are only timed now and then: which part of them.
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

    def tell_sums(self, found: Traffic, pages: dict[str, Page]) -> None:
        """Write down how long each page took in all, and on average."""
        totals: dict[str, float | None] = {}
        for route, names in self._routes.items():
            page = pages.setdefault(route, Page(route))
            whole = Sums()
            for name in names:
                whole.merge(self._sums[name])
            page.mean = whole.exact_mean
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

    def tell_percentiles(
        self,
        found: Traffic,
        pages: dict[str, Page],
        spreads: Mapping[str, Distribution],
        before: Mapping[str, Distribution],
    ) -> None:
        """Write down how slow each page is, and which is the slowest."""
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
    both = Distribution()
    for one in spreads:
        if one is not None:
            both.merge(one)
    return both.quantile(SLOW) if both.count else None


def _share(text: str | None) -> float | None:
    try:
        share = float(text or "")
    except ValueError:
        return None
    return share if 0.0 < share <= 1.0 else None
