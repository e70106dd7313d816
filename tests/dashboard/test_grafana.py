"""Grafana: its requests are replayed, and each query of docs/grafana/dashboard.json is answered."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from redmeter import Meter
from redmeter.dashboard import Dashboard
from support.asking import asking
from support.grafana import Grafana
from support.servers import Server

FOLDER = Path(__file__).parents[2] / "docs" / "grafana"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}


@pytest.fixture
def shop(server: Server) -> float:
    """A store with ten minutes of a web application; return their end."""
    now = time.time()
    with Meter(server.url) as meter:
        record(meter, now)
        assert meter.flush()
    return now


def record(meter: Meter, now: float) -> None:
    """Record requests, orders and a queue."""
    for ago in range(0, 600, 20):
        at = now - 3 - ago
        meter.count("hits", 10, at=at)
        meter.count("hits_failed", 1, at=at)
        meter.observe("hits_seconds", 0.02 + ago / 10_000, at=at)
        for route in ("/", "/cart"):
            labels = {"method": "GET", "route": route}
            meter.count("http_requests", 4, labels=labels | {"status": "2xx"}, at=at)
            meter.count("http_requests", 1, labels=labels | {"status": "5xx"}, at=at)
            meter.observe("http_request_seconds", 0.02 + ago / 10_000, labels=labels, at=at)
        meter.count("orders", 2, at=at)
        meter.gauge("queue_length").set(ago, at=at)


@pytest.fixture(params=["POST", "GET"])
def grafana(request: pytest.FixtureRequest, dashboard: Dashboard) -> Iterator[Grafana]:
    """Grafana with the page as its data source."""
    with asking(dashboard) as client:
        yield Grafana(client, request.param)


def test_the_data_source_is_saved_and_tested(grafana: Grafana) -> None:
    """Also while the store is empty."""
    grafana.save_and_test()
    grafana.rules()
    assert grafana.open(time.time() - 3600, time.time()) == []
    assert grafana.panel("sum(rate(hits_total[$__rate_interval]))", 0, 3600) == []


def test_explore_and_the_metrics_browser(grafana: Grafana, shop: float) -> None:
    """Names, then labels and values of one."""
    names = grafana.open(shop - 3600, shop)
    assert {"hits_total", "orders_total", "queue_length", "http_request_seconds"} <= set(names)
    for name in names:
        values = grafana.browse(name, shop - 3600, shop)
        assert values["__name__"] == [name]
        assert grafana.instant(name, shop)
        assert grafana.panel(name, shop - 600, shop)
    assert grafana.browse("http_requests_total", shop - 600, shop)["status"] == ["2xx", "5xx"]


def test_variables_of_each_kind(grafana: Grafana, shop: float) -> None:
    """New ones and old ones."""
    window = shop - 3600, shop
    assert grafana.variable("label_values(http_requests_total, route)", *window) == ["/", "/cart"]
    chosen = 'label_values(http_requests_total{status=~"5..",}, status)'
    assert grafana.variable(chosen, *window) == ["5xx"]
    assert "hits_total" in grafana.variable("label_values(__name__)", *window)
    assert grafana.variable("metrics(^hits_.*total)", *window) == [
        *("hits_failed_total", "hits_total")
    ]
    assert len(grafana.variable("query_result(topk(1, hits_total))", *window)) == 1
    assert len(grafana.variable('{__name__=~".+",status="2xx"}', *window)) == 2


def test_an_alert_is_evaluated(grafana: Grafana, shop: float) -> None:
    """By an instant query with a time of its own, and by a range."""
    query = "sum(rate(hits_failed_total[5m])) / sum(rate(hits_total[5m])) > 0.05"
    (row,) = grafana.instant(query, shop)
    assert float(row["value"][1]) == pytest.approx(0.1, rel=0.01)
    assert grafana.panel(query, shop - 600, shop, points=43_200)


def test_every_query_of_the_dashboard_has_an_answer(dashboard: Dashboard, shop: float) -> None:
    """With all variables at their first value, or at All."""
    without_answer = []
    with asking(dashboard) as client:
        grafana = Grafana(client)
        variables = {
            each["name"]: each.get("allValue")
            or grafana.variable(each["query"]["query"], shop - 600, shop)[0]
            for each in VARIABLES.values()
            if each["type"] == "query"
        }
        for panel in PANELS:
            for target in panel["targets"]:
                if target["instant"]:
                    rows = grafana.instant(target["expr"], shop, 600, **variables)
                else:
                    points = panel.get("maxDataPoints", 500)
                    rows = grafana.panel(target["expr"], shop - 300, shop, points, **variables)
                pairs = [pair for row in rows for pair in row.get("values", [row.get("value")])]
                if not any(value not in ("0", "NaN") for _, value in pairs):
                    without_answer.append(target["expr"])
    assert without_answer == []


def test_the_dashboard_is_well_formed() -> None:
    """One data source, chosen by a variable; ids and places of panels that do not collide."""
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    for panel in PANELS:
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert all(one == {"type": "prometheus", "uid": "${datasource}"} for one in sources)
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
    named = {
        name
        for panel in PANELS
        for target in panel["targets"]
        for name in ("method", "route", "counter", "gauge", "histogram")
        if f"${name}" in target["expr"]
    }
    assert named == set(VARIABLES) - {"datasource"}


def test_the_provisioning_files_name_what_the_dashboard_uses() -> None:
    """The type and uid of the data source, a folder of dashboards."""
    (source,) = yaml.safe_load((FOLDER / "redmeter.yaml").read_text())["datasources"]
    current = VARIABLES["datasource"]["current"]["value"]
    assert (source["type"], source["uid"]) == (VARIABLES["datasource"]["query"], current)
    (provider,) = yaml.safe_load((FOLDER / "dashboards.yaml").read_text())["providers"]
    assert (provider["type"], bool(provider["options"]["path"])) == ("file", True)
