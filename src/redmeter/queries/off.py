"""The answers of a meter that is off: every query returns an empty result."""
# ruff: noqa: ARG005 - most arguments do not matter

from collections.abc import Callable, Mapping
from typing import Any, Final

from redmeter.clock import SYSTEM
from redmeter.reading import (
    aggregates,
    distributions,
    exceptions,
    marks,
    names,
    promql,
    samples,
    statistics,
    top,
)
from redmeter.reading.diagnosis import explain, judged_status, verdict
from redmeter.reading.diagnosis.verdict_data import VerdictData, plan
from redmeter.reading.logs import recent
from redmeter.reading.selection import GroupKey, name_of
from redmeter.results.exceptions import ExceptionSummaries
from redmeter.results.explanation import Explanation, Status
from redmeter.results.logs import Changes
from redmeter.results.promql import QueryResult
from redmeter.results.series import CoveredWindow, Ranking, Series
from redmeter.results.summaries import Statistics, Summary, summary_of
from redmeter.results.verdict import Verdict
from redmeter.stored.exception import FINEST
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, Retention
from redmeter.types import Selection, Window

#: The answer to questions that have one in words.
OFF = "Redmeter is off: nothing is recorded."


def _series(name: str, precision: int) -> Series[Any]:
    window = CoveredWindow(precision, 0, 0)
    return Series(name, precision, 0, (), partial=False, window=window)


def _series_many(names: list[str], window: Window, **_: object) -> dict[str, Series[Any]]:
    return {name: _series(name, window.precision) for name in names}


def _summary(name: str, window: Window) -> Summary:
    return summary_of(Distribution(), name, CoveredWindow(window.precision, 0, 0))


def _groups(selection: Selection, empty: Any) -> list[tuple[GroupKey, Any]]:
    return [] if selection.by else [((), empty)]


def _samples(selection: Selection, window: Window) -> list[tuple[GroupKey, Series[Any]]]:
    return _groups(selection, _series(name_of(selection), window.precision))


def _verdict(asked: verdict.VerdictQuestion) -> tuple[float, Verdict]:
    now = SYSTEM.wall()
    _, moment = verdict.find_mark(asked, [], now)  # there are no marks
    kept = Retention(DEFAULT_RETENTION), Retention(DEFAULT_HISTOGRAMS)
    windows = plan(moment, now, asked.against, asked.precision, *kept)
    return now, verdict.build(asked, now, [], windows, VerdictData(), ())


def _exceptions(wanted: exceptions.ExceptionQuery) -> ExceptionSummaries:
    precision = wanted.window.precision or FINEST
    return ExceptionSummaries(precision, 0, 0, 0, 0, 0, 0, 0, 0, 0, ())


#: A function that reads a store -> one that takes its arguments.
OFF_ANSWERS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = {
    aggregates.read_counter: _samples,
    aggregates.read_gauge: lambda selection, window, aggregate, **_: _samples(selection, window),
    aggregates.read_summary: lambda selection, window: _groups(
        selection, _summary(name_of(selection), window)
    ),
    aggregates.read_total: lambda selection: {},
    aggregates.read_zoned_forecasts: lambda selection, precision, ahead, aggregate: (
        aggregates.forecasts(selection, precision, [], [], ahead)
    ),
    samples.read_series: _series_many,
    samples.read_gauges: _series_many,
    distributions.read_summaries: lambda names, window: {
        name: _summary(name, window) for name in names
    },
    statistics.read_statistics: lambda name: Statistics(name, None, None),
    names.read_names: lambda pattern, kind: [],
    top.read_top: lambda wanted: Ranking(),
    marks.read_marks: lambda since, until: [],
    recent.read_recent: lambda logger, severity, limit: [],
    recent.read_common: lambda logger, severity: [],
    recent.read_loggers: list,
    recent.read_changes: lambda logger: Changes(),
    exceptions.read_exceptions: _exceptions,
    exceptions.read_exception: lambda group, wanted: None,
    promql.read_query: lambda text, at, window: QueryResult("matrix" if window else "vector"),
    explain.read_explanation: lambda request: (
        0.0,
        Explanation(name=request.name, reason=OFF, sentence=OFF),
    ),
    judged_status.read_status: lambda: (0.0, Status(sentence=OFF)),
    verdict.read_verdict: _verdict,
}
