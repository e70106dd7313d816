"""Pages, and the counts of their requests: what traffic.py returns, and the first half of how.

From `http_requests{method,route,status}`, label set by label set, to routes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from redmeter.keys import slice_start
from redmeter.names import HITS, is_failure
from redmeter.reading.join import Joined, counts_of, series_in
from redmeter.reading.label_sets import OTHER
from redmeter.reading.sparks import drawn
from redmeter.reading.windows import Window
from redmeter.store.replies import Reply

#: Series of requests of which small curves are made.
MAX_DRAWN = 300


@dataclass(slots=True)
class Page:
    """A route within a window."""

    route: str
    count: int = 0
    #: Requests within as long a time before the window; None where nothing keeps it.
    before: int | None = None
    per_second: float = 0.0
    #: Its part of all requests, 0 to 1.
    share: float = 0.0
    #: Requests that failed, and their part of its own, 0 to 1.
    failed: int = 0
    failing: float = 0.0
    #: Of its durations, seconds; None where none is known.
    mean: float | None = None
    p95: float | None = None
    #: Of all durations together, seconds, and its part of that of all pages.
    total: float | None = None
    total_share: float | None = None
    #: Its counts by slices of `Traffic.values_precision`, from `Traffic.values_start` on; None
    #: before its first request, nothing where there are too many pages.
    values: list[float | None] = field(default_factory=list)

    def value(self, order: str) -> float:
        """Return what pages are put in order by: see pages.py."""
        values = {"count": self.count, "p95": self.p95, "failing": self.failed}
        return values.get(order, self.total) or 0.0


@dataclass(slots=True)
class Traffic:
    """The pages within a window, and right before it."""

    pages: list[Page]
    #: Pages that there are.
    found: int = 0
    #: Label sets of requests that there are, and how many were looked at.
    of: int = 0
    looked_at: int = 0
    #: Series of durations that there are, and of how many histograms were read.
    timed: int = 0
    timed_read: int = 0
    #: Whether only some requests were timed: then totals are estimates.
    sampled: bool = False
    values_start: int = 0
    values_precision: int = 1
    #: Start of the oldest slice in which something was asked for.
    oldest: int | None = None
    #: Requests of the label sets that were looked at; the same before the window, None where
    #: nothing keeps it.
    count: int = 0
    count_before: int | None = None
    slowest: Page | None = None
    slowest_before: float | None = None
    #: All requests. By `hits`, or, where nobody counts that, of the label sets that were looked at:
    #: which of them it is; "" where there is neither. Then how many, the same before the window,
    #: and how many seconds that took.
    hits_name: str = ""
    hits: int = 0
    hits_before: int | None = None
    seconds: float = 1.0


class Requested:
    """Sums the counts of requests up by route.

    Args:
        found: is filled in.
        window: of counters.
        requests: the members of the index with their counts.
    """

    def __init__(self, found: Traffic, window: Window, requests: Sequence[Joined]) -> None:
        self.by_route: dict[str, Page] = {}
        self._series: dict[str, list[str]] = {}
        found.count_before = before = 0 if window.earlier else None
        for name, (_, labels), replies in series_in(requests):
            found.looked_at += 1
            route = route_of(labels)
            page = self.by_route.setdefault(route, Page(route, before=before))
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

    def tell(self, found: Traffic) -> None:
        """Write down what part of all each page has."""
        all_counted = found.looked_at >= found.of or found.hits_name != HITS
        everything = found.count if all_counted else max(found.hits, found.count)
        for page in self.by_route.values():
            if found.count_before is None:
                page.before = None
            page.per_second = page.count / found.seconds
            page.share = page.count / everything if everything else 0.0
            page.failing = page.failed / page.count if page.count else 0.0

    def ordered(self, order: str, containing: str) -> list[Page]:
        """Return the pages whose routes contain a text, the highest first."""
        pages = [page for page in self.by_route.values() if containing in page.route]
        if order == "failing":
            pages = [page for page in pages if page.failed]
        return sorted(pages, key=lambda page: (-page.value(order), page.route))

    def drawn(self, order: str, offset: int, limit: int, containing: str) -> list[str]:
        """Return the series of the pages that are likely to be told, of which curves are drawn."""
        likely = self.ordered("total" if order == "p95" else order, containing)
        pages = likely[: offset + limit] if order == "p95" else likely[offset : offset + limit]
        names = [name for page in pages for name in self._series.get(page.route, ())]
        return names[:MAX_DRAWN]

    def draw(
        self, found: Traffic, window: Window, names: list[str], replies: Sequence[Reply], now: float
    ) -> None:
        """Draw the curves of the pages."""
        width = window.drawn()
        slots = range(slice_start(window.start(now), width), int(now) + 1, width)
        found.values_start, found.values_precision = slots.start, width
        answers = dict(zip(names, replies, strict=True))
        for route, some in self._series.items():
            if some[0] in answers:
                parts = [answers[name] for name in some if name in answers]
                self.by_route[route].values = drawn(parts, slots)


def route_of(labels: Iterable[tuple[str, str]]) -> str:
    found = dict(labels)
    return found.get("route", OTHER if found.get("overflow") == "true" else "")
