"""What the page shows, on real servers: each figure against what was written."""

import json
import random
from dataclasses import asdict
from typing import Any

import pytest

from redmeter import InvalidValue, LimitExceeded, UnknownPrecision
from redmeter.clock import ManualClock
from redmeter.names import canonical
from redmeter.reading.page.curves import Curve
from redmeter.reading.page.http import REQUEST_PAGE, SLOWEST_OF
from redmeter.reading.page.listing import MAX_LISTED_SERIES, RowListing, listing
from redmeter.reading.page.overview import PANELS_SECONDS, Watch
from redmeter.reading.windows import histogram_window, whole_window
from redmeter.store import Store
from redmeter.store.query import run_query
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from support.details import read_detail
from support.logs import read_log_overview
from support.observed import exact_quantile, near, put_observed
from support.pages import read_overview, read_routes
from support.stores import OpenMeter, OpenStore, count_all, exchanges, server_time

PRECISIONS = sorted(DEFAULT_RETENTION)


def requests(route: str, status: str = "2xx", method: str = "GET") -> str:
    """Return the series of some requests."""
    return canonical("http_requests", {"method": method, "route": route, "status": status})


def durations(route: str, **more: str) -> str:
    """Return the series of their durations."""
    return canonical("http_request_seconds", {"method": "GET", "route": route} | more)


def rows(store: Store, precision: int = 60, **options: Any) -> RowListing:
    """Read a list."""
    histograms = options.get("kind") == "histogram"

    def question(kept: Any) -> Any:
        window = whole_window(kept.series, precision)
        if histograms:
            window = histogram_window(kept.histograms, window)
        return listing(store.keys, window, **options)

    found: RowListing = run_query(store, question)[1]
    return found


def added(curve: Curve) -> float:
    """Add up what a curve draws."""
    return sum(value or 0 for value in curve.values)


def minutes_ago(client: Any, minutes: float) -> int:
    """Return a second by the server's clock."""
    return int(server_time(client) - 60 * minutes)


def test_five_numbers_are_those_of_the_window_and_of_the_one_before(
    client: Any, open_store: OpenStore
) -> None:
    """Counts are exact, percentiles within the bound."""
    store, now = open_store(), server_time(client)
    rng = random.Random(1)
    recent = [slice_start(now, 3600) + 1 - 60 * n for n in range(20)]
    long_ago = [int(now) - 3 * 3600 - 60 * n for n in range(10)]
    older = {int(now) - 9 * 3600: 1_000}
    count_all(store, {"hits": dict.fromkeys(recent, 6) | dict.fromkeys(long_ago, 5) | older})
    count_all(
        store,
        {
            requests("/"): dict.fromkeys(recent, 4) | dict.fromkeys(long_ago, 5),
            requests("/buy", "5xx", "POST"): dict.fromkeys(recent, 1),
            requests("/buy", "2xx", "POST"): dict.fromkeys(recent, 1),
            "hits_failed": dict.fromkeys(recent, 1) | dict.fromkeys(long_ago, 0),
        },
    )
    fast = [(at + 0.5, rng.uniform(0.001, 0.002)) for at in recent]
    slow = [(at + 0.5, rng.uniform(0.5, 0.9)) for at in recent[:5]]
    put_observed(
        client, {durations("/"): fast, durations("/buy"): slow, "hits_seconds": fast + slow}
    )
    found = read_overview(store, 60)
    numbers = found.numbers
    window = now - found.window.start
    assert numbers.hits.name == "hits"
    assert numbers.hits.value == pytest.approx(120 / window, rel=0.01)
    assert numbers.hits.before == pytest.approx(50 / 7200)
    assert numbers.errors.value == pytest.approx(20 / 120)
    assert numbers.errors.before == 0.0
    everything = [value for _, value in fast + slow]
    assert near(numbers.p95.value, exact_quantile(everything, 0.95))
    assert numbers.slowest.name == "/buy"
    assert near(numbers.slowest.value, exact_quantile([value for _, value in slow], 0.95))
    first, second = found.routes.rows
    assert (first.route, first.count, first.failed, first.before) == ("/", 80, 0, 50)
    assert (second.route, second.count, second.failed, second.failing) == ("/buy", 40, 20, 0.5)
    assert first.share == pytest.approx(80 / 120)
    assert first.total == pytest.approx(sum(value for _, value in fast), rel=1e-6)
    assert second.total_share == pytest.approx(
        sum(value for _, value in slow) / sum(everything), rel=1e-6
    )
    assert sum(value or 0 for value in first.values) == 80
    hits, failed, p95 = found.chart
    assert (hits.name, hits.kind, sum(value or 0 for value in hits.values)) == (
        "hits",
        "counter",
        120,
    )
    assert sum(value or 0 for value in failed.values) == 20
    assert p95.kind == "histogram"
    assert hits.start == min(recent) // 60 * 60


