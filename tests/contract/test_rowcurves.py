"""Rows of histograms, on real servers: their percentiles, and how much is read for them."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.reading.page import row_curves as rowcurves
from redmeter.reading.page.listing import RowListing, listing, window_for
from redmeter.reading.page.row_curves import (
    MAX_PERCENTILE_SERIES,
    MAX_POINTS,
    few_series,
    point_width,
)
from redmeter.reading.page.rows import ListRow, RowGroup
from redmeter.reading.windows import Coverage, window_of
from redmeter.store import Store
from redmeter.store.query import run_query
from redmeter.store.servers.connection import ServerLink
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, slice_start
from support.details import read_detail
from support.observed import exact_quantile, near, put_observed
from support.stores import OpenStore, exchanges, server_time

pytestmark = pytest.mark.servers


def histograms(store: Store, precision: int = 60, **options: Any) -> RowListing:
    """Read a list of histograms."""

    def question(kept: Any) -> Any:
        window = window_for(kept, "histogram", precision)
        return listing(store.keys, window, kind="histogram", **options)

    found: RowListing = run_query(store, question)[1]
    return found


def window(precision: int = 60) -> Coverage:
    """Return the window of such a list, of what is kept by default."""
    return window_of(DEFAULT_HISTOGRAMS, precision, DEFAULT_HISTOGRAMS[precision])


def test_a_histogram_shows_its_p95_and_the_one_before(client: Any, open_store: OpenStore) -> None:
    """And a curve of it, each point that of all values within it; counts stay where they were."""
    store, now, rng = open_store(), server_time(client), random.Random(3)
    start = window().start(now)
    recent = [(rng.uniform(start, now), rng.lognormvariate(0, 1)) for _ in range(3_000)]
    middle = slice_start(start, 3600) - 3600  # within the hours that stand for the time before
    earlier = [(middle + rng.uniform(0, 3599), rng.lognormvariate(1, 1)) for _ in range(500)]
    put_observed(client, {"took_seconds": recent + earlier})
    (row,) = histograms(store).rows
    assert near(row.p95, exact_quantile([value for _, value in recent], 0.95))
    assert near(row.p95_before, exact_quantile([value for _, value in earlier], 0.95))
    assert (row.count, row.before) == (3_000, 500)
    assert row.value == pytest.approx(sum(value for _, value in recent) / 3_000)
    assert row.precision == 360
    for number, point in enumerate(row.values):
        begin = row.start + number * row.precision
        within = [value for at, value in recent if begin <= at < begin + row.precision]
        assert point is None if not within else near(point, exact_quantile(within, 0.95))
    assert sum(point is not None for point in row.values) >= 20
    summary = read_detail(store, "took_seconds", 60).summary
    assert summary is not None
    assert row.p95 == summary.quantile(0.95)


def test_a_gap_is_no_value(client: Any, open_store: OpenStore) -> None:
    """Nor is a histogram without values zero."""
    now = server_time(client)
    put_observed(client, {"a": [(now - 3_000, 1.0), (now, 2.0)], "b": [(now - 9 * 3600, 1.0)]})
    first, second = histograms(open_store()).rows
    known = [value for value in first.values if value is not None]
    assert [near(*pair) for pair in zip(known, (1.0, 2.0), strict=True)] == [True, True]
    assert (second.p95, second.p95_before, second.values, second.count) == (None, None, [], 0)


@pytest.mark.parametrize("precision", sorted(DEFAULT_RETENTION))
def test_a_curve_has_24_points_at_most(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, precision: int
) -> None:
    """At every range of the page, in two round trips."""
    store, now = open_store(), server_time(client)
    times = [now - n * 60 for n in range(120)] + [now - n * 3600 for n in range(120)]
    put_observed(client, {"took_seconds": [(at, 0.5) for at in [*times, now]]})
    store.read()
    with exchanges(monkeypatch) as seen:
        (row,) = histograms(store, precision).rows
        assert len(seen) == 2
    assert 1 <= len(row.values) <= MAX_POINTS == 24
    assert row.start + len(row.values) * row.precision > now >= row.start
    assert near(row.values[-1], 0.5)


@given(fine=st.integers(1, 86_400), count=st.integers(1, 254), now=st.floats(1e9, 4e9, width=64))
def test_points_are_wide_enough_for_any_window(fine: int, count: int, now: float) -> None:
    """However it is aligned."""
    one = Coverage(fine, count, (fine,))
    width = point_width(one)
    assert width % fine == 0
    first = slice_start(one.start(now), width)
    assert len(range(first, int(now) + 1, width)) <= MAX_POINTS


def test_what_is_read_is_bounded(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buckets of 50 series at most, of the rows on display; others show their count and mean."""
    store, now = open_store(), server_time(client)
    names = [f"took_{n:03}" for n in range(MAX_PERCENTILE_SERIES + 30)]
    many = {f'many{{n="{n:03}"}}': [(now, 1.0)] for n in range(MAX_PERCENTILE_SERIES + 1)}
    put_observed(client, {name: [(now, 0.5), (now - 5_000, 0.7)] for name in names} | many)
    read: list[str] = []
    whole = ServerLink.exchange

    def seen(self: ServerLink, commands: Any, *take: Any, **options: Any) -> Any:
        read.extend(str(c[3]) for c in commands if c[0] == "EVAL" and ":hist:" in str(c[3]))
        return whole(self, commands, *take, **options)

    monkeypatch.setattr(ServerLink, "exchange", seen)
    found = histograms(store, pattern="took_*", limit=200).rows
    assert [row.name for row in found if row.p95 is not None] == names[:MAX_PERCENTILE_SERIES]
    assert [row.count for row in found] == [2] * len(names)
    assert {row.precision for row in found} == {360}
    assert len(read) == MAX_PERCENTILE_SERIES
    read.clear()
    shown = histograms(store, pattern="took_*", limit=3, offset=40).rows
    assert [near(row.p95, 0.7) for row in shown] == [True] * 3
    assert len(read) == 3
    read.clear()
    (row,) = histograms(store, pattern="many*", grouped=True).rows
    assert (row.p95, row.values, row.count, row.value) == (None, [], MAX_PERCENTILE_SERIES + 1, 1.0)
    assert read == []


