"""Database statements within a window: how often, how long, failures, and who sends them.

From `db_query_seconds{statement}`, `db_errors{statement,error}` and `db_queries{route,statement}`,
or `{task,statement}`, as the integrations of SQLAlchemy and Django record them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from redmeter.names import DB_ERRORS, DB_QUERIES, DB_QUERY_SECONDS
from redmeter.reading.windows import Frame, Span
from redmeter.reading.workloads import (
    Counted,
    Timing,
    Wanted,
    Workload,
    ordered,
    read_workload,
    total_of,
)
from redmeter.store import Store

#: Orders of statements, the highest first.
ORDERS = ("total", "count", "p95", "errors")
#: Routes and tasks that are listed for a statement.
MAX_CALLERS = 5


@dataclass(frozen=True, kw_only=True)
class Caller:
    """A route or a task that sends a statement."""

    kind: Literal["route", "task"]
    name: str
    #: Executions of the statement by it.
    count: int


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A database statement, by what groups it."""

    statement: str
    #: The stored name of its durations.
    series: str
    #: Executions in the window, and in the compared period; null if that is not kept.
    count: int
    before: int | None
    errors: int
    #: All its executions, seconds; and its share of the time of all statements.
    total: float | None
    share: float | None
    mean: float | None
    p95: float | None
    #: The most frequent callers, and their number.
    callers: list[Caller]
    callers_of: int
    #: Executions per interval of values_precision, from values_start on.
    values: list[float | None]


@dataclass(frozen=True, kw_only=True)
class Statements:
    """The statements of a window."""

    window: Span
    rows: list[Statement]
    #: Statements that match.
    found: int
    #: Executions and seconds of all statements.
    count: int
    total: float
    #: Label sets of durations that were read, and that there are.
    examined: int
    of: int
    values_start: int
    values_precision: int


def read_statements(
    store: Store,
    precision: int,
    *,
    order: str = "total",
    containing: str = "",
    caller: str | None = None,
    limit: int = 50,
    offset: int = 0,
    frame: Frame | None = None,
) -> tuple[float, Statements]:
    """Read statements, the highest first; return also the server's clock, Unix seconds.

    Args:
        precision: interval width, seconds; its samples are the window.
        order: one of ORDERS; `errors` leaves out statements without errors.
        containing: only statements that contain this text.
        caller: only statements that this route or task sends.
        frame: the window; None: all samples of the precision.

    Raises:
        UnknownPrecision: the precision is not kept.
        StoreError: the server is unreachable or refuses.
    """

    def matching(
        timings: Mapping[str, Timing], counters: Mapping[str, Counted]
    ) -> list[tuple[Timing, int]]:
        errors = _errors(counters)
        callers = _callers(counters) if caller is not None else {}
        rows = [
            (row, errors.get(row.key, 0))
            for row in ordered(timings, order)
            if row.sums.count
            and containing in row.key
            and (caller is None or any(one.name == caller for one in callers.get(row.key, ())))
        ]
        if order == "errors":
            rows = sorted((row for row in rows if row[1]), key=lambda row: -row[1])
        return rows

    def shown(timings: Mapping[str, Timing], counters: Mapping[str, Counted]) -> list[str]:
        return [row.key for row, _ in matching(timings, counters)[offset : offset + limit]]

    wanted = Wanted(DB_QUERY_SECONDS, "statement", (DB_QUERIES, DB_ERRORS), shown)
    now, found = read_workload(store, precision, wanted, frame)
    rows = matching(found.timings, found.counters)
    page = rows[offset : offset + limit]
    if order == "p95":
        page = sorted(page, key=lambda row: -(row[0].p95 or 0.0))
    return now, _statements(found, page, len(rows))


def _statements(found: Workload, page: list[tuple[Timing, int]], number: int) -> Statements:
    everything, callers = total_of(found.timings), _callers(found.counters)
    return Statements(
        window=found.window,
        rows=[
            Statement(
                statement=row.key,
                series=row.series[0],
                count=row.sums.count,
                before=row.before,
                errors=errors,
                total=(total := row.sums.exact_total),
                share=total / everything if total is not None and everything > 0 else None,
                mean=row.sums.exact_mean,
                p95=row.p95,
                callers=callers.get(row.key, [])[:MAX_CALLERS],
                callers_of=len(callers.get(row.key, [])),
                values=row.values,
            )
            for row, errors in page
        ],
        found=number,
        count=sum(row.sums.count for row in found.timings.values()),
        total=everything,
        examined=found.examined,
        of=found.of,
        values_start=found.values_start,
        values_precision=found.values_precision,
    )


def _errors(counters: Mapping[str, Counted]) -> dict[str, int]:
    errors: dict[str, int] = {}
    for name, count in counters[DB_ERRORS].rows:
        statement = name.label("statement") or ""
        errors[statement] = errors.get(statement, 0) + count
    return errors


def _callers(counters: Mapping[str, Counted]) -> dict[str, list[Caller]]:
    """Return the callers of each statement, the most frequent first."""
    callers: dict[str, list[Caller]] = {}
    for name, count in counters[DB_QUERIES].rows:
        statement = name.label("statement")
        for kind in ("route", "task"):
            value = name.label(kind)
            if statement is not None and value is not None:
                one = Caller(kind=kind, name=value, count=count)
                callers.setdefault(statement, []).append(one)
    for some in callers.values():
        some.sort(key=lambda one: (-one.count, one.name))
    return callers
