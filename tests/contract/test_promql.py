"""PromQL over a store: counters, gauges and histograms under their names for Prometheus."""

import math
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redmeter import InvalidValue, Meter
from redmeter.clock import ManualClock
from redmeter.promql.errors import BadQuery, QueryError
from redmeter.reading.promql import source as promql_source
from redmeter.results import QueryHistogram, QueryResult
from redmeter.stored.exponential_histogram import RELATIVE_ERROR
from redmeter.testing import MemoryMeter
from support.examples import scaled
from support.stores import OpenMeter


def values(result: QueryResult) -> dict[tuple[tuple[str, str], ...], Any]:
    """Return the values of an instant query by labels."""
    assert result.kind == "vector"
    return {tuple(sorted(one.labels.items())): one.samples[0].value for one in result.series}


def settled(meter: Meter, query: str) -> QueryResult:
    """Return the result for a time whose events have all arrived."""
    return meter.query(query, at=time.time() - 5)


@pytest.fixture
def meter(open_meter: OpenMeter) -> Meter:
    """A meter with events of the last minutes."""
    meter = open_meter()
    now = time.time()
    meter.count("signups", 5, at=now - 200)
    meter.count("signups", 7, at=now - 100)
    for route, amount in (("/", 60), ("/cart", 30)):
        meter.count("http_requests", amount, labels={"route": route}, at=now - 100)
    meter.count("a.b-c", 1, at=now - 100)
    for value in range(1, 101):
        meter.observe("checkout_seconds", value / 100, labels={"shop": "eu"}, at=now - 100)
    meter.gauge("queue", labels={"le": "x"}).set(4)
    meter.gauge("signups").set(3)
    return meter


def test_counters_have_their_totals_and_exact_increases(meter: Meter) -> None:
    """By label set; a dot is an underscore."""
    assert values(meter.query("signups_total")) == {(("__name__", "signups_total"),): 12}
    assert values(settled(meter, "increase(signups_total[1h])")) == {(): pytest.approx(12)}
    by_route = settled(meter, 'sum by (route) (increase(http_requests_total{route=~"/.*"}[10m]))')
    assert values(by_route) == {(("route", "/"),): 60, (("route", "/cart"),): 30}
    assert values(meter.query("a_b_c_total")) == {(("__name__", "a_b_c_total"),): 1}


def test_a_gauge_keeps_its_name_next_to_a_counter(meter: Meter) -> None:
    """It yields it to a histogram; and it keeps its labels, which are reserved only in those."""
    assert values(meter.query("signups")) == {(("__name__", "signups"),): 3}
    assert values(meter.query("signups_total")) == {(("__name__", "signups_total"),): 12}
    assert values(meter.query("signups_gauge")) == {(("__name__", "signups_gauge"),): 3}
    meter.observe("signups", 0.5)
    assert values(meter.query("signups_gauge")) == {(("__name__", "signups_gauge"),): 3}
    assert values(meter.query("histogram_count(signups)")) == {(): 1}
    assert values(meter.query("max_over_time(queue[5m])")) == {(("le", "x"),): 4}


def test_values_that_were_cut_are_named(open_meter: OpenMeter) -> None:
    """A value has 120 bytes; a query of a longer value gets how the stored one begins."""
    whole = "/orders/" + "x" * 300
    for meter in (open_meter(), MemoryMeter(strict=False)):
        meter.count("pages", 3, labels={"path": whole, "status": "5xx"})
        meter.count("pages", 2, labels={"path": "/orders", "status": "2xx"})
        (stored,) = {
            one.labels["path"]
            for one in meter.query("pages_total").series
            if one.labels["status"] == "5xx"
        }
        assert stored.endswith("…")
        info = (
            'PromQL info: a value of the label "path" of metric name "pages_total" was cut, as a'
            f' value has 120 bytes at most: "{stored}" may be the one that was meant'
        )
        for query, series, infos in (
            (f'pages_total{{path="{whole}"}}', 0, [info]),
            (f'sum(pages_total{{path!="{whole}"}})', 1, [info]),
            (f'pages_total{{path=~"/orders|{whole}"}}', 1, [info]),
            (f'pages_total{{path="{stored}"}}', 1, []),
            ('pages_total{path=~"/orders/x+…"}', 1, []),
            ('pages_total{path="/orders"}', 1, []),
            ('pages_total{path="/orders/of/others"}', 0, []),
            ("pages_total", 2, []),
        ):
            result = meter.query(query)
            assert (len(result.series), list(result.infos)) == (series, infos), query
        # Answers may have more labels than fit in a name.
        longer = 'label_join(pages_total{status="5xx"}, "twice", "", "path", "path")'
        (one,) = meter.query(longer).series
        assert one.labels["twice"] == stored * 2


