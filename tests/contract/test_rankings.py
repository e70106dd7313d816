"""Rankings of observed values and of what failed: against all values."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import example
from hypothesis import given as example_of
from hypothesis import strategies as st

from redmeter import InvalidValue, LimitExceeded, Meter, UnknownPrecision, WrongKind
from redmeter.clock import ManualClock
from redmeter.dashboard.api.endpoints import API, ENDPOINTS
from redmeter.reading import ranking, top
from redmeter.reading.join import Joined
from redmeter.reading.ranking import RankedGroup, choose_candidates, upper_bound
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, slice_start
from redmeter.stored.moments import MAX_DOUBLE, Sums
from redmeter.testing import MemoryMeter
from support.observed import Observed, exact_quantile, near, put_observed
from support.servers import Server
from support.stores import OpenMeter, OpenStore, exchanges, rank, server_time

DAY = 86400

#: What is ranked by, computed from all values.
EXACT: dict[str, Callable[[Sequence[float]], float]] = {
    "count": len,
    "total": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "p50": lambda values: exact_quantile(values, 0.5),
    "p95": lambda values: exact_quantile(values, 0.95),
    "p99.9": lambda values: exact_quantile(values, 0.999),
}


def routes(newest: int, number: int, seed: int = 1) -> dict[str, Observed]:
    """Make up times of routes, each by two methods, that differ by more than the bound."""
    rng = random.Random(seed)
    given: dict[str, Observed] = {}
    for n in range(number):
        for method in ("GET", "POST"):
            name = f'took_seconds{{method="{method}",route="/{n}"}}'
            given[name] = [
                (newest - rng.randrange(7_000), rng.lognormvariate(n / 5, 0.3))
                for _ in range(rng.randint(3, 20))
            ]
    return given


def by_route(given: dict[str, Observed]) -> dict[str, list[float]]:
    """Put the values of each route together."""
    found: dict[str, list[float]] = {}
    for name, some in given.items():
        route = name.partition('route="')[2].partition('"')[0]
        found.setdefault(route, []).extend(value for _, value in some)
    return found


@pytest.mark.parametrize("order", EXACT)
def test_routes_are_ranked_as_all_their_values_say(
    client: Any, open_meter: OpenMeter, order: str
) -> None:
    """All label sets of a route merged, also where few histograms are read."""
    newest = slice_start(server_time(client), 60)
    given = routes(newest, 30)
    put_observed(client, given)
    values = by_route(given)
    exact = {route: EXACT[order](some) for route, some in values.items()}
    found = open_meter().top(
        "took_seconds", by="route", precision=60, last="2h", order=order, limit=5
    )
    best = sorted(exact, key=lambda route: (-exact[route], route))[:5]
    if not order.startswith("p"):
        assert [row.key for row in found] == best
    for row in found:
        assert row.key is not None
        assert near(row.value, exact[row.key])
        assert row.count == len(values[row.key])
        # What differs by less than the bound may change places.
        assert row.value >= exact[best[-1]] * 0.97
    assert (found.groups, found.examined) == (30, 20 if order.startswith("p") else 30)


def test_shares_are_of_counts_or_of_totals(client: Any, open_meter: OpenMeter) -> None:
    """So that the totals' say where all the time goes."""
    newest = slice_start(server_time(client), 60)
    put_observed(client, {"a": [(newest, 1.0)] * 3, "b": [(newest, 9.0)]})
    meter = open_meter()

    def shares(order: str) -> list[tuple[str | None, float, float]]:
        rows = meter.top(precision=60, order=order)
        return [(row.key, row.value, row.share) for row in rows]

    assert shares("total") == [("b", 9.0, 0.75), ("a", 3.0, 0.25)]
    assert shares("count") == [("a", 3, 0.75), ("b", 1, 0.25)]
    assert shares("mean") == [("b", 9.0, 0.25), ("a", 1.0, 0.75)]
    assert [row[0] for row in shares("p95")] == ["b", "a"]


