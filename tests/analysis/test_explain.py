"""Decompositions sum exactly, closed forms hold, and causes are named where there are any."""

import math
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redmeter.analysis.comparing.explain import (
    Effects,
    HistogramRow,
    above,
    decompose,
    explain_count,
    explain_p95,
    explain_rate,
    judged,
    quantile,
    replaced_effect,
)
from redmeter.analysis.comparing.noise import Windows
from redmeter.analysis.comparing.outliers import Events, groups_of
from redmeter.analysis.comparing.significance import incomplete_beta, split_probability, sum_counts
from support.examples import scaled

COUNTS = st.integers(0, 10**9)
#: Windows of 15 intervals.
QUARTERS = Windows(15, 15)


@st.composite
def rates(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Requests and failures before and after, with requests on both sides."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        before, after = draw(COUNTS), draw(COUNTS)
        failed = draw(st.integers(0, before)), draw(st.integers(0, after))
        rows.append((before, failed[0], after, failed[1]))
    rows.append((draw(st.integers(1, 10**9)), 0, draw(st.integers(1, 10**9)), 0))
    return rows


def rate_of(rows: list[tuple[int, int, int, int]], side: int) -> Fraction:
    return Fraction(sum(row[side + 1] for row in rows), sum(row[side] for row in rows))


@given(rates())
def test_rate_and_mix_effects_sum_exactly_to_the_change(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """With any requests and failures, also of groups that are on one side only."""
    effects = decompose(rows)
    change = rate_of(rows, 2) - rate_of(rows, 0)
    assert sum(effect.rate + effect.mix for effect in effects) == change


@given(rates(), st.integers(0, 12), st.integers(1, 10**6))
def test_a_decomposition_of_a_group_in_two_equal_halves_is_the_same(
    rows: list[tuple[int, int, int, int]], at: int, factor: int
) -> None:
    """Splitting a group into parts of the same rate and growth splits its effects."""
    one = rows[at % len(rows)]
    parts = tuple(factor * n for n in one)
    split = [(2 * n0, 2 * f0, 2 * n1, 2 * f1) for n0, f0, n1, f1 in rows]
    whole = decompose(split)[at % len(rows)]
    split[at % len(rows)] = one
    split.append(one)
    halves = decompose(split)
    assert halves[at % len(rows)].rate + halves[-1].rate == whole.rate
    assert halves[at % len(rows)].mix + halves[-1].mix == whole.mix
    assert len(parts) == 4


def test_a_rate_effect_in_closed_form() -> None:
    """Traffic is unchanged, and one of two equal groups fails in 10 % instead of 2 %."""
    effects = decompose([(100, 2, 100, 10), (100, 2, 100, 2)])
    half = Fraction(1, 2)
    assert effects == [
        Effects(Fraction(8, 100) * half, Fraction(0)),
        Effects(Fraction(0), Fraction(0)),
    ]


def test_a_mix_effect_in_closed_form() -> None:
    """Rates are unchanged, and the failing group has three quarters of the requests, not half."""
    effects = decompose([(100, 10, 300, 30), (100, 0, 100, 0)])
    assert [effect.rate for effect in effects] == [0, 0]
    assert sum(effect.mix for effect in effects) == Fraction(75, 1000) - Fraction(50, 1000)


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=2, max_size=10),
    st.sampled_from([Windows(1, 2), Windows(15, 15), Windows(4, 2, adjacent=False)]),
)
def test_changes_of_counts_sum_to_the_change_within_each_label(
    counts: list[tuple[int, int]], windows: Windows
) -> None:
    """Of two labels at once; their shares sum to 1."""
    rows = [
        Events({"route": str(at), "method": "GET" if at % 2 else "POST"}, before, after)
        for at, (before, after) in enumerate(counts)
    ]
    found = explain_count(rows, windows)
    assert {one.label for one in found.dimensions} == {"route", "method"}
    for dimension in found.dimensions:
        changes = [group.change for group in dimension.groups]
        assert sum(changes) + (dimension.rest or 0.0) == found.after - found.before
        if found.after != found.before:
            assert math.isclose(sum(group.share or 0.0 for group in dimension.groups), 1.0)


