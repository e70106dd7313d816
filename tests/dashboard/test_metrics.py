"""/metrics: what Prometheus scrapes, in both formats; judged by prometheus_client's parsers."""

import re
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.formats.exposition import OPENMETRICS, Format, negotiated
from support.asking import asking

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


def scraped(dashboard: Dashboard, accept: str = "") -> tuple[str, str]:
    """Return the text of a scrape and its type."""
    with asking(dashboard) as client:
        answer = client.get("/metrics", headers={"accept": accept})
    assert answer.status_code == 200
    return answer.text, answer.headers["content-type"]


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_a_scrape_has_counters_and_gauges(dashboard: Dashboard, filled: Meter, accept: str) -> None:
    """With their labels, whatever is in them, each series once."""
    filled.count("a.b")
    filled.count("a_b", 5)
    filled.gauge("hits").set(3)
    text, media_type = scraped(dashboard, accept)
    openmetrics = media_type.startswith(OPENMETRICS)
    assert openmetrics is bool(accept)
    assert text.endswith("# EOF\n") is openmetrics
    families: list[Any] = list((parse_openmetrics if openmetrics else parse_text)(text))
    samples = [sample for family in families for sample in family.samples]
    keys = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    assert len(keys) == len(set(keys))
    values = dict(zip(keys, [sample.value for sample in samples], strict=True))
    assert values["hits_total", ()] == 12
    assert values["hits_gauge", ()] == 3
    assert values["queue_length", ()] == 7.5
    assert values["a_b_total", ()] == 1
    reasons = {
        dict(labels)["reason"]: value
        for (name, labels), value in values.items()
        if name == "redmeter_not_exported_series"
    }
    assert reasons == {"same-name": 1, "histogram": 5}
    routes = {dict(labels).get("route") for name, labels in keys if name == "http_requests_total"}
    assert routes == {"/", "/cart", "/checkout/{id}", "<script>alert(1)</script>"}
    types = {family.name: family.type for family in families}
    assert types["hits"] == "counter"
    assert types["queue_length"] == "gauge"
    hostile = [labels for name, labels in keys if name == "hostile_total"]
    assert len(hostile) == 6


def test_names_are_escaped_as_the_scraper_accepts(dashboard: Dashboard, filled: Meter) -> None:
    """Prometheus 3 takes all of UTF-8, in quotes."""
    filled.count("a.b", labels={"x": "y"})
    text, media_type = scraped(dashboard, PROMETHEUS_3)
    assert "escaping=allow-utf-8" in media_type
    assert '{"a.b_total",x="y"} 1\n' in text
    assert '# TYPE "a.b" counter\n' in text
    text, media_type = scraped(dashboard, "text/plain;version=0.0.4")
    assert 'a_b_total{x="y"} 1\n' in text
    assert "escaping=underscores" in media_type


def test_a_counter_does_not_fall(dashboard: Dashboard, filled: Meter) -> None:
    """It is the grand total, whatever intervals are kept."""
    first = scraped(dashboard)[0]
    filled.count("hits", 3, at=5.0)  # older than any interval
    filled.count("hits", 1)
    with asking(dashboard) as client:
        found = re.search("^hits_total ([0-9]+)$", client.get("/metrics").text, re.MULTILINE)
    before = re.search("^hits_total ([0-9]+)$", first, re.MULTILINE)
    assert found is not None
    assert before is not None
    assert int(found[1]) >= int(before[1]) == 12


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format()),
        ("*/*", Format()),
        ("text/html", Format()),
        (PROMETHEUS_3, Format(openmetrics=True, utf8=True)),
        ("application/openmetrics-text", Format(openmetrics=True)),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.2", Format()),
        ("application/openmetrics-text;q=x", Format()),
        ("application/openmetrics-text;q=0", Format()),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", Format(utf8=True)),
        ("text/plain;version=9", Format()),
    ],
)
def test_the_format_is_negotiated(accept: str, form: Format) -> None:
    """By type, version, weight and escaping."""
    assert negotiated(accept) == form
