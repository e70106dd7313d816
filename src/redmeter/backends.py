"""The backends of the query API: an empty one, and one that reads a store. In memory: testing/.

Names and times are checked by queries/, and names are in their stored spelling. A backend checks
the rest.
"""
# ruff: noqa: ARG002 - the empty backend ignores its arguments

from collections.abc import Callable
from math import ceil
from typing import TypeVar

from redmeter.analysis.explanation import Explanation, Status
from redmeter.clock import SYSTEM
from redmeter.reading import (
    aggregates,
    distributions,
    exceptions,
    marks,
    ranking,
    samples,
    statistics,
    top,
)
from redmeter.reading.diagnosis import explain, status
from redmeter.reading.diagnosis.verdict import VerdictQuestion, build, find_mark, read_verdict
from redmeter.reading.diagnosis.verdict_data import VerdictData, plan
from redmeter.reading.diagnosis.windows import ExplainRequest
from redmeter.reading.exceptions import ExceptionQuery, ExceptionSummaries, ExceptionSummary
from redmeter.reading.export.listing import ExportList
from redmeter.reading.logs import recent as logs
from redmeter.reading.names import read_names
from redmeter.reading.selection import GroupKey, name_of
from redmeter.reading.spread import Summary, summary_of
from redmeter.results import (
    Changes,
    Forecast,
    Frequency,
    LogSource,
    Mark,
    Message,
    QueryResult,
    Ranking,
    Series,
    Statistics,
)
from redmeter.store import Store
from redmeter.store.query import Query, run
from redmeter.stored.exception import FINEST
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, Keys, Retention
from redmeter.types import Period, Selector, Top
from redmeter.verdicts import Verdict
from redmeter.zones import UTC

T = TypeVar("T")

#: The answer of a meter that is off to questions that have one.
OFF = "Redmeter is off: nothing is recorded."

#: A range query: its start, or minus its length; its end, or None for now; its step, or None.
QueryWindow = tuple[float, float | None, float | None]
#: A result for each group of a selector.
Groups = list[tuple[GroupKey, T]]


class Backend:
    """The backend of a meter that is off: every query returns an empty result."""

    #: Whose time of day the backend in memory compares.
    _zone = UTC

    def series(self, selector: Selector, period: Period) -> Groups[Series[int]]:
        """Return the samples of counters by group; one group if the selector has no `by`."""
        empty = Series[int](name_of(selector), period.precision, 0, (), partial=False)
        return [] if selector.by else [((), empty)]

    def series_many(self, names: list[str], period: Period) -> dict[str, Series[int]]:
        return {name: Series(name, period.precision, 0, (), partial=False) for name in names}

    def gauges(
        self, selector: Selector, period: Period, aggregate: str | None
    ) -> Groups[Series[float | None]]:
        """Return the samples of the selected gauges by group."""
        aggregates.check_aggregate(aggregate)
        empty = Series[float | None](name_of(selector), period.precision, 0, (), partial=False)
        return [] if selector.by else [((), empty)]

    def forecast(
        self, selector: Selector, precision: int, ahead: int | None, aggregate: str | None
    ) -> Groups[Forecast]:
        """Return the forecast of counters by group, or of gauges if there are no such counters."""
        period = Period(precision)
        counters = self.series(selector, period)
        counted = any(series for _, series in counters)
        gauges = [] if counted else self.gauges(selector, period, aggregate)
        return aggregates.forecasts(selector, precision, counters, gauges, ahead, self._zone)

    def summary(self, selector: Selector, period: Period) -> Groups[Summary]:
        """Return the distribution of the selected histograms by group."""
        empty = summary_of(Distribution(), name_of(selector), period.precision, 0, 0, partial=False)
        return [] if selector.by else [((), empty)]

    def summary_many(self, names: list[str], period: Period) -> dict[str, Summary]:
        return {name: self.summary(Selector(name), period)[0][1] for name in names}

    def query(self, promql: str, at: float | None, window: QueryWindow | None) -> QueryResult:
        """Return the result of a PromQL query; a window is start or length, end, step."""
        return QueryResult("vector" if window is None else "matrix")

    def statistics(self, name: str) -> Statistics:
        return Statistics(name, None, None)

    def marks(self, since: float | None, until: float | None) -> list[Mark]:
        return []

    def verdict(self, asked: VerdictQuestion) -> Verdict:
        """Return the verdict about a deploy; there is no mark where nothing is stored.

        Raises:
            InvalidValue: there is no such mark.
        """
        now = SYSTEM.wall()
        _, moment = find_mark(asked, [], now)
        kept = Retention(DEFAULT_RETENTION), Retention(DEFAULT_HISTOGRAMS)
        windows = plan(moment, now, asked.against, asked.precision, *kept)
        return build(asked, now, [], windows, VerdictData(), ())

    def recent(self, logger: str, severity: str | None, limit: int) -> list[Message]:
        logs.check_limit(limit)
        return []

    def common(self, logger: str, severity: str | None) -> list[Frequency]:
        return []

    def loggers(self) -> list[LogSource]:
        return []

    def changes(self, logger: str | None) -> Changes:
        return Changes()

    def exceptions(self, wanted: ExceptionQuery) -> ExceptionSummaries:
        return ExceptionSummaries(wanted.period.precision or FINEST, 0, 0, 0, 0, 0, 0, 0, 0, ())

    def exception(self, group: str, wanted: ExceptionQuery) -> ExceptionSummary | None:
        return None

    def totals(self, selector: Selector) -> dict[GroupKey, int]:
        """Return everything ever counted by group; nothing if nothing was."""
        return {}

    def names(self, pattern: str, kind: str) -> list[str]:
        return []

    def top(self, wanted: Top) -> Ranking:
        ranking.check(wanted)
        return Ranking()

    def explain(self, request: ExplainRequest) -> Explanation:
        """Return what accounts for a rise or a fall."""
        return Explanation(name=request.name, reason=OFF, sentence=OFF)

    def status(self) -> Status:
        """Return whether the last five minutes are as usual."""
        return Status(sentence=OFF)


