"""Prometheus' HTTP API at the page's address, as Grafana's stock data source asks it."""

import json
import re
import sys
import time
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest

from dashboard.conftest import HOSTILE
from redmeter import Meter
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.rules_file import parse_rules
from redmeter.dashboard import Dashboard
from redmeter.dashboard.api import prometheus
from redmeter.dashboard.api.endpoints import openapi
from redmeter.export.prometheus_names import SUFFIXES
from redmeter.reading.promql import query as promql
from support.asking import asking
from support.servers import Server
from support.stores import opened_store

ALERTS = """
[[alert]]
name = "busy"
when = "threshold"
metric = "hostile"
value = "count"
by = "text"
above = 0
window = "1m"
severity = "page"
labels = {team = "shop"}
[[alert]]
name = "later"
when = "threshold"
metric = "queue_length"
value = "last"
above = 1
window = "1m"
for = "1h"
[[alert]]
name = "quiet"
when = "verdict"
"""
FORM = {"content-type": "application/x-www-form-urlencoded"}


DOCUMENT = json.loads(openapi().content)


def assert_described(response: httpx.Response) -> None:
    """Check that openapi.json has the answer, in this shape."""
    path = re.sub("/label/.*/", "/label/{label}/", response.request.url.path)
    operation = DOCUMENT["paths"].get(path, {}).get(response.request.method.lower())
    if operation is not None:
        described = operation["responses"][str(response.status_code)]
        if reference := described.get("$ref"):
            described = DOCUMENT["components"]["responses"][reference.rpartition("/")[2]]
        schema = described["content"]["application/json"]["schema"]
        jsonschema.validate(response.json(), DOCUMENT | schema)


class Client:
    """Asks the API by GET or POST, as a data source is set to.

    Args:
        dashboard: the application.
        method: of the requests that may be either.
    """

    def __init__(self, dashboard: Any, method: str) -> None:
        self.dashboard, self.method = dashboard, method

    def raw(self, path: str, method: str = "GET", **parameters: Any) -> httpx.Response:
        """Make a request."""
        text = urlencode({name.rstrip("_"): value for name, value in parameters.items()}, True)
        text = text.replace("match%5B%5D", "match[]").replace("match=", "match[]=")
        with asking(self.dashboard) as client:
            if method == "POST":
                response = client.post(path, content=text.encode(), headers=FORM)
            else:
                response = client.get(f"{path}?{text}" if text else path)
        assert_described(response)
        return response

    def get(self, path: str, **parameters: Any) -> Any:
        """Return the data of a successful answer to GET."""
        return self.success(self.raw(f"/api/v1/{path}", **parameters))

    def ask(self, path: str, **parameters: Any) -> Any:
        """Return the data of a successful answer to the chosen method."""
        return self.success(self.raw(f"/api/v1/{path}", self.method, **parameters))

    def success(self, response: httpx.Response) -> Any:
        """Return the data of a successful answer."""
        body = response.json()
        assert response.status_code == 200, body
        assert body["status"] == "success"
        return body["data"]


@pytest.fixture(params=["POST", "GET"])
def client(request: pytest.FixtureRequest, dashboard: Dashboard, filled: Meter) -> Client:
    """A client of a page whose store has something of everything."""
    filled.flush()
    return Client(dashboard, request.param)


def test_save_and_test(client: Client) -> None:
    """The requests by which Grafana checks a data source, and what it is."""
    data = client.ask("query", query="1+1", time=4)
    assert data == {"resultType": "scalar", "result": [4, "2"]}
    build = client.get("status/buildinfo")
    assert build["version"].startswith("2.")
    assert "features" not in build
    for path in ("status/flags", "rules/test/test", "nothing", "format_query"):
        response = client.raw(f"/api/v1/{path}")
        assert response.status_code == 404
        assert "page not found" in response.text
    assert client.get("rules") == {"groups": []}
    assert client.get("alerts") == {"alerts": []}
    exemplars = client.raw("/api/v1/query_exemplars", query="test", start=0, end=1)
    assert (exemplars.status_code, exemplars.json()["status"]) == (404, "error")