def test_what_prometheus_3_has_is_understood() -> None:
    """Underscores in numbers, names that are modifiers elsewhere, the first value of a window."""
    clock = ManualClock(1_700_000_000.0)
    meter = MemoryMeter(clock=clock)
    for number in range(5):
        clock.advance(10)
        meter.gauge("anchored", labels={"smoothed": "x"}).set(number)
    assert values(meter.query("anchored + 1_000")) == {(("smoothed", "x"),): 1004}
    assert values(meter.query("sum by (smoothed) (anchored)")) == {(("smoothed", "x"),): 4}
    query = 'first_over_time(anchored{smoothed="x"}[35s])'
    assert values(meter.query(query)) == {(("__name__", "anchored"), ("smoothed", "x")): 1}
    assert meter.query("0x1_F").series[0].samples[0].value == 31
    for wrong in ("1__0", "1_", "1_0s"):
        with pytest.raises(BadQuery):
            meter.query(wrong)


def test_a_quantile_of_two_metrics_with_equal_labels_is_an_error(meter: Meter) -> None:
    """Their buckets are not those of one histogram."""
    meter.observe("a", 1)
    meter.observe("b", 5)
    with pytest.raises(QueryError, match="same labelset"):
        meter.query('histogram_quantile(.9, {__name__=~"a_bucket|b_bucket"})')


def test_native_or_classic_is_not_empty(meter: Meter) -> None:
    """Dashboards ask for both, whichever there is; within a quantile or around it."""
    native = "sum(increase(checkout_seconds[10m]))"
    classic = "sum by (le) (increase(checkout_seconds_bucket[10m]))"
    for query in (
        f"histogram_quantile(0.5, {native} or {classic})",
        f"histogram_quantile(0.5, {classic} or {native})",
        f"histogram_quantile(0.5, {native}) or histogram_quantile(0.5, {classic})",
    ):
        (median,) = values(settled(meter, query)).values()
        assert median == pytest.approx(0.5, rel=0.03), query


def test_counters_and_histograms_end_at_the_current_time(meter: Meter) -> None:
    """They do not run on into the future; a histogram is absent before its first event, too."""
    now = math.floor(time.time())
    for query in ("signups_total", "checkout_seconds_count", "checkout_seconds_sum"):
        result = meter.query(query, since=now - 400, until=now + 3_600, step=20)
        moments = [sample.time for sample in result.series[0].samples]
        assert now - 220 <= moments[0] <= now - 80
        assert now - 20 <= moments[-1] <= now + 60
    for query in ("checkout_seconds", "checkout_seconds_bucket", "rate(checkout_seconds[1m])"):
        for at in (now - 400, now + 3_600):
            assert meter.query(query, at=at).series == (), query


def test_histograms_have_quantiles_counts_and_sums(meter: Meter) -> None:
    """Native, and by classic buckets."""
    query = "histogram_quantile(0.5, sum by (le) (increase(checkout_seconds_bucket[10m])))"
    assert values(settled(meter, query))[()] == pytest.approx(0.5, rel=0.045)
    assert values(settled(meter, "increase(checkout_seconds_count[10m])")) == {
        (("shop", "eu"),): 100
    }
    sums = values(settled(meter, "increase(checkout_seconds_sum[10m])"))
    assert sums == {(("shop", "eu"),): pytest.approx(50.5)}
    # Where a histogram stores fractional amounts, its sum is a counter.
    assert values(settled(meter, "increase(checkout_seconds_total[10m])")) == sums
    (histogram,) = values(settled(meter, "increase(checkout_seconds[10m])")).values()
    assert isinstance(histogram, QueryHistogram)
    assert histogram.count == 100
    assert sum(bucket.count for bucket in histogram.buckets) == pytest.approx(100)
    assert all(b.lower < b.upper for b in histogram.buckets)
    buckets = values(settled(meter, "increase(checkout_seconds_bucket[10m])"))
    bounds = {float(dict(labels)["le"]): count for labels, count in buckets.items()}
    assert bounds[math.inf] == 100
    assert len(bounds) <= 66
    infinite = settled(meter, 'increase(checkout_seconds_bucket{le="+Inf"}[10m])')
    assert list(values(infinite).values()) == [100]


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60),
    st.sampled_from([0.0, 0.07, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0]),
)
@settings(max_examples=scaled(15), deadline=None)
def test_quantiles_are_as_near_as_those_of_summaries(observed: list[float], q: float) -> None:
    """Within 2.17 % of the value of the nearest rank; of counts and of rates."""
    clock = ManualClock(1_700_000_000.0)
    meter = MemoryMeter(clock=clock)
    for value in observed:
        meter.observe("took", value)
        meter.observe("took", -value)
    clock.advance(60)
    ranked = sorted([*observed, *(-value for value in observed)])
    exact = ranked[max(math.ceil(round(q * len(ranked), 9)), 1) - 1]
    for query in ("took", "rate(took[5m])", "sum(rate(took_bucket[5m])) by (le)"):
        (quantile,) = values(meter.query(f"histogram_quantile({q}, {query})")).values()
        assert math.isclose(quantile, exact, rel_tol=RELATIVE_ERROR * (1 + 1e-9)), query


