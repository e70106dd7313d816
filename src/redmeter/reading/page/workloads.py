"""Workloads within a window: database statements and background tasks, by time and failures.

A workload joins the label sets of one histogram, for example `db_query_seconds{statement}`, with
counters that have the same label, for example `db_errors{statement,error}`. The integrations of
SQLAlchemy, Django and Celery record them.

Two round trips: the moments of the histogram's label sets and the counters; then, of the rows that
are shown, distributions, so that each percentile is exact, and samples for sparklines. An order by
percentile reads the distributions of the rows that may be the slowest: see ranking.py. Beyond _PAGE
label sets of a name, one more round trip for each page.

Bound: _MAX_READ label sets of each histogram and counter, in the order of their names; `examined`
and `of` state it where there are more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from redmeter.names import (
    DB_ERRORS,
    DB_QUERIES,
    DB_QUERY_SECONDS,
    TASK_DB_SECONDS,
    TASK_QUEUE_SECONDS,
    TASK_RUNS,
    TASK_SECONDS,
    SeriesName,
)
from redmeter.reading.distributions import slices_answered, slices_asked
from redmeter.reading.join import Joined, of_before, of_window, series_in
from redmeter.reading.ranking import (
    RankedGroup,
    at_least,
    highest,
    quantile_of,
    sums_of,
    upper_bound,
)
from redmeter.reading.samples import number_of, summed
from redmeter.reading.selection import OTHER, LabelSets
from redmeter.reading.windows import Coverage, Frame, Span, histogram_window, span_of, whole_window
from redmeter.store import Store
from redmeter.store.query import Query, Read, in_parts, run_query, together
from redmeter.store.servers.replies import Reply, pairs, raised
from redmeter.stored.keys import Kept, Keys
from redmeter.stored.packed_text import parse_moments

#: Label sets of each histogram and of each counter that are read in a round trip, and in all.
_PAGE, _MAX_READ = 500, 10_000
#: Orders of statements and of tasks, the highest first.
STATEMENT_ORDERS = ("total", "count", "p95", "errors")
TASK_ORDERS = ("total", "count", "p95", "failing")
#: Most rows, and rows of which distributions are read; routes and tasks listed for a statement.
MAX_WORKLOAD_ROWS, MAX_CALLERS = 50, 5
#: The quantile of a row.
_QUANTILE = 0.95


@dataclass(slots=True)
class Timing(RankedGroup):
    """The durations and the counts of one row."""

    key: str = field(kw_only=True)
    p95: float | None = None
    #: Durations by interval; None before the first one.
    values: list[float | None] = field(default_factory=list)
    #: By the names of counters, the label sets with events: labels, and events within the window.
    counts: dict[str, list[tuple[SeriesName, int]]] = field(default_factory=dict)
    #: Means of further histograms, by their names, seconds.
    means: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float | None:
        """The sum of its durations, seconds; None if there are none, or it is not known."""
        return self.sums.exact_total if self.sums.count else None

    @property
    def mean(self) -> float | None:
        """The mean of its durations, seconds."""
        return self.sums.exact_mean if self.sums.count else None

    def counted(self, counter: str) -> int:
        """Return the events of a counter."""
        return sum(count for _, count in self.counts.get(counter, ()))


@dataclass(frozen=True, slots=True)
class Workload:
    """Where a workload is stored, and how its rows are ordered."""

    #: The histogram, the label that names its rows, and the counters.
    histogram: str
    label: str
    counters: tuple[str, ...]
    #: Return how often a row came, and how often it failed.
    count: Callable[[Timing], int]
    failed: Callable[[Timing], int]
    #: Further histograms with the same label, of which the means are read.
    means: tuple[str, ...] = ()

    def ordered(self, rows: Sequence[Timing], order: str) -> list[Timing]:
        """Return rows, the highest first; by p95, those that may be the highest first."""
        values: dict[str, Callable[[Timing], float]] = {
            "p95": lambda row: upper_bound(row.sums, _QUANTILE) if row.sums.count else 0.0,
            "count": self.count,
            "total": lambda row: row.total or 0.0,
            "failing": lambda row: at_least(self.failed(row), self.count(row)),
        }
        value = values.get(order, self.failed)
        shown = [row for row in rows if order not in ("errors", "failing") or self.failed(row)]
        return highest(shown, value, lambda row: row.total or 0.0, name=lambda row: row.key)


@dataclass(frozen=True, kw_only=True)
class WorkloadRow:
    """The durations of one row of a workload."""

    #: The stored name of its durations; "" if there are none.
    series: str
    #: How often it came in the window, and in the compared period; null if that is not kept.
    count: int
    before: int | None
    #: The time of all its executions, seconds; and its share of the time of all rows.
    total: float | None
    share: float | None
    mean: float | None
    p95: float | None
    #: Timed executions per interval of values_precision, from values_start on.
    values: list[float | None]


@dataclass(frozen=True, kw_only=True)
class WorkloadTable:
    """A workload within a window."""

    window: Span
    #: Rows that match.
    found: int
    #: Executions and seconds of all rows.
    count: int
    total: float
    #: Label sets of durations and counters that were read, and that there are.
    examined: int
    of: int
    values_start: int
    values_precision: int


class _Found(NamedTuple):
    """All rows of a workload, and those that are shown; and the fields of its table."""

    rows: Sequence[Timing]
    page: Sequence[Timing]
    table: dict[str, Any]

    def fields(self, workload: Workload, row: Timing) -> dict[str, Any]:
        """Return the fields that the rows of all workloads have."""
        everything, total = self.table["total"], row.total
        return {
            "series": next(iter(row.series), ""),
            "count": workload.count(row),
            "before": row.count_before,
            "total": total,
            "share": total / everything if total is not None and everything > 0 else None,
            "mean": row.mean,
            "p95": row.p95,
            "values": row.values,
        }


def _read(
    store: Store,
    workload: Workload,
    precision: int,
    matches: Callable[[Timing], bool] = lambda _: True,
    *,
    order: str = "total",
    containing: str = "",
    limit: int = MAX_WORKLOAD_ROWS,
    offset: int = 0,
    frame: Frame | None = None,
) -> tuple[float, _Found]:
    """Read a workload; return also the server's clock, Unix seconds.

    Args:
        precision: interval width, seconds; its samples are the window.
        matches: whether a row is shown.
        order: `total`, `count`, `p95`, or another word for failures, which leaves out rows without.
        containing: only rows whose label contains this text.
        limit, offset: which rows are shown.
        frame: the window; None: all samples of the precision.

    Raises:
        UnknownPrecision, StoreError: see redmeter.reading.top.top.
    """

    def make(kept: Kept) -> Query[_Found]:
        window = whole_window(kept.series, precision, frame)
        observed = histogram_window(kept.histograms, window)
        now, rows, table = yield from _rows(store.keys, window, observed, workload)
        matching = [row for row in rows if containing in row.key and matches(row)]
        chosen = workload.ordered(matching, order)
        page = chosen[offset : offset + limit]
        yield from _with_details(store.keys, page[:MAX_WORKLOAD_ROWS], observed, now)
        if order == "p95":
            page.sort(key=lambda row: -(row.p95 or 0.0))
        return _Found(rows, page, {**table, "found": len(chosen)})

    view, found = run_query(store, make)
    return view.now, found


def _rows(
    keys: Keys, window: Coverage, observed: Coverage, workload: Workload
) -> Query[tuple[float, list[Timing], dict[str, Any]]]:
    """Read all rows; return also the server's clock and the fields of the table."""
    moments = keys.key("moments")
    asks = [of_window(moments, observed)]
    if observed.earlier:
        asks.append(of_before(moments, observed))
    histograms = [
        LabelSets(keys, keys.hists, observed.fine, name)
        for name in (workload.histogram, *workload.means)
    ]
    counters = [LabelSets(keys, keys.known, window.fine, name) for name in workload.counters]
    in_window = [of_window(keys.key("count"), window)]
    read = [
        (histograms[0], asks),
        *((each, asks[:1]) for each in histograms[1:]),
        *((each, in_window) for each in counters),
    ]
    view, replies = yield [
        *(each.size() for each, _ in read),
        *(each.join(wanted, _PAGE) for each, wanted in read),
    ]
    sizes, firsts = replies[: len(read)], replies[len(read) :]
    pages = yield from together(
        [
            each.read_on(Joined(reply, len(wanted), needed=False), wanted, _PAGE, _MAX_READ)
            for (each, wanted), reply in zip(read, firsts, strict=True)
        ]
    )
    durations, *others = pages
    rows, joins = _timings(durations, workload.label), iter(others)
    for name in workload.means:
        for key, row in _timings(next(joins), workload.label).items():
            if key in rows and row.mean is not None:
                rows[key].means[name] = row.mean
    for counter in workload.counters:
        for _, name_of_set, (reply,) in series_in(next(joins)):
            if count := sums_of("counter", reply).count:
                key = name_of_set.label(workload.label) or OTHER
                counts = rows.setdefault(key, Timing(key=key)).counts
                counts.setdefault(counter, []).append((name_of_set, count))
    happened = [row for row in rows.values() if workload.count(row)]
    slots, total = observed.slots(view.now), sum(row.total or 0.0 for row in happened)
    table = {
        "window": span_of(window, observed, view.now),
        "count": sum(map(workload.count, happened)),
        "total": total,
        "examined": sum(len(page.members) for joined in pages for page in joined),
        "of": sum(map(number_of, sizes)),
        "values_start": slots.start,
        "values_precision": slots.step,
    }
    return view.now, happened, table


