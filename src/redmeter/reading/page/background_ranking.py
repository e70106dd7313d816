"""Rankings of all series of a kind, made outside the page's answers and kept for them.

The problem: which series are the busiest, or changed most, is known only after all of them were
read, and of 100,000 that takes seconds. An answer of the page may take two round trips.

The idea: an answer shows the last ranking, with its age, and asks for the next one, which a thread
of the page makes meanwhile. It walks the index in pages, so that the server goes on with others in
between, and keeps the first rows only. Answers read the sums of the rows on display anew, so what
is old is the choice of rows.

The bounds: a page of the index has at most MAX_PAGE series, and the server takes PAGE_SECONDS for
one at most: after half of that it reads no further series, and the rest is for its reply. A cluster
does not cut pages, of which each shard reads a small part. The next page is smaller where one took
longer, down to MIN_PAGE. A ranking has MAX_RANKED series; of more, the first by name. It is made
again after RANK_SECONDS at the earliest, and so seldom that it takes SHARE of the time.
MAX_KEPT_RANKINGS rankings are in memory, with MAX_RANKING_ROWS rows each and the names of
MAX_ROW_SERIES series at most of each row; while one is made, four times as many rows and a page.
Each process that serves the page has its own.

Not done: a ranking is not stored, so the first page after a start waits for one.
"""

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from redmeter.reading.join import Budget, Joined, entry_name, read_on
from redmeter.reading.page.listing import MAX_LISTED_SERIES, RowListing, window_for
from redmeter.reading.page.rows import (
    RowGroup,
    RowRanking,
    add_members,
    asks_of,
    sorted_rows,
)
from redmeter.reading.ranking import MatchingSeries
from redmeter.store import Store, View
from redmeter.store.query import Query, Read, run_query
from redmeter.stored.keys import Kept, Keys

T = TypeVar("T")

#: Series of one page of a ranking, at least and at most.
MIN_PAGE, MAX_PAGE = 50, 1_000
#: Server time of one page, seconds. Pages aim at half of it, since not all series cost the same.
PAGE_SECONDS = 0.01
#: Server time after which a page ends, microseconds: half of that, since the reply takes time, too.
PAGE_LIMIT_US = 5_000
#: Series that are ranked.
MAX_RANKED = 100_000
#: Rows that a ranking keeps, and rankings that are kept.
MAX_RANKING_ROWS, MAX_KEPT_RANKINGS = 1_000, 8
#: How old a ranking becomes at least, seconds, and the share of time that is spent on one.
RANK_SECONDS, SHARE = 10.0, 0.01
#: How long a page may take where a caller's client is used, seconds.
_PATIENCE = 10.0

logger = logging.getLogger("redmeter.reading")


class RankingKey(NamedTuple):
    """The arguments of a ranking: see listing()."""

    precision: int
    kind: str = "counter"
    pattern: str = "*"
    grouped: bool = False
    order: str = "count"


#: Runs something soon in another thread; or not at all, where it is busy.
Start = Callable[[Callable[[], None]], None]


class _Kept:
    """The last ranking, and by the monotonic clock: when it was asked for, when the next is due."""

    def __init__(self) -> None:
        self.ranked: RowRanking | None = None
        self.asked = self.due = 0.0


class RowRankings:
    """Keeps rankings, and has them made anew while they are asked for.

    Safe to use in several threads, and after a fork: it has no lock, each step is one of a dict.

    Args:
        store: to read from.
        start: runs the making of one; None: none are made.
    """

    def __init__(self, store: Store, start: Start | None = None) -> None:
        self._store, self._start = store, start
        self._kept: dict[RankingKey, _Kept] = {}

    def last(self, wanted: RankingKey) -> RowRanking | None:
        """Return the last ranking, if there is one."""
        kept = self._kept.get(wanted)
        return None if kept is None else kept.ranked

    def refresh(self, wanted: RankingKey, found: RowListing) -> None:
        """Have a ranking made where a list needs one and it is due.

        Args:
            found: the list as it was answered.
        """
        if self._start is None:
            return
        if found.total <= MAX_LISTED_SERIES:
            self._kept.pop(wanted, None)  # the list reads all series itself
            return
        kept = self._kept.setdefault(wanted, _Kept())
        kept.asked = now = self._store.clock.monotonic()
        if len(self._kept) > MAX_KEPT_RANKINGS:
            oldest, _ = min(list(self._kept.items()), key=lambda item: item[1].asked)
            self._kept.pop(oldest, None)
        if kept.due <= now:
            self._start(lambda: self._make(wanted, kept))

    def _make(self, wanted: RankingKey, kept: _Kept) -> None:
        store, spent = self._store.best_effort(), 0.0
        try:
            ranked, spent = rank_all(store, wanted)
            if not store.skipped():
                kept.ranked = ranked
        except Exception as error:  # noqa: BLE001 - nobody waits for it; the last one is shown
            logger.warning(
                "redmeter: ranking all %ss failed, and is tried again: %s", wanted.kind, error
            )
        finally:
            kept.due = store.clock.monotonic() + max(RANK_SECONDS, spent / SHARE)