def test_a_store_that_began_within_the_window_is_not_taken_for_a_slow_one(
    client: Any, open_store: OpenStore
) -> None:
    """A second's hits are of the time since the first one, where nothing was before."""
    store = open_store()
    now = server_time(client)
    count_all(store, {"hits": {int(now) - 100: 50, int(now) - 5: 50}})
    number = read_overview(store, 60).numbers.hits
    assert number.value is not None
    assert 100 / 165 <= number.value <= 100 / 100


def test_where_nobody_counts_hits_all_requests_are_told(client: Any, open_store: OpenStore) -> None:
    """As of another name."""
    store = open_store()
    count_all(store, {requests("/"): {minutes_ago(client, 1): 7}})
    number = read_overview(store, 60).numbers.hits
    assert number.name == "http_requests"
    assert number.value


def test_an_empty_store_has_no_numbers(open_store: OpenStore) -> None:
    """And nothing that looks like one."""
    found = read_overview(open_store(), 60)
    assert [n["value"] for n in asdict(found.numbers).values()] == [None] * 5
    assert (found.chart, found.routes.rows, found.counters.rows, found.marks) == ([], [], [], [])


def test_counters_without_a_web_application_are_drawn(client: Any, open_store: OpenStore) -> None:
    """The busiest ones, label sets added up."""
    store, then = open_store(), minutes_ago(client, 1)
    count_all(
        store, {'jobs{queue="a"}': {then: 3}, 'jobs{queue="b"}': {then: 4}, "mails": {then: 1}}
    )
    found = read_overview(store, 60)
    assert [(curve.name, sum(v or 0 for v in curve.values)) for curve in found.chart] == [
        ("jobs", 7),
        ("mails", 1),
    ]
    assert [(row.name, row.series, row.count) for row in found.counters.rows] == [
        ("jobs", 2, 7),
        ("mails", 1, 1),
    ]


