"""Statements and tasks within a window: figures of all label sets, and who sends what."""

from typing import Any

import pytest

from redmeter import Meter
from redmeter.names import canonical
from redmeter.reading.page.views import read_views
from redmeter.reading.page.workloads import MAX_WORKLOAD_ROWS, Caller, read_statements, read_tasks
from redmeter.reading.windows import Frame
from redmeter.store import Store
from redmeter.stored.keys import slice_start
from support.observed import exact_quantile, near, put_observed
from support.stores import OpenMeter, OpenStore, count_all, exchanges, server_time


def took(statement: str) -> str:
    """Return the stored name of a statement's durations."""
    return canonical("db_query_seconds", {"statement": statement})


@pytest.fixture
def meter(open_meter: OpenMeter) -> Meter:
    """A meter that recorded three statements, two callers and two tasks."""
    meter = open_meter()
    for seconds in (0.1, 0.2, 0.9):
        meter.observe("db_query_seconds", seconds, labels={"statement": "SELECT orders"})
    for _ in range(4):
        meter.observe("db_query_seconds", 0.01, labels={"statement": "SELECT users"})
    meter.observe("db_query_seconds", 0.05, labels={"statement": "COMMIT"})
    meter.count("db_queries", 2, labels={"route": "/cart", "statement": "SELECT orders"})
    meter.count("db_queries", 1, labels={"task": "shop.send", "statement": "SELECT orders"})
    meter.count("db_queries", 4, labels={"route": "/", "statement": "SELECT users"})
    meter.count("db_errors", 2, labels={"statement": "SELECT users", "error": "TimeoutError"})
    for state, count in (("success", 6), ("failure", 2), ("retry", 1)):
        meter.count("task_runs", count, labels={"task": "shop.send", "state": state})
    meter.count("task_runs", labels={"task": "shop.lost", "state": "revoked"})
    for seconds in (1.0, 3.0):
        meter.observe("task_seconds", seconds, labels={"task": "shop.send"})
    meter.observe("task_queue_seconds", 0.5, labels={"task": "shop.send"})
    return meter


def test_statements_have_their_time_their_failures_and_their_callers(
    meter: Meter, open_store: OpenStore
) -> None:
    """Those with most time first; shares are of the time of all statements."""
    _, found = read_statements(open_store(), 60)
    assert [row.statement for row in found.rows] == ["SELECT orders", "COMMIT", "SELECT users"]
    orders, commit, users = found.rows
    assert (found.count, found.found, found.examined, found.of) == (8, 3, 7, 7)
    assert found.total == pytest.approx(1.29)
    assert orders.series == took("SELECT orders")
    assert (orders.count, orders.errors, users.errors) == (3, 0, 2)
    assert orders.total == pytest.approx(1.2)
    assert orders.mean == pytest.approx(0.4)
    assert orders.share == pytest.approx(1.2 / 1.29)
    assert near(orders.p95, exact_quantile([0.1, 0.2, 0.9], 0.95))
    assert orders.callers == [
        Caller(kind="route", name="/cart", count=2),
        Caller(kind="task", name="shop.send", count=1),
    ]
    assert (commit.callers, commit.callers_of, users.callers_of) == ([], 0, 1)
    assert sum(value or 0 for value in orders.values) == 3


def test_statements_are_ordered_filtered_and_paged(meter: Meter, open_store: OpenStore) -> None:
    """By a caller there are only those that it sends."""
    store = open_store()

    def names(**options: Any) -> list[str]:
        return [row.statement for row in read_statements(store, 60, **options)[1].rows]

    assert names(order="count") == ["SELECT users", "SELECT orders", "COMMIT"]
    assert names(order="p95") == ["SELECT orders", "COMMIT", "SELECT users"]
    assert names(order="errors") == ["SELECT users"]
    assert names(containing="SELECT") == ["SELECT orders", "SELECT users"]
    assert names(caller="shop.send") == ["SELECT orders"]
    assert names(caller="/nowhere") == []
    assert names(limit=1, offset=1) == ["COMMIT"]