def test_rules_and_alerts(client: Client, server: Server, filled: Meter) -> None:
    """The rules that an evaluator published; pending and firing alerts are listed."""
    rules = parse_rules(ALERTS)
    filled.gauge("queue_length").set(7.5, at=time.time() - 15)
    for text in HOSTILE:
        filled.count("hostile", labels={"text": text}, at=time.time() - 20)
    with opened_store(server.url) as store:
        Evaluator(store, rules, deliver=lambda *_: ()).cycle()
    (group,) = client.get("rules")["groups"]
    assert (group["name"], group["interval"]) == ("redmeter", 15)
    assert datetime.fromisoformat(group["lastEvaluation"]).tzinfo is not None
    busy, later, quiet = group["rules"]
    assert {each["type"] for each in group["rules"]} == {"alerting"}
    assert [each["state"] for each in (busy, later, quiet)] == ["firing", "pending", "inactive"]
    assert busy["query"] == "sum by (text) (increase(hostile_total[1m])) > 0"
    assert (later["duration"], later["health"]) == (3600, "ok")
    assert busy["labels"] == {"severity": "page", "team": "shop"}
    assert len(busy["alerts"]) == len(HOSTILE)
    alerts = client.get("alerts")["alerts"]
    assert {each["labels"]["text"] for each in alerts if "text" in each["labels"]} == set(HOSTILE)
    (pending,) = (each for each in alerts if each["labels"]["alertname"] == "later")
    assert pending["state"] == "pending"
    assert float(pending["value"]) == 7.5
    assert abs(datetime.fromisoformat(pending["activeAt"]).timestamp() - time.time()) < 60
    assert set(pending) == {"labels", "annotations", "state", "activeAt", "value"}
    assert client.get("rules", type="record") == {"groups": []}
    (one,) = client.get("rules", **{"rule_name[]": "quiet", "type": "alert"})["groups"]
    assert [each["name"] for each in one["rules"]] == ["quiet"]
    (bare,) = client.get("rules", exclude_alerts="true")["groups"]
    assert not any(each["alerts"] for each in bare["rules"])


def test_explore_and_metrics_browser(client: Client) -> None:
    """Names, labels and values, all of them and of one metric."""
    end = time.time()
    window = {"start": end - 3600, "end": end}
    names = client.get("label/__name__/values", **window, limit=40000)
    assert names == sorted(names)
    assert {"hits_total", "queue_length", "cart_value", "cart_value_bucket"} <= set(names)
    assert set(client.ask("labels", **window, limit=0)) >= {"__name__", "route", "status", "le"}
    match = 'http_requests_total{route="/"}'
    assert client.ask("labels", **window, match=match) == [
        *("__name__", "method", "route", "status")
    ]
    everything = '{__name__=~".+",}'
    chosen = client.get("label/__name__/values", **window, match=everything)
    assert chosen == names
    metadata = client.get("metadata", limit=40000)
    assert metadata["hits_total"][0]["type"] == "counter"
    assert metadata["queue_length"][0]["type"] == "gauge"
    assert metadata["cart_value"][0]["type"] == "histogram"
    assert set(metadata["cart_value"][0]) == {"type", "help", "unit"}
    assert list(client.get("metadata", metric="hits_total")) == ["hits_total"]


def test_variables(client: Client) -> None:
    """label_values(), of the new style and of the old, and query_result()."""
    values = client.get("label/status/values", match="http_requests_total")
    assert values == ["2xx", "5xx"]
    rows = client.ask("series", match=['http_requests_total{status="2xx"}', "hits_total"])
    assert {row["__name__"] for row in rows} == {"http_requests_total", "hits_total"}
    assert client.get("label/U__a_2e_b/values") == []
    assert client.ask("query", query="count(http_requests_total)")["result"][0]["value"][1] == "8"


