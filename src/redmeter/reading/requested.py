"""Pages, and the sums of their requests: what traffic.py tells, and the first half of how.

From `http_requests{method,route,status}`, label set by label set, to routes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from redmeter.errors import InvalidName
from redmeter.keys import slice_start
from redmeter.names import SeriesName, parse_name
from redmeter.reading.curves import Curve
from redmeter.reading.join import Joined, counts_of
from redmeter.reading.rankings import OTHER
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
    #: Requests that failed (status 5xx), and their part of its own, 0 to 1.
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
    """What was asked for within a window, and right before it."""

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
    count: int = 0
    failed: int = 0
    #: The same before the window; None where nothing keeps it.
    count_before: int | None = None
    failed_before: int | None = None
    p95: float | None = None
    p95_before: float | None = None
    slowest: Page | None = None
    slowest_before: float | None = None
    #: Of `hits`, or, where nobody counts that, of all requests: which of them it is; "" where there
    #: is neither. Then how often, the same before the window, and how many seconds that took.
    hits_name: str = ""
    hits: int = 0
    hits_before: int | None = None
    seconds: float = 1.0
    #: Hits, failed requests and p95 over time, where they were asked for.
    curves: list[Curve] = field(default_factory=list)


class Requested:
    """Sums the counts of requests up by route.

    Args:
        found: what is told of them; is filled in.
        window: of counters.
        requests: the members of the index with their counts.
    """

    def __init__(self, found: Traffic, window: Window, requests: Joined) -> None:
        self.by_route: dict[str, Page] = {}
        self._series: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}
        self._failing: list[str] = []
        before = 0 if window.earlier else None
        found.count_before = found.failed_before = before
        for name, (_, labels), replies in series_in(requests):
            found.looked_at += 1
            route, failed = route_of(labels), dict(labels).get("status", "").startswith("5")
            page = self.by_route.setdefault(route, Page(route, before=before))
            self._series.setdefault(route, []).append(name)
            counts = counts_of(replies[0])
            if counts:
                oldest = min(counts)
                found.oldest = oldest if found.oldest is None else min(found.oldest, oldest)
            count = self._counts[name] = sum(counts.values())
            page.count += count
            found.count += count
            if failed:
                page.failed += count
                found.failed += count
                self._failing.append(name)
            if len(replies) > 1:
                earlier = sum(counts_of(replies[1]).values())
                page.before = (page.before or 0) + earlier
                found.count_before = (found.count_before or 0) + earlier
                if failed:
                    found.failed_before = (found.failed_before or 0) + earlier

    def failing(self) -> list[str]:
        """Return the series of requests that failed, those of most of them first."""
        return sorted(self._failing, key=lambda name: -self._counts[name])

    def tell(self, found: Traffic) -> None:
        """Write down what part of all each page has."""
        for page in self.by_route.values():
            if found.count_before is None:
                page.before = None
            page.per_second = page.count / found.seconds
            page.share = page.count / found.count if found.count else 0.0
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


def series_in(joined: Joined) -> Iterable[tuple[str, SeriesName, Sequence[Reply]]]:
    """Yield the series of a join that can be read: as stored, taken apart, and its replies."""
    for member, replies in joined.readable():
        try:
            stored = member.decode().partition(":")[2]
            yield stored, parse_name(stored), replies
        except (UnicodeDecodeError, InvalidName):
            continue  # written by someone else


def route_of(labels: Iterable[tuple[str, str]]) -> str:
    found = dict(labels)
    return found.get("route", OTHER if found.get("overflow") == "true" else "")
