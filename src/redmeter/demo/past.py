"""The last days of the shop, as they would have been recorded: so that charts are full at once.

Nobody waits five days for a chart. What happened is drawn at random from the shape of the business,
interval by interval, as fine as the retention allows at its age: seconds of the last minutes, hours
of the last days. It goes the way of `redmeter replay`: summed in memory, stored in batches.

Bound: five days are about 450 intervals of about 40 series, stored within three seconds. For an
interval with many values, 40 are drawn and repeated.
"""

import math
import random
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from redmeter.demo import shape
from redmeter.demo.database import POPULARITY, PRODUCTS
from redmeter.names import (
    DB_QUERIES,
    DB_QUERY_SECONDS,
    HITS,
    HITS_FAILED,
    HITS_SECONDS,
    REQUEST_DB_RATIO,
    REQUEST_DB_SECONDS,
    REQUESTS,
    SECONDS,
    TASK_QUEUE_SECONDS,
    TASK_RUNS,
    TASK_SECONDS,
    canonical,
    is_failure,
)
from redmeter.recording.buffer import Resolution
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.store import Store
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Retention

#: How far it goes back, seconds.
REACH = 5 * 86400
#: Deployments: seconds ago, and the release.
RELEASES = {"shop 2.2.9": 3.2 * 86400, "shop 2.3.0": 9.4 * 3600}
#: Values drawn per interval.
VALUES_PER_INTERVAL = 40


class Page(NamedTuple):
    """The metrics of a page."""

    method: str
    route: str
    #: How often in a visit, or in a second where it is no visitor's.
    often: float
    #: Median of how long it takes, seconds, and how far that is spread (of a logarithm).
    median: float
    spread: float
    #: Which part of that the database takes.
    database: float
    #: Class of status -> which part.
    status: Mapping[str, float]
    visitors: bool = True
    #: Its database statements, and how often a request sends each.
    statements: Mapping[str, int] = MappingProxyType({})


_OK = {"2xx": 1.0}
_IN_CART = {"SELECT products JOIN carts WHERE visitor": 1}
_ORDER = {
    **_IN_CART,
    "INSERT orders": 1,
    "INSERT order_lines": 3,
    "UPDATE category_sums WHERE category": 3,
    "DELETE carts WHERE visitor": 1,
}
_REPORT = {"SELECT products": 1, "SELECT order_lines WHERE product_id": len(PRODUCTS)}
_ORDERED = 1 - shape.REFUSED[shape.OLD_RELEASE] - shape.LOST[shape.OLD_RELEASE]

SHOP_PAGES = (
    Page("GET", "/", 1.0, 0.0016, 0.4, 0.05, _OK, statements={"SELECT products": 1}),
    Page(
        *("GET", "/search", shape.SEARCHES_PER_VISIT, 0.0019, 0.45, 0.1, _OK),
        statements={"SELECT products WHERE name, category": 1},
    ),
    Page(
        *("GET", "/products/{id}", shape.PRODUCTS_PER_VISIT, 0.0016, 0.4, 0.05),
        {"2xx": 0.985, "4xx": 0.015},
        statements={"SELECT products WHERE id": 1},
    ),
    Page(
        *("POST", "/cart", shape.INTO_CART, 0.0017, 0.4, 0.07, {"3xx": 1.0}),
        statements={"INSERT carts": 1},
    ),
    Page("GET", "/cart", shape.LOOKS_AT_CART, 0.0014, 0.35, 0.06, _OK, statements=_IN_CART),
    Page(
        *("POST", "/checkout", shape.CHECKOUTS, 0.098, 0.4, 0.006),
        {
            "3xx": _ORDERED,
            "4xx": shape.REFUSED[shape.OLD_RELEASE],
            "5xx": shape.LOST[shape.OLD_RELEASE],
        },
        statements=_ORDER,
    ),
    Page("GET", "(unmatched)", shape.STRAY, 0.0004, 0.3, 0.0, {"4xx": 1.0}),
    Page("GET", "/admin/report", shape.REPORTS, 0.18, 0.15, 0.96, _OK, False, _REPORT),
)


def fill(store: Store, seed: int) -> int:
    """Store what the last days were like, up to now.

    Returns:
        How many pages were asked for.

    Raises:
        StoreError: the store cannot be reached or refuses.
    """
    view, _ = store.read()
    store.config()
    bulk, now = BulkWriter(store), view.now
    hits = 0
    for start, width in slices(store.config().retention, now):
        chance = random.Random(f"{seed} {start} {width}")
        hits += _Slice(bulk, start, width, now, chance, seed).fill()
    bulk.write(store.timeout, now)
    return hits


def slices(retention: Retention, now: float) -> Iterator[tuple[int, int]]:
    """Yield start and width of the past intervals, the oldest first."""
    resolution, at = Resolution(retention), math.floor(now) - REACH
    at -= at % 3600
    while True:
        width = resolution.at(now - at) or 3600
        width = min(width, resolution.at(now - at - width) or 3600)  # as fine as its end needs
        while at % width:
            width = math.gcd(at, width)
        if at + width > now:
            return
        yield at, width
        at += width