def test_lists_honor_the_time_range(client: Client, meter: Meter) -> None:
    """A counter is listed from its first event on, a gauge while it keeps a value."""
    now = time.time()
    meter.count("old", at=now - 3_000)
    meter.observe("old_seconds", 1, at=now - 3_000)
    meter.gauge("old_gauge").set(1, at=now - 3_000)
    everything = '{__name__=~"old.*|hits_total|queue_length"}'

    def names(start: float, end: float) -> set[str]:
        window = {"start": now + start, "end": now + end}
        rows = client.ask("series", match=everything, **window)
        found = {row["__name__"] for row in rows}
        values = client.get("label/__name__/values", match=everything, **window)
        assert values == sorted(found)
        assert bool(client.ask("labels", match=everything, **window)) is bool(found)
        return found

    lasting = {"old_total", *(f"old_seconds{suffix}" for suffix in ("", *SUFFIXES))}
    assert names(-600, 60) == {*lasting, "hits_total", "queue_length"}
    assert names(-3_200, 60) == {*lasting, "hits_total", "queue_length", "old_gauge"}
    assert names(-3_600, -2_400) == {*lasting, "old_gauge"}
    assert names(-2_400, -1_800) == lasting
    assert names(-9_000, -8_000) == set()
    refused = client.raw("/api/v1/labels", start=now, end=now - 1)
    assert (refused.status_code, refused.json()["errorType"]) == (400, "bad_data")


def test_lookback_can_be_chosen(client: Client, meter: Meter) -> None:
    """By the parameter lookback_delta; 0 is the default."""
    now = time.time()
    meter.gauge("old_gauge").set(1, at=now - 900)
    meter.gauge("older_than_seconds_are_kept").set(1, at=now - 200)
    assert client.ask("query", query="older_than_seconds_are_kept")["result"] != []

    def found(delta: str) -> int:
        data = client.ask("query", query="old_gauge", time=now, lookback_delta=delta)
        return len(data["result"])

    assert [found(delta) for delta in ("0", "600", "20m", "1h")] == [0, 0, 1, 1]


def test_bounds_of_buckets_are_listed(client: Client) -> None:
    """Those that a query shows; of too many histograms only +Inf, with a warning."""
    window = {"start": time.time() - 600, "end": time.time()}
    bounds = client.get("label/le/values", match="cart_value_bucket", **window)
    shown = client.ask("query", query="cart_value_bucket")["result"]
    assert bounds == sorted(row["metric"]["le"] for row in shown)
    assert len(bounds) > 2
    chosen = client.ask("series", match='cart_value_bucket{le="50"}', **window)
    assert chosen == [{"__name__": "cart_value_bucket", "le": "50"}]


