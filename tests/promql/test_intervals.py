"""Range functions over stored intervals: closed forms, properties of the cumulative function."""

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promql.interval_source import Events, Memory, cumulative, kept, labels_of
from redmeter.promql.evaluator import Answer, Engine
from redmeter.promql.intervals import Intervals, Native
from redmeter.promql.intervals.buckets import (
    MAX_CLASSIC_BOUNDS,
    classic_buckets,
    full_resolution,
    named_bounds,
)
from redmeter.promql.intervals.grid import FLUSHED, make_grid
from redmeter.promql.nodes import Matcher
from redmeter.promql.parser import parse_query
from redmeter.promql.range_functions import FUNCTIONS
from redmeter.promql.values import LabelSet, Vector
from support.examples import scaled

#: Precisions of which neighbours share edges, and one pair, 5 and 7, that rarely does.
RETENTION = {1: 10, 5: 12, 60: 10}
UNEVEN = {5: 6, 7: 20}
NOW = 100_000.5


def engine(memory: Memory) -> Engine:
    """Return an engine over a store in memory."""
    return Engine(Intervals(memory), rewrite=full_resolution)


def counted(events: Events, now: float = NOW, retention: dict[int, int] = RETENTION) -> Engine:
    """Return an engine over one counter, x_total."""
    memory = Memory(now, retention)
    memory.counters[labels_of("x_total")] = events
    return engine(memory)


def values(answer: Answer) -> dict[LabelSet, list[float | None]]:
    """Return an answer's values by labels, None where there is none."""
    found = answer.value
    assert isinstance(found, Vector)
    return {
        labels: [
            float(value) if there else None
            for value, there in zip(found.values[row], found.present[row], strict=True)
        ]
        for row, labels in enumerate(found.labels)
    }


def one(of: Engine, query: str, at: float) -> float | None:
    """Return the value of the only series of an instant query; None if there is none."""
    found = list(values(of.instant(query, round(at * 1000))).values())
    assert len(found) < 2
    return found[0][0] if found else None


events = st.lists(
    st.tuples(st.integers(int(NOW) - 700, int(NOW) - 3), st.integers(1, 9)), min_size=1, max_size=30
)


