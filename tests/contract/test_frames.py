"""Windows in the past, on a real server: figures are those of the window, and of nothing else."""

from typing import Any

import pytest

from redmeter.names import canonical
from redmeter.reading.page.listing import listing, window_for
from redmeter.reading.page.overview import Overview, Watch
from redmeter.reading.windows import Frame
from redmeter.store import Store
from redmeter.store.query import run_query
from redmeter.stored.keys import Retention, slice_start
from support.details import read_detail
from support.observed import exact_quantile, near, put_observed
from support.pages import read_routes
from support.stores import OpenStore, count_all, exchanges, server_time

HOUR, DAY = 3600, 86_400
ROUTE = canonical("http_requests", {"method": "GET", "route": "/", "status": "2xx"})
FAILED = canonical("http_requests", {"method": "GET", "route": "/", "status": "5xx"})
TOOK = canonical("http_request_seconds", {"method": "GET", "route": "/"})


def look(store: Store, precision: int, frame: Frame) -> Overview:
    """Read the overview of a window."""
    return Watch(store).look(precision, frame=frame)[1]


def fill(client: Any, store: Store, starts: list[int]) -> None:
    """Write n + 1 requests into the n-th interval, one of them failed; each takes n + 1 seconds."""
    counts = {at + 1: n + 1 for n, at in enumerate(starts)}
    ones = dict.fromkeys(counts, 1)
    fine = {at: n - 1 for at, n in counts.items()}
    count_all(store, {"hits": counts, "hits_failed": ones, ROUTE: fine, FAILED: ones})
    took = [(at + 1.0, n) for at, n in counts.items()]
    put_observed(client, {TOOK: took, "hits_seconds": took})


def test_every_panel_has_the_figures_of_a_window_in_the_past(
    client: Any, open_store: OpenStore, monkeypatch: Any
) -> None:
    """By the minute; the compared period is the one right before it, by the minute too."""
    store, now = open_store(), server_time(client)
    end = slice_start(now, 60) - 20 * 60
    fill(client, store, [end - 60 * n for n in range(60, -21, -1)])
    frame = Frame(end - 20 * 60, end, None, now)
    inside, before = range(41, 61), range(21, 41)  # the counts of the intervals
    with exchanges(monkeypatch) as trips:
        found = look(store, 60, frame)
    assert len(trips) == 2
    window, hits = found.window, found.numbers.hits
    assert (window.precision, window.start, window.end) == (60, end - 1200, end)
    assert (window.before_precision, window.before_start) == (60, end - 2400)
    assert (hits.count, hits.count_before) == (sum(inside), sum(before))
    assert hits.value == pytest.approx(sum(inside) / 1200)
    assert found.numbers.errors.value == pytest.approx(20 / sum(inside))
    assert near(found.numbers.p95.value, exact_quantile([float(n) for n in inside], 0.95))
    (route,) = found.routes.rows
    assert (route.count, route.before, route.failed) == (sum(inside), sum(before), 20)
    assert sum(value or 0 for value in route.values) == sum(inside)
    assert route.total == pytest.approx(sum(inside))
    (total,) = (row for row in found.counters.rows if row.name == "hits")
    assert (total.count, total.before) == (sum(inside), sum(before))
    assert sum(value or 0 for value in total.values) == sum(inside)
    # The chart is of all that is kept, so that one can zoom out.
    assert sum(value or 0 for value in found.chart[0].values) > sum(inside) + sum(before)
    assert found.chart[0].partial

    routes = read_routes(store, 60, frame=frame)
    assert [(row.count, row.failed) for row in routes.rows] == [(sum(inside), 20)]
    detail = read_detail(store, "http_request_seconds", 60, frame)
    assert detail.summary is not None
    assert detail.summary.count == 20
    assert [part.count for part in detail.sets] == [20]


@pytest.mark.parametrize(("shift", "days"), [(None, 0.125), (DAY, 1), (7 * DAY, 7)])
def test_the_compared_period_lies_as_long_ago_as_is_asked_for(
    client: Any, open_store: OpenStore, shift: int | None, days: float
) -> None:
    """Hour by hour; where it is not kept, there is no number to compare with."""
    store, now = open_store(), server_time(client)
    end = slice_start(now, HOUR) - 2 * HOUR
    hours = [end - n * HOUR for n in range(8 * 24, 0, -1)]
    fill(client, store, hours)
    found = look(store, HOUR, Frame(end - 3 * HOUR, end, shift, now))
    count = {at: n + 1 for n, at in enumerate(hours)}
    inside = [end - n * HOUR for n in (1, 2, 3)]
    hits = found.numbers.hits
    assert hits.count == sum(count[at] for at in inside)
    reach = store.seen.series[HOUR] * HOUR
    kept = now - (end - 3 * HOUR) + days * DAY <= reach
    expected = sum(count[at - int(days * DAY)] for at in inside)
    coarse = found.window.before_precision != HOUR
    assert coarse != kept
    if kept:
        assert hits.count_before == expected
        assert found.window.before_start == end - 3 * HOUR - days * DAY


