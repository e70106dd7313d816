"""Ranges against a ledger: each number of the page is the ledger's sum over the range in its title.

At 10, 1,000 and 6,000 label sets; ranges on edges of intervals, off them, of all precisions, up to
now and in the past; lines, tables, tiles and comparisons. The CSV file of the page has the line.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from redmeter import Meter
from redmeter.dashboard import Dashboard
from support.asking import ask, asking
from support.observed import exact_quantile, near
from support.servers import Server

#: How long ago events come, seconds: kept by 1 min, by 5 min, and by 1 h.
AGES = (range(60, 7_000, 60), range(10_000, 34_000, 60), range(40_000, 300_000, 3_600))
#: Ranges: how long ago they begin, their length, and an offset of both ends, seconds.
RANGES = {
    "minutes": (3_600, 1_200, 0, 0),
    "minutes, dragged": (3_600, 1_200, 13, 31),
    "up to now, dragged": (1_800, 1_790, 7, 0),
    "less than an interval": (3_000, 20, 17, 17),
    "longer than minutes are kept": (6_600, 3_000, 13, 31),
    "ten minutes, by 5 min": (18_000, 600, 0, 0),
    "ten minutes, by 5 min, dragged": (18_000, 600, 101, 47),
    "hours, by 5 min, dragged": (30_000, 9_000, 13, 59),
    "hours, by 1 h, dragged": (200_000, 20_000, 1_234, 321),
}


class Ledger(NamedTuple):
    """The recorded events: second and route -> requests, failed ones, and durations."""

    now: int
    requests: Counter[tuple[int, str]]
    failed: Counter[tuple[int, str]]
    took: dict[tuple[int, str], list[float]]

    def total(self, of: Counter[tuple[int, str]], since: int, until: int, route: str = "") -> int:
        return sum(n for (at, r), n in of.items() if since <= at < until and route in ("", r))

    def p95(self, since: int, until: int, route: str = "") -> float | None:
        values = [
            value
            for (at, r), some in self.took.items()
            if since <= at < until and route in ("", r)
            for value in some
        ]
        return exact_quantile(values, 0.95) if values else None


def recorded(url: str, sets: int) -> Ledger:
    """Record requests of so many label sets at all ages."""
    draw, now = random.Random(sets), int(time.time()) // 60 * 60
    ledger = Ledger(now, Counter(), Counter(), defaultdict(list))
    with Meter(url, flush_interval=3600, max_label_sets=20_000, max_series=50_000) as meter:
        for number in range(sets):
            route, status = f"/shop/{number // 2:04}", ("2xx", "5xx")[number % 2]
            labels = {"method": "GET", "route": route}
            for ages in AGES:
                for _ in range(max(1, 200 // sets)):
                    at, count = now - draw.choice(ages), draw.randrange(1, 20)
                    failed = count if status == "5xx" else 0
                    meter.count("http_requests", count, labels=labels | {"status": status}, at=at)
                    meter.count("hits", count, at=at)
                    meter.count("hits_failed", failed, at=at)
                    took = draw.lognormvariate(-3, 0.7)
                    meter.observe("http_request_seconds", took, labels=labels, at=at)
                    meter.observe("hits_seconds", took, at=at)
                    ledger.requests[at, route] += count
                    ledger.failed[at, route] += failed
                    ledger.took[at, route].append(took)
        assert meter.flush(timeout=60)
    return ledger


@pytest.fixture(
    scope="module",
    params=[
        10,
        pytest.param(1_000, marks=pytest.mark.slow),
        pytest.param(6_000, marks=pytest.mark.nightly),
    ],
)
def world(request: pytest.FixtureRequest) -> Iterator[tuple[Ledger, httpx.Client]]:
    """A ledger, and a client of the page of its store."""
    with Server() as server:
        ledger = recorded(server.url, request.param)
        dashboard = Dashboard(server.url, access="open")
        with asking(dashboard) as client:
            yield ledger, client
        dashboard.close()


def line(curve: Any, window: Any) -> float:
    """Return the sum of a line within the range: what the legend has, and the CSV file."""
    width = curve["precision"]
    assert width == window["precision"]
    return sum(
        value or 0
        for at, value in enumerate(curve["values"])
        if window["start"] <= curve["start"] + width * at < window["end"]
    )


@pytest.mark.parametrize("title", RANGES)
def test_every_number_is_the_ledgers_sum_over_the_range(
    world: tuple[Ledger, httpx.Client], title: str
) -> None:
    """The range is that of whole intervals around the requested one."""
    ledger, client = world
    ago, length, early, late = RANGES[title]
    since, until = ledger.now - ago + early, ledger.now - ago + length + late
    request = {"precision": 60, "since": since, "until": until}
    overview = ask(client, "overview", **request)
    window = overview["window"]
    start, end = window["start"], window["end"]
    assert start <= since < until <= end
    assert start % window["precision"] == end % window["precision"] == 0
    assert start > since - window["precision"]
    assert end < until + window["precision"]

    requests = ledger.total(ledger.requests, start, end)
    failed = ledger.total(ledger.failed, start, end)
    numbers = overview["numbers"]
    assert (numbers["hits"]["count"], numbers["errors"]["count"]) == (requests, failed)
    if requests:
        assert numbers["errors"]["value"] == pytest.approx(failed / requests)
    lines = {curve["name"]: curve for curve in overview["chart"]}
    assert line(lines["hits"], window) == requests
    assert line(lines["hits_failed"], window) == failed
    named = ask(client, "overview", series="http_requests", **request)["chart"]
    assert line(named[0], window) == requests

    routes = ask(client, "routes", **request, limit=200)
    assert routes["window"] == window
    for row in (*overview["routes"]["rows"], *routes["rows"]):
        route = row["route"]
        assert row["count"] == ledger.total(ledger.requests, start, end, route)
        assert row["failed"] == ledger.total(ledger.failed, start, end, route)
    metrics = ask(client, "metrics", **request)
    assert metrics["window"] == window
    rows = {row["name"]: row for row in (*metrics["rows"], *overview["counters"]["rows"])}
    assert rows["hits"]["count"] == rows["http_requests"]["count"] == requests
    detail = ask(client, "detail", name="http_requests", **request)
    assert detail["window"] == window
    assert sum(value["count"] for value in detail["labels"][0]["values"]) <= requests
    for row in routes["rows"][:3]:
        chart = ask(client, "series", name="http_requests", label=f"route={row['route']}",
                    precision=window["precision"], since=start, until=end)  # fmt: skip
        assert sum(value or 0 for value in chart["series"][0]["values"]) == row["count"]

    observed = window["histograms_start"], window["histograms_end"]
    true = ledger.p95(*observed)
    assert numbers["p95"]["value"] is None if true is None else near(numbers["p95"]["value"], true)
    for row in routes["rows"]:
        true = ledger.p95(*observed, row["route"])
        assert row["p95"] is None if true is None else near(row["p95"], true)


@pytest.mark.parametrize("against", ["previous", "yesterday"])
@pytest.mark.parametrize("title", RANGES)
def test_the_compared_period_is_the_one_that_is_named(
    world: tuple[Ledger, httpx.Client], title: str, against: str
) -> None:
    """Its sums are those between its own edges; it is as long as the range."""
    ledger, client = world
    ago, length, early, late = RANGES[title]
    since, until = ledger.now - ago + early, ledger.now - ago + length + late
    request = {"precision": 60, "since": since, "until": until, "against": against}
    overview = ask(client, "overview", **request)
    window, hits = overview["window"], overview["numbers"]["hits"]
    start, end = window["before_start"], window["before_end"]
    if start is None:
        assert hits["count_before"] is None
        return
    assert end - start == window["end"] - window["start"]
    shift = 86_400 if against == "yesterday" else window["end"] - window["start"]
    if window["end"] <= ledger.now:
        assert window["start"] - start == shift
    before = ledger.total(ledger.requests, start, end)
    if hits["count_before"] is not None:  # else the counter began within that time
        assert hits["count_before"] == before
    observed = window["histograms_before_start"], window["histograms_before_end"]
    p95 = overview["numbers"]["p95"]
    if observed[0] is not None and (true := ledger.p95(*observed)) is not None:
        assert near(p95["before"], true)
    rows = ask(client, "metrics", **request)["rows"]
    for row in rows:
        if row["name"] in ("hits", "http_requests") and row["before"] is not None:
            assert row["before"] == before