class StoreBackend(Backend):
    """Reads a store, through reading/."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._exports = ExportList(store, seconds=0)

    def series(self, selector: Selector, period: Period) -> Groups[Series[int]]:
        return self._run(lambda keys: aggregates.read_counter(keys, selector, period))

    def series_many(self, names: list[str], period: Period) -> dict[str, Series[int]]:
        precision, since, until, _, last = period
        return samples.read_series(
            self._store, names, precision, since=since, until=until, last=last
        )

    def gauges(
        self, selector: Selector, period: Period, aggregate: str | None
    ) -> Groups[Series[float | None]]:
        return self._run(lambda keys: aggregates.read_gauge(keys, selector, period, aggregate))

    def forecast(
        self, selector: Selector, precision: int, ahead: int | None, aggregate: str | None
    ) -> Groups[Forecast]:
        return self._run(
            lambda keys: aggregates.read_forecasts(
                keys, selector, precision, ahead, aggregate, zone=self._store.zone
            )
        )

    def summary(self, selector: Selector, period: Period) -> Groups[Summary]:
        return self._run(lambda keys: aggregates.read_summary(keys, selector, period))

    def summary_many(self, names: list[str], period: Period) -> dict[str, Summary]:
        return distributions.read_summaries(self._store, names, **period._asdict())

    def query(self, promql: str, at: float | None, window: QueryWindow | None) -> QueryResult:
        from redmeter.reading.promql import query as evaluation

        if window is None:
            return evaluation.query(self._exports, promql, at, None)
        start, end, step = window
        until = self._exports.read().time() if end is None else end
        begin = start if start >= 0 else until + start
        width = step or max(1.0, ceil((until - begin) / 100))
        return evaluation.query(self._exports, promql, None, (begin, until, width))

    def _run(self, query: Callable[[Keys], Query[T]]) -> T:
        return run(self._store, lambda _: query(self._store.keys))[1]

    def statistics(self, name: str) -> Statistics:
        return statistics.read_statistics(self._store, name)

    def marks(self, since: float | None, until: float | None) -> list[Mark]:
        return marks.read_marks(self._store, since=since, until=until)

    def verdict(self, asked: VerdictQuestion) -> Verdict:
        return read_verdict(self._store, asked)[1]

    def recent(self, logger: str, severity: str | None, limit: int) -> list[Message]:
        return logs.read_recent(self._store, logger, severity=severity, limit=limit)

    def common(self, logger: str, severity: str | None) -> list[Frequency]:
        return logs.read_common(self._store, logger, severity=severity)

    def loggers(self) -> list[LogSource]:
        return logs.read_loggers(self._store)

    def changes(self, logger: str | None) -> Changes:
        return logs.read_changes(self._store, logger)

    def exceptions(self, wanted: ExceptionQuery) -> ExceptionSummaries:
        return exceptions.read_exceptions(self._store, wanted)

    def exception(self, group: str, wanted: ExceptionQuery) -> ExceptionSummary | None:
        return exceptions.read_exception(self._store, group, wanted)

    def totals(self, selector: Selector) -> dict[GroupKey, int]:
        return self._run(lambda keys: aggregates.read_total(keys, selector))

    def names(self, pattern: str, kind: str) -> list[str]:
        return read_names(self._store, pattern, kind)

    def top(self, wanted: Top) -> Ranking:
        return top.read_top(self._store, wanted)

    def explain(self, request: ExplainRequest) -> Explanation:
        return explain.read_explanation(self._store, request)[1]

    def status(self) -> Status:
        return status.read_status(self._store)[1]
