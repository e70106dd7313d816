"""Background tasks within a window: runs by outcome, durations, and waits in the queue.

From `task_runs{task,state}`, `task_seconds{task}`, `task_queue_seconds{task}` and
`task_db_seconds{task}`, as the integration of Celery records them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from redmeter.names import TASK_DB_SECONDS, TASK_QUEUE_SECONDS, TASK_RUNS, TASK_SECONDS
from redmeter.reading.label_sets import OTHER
from redmeter.reading.windows import Frame, Span
from redmeter.reading.workloads import (
    Counted,
    Timing,
    Wanted,
    ordered,
    read_workload,
    total_of,
)
from redmeter.store import Store

#: Orders of tasks, the highest first.
ORDERS = ("total", "count", "p95", "failing")
#: States of a run that failed.
FAILURES = frozenset({"failure", "rejected", "expired", "unknown"})


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Runs of a task that ended in one state."""

    state: str
    count: int
    failed: bool


@dataclass(frozen=True, kw_only=True)
class Task:
    """A background task."""

    task: str
    #: The stored name of its durations.
    series: str
    #: Runs in the window, the most frequent outcome first; runs in the compared period, null if
    #: that is not kept.
    count: int
    before: int | None
    outcomes: list[Outcome]
    #: Runs that failed, and their share of all runs.
    failed: int
    failing: float
    #: All its runs, seconds; and its share of the time of all tasks.
    total: float | None
    share: float | None
    mean: float | None
    p95: float | None
    #: Means of the wait in the queue and of the time in databases, seconds; null if not recorded.
    wait: float | None
    database: float | None
    #: Timed runs per interval of values_precision, from values_start on.
    values: list[float | None]


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """The tasks of a window."""

    window: Span
    rows: list[Task]
    #: Tasks that match.
    found: int
    #: Runs, failed runs and seconds of all tasks.
    count: int
    failed: int
    total: float
    #: Label sets of durations that were read, and that there are.
    examined: int
    of: int
    values_start: int
    values_precision: int


def read_tasks(
    store: Store,
    precision: int,
    *,
    order: str = "total",
    containing: str = "",
    limit: int = 50,
    offset: int = 0,
    frame: Frame | None = None,
) -> tuple[float, Tasks]:
    """Read tasks, the highest first; return also the server's clock, Unix seconds.

    Args:
        precision: interval width, seconds; its samples are the window.
        order: one of ORDERS; `failing` leaves out tasks without failures.
        containing: only tasks that contain this text.
        frame: the window; None: all samples of the precision.

    Raises:
        UnknownPrecision: the precision is not kept.
        StoreError: the server is unreachable or refuses.
    """

    def matching(
        timings: Mapping[str, Timing], counters: Mapping[str, Counted]
    ) -> list[tuple[Timing, list[Outcome]]]:
        outcomes = _outcomes(counters[TASK_RUNS])
        # A task that was revoked or lost has outcomes, and no duration.
        every = {**{key: Timing(key) for key in outcomes}, **timings}
        rows = [
            (row, outcomes.get(row.key, []))
            for row in ordered(every, order)
            if containing in row.key and (row.sums.count or outcomes.get(row.key))
        ]
        if order == "failing":
            rows = [row for row in rows if _failed(row[1])]
            rows.sort(key=lambda row: -_failed(row[1]))
        elif order == "count":
            rows.sort(key=lambda row: -_runs(*row))
        return rows

    def shown(timings: Mapping[str, Timing], counters: Mapping[str, Counted]) -> list[str]:
        return [row.key for row, _ in matching(timings, counters)[offset : offset + limit]]

    wanted = Wanted(
        TASK_SECONDS, "task", (TASK_RUNS,), shown, (TASK_QUEUE_SECONDS, TASK_DB_SECONDS)
    )
    now, found = read_workload(store, precision, wanted, frame)
    rows = matching(found.timings, found.counters)
    page = rows[offset : offset + limit]
    if order == "p95":
        page = sorted(page, key=lambda row: -(row[0].p95 or 0.0))
    everything = total_of(found.timings)
    waits, databases = found.means[TASK_QUEUE_SECONDS], found.means[TASK_DB_SECONDS]
    return now, Tasks(
        window=found.window,
        rows=[
            Task(
                task=row.key,
                series=row.series[0] if row.series else "",
                count=(count := _runs(row, outcomes)),
                before=row.before,
                outcomes=outcomes,
                failed=_failed(outcomes),
                failing=_failed(outcomes) / count if count else 0.0,
                total=(total := row.sums.exact_total if row.sums.count else None),
                share=total / everything if total is not None and everything > 0 else None,
                mean=row.sums.exact_mean if row.sums.count else None,
                p95=row.p95,
                wait=waits.get(row.key),
                database=databases.get(row.key),
                values=row.values,
            )
            for row, outcomes in page
        ],
        found=len(rows),
        count=sum(_runs(*row) for row in rows),
        failed=sum(_failed(outcomes) for _, outcomes in rows),
        total=everything,
        examined=found.examined,
        of=found.of,
        values_start=found.values_start,
        values_precision=found.values_precision,
    )


def _runs(row: Timing, outcomes: list[Outcome]) -> int:
    return sum(one.count for one in outcomes) or row.sums.count


def _failed(outcomes: list[Outcome]) -> int:
    return sum(one.count for one in outcomes if one.failed)


def _outcomes(runs: Counted) -> dict[str, list[Outcome]]:
    """Return the outcomes of each task, the most frequent first."""
    outcomes: dict[str, list[Outcome]] = {}
    for name, count in runs.rows:
        state = name.label("state") or OTHER
        one = Outcome(state=state, count=count, failed=state in FAILURES)
        outcomes.setdefault(name.label("task") or OTHER, []).append(one)
    for some in outcomes.values():
        some.sort(key=lambda one: (-one.count, one.state))
    return outcomes
