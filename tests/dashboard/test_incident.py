"""An incident with several causes at once: all figures and names on the page are true.

Two hours of a shop: a spike of visitors, which has nothing to do with the deploy soon after it; the
deploy, since which a small route fails and another one is slow; a task that fails; and exceptions
of a dependency. Each figure is counted again from a ledger of the recorded events.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from redmeter import Meter
from support.observed import exact_quantile, near
from support.servers import Server

ROUTES = {"/": 100, "/search": 40, "/cart": 30, "/login": 20, "/checkout": 10}
#: Minutes ago: of the spike, of the deploy, since when the task fails, and of the first event.
SPIKE, DEPLOY, TASK, FIRST = range(24, 30), 15, 12, 110
SLOW, FAILING = "/search", "/checkout"


@dataclass(frozen=True)
class Incident:
    """The recorded events: minute, route or task -> events, failures, response times."""

    client: httpx.Client
    start: int
    events: Counter[tuple[int, str]]
    failures: Counter[tuple[int, str]]
    took: dict[tuple[int, str], list[float]]

    def ask(self, path: str, **parameters: Any) -> Any:
        answer = self.client.get(f"api/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def count(self, of: Counter[tuple[int, str]], since: float, until: float, *names: str) -> int:
        return sum(n for (at, name), n in of.items() if since <= at < until and name in names)

    def values(self, since: float, until: float) -> list[float]:
        return [x for (at, _), some in self.took.items() if since <= at < until for x in some]


@pytest.fixture
def incident(server: Server, client: httpx.Client) -> Incident:
    """The shop, as it is now."""
    start = int(time.time()) // 60 * 60
    shop = Incident(client, start, Counter(), Counter(), {})
    draw = random.Random(43)
    with Meter(server.url) as meter:
        for ago in range(FIRST, -1, -1):
            at = start - 60 * ago
            for route, usual in ROUTES.items():
                events = usual * (3 if ago in SPIKE else 1)
                share = 0.5 if route == FAILING and ago <= DEPLOY else 0.01
                failures = sum(draw.random() < share for _ in range(events))
                slow = 8 if route == SLOW and ago <= DEPLOY else 1
                times = [draw.lognormvariate(-3, 0.5) * slow for _ in range(events)]
                shop.events[at, route] = events
                shop.failures[at, route] = failures
                shop.took[at, route] = times
                labels = {"method": "GET", "route": route}
                for status, number in (("2xx", events - failures), ("5xx", failures)):
                    if number:
                        meter.count("http_requests", number, labels=labels | {"status": status},
                                    at=at)  # fmt: skip
                meter.count("hits", events, at=at)
                if failures:
                    meter.count("hits_failed", failures, at=at)
                for took in times:
                    meter.observe("http_request_seconds", took, labels=labels, at=at)
                    meter.observe("hits_seconds", took, at=at)
            failed = 6 if ago <= TASK else 0
            shop.events[at, "mail"], shop.failures[at, "mail"] = 10, failed
            for state, number in (("success", 10 - failed), ("failure", failed)):
                if number:
                    meter.count("task_runs", number, labels={"task": "mail", "state": state}, at=at)
        meter.mark("shop 2.4", at=start - 60 * DEPLOY)
        meter.record_exception(ConnectionError("payments refused"), route=FAILING)
        meter.flush()
    return shop


def recent(now: float) -> list[tuple[int, int]]:
    """Return the five minutes that an answer of some seconds' age may be of."""
    return [(end - 300, end) for end in {int(now - ago) // 60 * 60 for ago in (0, 4)}]


def test_the_status_blames_what_changed_with_its_own_figures(incident: Incident) -> None:
    """The routes and the task, the deploy and the exception, each a noun with a page."""
    status = incident.ask("status")
    assert status["state"] == "unusual"
    groups = {(part["label"], part["value"]) for part in status["parts"] if part["kind"] == "group"}
    assert groups == {("route", FAILING), ("route", SLOW), ("task", "mail")}
    kinds = {part["kind"]: part for part in status["parts"]}
    assert kinds["mark"]["text"] == "shop 2.4"
    (group,) = incident.ask("exceptions")["groups"]
    assert (kinds["exception"]["text"], kinds["exception"]["name"]) == (group["type"], group["id"])
    rates = {"error rate", "failures"}
    judged = 0
    for check in status["checks"]:
        names = list(check["labels"].values()) or [*ROUTES]
        since, until = check["since"] or status["since"], status["until"]
        if check["state"] == "high" and check["measure"] in rates:
            of = incident.count(incident.events, since, until, *names)
            failed = incident.count(incident.failures, since, until, *names)
            assert check["value"] == pytest.approx(failed / of), check
            judged += 1
    assert judged >= 2


def test_figures_of_now_are_of_the_last_five_minutes(incident: Incident) -> None:
    """Next to those of the range, which are diluted by the time before."""
    answer = incident.ask("overview")
    numbers, window = answer["numbers"], answer["window"]

    def fits(check: Callable[[int, int], bool]) -> bool:
        return any(check(*five) for five in recent(answer["now"]))

    def requests(since: float, until: float) -> int:
        return incident.count(incident.events, since, until, *ROUTES)

    def failures(since: float, until: float) -> int:
        return incident.count(incident.failures, since, until, *ROUTES)

    hits, errors, p95 = numbers["hits"], numbers["errors"], numbers["p95"]
    assert fits(lambda *five: abs(hits["recent"] * 300 - requests(*five)) < 0.01)
    assert fits(lambda *five: abs(errors["recent"] - failures(*five) / requests(*five)) < 1e-9)
    assert fits(lambda *five: near(p95["recent"], exact_quantile(incident.values(*five), 0.95)))
    assert hits["count"] == requests(window["start"], window["end"])
    assert p95["recent"] > p95["value"]
    (since, until), *_ = recent(answer["now"])
    (mail,) = incident.ask("jobs", precision=60, since=since, until=until)["rows"]
    assert (mail["count"], mail["failing"]) == (50, pytest.approx(0.6))


def test_a_range_that_is_dragged_over_the_spike_is_of_the_spike(incident: Incident) -> None:
    """Whole minutes, the same in all panels; the deploy after it is not blamed."""
    since = incident.start - 60 * SPIKE[-1] + 13
    until = incident.start - 60 * SPIKE[0] + 31
    answer = incident.ask("overview", since=since, until=until)
    start, end = answer["window"]["start"], answer["window"]["end"]
    assert (start, end) == (since - 13, until + 29)
    rows = {row["route"]: row for row in answer["routes"]["rows"]}
    for route in ROUTES:
        of = incident.count(incident.events, start, end, route)
        failed = incident.count(incident.failures, start, end, route)
        assert (rows[route]["count"], rows[route]["failed"]) == (of, failed)
    assert answer["numbers"]["hits"]["count"] == sum(row["count"] for row in rows.values())
    assert answer["numbers"]["hits"]["recent"] is None
    answers = {
        measure: incident.ask("explain", name=name, since=start, until=end, **more)
        for measure, name, more in (
            ("count", "hits", {}),
            ("error rate", "http_requests", {"failing": "status=5xx"}),
            ("p95", "hits_seconds", {}),
        )
    }
    assert [measure for measure, each in answers.items() if each["changed"]] == ["count"]
    assert answers["count"]["after"] == answer["numbers"]["hits"]["count"]
    assert answers["count"]["even"]
    assert not answers["count"]["causes"]


def test_in_a_quiet_range_nothing_stands_out(incident: Incident) -> None:
    """By any measure, in spite of the incident of now."""
    window = {"since": incident.start - 60 * 50, "until": incident.start - 60 * 40}
    for name, more in (("hits", {}), ("http_requests", {"failing": "status=5xx"})):
        answer = incident.ask("explain", name=name, **window, **more)
        assert (answer["state"], answer["changed"], answer["uneven"]) == ("compared", False, False)
    answer = incident.ask("overview", **window)
    assert answer["numbers"]["hits"]["count"] == answer["numbers"]["hits"]["count_before"] == 2_000