@given(events, st.sampled_from([RETENTION, UNEVEN]))
@settings(max_examples=scaled(60), deadline=None)
def test_the_increase_between_two_edges_is_exact(given: Events, retention: dict[int, int]) -> None:
    """It is the number of events between them, however wide the intervals are."""
    grid = make_grid(retention, NOW, 0)
    edges = [int(edge) // 1000 for edge in grid.edges[:-1] if edge <= grid.horizon]
    of = counted(given, retention=retention)
    for start, end in itertools.pairwise(edges[:: max(1, len(edges) // 8)]):
        expected = sum(count for at, count in given if start <= at < end)
        found = one(of, f"increase(x_total[{end - start}s])", end)
        if expected or any(at < end for at, _ in given):
            assert found == expected
        else:
            assert found in (None, 0)


@given(events, st.integers(1, 50), st.integers(0, 400))
@settings(max_examples=scaled(60), deadline=None)
def test_increases_of_neighboring_windows_add_up(given: Events, width: int, shift: int) -> None:
    """Nothing is counted twice or not at all, wherever windows begin."""
    of = counted(given)
    end, count = NOW - 3 - shift / 1000, 8
    every = [one(of, f"increase(x_total[{width}s])", end - i * width) for i in range(count)]
    whole = one(of, f"increase(x_total[{width * count}s])", end)
    assert math.isclose(sum(each or 0 for each in every), whole or 0, abs_tol=1e-6)


@given(events)
@settings(max_examples=scaled(40), deadline=None)
def test_a_counter_never_falls_and_ends_with_its_total(given: Events) -> None:
    """Also between edges."""
    times = range(int(NOW * 1000) - 80 * 7_333, int(NOW * 1000) + 1, 7_333)
    answer = counted(given).range("x_total", times[0], times[-1], times.step)
    (row,) = values(answer).values()
    known = [value for value in row if value is not None]
    assert known == sorted(known)
    total = sum(count for _, count in given)
    assert one(counted(given), "x_total", NOW) == total
    assert one(counted(given), "resets(x_total[1m])", NOW) == 0


def test_the_first_count_of_a_series_is_not_lost() -> None:
    """Before it the counter is 0, and the series exists from it on."""
    of = counted([(99_950, 7)])
    assert one(of, "increase(x_total[5m])", NOW - 5) == 7
    assert one(of, "rate(x_total[1m])", NOW - 5) == pytest.approx(7 / 60)
    assert one(of, "increase(x_total[1m])", 99_940) is None
    assert one(of, "x_total", 99_940) is None


def test_a_counter_older_than_what_is_kept_has_no_value_before() -> None:
    """Its events before the oldest interval are known only as a sum."""
    of = counted([(50_000, 7), (99_990, 1)])
    oldest = 99_960 - 9 * 60
    assert one(of, "increase(x_total[1m])", oldest + 60) == 0
    assert one(of, "increase(x_total[1m])", oldest + 59) is None
    assert one(of, "x_total", NOW) == 8


def test_between_edges_a_count_is_evenly_spread() -> None:
    """Of 60 events in a minute, 20 are in a third of it."""
    of = counted([(99_600, 60), (50_000, 1)])
    assert one(of, "increase(x_total[20s])", 99_640) == pytest.approx(20)
    assert one(of, "increase(x_total[2m])", 99_660) == pytest.approx(60)


@given(events, st.integers(1, 400), st.integers(-5, 60))
@settings(max_examples=scaled(60), deadline=None)
def test_an_increase_is_never_more_than_the_events(given: Events, width: int, ago: int) -> None:
    """Also of a window that ends now or later: nothing is extrapolated."""
    of = counted(given)
    increase = one(of, f"increase(x_total[{width}s])", NOW - ago)
    assert increase is None or increase <= sum(count for _, count in given)


@pytest.mark.parametrize("window", ["15s", "1m", "5m", "10m"])
def test_the_increase_of_a_burst_is_whole_at_the_current_time(window: str) -> None:
    """A rule `increase(x_total[1m]) > 100` does not fire for 100 events."""
    of = counted([(99_994.0, 100)])
    assert one(of, f"increase(x_total[{window}])", NOW) == 100
    assert one(of, f"increase(x_total[{window}]) > 100", NOW) is None


def test_increases_beyond_two_to_the_power_of_53_are_exact() -> None:
    """Counts are subtracted before they become floats, whichever of them is large."""
    of = counted([(99_800.0, 7), (99_900.0, 2**60), (99_990.0, 10)])
    assert one(of, "increase(x_total[20s])", 99_995) == 10
    assert one(of, "increase(x_total[1m])", 99_840) == 7
    assert one(of, "irate(x_total[1m])", 99_840) == 7 / 60
    assert one(of, "x_total", NOW) == float(2**60 + 17)


def test_the_newest_two_seconds_are_not_measured() -> None:
    """Events of that time may not have arrived: a steady rate stays steady."""
    steady = [(float(second), 3) for second in range(99_990 - 600, int(NOW) - 1)]
    of = counted(steady)
    for at in (NOW - 3, NOW - 2, NOW - 1, NOW, NOW + 1):
        assert one(of, "rate(x_total[5s])", at) == pytest.approx(3, rel=1e-9)
    assert one(of, "rate(x_total[1s])", NOW) is None
    assert one(of, "timestamp(x_total)", NOW) == NOW - FLUSHED / 1000


def test_other_functions_see_the_edges_as_samples() -> None:
    """changes() and irate() by interval; a window without an edge has the value held."""
    of = counted([(99_700, 1), (99_760, 5), (99_990.0, 2)])
    assert one(of, "changes(x_total[5m])", 99_900) == 2
    assert one(of, "irate(x_total[5m])", 99_800) == pytest.approx(5 / 60)
    assert one(of, "max_over_time(x_total[10s])", 99_850) == 6
    assert one(of, "count_over_time(x_total[10s])", 99_850) == 1
    assert one(of, "delta(x_total[2m])", 99_840) == 5


def test_an_info_tells_since_when_intervals_are_wider_than_windows() -> None:
    """And there is none where they are not."""
    of = counted([(99_000, 1), (99_990, 1)])
    answer = of.range("rate(x_total[10s])", 99_700_000, 99_995_000, 5_000)
    (info,) = answer.infos
    assert "windows of 10s before" in info
    assert "intervals of up to 1m" in info
    assert of.range("rate(x_total[1m])", 99_700_000, 99_995_000, 5_000).infos == []


#: Every function of windows, but resets(), which is always 0, with its other arguments.
RANGE_FUNCTIONS = {name: f"{name}(%s)" for name in FUNCTIONS if name != "resets"}
RANGE_FUNCTIONS["quantile_over_time"] = "quantile_over_time(0.5, %s)"
RANGE_FUNCTIONS["predict_linear"] = "predict_linear(%s, 60)"


@pytest.mark.parametrize("function", RANGE_FUNCTIONS)
@pytest.mark.parametrize("name", ["x_total", "h", "g"])
def test_every_function_informs_about_intervals_wider_than_windows(
    name: str, function: str
) -> None:
    """Counters, histograms and gauges; where a window has two intervals, there is nothing."""
    memory = Memory(NOW, RETENTION)
    moments = [99_400 + 7 * i for i in range(85)]
    memory.counters[labels_of("x_total")] = [(at, 1 + at % 3) for at in moments]
    memory.natives[labels_of("h")] = {1: [(at, 1) for at in moments]}
    memory.gauges[labels_of("g")] = [(at, at % 5) for at in moments]
    of = engine(memory)
    for window, at, number in (("20s", 99_700, 1), ("10s", 99_800, 1), ("2m", 99_700, 0)):
        answer = of.instant(RANGE_FUNCTIONS[function] % f"{name}[{window}]", at * 1000)
        infos = [info for info in answer.infos if "of up to" in info]
        assert len(infos) == number, (window, at)


def test_a_window_that_begins_before_the_oldest_interval_is_reported() -> None:
    """Windows of gauges are cut; those of counters have no value."""
    memory = Memory(NOW, RETENTION)
    memory.counters[labels_of("x_total")] = [(50_000, 1), (99_900, 1)]
    memory.gauges[labels_of("g")] = [(99_900, 1)]
    for query in ("increase(x_total[1h])", "max_over_time(g[1h])"):
        (info,) = engine(memory).instant(query, 99_950_000).infos
        assert "not kept" in info
        assert engine(memory).instant(query.replace("1h", "5m"), 99_950_000).infos == []


def test_counters_without_a_grand_total_count_too() -> None:
    """Other programs write intervals alone: the sum of what is kept is the total."""
    memory = Memory(NOW, RETENTION)
    memory.counters[labels_of("x_total")] = [(99_950, 4), (99_990, 1)]
    stored = memory.read([], 0, engine(memory).limits)
    grid = stored.counters[0].grid
    row = kept([(99_950, 4), (99_990, 1)], RETENTION, NOW)
    found = cumulative(grid, [()], [row], [0])
    assert found.values[0, 0] == 0
    assert found.values[0, -1] == 5
    assert found.complete[0]


@pytest.mark.parametrize("negative", [False, True])
def test_buckets_that_are_shown_keep_all_counts(negative: bool) -> None:
    """Their bounds are those of buckets, and +Inf; a quantile of them is near."""
    memory = Memory(NOW, RETENTION)
    buckets = {index: [(99_980.0, 1)] for index in range(-100, 200)}
    memory.natives[labels_of("h_bucket")] = buckets
    (native,) = memory.read([], 0, engine(memory).limits).natives
    if negative:
        native = Native(native.labels, native.table, (), native.positive)
    (table,) = classic_buckets([native])
    bounds = [float(dict(labels)["le"].replace("+Inf", "inf")) for labels in table.labels]
    assert bounds == sorted(bounds)
    assert len(bounds) <= MAX_CLASSIC_BOUNDS + 2
    assert bounds[-1] == math.inf
    last = table.values[:, -1]
    assert list(last) == sorted(last)
    assert last[-1] == 300
    low, high = (-(2 ** (199 / 16)), 0) if negative else (2 ** (-101 / 16), 2 ** (199 / 16))
    assert bounds[0] == pytest.approx(low, rel=0.5)
    assert bounds[-2] == pytest.approx(high, rel=0.5)
    for bound, count in zip(bounds[:-1], last, strict=False):
        exact = (
            sum(
                (-(2 ** ((index - 1) / 16)) if negative else 2 ** (index / 16))
                <= bound * (1 + 1e-12)
                for index in buckets
            )
            if bound > 0 or not negative
            else None
        )
        assert exact is None or count == exact


def test_named_bounds_are_interpolated_between_those_of_buckets() -> None:
    """Exact at the bounds of native buckets, negative ones included; spelled as asked."""
    memory = Memory(NOW, RETENTION)
    memory.natives[labels_of("h_bucket")] = {17: [(99_980.0, 60)], 33: [(99_990.0, 40)]}
    (native,) = memory.read([], 0, engine(memory).limits).natives
    middle = 2 ** (1 + 1 / 32)
    named = ("2", str(middle), "4.0", "8", "+5", "0")
    (table,) = classic_buckets([native], named)
    counts = dict(zip((dict(own)["le"] for own in table.labels), table.values[:, -1], strict=True))
    assert [counts[text] for text in named] == pytest.approx([0, 30, 60, 100, 100, 0])
    mirrored = Native(native.labels, native.table, (), native.positive)
    (table,) = classic_buckets([mirrored], (f"-{middle}",))
    assert table.values[-1, -1] == pytest.approx(70)
    matchers = [
        *(Matcher("le", "=", "0.3"), Matcher("le", "=~", r"(1|2\.5|.+)")),
        *(Matcher("le", "!=", "7"), Matcher("x", "=", "8"), Matcher("le", "=", "+Inf")),
    ]
    assert named_bounds(matchers) == ("0.3", "1", "2.5")


def gauge(samples: Sequence[tuple[float, float]]) -> Engine:
    """Return an engine over one gauge, g."""
    memory = Memory(NOW, RETENTION)
    memory.gauges[labels_of("g")] = list(samples)
    return engine(memory)


def test_a_gauge_holds_its_value_for_five_minutes() -> None:
    """From the moment it was set."""
    of = gauge([(99_600.5, 4), (99_990.25, 9)])
    assert one(of, "g", 99_600) is None
    assert one(of, "g", 99_601) == 4
    assert one(of, "g", 99_900) == 4
    assert one(of, "g", 99_901) is None
    assert one(of, "g", NOW) == 9
    assert one(of, "timestamp(g)", NOW) == 99_990.25


def test_windows_of_gauges_take_one_precision() -> None:
    """The finest that holds all of the window; without a sample in it, the value held."""
    of = gauge([(99_992 + i, i) for i in range(8)])
    assert one(of, "count_over_time(g[5s])", 99_999) == 5
    assert one(of, "avg_over_time(g[5s])", 99_999) == 5
    # One sample of each 5 seconds: of 99,990 and of 99,995.
    assert one(of, "count_over_time(g[30s])", 99_999) == 2
    assert one(of, "max_over_time(g[30s])", 99_999) == 7
    held = gauge([(99_700, 3)])
    assert one(held, "avg_over_time(g[10s])", 99_800) == 3
    assert one(held, "quantile_over_time(0.5, g[10s] @ 99800)", 99_900) == 3


def test_extremes_and_the_last_value_of_a_gauge_are_those_of_all_samples() -> None:
    """Also in a window that only the widest intervals hold: each sample is a value it had."""
    of = gauge([(99_500, 3), (99_550, 99), (99_590, 4), (99_993, 50), (99_994, 1), (99_998, 7)])
    at = 99_997
    assert one(of, "max_over_time(g[8m])", at) == 50
    assert one(of, "min_over_time(g[8m])", at) == 1
    assert one(of, "last_over_time(g[8m])", at) == 1
    assert one(of, "last_over_time(g[8m])", 99_999) == 7
    # As far as samples are averaged, each minute has one.
    assert one(of, "count_over_time(g[8m])", 99_999) == 2


def histogram() -> Engine:
    """Return an engine over one histogram, h, of values in two buckets."""
    memory = Memory(NOW, RETENTION)
    # Buckets 1 and 17: (1, 1.04] and (2, 2.09].
    memory.natives[labels_of("h", route="/")] = {1: [(99_970, 60)], 17: [(99_980, 40)]}
    return engine(memory)


def test_quantiles_of_buckets_have_the_full_resolution() -> None:
    """histogram_quantile() of x_bucket reads the native histogram."""
    of = histogram()
    native = one(of, "histogram_quantile(0.5, rate(h[1m]))", 99_995)
    assert native is not None
    assert 1 < native <= 2 ** (1 / 16)
    for query in (
        "histogram_quantile(0.5, sum by (le) (rate(h_bucket[1m])))",
        "histogram_quantile(0.5, sum without (route) (increase(h_bucket[1m])) / 60)",
        "histogram_quantile(0.5, (2 * rate(h_bucket[1m])))",
        "histogram_quantile(0.5, avg(irate(h_bucket[1m])) by (le, route)) or vector(1)",
    ):
        node = full_resolution_of(query)
        assert "h_bucket" not in node, query
    assert one(of, "histogram_quantile(0.5, sum by (le) (rate(h_bucket[1m])))", 99_995) == native
    assert one(of, "histogram_count(increase(h[1m]))", 99_995) == 100
    assert one(of, "histogram_fraction(0, 1.5, increase(h_bucket[1m]))", 99_995) == pytest.approx(
        0.6
    )


def test_stored_histograms_are_trimmed() -> None:
    """</ and >/ read all buckets, also where only the count of the result is needed."""
    of = histogram()
    assert one(of, "histogram_count(h </ 1.5)", 99_995) == 60
    assert one(of, "histogram_count(increase(h[1m]) >/ 1.5)", 99_995) == 40
    assert one(of, "histogram_count(h_bucket </ 1.5)", 99_995) is None


def full_resolution_of(query: str) -> str:
    """Return a query's nodes after they are rewritten, as text."""
    return repr(full_resolution(parse_query(query)))


def test_buckets_that_are_shown_are_not_rewritten() -> None:
    """Nor those of which one is chosen by its bound."""
    for query in (
        "rate(h_bucket[1m])",
        'histogram_quantile(0.5, rate(h_bucket{le="1"}[1m]))',
        "histogram_quantile(0.5, sum by (route) (rate(h_bucket[1m])))",
        "histogram_quantile(0.5, max by (le) (rate(h_bucket[1m])))",
        'histogram_quantile(0.5, rate({__name__=~"h_bucket"}[1m]))',
    ):
        assert "h_bucket" in full_resolution_of(query), query