def test_totals_past_the_largest_double_are_not_ranked(client: Any, open_meter: OpenMeter) -> None:
    """Nor means of them: no number is better than a cut one; the shares are those of the others."""
    newest = slice_start(server_time(client), 60)
    huge = [(newest, 1.5e308), (newest, 1.7e308)]
    put_observed(client, {"huge": huge, "a": [(newest, 1.5e308)], "b": [(newest, 0.5e308)]})
    memory = MemoryMeter()
    for name, value in (("huge", 1.5e308), ("huge", 1.7e308), ("a", 1.5e308), ("b", 0.5e308)):
        memory.observe(name, value)
    for meter in (open_meter(), memory):
        for order, shares in (("total", [0.75, 0.25]), ("mean", [0.25, 0.25])):
            rows = meter.top(precision=60, order=order)
            assert [(row.key, row.value) for row in rows] == [("a", 1.5e308), ("b", 0.5e308)]
            assert [row.share for row in rows] == shares
            assert (rows.groups, rows.examined, rows.complete) == (3, 2, False)


def test_equal_ones_are_ranked_by_name(client: Any, open_meter: OpenMeter) -> None:
    """Whatever is ranked by; what has no label comes first, as the empty text would."""
    newest = slice_start(server_time(client), 60)
    names = ["x", 'x{a="2"}', 'x{a="10"}', 'x{a="1"}']
    put_observed(client, {name: [(newest, 2.0)] for name in names})
    meter = open_meter()
    for order in EXACT:
        rows = meter.top("x", by="a", precision=60, order=order)
        assert [row.key for row in rows] == [None, "1", "10", "2"]
        by_name = meter.top("x*", precision=60, order=order, limit=2)
        assert [row.key for row in by_name] == ["x", 'x{a="1"}']