def test_a_query_over_time_has_samples_by_step(meter: Meter) -> None:
    """From `since` to `until`, or the time that ends now."""
    now = math.floor(time.time())
    result = meter.query("increase(signups_total[1h])", since=now - 65, until=now - 5, step="30s")
    assert result.kind == "matrix"
    assert [sample.time for sample in result.series[0].samples] == [now - 65, now - 35, now - 5]
    assert [sample.value for sample in result.series[0].samples] == pytest.approx([12] * 3)
    assert len(meter.query("vector(1)", last="100s").series[0].samples) in (100, 101)
    at = datetime.now(UTC)
    assert meter.query("time()", at=at).series[0].samples[0].value == pytest.approx(at.timestamp())
    assert meter.query('"text"').text == "text"
    assert meter.query("time()").kind == "scalar"
    assert meter.query("signups_total[1h]").kind == "matrix"


def test_selectors_find_names_by_pattern(meter: Meter) -> None:
    """As metric browsers ask for all of them."""
    names = {one.labels["__name__"] for one in meter.query('{__name__=~".+",}').series}
    assert names >= {"signups_total", "queue", "checkout_seconds", "checkout_seconds_bucket"}
    assert meter.query('{__name__=~"nothing.*"}').series == ()
    assert meter.query("nothing").series == ()


def test_a_series_appears_with_its_first_count(meter: Meter) -> None:
    """Its increase is complete, and there is nothing before."""
    now = time.time()
    assert meter.query("increase(signups_total[10m])", at=now - 10_000).series == ()
    assert meter.query("signups_total", at=now - 10_000).series == ()


@pytest.mark.parametrize(
    "options",
    [
        {"until": 5},
        {"step": 5},
        {"last": "2x"},
        {"last": -1},
        {"at": 5, "last": 5},
        {"since": 5, "last": 5},
        {"since": 0, "step": 0},
    ],
)
def test_times_that_contradict_each_other_are_refused(
    options: dict[str, Any], open_meter: OpenMeter
) -> None:
    """With an error that names them."""
    with pytest.raises(InvalidValue):
        open_meter().query("time()", **options)


def test_errors_of_queries(open_meter: OpenMeter) -> None:
    """Syntax, limits, and meters that answer none."""
    meter = open_meter()
    with pytest.raises(BadQuery):
        meter.query("sum(")
    with pytest.raises(QueryError, match="11,000"):
        meter.query("time()", since=0, until=11_001, step=1)
    assert len(meter.query("time()", since=0, until=11_000, step=1).series[0].samples) == 11_001
    with pytest.raises(TypeError):
        meter.query(b"x")  # type: ignore[arg-type]
    assert Meter("off").query("x").series == ()
    assert MemoryMeter().query("x").series == ()


def test_labels_that_prometheus_reserves_are_renamed(open_meter: OpenMeter) -> None:
    """And series that become one are exported once."""
    meter = open_meter()
    meter.observe("h", 1, labels={"le": "x", "quantile": "y", "__z": "z"})
    (labels,) = (one.labels for one in meter.query("h").series)
    assert labels == {
        "__name__": "h",
        "exported_le": "x",
        "exported_quantile": "y",
        "exported___z": "z",
    }
    meter.count("c.d", 1)
    meter.count("c_d", 2)
    assert values(meter.query("c_d_total")) == {(("__name__", "c_d_total"),): 1}


def test_a_bound_that_a_matcher_names_exists(meter: Meter) -> None:
    """As Apdex asks for it: the share of observations up to a value."""
    query = 'sum(increase(checkout_seconds_bucket{le="0.3"}[10m]))'
    assert values(settled(meter, query))[()] == pytest.approx(30, abs=1.5)
    query = 'sum by (le) (increase(checkout_seconds_bucket{le=~"0.25|0.750"}[10m]))'
    assert values(settled(meter, query)) == {
        (("le", "0.25"),): pytest.approx(25, abs=1.5),
        (("le", "0.750"),): pytest.approx(75, abs=1.5),
    }
    (low, high) = (
        values(settled(meter, f'sum(increase(checkout_seconds_bucket{{le="{le}"}}[10m]))'))
        for le in ("-1", "5000")
    )
    assert (low[()], high[()]) == (0, 100)


def test_foreign_keys_are_left_out(open_meter: OpenMeter, client: Any) -> None:
    """A key of another type does not fail the query."""
    meter = open_meter()
    for name in ("x", "y"):
        meter.count(name)
    client.delete("redmeter:count:1:x")
    client.set("redmeter:count:1:x", "not a hash")
    assert len(meter.query('{__name__=~"[xy]_total"}').series) == 1


def test_more_histograms_than_a_query_reads_are_refused(
    open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the remedy."""
    monkeypatch.setattr(promql_source, "MAX_SELECTED_HISTOGRAMS", 1)
    meter = open_meter()
    for shop in "ab":
        meter.observe("h", 1, labels={"shop": shop})
    with pytest.raises(QueryError, match="matchers"):
        meter.query("h")
    assert len(meter.query('h{shop="a"}').series) == 1
