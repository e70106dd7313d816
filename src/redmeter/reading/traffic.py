"""The pages of a web application: how often each is asked for, how slow it is, how often it fails.

From `hits`, `http_requests{method,route,status}` and `http_request_seconds{method,route}`, in two
round trips: counts and moments of all label sets, up to a number of them; then the histograms of
those routes of which percentiles are shown, and what the curves are made of. Which routes these
are, the moments tell: the busiest, and those that may be the slowest, see observed.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.errors import InvalidName
from redmeter.keys import Keys, entry, slice_start
from redmeter.kinds.distribution import Distribution
from redmeter.names import HITS, REQUESTS, SECONDS, SeriesName, parse_name
from redmeter.reading.curves import Curve, asked_counts, asked_spreads, counted, spread
from redmeter.reading.join import Ask, Joined, counts_of, join, of_before, of_window
from redmeter.reading.observed import Sum, sum_of
from redmeter.reading.rankings import OTHER
from redmeter.reading.series import slices_of
from redmeter.reading.summaries import slices_answered, slices_asked
from redmeter.reading.together import Question
from redmeter.reading.windows import Window
from redmeter.store.link import Command, Reply, is_misplaced

#: Label sets that are looked at: of requests, and of their durations.
MAX_REQUESTS, MAX_SECONDS = 1_000, 500
#: Series of which histograms are read: of the busiest, and of those that may be the slowest.
MAX_READ = 40
#: Series of which curves are made: failed requests that are added up, durations that are merged.
MAX_ADDED, MAX_CURVED = 100, 12
#: Series of requests of which small curves are made.
MAX_DRAWN = 300

#: The quantile by which pages are slow.
SLOW = 0.95


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


def traffic(
    keys: Keys,
    window: Window,
    observed: Window,
    *,
    order: str = "count",
    limit: int = 50,
    curves: bool = False,
) -> Question[Traffic]:
    """Read what was asked for.

    Args:
        window: of counters.
        observed: of histograms.
        order, limit: which pages are told, see pages.py.
        curves: read also how hits, failed requests and p95 went.
    """
    counts = _asks(keys.count_of(""), window)
    moments = _asks(keys.moments_of(""), observed, before=False)
    cut = len(entry(window.fine, ""))
    alone = f"[{entry(window.fine, HITS)}"
    view, replies = yield [
        join(keys.known, ("ZRANGEBYLEX", alone, alone), cut, counts),
        *_family(keys.known, window.fine, REQUESTS, MAX_REQUESTS, counts),
        *_family(keys.hists, observed.fine, SECONDS, MAX_SECONDS, moments),
        *(asked_counts(keys, [HITS], window.fine) if curves else ()),
    ]
    hits, requests = Joined(replies[0], len(counts)), Joined(replies[1], len(counts))
    durations = Joined(replies[3], len(moments))
    found = Traffic([], of=whole(replies[2]), timed=whole(replies[4]))
    pages, timings = _Pages(found, window, requests), _Timings(durations)
    curve = counted(HITS, replies[5:], window.fine, window.start(view.now), view.now)
    _tell_hits(found, window, hits, curve.start if curve.values else None)
    pages.tell(found)
    timings.tell_sums(found, pages.by_route)

    now = durations.now
    chosen, drawn = timings.chosen(), pages.drawn(order, limit)
    fields, before = observed.slices(now), observed.slices_before(now)
    failing, busiest = pages.failing(), timings.busiest()[:MAX_CURVED]
    asked = [
        slices_asked(keys, chosen, fields),
        slices_asked(keys, chosen, before) if before else [],
        asked_counts(keys, drawn, window.drawn()),
        asked_counts(keys, failing[:MAX_ADDED], window.fine) if curves else [],
        asked_spreads(keys, busiest, observed.fine) if curves else [],
    ]
    parts: list[Sequence[Reply]] = [[] for _ in asked]
    if any(asked):
        view, replies = yield [command for some in asked for command in some]
        answers = iter(replies)
        parts = [[next(answers) for _ in some] for some in asked]
    spreads = slices_answered(chosen, fields, parts[0])
    spreads_before = slices_answered(chosen, before, parts[1]) if before else {}
    timings.tell_percentiles(found, pages.by_route, spreads, spreads_before)
    pages.draw(found, window, drawn, parts[2], now)
    told = sorted(pages.by_route.values(), key=lambda page: (-page.value(order), page.route))
    found.pages, found.found = told[:limit], len(told)
    if curves:
        width, start = window.fine, window.start(view.now)
        found.curves = [
            curve,
            counted(f"{REQUESTS} 5xx", parts[3], width, start, view.now, len(failing)),
            spread(SECONDS, parts[4], observed, view.histograms, view.now, found.timed),
        ]
    return found


def _tell_hits(found: Traffic, window: Window, hits: Joined, oldest: int | None) -> None:
    """Write down how often pages were asked for, and within how many seconds.

    Args:
        oldest: start of the oldest fine slice that has some, where these were read.
    """
    started = found.oldest if oldest is None else oldest
    for _, replies in hits.readable():
        counts = counts_of(replies[0])
        found.hits_name, found.hits = HITS, sum(counts.values())
        if len(replies) > 1:
            found.hits_before = sum(counts_of(replies[1]).values())
        if oldest is None:
            started = min(counts, default=started)
    if not found.hits_name and found.count:
        found.hits_name, found.hits, found.hits_before = REQUESTS, found.count, found.count_before
    found.seconds = window.seconds(hits.now)
    if found.hits_before == 0 and started is not None:
        # It began within the window: what was not there yet does not count.
        found.seconds = min(found.seconds, max(hits.now - started, 1.0))


def _asks(family: str, window: Window, *, before: bool = True) -> list[Ask]:
    asks = [of_window(family, window)]
    if before and window.earlier:
        asks.append(of_before(family, window))
    return asks


def _family(
    index: str, precision: int, base: str, most: int, asks: Sequence[Ask]
) -> tuple[Command, Command]:
    """Return what reads all label sets of a name up to a number, and what counts them."""
    start = entry(precision, base)
    ends = f"[{start}{{", f"({start}|"
    cut = len(entry(precision, ""))
    return (
        join(index, ("ZRANGEBYLEX", *ends, "LIMIT", 0, most), cut, asks),
        ("ZLEXCOUNT", index, *ends),
    )


# --- Counts --------------------------------------------------------------------------------


class _Pages:
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
        for name, (_, labels), replies in _series(requests):
            found.looked_at += 1
            route, failed = _route(labels), dict(labels).get("status", "").startswith("5")
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
            page.per_second = page.count / found.seconds
            page.share = page.count / found.count if found.count else 0.0
            page.failing = page.failed / page.count if page.count else 0.0

    def drawn(self, order: str, limit: int) -> list[str]:
        """Return the series of the pages that are likely to be told, of which curves are drawn."""
        likely = "total" if order == "p95" else order
        pages = sorted(self.by_route.values(), key=lambda page: (-page.value(likely), page.route))
        names = [name for page in pages[:limit] for name in self._series.get(page.route, ())]
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


# --- Durations -----------------------------------------------------------------------------


class _Timings:
    """Sums durations up by route, and chooses those of which histograms are read."""

    def __init__(self, durations: Joined) -> None:
        self._sums: dict[str, Sum] = {}
        self._routes: dict[str, list[str]] = {}
        #: Of those that are only timed now and then: which part of them.
        self._shares: dict[str, float] = {}
        for name, (_, labels), replies in _series(durations):
            whole = Sum()
            for text in _texts(replies[0]):
                if (part := sum_of(text)) is not None:
                    whole.merge(part)
            if not whole.count:
                continue
            self._sums[name] = whole
            self._routes.setdefault(_route(labels), []).append(name)
            share = _share(dict(labels).get("sampled"))
            if share is not None:
                self._shares[name] = share

    def busiest(self) -> list[str]:
        """Return the series, those with most values first."""
        return sorted(self._sums, key=lambda name: -self._sums[name].count)

    def chosen(self) -> list[str]:
        """Return the series of which histograms are read: half the busiest, half the slowest."""
        sums, busiest = self._sums, self.busiest()
        slowest = sorted(sums, key=lambda name: -sums[name].bound(SLOW))
        half = [*busiest[: MAX_READ // 2], *slowest[: MAX_READ // 2]]
        return list(dict.fromkeys([*half, *busiest[:MAX_READ]]))[:MAX_READ]

    def tell_sums(self, found: Traffic, pages: dict[str, Page]) -> None:
        """Write down how long each page took in all, and on average."""
        totals: dict[str, float] = {}
        for route, names in self._routes.items():
            page = pages.setdefault(route, Page(route))
            whole = Sum()
            for name in names:
                whole.merge(self._sums[name])
            page.mean = whole.mean
            totals[route] = sum(self._sums[n].total / self._shares.get(n, 1.0) for n in names)
        everything = sum(totals.values())
        for route, total in totals.items():
            pages[route].total = total
            pages[route].total_share = total / everything if everything > 0 else 0.0
        found.sampled = bool(self._shares)

    def tell_percentiles(
        self,
        found: Traffic,
        pages: dict[str, Page],
        spreads: Mapping[str, Distribution],
        before: Mapping[str, Distribution],
    ) -> None:
        """Write down how slow each page is, and all together."""
        for route, names in self._routes.items():
            pages[route].p95 = _quantile(spreads.get(name) for name in names)
        found.timed_read = len(spreads)
        found.p95 = _quantile(spreads.values())
        found.p95_before = _quantile(before.values())
        slow = [page for page in pages.values() if page.p95 is not None]
        if slow:
            found.slowest = max(slow, key=lambda page: (page.p95 or 0.0, page.route))
            names = self._routes[found.slowest.route]
            found.slowest_before = _quantile(before.get(name) for name in names)


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


# --- Both ----------------------------------------------------------------------------------


def _series(joined: Joined) -> Iterable[tuple[str, SeriesName, Sequence[Reply]]]:
    """Yield the series of a join that can be read: as stored, taken apart, and its replies."""
    for member, replies in joined.readable():
        try:
            stored = member.decode().partition(":")[2]
            yield stored, parse_name(stored), replies
        except (UnicodeDecodeError, InvalidName):
            continue  # written by someone else


def _route(labels: Iterable[tuple[str, str]]) -> str:
    found = dict(labels)
    return found.get("route", OTHER if found.get("overflow") == "true" else "")


def drawn(
    replies: Iterable[Reply],
    slots: range,
    read: Callable[[Reply], Mapping[int, int]] | None = None,
) -> list[float | None]:
    """Add hashes up to a small curve; None before the first count.

    Args:
        replies: the hashes; those that are none are left out.
        slots: starts of the slices.
        read: reads a hash: start -> count; None: that of a counter.
    """
    values: list[float | None] = [None] * len(slots)
    for reply in replies:
        if is_misplaced(reply):
            continue
        for start, count in (read or slices_of)(reply).items():
            if start in slots:
                place = slots.index(start)
                values[place] = (values[place] or 0) + count
    oldest = next((at for at, value in enumerate(values) if value is not None), len(values))
    return [*values[:oldest], *(value or 0 for value in values[oldest:])]


def _texts(reply: Sequence[bytes]) -> Sequence[bytes]:
    return reply[1::2]


def whole(reply: Reply) -> int:
    """Read a number; 0 where there is none, or somebody else's text."""
    try:
        return int(reply or 0)
    except (TypeError, ValueError):
        return 0