def test_only_the_newest_slices_are_ranked_up_to_the_running_one(
    client: Any, open_meter: OpenMeter
) -> None:
    """Neither older ones, nor what lies ahead, nor what the retention no longer holds."""
    newest = slice_start(server_time(client), 3600)
    ages = {"now": 0, "hour": 1, "three": 3, "old": 239, "gone": 240, "ahead": -1}
    put_observed(client, {n: [(newest - 3600 * a, 1.0)] for n, a in ages.items()})
    meter = open_meter()
    for order in ("count", "p50"):
        for slices, seen in ((1, 1), (2, 2), (3, 2), (4, 3), (239, 3), (240, 4)):
            rows = meter.top(precision=3600, last=slices, order=order)
            assert len(rows) == seen
            assert {row.key for row in rows} == set(list(ages)[:seen])


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (5_000, 3_000),
        (5_000, None),
        (None, 5_000),
        (6_500.5, 6_480.25),
        (90, 0),
        (4_000, -9_000),
        (3_000, 4_000),
        (None, 20_000),
    ],
)
def test_a_window_of_the_past_is_ranked_as_all_that_happened_in_it(
    client: Any, any_server: Server, since: float | None, until: float | None
) -> None:
    """Whole slices from the one that holds its beginning; counted and observed, in memory too."""
    now = server_time(client)
    times = [None if ago is None else now - ago for ago in (since, until)]
    oldest, newest = slice_start(now, 60) - 119 * 60, slice_start(now, 60)
    first = oldest if times[0] is None else max(oldest, slice_start(times[0], 60))
    last = newest if times[1] is None else min(newest, slice_start(times[1], 60))
    rng, values, counts = random.Random(6), dict[str, list[float]](), dict[str, int]()
    memory = MemoryMeter(clock=ManualClock(now))
    with Meter(any_server.url) as meter:
        for n in range(600):
            route, at = f"/{n % 7}", now - rng.uniform(1, 7_000)
            value = rng.lognormvariate(n % 7, 0.3)
            for one in (meter, memory):
                one.observe("took_seconds", value, labels={"route": route}, at=at)
                one.count("hits", n % 7 + 1, labels={"route": route}, at=at)
            if first <= slice_start(at, 60) <= last:
                values.setdefault(route, []).append(value)
                counts[route] = counts.get(route, 0) + n % 7 + 1
        assert meter.flush()
        window: dict[str, Any] = {"since": times[0], "until": times[1]}
        for one in (meter, memory):
            rows = one.top("hits", by="route", precision=60, **window)
            assert {row.key: row.count for row in rows} == counts
            # Unless a slice began meanwhile.
            assert abs(rows.intervals - max(0, (last - first) // 60 + 1)) <= 1
            for order, exact in EXACT.items():
                rows = one.top("took_seconds", by="route", precision=60, order=order, **window)
                assert {row.key: row.count for row in rows} == {
                    r: len(v) for r, v in values.items()
                }
                assert all(near(row.value, exact(values[row.key or ""])) for row in rows)


def test_without_a_window_the_newest_sixty_slices_are_ranked(
    client: Any, any_server: Server
) -> None:
    """Where one is given, so many of the newest at most; times that are none are refused."""
    now = server_time(client)
    memory = MemoryMeter(clock=ManualClock(now))
    with Meter(any_server.url) as meter:
        for one in (meter, memory):
            for ago in range(70):
                one.count("hits", at=now - 3600 * ago)
            one.flush()
            windows: list[tuple[dict[str, Any], int]] = [
                ({}, 60),
                ({"until": now}, 70),
                ({"since": now - 7200}, 3),
                ({"last": 2}, 2),
                ({"last": "2h"}, 2),
                ({"last": "7201s"}, 3),
            ]
            for window, count in windows:
                assert [row.count for row in one.top("hits", precision=3600, **window)] == [count]
            with pytest.raises(InvalidValue):
                one.top("hits", precision=60, since=math.nan)


def test_a_window_of_minutes_is_read_from_hours_where_they_fit(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same result as minute by minute; a round trip, two for percentiles."""
    newest = slice_start(server_time(client), 60)
    given = routes(newest, 40, seed=4)
    put_observed(client, given)
    rows = {}
    for order, trips in (("count", 2), ("total", 1), ("mean", 1), ("p95", 2)):
        store = open_store()
        for _ in range(2):  # the first reading of a link, and a later one
            with exchanges(monkeypatch) as seen:
                rows[order] = rank(
                    store, "took_seconds", 60, by="route", last=7200, limit=50, order=order
                )
            assert len(seen) == trips
            assert len(rows[order]) == 40
    store.change_retention([(3600, 0), (5, 0)], histograms=True)
    for order, before in rows.items():
        again = rank(store, "took_seconds", 60, by="route", last=7200, limit=50, order=order)
        assert [row.key for row in again] == [row.key for row in before]
        assert all(math.isclose(a.value, b.value) for a, b in zip(again, before, strict=True))


def test_counters_are_ranked_by_count_where_there_are_both(
    client: Any, open_meter: OpenMeter
) -> None:
    """Observed values where no counter matches, and whenever something else is ranked by."""
    newest = server_time(client)
    put_observed(client, {"both": [(newest, 5.0)], "took": [(newest, 1.0)]})
    meter = open_meter()
    meter.count("both", 7)
    meter.count("hits", 3)

    def rows(*args: Any, **options: Any) -> list[tuple[str | None, float]]:
        return [(row.key, row.value) for row in meter.top(*args, precision=60, **options)]

    assert rows() == [("both", 7), ("hits", 3)]
    assert rows("took") == [("took", 1)]
    assert rows(order="total") == [("both", 5.0), ("took", 1.0)]
    with pytest.raises(WrongKind):
        rows("hits", order="p95")


def test_a_precision_is_that_of_what_is_ranked(client: Any, open_meter: OpenMeter) -> None:
    """Of histograms for observed values, of counters otherwise."""
    meter = open_meter()
    meter.count("hits")
    assert meter.top(precision=1)
    for order in ("p95", "total"):
        with pytest.raises(UnknownPrecision) as caught:
            meter.top("*", precision=1, order=order)
        assert caught.value.kept == tuple(DEFAULT_HISTOGRAMS)


def test_where_leaves_out_series_with_other_labels(client: Any, open_meter: OpenMeter) -> None:
    """Of counters and of observed values."""
    newest = slice_start(server_time(client), 60)
    given = routes(newest, 4)
    put_observed(client, given)
    meter = open_meter()
    for name, some in given.items():
        meter.count(name.replace("took_seconds", "hits"), len(some))
    for name, order in (("hits", "count"), ("took_seconds", "count")):
        rows = meter.top(
            name, by="route", precision=60, last="2h", order=order, labels={"method": "POST"}
        )
        posts = {row.key: row.count for row in rows}
        assert posts == {f"/{n}": len(given[_post(n)]) for n in range(4)}


def _post(number: int) -> str:
    return f'took_seconds{{method="POST",route="/{number}"}}'


def test_what_is_slow_and_rare_is_found_beside_what_is_busy(
    client: Any, open_meter: OpenMeter
) -> None:
    """A large total is not all there is; and of what is busy none can be as slow."""
    newest = slice_start(server_time(client), 60)
    given = {f'x{{a="{n}"}}': [(newest, 1.0)] * 100 for n in range(50)}
    put_observed(client, given | {'x{a="rare"}': [(newest, 60.0)]})
    found = open_meter().top("x", by="a", precision=60, order="p95", limit=2)
    assert [row.key for row in found] == ["rare", "0"]
    assert (found.groups, found.examined, found.complete) == (51, 8, False)
    found = open_meter().top("x", by="a", precision=60, order="p95", limit=1)
    assert [row.key for row in found] == ["rare"]
    assert (found.groups, found.examined, found.complete) == (51, 4, True)


def test_a_slow_tail_is_found_beside_what_is_steady(client: Any, open_meter: OpenMeter) -> None:
    """Its mean and its total are among the lowest."""
    newest = slice_start(server_time(client), 60)
    given: dict[str, Observed] = {
        f'x{{a="{n:03}"}}': [(newest, 1.0 + n / 1000)] * 100 for n in range(100)
    }
    given['x{a="tail"}'] = [(newest, 0.001)] * 93 + [(newest, 10.0)] * 7
    put_observed(client, given)
    meter = open_meter()
    found = meter.top("x", by="a", precision=60, order="p95", limit=5)
    assert found[0].key == "tail"
    assert (found.groups, found.examined, found.complete) == (101, 20, False)
    only = meter.top("x", by="a", precision=60, order="p95", limit=1)
    assert ([row.key for row in only], only.complete) == (["tail"], True)
    assert meter.top("x", by="a", precision=60, order="p95", limit=101).complete
    assert meter.top("x", by="a", precision=60, order="mean", limit=5).complete


#: Values of any size, in two parts that are summed up apart.
_VALUES = st.lists(st.floats(-1e150, 1e150) | st.floats(-100, 100), min_size=1, max_size=40)


@example_of(_VALUES, _VALUES, st.sampled_from([0.0, 0.01, 0.5, 0.9, 0.95, 0.999, 1.0]))
@example([0.0], [2.3e-271], 0.9)  # whose squares are lost
def test_no_percentile_is_above_what_the_moments_allow(
    one: list[float], other: list[float], q: float
) -> None:
    """Neither the exact one nor that which is read of buckets."""
    whole, merged = Sums(), Distribution()
    for part in (one, other):
        summed = Distribution()
        summed.add_all(part)
        moments = summed.moments
        whole.merge(Sums(moments.count, total=moments.total, m2=moments.m2))
        merged.merge(summed)
    highest = upper_bound(whole, q)
    assert merged.quantile(q) <= highest
    assert exact_quantile(one + other, q) <= highest


def test_sums_that_were_cut_bound_nothing() -> None:
    """What stands at the largest double may be larger."""
    assert upper_bound(Sums(2, m2=MAX_DOUBLE), 0.5) == math.inf
    assert upper_bound(Sums(2, total=-MAX_DOUBLE), 0.5) == math.inf
    assert upper_bound(Sums(2, total=4.0), 1.0) == pytest.approx(2.0, rel=0.03)


def test_candidates_are_bounded_by_rows_and_by_series(
    client: Any, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond them nothing is compared; groups that are all too large are an error."""
    newest = slice_start(server_time(client), 60)
    given = {f'x{{a="{n % 2}",b="{n}"}}': [(newest, 1.0 + n % 2)] for n in range(20)}
    put_observed(client, given)
    meter = open_meter()
    put_observed(client, {f'x{{a="small",b="{n}"}}': [(newest, 0.5)] for n in range(5)})
    monkeypatch.setattr(ranking, "MAX_RANKED_HISTOGRAMS", 15)
    found = meter.top("x", by="a", precision=60, order="p95")
    assert [row.key for row in found] == ["1", "small"]
    assert (found.groups, found.examined, found.left_out) == (3, 2, ("0",))
    assert not found.complete
    monkeypatch.setattr(ranking, "MAX_RANKED_HISTOGRAMS", 4)
    with pytest.raises(LimitExceeded) as caught:
        meter.top("x", by="a", precision=60, order="p95")
    assert (caught.value.asked, caught.value.limit) == (5, 4)


def test_a_group_of_all_label_sets_that_one_process_may_write_is_ranked(
    client: Any, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In round trips of a bounded size."""
    newest = slice_start(server_time(client), 60)
    number = 2_000  # REDMETER_MAX_LABEL_SETS, unless it is set otherwise
    given = {f'x{{a="1",b="{n}"}}': [(newest, float(n))] for n in range(number)}
    put_observed(client, given, histograms={60: 120, 3600: 120})
    meter = open_meter()
    with exchanges(monkeypatch) as seen:
        (row,) = meter.top("x", by="a", precision=60, since=newest, order="p50")
    assert row.count == number
    assert near(row.value, number / 2)
    assert len(seen) == number // 1000 + number // 500


@pytest.mark.parametrize(("kind", "number"), [("count", 20_000), ("observe", 2_400)])
def test_no_exchange_of_a_ranking_is_about_more_than_a_thousand_series(
    kind: str, number: int, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where as many are ranked as may be, and with the same result."""
    with server.client() as client:
        newest = slice_start(server_time(client), 60)
        with Meter(server.url, sync=True) as meter:
            meter.count("none")  # the store is there
            names = [f'x{{a="{n % 4}",b="{n}"}}' for n in range(number)]
            if kind == "count":
                with client.pipeline(transaction=False) as pipe:
                    pipe.zadd("redmeter:known:", {f"60:{name}": 0 for name in names})
                    for n, name in enumerate(names):
                        pipe.hset(f"redmeter:count:60:{name}", str(newest), n % 4 + 1)
                    pipe.execute()
            else:
                put_observed(client, {n: [(newest, 1.0)] for n in names}, histograms={60: 120})
            sizes: list[int] = []

            class Counted(Joined):
                def __init__(self, *args: Any, **options: Any) -> None:
                    super().__init__(*args, **options)
                    sizes.append(len(self.members))

            monkeypatch.setattr(top, "Joined", Counted)
            with exchanges(monkeypatch) as seen:
                rows = meter.top("x", by="a", precision=60, since=newest)
    assert max(seen) <= 1000
    assert max(sizes) == 1000
    assert sum(sizes) == number
    each = [number // 4 * (n + 1 if kind == "count" else 1) for n in range(4)]
    assert {row.key: row.count for row in rows} == {str(n): each[n] for n in range(4)}


def test_candidates_are_those_of_the_largest_bounds() -> None:
    """All, where there are no more."""
    sums: dict[str | None, RankedGroup] = {
        f"{n:02}": RankedGroup(Sums(100, total=100.0 * n), {"s": 100}) for n in range(20)
    }
    assert list(choose_candidates(sums, 0.95, 1)[0]) == ["19", "18", "17", "16"]
    sums["spread"] = RankedGroup(Sums(100, m2=100 * 25.0), {"s": 100})
    sums["busy"] = RankedGroup(Sums(10_000, total=10_000.0), {"s": 100})
    assert list(choose_candidates(sums, 0.95, 1)[0]) == ["spread", "19", "18", "17"]
    assert set(choose_candidates(sums, 0.95, 100)[0]) == set(sums)
    assert choose_candidates(sums, 0.95, 100)[1] == []


def test_percentiles_are_read_of_so_many_groups_however_many_rows_there_are(
    client: Any, open_meter: OpenMeter
) -> None:
    """Of four for each row, up to 200."""
    newest = slice_start(server_time(client), 60)
    put_observed(client, {f'x{{a="{n}"}}': [(newest, 1.0 + n)] for n in range(205)})
    for limit, examined in ((50, 200), (51, 200), (49, 196), (1_000, 200)):
        found = open_meter().top("x", by="a", precision=60, order="p95", limit=limit)
        assert (found.groups, found.examined, len(found)) == (205, examined, min(limit, 200))


def test_every_ranking_has_the_same_default_window_and_the_same_limit_of_rows(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """60 slices, at most 1,000 rows: Meter, MemoryMeter, the command's reading and the API."""
    now = server_time(client)
    real, memory = open_meter(), MemoryMeter(clock=ManualClock(now))
    for meter in (real, memory):
        meter.count("hits", 3, at=now - 1800)
        meter.observe("took", 2.0, at=now - 1800)
        assert meter.flush()
    store = open_store()
    top = {one.path: one for one in ENDPOINTS}["/api/top"]
    (parameter,) = [each for each in top.parameters if each.name == "limit"]
    assert (parameter.kind.schema["maximum"], parameter.default) == (1_000, 10)
    for name, order, value in (("hits", "count", 3), ("took", "p95", 2.0)):
        asked = {each.name: each.default for each in top.parameters}
        asked |= {"name": name, "order": order, "label": [], "failing": []}
        answer: Any = API(store).answer(top, asked)
        found = [rank(store, name, 60, order=order)]
        found += [meter.top(name, precision=60, order=order) for meter in (real, memory)]
        assert [len(rows) for rows in found] == [1, 1, 1]
        assert {rows[0].value for rows in found} == {answer.rows[0].value}
        assert answer.rows[0].value == pytest.approx(value, rel=0.03)
        assert {rows.intervals for rows in found} == {60} == {answer.intervals}
        for meter in (real, memory):
            with pytest.raises(LimitExceeded) as caught:
                meter.top(name, precision=60, order=order, limit=1001)
            assert caught.value.limit == 1000


def test_values_of_others_that_are_no_moments_are_left_out(
    client: Any, open_meter: OpenMeter
) -> None:
    """Each text by itself."""
    newest = slice_start(server_time(client), 3600)
    put_observed(client, {"x": [(newest - 3600, 4.0)]})
    meter = open_meter()
    for text in ("junk", "1 2", "x 1 1", "-3 1 1", "1 inf 0", "1 1 nan", "1 1 -1", f"{2**54} 1 1"):
        client.hset("redmeter:moments:3600:x", str(newest), text)
        (row,) = meter.top(precision=3600, order="total")
        assert (row.count, row.value) == (1, 4.0)


# --- What failed ---------------------------------------------------------------------------


def test_the_most_failing_are_told_with_their_share(client: Any, open_meter: OpenMeter) -> None:
    """How many failed, how many there were, and the part; nothing that did not fail."""
    meter = open_meter()
    for route, status, hits in (
        *(("/a", "2xx", 90), ("/a", "5xx", 10), ("/b", "2xx", 5)),
        *(("/b", "5xx", 15), ("/c", "2xx", 1000)),
    ):
        meter.count("http", hits, labels={"route": route, "status": status})
    rows = meter.top("http", by="route", precision=DAY, order="failing", failing={"status": "5xx"})
    assert [(r.key, r.value, r.count, r.share) for r in rows] == [
        ("/b", 15, 20, 0.75),
        ("/a", 10, 100, 0.1),
    ]
    assert rows.groups == 3


def test_without_a_label_each_name_is_a_row_without_what_means_failure(
    client: Any, open_meter: OpenMeter
) -> None:
    """Failures beside successes of the same other labels."""
    meter = open_meter()
    for name, failed, hits in (("mail", "yes", 2), ("mail", "no", 6), ("job", "no", 4)):
        meter.count(name, hits, labels={"failed": failed, "host": "a"})
    rows = meter.top(precision=DAY, order="failing", failing={"failed": "yes"})
    assert [(r.key, r.count, r.value, r.share) for r in rows] == [('mail{host="a"}', 8, 2, 0.25)]


@pytest.mark.parametrize(
    "options",
    [
        {"order": "slowest"},
        {"order": "p"},
        {"order": "p101"},
        {"order": "p-1"},
        {"order": "p1.2.3"},
        {"order": 95},
        {"order": "failing"},
        {"order": "p95", "failing": {"status": "5xx"}},
        {"failing": {"status": "5xx"}},
    ],
)
@pytest.mark.parametrize("url", [None, "off"])
def test_an_order_that_is_none_is_refused(
    client: Any, open_meter: OpenMeter, options: dict[str, Any], url: str | None
) -> None:
    """It says which there are; without a store as well."""
    with pytest.raises(InvalidValue):
        open_meter(url).top("x", by="a", precision=60, **options)


@pytest.mark.parametrize("given", [{"by": 5}, {"name": None}, {"name": b"x"}])
def test_what_is_ranked_is_named_by_text(
    client: Any, open_meter: OpenMeter, given: dict[str, Any]
) -> None:
    """A label that is none would be one that no series has."""
    for meter in (open_meter(), MemoryMeter()):
        meter.count("x", labels={"a": "1"})
        with pytest.raises(TypeError, match=r"is text \(str\), not "):
            meter.top(**{"name": "x", **given}, precision=60)


def test_series_that_stand_for_too_many_are_shown_as_such(
    client: Any, open_meter: OpenMeter
) -> None:
    """Of counters and of observed values; not as if they had no label."""
    newest = slice_start(server_time(client), 60)
    names = ['x{a="1"}', 'x{overflow="true"}', "x"]
    put_observed(client, {name: [(newest, 1.0)] for name in names})
    meter = open_meter()
    for name in names:
        meter.count(name.replace("x", "hits", 1))
    for base in ("x", "hits"):
        rows = meter.top(base, by="a", precision=60)
        assert [row.key for row in rows] == [None, "(other)", "1"]


# --- Through the whole way, and in memory --------------------------------------------------


def test_what_was_observed_and_counted_is_answered_alike_by_a_meter_in_memory(
    client: Any, any_server: Server
) -> None:
    """Recorded by calls, stored, read: summaries, statistics and every ranking."""
    now = slice_start(server_time(client), 60) + 1.0
    memory = MemoryMeter(clock=ManualClock(now))
    rng = random.Random(9)
    with Meter(any_server.url) as meter:
        for n in range(600):
            labels = {"route": f"/{n % 7}", "status": rng.choice(["2xx", "2xx", "5xx"])}
            at, value = now - rng.uniform(0, 6_000), rng.lognormvariate(n % 7 / 3, 1)
            for one in (meter, memory):
                one.observe("took_seconds", value, labels=labels, at=at)
                one.count("hits", labels=labels, at=at)
        assert meter.flush()
        where = {"status": "5xx"}
        answers: list[dict[str, Any]] = []
        for one in (meter, memory):
            summary = one.summary("took_seconds", precision=60, until=now)
            failed = one.summary("took_seconds", precision=60, labels=where, until=now)
            rankings = [
                one.top(name, by="route", precision=60, last="2h", order=order, labels=given)
                for name, orders in (
                    ("took_seconds", ("count", "total", "mean", "p50", "p99")),
                    ("hits", ("count",)),
                )
                for order in orders
                for given in (None, where)
            ]
            failing = one.top(
                "hits", by="route", precision=60, last="2h", order="failing", failing=where
            )
            answers.append(
                {
                    "quantiles": summary.quantiles((0.1, 0.5, 0.9, 0.99)),
                    "ends": (summary.count, summary.low, summary.high, failed.count),
                    "buckets": summary.buckets,
                    "intervals": [(s.start, s.value and s.value.p95) for s in summary.over_time()],
                    "rows": [[(r.key, r.count, r.value) for r in rows] for rows in rankings],
                    "failing": [(r.key, r.count, r.value, r.share) for r in failing],
                }
            )
            assert summary.total == pytest.approx(
                math.fsum(e.observed or 0.0 for e in memory.events)
            )
    stored, remembered = answers
    rows, others = stored.pop("rows"), remembered.pop("rows")
    assert stored == remembered
    for some, other in zip(rows, others, strict=True):
        assert [row[:2] for row in some] == [row[:2] for row in other]
        assert [row[2] for row in some] == pytest.approx([row[2] for row in other])
    labels = {"route": "/3", "status": "2xx"}
    mine, theirs = (one.statistics("took_seconds", labels=labels) for one in (meter, memory))
    for hour, other_hour in ((mine.this, theirs.this), (mine.before, theirs.before)):
        assert (hour is None) == (other_hour is None)
        if hour and other_hour:
            assert (hour.start, hour.count) == (other_hour.start, other_hour.count)
            assert (hour.low, hour.high) == (other_hour.low, other_hour.high)
            assert hour.mean == pytest.approx(other_hour.mean)
            assert hour.stddev == pytest.approx(other_hour.stddev, abs=1e-12)


def test_names_are_those_of_one_kind(client: Any, any_server: Server) -> None:
    """Counters unless asked otherwise; in memory as in a store, and off has none."""
    with Meter(any_server.url, sync=True) as meter:
        memory = MemoryMeter()
        for one in (meter, memory):
            one.count("hits")
            one.gauge("queue").set(1)
            one.observe("took", 1.0)
            assert (one.names(), one.names("q*", kind="gauge")) == (["hits"], ["queue"])
            assert one.names(kind="histogram") == ["took"]
            with pytest.raises(InvalidValue):
                one.names(kind="timers")
            none: Any = None
            with pytest.raises(TypeError, match=r"a pattern is text \(str\), not NoneType"):
                one.names(none)
    assert Meter("off").names(kind="gauge") == []
