"""Rankings of all series, on real servers: what is first, whatever its name, and at what cost."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from redmeter.clock import ManualClock
from redmeter.reading.page import background_ranking as rowrankings
from redmeter.reading.page import rows
from redmeter.reading.page.background_ranking import (
    MAX_KEPT_RANKINGS,
    MAX_PAGE,
    MIN_PAGE,
    PAGE_SECONDS,
    RANK_SECONDS,
    SHARE,
    RankingKey,
    RowRankings,
    next_page,
    rank_all,
)
from redmeter.reading.page.listing import MAX_LISTED_SERIES, RowListing
from redmeter.reading.page.overview import PANELS_SECONDS, Watch
from redmeter.reading.page.rows import MAX_ROW_SERIES
from redmeter.store import Store
from redmeter.store.servers.connection import ServerLink
from redmeter.stored.keys import DEFAULT_RETENTION, entry, slice_start
from support.observed import put_observed
from support.stores import OpenStore, count_all, exchanges, server_time

#: The busiest counter, which is the last by name, and others.
BUSY, OTHERS = 500_000, 1_600
BUSIEST = RankingKey(60, grouped=True)


class Watched(NamedTuple):
    """An overview of a store, and what it would have run in a thread."""

    watch: Watch
    clock: ManualClock
    work: list[Callable[[], None]]

    def panel(self) -> RowListing:
        """Return the counters of the overview, not those that were kept."""
        self.clock.advance(PANELS_SECONDS + 1)
        return self.watch.look(60)[1].counters

    def rank(self) -> None:
        """Run what waits."""
        while self.work:
            self.work.pop()()


@pytest.fixture
def store(client: Any, open_store: OpenStore) -> Store:
    """A store of more counters than an answer reads; its clock is set by hand."""
    store, now = open_store(clock=ManualClock(server_time(client))), int(server_time(client))
    many = {f"aaa_{n:04}": {now: n % 7 + 1} for n in range(OTHERS)}
    put_counts(client, store, many | {"zzz_orders": {now: BUSY}})
    return store


def put_counts(client: Any, store: Store, counts: Mapping[str, Mapping[int, int]]) -> None:
    """Write counts of very many counters, each at one moment, straight into the hashes."""
    keys, pipe = store.keys, client.pipeline(transaction=False)
    for name, given in counts.items():
        for precision in DEFAULT_RETENTION:
            for at, count in given.items():
                pipe.hset(keys.count(precision, name), str(slice_start(at, precision)), count)
    for precision in DEFAULT_RETENTION:
        pipe.zadd(keys.known, dict.fromkeys((entry(precision, name) for name in counts), 0))
    pipe.hset(keys.total, mapping={name: sum(given.values()) for name, given in counts.items()})
    pipe.execute()


@pytest.fixture
def watched(store: Store) -> Watched:
    """An overview of that store."""
    work: list[Callable[[], None]] = []
    clock = store.clock
    assert isinstance(clock, ManualClock)
    return Watched(Watch(store, RowRankings(store, work.append)), clock, work)


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many series each exchange of a ranking is about, as the server replies."""
    seen: list[int] = []
    whole = ServerLink.exchange

    def counted(self: ServerLink, commands: Any, *take: Any, **options: Any) -> Any:
        replies = whole(self, commands, *take, **options)
        seen.extend(
            len(reply[2])
            for command, reply in zip(commands, replies, strict=True)
            if command[0] == "EVAL" and isinstance(reply, list)
        )
        return replies

    monkeypatch.setattr(ServerLink, "exchange", counted)
    return seen