def _timings(pages: Sequence[Joined], label: str) -> dict[str, Timing]:
    rows: dict[str, Timing] = {}
    for name, (_, labels), replies in series_in(pages):
        key = dict(labels).get(label, OTHER)
        row = rows.setdefault(key, Timing(key=key))
        row.add(name, *(sums_of("histogram", reply) for reply in replies))
    return rows


def _with_details(
    keys: Keys, rows: Sequence[Timing], observed: Coverage, now: float
) -> Query[None]:
    """Set the percentiles and the samples of rows."""
    names = [name for row in rows for name in row.series]
    if not names:
        return
    fields, slots = observed.slices(now), observed.slots(now)
    moments: list[Read] = [("HGETALL", keys.moments(slots.step, name)) for name in names]
    distributions, samples = yield from in_parts([slices_asked(keys, names, fields), moments])
    spreads = slices_answered(names, fields, distributions, needed=False)
    by_name = dict(zip(names, samples, strict=True))
    for row in rows:
        row.p95 = quantile_of(_QUANTILE, map(spreads.get, row.series))
        row.values = summed([by_name[name] for name in row.series], slots, _durations)


def _durations(reply: Reply) -> dict[int, int]:
    """Parse the moments of a histogram: interval start -> number of values."""
    return {
        int(start): sums.count
        for start, text in pairs(raised(reply))
        if start.isdigit() and (sums := parse_moments(text)) is not None
    }


