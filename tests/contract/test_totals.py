"""Totals of requests on the page: exact at any number of routes, and the same everywhere."""

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from redmeter.ingest.replay import replay
from redmeter.integrations.shared.options import Options
from redmeter.integrations.shared.web import Requests
from redmeter.names import canonical
from redmeter.reading.page.curves import Curve
from redmeter.store import Store
from redmeter.stored.keys import slice_start
from support.observed import exact_quantile, near, put_observed
from support.pages import read_overview, read_routes
from support.stores import OpenMeter, OpenStore, count_all, exchanges, server_time

ROUTES, METHODS, STATUSES = 1_000, ("GET", "POST"), (200, 404, 503)


def added(curve: Curve, since: int = 0) -> float:
    """Add up what a curve draws."""
    values = curve.values[max(0, (since - curve.start) // curve.precision) :]
    return sum(value or 0 for value in values)


@pytest.mark.slow
def test_line_tile_and_table_agree_at_a_thousand_routes(
    open_meter: OpenMeter, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6,000 label sets, most requests and most failures in routes that come last by name."""
    rng = random.Random(7)
    wanted: dict[str, list[int]] = {}
    values: list[float] = []
    options = {"flush_interval": 3600, "max_series": 20_000, "max_label_sets": 10_000}
    meter = open_meter(sync=False, **options)
    requests = Requests(meter, Options())
    for number in range(ROUTES):
        route = f"/part{number:04}/{{id}}"
        row = wanted[route] = [0, 0]
        slow = number % 20 == 19  # rare and slow: what the busiest ones do not show
        for method in METHODS:
            for status in STATUSES:
                for _ in range(1 + (number >= 900) + 2 * (number >= 990) * (status == 503)):
                    took = rng.uniform(1.5, 2.5) if slow else rng.uniform(0.005, 0.015)
                    requests.record(method, "/", route, status, took)
                    values.append(took)
                    row[0] += 1
                    row[1] += status >= 500
    assert meter.flush(timeout=60)
    assert meter.recorder_health().overflowed == 0
    meter.close()  # it reports once a minute, and round trips are counted below
    hits, failed = (sum(row[at] for row in wanted.values()) for at in (0, 1))

    store = open_store()
    with exchanges(monkeypatch) as seen:
        found = read_overview(store, 60)
        assert len(seen) == 2 + 6  # pages of label sets, which the page keeps for a while
    line, failing, p95 = found.chart
    numbers = found.numbers
    assert (line.name, failing.name, p95.name) == ("hits", "hits_failed", "hits_seconds")
    assert (numbers.hits.count, added(line)) == (hits, hits)
    assert (numbers.errors.count, added(failing)) == (failed, failed)
    assert numbers.errors.value == failed / hits
    assert near(numbers.p95.value, exact_quantile(values, 0.95))
    assert numbers.p95.value is not None
    assert numbers.p95.value > 1.5
    # Without a minute in which recording had only just begun.
    minutes = zip(p95.values, line.values, strict=True)
    drawn = [value for value, count in minutes if value is not None and (count or 0) > hits / 20]
    assert min(drawn) <= numbers.p95.value <= max(drawn)
    assert max(drawn) - min(drawn) <= 0.5  # both minutes have the slow ones, where there are two
    assert (numbers.errors.since, numbers.p95.since) == (None, None)
    for curve in (line, failing, p95):
        assert curve.examined == curve.of == 1

    assert {row.name for row in found.counters.rows} >= {"hits"}
    assert "hits_failed" not in {row.name for row in found.counters.rows}

    table = read_routes(store, 60, limit=200)
    assert (table.found, table.examined, table.of) == (ROUTES, 6 * ROUTES, 6 * ROUTES)
    assert (table.timed, [page.route for page in table.rows]) == (
        2 * ROUTES,
        sorted(wanted, key=lambda route: (-wanted[route][0], route))[:200],
    )
    rows = [
        page
        for at in range(0, ROUTES, 200)
        for page in read_routes(store, 60, limit=200, offset=at).rows
    ]
    assert {page.route: [page.count, page.failed] for page in rows} == wanted
    assert sum(page.share for page in rows) == pytest.approx(1)
    assert sum(page.total or 0 for page in rows) == pytest.approx(sum(values), rel=1e-6)
    assert table.rows[0].share == pytest.approx(wanted[table.rows[0].route][0] / hits)
    assert (found.routes.examined, found.routes.of) == (6 * ROUTES, 6 * ROUTES)
    for page in found.routes.rows:
        assert page.share == pytest.approx(page.count / hits)


def test_failures_of_older_data_are_unknown_and_not_none(
    client: Any, open_store: OpenStore
) -> None:
    """The rate is that of the time in which failures were counted, and the start is named."""
    store, now = open_store(), int(server_time(client))
    minutes = [slice_start(now, 60) - 60 * n for n in range(30)]
    since = minutes[9]
    status = canonical("http_requests", {"method": "GET", "route": "/", "status": "5xx"})
    count_all(store, {"hits": dict.fromkeys(minutes, 10), status: dict.fromkeys(minutes, 10)})
    found = read_overview(store, 60)
    assert [curve.name for curve in found.chart] == ["hits"]
    assert (found.numbers.errors.value, found.numbers.errors.since) == (None, None)
    assert (found.numbers.p95.value, found.numbers.p95.since) == (None, None)

    # Failures are counted from within a minute on, which is therefore known in part alone.
    count_all(store, {"hits_failed": dict.fromkeys(minutes[:10], 1) | {since: 0}})
    put_observed(client, {"hits_seconds": [(at, 0.25) for at in minutes[:10]]})
    found = read_overview(store, 60)
    hits, failed, p95 = found.chart
    assert (hits.start, failed.start, p95.start) == (minutes[-1], since + 60, since)
    assert (added(hits, failed.start), added(failed)) == (90, 9)
    errors = found.numbers.errors
    assert (errors.value, errors.count, errors.since) == (0.1, 9, since + 60)
    assert found.numbers.p95.since == since
    assert near(found.numbers.p95.value, 0.25)


def test_the_time_before_is_compared_by_the_requests_whose_failures_are_known(
    client: Any, open_store: OpenStore
) -> None:
    """Else half of it would be taken for free of failures."""
    store, now = open_store(), int(server_time(client))
    end = slice_start(slice_start(now, 60) - 119 * 60, 300)
    before = [end - 300 * n for n in range(1, 40)]
    counts = dict.fromkeys([now, *before], 10) | {now - 9 * 3600: 1000}
    count_all(store, {"hits": counts, "hits_failed": {now: 1} | dict.fromkeys(before[:18], 5)})
    errors = read_overview(store, 60).numbers.errors
    assert (errors.value, errors.since, errors.before) == (0.1, None, 0.5)
    # The oldest interval that has failures, up to an hour, may have begun without them.
    assert errors.count_before is not None
    assert 30 <= errors.count_before < 90


@pytest.mark.parametrize("older", [False, True])
def test_no_failure_is_a_rate_of_zero(client: Any, open_store: OpenStore, older: bool) -> None:
    """Where zeros are stored."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {"hits": {now: 10, now - 600: 5}, "hits_failed": {now: 0, now - 600: 0}})
    if older:
        count_all(store, {"hits": {now - 6000: 7}})
    found = read_overview(store, 60)
    hits, failed = found.chart
    first = hits.start + (5400 + 60 if older else 0)
    assert (failed.start, set(failed.values)) == (first, {0})
    assert found.numbers.errors.value == 0.0
    assert found.numbers.errors.since == (first if older else None)


def test_sampled_durations_are_in_the_line_and_the_tile_and_marked(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever shares they are samples of; a name that only begins the same is another one."""
    now = server_time(client)
    put_observed(
        client,
        {
            "hits_seconds": [(now, 0.1)] * 50,
            'hits_seconds{sampled="0.1"}': [(now, 0.7)] * 30,
            'hits_seconds{sampled="0.5"}': [(now, 0.7)] * 20,
            "hits_seconds_of_mine": [(now, 9.0)] * 500,
        },
    )
    store = open_store()
    count_all(store, {"hits": {int(now): 400}})
    with exchanges(monkeypatch) as seen:
        found = read_overview(store, 60)
        assert len(seen) == 2
    p95 = found.numbers.p95
    assert near(p95.value, 0.7)
    assert p95.sampled
    assert found.chart[-1].values[-1] == p95.value
    client.delete(*client.keys("*hits_seconds{*"))
    p95 = read_overview(store, 60).numbers.p95
    assert (near(p95.value, 0.1), p95.sampled) == (True, False)


def test_a_replayed_log_has_totals(open_store: OpenStore) -> None:
    """Failures with zeros for seconds without; this log has no durations."""
    store = open_store()
    lines = [
        f'h - - [{when}] "GET /a/{n} HTTP/1.1" {status} 1'
        for n, status in enumerate((200, 404, 500, 503, 200, 301))
        for when in [_moment(store, -3600 * (n % 3))]
    ]
    report = replay(store, iter([lines]))
    assert (report.retained, report.failed, report.stored, report.counts) == (6, 2, 14, 14)
    found = read_overview(store, 300)
    hits, failed = found.chart
    assert (added(hits), added(failed), failed.start) == (6, 2, hits.start)
    assert found.numbers.errors.value == pytest.approx(2 / 6)
    assert (found.numbers.errors.since, found.numbers.p95.value) == (None, None)


def test_a_replayed_log_with_durations_has_percentiles(
    open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """By method and route, and in total, as the web integrations observe them."""
    store = open_store()
    now = store.clock.wall()
    lines = [
        json.dumps(
            {
                "time": now - 600 * (n % 3),
                "request": f"{'GET' if n % 2 else 'POST'} /a/{n} HTTP/1.1",
                "status": 200,
                "request_time": n / 100,
            }
        )
        for n in range(100)
    ]
    lines.append(f'h - - [{_moment(store, 0)}] "GET /b HTTP/1.1" 200 1')
    report = replay(store, iter([lines]))
    assert (report.requests, report.durations, report.stored) == (101, 100, 402)
    assert report.counts == report.stored
    assert near(read_overview(store, 300).numbers.p95.value, 0.94)
    meter = open_meter()
    for labels, count in (({"method": "GET", "route": "/a/{id}"}, 50), ({"method": "POST"}, 50)):
        assert meter.summary("http_request_seconds", labels=labels, last="1h").count == count
    assert meter.summary("hits_seconds", last="1h").count == 100


def _moment(store: Store, ago: float) -> str:
    """Return a time as access logs have it."""
    now = store.clock.wall()
    return datetime.fromtimestamp(now + ago, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