def test_tasks_have_their_outcomes_and_their_waits(meter: Meter, open_store: OpenStore) -> None:
    """A task without a duration, e.g. a revoked one, is listed with its outcome."""
    _, found = read_tasks(open_store(), 60)
    send, lost = found.rows
    assert (send.task, lost.task) == ("shop.send", "shop.lost")
    outcomes = [(one.state, one.count, one.failed) for one in send.outcomes]
    assert outcomes == [("success", 6, False), ("failure", 2, True), ("retry", 1, False)]
    assert (send.count, send.failed, send.mean) == (9, 2, 2.0)
    assert send.failing == pytest.approx(2 / 9)
    assert send.total == pytest.approx(4.0)
    assert send.wait == pytest.approx(0.5)
    assert (lost.count, lost.total, lost.p95, lost.wait, lost.series) == (1, None, None, None, "")
    assert (found.count, found.failed, found.found) == (10, 2, 2)
    _, failing = read_tasks(open_store(), 60, order="failing")
    assert [row.task for row in failing.rows] == ["shop.send"]


def test_a_window_in_the_past_has_its_own_statements(client: Any, open_store: OpenStore) -> None:
    """And compares with the window before, if that is kept."""
    store = open_store()
    now = server_time(client)
    start = slice_start(now, 60) - 1_800
    put_observed(
        client,
        {
            took("SELECT a"): [(start + 30.0, 1.0), (start + 90.0, 2.0), (start - 30.0, 4.0)],
            took("SELECT b"): [(start + 900.0, 8.0)],
        },
    )
    frame = Frame(start, start + 120, None, now)
    _, found = read_statements(store, 60, frame=frame)
    assert [(row.statement, row.count, row.before) for row in found.rows] == [("SELECT a", 2, 1)]
    assert found.total == pytest.approx(3.0)
    assert (found.window.start, found.window.end) == (start, start + 120)


def test_a_page_of_many_statements_takes_two_round_trips(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Percentiles are known of each row that is shown."""
    store = open_store()
    now = server_time(client)
    put_observed(client, {took(f"SELECT t{n}"): [(now - 60, 0.01 * n)] for n in range(1, 81)})
    read_statements(store, 60)
    with exchanges(monkeypatch) as seen:
        _, found = read_statements(store, 60, offset=20)
    assert len(seen) == 2
    assert (len(found.rows), found.found) == (MAX_WORKLOAD_ROWS, 80)
    assert all(row.p95 is not None for row in found.rows)


def test_views_are_those_that_have_data(open_store: OpenStore, open_meter: OpenMeter) -> None:
    """In one round trip."""
    store: Store = open_store()
    found = read_views(store)[1]
    assert (found.database, found.jobs, found.exceptions) == (False, False, False)
    meter = open_meter()
    meter.observe("db_query_seconds", 0.1, labels={"statement": "COMMIT"})
    assert read_views(store)[1].database
    meter.count("task_runs", labels={"task": "send", "state": "success"})
    meter.record_exception(ValueError("no"))
    found = read_views(store)[1]
    assert (found.database, found.jobs, found.exceptions) == (True, True, True)


def test_counters_alone_are_tasks(client: Any, open_store: OpenStore) -> None:
    """As of a queue whose runs are counted and not timed."""
    store = open_store()
    minute = slice_start(server_time(client), 60)
    runs = canonical("task_runs", {"task": "mail", "state": "success"})
    count_all(store, {runs: {minute: 3}})
    _, found = read_tasks(store, 60)
    assert [(row.task, row.count, row.total) for row in found.rows] == [("mail", 3, None)]


def test_very_many_label_sets_are_all_read(open_meter: OpenMeter, open_store: OpenStore) -> None:
    """Each statement of many routes has all its callers, and each of many tasks all its runs."""
    meter, routes = open_meter(max_label_sets=5_000), 1_300
    for number in range(routes):
        labels = {"statement": "SELECT a", "route": f"/r/{number:04}"}
        meter.count("db_queries", 2, labels=labels)
        meter.count("task_runs", labels={"task": f"t{number:04}", "state": "failure"})
        meter.observe("task_seconds", 0.1, labels={"task": f"t{number:04}"})
    meter.observe("db_query_seconds", 0.2, labels={"statement": "SELECT a"})
    meter.flush()
    _, statements = read_statements(open_store(), 60)
    assert (statements.rows[0].callers_of, statements.examined) == (routes, statements.of)
    _, tasks = read_tasks(open_store(), 60, limit=10)
    assert (tasks.found, tasks.count, tasks.failed) == (routes, routes, routes)
    assert (tasks.examined, tasks.of) == (2 * routes, 2 * routes)