# --- Database statements -------------------------------------------------------------------

STATEMENTS = Workload(
    DB_QUERY_SECONDS,
    "statement",
    (DB_QUERIES, DB_ERRORS),
    count=lambda row: row.sums.count,
    failed=lambda row: row.counted(DB_ERRORS),
)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """A route or a task that sends a statement."""

    kind: Literal["route", "task"]
    name: str
    #: Executions of the statement by it.
    count: int


@dataclass(frozen=True, kw_only=True)
class Statement(WorkloadRow):
    """A database statement, by what groups it."""

    statement: str
    errors: int
    #: The most frequent callers, and their number.
    callers: list[Caller]
    callers_of: int


@dataclass(frozen=True, kw_only=True)
class Statements(WorkloadTable):
    """The statements of a window."""

    rows: list[Statement]


def read_statements(
    store: Store, precision: int, *, caller: str | None = None, **options: Any
) -> tuple[float, Statements]:
    """Read statements, the highest first; return also the server's clock, Unix seconds.

    Args:
        caller: only statements that this route or task sends.
        precision, options: see _read(); the order is one of STATEMENT_ORDERS.
    """

    def matches(row: Timing) -> bool:
        return caller is None or any(one.name == caller for one in _callers(row))

    now, found = _read(store, STATEMENTS, precision, matches, **options)
    rows = [
        Statement(
            **found.fields(STATEMENTS, row),
            statement=row.key,
            errors=STATEMENTS.failed(row),
            callers=(callers := _callers(row))[:MAX_CALLERS],
            callers_of=len(callers),
        )
        for row in found.page
    ]
    return now, Statements(**found.table, rows=rows)