def test_buckets_of_more_bytes_are_not_sent(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a row or nothing; the bytes of the window and of the time before count."""
    store, now = open_store(), server_time(client)
    ago = slice_start(window().start(now), 3600) - 1800
    values = [1.2**n for n in range(100)]
    wide = [(at, value) for value in values for at in (ago, now - 600, now)]
    put_observed(client, {"a_wide": wide, "b": [(now, 0.5)], 'c{n="1"}': [(now, 0.5)]})
    put_observed(client, {'c{n="2"}': wide})
    keys, texts = store.keys, list[bytes]()
    for key in (keys.hist(60, "a_wide"), keys.moments(60, "a_wide")):
        texts += [text for pair in client.hgetall(key).items() for text in pair]
    for width, starts in window().slices_before(now).items():
        for key in (keys.hist(width, "a_wide"), keys.moments(width, "a_wide")):
            texts += filter(None, client.hmget(key, [str(start) for start in starts]))
    size = sum(map(len, texts))
    for share, read in ((size, True), (size - 1, False)):
        monkeypatch.setattr(rowcurves, "MAX_BUCKET_BYTES", 4 * share)
        rows = {row.name: row for row in histograms(store, grouped=True).rows}
        assert {name for name, row in rows.items() if row.p95 is not None} == (
            {"a_wide", "b", "c"} if read else {"b"}
        )
        assert (rows["a_wide"].count, rows["c"].count) == (200, 201)
        assert rows["a_wide"].values == ([] if not read else rows["a_wide"].values)
        assert (rows["a_wide"].p95_before is not None) == read


def test_rows_of_few_series_come_first() -> None:
    """So that as many rows as possible have a percentile."""
    groups = [RowGroup(row=ListRow(f"r{n}", "histogram", series=n)) for n in (40, 3, 20, 20)]
    groups.append(RowGroup(row=ListRow("cut", "histogram", series=1, complete=False)))
    assert [group.row.name for group in few_series(groups, 50)] == ["r3", "r20", "r20"]


def test_another_programs_key_is_left_out(client: Any, open_store: OpenStore) -> None:
    """The row stays, without a percentile."""
    store, now = open_store(), server_time(client)
    put_observed(client, {"a": [(now, 1.0)], "b": [(now, 2.0)]})
    client.delete(store.keys.hist(60, "a"))
    client.set(store.keys.hist(60, "a"), "a text")
    first, second = histograms(store).rows
    assert (first.p95, first.values, first.count) == (None, [], 1)
    assert near(second.p95, 2.0)


def test_ordered_by_change_the_means_decide(client: Any, open_store: OpenStore) -> None:
    """Of all histograms; what is shown is the p95 of the rows on display."""
    now = server_time(client)
    ago = slice_start(window().start(now), 3600) - 1800
    put_observed(
        client,
        {
            "a_steady": [(ago, 5.0), (now, 5.0)],
            "b_slower": [(ago, 0.1), (now, 0.4)],
            "c_faster": [(ago, 3.0), (now, 2.0)],
        },
    )
    found = histograms(open_store(), order="change").rows
    assert [row.name for row in found] == ["b_slower", "c_faster", "a_steady"]
    assert near(found[0].p95, 0.4)
    assert near(found[0].p95_before, 0.1)


def test_means_of_sums_past_the_largest_double_are_none(client: Any, open_store: OpenStore) -> None:
    """Also those of moments, of a row that has too many series to read their histograms."""
    now = server_time(client)
    series: dict[str, list[tuple[float, float]]] = {
        f'huge{{n="{n}"}}': [(now, 1.7e308)] for n in range(MAX_PERCENTILE_SERIES + 1)
    }
    put_observed(client, series | {"two": [(now, 1.5e308), (now, 1.7e308)], "small": [(now, 2.0)]})
    found = histograms(open_store(), grouped=True, order="change")
    assert {row.name: row.value for row in found.rows} == {"huge": None, "two": None, "small": 2.0}