def test_curves_that_are_asked_for_may_be_of_any_kind(
    client: Any, open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """A counter, a gauge, observed values, and a name that nobody has."""
    now = server_time(client)
    with open_meter() as meter:
        meter.count("sales", 3)
        meter.gauge("depth").set(17)
    put_observed(client, {"took": [(now, 0.5)]})
    found = read_overview(open_store(), 60, series=["sales", "depth", "took", "nobody"])
    assert [(curve.name, curve.kind, curve.values[-1:]) for curve in found.chart[:2]] == [
        ("sales", "counter", [3]),
        ("depth", "gauge", [17]),
    ]
    took, nobody = found.chart[2:]
    assert took.kind == "histogram"
    assert near(took.values[-1], 0.5)
    assert nobody.values == []


def test_a_name_that_is_asked_for_without_labels_stands_for_its_label_sets(
    client: Any, open_store: OpenStore, monkeypatch: Any
) -> None:
    """Added up; in two round trips, whatever else is asked for."""
    store, now = open_store(), int(server_time(client))
    count_all(
        store,
        {
            'sales{shop="a"}': {now: 3},
            'sales{shop="b"}': {now: 4},
            "salesman": {now: 100},
            "plain": {now: 5},
            'plain{by="x"}': {now: 50},
        }
        | {f'many{{n="{n:03}"}}': {now: n} for n in range(60)},
    )
    values = [0.1] * 9 + [0.9] * 11
    put_observed(
        client,
        {
            'took{a="1"}': [(now, value) for value in values[:7]],
            'took{a="2"}': [(now, value) for value in values[7:]],
        },
    )
    names = ["sales", "took", "plain", "many", 'sales{shop="a"}', "nobody"]
    with exchanges(monkeypatch) as seen:
        sales, took, plain, many, alone, nobody = read_overview(store, 60, series=names).chart
        assert len(seen) == 2
    assert (sales.name, sales.kind, added(sales)) == ("sales", "counter", 7)
    assert (sales.examined, sales.of, sales.partial) == (2, 2, True)
    assert (took.kind, took.examined, took.of) == ("histogram", 2, 2)
    assert near(took.values[-1], exact_quantile(values, 0.95))
    assert (added(plain), added(alone), nobody.values) == (5, 3, [])
    assert (many.examined, many.of) == (60, 60)
    assert added(many) == sum(range(60))


def test_errors_of_this_hour_and_of_the_one_before(
    open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """Of all loggers, with what changed, and what came last."""
    meter = open_meter()
    for text in ("one", "two", "one"):
        meter.log("shop", text, severity="error")
    meter.log("jobs", "lost %d", 3, severity="critical")
    meter.log("jobs", "fine", severity="info")
    store = open_store()
    number = read_overview(store, 60).numbers.logged
    assert (number.value, number.before) == (4, 0)
    found = read_log_overview(store)
    assert found.frequent[0].pattern == "one"
    assert found.frequent[0].count == 2
    assert {change.kind for change in found.changes} == {"new"}
    assert [message.text for message in found.recent][:2] == ["fine", "lost 3"]
    assert len(found.recent) == 5
    only = read_log_overview(store, logger="jobs")
    assert {f.logger for f in only.frequent} == {"jobs"}
    assert [message.text for message in only.recent] == ["fine", "lost 3"]
    assert [m.text for m in read_log_overview(store, severities=["critical"]).recent] == ["lost 3"]
    failures = read_log_overview(store, severities=["critical", "error"])
    assert [m.text for m in failures.recent] == ["lost 3", "one", "two", "one"]
    assert failures.errors == 4


def test_new_info_patterns_hide_no_critical_messages(
    open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """However often they come: the overview lists the most urgent changes first."""
    meter = open_meter()
    for word in "abcdefgh":
        for _ in range(5):
            meter.log("shop", f"started {word} {word}", severity="info")
    for word in "vwxyz":
        meter.log("jobs", f"lost {word} {word}", severity="critical")
    found = read_overview(open_store(), 60).messages.changes
    assert [change.severity for change in found][:5] == ["critical"] * 5


@pytest.mark.parametrize("precision", PRECISIONS)
def test_two_round_trips_whatever_is_shown(
    client: Any, open_store: OpenStore, monkeypatch: Any, precision: int
) -> None:
    """A thousand pages, a hundred loggers, at every precision."""
    store, now = open_store(), server_time(client)
    count_all(store, {requests(f"/{n}"): {int(now): n + 1} for n in range(300)}, trim=False)
    put_observed(client, {durations(f"/{n}"): [(now, n + 0.1)] for n in range(100)})
    with exchanges(monkeypatch) as seen:
        found = read_overview(store, precision)
        assert len(seen) == 2
        pages = read_routes(store, precision, order="p95")
        assert len(seen) == 4
        read_detail(store, "http_requests", precision)
        assert len(seen) == 6
        read_detail(store, "http_request_seconds", precision)
        assert len(seen) == 8
        read_log_overview(store)
        assert len(seen) <= 10
    assert found.routes.examined == found.routes.of == 300
    assert (pages.timed_read, pages.timed) == (100, 100)
    json.dumps(asdict(found), allow_nan=False)


def test_of_very_many_series_all_are_read_now_and_then(client: Any, open_store: OpenStore) -> None:
    """The list of routes has the time."""
    clock = ManualClock()
    store, now = open_store(clock=clock), int(server_time(client))
    names = {requests(f"/{n}"): {now: 1} for n in range(REQUEST_PAGE + 200)}
    for at in range(0, len(names), 300):
        count_all(store, dict(list(names.items())[at : at + 300]), trim=False)
    watch = Watch(store)
    found = watch.look(60)[1]
    assert (found.routes.examined, found.routes.of) == (REQUEST_PAGE + 200, REQUEST_PAGE + 200)
    assert found.counters.total == REQUEST_PAGE + 200
    count_all(store, {requests("/7"): {now: 1_000}})
    again = watch.look(60)[1]
    assert again.routes.ranked_at == found.routes.ranked_at
    assert again.routes.rows[0].count == 1
    clock.advance(PANELS_SECONDS + 1)
    newest = watch.look(60)[1].routes
    assert (newest.rows[0].route, newest.rows[0].count) == ("/7", 1_001)


def test_the_slowest_page_is_found_among_many_that_are_busier(
    client: Any, open_store: OpenStore
) -> None:
    """Though histograms of only some are read."""
    now = server_time(client)
    given = {durations(f"/{n}"): [(now, 0.1)] * 5 for n in range(40 * SLOWEST_OF)}
    given[durations("/slow")] = [(now, 9.0)]
    put_observed(client, given)
    found = read_routes(open_store(), 60, order="p95", limit=3)
    assert found.rows[0].route == "/slow"
    assert near(found.rows[0].p95, 9.0)
    assert found.timed == 40 * SLOWEST_OF + 1
    assert found.timed_read < found.timed


def test_where_only_some_requests_are_timed_the_total_is_an_estimate(
    client: Any, open_store: OpenStore
) -> None:
    """By the share that the label tells."""
    put_observed(client, {durations("/", sampled="0.1"): [(server_time(client), 2.0)]})
    found = read_routes(open_store(), 60)
    assert found.sampled
    assert found.rows[0].total == pytest.approx(20.0)


def test_times_past_the_largest_double_are_none(client: Any, open_store: OpenStore) -> None:
    """Of a page, and the shares of all; the mean of the others is right."""
    now = server_time(client)
    put_observed(
        client, {durations("/huge"): [(now, 1.5e308), (now, 1.7e308)], durations("/"): [(now, 2.0)]}
    )
    pages = {page.route: page for page in read_routes(open_store(), 60).rows}
    told = {route: (page.mean, page.total, page.total_share) for route, page in pages.items()}
    assert told == {"/huge": (None, None, None), "/": (2.0, 2.0, None)}


def test_another_programs_keys_are_left_out(client: Any, open_store: OpenStore) -> None:
    """The rest is shown."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {requests("/"): {now: 3}, requests("/x"): {now: 4}})
    for precision in PRECISIONS:
        client.set(store.keys.count(precision, requests("/x")), "a text")
    assert [(page.route, page.count) for page in read_routes(store, 60).rows] == [("/", 3)]
    client.set(store.keys.count(60, "hits"), "a text")
    assert [page.route for page in read_overview(store, 60).routes.rows] == ["/"]


@pytest.mark.parametrize("order", ["count", "p95", "failing", "total"])
def test_pages_come_in_the_order_that_is_asked_for(
    client: Any, open_store: OpenStore, order: str
) -> None:
    """The highest first."""
    store, now = open_store(), server_time(client)
    count_all(
        store,
        {
            requests("/count"): {int(now): 50},
            requests("/p95"): {int(now): 2},
            requests("/failing", "5xx"): {int(now): 3},
            requests("/total"): {int(now): 9},
        },
    )
    put_observed(
        client,
        {
            durations("/p95"): [(now, 5.0)],
            durations("/total"): [(now, 1.0)] * 9,
            durations("/count"): [(now, 0.01)] * 50,
        },
    )
    assert read_routes(store, 60, order=order).rows[0].route == f"/{order}"


def test_orders_and_limits_are_checked(open_store: OpenStore) -> None:
    """Before anything is asked."""
    store = open_store()
    with pytest.raises(InvalidValue):
        read_routes(store, 60, order="beauty")
    with pytest.raises(LimitExceeded):
        read_routes(store, 60, limit=1000)
    with pytest.raises(LimitExceeded):
        read_overview(store, 60, series=["x"] * 21)
    with pytest.raises(UnknownPrecision):
        read_overview(store, 61)


def test_who_watches_has_figures_at_once_and_panels_now_and_then(
    client: Any, open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """Panels that change slowly are kept for some seconds; numbers and curves are not."""
    clock = ManualClock()
    store, now = open_store(clock=clock), int(server_time(client))
    with open_meter() as meter:
        meter.count("hits", 1, at=now)
        watch = Watch(store)
        assert [row.name for row in watch.look(60)[1].counters.rows] == ["hits"]
        meter.count("hits", 2, at=now)
        meter.count("sales", 1, at=now)
    found = watch.look(60)[1]
    assert sum(value or 0 for value in found.chart[0].values) == 3
    assert [row.name for row in found.counters.rows] == ["hits"]
    clock.advance(PANELS_SECONDS + 1)
    assert [row.name for row in watch.look(60)[1].counters.rows] == ["hits", "sales"]


def test_where_hits_began_within_the_time_before_nothing_is_compared(
    client: Any, open_store: OpenStore
) -> None:
    """Else who began then would seem to have grown."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {"hits": {now - 30 * n: 30 for n in range(3 * 120)}})
    found = read_overview(store, 60)
    number = found.numbers.hits
    assert number.value == pytest.approx(1.0, rel=0.05)
    assert number.before is None
    assert [row.before for row in found.counters.rows] == [None]
    count_all(store, {"hits": {now - 9 * 3600: 90_000}})
    before = read_overview(store, 60).numbers.hits.before
    assert before is not None
    assert 0.3 < before < 0.7


def test_without_a_web_application_the_chart_is_live(
    client: Any, open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """Of the busiest counters, at the precision that was chosen."""
    watch, now = Watch(open_store(clock=ManualClock())), int(server_time(client))
    with open_meter() as meter:
        meter.count("jobs", 2, at=now - 3)
        assert [(c.name, c.precision, c.values[0]) for c in watch.look(1)[1].chart] == [
            ("jobs", 1, 2)
        ]
        meter.count("jobs", 5, at=now)
    (curve,) = watch.look(1)[1].chart
    assert sum(value or 0 for value in curve.values) == 7


def test_requests_that_did_not_fail_are_zeros(client: Any, open_store: OpenStore) -> None:
    """From the first hit on, whether or when one failed."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {"hits": {now - 600: 2, now: 1}, "hits_failed": {now - 600: 0, now: 0}})
    hits, failed = read_overview(store, 60).chart
    assert (failed.start, len(failed.values)) == (hits.start, len(hits.values))
    assert set(failed.values) == {0}
    count_all(store, {"hits_failed": {now: 4}})
    hits, failed = read_overview(store, 60).chart
    assert (failed.start, len(failed.values)) == (hits.start, len(hits.values))
    assert (failed.values[0], failed.values[-1]) == (0, 4)


def test_what_nobody_knows_of_the_time_before_is_not_zero(
    client: Any, open_store: OpenStore
) -> None:
    """Where nothing at all is known of it; else what did not come then is a zero."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {"hits": {now: 2}, requests("/"): {now: 2}})
    found = read_overview(store, 60)
    assert (found.numbers.hits.before, found.numbers.errors.before) == (None, None)
    assert {row.before for row in found.counters.rows} == {None}
    assert found.routes.rows[0].before is None
    count_all(store, {"hits": {now - 3 * 3600: 1, now - 9 * 3600: 50}})
    found = read_overview(store, 60)
    assert found.numbers.hits.before == pytest.approx(1 / 7200)


def test_pages_go_on_and_are_narrowed_down_by_what_routes_contain(
    client: Any, open_store: OpenStore
) -> None:
    """Each part has its curves."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {requests(f"/{word}/{n}"): {now: 50 - n} for n in range(20) for word in "ab"})
    whole = read_routes(store, 60, limit=100)
    first, second = (read_routes(store, 60, limit=15, offset=offset) for offset in (0, 15))
    assert [page.route for page in first.rows + second.rows] == [p.route for p in whole.rows[:30]]
    assert (first.found, whole.found) == (40, 40)
    assert all(page.values for page in second.rows)
    some = read_routes(store, 60, containing="/b/1")
    assert {page.route for page in some.rows} == {"/b/1", *(f"/b/{n}" for n in range(10, 20))}
    assert some.found == 11


def test_ordered_by_failures_only_pages_that_fail_are_told(
    client: Any, open_store: OpenStore
) -> None:
    """The others would come in no order."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {requests("/"): {now: 9}, requests("/x", "5xx"): {now: 1}})
    assert [page.route for page in read_routes(store, 60, order="failing").rows] == ["/x"]


def test_a_name_whose_label_sets_were_not_all_looked_at_says_so(
    client: Any, open_store: OpenStore
) -> None:
    """It is the last one; what requests came to is known from the pages in any case."""
    store, now = open_store(), int(server_time(client))
    names = {f'jobs{{n="{n:04}"}}': {now: 1} for n in range(MAX_LISTED_SERIES)}
    names |= {requests(f"/{n}"): {now: 1} for n in range(50)}
    count_all(store, dict(list(names.items())[:300]), trim=False)
    count_all(store, dict(list(names.items())[300:]) | {"calls": {now: 1}}, trim=False)
    rows_of = {row.name: row for row in read_overview(store, 60).counters.rows}
    assert (rows_of["jobs"].complete, rows_of["jobs"].count) == (False, MAX_LISTED_SERIES - 51)
    assert (rows_of["http_requests"].complete, rows_of["http_requests"].count) == (True, 50)
    assert rows_of["calls"].complete


# --- Lists ---------------------------------------------------------------------------------


def test_a_list_by_name_goes_on_page_by_page(client: Any, open_store: OpenStore) -> None:
    """Each page reads its own rows alone."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {f"n{n:03}": {now: n + 1} for n in range(50)})
    first, second = (rows(store, limit=20, offset=offset) for offset in (0, 20))
    assert [row.name for row in first.rows + second.rows] == [f"n{n:03}" for n in range(40)]
    assert (first.total, first.examined, second.found) == (50, 20, 50)
    assert [row.count for row in second.rows[:2]] == [21, 22]


def test_a_pattern_narrows_a_list_down(client: Any, open_store: OpenStore) -> None:
    """Wherever its stars are; total is of what begins as it does."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {name: {now: 1} for name in ("sales", "sales_eu", "visits", "resales")})
    assert [row.name for row in rows(store, pattern="sales*").rows] == ["sales", "sales_eu"]
    assert [row.name for row in rows(store, pattern="*sales").rows] == ["resales", "sales"]
    assert [row.name for row in rows(store, pattern="s?les*").rows] == ["sales", "sales_eu"]
    assert [row.name for row in rows(store, pattern="sales").rows] == ["sales"]


def test_lists_by_count_and_by_change(client: Any, open_store: OpenStore) -> None:
    """Change is against as long a time before."""
    store, now = open_store(), int(server_time(client))
    count_all(
        store,
        {
            "steady": {now: 50, now - 3 * 3600: 50, now - 9 * 3600: 50},
            "grown": {now: 30},
            "small": {now: 2},
        },
    )
    assert [row.name for row in rows(store, order="count").rows] == ["steady", "grown", "small"]
    assert [row.name for row in rows(store, order="change").rows] == ["grown", "small", "steady"]
    steady = rows(store, pattern="steady").rows[0]
    assert (steady.count, steady.before) == (50, 50)


@pytest.mark.parametrize("order", ["name", "count", "change"])
def test_a_list_does_not_compare_counters_with_a_time_in_which_they_began(
    client: Any, open_store: OpenStore, order: str
) -> None:
    """Else what began a moment before the window would be a hundred times what it was."""
    store, now = open_store(), int(server_time(client))
    began = {now: 147, now - 2 * 3600 - 900: 1}
    count_all(store, {'began{a="1"}': began, 'began{a="2"}': began, "old": began, "new": {now: 1}})
    count_all(store, {"old": {now - 9 * 3600: 100}})
    found = {row.name: row for row in rows(store, grouped=True, order=order).rows}
    assert {name: row.before for name, row in found.items()} == {"began": None, "new": 0, "old": 1}
    if order == "change":
        assert list(found) == ["old", "new", "began"]
    assert {row.before for row in rows(store, pattern="[bn]*", order=order).rows} == {None}


@pytest.mark.parametrize("total", [None, "1", "many"])
def test_a_list_compares_where_nobody_knows_when_a_counter_began(
    client: Any, open_store: OpenStore, total: str | None
) -> None:
    """Other programs count without grand totals, or beside them."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {"a": {now: 9, now - 3 * 3600: 3}})
    client.hdel(store.keys.total, "a")
    if total is not None:
        client.hset(store.keys.total, "a", total)
    for order in ("name", "change"):
        (row,) = rows(store, order=order).rows
        assert (row.count, row.before) == (9, 3)
    client.delete(store.keys.total)
    client.set(store.keys.total, "another program's")
    (row,) = rows(store).rows
    assert (row.count, row.before) == (9, 3)


def test_gauges_and_observed_values_have_lists_too(
    client: Any, open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """A gauge shows its newest sample, with gaps; observed values their mean."""
    now = server_time(client)
    with open_meter() as meter:
        meter.gauge("depth").set(17)
    put_observed(client, {'t{a="1"}': [(now, 1.0)] * 3, 't{a="2"}': [(now, 5.0)]})
    store = open_store()
    (gauge,) = rows(store, kind="gauge").rows
    assert (gauge.name, gauge.value, gauge.values[-1], gauge.values[0]) == ("depth", 17, 17, None)
    (observed,) = rows(store, kind="histogram", grouped=True).rows
    assert (observed.name, observed.series, observed.count, observed.value) == ("t", 2, 4, 2.0)


# --- One series ----------------------------------------------------------------------------


def test_a_counter_is_told_at_every_precision(
    client: Any, open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """With its grand total, and marks of the window."""
    store, now = open_store(), int(server_time(client))
    count_all(store, {"hits": {now: 3, now - 400: 4, now - 90_000: 5}})
    with open_meter() as meter:
        meter.mark("v2")
        meter.mark("v1", at=now - 50_000)
    found = read_detail(store, "hits", 60)
    sums = {curve.precision: sum(v or 0 for v in curve.values) for curve in found.curves}
    assert sums == {1: 3, 5: 7, 60: 7, 300: 7, 3600: 12, 18000: 12, 86400: 12}
    assert (found.kind, found.total) == ("counter", 12)
    assert [mark.label for mark in found.marks] == ["v2"]
    assert [mark.label for mark in read_detail(store, "hits", 3600).marks] == ["v1", "v2"]


def test_a_name_without_a_series_of_its_own_stands_for_its_label_sets(
    client: Any, open_store: OpenStore
) -> None:
    """Added up; its labels are broken down."""
    store, now = open_store(), int(server_time(client))
    count_all(
        store,
        {
            requests("/"): {now: 6},
            requests("/", "5xx"): {now: 2},
            requests("/a"): {now: 2},
        },
    )
    found = read_detail(store, "http_requests", 60)
    assert (found.kind, found.total) == ("counter", 10)
    assert [curve.values[-1] for curve in found.curves if curve.precision == 60] == [10]
    labels = {
        label.label: [(v.name, v.count, v.share) for v in label.values] for label in found.labels
    }
    assert labels["status"] == [("2xx", 8, 0.8), ("5xx", 2, 0.2)]
    assert labels["route"] == [("/", 8, 0.8), ("/a", 2, 0.2)]
    assert (found.sets[0].name, found.sets_of, found.sets_added) == (requests("/"), 3, 3)
    alone = read_detail(store, requests("/a"), 60)
    assert (alone.total, alone.sets_of, alone.sets_added) == (2, 3, 0)


def test_observed_values_are_summed_up(client: Any, open_store: OpenStore) -> None:
    """Over all label sets; percentiles over time at every precision of histograms."""
    now = server_time(client)
    values = [random.Random(2).lognormvariate(0, 1) for _ in range(200)]
    put_observed(
        client,
        {
            'took{a="1"}': [(now, v) for v in values[:120]],
            'took{a="2"}': [(now, v) for v in values[120:]],
        },
    )
    found = read_detail(open_store(), "took", 60)
    assert found.kind == "histogram"
    assert found.total is None
    assert found.summary is not None
    assert found.summary.count == 200
    assert near(found.summary.quantile(0.95), exact_quantile(values, 0.95))
    assert [curve.precision for curve in found.curves] == [5, 60, 3600]
    assert [part.count for part in found.sets] == [120, 80]


def test_a_gauge_is_told_at_every_precision(open_meter: OpenMeter, open_store: OpenStore) -> None:
    """Without a total."""
    meter = open_meter()
    meter.gauge("depth").set(4.5)
    found = read_detail(open_store(), "depth", 60)
    assert (found.kind, found.total, found.sets) == ("gauge", None, [])
    told = [[value for value in curve.values if value is not None] for curve in found.curves]
    assert told == [[4.5]] * len(DEFAULT_RETENTION)


def test_a_name_that_nobody_has_is_told_as_such(open_store: OpenStore) -> None:
    """Nothing is invented."""
    found = read_detail(open_store(), "nobody", 60)
    assert (found.kind, found.curves, found.summary, found.total) == ("", [], None, None)


def test_ten_thousand_other_counters_do_not_make_the_page_dearer(
    client: Any, open_store: OpenStore
) -> None:
    """What is read is bounded by what is looked at."""
    store, now = open_store(), int(server_time(client))
    pipe = client.pipeline(transaction=False)
    for n in range(10_000):
        pipe.zadd(store.keys.known, {f"60:zzz{n:05}": 0})
    pipe.execute()
    count_all(store, {"hits": {now: 1}})
    found = read_overview(store, 60)
    assert (found.counters.total, found.counters.examined) == (10_001, MAX_LISTED_SERIES)