def _callers(row: Timing) -> list[Caller]:
    """Return the callers of a statement, the most frequent first."""
    callers = [
        Caller(kind="route" if kind == "route" else "task", name=caller, count=count)
        for name, count in row.counts.get(DB_QUERIES, ())
        for kind in ("route", "task")
        if (caller := name.label(kind)) is not None
    ]
    return highest(callers, lambda one: one.count, name=lambda one: one.name)


# --- Background tasks ----------------------------------------------------------------------

#: States of a run that failed.
FAILURES = frozenset({"failure", "rejected", "expired", "unknown"})

TASKS = Workload(
    TASK_SECONDS,
    "task",
    (TASK_RUNS,),
    # A task that was revoked or lost has outcomes, and no duration.
    count=lambda row: row.counted(TASK_RUNS) or row.sums.count,
    failed=lambda row: sum(one.count for one in _outcomes(row) if one.failed),
    means=(TASK_QUEUE_SECONDS, TASK_DB_SECONDS),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Runs of a task that ended in one state."""

    state: str
    count: int
    failed: bool


@dataclass(frozen=True, kw_only=True)
class Task(WorkloadRow):
    """A background task."""

    task: str
    #: Runs in the window by outcome, the most frequent first.
    outcomes: list[Outcome]
    #: Runs that failed, and their share of all runs.
    failed: int
    failing: float
    #: Means of the wait in the queue and of the time in databases, seconds; null if not recorded.
    wait: float | None
    database: float | None


@dataclass(frozen=True, kw_only=True)
class Tasks(WorkloadTable):
    """The tasks of a window."""

    rows: list[Task]
    #: Failed runs of all tasks.
    failed: int


def read_tasks(store: Store, precision: int, **options: Any) -> tuple[float, Tasks]:
    """Read tasks, the highest first; return also the server's clock, Unix seconds.

    Args:
        precision, options: see _read(); the order is one of TASK_ORDERS.
    """
    now, found = _read(store, TASKS, precision, **options)
    rows = [
        Task(
            **found.fields(TASKS, row),
            task=row.key,
            outcomes=_outcomes(row),
            failed=(failed := TASKS.failed(row)),
            failing=failed / TASKS.count(row),
            wait=row.means.get(TASK_QUEUE_SECONDS),
            database=row.means.get(TASK_DB_SECONDS),
        )
        for row in found.page
    ]
    return now, Tasks(**found.table, rows=rows, failed=sum(map(TASKS.failed, found.rows)))


def _outcomes(row: Timing) -> list[Outcome]:
    """Return the outcomes of a task, the most frequent first."""
    runs = ((name.label("state") or OTHER, n) for name, n in row.counts.get(TASK_RUNS, ()))
    outcomes = (Outcome(state=s, count=n, failed=s in FAILURES) for s, n in runs)
    return highest(outcomes, lambda one: one.count, name=lambda one: one.state)
