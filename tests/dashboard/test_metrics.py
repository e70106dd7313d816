"""/metrics: what Prometheus scrapes, in both formats; judged by prometheus_client's parsers."""

import math
import re
import shutil
import subprocess
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.export.exposition import OPENMETRICS, Format, negotiated
from support.asking import asking
from support.servers import Server
from support.waiting import eventually

OPENMETRICS_1 = f"{OPENMETRICS}; version=1.0.0"
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


def scraped(dashboard: Dashboard, accept: str = "", query: str = "") -> tuple[str, str]:
    """Return the text of a scrape and its type."""
    with asking(dashboard) as client:
        answer = client.get(f"/metrics{query}", headers={"accept": accept})
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
    assert values["hits", ()] == 3
    assert values["queue_length", ()] == 7.5
    assert values["a_b_total", ()] == 1
    reasons = {
        dict(labels)["reason"]: value
        for (name, labels), value in values.items()
        if name == "redmeter_not_exported_series"
    }
    assert reasons == {"same-name": 1}
    routes = {dict(labels).get("route") for name, labels in keys if name == "http_requests_total"}
    assert routes == {"/", "/cart", "/checkout/{id}", "<script>alert(1)</script>"}
    types = {(family.name, family.type) for family in families}
    # Its name next to that of a gauge; OpenMetrics has no two families of one name.
    counter = ("hits_total", "unknown") if openmetrics else ("hits", "counter")
    assert {("hits", "gauge"), counter, ("queue_length", "gauge")} <= types
    hostile = [labels for name, labels in keys if name == "hostile_total"]
    assert len(hostile) == 6


def samples_of(text: str, media_type: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return name -> labels -> value, as a parser of the format reads them."""
    parse = parse_openmetrics if media_type.startswith(OPENMETRICS) else parse_text
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in parse(text):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {})
            found[sample.name][labels] = sample.value
    return found


@pytest.mark.parametrize("accept", ["", OPENMETRICS_1, PROMETHEUS_3])
def test_a_histogram_has_cumulative_buckets(
    dashboard: Dashboard, meter: Meter, accept: str
) -> None:
    """At bounds that all label sets share; every value is in the lowest bucket that may hold it."""
    fast, slow = [0.0, 0.001, 0.5, 1.0, 1.0001], [2.0, 2.8284, 2.8285, 60.0]
    for value in fast:
        meter.observe("took_seconds", value, labels={"plan": "pro", "le": "x"})
    for value in slow:
        meter.observe("took_seconds", value)
    meter.count("took_seconds")  # a counter of the same name is another metric
    found = samples_of(*scraped(dashboard, accept))
    assert found["took_seconds_total"][()] == 1
    pro = (("exported_le", "x"), ("plan", "pro"))
    for labels, values in ((pro, fast), ((), slow)):
        assert found["took_seconds_count"][labels] == len(values)
        assert found["took_seconds_sum"][labels] == pytest.approx(sum(values))
        buckets = {
            dict(key)["le"]: count
            for key, count in found["took_seconds_bucket"].items()
            if tuple(pair for pair in key if pair[0] != "le") == labels
        }
        bounds = [float(bound) for bound in buckets]
        assert bounds == sorted(bounds)
        assert {0.0, 1.0, 2.0, 64.0, math.inf} <= set(bounds)
        assert len(bounds) == 2 * 16 + 3  # 2^-10 to 2^6, zero and infinity
        for bound, count in buckets.items():
            assert count == sum(value <= float(bound) for value in values), bound


def test_buckets_are_as_fine_as_the_scraper_asks(dashboard: Dashboard, meter: Meter) -> None:
    """But at most 64; coarser bounds are some of the finer ones."""
    for value in (1.5, 1.1, 3.9):
        meter.observe("x", value)
        meter.observe("wide", value * 1e9**value)
    bounds: dict[tuple[str, int], set[str]] = {}
    for number in (1, 2, 4):
        text, _ = scraped(dashboard, query=f"?buckets={number}")
        for name in ("x", "wide"):
            bounds[name, number] = set(
                re.findall(rf'^{name}_bucket{{le="([^+"]+)"}}', text, re.MULTILINE)
            )
    assert [len(bounds["x", number]) for number in (1, 2, 4)] == [3, 5, 9]
    for name in ("x", "wide"):
        assert bounds[name, 1] <= bounds[name, 2] <= bounds[name, 4]
        assert len(bounds[name, 4]) <= 64
    with asking(dashboard) as client:
        assert client.get("/metrics?buckets=3").status_code == 400


def test_a_sum_that_may_fall_is_not_exported(dashboard: Dashboard, meter: Meter) -> None:
    """Of a histogram with negative values; it has buckets, and outside OpenMetrics a count."""
    for value in (-1.0, 0.0, 2.0):
        meter.observe("change", value)
    for accept, names in (
        ("", {"change_bucket", "change_count"}),
        ("application/openmetrics-text", {"change_bucket"}),
    ):
        found = samples_of(*scraped(dashboard, accept))
        assert names == {name for name in found if name.startswith("change")}
        assert found["change_bucket"][("le", "0.0"),] == 2
        assert found["change_bucket"][("le", "+Inf"),] == 3


def test_a_histogram_without_a_total_is_counted(
    dashboard: Dashboard, meter: Meter, server: Server
) -> None:
    """As one is that nothing was observed of since grand totals began."""
    meter.observe("old", 1.0)
    meter.count("hits")
    with server.client() as client:
        client.delete("redmeter:sums:", "redmeter:spreads:")
    text, _ = scraped(dashboard)
    assert "old" not in text
    assert 'redmeter_not_exported_series{reason="no-total"} 1\n' in text
    meter.observe("old", 1.0)
    assert eventually(lambda: "\nold_count 1\n" in scraped(dashboard)[0])


def test_a_users_metric_may_have_the_name_of_ours(dashboard: Dashboard, meter: Meter) -> None:
    """Then ours is left out, because a duplicate would break the whole scrape."""
    meter.gauge("redmeter_not_exported_series").set(5)
    meter.count("a.b")
    meter.count("a_b")
    found = samples_of(*scraped(dashboard))
    assert found["redmeter_not_exported_series"] == {(): 5.0}


def test_series_of_a_precision_that_was_added_are_found(dashboard: Dashboard, meter: Meter) -> None:
    """The index of the widest precision lacks series that were not written since."""
    meter.count("before")
    meter.observe("lasted", 1.0)
    store = dashboard._answers.store  # type: ignore[union-attr]
    store.change_retention([(7 * 86400, 5)])
    meter.count("after")
    text, _ = scraped(dashboard)
    assert "before_total 1\n" in text
    assert "after_total 1\n" in text
    assert "lasted_count 1\n" in text


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_complain_about(dashboard: Dashboard, filled: Meter) -> None:
    """Neither an error nor an advice."""
    text, _ = scraped(dashboard)
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text.encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


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