def test_of_many_histograms_only_the_last_bound_is_listed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a warning says so; a list that cannot be narrowed to the range says that, too."""
    monkeypatch.setattr(promql, "MAX_BOUNDED_HISTOGRAMS", 0)
    monkeypatch.setattr(promql, "MAX_TIMED_SERIES", 0)
    match = '{__name__=~"cart_value_bucket|queue_length"}'
    body = client.raw("/api/v1/series", match=match, start=time.time() - 600).json()
    assert {"__name__": "cart_value_bucket", "le": "+Inf"} in body["data"]
    assert body["warnings"] == [promql.UNTIMED, promql.UNBOUNDED]


def test_panels(client: Client) -> None:
    """Ranges with decimals, matrices of texts."""
    end = time.time() - 3
    end -= end % 15
    data = client.ask(
        *("query_range",),
        query="sum by (status) (increase(http_requests_total[1h]))",
        start=f"{end - 60:.3f}",
        end=f"{end + 60:.3f}",
        step="15",
    )
    assert data["resultType"] == "matrix"
    assert {row["metric"]["status"] for row in data["result"]} == {"2xx", "5xx"}
    for row in data["result"]:
        for at, value in row["values"]:
            assert at % 15 == 0
            float(value)
    (native,) = client.ask("query", query="cart_value")["result"]
    _, histogram = native["histogram"]
    assert float(histogram["count"]) >= 2
    assert all(len(bucket) == 4 and bucket[0] == 0 for bucket in histogram["buckets"])
    matrix = client.ask("query", query="queue_length[5m]")
    assert matrix["resultType"] == "matrix"


def test_answers_that_are_cut_carry_a_warning(client: Client) -> None:
    """By the parameter limit."""
    for path, parameters in (
        ("labels", {}),
        ("series", {"match": '{__name__=~".+"}'}),
        ("query", {"query": "http_requests_total"}),
    ):
        body = client.raw(f"/api/v1/{path}", client.method, **parameters, limit=1).json()
        rows = body["data"]["result"] if path == "query" else body["data"]
        assert len(rows) == 1
        assert body["warnings"] == ["results truncated due to limit"]


@pytest.mark.parametrize(
    ("path", "parameters", "status", "kind", "text"),
    [
        ("query", {}, 400, "bad_data", "query"),
        ("query", {"query": "sum("}, 400, "bad_data", "parse error"),
        ("query", {"query": "1", "time": "x"}, 400, "bad_data", "timestamp"),
        ("query", {"query": "1", "timeout": "x"}, 400, "bad_data", "duration"),
        ("query", {"query": "1", "limit": "x"}, 400, "bad_data", "limit"),
        ("query", {"query": "1", "lookback_delta": "-5m"}, 400, "bad_data", "lookback_delta"),
        ("query", {"query": "x" * 70_000}, 400, "bad_data", "65,536"),
        ("query", {"query": "x" * 300_000}, 413, "bad_data", "bytes"),
        ("query", {"query": 'label_replace(up, "~", "$1"'}, 400, "bad_data", ""),
        ("query", {"query": "vector(1)", "timeout": "0"}, 503, "timeout", "shorter range"),
        (
            *("query", {"query": 'label_replace(vector(1), "", "$1", "x", ".*")'}),
            *(422, "execution", "label name"),
        ),
        ("series", {}, 400, "bad_data", "no match[]"),
        ("series", {"match": "rate(x[5m])"}, 400, "bad_data", "selector"),
        ("labels", {"match": "{}"}, 400, "bad_data", ""),
        ("label/a%0Ab/values", {}, 400, "bad_data", "label name"),
    ],
)
def test_refusals_have_prometheus_form(
    client: Client, path: str, parameters: dict[str, Any], status: int, kind: str, text: str
) -> None:
    """With a type, and a text that names the remedy."""
    long = len(str(parameters)) > 10_000
    method = "GET" if path.startswith("label/") else "POST" if long else client.method
    response = client.raw(f"/api/v1/{path}", method, **parameters)
    body = response.json()
    assert (response.status_code, body["status"], body["errorType"]) == (status, "error", kind)
    assert text in body["error"]


@pytest.mark.parametrize(
    ("start", "end", "step", "text"),
    [
        (0, 20_000, 1, "exceeded maximum resolution of 11,000 points"),
        (10, 0, 1, "end timestamp must not be before start time"),
        (0, 10, 0, "zero or negative query resolution step widths are not accepted"),
        (0, 10, "", "step"),
        ("2026-11-23T12:00:00Z", "2026-11-23", "1m", "timestamp"),
    ],
)
def test_ranges_that_are_refused(
    dashboard: Dashboard, start: Any, end: Any, step: Any, text: str
) -> None:
    """In the words that Grafana's users know."""
    client = Client(dashboard, "POST")
    response = client.raw(
        "/api/v1/query_range", "POST", query="time()", start=start, end=end, step=step
    )
    assert response.status_code in (400, 422)
    assert text in response.json()["error"]


def test_the_access_rules_of_the_page_hold(server: Any) -> None:
    """Refused in Prometheus' form; POST is for queries alone."""
    closed = Dashboard(server.url, access=lambda _: False)
    response = Client(closed, "POST").raw("/api/v1/query", "POST", query="1")
    assert (response.status_code, response.json()["status"]) == (403, "error")
    closed.close()
    opened = Dashboard(server.url, access="open")
    for path in ("rules", "metadata", "label/x/values", "nothing"):
        assert Client(opened, "POST").raw(f"/api/v1/{path}", "POST").status_code == 405
    with asking(opened) as client:
        assert client.post("/api/v1/query", json={}).status_code == 415
    opened.close()
    off = Dashboard("off", access="open")
    assert Client(off, "POST").raw("/api/v1/query", query="1").status_code == 503


def test_a_missing_extra_is_named(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    for name in [name for name in sys.modules if name.startswith("redmeter.promql")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("redmeter.reading.promql.query")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "promql_parser", None)
    response = Client(dashboard, "GET").raw("/api/v1/query", query="1")
    assert response.status_code == 501
    assert 'pip install "redmeter[prometheus]"' in response.json()["error"]


def test_at_most_so_many_queries_run_at_once(dashboard: Dashboard) -> None:
    """The others wait, and the page has threads of its own."""
    assert dashboard._queries is not dashboard._shared
    assert dashboard._queries._most == prometheus.QUERY_THREADS
