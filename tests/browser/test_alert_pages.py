"""Alerts on the page: the view, the link in the status line, and what is missing without one."""

import re
import time

import pytest
from playwright.sync_api import expect

from browser.conftest import Homes, Open, Site, check_rules, ready, serve
from browser.test_diagnoses import check_accessible
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.notifiers import NotDelivered
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.store import AlertStore, Silence
from support.stores import opened_store

HOSTILE = '<img src=x onerror=window.hacked=1>"\u202e[*]'
RULES = """
[[alert]]
name = "queue"
when = "threshold"
metric = "queue_length"
value = "last"
by = "shop"
above = 100
window = "1m"
severity = "page"
notify = ["ops"]
[[alert]]
name = "<b>slow</b>"
when = "threshold"
metric = "wait_seconds"
value = "p95"
above = 1.5
for = "1h"
[[alert]]
name = "deploys"
when = "verdict"
[[maintenance]]
alerts = ["<b>*"]
from = "00:00"
to = "23:59"
[notify.ops]
type = "command"
command = ["true"]
"""


def refuse(*_: object) -> tuple[()]:
    """Fail, as a receiver that is down."""
    raise NotDelivered(f"HTTP status 503 {HOSTILE}")


@pytest.fixture(scope="module")
def alerting(homes: Homes) -> Site:
    """A store with an alert that fires, one that is pending, and a silence; nobody evaluates."""
    site = serve(homes("alerting"))
    with site.meter() as meter, opened_store(f"embedded://{site.home.data}") as store:
        for shop, length in ((HOSTILE, 500), ("rome", 3)):
            meter.gauge("queue_length", labels={"shop": shop}).set(length, at=time.time() - 15)
        meter.observe("wait_seconds", 2.0, at=time.time() - 120)
        alerts = AlertStore(store)
        alerts.silence(Silence("5117", "queue*", time.time() + 3600, HOSTILE))
        evaluator = Evaluator(store, parse_rules(RULES), deliver=refuse)
        evaluator.cycle()
        alerts.unsilence("5117")
        evaluator.cycle()
        alerts.silence(Silence("5117", "queue*", time.time() + 3600, HOSTILE))
        evaluator.run(lambda _: True)
    return site


def test_alerts_are_found_from_the_status_line(open_page: Open, alerting: Site) -> None:
    """What fires first, with its value against the limit; all texts are inert."""
    page = ready(open_page("?range=60", of=alerting))
    status = page.get_by_role("region", name="Status")
    status.get_by_role("link", name=re.compile("1 alert firing|Alert .* fires")).click()
    expect(page.get_by_role("heading", name="Alerts", level=1)).to_be_visible()
    rules = page.get_by_role("region", name="Rules")
    expect(rules).to_contain_text("1 firing, 1 pending, 2 ok")
    queue = rules.locator(".alerts > li").first
    expect(queue).to_contain_text("Fires if last of queue_length over 1 min is above 100, by shop.")
    expect(queue.locator(".alert")).to_contain_text(
        re.compile(r"firing for \d+ s: last of queue_length .* is 500")
    )
    expect(queue).to_contain_text("silenced")
    expect(queue).to_contain_text("1 value of shop ok")
    slow = rules.locator(".alerts > li").nth(1)
    expect(slow).to_contain_text("maintenance")
    expect(slow).to_contain_text(re.compile(r"pending for \d+ s: p95 of wait_seconds"))
    expect(page.get_by_text("No evaluator is running.")).to_be_visible()
    expect(page.get_by_text(re.compile("redmeter alerts run --file alerts.toml"))).to_be_visible()
    notifications = page.get_by_role("region", name="Notifications")
    expect(notifications).to_contain_text("HTTP status 503")
    expect(notifications).to_contain_text("redmeter alerts unsilence 5117")
    expect(page.get_by_role("region", name="Latest changes")).to_contain_text("firing")


#: Elements that one clicks and that are less than 24 px high or wide, apart from links in text.
SMALL = """() => [...document.querySelectorAll("button, summary, input, a, select")]
  .filter(one => one.checkVisibility() && getComputedStyle(one).display !== "inline")
  .map(one => [one.outerHTML.slice(0, 120), (one.closest("label") ?? one).getBoundingClientRect()])
  .filter(([_, box]) => box.width > 1 && (box.width < 23.9 || box.height < 23.9))
  .map(([text, box]) => [text, box.width, box.height])"""


@pytest.mark.parametrize(
    "query",
    ["?range=60", "?view=alerts", "?view=series&name=queue_length", "?view=alert&name=queue"],
)
def test_while_an_alert_fires_all_rules_of_axe_hold(
    open_page: Open, alerting: Site, query: str
) -> None:
    """In both themes; what one clicks is large enough."""
    page = ready(open_page(query, of=alerting))
    expect(page.get_by_role("link", name=re.compile("1 firing"))).to_be_visible()
    check_rules(page)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SMALL) == []
    dot = page.get_by_role("navigation").locator(".dot.fail").bounding_box()
    assert dot is not None
    assert 0 <= dot["x"] < 390, "visible without scrolling"


def test_an_alert_is_silenced_and_looked_at_by_keyboard(open_page: Open, alerting: Site) -> None:
    """The command covers this alert alone; its chart shows the time at which it fired."""
    page = ready(open_page("?view=alerts", of=alerting))
    queue = page.get_by_role("region", name="Rules").locator(".alerts > li").first
    queue.locator("summary").focus()
    page.keyboard.press("Enter")
    command = queue.locator(".code code").first
    expect(command).to_contain_text("redmeter alerts silence 'queue{shop=")
    expect(command).to_contain_text("[[][*]]")
    expect(queue).to_contain_text("sum by (shop) (last_over_time(queue_length[1m])) > 100")
    check_accessible(page)
    queue.get_by_role("link", name=re.compile("^Chart of queue")).focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"view=alert&name=queue.*since=\d+&until=\d+"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("queue")
    chart = page.get_by_role("region", name="Value and limit", exact=True)
    expect(chart).to_contain_text("limit 100")
    expect(chart).to_contain_text("sum by (shop) (last_over_time(queue_length[1m]))")
    check_accessible(page)


def test_without_rules_the_view_tells_how_to_begin(open_page: Open, site: Site) -> None:
    """And no link leads to it."""
    page = ready(open_page("?view=health", of=site))
    expect(page.get_by_role("link", name="Alerts", exact=True)).to_have_count(0)
    page.goto(f"{site.url}?view=alerts")
    expect(page.get_by_text("No alert rules")).to_be_visible()