@given(st.dictionaries(st.integers(-60, 60), st.integers(1, 50), min_size=1, max_size=12))
def test_replacing_a_group_with_itself_has_no_effect(counts: dict[int, int]) -> None:
    """A route that was always slow explains nothing."""
    buckets = {2 ** (index / 16): float(count) for index, count in counts.items()}
    assert replaced_effect(buckets, buckets, buckets, 1.0) == 0.0
    slow = {edge * 8: count for edge, count in buckets.items()}
    assert replaced_effect(sum_counts([buckets, slow]), slow, slow, 1.0) == pytest.approx(0)


def test_the_effect_on_a_p95_in_closed_form() -> None:
    """Of two groups with 100 values each, one moves to the next power of two."""
    fast, slow = {1.0: 100.0}, {2.0: 100.0}
    whole = sum_counts([fast, slow])
    effect = replaced_effect(whole, fast, slow, 1.0)
    edge = 2 ** (1 / 16)
    at_present = 2 / edge + (2 - 2 / edge) * 0.9
    as_before = 1 / edge + (1 - 1 / edge) * 0.95
    assert effect == pytest.approx(at_present - as_before)


def test_the_baseline_of_a_replaced_group_is_scaled_to_the_window() -> None:
    """An hour of a steady group has four times the values of a quarter of an hour."""
    steady = {1.0: 400.0}
    quarter = {1.0: 100.0}
    whole = sum_counts([quarter, {4.0: 10.0}])
    assert replaced_effect(whole, steady, quarter, 0.25) == pytest.approx(0)
    assert replaced_effect(whole, steady, quarter, 1.0) > 0


@given(
    st.dictionaries(st.integers(-60, 60), st.integers(1, 50), min_size=1, max_size=12),
    st.floats(0.01, 0.99),
)
def test_the_part_above_a_quantile_is_the_rest(counts: dict[int, int], q: float) -> None:
    """A quantile and the number of values above it agree."""
    buckets = {2 ** (index / 16): float(count) for index, count in counts.items()}
    size = sum(buckets.values())
    assert above(buckets, quantile(buckets, q)) == pytest.approx((1 - q) * size, abs=1e-6)


# --- Causes --------------------------------------------------------------------------------


def counted(factor: float, *, common: float = 1.0, seed: int = 1) -> list[Events]:
    """Label sets of 20 routes and three methods; route /7 grows by a factor, all by another."""
    random, rows = Random(seed), []
    for route in range(20):
        for method, share in (("GET", 0.7), ("POST", 0.2), ("PUT", 0.1)):
            values = [round(random.gauss(mean := 500 * share, math.sqrt(mean))) for _ in range(45)]
            growth = common * (factor if route == 7 else 1)
            after = round(growth * sum(values[30:]))
            labels = {"route": f"/{route}", "method": method}
            rows.append(Events(labels, sum(values[15:30]), after, values[:30]))
    return rows


def named(rows: list[Events]) -> list[tuple[str, str | None]]:
    return [(one.label, one.value) for one in explain_count(rows, QUARTERS).causes]


@pytest.mark.parametrize("factor", [0.0, 0.4, 2.5, 5.0, 50.0])
@pytest.mark.parametrize("common", [0.5, 1.0, 2.0])
def test_the_group_that_changed_is_the_only_cause(factor: float, common: float) -> None:
    """However the traffic of all routes changed at the same time."""
    assert named(counted(factor, common=common)) == [("route", "/7")]


@pytest.mark.parametrize(("factor", "common"), [(0.5, 2.0), (0.5, 3.0), (2.0, 0.5), (1.5, 0.5)])
def test_a_group_that_stayed_while_all_others_changed_is_no_cause(
    factor: float, common: float
) -> None:
    """Nor one that changed less than they did; but not all groups are alike."""
    answer = explain_count(counted(factor, common=common), QUARTERS)
    assert answer.causes == []
    assert (answer.changed, answer.even, answer.uneven) == (True, False, True)