def rank_all(store: Store, wanted: RankingKey) -> tuple[RowRanking, float]:
    """Rank all series, in one round trip for each page of them.

    Returns:
        The ranking, and how long it took, without waiting for the network, seconds.

    Raises:
        UnknownPrecision: it is not kept.
        StoreError: the server cannot be reached or refuses.
    """
    timed = _TimedStore(store)
    timed.read()  # connects, where that has to be
    timed.network, timed.trips = math.inf, 0
    began = store.clock.monotonic()
    view, walk = run_query(timed, lambda kept: _walk(store.keys, kept, wanted, timed))
    spent = store.clock.monotonic() - began - timed.trips * timed.network
    return RowRanking(walk.rows, walk.found, walk.examined, view.now), max(spent, 0.0)


def _walk(keys: Keys, kept: Kept, wanted: RankingKey, timed: "_TimedStore") -> "Query[_Walk]":
    yield ()  # shows how far the server is
    window = window_for(kept, wanted.kind, wanted.precision)
    asks = asks_of(keys, wanted.kind, window, wanted.order, grouped=wanted.grouped)
    members = MatchingSeries(keys, wanted.kind, window.fine, wanted.pattern)
    page = partial(members.join, asks, limit_us=PAGE_LIMIT_US)
    walk, budget = _Walk(wanted, window.drawn()), _TimedBudget(timed)
    _, (reply,) = yield [page(budget.page)]
    first = Joined(reply, len(asks))
    walk.add(first)
    yield from read_on(first, page, budget, walk.add)
    walk.end()
    return walk


class _TimedStore:
    """A store, and how long its exchanges take, seconds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: The newest exchange, the shortest one, and the number of exchanges.
        self.elapsed, self.network, self.trips = 0.0, math.inf, 0

    @property
    def seen(self) -> Kept:
        return self._store.seen

    def read(self, reads: Sequence[Read] = ()) -> tuple[View, list[Any]]:
        return self._exchange(lambda: self._store.read(reads))

    def ask(self, reads: Sequence[Read], view: View | None = None) -> list[Any]:
        return self._exchange(lambda: self._store.ask(reads, view))

    def _exchange(self, exchange: Callable[[], T]) -> T:
        sent = self._store.clock.monotonic()
        with self._store.link.bounded(_PATIENCE):
            replies = exchange()
        self.elapsed = self._store.clock.monotonic() - sent
        self.network, self.trips = min(self.network, self.elapsed), self.trips + 1
        return replies


class _TimedBudget(Budget):
    """Pages of so many series as the server reads in PAGE_SECONDS."""

    def __init__(self, timed: _TimedStore) -> None:
        super().__init__(MAX_RANKED, min(MIN_PAGE, MAX_RANKED))
        self._timed = timed

    def next_page(self, number: int) -> int:
        self._left -= number
        took = self._timed.elapsed - self._timed.network
        return min(next_page(number, took), self._left) if number else 0


def next_page(series: int, took: float) -> int:
    """Return how many series the next page has.

    Args:
        series: of this page.
        took: its time, seconds.
    """
    fits = MAX_PAGE if not took else int(series * PAGE_SECONDS / 2 / took)
    return min(max(fits, MIN_PAGE), MAX_PAGE, 2 * series)


class _Walk:
    """The rows of an index, as its pages come in: only the first ones are kept."""

    def __init__(self, wanted: RankingKey, width: int) -> None:
        self._wanted, self._width = wanted, width
        self.examined = self.found = 0
        self.rows: list[RowGroup] = []
        # Rows that may have more series, by name: few, since those of a name are almost adjacent.
        self._open: dict[str, RowGroup] = {}
        self._last = ""

    def add(self, joined: Joined) -> None:
        """Add a page."""
        if not joined.members:
            return
        key = self._wanted
        self.examined += len(joined.members)
        self._last = entry_name(joined.members[-1])
        add_members(
            self._open, joined, key.kind, key.pattern, grouped=key.grouped, width=self._width
        )
        # Between `jobs` and `jobs{queue="a"}` there may be `jobs2`, but after `jobs|` nothing is.
        ended = [name for name in self._open if not key.grouped or name + "|" <= self._last]
        self._close(ended)
        for group in self._open.values():
            group.trim()

    def end(self) -> None:
        """Keep the rows that are still open."""
        complete = self.examined < MAX_RANKED
        for group in self._open.values():
            group.row.complete = complete
        self._close(list(self._open))
        self.rows = sorted_rows(self.rows, self._wanted.order, MAX_RANKING_ROWS)

    def _close(self, names: list[str]) -> None:
        for name in names:
            group = self._open.pop(name)
            group.compare()
            group.trim()
            self.rows.append(group)
        self.found += len(names)
        if len(self.rows) > 4 * MAX_RANKING_ROWS:
            self.rows = sorted_rows(self.rows, self._wanted.order, MAX_RANKING_ROWS)