def test_the_busiest_counter_is_first_though_its_name_is_the_last(
    watched: Watched, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a ranking the overview names its limit; after it, two round trips show all."""
    first = watched.panel()
    assert (first.examined, first.total, first.ranked_at) == (MAX_LISTED_SERIES, OTHERS + 1, None)
    assert "zzz_orders" not in [row.name for row in first.rows]
    watched.rank()
    with exchanges(monkeypatch) as seen:
        then = watched.panel()
        assert len(seen) == 2
    top = then.rows[0]
    assert (top.name, top.count, top.series, top.complete) == ("zzz_orders", BUSY, 1, True)
    assert [row.count for row in then.rows[1:]] == [7] * 11
    assert (then.found, then.examined, then.total) == (OTHERS + 1,) * 3
    assert then.ranked_at == pytest.approx(server_time(client), abs=600)
    assert sum(value or 0 for value in top.values) == BUSY


def test_rows_of_a_ranking_have_the_figures_of_now(
    watched: Watched, store: Store, client: Any
) -> None:
    """Only the choice of rows is as old as the ranking, also where they swap places."""
    now = int(server_time(client))
    count_all(store, {"zzz_orders": {now - 3 * 3600: 40, now - 9 * 3600: 10**6}})
    watched.panel()
    watched.rank()
    count_all(store, {"zzz_orders": {now: 5}, "aaa_0006": {now: 2 * BUSY}})
    rows = {row.name: row for row in watched.panel().rows}
    assert list(rows)[:2] == ["aaa_0006", "zzz_orders"]
    assert [rows[name].count for name in ("aaa_0006", "zzz_orders")] == [2 * BUSY + 7, BUSY + 5]
    assert (rows["zzz_orders"].before, rows["aaa_0006"].before) == (40, 0)


def test_a_ranking_reads_all_series_in_pages(
    watched: Watched, pages: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is an exchange of its own, of at most 1,000 series."""
    watched.panel()
    pages.clear()
    with exchanges(monkeypatch) as seen:
        watched.rank()
    assert sum(pages) == OTHERS + 1
    assert max(pages) <= MAX_PAGE == 1_000
    assert len(seen) == len(pages) + 2  # the first two tell what is kept, and how far the server is
    assert set(seen[2:]) == {1}


def test_pages_are_smaller_where_the_server_takes_longer(
    store: Store, pages: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a tenth of a millisecond for each series, no page is above 10 ms."""
    each, clock = 0.0001, store.clock
    assert isinstance(clock, ManualClock)
    whole = ServerLink.exchange

    def slow(self: ServerLink, commands: Any, *take: Any, **options: Any) -> Any:
        before = len(pages)
        replies = whole(self, commands, *take, **options)
        clock.advance(0.02 + each * sum(pages[before:]))  # the network takes its time, too
        return replies

    monkeypatch.setattr(ServerLink, "exchange", slow)
    ranked, spent = rank_all(store, BUSIEST)
    assert ranked.rows[0].row.name == "zzz_orders"
    assert sum(pages) == OTHERS + 1
    assert max(pages) * each <= PAGE_SECONDS
    assert spent == pytest.approx((OTHERS + 1) * each, rel=0.01)


def test_pages_that_the_server_cuts_are_gone_on_with(
    store: Store, pages: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All series are ranked, however few of them its time is enough for."""
    monkeypatch.setattr(rowrankings, "PAGE_LIMIT_US", 1)
    ranked, _ = rank_all(store, BUSIEST)
    assert ranked.rows[0].row.name == "zzz_orders"
    assert sum(pages) == ranked.examined == OTHERS + 1
    assert max(pages) < MIN_PAGE


def test_the_size_of_a_page_is_bounded() -> None:
    """However fast or slow the one before was; it grows step by step."""
    assert next_page(100, 0.0) == 200
    assert next_page(800, 0.0001) == MAX_PAGE
    assert next_page(400, 0.04) == MIN_PAGE
    assert next_page(400, 0.01) == 200
    assert next_page(1_000, 99.0) == MIN_PAGE


def test_a_ranking_is_made_again_when_it_is_due(watched: Watched, pages: list[int]) -> None:
    """After some seconds while it is looked at, and never by itself."""
    watched.panel()
    assert len(watched.work) == 1
    watched.rank()
    watched.panel()
    assert watched.work == []
    watched.clock.advance(RANK_SECONDS)
    assert watched.work == []
    watched.panel()
    assert len(watched.work) == 1


def test_rankings_take_a_small_share_of_the_time(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that took a second is due after a hundred."""
    watched.panel()
    whole = rowrankings.rank_all
    monkeypatch.setattr(rowrankings, "rank_all", lambda *given: (whole(*given)[0], 1.0))
    watched.rank()
    watched.clock.advance(1 / SHARE - PANELS_SECONDS - 2)
    watched.panel()
    assert watched.work == []
    watched.panel()
    assert len(watched.work) == 1


def test_a_ranking_that_fails_leaves_the_last_one(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And is not tried again at once; the log tells why, since nobody waits for it."""
    watched.panel()
    watched.rank()
    watched.clock.advance(RANK_SECONDS)
    watched.panel()
    with monkeypatch.context() as patch:
        patch.setattr(ServerLink, "exchange", lambda *_, **__: 1 / 0)
        watched.rank()
    (message,) = caplog.messages
    assert message == (
        "redmeter: ranking all counters failed, and is tried again: division by zero"
    )
    then = watched.panel()
    assert then.rows[0].name == "zzz_orders"
    assert watched.work == []


def test_a_store_that_became_small_is_read_at_once(watched: Watched, client: Any) -> None:
    """Its ranking is forgotten."""
    watched.panel()
    watched.rank()
    assert watched.panel().ranked_at is not None
    client.zremrangebyrank(watched.watch._store.keys.known, 0, -1)
    client.zadd(watched.watch._store.keys.known, {"60:zzz_orders": 0})
    watched.panel()
    then = watched.panel()
    assert (then.ranked_at, [row.name for row in then.rows]) == (None, ["zzz_orders"])


def test_label_sets_are_one_row_across_pages(client: Any, open_store: OpenStore) -> None:
    """Though names that begin alike are between the name and its label sets."""
    store, now = open_store(), int(server_time(client))
    names = {f'jobs{{n="{n:04}"}}': {now: n} for n in range(1_200)}
    put_counts(
        client, store, names | {"jobs": {now: 3}, "jobs2": {now: 9}, 'jobs2{a="b"}': {now: 1}}
    )
    ranked, _ = rank_all(store, BUSIEST)
    jobs, jobs2 = ranked.rows
    assert (jobs.row.name, jobs.row.count, jobs.row.series) == (
        "jobs",
        sum(range(1_200)) + 3,
        1_201,
    )
    assert (jobs2.row.name, jobs2.row.count, jobs2.row.series) == ("jobs2", 10, 2)
    assert (jobs.row.complete, ranked.found, ranked.examined) == (True, 2, 1_203)
    busiest = [f'jobs{{n="{n:04}"}}' for n in range(1_199, 1_199 - MAX_ROW_SERIES, -1)]
    assert (list(jobs.series), jobs.names()) == (busiest, busiest)


def test_what_is_kept_is_bounded(
    store: Store, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Series, rows and rankings."""
    monkeypatch.setattr(rowrankings, "MAX_RANKED", 1_100)
    monkeypatch.setattr(rowrankings, "MAX_RANKING_ROWS", 20)
    ranked, _ = rank_all(store, BUSIEST)
    assert (ranked.examined, ranked.found, len(ranked.rows)) == (1_100, 1_100, 20)
    assert {group.row.count for group in ranked.rows} == {7}
    rankings, panel = watched.watch._rankings, watched.panel()
    monkeypatch.setattr(rowrankings, "MAX_RANKED", 50)
    for n in range(3 * MAX_KEPT_RANKINGS):
        watched.clock.advance(1)
        rankings.refresh(RankingKey(60, pattern=f"*{n}"), panel)
    watched.rank()
    kept = [
        n for n in range(3 * MAX_KEPT_RANKINGS) if rankings.last(RankingKey(60, pattern=f"*{n}"))
    ]
    assert kept == list(range(2 * MAX_KEPT_RANKINGS, 3 * MAX_KEPT_RANKINGS))


def test_changes_are_ranked_of_all_series_too(client: Any, store: Store) -> None:
    """Of counters by the difference of counts."""
    now = int(server_time(client))
    count_all(store, {"zzz_fell": {now - 3 * 3600: 900, now - 9 * 3600: 10**6, now: 1}})
    ranked, _ = rank_all(store, RankingKey(60, order="change"))
    assert [group.row.name for group in ranked.rows[:2]] == ["zzz_orders", "zzz_fell"]


def test_histograms_are_ranked_by_the_relative_change_of_their_means(
    client: Any, open_store: OpenStore
) -> None:
    """Whatever their units are."""
    now = server_time(client)
    ago = now - 3 * 3600
    put_observed(
        client,
        {
            "a_bytes": [(ago, 1e6), (now, 1.1e6)],
            "b_seconds": [(ago, 0.01), (now, 0.03)],
            "c_seconds": [(now, 5.0)],
        },
    )
    ranked, _ = rank_all(open_store(), RankingKey(60, "histogram", order="change"))
    assert [group.row.name for group in ranked.rows] == ["b_seconds", "a_bytes", "c_seconds"]
    assert rows.row_value(ranked.rows[0].row, "change") == pytest.approx(2 / 3)
