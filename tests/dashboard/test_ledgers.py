"""The page's answers against a ledger of the recorded events, at 10, 1,000 and 6,000 label sets."""

import random
import time
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import httpx
import pytest

from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.names import canonical
from support.asking import asking
from support.observed import exact_quantile, near
from support.servers import Server
from support.waiting import eventually

STATUSES, METHODS = ("2xx", "4xx", "5xx"), ("GET", "POST")


class Ledger(NamedTuple):
    """The recorded events."""

    #: Requests by route, failed requests by route, all by minute, durations by route.
    requests: Counter[str]
    failed: Counter[str]
    minutes: Counter[int]
    durations: dict[str, list[float]]


def recorded(url: str, sets: int, seed: int = 1) -> Ledger:
    """Record requests of so many label sets within the last hour."""
    rng, ledger = random.Random(seed), Ledger(Counter(), Counter(), Counter(), defaultdict(list))
    routes = -(-sets // 6)
    now, made = int(time.time()) // 60 * 60, 0
    with Meter(url, flush_interval=3600, max_label_sets=20_000, max_series=50_000) as meter:
        for number in range(routes):
            route, scale = f"/shop/{number:04}", rng.uniform(0.01, 0.2)
            for method in METHODS:
                for status in STATUSES:
                    if made == sets:
                        break
                    made += 1
                    labels = {"method": method, "route": route, "status": status}
                    for _ in range(2):
                        at, count = now - 60 * rng.randrange(1, 55), rng.randrange(1, 20)
                        meter.count("http_requests", count, labels=labels, at=at)
                        meter.count("hits", count, at=at)
                        failed = count if status == "5xx" else 0
                        meter.count("hits_failed", failed, at=at)
                        ledger.requests[route] += count
                        ledger.failed[route] += failed
                        ledger.minutes[at] += count
                        took = rng.lognormvariate(0, 0.5) * scale
                        timed = {"method": method, "route": route}
                        meter.observe("http_request_seconds", took, labels=timed, at=at)
                        ledger.durations[route].append(took)
        assert meter.flush(timeout=60)
    return ledger


def answer_of(client: httpx.Client, path: str, **parameters: Any) -> Any:
    """Ask the API."""
    answer = client.get(f"/api/{path}", params={"precision": 60, **parameters})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(
    params=[
        10,
        pytest.param(1_000, marks=pytest.mark.slow),
        pytest.param(6_000, marks=pytest.mark.nightly),
    ]
)
def sets(request: Any) -> int:
    """How many label sets there are."""
    number: int = request.param
    return number


def test_every_answer_is_that_of_the_ledger(server: Server, sets: int) -> None:
    """Lines, lists, percentiles, error rates, orders, and the slowest route."""
    ledger = recorded(server.url, sets)
    total, dashboard = ledger.requests.total(), Dashboard(server.url, access="open")
    slowest = max(ledger.durations, key=lambda r: exact_quantile(ledger.durations[r], 0.95))
    with asking(dashboard) as client:
        overview = answer_of(client, "overview", series="http_requests")
        (line,) = overview["chart"]
        counts = {line["start"] + 60 * at: n for at, n in enumerate(line["values"]) if n}
        assert counts == dict(ledger.minutes)
        assert (line["examined"], line["of"]) == (sets, sets)
        assert overview["routes"]["examined"] == overview["routes"]["of"] == sets
        assert overview["numbers"]["hits"]["count"] == total
        assert overview["numbers"]["errors"]["count"] == ledger.failed.total()
        figure = overview["numbers"]["slowest"]
        assert near(figure["value"], exact_quantile(ledger.durations[slowest], 0.95))
        detail = answer_of(client, "detail", name="http_requests")
        curves = {curve["precision"]: curve["values"] for curve in detail["precisions"]}
        assert {width: sum(values) for width, values in curves.items() if width >= 60} == {
            width: total for width in curves if width >= 60
        }
        assert detail["total"] == total
        labels = {row["label"]: row for row in detail["labels"]}
        assert sum(value["count"] for value in labels["status"]["values"]) == total
        for order in ("count", "p95", "failing", "total"):
            rows = answer_of(client, "routes", order=order, limit=50)["rows"]
            assert len(rows) == min(
                50, len(+ledger.failed if order == "failing" else ledger.requests)
            )
            if order == "p95":
                assert rows[0]["route"] == slowest
            for row in rows:
                route = row["route"]
                assert (row["count"], row["failed"]) == (
                    ledger.requests[route],
                    ledger.failed[route],
                )
                assert sum(filter(None, row["values"])) == row["count"]
                assert near(row["p95"], exact_quantile(ledger.durations[route], 0.95))
    dashboard.close()


def test_a_row_of_a_name_is_the_sum_of_all_its_label_sets(server: Server, sets: int) -> None:
    """In the list of metrics and the overview: its count and its curve; `/api/series` agrees.

    Above 1,000 series a ranking is made first, whose age the answers have.
    """
    ledger = recorded(server.url, sets)
    total, dashboard = ledger.requests.total(), Dashboard(server.url, access="open")
    with asking(dashboard) as client:

        def ranked(pattern: str) -> Any:
            def ask() -> Any:
                answer = answer_of(client, "metrics", grouped=1, order="count", pattern=pattern)
                return answer if answer["total"] <= 1_000 or answer["ranked_at"] else None

            return eventually(ask)["rows"]

        rows = {row["name"]: row for row in ranked("*")}
        row = rows["http_requests"]
        assert (row["count"], row["series"], row["complete"]) == (total, sets, True)
        assert sum(filter(None, row["values"])) == total
        assert rows["hits"]["count"] == total
        counts = Counter[int]()
        for status in STATUSES:  # a request reads at most 2,000 label sets
            name = f'http_requests{{status="{status}"}}'
            for part in answer_of(client, "series", name=name)["series"]:
                values = enumerate(part["values"])
                counts.update({part["start"] + 60 * at: n for at, n in values if n})
        assert counts == ledger.minutes
        matching = ranked('*route="/shop/0000"*')
        assert sum(each["count"] for each in matching) == ledger.requests["/shop/0000"]
        assert all("/shop/0000" in each["name"] for each in matching)
    dashboard.close()


def test_requests_beyond_the_limit_of_label_sets_have_their_error_rate(server: Server) -> None:
    """It is what the routes leave of all failed requests."""
    with Meter(server.url, flush_interval=3600, max_label_sets=4) as meter:
        for number in range(10):
            for status in ("2xx", "5xx"):
                labels = {"method": "GET", "route": f"/{number}", "status": status}
                count = 7 if status == "2xx" else 3
                meter.count("http_requests", count, labels=labels)
                meter.count("hits", count)
                meter.count("hits_failed", count if status == "5xx" else 0)
    dashboard = Dashboard(server.url, access="open")
    with asking(dashboard) as client:
        rows = {row["route"]: row for row in answer_of(client, "routes")["rows"]}
        assert (rows["(other)"]["count"], rows["(other)"]["failed"]) == (80, 24)
        assert rows["(other)"]["failing"] == pytest.approx(0.3)
    with Meter(server.url, sync=True) as meter:
        meter.count("hits", 50)  # others, which are no requests of a route
    again = Dashboard(server.url, access="open")
    with asking(again) as client:
        rows = {row["route"]: row for row in answer_of(client, "routes")["rows"]}
        assert (rows["(other)"]["failed"], rows["(other)"]["failing"]) == (None, None)
    dashboard.close()
    again.close()


def test_one_failure_of_one_request_ranks_below_many_of_more(server: Server) -> None:
    """By error rate: the rate that is at least there."""
    with Meter(server.url, sync=True) as meter:
        for route, ok, failed in (("/rare", 0, 1), ("/broken", 60, 40), ("/busy", 9_900, 100)):
            for status, count in (("2xx", ok), ("5xx", failed)):
                labels = {"method": "GET", "route": route, "status": status}
                meter.count("http_requests", count, labels=labels)
    dashboard = Dashboard(server.url, access="open")
    with asking(dashboard) as client:
        rows = answer_of(client, "routes", order="failing")["rows"]
    dashboard.close()
    assert [row["route"] for row in rows] == ["/broken", "/rare", "/busy"]


def test_a_long_route_has_one_label_in_every_series() -> None:
    """So its statements are found by it."""
    route, statement = "/" + "a" * 102, "SELECT " + "b" * 80
    alone = canonical("http_requests", {"route": route})
    assert canonical("db_queries", {"route": route, "statement": statement})
    assert route in alone
