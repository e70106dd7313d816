"""What an operator asks: each answer is at most two clicks from the overview, and true."""

import re
import time

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Homes, Open, Site, ready, serve
from redmeter import Meter
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.rules_file import parse_rules
from support.alerts import QUEUE
from support.stores import opened_store

HOUR, WEEK = 3_600, 7 * 86_400


@pytest.fixture(scope="module")
def busy(homes: Homes) -> Site:
    """A store with twice the sign-ups of a week ago, one slow statement, a failing task."""
    site, now = serve(homes("busy")), time.time()
    with Meter(f"embedded://{site.home.data}") as meter:
        for hours in range(1, 9 * 24):
            count = 20 if hours <= 24 else 10
            meter.count("signups", count, at=now - hours * HOUR)
        for statement, took in (("SELECT orders", 0.9), ("SELECT users", 0.01)):
            meter.observe("db_query_seconds", took, labels={"statement": statement})
            meter.count("db_queries", labels={"task": "shop.send", "statement": statement})
        for state, runs in (("success", 6), ("failure", 2)):
            meter.count("task_runs", runs, labels={"task": "shop.send", "state": state})
        meter.observe("task_seconds", 0.3, labels={"task": "shop.send"})
        meter.log("shop", "payment %s refused", 17, severity="error")
        meter.gauge("queue_length").set(500)
    with opened_store(f"embedded://{site.home.data}") as store:
        Evaluator(store, parse_rules(QUEUE)).cycle()
    return site


@pytest.fixture
def overview(open_page: Open, busy: Site) -> Page:
    """The overview of two hours."""
    return ready(open_page("?range=60", of=busy))


def test_is_there_a_new_message(overview: Page) -> None:
    """Without a click."""
    panel = overview.get_by_role("region", name="Messages", exact=True)
    row = panel.get_by_role("listitem").filter(has_text="payment %s refused")
    expect(row).to_contain_text("new")


def test_how_many_signed_up_compared_with_last_week(overview: Page) -> None:
    """A range, and a comparison."""
    ranges = overview.get_by_role("group", name="Range")
    ranges.get_by_role("button", name=re.compile("^24 h")).click()
    overview.get_by_label("Compare with").select_option(label="last week")
    row = overview.get_by_role("row").filter(has_text="signups").last
    expect(row).to_contain_text(re.compile(r"\+(9\d|10\d) %"))


def test_what_do_the_next_hours_bring(overview: Page) -> None:
    """A metric, whose expected range goes on beyond now, and the hours."""
    overview.get_by_role("link", name="signups").last.click()
    overview.get_by_role("group", name="Range").get_by_role("button", name="10 d").click()
    chart = overview.get_by_role("region", name="Values", exact=True)
    expect(chart.get_by_role("checkbox", name="expected range", exact=True)).to_be_checked()


def test_which_sql_costs_most_and_who_sends_it(overview: Page) -> None:
    """One click."""
    overview.get_by_role("link", name="Database", exact=True).click()
    first = overview.get_by_role("region", name="Table: Statements").get_by_role("row").nth(1)
    expect(first).to_contain_text("SELECT orders")
    expect(first).to_contain_text("shop.send 1")
    expect(first).to_contain_text("99 %")


def test_which_job_fails(overview: Page) -> None:
    """One click."""
    overview.get_by_role("link", name="Jobs", exact=True).click()
    row = overview.get_by_role("region", name="Table: Tasks").get_by_role("row").nth(1)
    expect(row).to_contain_text("failure 2")
    expect(row).to_contain_text("25 %")


def test_what_did_the_alert_see(overview: Page) -> None:
    """The alerts, and the chart of one: its value and its limit on one axis."""
    overview.get_by_role("link", name=re.compile("^Alerts")).click()
    overview.get_by_role("link", name=re.compile("^Chart")).first.click()
    chart = overview.get_by_role("region", name="Value and limit", exact=True)
    expect(chart.locator("figure")).to_have_count(1)
    legend = chart.get_by_role("region", name="Legend of Value and limit")
    expect(legend.get_by_role("row").filter(has_text="queue")).to_contain_text("500")
    expect(legend.get_by_role("row").filter(has_text="limit 100")).to_have_count(1)


def test_the_values_are_exported(overview: Page, busy: Site) -> None:
    """Share, and the values as CSV: those of the store."""
    overview.locator("summary", has_text="Share").click()
    with overview.expect_download() as download:
        overview.get_by_role("button", name="Values as CSV").click()
    head, *rows = download.value.path().read_text().splitlines()
    at = head.split(",").index("signups")
    with busy.meter() as meter:
        counted = sum(sample.value for sample in meter.series("signups", precision=60))
    assert sum(float(row.split(",")[at] or 0) for row in rows) == counted
