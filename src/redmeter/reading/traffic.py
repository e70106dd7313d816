"""The pages of a web application: how often each is asked for, how slow it is, how often it fails.

From `hits`, `http_requests{method,route,status}` and `http_request_seconds{method,route}`, in two
round trips: counts and moments of all label sets, up to a number of them; then the histograms of
those routes of which percentiles are shown, and what the curves are made of. Which routes these
are, the moments tell: the busiest, and those that may be the slowest, see observed.py.
"""

from collections.abc import Sequence

from redmeter.keys import Keys, entry
from redmeter.names import HITS, REQUESTS, SECONDS
from redmeter.reading.curves import Curve, asked_counts, asked_spreads, counted, spread
from redmeter.reading.join import Ask, Joined, counts_of, family, join, of_before, of_window
from redmeter.reading.requested import Requested, Traffic
from redmeter.reading.series import whole
from redmeter.reading.summaries import slices_answered, slices_asked
from redmeter.reading.timed import Timed
from redmeter.reading.together import Question
from redmeter.reading.windows import Window
from redmeter.store.replies import Reply

#: Label sets that are looked at: of requests, and of their durations.
MAX_REQUESTS, MAX_SECONDS = 1_000, 500
#: Series of which curves are made: failed requests that are added up, durations that are merged.
MAX_ADDED, MAX_CURVED = 100, 12

#: Part of all hits that may lie between a window and the time before, which are not quite adjacent.
_LITTLE = 0.05


def traffic(
    keys: Keys,
    window: Window,
    observed: Window,
    *,
    order: str = "count",
    limit: int = 50,
    offset: int = 0,
    containing: str = "",
    curves: bool = False,
) -> Question[Traffic]:
    """Read what was asked for.

    Args:
        window: of counters.
        observed: of histograms.
        order, limit, offset, containing: which pages are told, see pages.py.
        curves: read also how hits, failed requests and p95 went.
    """
    counts = _asks(keys.count_of(""), window)
    moments = _asks(keys.moments_of(""), observed, before=False)
    cut = len(entry(window.fine, ""))
    alone = f"[{entry(window.fine, HITS)}"
    view, replies = yield [
        join(keys.known, ("ZRANGEBYLEX", alone, alone), cut, counts),
        *family(keys.known, window.fine, REQUESTS, MAX_REQUESTS, counts),
        *family(keys.hists, observed.fine, SECONDS, MAX_SECONDS, moments),
        ("HGET", keys.total, HITS),
        *(asked_counts(keys, [HITS], window.fine) if curves else ()),
    ]
    hits, requests, durations = (
        Joined(replies[at], len(asks), needed=False)
        for at, asks in ((0, counts), (1, counts), (3, moments))
    )
    found = Traffic([], of=whole(replies[2]), timed=whole(replies[4]))
    pages, timings = Requested(found, window, requests), Timed(durations)
    curve = counted(HITS, replies[6:], window.fine, window.start(view.now), view.now)
    _tell_hits(found, window, hits, curve.start if curve.values else None, whole(replies[5]))
    pages.tell(found)
    timings.tell_sums(found, pages.by_route)

    now = durations.now
    chosen = timings.chosen()
    drawn = pages.drawn(order, offset, limit, containing)
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
    spreads = slices_answered(chosen, fields, parts[0], needed=False)
    spreads_before = slices_answered(chosen, before, parts[1], needed=False) if before else {}
    timings.tell_percentiles(found, pages.by_route, spreads, spreads_before)
    pages.draw(found, window, drawn, parts[2], now)
    told = pages.ordered(order, containing)
    found.pages, found.found = told[offset : offset + limit], len(told)
    if curves:
        width, start = window.fine, window.start(view.now)
        found.curves = [
            curve,
            _since(
                curve, counted(f"{REQUESTS} 5xx", parts[3], width, start, view.now, len(failing))
            ),
            spread(SECONDS, parts[4], observed, view.histograms, view.now, found.timed),
        ]
    return found


def _tell_hits(
    found: Traffic, window: Window, hits: Joined, oldest: int | None, total: int
) -> None:
    """Write down how often pages were asked for, and within how many seconds.

    Args:
        oldest: start of the oldest fine slice that has some, where these were read.
        total: all hits that there ever were.
    """
    started = found.oldest if oldest is None else oldest
    for _, replies in hits.readable():
        counts = counts_of(replies[0])
        found.hits_name, found.hits = HITS, sum(counts.values())
        if len(replies) > 1:
            found.hits_before = sum(counts_of(replies[1]).values())
            known = found.hits + found.hits_before
            if total - known <= _LITTLE * known:
                # Next to nothing was before that: it began within that time, which is no measure.
                found.hits_before = found.count_before = found.failed_before = None
        if oldest is None:
            started = min(counts, default=started)
    if not found.hits_name and found.count:
        found.hits_name, found.hits, found.hits_before = REQUESTS, found.count, found.count_before
    if not found.hits_before and not found.count_before:
        # Nothing is known of the time before: who counts now may not have been there.
        found.hits_before = found.count_before = found.failed_before = None
    found.seconds = window.seconds(hits.now)
    if not found.hits_before and started is not None:
        # It began within the window: what was not there yet does not count.
        found.seconds = min(found.seconds, max(hits.now - started, 1.0))


def _since(hits: Curve, failed: Curve) -> Curve:
    """Return how often requests failed, with zeros from the first hit on: these did not fail."""
    if hits.values and (not failed.values or failed.start > hits.start):
        missing = (failed.start - hits.start) // hits.precision if failed.values else 0
        zeros: list[float | None] = [0] * (missing or len(hits.values))
        failed.values, failed.start = zeros + failed.values, hits.start
        failed.partial = hits.partial
    return failed


def _asks(family: str, window: Window, *, before: bool = True) -> list[Ask]:
    asks = [of_window(family, window)]
    if before and window.earlier:
        asks.append(of_before(family, window))
    return asks
