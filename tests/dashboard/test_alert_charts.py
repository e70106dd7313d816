"""The chart of an alert: what its rule compares with its limit, as the evaluator does."""

import time
from typing import Any

import pytest

from redmeter import Meter
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.rules_file import parse_rules
from redmeter.dashboard import Dashboard
from support.alerts import QUEUE
from support.asking import asking
from support.servers import Server
from support.stores import opened_store

RULES = (
    QUEUE
    + """
[[alert]]
name = "failing"
when = "ratio"
metric = 'http_requests{status="5xx"}'
of = "http_requests"
by = "route"
above = 0.2
window = "2m"
at_least = 1
[[alert]]
name = "errors"
when = "new_exception"
"""
)


def test_a_chart_draws_the_expression_the_limit_and_the_changes_of_its_alert(
    server: Server,
) -> None:
    """One value of the label, or those with the largest values."""
    now = int(time.time()) // 60 * 60
    shares = {"/a": [(10, 0), (10, 5)], "/b": [(10, 0), (10, 1)]}
    with Meter(server.url, sync=True) as meter:
        for route, minutes in shares.items():
            for at, (count, failed) in zip((now - 120, now - 60), minutes, strict=True):
                for status, number in (("2xx", count - failed), ("5xx", failed)):
                    labels = {"route": route, "status": status}
                    meter.count("http_requests", number, labels=labels, at=at)
    with opened_store(server.url) as store:
        Evaluator(store, parse_rules(RULES)).cycle()
    dashboard = Dashboard(server.url, access="open")
    with asking(dashboard) as client:

        def chart(name: str) -> Any:
            answer = client.get("/api/alert", params={"name": name, "precision": 60})
            assert answer.status_code == 200, answer.text
            return answer.json()

        one, all_of_them = chart('failing{route="/a"}'), chart("failing")
        nothing, other, queue = chart("none"), chart("errors"), chart("queue")
    dashboard.close()
    (line,) = one["lines"]
    assert line["label_value"] == "/a"
    at = (now - 60 - one["window"]["start"]) // 60
    assert line["values"][at] == pytest.approx(5 / 20)
    assert (one["rule"]["limit"], one["rule"]["unit"]) == (0.2, "ratio")
    assert [(each["name"], each["status"]) for each in one["transitions"]] == [
        ('failing{route="/a"}', "firing")
    ]
    drawn = [(each["label_value"], each["values"][at]) for each in all_of_them["lines"]]
    assert drawn == [("/a", pytest.approx(0.25)), ("/b", pytest.approx(0.05))]
    assert (nothing["rule"], nothing["lines"]) == (None, [])
    assert (other["rule"]["when"], other["rule"]["expression"]) == ("new_exception", "")
    assert queue["rule"]["limit"] == 100