class _Slice:
    """An interval of the past, all of whose events are recorded at its start."""

    def __init__(
        self, bulk: BulkWriter, start: int, width: int, now: float, chance: random.Random, seed: int
    ) -> None:
        self._bulk = bulk
        self._start = start
        self._width = width
        self._now = now
        self._chance = chance
        self._failed = 0
        self._durations = Distribution()
        middle = start + width / 2
        self._visits = shape.visits(middle, seed) * width

    def fill(self) -> int:
        """Draw what happened, and take it in; return how many pages were asked for."""
        hits = sum(self._page(page) for page in SHOP_PAGES)
        if hits:
            add = self._bulk.add
            add(HITS, self._start, hits, self._now)
            add(HITS_FAILED, self._start, self._failed, self._now)
            self._bulk.observe(HITS_SECONDS, self._start, self._durations, self._now)
        return hits

    def _page(self, page: Page) -> int:
        often = page.often * (self._visits if page.visitors else self._width)
        count = shape.poisson(often, self._chance)
        if not count:
            return 0
        labels = {"method": page.method, "route": page.route}
        left = count
        for status, part in page.status.items():
            number = left if status == list(page.status)[-1] else 0
            if not number:
                number = min(left, round(count * part + self._chance.uniform(-0.5, 0.5)))
            self._count(REQUESTS, labels | {"status": status}, number)
            self._failed += number if is_failure(status) else 0
            left -= number
            if page.route == "/checkout":
                self._checkouts(status, number)
        self._observe(SECONDS, labels, count, page.median, page.spread)
        if page.database:
            median = page.median * page.database
            self._observe(REQUEST_DB_SECONDS, labels, count, median, page.spread)
            ratios = page.database, 0.3 * (1 - page.database)
            self._observe(REQUEST_DB_RATIO, labels, count, *ratios, most=1.0)
            self._statements(page, {"route": page.route}, count, median)
        if page.route == "/search":
            number = round(count * 0.83)
            self._count("searches", {"found": "yes"}, number)
            self._count("searches", {"found": "no"}, count - number)
        return count

    def _statements(
        self, page: Page, caller: Mapping[str, str], count: int, seconds: float
    ) -> None:
        """Record the statements of requests, which together take some seconds for each."""
        each = seconds / max(sum(page.statements.values()), 1)
        for statement, times in page.statements.items():
            self._statement(statement, caller, count * times, each)

    def _statement(
        self, statement: str, caller: Mapping[str, str], count: int, seconds: float
    ) -> None:
        self._count(DB_QUERIES, {**caller, "statement": statement}, count)
        self._observe(DB_QUERY_SECONDS, {"statement": statement}, count, seconds, 0.4, drawn=8)

    def _confirmed(self, count: int) -> None:
        """Record the runs of the job that confirms orders."""
        failed = shape.poisson(count * shape.POSTPONED, self._chance)
        task = {"task": shape.TASK}
        self._count(TASK_RUNS, task | {"state": "success"}, count)
        self._count(TASK_RUNS, task | {"state": "failure"}, failed)
        self._observe(TASK_SECONDS, task, count + failed, 0.03, 0.5)
        self._observe(TASK_QUEUE_SECONDS, task, count + failed, 0.25, 0.6)
        self._statement("UPDATE orders WHERE id", task, count, 0.0004)

    def _checkouts(self, status: str, count: int) -> None:
        outcome = {"3xx": "paid", "4xx": "refused", "5xx": "lost"}[status]
        self._count("payments", {"outcome": outcome}, count)
        if outcome != "paid":
            return
        self._observe("cart_value", {}, count, 47.0, 0.6)
        self._observe("payment_seconds", {}, count, 0.085, 0.4)
        self._count("confirmations", {"outcome": "sent"}, count)
        self._confirmed(count)
        total = sum(POPULARITY.values())
        for category, popularity in POPULARITY.items():
            pieces = count * shape.LINES_PER_ORDER * shape.PIECES_PER_LINE * popularity / total
            sold = shape.poisson(pieces, self._chance)
            prices = [each.price for each in PRODUCTS if each.category == category]
            self._count("sales", {"category": category}, sold)
            cents = round(sold * sum(prices) / len(prices) * self._chance.uniform(0.9, 1.1))
            self._count("revenue_cents", {"category": category}, cents)

    def _count(self, name: str, labels: Mapping[str, str], count: int) -> None:
        if count > 0:
            self._bulk.add(canonical(name, labels), self._start, count, self._now)

    def _observe(
        self,
        name: str,
        labels: Mapping[str, str],
        count: int,
        median: float,
        spread: float,
        *,
        most: float = math.inf,
        drawn: int = VALUES_PER_INTERVAL,
    ) -> None:
        if count <= 0:
            return
        drawn = min(count, drawn)
        level = math.log(median)
        values = [min(most, self._chance.lognormvariate(level, spread)) for _ in range(drawn)]
        times, rest = divmod(count, drawn)
        distribution = _repeated(values, times)
        distribution.add_all(values[:rest])
        if name == SECONDS:
            self._durations.merge(distribution)
        self._bulk.observe(canonical(name, labels), self._start, distribution, self._now)


def _repeated(values: list[float], times: int) -> Distribution:
    """Return the distribution of positive values that each occur so many times."""
    once, made = Distribution(), Distribution()
    once.add_all(values)
    of = once.moments
    made.moments.add(of.count * times, of.low, of.high, of.total * times, of.m2 * times)
    made.positive = {index: count * times for index, count in once.positive.items()}
    return made
