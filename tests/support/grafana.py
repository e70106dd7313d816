"""A stand-in for Grafana: its requests to a Prometheus data source, and answers that it accepts.

The requests are those of Grafana 12: pkg/promlib/healthcheck.go and client.go, buildInfo.ts of
alerting, resource_clients.ts and metric_find_query.ts of the data source. Where Grafana would show
an error or nothing, an assertion fails.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import httpx

#: Numbers as Go's ParseFloat reads them, in the words of Prometheus.
_NUMBER = re.compile(r"NaN|[+-]Inf|-?\d+(\.\d+)?")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")
#: The scrape interval of a data source that names none, seconds.
SCRAPE = 15


class Grafana:
    """A data source of Grafana.

    Args:
        client: of the page.
        method: GET or POST, as it is set in the data source.
        root: the address of the data source.
    """

    def __init__(self, client: httpx.Client, method: str = "POST", root: str = "") -> None:
        self._client, self._method, self._root = client, method, root

    def save_and_test(self) -> None:
        """Check the data source, and find out what kind of server it is."""
        data = self.ask("query", query="1+1", time="4")
        assert data == {"resultType": "scalar", "result": [4, "2"]}
        build = self.get("status/buildinfo")
        assert int(build["version"].split(".")[0]) >= 2
        assert "features" not in build, "taken for Mimir"
        flags = self._request("GET", "status/flags", ())
        assert flags.status_code == 404, "taken for Thanos"
        ruler = self._request("GET", "rules/test/test", ())
        assert (ruler.status_code, "page not found" in ruler.text) == (404, True)

    def open(self, start: float, end: float) -> Sequence[str]:
        """Open the query editor; return the names of metrics."""
        exemplars = self._request("GET", "query_exemplars", [("query", "test"), ("start", "0")])
        assert exemplars.json()["status"] == "error", "exemplars are offered"
        window = {"start": _decimal(start), "end": _decimal(end)}
        names = self.get("label/__name__/values", **window, limit="40000")
        assert names == sorted(set(names))
        labels = self.ask("labels", **window, limit="40000")
        assert labels == sorted(set(labels))
        assert "__name__" in labels or not names
        for name, entries in self.get("metadata", limit="40000").items():
            assert isinstance(name, str)
            for entry in entries:
                assert set(entry) == {"type", "help", "unit"}
                assert all(isinstance(text, str) for text in entry.values())
        return list(names)

    def browse(self, metric: str, start: float, end: float) -> dict[str, list[str]]:
        """Choose a metric in the metrics browser; return the values of its labels."""
        window = {"start": _decimal(start), "end": _decimal(end)}
        match = f'{{__name__="{metric}"}}'
        labels = self.ask("labels", **window, **{"match[]": match})
        return {
            name: self.get(f"label/{name}/values", **window, **{"match[]": match})
            for name in labels
        }

    def rules(self) -> Sequence[Mapping[str, Any]]:
        """List rules and alerts, as the pages of alerting do."""
        for alert in self.get("alerts")["alerts"]:
            assert {"labels", "annotations", "state", "activeAt", "value"} <= set(alert)
        groups: list[dict[str, Any]] = self.get("rules")["groups"]
        for group in groups:
            assert {"name", "file", "rules"} <= set(group)
            for rule in group["rules"]:
                assert {"name", "query", "type", "health"} <= set(rule)
        return groups

    def variable(self, definition: str, start: float, end: float) -> list[str]:
        """Return the values of a variable of a dashboard."""
        window = {"start": _decimal(start), "end": _decimal(end)}
        if found := re.fullmatch(r"label_values\((?:(.+),)?\s*(\w+)\)", definition):
            match = {"match[]": found[1]} if found[1] else {}
            values: list[str] = self.get(f"label/{found[2]}/values", **match, **window)
            return values
        if found := re.fullmatch(r"metrics\((.+)\)", definition):
            names = self.get("label/__name__/values", **window)
            return [name for name in names if re.search(found[1], name)]
        if found := re.fullmatch(r"query_result\((.+)\)", definition):
            rows = self.instant(found[1], end)
            return [f"{row['metric']} {row['value'][1]} {row['value'][0] * 1000}" for row in rows]
        rows = self.ask("series", **{"match[]": definition}, **window)
        return sorted(json.dumps(row) for row in rows)

    def panel(
        self, query: str, start: float, end: float, points: int = 500, **variables: str
    ) -> list[dict[str, Any]]:
        """Return the series of a panel with a range query.

        Args:
            points: width of the panel, the most points of a series.
            variables: of the dashboard.
        """
        step = max(SCRAPE, math.ceil((end - start) / points))
        text = expanded(query, step, end - start, variables)
        first, last = (math.floor(time / step) * step for time in (start, end))
        data = self.ask(
            *("query_range",), query=text, start=_decimal(first), end=_decimal(last), step=str(step)
        )
        assert data["resultType"] == "matrix"
        for row in data["result"]:
            _check_labels(row["metric"])
            assert set(row) - {"metric"} <= {"values", "histograms"}
            times = [_checked(pair) for pair in row.get("values", ())]
            times += [_checked_histogram(pair) for pair in row.get("histograms", ())]
            assert times, "a series without samples"
            assert times == sorted(set(times))
            assert all((time - first) % step == 0 and first <= time <= last for time in times)
        return list(data["result"])

    def instant(
        self, query: str, at: float, seconds: float = 3600, **variables: str
    ) -> list[dict[str, Any]]:
        """Return the samples of a stat panel, a table or an alert.

        Args:
            seconds: the time range of the dashboard.
        """
        text = expanded(query, SCRAPE, seconds, variables)
        data = self.ask("query", query=text, time=_decimal(at))
        if data["resultType"] == "scalar":
            _checked(data["result"])
            return [{"metric": {}, "value": data["result"]}]
        assert data["resultType"] == "vector"
        for row in data["result"]:
            _check_labels(row["metric"])
            if "histogram" in row:
                _checked_histogram(row["histogram"])
            else:
                _checked(row["value"])
        return list(data["result"])

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer to the method of the data source."""
        response = self._request(self._method, path, list(parameters.items()))
        if self._method == "POST" and response.status_code in (400, 405):
            response = self._request("GET", path, list(parameters.items()))
        return _data(response)

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer to GET."""
        return _data(self._request("GET", path, list(parameters.items())))

    def _request(
        self, method: str, path: str, parameters: Sequence[tuple[str, str]]
    ) -> httpx.Response:
        address, form = f"{self._root}/api/v1/{path}", urlencode(parameters)
        if method == "POST":
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            return self._client.post(address, content=form, headers=headers)
        return self._client.get(f"{address}?{form}" if form else address)


def expanded(query: str, step: float, seconds: float, variables: Mapping[str, str]) -> str:
    """Return a query with its variables replaced."""
    known = {
        "__interval": f"{step}s",
        "__rate_interval": f"{max(step + SCRAPE, 4 * SCRAPE)}s",
        "__range": f"{math.ceil(seconds)}s",
        **variables,
    }
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), query)


def _data(response: httpx.Response) -> Any:
    body = response.json()
    assert response.status_code == 200, body
    assert body["status"] == "success"
    for notes in (body.get("warnings", ()), body.get("infos", ())):
        assert all(isinstance(note, str) for note in notes)
    return body["data"]


def _check_labels(labels: Any) -> None:
    assert all(isinstance(name, str) and isinstance(labels[name], str) for name in labels)


def _checked(pair: Any) -> float:
    """Return the time of a sample."""
    time, value = pair
    assert isinstance(time, int | float)
    assert _NUMBER.fullmatch(value)
    return time


def _checked_histogram(pair: Any) -> float:
    """Return the time of a histogram."""
    time, histogram = pair
    assert _NUMBER.fullmatch(histogram["count"])
    assert _NUMBER.fullmatch(histogram["sum"])
    for boundaries, *numbers in histogram.get("buckets", ()):
        assert boundaries in (0, 1, 2, 3)
        assert len(numbers) == 3
        assert all(re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", number) for number in numbers)
    assert isinstance(time, int | float)
    return time


def _decimal(time: float) -> str:
    return f"{time:.3f}"