def test_a_window_that_is_older_than_its_precision_is_shown_by_the_next_one_that_is_kept(
    client: Any, open_store: OpenStore
) -> None:
    """And the answer names it."""
    store, now = open_store(), server_time(client)
    end = slice_start(now, HOUR) - 30 * HOUR
    fill(client, store, [end - n * HOUR for n in range(6, 0, -1)])
    found = look(store, 60, Frame(end - 2 * HOUR, end, None, now))
    assert found.window.precision == min(
        p for p, samples in store.seen.series.items() if p * (samples - 1) > 33 * HOUR
    )
    assert found.window.start <= end - 2 * HOUR < end <= found.window.end


def test_a_list_of_a_window_that_ends_now_has_what_is_running(
    client: Any, open_store: OpenStore
) -> None:
    """`since` alone."""
    store, now = open_store(), server_time(client)
    start = slice_start(now, 60)
    fill(client, store, [start - 600, start - 60, start])
    frame = Frame(start - 120, None, None, now)
    found = run_query(
        store, lambda kept: listing(store.keys, window_for(kept, "counter", 60, frame))
    )[1]
    (hits,) = (row for row in found.rows if row.name == "hits")
    assert hits.count == 5


@pytest.mark.parametrize("off", [0, 17, -41])
def test_a_window_between_edges_has_whole_intervals_in_every_panel(
    client: Any, open_store: OpenStore, off: int
) -> None:
    """Routes, tiles and the intervals of the chart have the same sum; so has the period before."""
    store, now = open_store(), server_time(client)
    end = slice_start(now, 60) - 20 * 60
    fill(client, store, [end - 60 * n for n in range(60, -21, -1)])
    overview = look(store, 60, Frame(end - 600 + off, end + off, None, now))
    window, length = overview.window, 600 + (60 if off else 0)
    assert (window.end - window.start, window.start % 60) == (length, 0)
    assert window.start <= end - 600 + off < end + off <= window.end
    assert (window.before_start, window.before_end) == (window.start - length, window.start)
    chart = overview.chart[0]
    drawn = {chart.start + 60 * n: int(value or 0) for n, value in enumerate(chart.values)}

    def within(start: int, stop: int) -> int:
        return sum(count for at, count in drawn.items() if start <= at < stop)

    (route,) = overview.routes.rows
    inside = within(window.start, window.end)
    assert (overview.numbers.hits.count, route.count) == (inside, inside)
    assert overview.numbers.hits.count_before == within(window.start - length, window.start)


@pytest.mark.parametrize(
    ("since", "until"), [(1, 300), (1_000_000_000, 1_000_000_300), (0, None), (4e9, 4.1e9)]
)
def test_a_window_of_any_time_has_intervals_that_are_kept_or_none(
    client: Any, open_store: OpenStore, since: float, until: float | None
) -> None:
    """Longer than any retention, wholly before it, and in the future."""
    store, now = open_store(), server_time(client)
    fill(client, store, [slice_start(now, 60) - 60])
    window = look(store, 60, Frame(since, until, None, now)).window
    kept = Retention(store.seen.series)
    oldest = min(kept.oldest(p, now) for p in kept)
    assert window.start >= oldest or window.end - window.start == window.precision
    assert window.end <= now + window.precision


def test_a_window_up_to_now_has_a_length(client: Any, open_store: OpenStore) -> None:
    """By the finest precision that keeps it; another day is compared at the same one only."""
    store, now = open_store(), server_time(client)
    fill(client, store, [slice_start(now, 60)])
    lengths = {HOUR: (60, False), DAY: (HOUR, True), 7 * DAY: (HOUR, False)}
    for last, (precision, compared) in lengths.items():
        window = look(store, 60, Frame(None, None, 7 * DAY, now, last)).window
        assert (window.end - window.start, window.precision) == (last, precision)
        assert window.before is compared
        assert window.before_precision in (None, precision)
