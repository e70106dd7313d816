"""Everything that the first page shows, in two round trips.

The panels are queries of their own: http.py, listing.py, logs/overview.py. Here they are combined,
with five numbers that summarize them and the curves of the main chart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from redmeter.errors import LimitExceeded
from redmeter.names import HITS_FAILED, REQUESTS
from redmeter.reading import marks as marking
from redmeter.reading.foreign_keys import there
from redmeter.reading.logs.overview import LogOverview, log_overview
from redmeter.reading.page.background_ranking import RankingKey, RowRankings
from redmeter.reading.page.curves import Curve, curves
from redmeter.reading.page.http import RouteTable, requests
from redmeter.reading.page.listing import RowListing, listing, redrawn
from redmeter.reading.page.rows import RowRanking
from redmeter.reading.totals import Totals, request_totals
from redmeter.reading.windows import Coverage, Frame, Span, histogram_window, whole_window
from redmeter.store import Store, View
from redmeter.store.query import Query, run_query, together
from redmeter.stored.keys import Kept, Keys, slice_start
from redmeter.types import Mark

#: Rows of the panels.
_PAGES, _COUNTERS, _CHANGES, _FREQUENT = 6, 12, 6, 6
#: Curves that may be asked for.
MAX_CURVES = 20
#: Counters whose curves are drawn where there is no web application.
_DRAWN = 5
#: How long panels that change slowly are kept, seconds: of intervals below a minute, and of
#: others.
PANELS_SECONDS_FINE, PANELS_SECONDS = 1.0, 5.0
#: Panels of large stores are kept longer: so long that reading them takes this share of the time.
PANELS_SHARE = 0.02
#: Windows whose panels are kept.
_MAX_KEPT = 32
#: The last complete minutes, which figures of a window that ends now are also of, seconds.
_MINUTE, _RECENT = 60, 300


@dataclass(slots=True)
class KeyFigure:
    """One of the five numbers; None where nothing is known."""

    value: float | None = None
    #: The same of as long a time before.
    before: float | None = None
    #: Its series or route.
    name: str = ""
    #: Events behind it, and behind the value before; those of an hour are scaled to the time that
    #: has passed.
    count: int = 0
    count_before: int | None = None
    #: Whether it is an estimate from a sample.
    sampled: bool = False
    #: Since when it is known, Unix seconds; None: throughout the window.
    since: int | None = None
    #: Loggers that were read for it, and that there are.
    examined: int = 0
    of: int = 0
    #: Whether the hours of messages are sliding hours; else clock hours.
    sliding: bool = True
    #: The value of the last five complete minutes, of a window that ends now.
    recent: float | None = None


@dataclass(slots=True)
class KeyFigures:
    """Is it normal now?"""

    #: A second.
    hits: KeyFigure = field(default_factory=KeyFigure)
    #: Failed requests, a share of those whose failures are known, 0 to 1.
    errors: KeyFigure = field(default_factory=KeyFigure)
    #: The p95 of all requests, seconds.
    p95: KeyFigure = field(default_factory=KeyFigure)
    #: The page that is slowest by p95, seconds.
    slowest: KeyFigure = field(default_factory=KeyFigure)
    #: Messages of severity error or critical in the last hour, and as many as it would have by now
    #: at the rate of the hour before.
    logged: KeyFigure = field(default_factory=KeyFigure)


@dataclass(slots=True)
class Overview:
    """What the first page shows."""

    window: Span
    numbers: KeyFigures
    chart: list[Curve]
    marks: list[Mark]
    #: The busiest routes; what changed in the log, and what comes most often; the busiest counters.
    routes: RouteTable
    messages: LogOverview
    counters: RowListing


class Watch:
    """Reads the first page again and again: what changes slowly is kept for a few seconds.

    Args:
        store: to read from.
        rankings: of all series, where they are too many to be read for an answer.
    """

    def __init__(
        self,
        store: Store,
        rankings: RowRankings | None = None,
    ) -> None:
        self._store = store
        self._rankings = rankings or RowRankings(store)
        # Interval width and window -> until when they are kept, monotonic, and the panels.
        self._kept: dict[tuple[int, Frame | None], tuple[float, _Panels]] = {}
        # The server's clock minus this machine's, seconds.
        self._difference = 0.0

    def look(
        self,
        precision: int,
        *,
        series: Sequence[str] = (),
        store: Store | None = None,
        frame: Frame | None = None,
    ) -> tuple[View, Overview]:
        """Read the first page. Several threads may call it.

        Args:
            precision: interval width, seconds; its samples are the window.
            series: stored names of the series of the chart, instead of the usual ones.
            store: the same store, where some of it may be left out.
            frame: the window; None: all samples of the precision.

        Returns:
            The view of the store, and the first page.

        Raises:
            UnknownPrecision: the store does not keep it.
            LimitExceeded: over MAX_CURVES series.
            StoreError: the server is unreachable or refuses.
        """
        store = store or self._store
        if len(series) > MAX_CURVES:
            raise LimitExceeded("series", len(series), MAX_CURVES, "ask for fewer at a time")
        now = self._store.clock.monotonic()
        key = precision, None if frame is None else frame._replace(now=0.0)
        until, kept = self._kept.get(key, (-math.inf, None))
        busiest = RankingKey(precision, grouped=True)
        framed = frame is not None and frame != Frame(now=frame.now)
        ranked = None if framed else self._rankings.last(busiest)
        first_ranking = kept is not None and ranked is not None and not kept.counters.ranked_at
        if now > until or first_ranking:
            kept = None
        clocks = None if frame is None else frame._replace(now=frame.now + self._difference)
        view, (found, panels) = run_query(
            store,
            lambda k: overview(store.keys, k, precision, series, kept, ranked, clocks),
        )
        self._difference = view.now - self._store.clock.wall()
        if kept is None and not store.skipped():
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            seconds = PANELS_SECONDS if precision >= 60 else PANELS_SECONDS_FINE
            spent = self._store.clock.monotonic() - now
            self._kept[key] = now + max(seconds, spent / PANELS_SHARE), panels
        if not framed:
            self._rankings.refresh(busiest, panels.counters)
        return view, found


class _Panels(NamedTuple):
    """What changes slowly."""

    counters: RowListing
    logs: LogOverview
    marks: list[Mark]
    #: The routes of very many label sets; None: they are read each time.
    routes: RouteTable | None


def overview(
    keys: Keys,
    kept: Kept,
    precision: int,
    series: Sequence[str],
    panels: _Panels | None,
    ranked: RowRanking | None,
    frame: Frame | None = None,
) -> Query[tuple[Overview, _Panels]]:
    """Read the overview and the panels that change slowly.

    Args:
        keys: names of the store's keys.
        kept: the store's retention.
        precision, series: see look().
        panels: panels that were read a moment ago, and are not read again.
        ranked: a ranking of all counters, made earlier.
        frame: see Watch.look(). Curves are of all samples, whatever the window is.
    """
    window = whole_window(kept.series, precision, frame)
    observed = histogram_window(kept.histograms, window)
    charted = whole_window(kept.series, window.fine)
    routes = None if panels is None else panels.routes
    questions: list[Query[Any]] = [
        _recent_totals(keys, kept, frame if window.running() else None),
        requests(keys, window, observed, limit=_PAGES, kept=routes),
        curves(keys, series, charted, whole_window(kept.histograms, observed.fine)),
    ]
    if panels is None:
        questions += [
            listing(
                keys,
                window,
                grouped=True,
                order="count",
                limit=_COUNTERS + 1,  # one of them may be left out, see below
                curves=_DRAWN,
                charted=charted,
                needed=False,
                ranked=ranked,
            ),
            log_overview(keys, limit=0),
            _marks(keys, charted),
        ]
    else:
        questions.append(redrawn(keys, charted, panels.counters.busiest))
    recent, (all_requests, routes), chart, *asked = yield from together(questions)
    if panels is None:
        counters, said, marks = asked
        large = routes if routes.ranked_at is not None else None
        panels = _Panels(counters, said, marks, large)
        busiest = panels.counters.curves
    else:
        (busiest,) = asked
    counters, said = panels.counters, panels.logs
    began = routes.hits_name and routes.hits_before is None
    for row in counters.rows:
        if row.name == REQUESTS and routes.examined >= row.series:  # of which more is known
            row.count, row.series, row.before = routes.count, routes.of, routes.count_before
            row.complete = routes.examined == routes.of
        if began:  # within the time before, which is therefore no measure for others either
            row.before = None
    if routes.slowest is not None and routes.slowest not in routes.rows:
        routes.rows.append(routes.slowest)
    result = Overview(
        routes.window,
        _numbers(all_requests, recent, routes, said, window),
        chart if series else _usual(all_requests, busiest),
        panels.marks,
        routes,
        replace(said, changes=said.changes[:_CHANGES], frequent=said.frequent[:_FREQUENT]),
        # The page shows failures as a rate; the counter is in its list of all metrics.
        replace(counters, rows=[r for r in counters.rows if r.name != HITS_FAILED][:_COUNTERS]),
    )
    return result, panels


def _recent_totals(keys: Keys, kept: Kept, frame: Frame | None) -> Query[Totals | None]:
    """Read the totals of the last complete minutes; none where minutes are not kept."""
    if frame is None or _MINUTE not in kept.series:
        yield ()
        return None
    end = slice_start(frame.now, _MINUTE)
    recent = whole_window(kept.series, _MINUTE, Frame(end - _RECENT, end, now=frame.now))
    observed = histogram_window(kept.histograms, recent)
    return (yield from request_totals(keys, recent, observed, durations=observed.fine <= _MINUTE))


def _numbers(
    all_requests: Totals,
    recent: Totals | None,
    routes: RouteTable,
    said: LogOverview,
    window: Coverage,
) -> KeyFigures:
    numbers = KeyFigures()
    seconds = max(window.before, 1)
    if routes.hits_name:
        before = None if routes.hits_before is None else routes.hits_before / seconds
        numbers.hits = KeyFigure(routes.hits / routes.seconds, before, routes.hits_name)
        numbers.hits.count, numbers.hits.count_before = routes.hits, routes.hits_before
        # Other writers' label sets, of which some may not have been looked at.
        numbers.hits.sampled = routes.hits_name == REQUESTS and routes.examined < routes.of
    failures, failures_before = all_requests.failures, all_requests.failures_before
    numbers.errors = KeyFigure(failures.rate, count=failures.failed)
    numbers.errors.since = all_requests.failures_since()
    if routes.hits_before and failures_before.of:
        numbers.errors.before = failures_before.rate
        numbers.errors.count_before = failures_before.failed
    if (took := all_requests.durations) is not None:
        numbers.p95 = KeyFigure(took.p95, took.p95_before, sampled=took.sampled)
        numbers.p95.since = all_requests.durations_since()
    if recent is not None and recent.exist:
        numbers.hits.recent = recent.count / _RECENT
        numbers.errors.recent = recent.failures.rate
        if numbers.p95.value is not None and recent.durations is not None:
            numbers.p95.recent = recent.durations.p95
    if routes.slowest is not None:
        slowest = routes.slowest
        numbers.slowest = KeyFigure(slowest.p95, routes.slowest_before, slowest.route)
    if said.sources:
        numbers.logged = KeyFigure(said.errors, said.errors_expected)
        numbers.logged.sliding = said.errors_sliding
        numbers.logged.count, numbers.logged.count_before = said.errors, said.errors_before
        numbers.logged.examined, numbers.logged.of = said.compared, said.sources
    return numbers


def _usual(all_requests: Totals, busiest: list[Curve]) -> list[Curve]:
    """Return the curves of a web application, or, where there is none, of the busiest counters."""
    of_requests = [curve for curve in all_requests.drawn if curve.values]
    return of_requests or [curve for curve in busiest if curve.values]


def _marks(keys: Keys, window: Coverage) -> Query[list[Mark]]:
    view, (reply,) = yield [marking.asked(keys)]
    marks = marking.answered(there(reply, []))
    return [mark for mark in marks if mark.time >= window.start(view.now)]