@pytest.mark.parametrize("common", [0.3, 1.0, 4.0])
def test_a_change_of_all_groups_names_none(common: float) -> None:
    """It is even, unless nothing changed."""
    found = explain_count(counted(1.0, common=common), QUARTERS)
    assert found.causes == []
    assert found.even is (common != 1.0)


def test_two_causes_are_named_by_size() -> None:
    """And neither is named twice, by another label."""
    rows = counted(4.0)
    for row in rows:
        if row.labels["route"] == "/9":
            row.after *= 2
    assert named(rows) == [("route", "/7"), ("route", "/9")]


def test_a_group_that_fell_is_not_the_first_cause_of_a_rise() -> None:
    """Though its change is the larger one."""
    rows = counted(3.0, common=1.2)
    for row in rows:
        if row.labels["route"] in ("/9", "/10", "/11"):
            row.after = 0
        if row.labels["route"] == "/7":
            row.before, row.after = row.before // 3, row.after // 3
            row.history = [n // 3 for n in row.history]
    assert sum(row.after for row in rows) > sum(row.before for row in rows)
    assert named(rows)[0] == ("route", "/7")
    assert len(named(rows)) == 4


def test_a_new_group_is_a_cause() -> None:
    """Though it grew from nothing."""
    rows = counted(1.0)
    rows.append(Events({"route": "/new", "method": "GET"}, 0, 400, [0] * 30))
    assert named(rows) == [("route", "/new")]


def test_too_few_intervals_name_nothing() -> None:
    """The noise is unknown."""
    rows = counted(5.0)
    for row in rows:
        row.history = row.history[:7]
    assert named(rows) == []
    assert judged(7) != ""
    assert judged(8) == ""


def failing(factor: float, traffic: float = 1.0) -> list[Events]:
    """Label sets of 20 routes and two regions, 2 % of whose requests fail; /7 differs."""
    random, rows = Random(3), []
    for route in range(20):
        for region in ("eu", "us"):
            requests = [round(random.gauss(2_000, 40)) for _ in range(45)]
            failed = [round(max(0, random.gauss(40, 6))) for _ in range(45)]
            here = route == 7
            labels = {"route": f"/{route}", "region": region}
            requested = Events(
                labels,
                sum(requests[15:30]),
                round(sum(requests[30:]) * (traffic if here else 1)),
                requests[:30],
            )
            rows.append(
                Events(
                    labels,
                    sum(failed[15:30]),
                    round(sum(failed[30:]) * (factor * traffic if here else 1)),
                    failed[:30],
                    among=requested,
                )
            )
    return rows


def test_the_route_that_fails_more_often_is_the_cause_by_its_rate() -> None:
    """Its effects are those of the decomposition, and all sum to the change."""
    found = explain_rate(failing(5.0), QUARTERS)
    assert [(one.label, one.value) for one in found.causes] == [("route", "/7")]
    (cause,) = found.causes
    assert cause.rate_effect is not None
    assert cause.rate_effect > 0.9 * cause.change
    for dimension in found.dimensions:
        total = sum(group.change for group in dimension.groups) + (dimension.rest or 0)
        assert total == pytest.approx(found.after - found.before, abs=1e-12)


def test_more_requests_to_a_route_that_always_fails_are_a_cause_by_the_mix() -> None:
    """Its error rate is as before."""
    rows = failing(1.0)
    for row in rows:
        if row.labels["route"] == "/3" and row.among:
            row.before, row.history = row.among.before // 2, [n // 2 for n in row.among.history]
            row.among.after *= 6
            row.after = row.among.after // 2
    found = explain_rate(rows, QUARTERS)
    assert [(one.label, one.value) for one in found.causes] == [("route", "/3")]
    assert found.causes[0].mix_effect == pytest.approx(found.causes[0].change, rel=0.1)


def test_more_traffic_at_the_same_rates_has_no_cause() -> None:
    """Neither on one route nor on all."""
    assert explain_rate(failing(1.0, traffic=3.0), QUARTERS).causes == []


def timed(factor: float, *, everywhere: float = 1.0) -> list[HistogramRow]:
    """Histograms of 20 routes; route /7 is slower by a factor, all are by another."""
    rows, shape = [], [8, 9, 10, 11, 12, 13, 14, 15, 16]
    for route in range(20):
        random = Random(route)

        def minute(slower: float, random: Random = random) -> dict[float, float]:
            buckets: dict[float, float] = {}
            for _ in range(40):
                index = random.choice(shape) + random.choice(shape) + 16 * math.log2(slower)
                edge = 2 ** (round(index) / 16)
                buckets[edge] = buckets.get(edge, 0) + 1
            return buckets

        history = [minute(1.0) for _ in range(30)]
        after = sum_counts(minute(everywhere * (factor if route == 7 else 1)) for _ in range(15))
        labels = {"route": f"/{route}", "method": "GET" if route % 2 else "POST"}
        rows.append(HistogramRow(labels, sum_counts(history[15:]), after, history))
    return rows


@pytest.mark.parametrize("factor", [2.0, 5.0])
def test_the_route_that_became_slower_is_the_cause(factor: float) -> None:
    """Its effect is in seconds, without a share."""
    found = explain_p95(timed(factor), QUARTERS)
    assert [(one.label, one.value) for one in found.causes] == [("route", "/7")]
    assert found.causes[0].share is None
    assert 0 < found.causes[0].change <= found.after - found.before + 1e-9 + 0.1
    assert all(dimension.rest is None for dimension in found.dimensions)


def test_a_route_that_became_faster_is_no_cause_of_a_rise() -> None:
    """Though it differs from all others."""
    fast, mixed, slow = {1.0: 40.0}, {1.0: 28.0, 8.0: 12.0}, {2.0: 10.0, 3.0: 20.0, 4.0: 10.0}
    rows = []
    for route in range(10):
        before, after = {3: (fast, slow), 7: (mixed, fast)}.get(route, (fast, fast))
        labels = {"route": f"/{route}"}
        rows.append(
            HistogramRow(labels, sum_counts([before] * 15), sum_counts([after] * 15), [before] * 30)
        )
    found = explain_p95(rows, QUARTERS)
    assert found.after > found.before
    assert [one.value for one in found.causes] == ["/3"]


@pytest.mark.parametrize("everywhere", [1.0, 3.0])
def test_a_slowdown_of_all_routes_names_none(everywhere: float) -> None:
    """A database that is slow is not a route's fault."""
    found = explain_p95(timed(1.0, everywhere=everywhere), QUARTERS)
    assert found.causes == []
    assert found.even is (everywhere != 1.0)


# --- Parts ---------------------------------------------------------------------------------


def test_groups_are_those_of_labels_that_differ() -> None:
    """A series without a label is a group of its own."""
    found = groups_of([{"a": "1", "b": "x"}, {"a": "2", "b": "x"}, {"b": "x"}])
    assert found == {("a", "1"): [0], ("a", "2"): [1], ("a", None): [2]}


@settings(max_examples=scaled(50))
@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.05, 0.95))
def test_the_chance_of_a_split_is_that_of_the_binomial(
    after: int, before: int, share: float
) -> None:
    """The tail of the sum of its probabilities, twice."""
    n = after + before
    parts = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    expected = min(1.0, 2 * min(sum(parts[after:]), sum(parts[: after + 1])))
    assert split_probability(after, before, share) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.floats(0.001, 0.999), st.floats(0.1, 1e5), st.floats(0.1, 1e5))
def test_the_incomplete_beta_function_and_its_mirror_sum_to_one(
    x: float, a: float, b: float
) -> None:
    """I_x(a, b) + I_(1-x)(b, a) = 1; with a = 1 it is 1 - (1 - x)^b."""
    assert incomplete_beta(x, a, b) + incomplete_beta(1 - x, b, a) == pytest.approx(1, abs=1e-9)
    assert incomplete_beta(x, 1.0, b) == pytest.approx(1 - (1 - x) ** b, abs=1e-9)
    assert incomplete_beta(0.0, a, b) == 0.0
    assert incomplete_beta(1.0, a, b) == 1.0
