"""The query API of a Meter: every query once, with the checks of its names and times.

Backends execute the queries: of a store, in backends.py; in memory, in testing/. A new query is a
method here and in each backend. The recording half of a Meter is in meter.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, overload

from redmeter.clock import seconds_of
from redmeter.errors import InvalidValue
from redmeter.format.exception import check_group
from redmeter.format.message import check_logger, check_severity, severity_of
from redmeter.keys import MAX_TIME, check_times
from redmeter.names import canonical, check_text, parse_name, recorded_name
from redmeter.store import Store
from redmeter.types import ERROR_GROUPS, RANKED_ROWS, Period, Selector, Top

if TYPE_CHECKING:
    from redmeter.analysis.explanation import Explanation, Status
    from redmeter.backends import Backend
    from redmeter.reading.error_groups import ErrorGroup, ErrorGroups
    from redmeter.reading.query_results import QueryResult
    from redmeter.reading.spread import Summary, SummaryGroup
    from redmeter.results import (
        Changes,
        Forecast,
        Frequency,
        Group,
        LogSource,
        Mark,
        Message,
        Ranking,
        Series,
        Statistics,
        TotalGroup,
    )
    from redmeter.verdicts import Verdict

#: Unix seconds, or a datetime with a time zone.
Time = float | datetime

#: What names() tells apart.
KINDS = ("counters", "gauges", "histograms")


def spellings(names: Iterable[str]) -> list[str]:
    """Return the stored spellings of names.

    Raises:
        InvalidName: see redmeter.names.
        TypeError: a text, which would be as many names as it has characters.
    """
    if isinstance(names, str | bytes):
        raise TypeError(f"a list of names is asked for, not {type(names).__name__}: [name]")
    return [canonical(name) for name in names]


class Queries:
    """The query methods of a Meter.

    Args:
        store: the store to read; None: every query returns an empty result.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store

    @cached_property
    def _backend(self) -> Backend:
        # Imported with the first query: a process that only records does not load the readings.
        from redmeter.backends import Backend, StoreBackend

        return Backend() if self._store is None else StoreBackend(self._store.reader)

    @overload
    def series(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = ...,
        by: None = ...,
        exact: bool = ...,
        since: Time | None = ...,
        until: Time | None = ...,
        last: float | str | None = ...,
    ) -> Series[int]: ...
    @overload
    def series(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = ...,
        by: str | Sequence[str],
        since: Time | None = ...,
        until: Time | None = ...,
        last: float | str | None = ...,
    ) -> list[Group[int]]: ...
    def series(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = None,
        by: str | Sequence[str] | None = None,
        exact: bool = False,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
    ) -> Series[int] | list[Group[int]]:
        """Return the stored samples of a counter, oldest first, summed over its label sets.

            meter.series("orders", precision="1m")                          # all label sets
            meter.series("orders", precision="1m", labels={"plan": "pro"})  # those that match
            meter.series("orders", precision="1m", by="plan")               # one group per plan
            meter.series("orders", precision="1m", exact=True)              # one stored series

        Takes one round trip for up to 50 label sets, and two for more.

        Args:
            name: the counter's name. Labels in braces, `orders{plan="pro"}`, are a filter.
            precision: interval width: seconds, or text such as "1s", "5m", "1h", "1d".
            labels: only label sets that have these labels; values are converted with str(). Name
                all labels of a label set if a value was cut when it was recorded.
            by: a label, or several; the result has a group for each of their values.
            exact: read the one series that is stored under `name` and `labels`, without the index.
            since, until: leave out intervals that end before or start after; Unix seconds, or a
                datetime with a time zone.
            last: the newest intervals that this time holds, the current one included: seconds, or
                text such as "2h". Excludes `since` and `until`.

        Returns:
            A Series; with `by` a list of Group, the one with the most events first.

        Raises:
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: over 2,000 label sets.
            InvalidName: the name or a label is not allowed.
            InvalidValue: a time or a combination of arguments cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        selector = select(name, labels, by, exact=exact)
        found = self._backend.series(selector, _period(precision, since, until, last=last))
        if by is None:
            return found[0][1]
        from redmeter.results import Group

        return [Group(_labels_of(selector, key), series) for key, series in found]

    def series_of(
        self,
        names: list[str],
        *,
        precision: int | str,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
    ) -> dict[str, Series[int]]:
        """Return the stored samples of many counters, each read exactly, in one round trip.

        Names under whose keys another program keeps something else are left out, with a warning in
        the log; if nothing else is left, that is a StoreRefused.

        Args:
            names: series with their labels, each spelled as names() returns it or in another
                order.
            precision, since, until, last: see series().

        Raises:
            LimitExceeded: over 5,000 names.
            TypeError: the names are a str.
            UnknownPrecision, InvalidName, InvalidValue, StoreError: see series().
        """
        period = _period(precision, since, until, last=last)
        return self._backend.series_of(spellings(names), period)

    @overload
    def gauge_series(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = ...,
        by: None = ...,
        aggregate: str | None = ...,
        exact: bool = ...,
        since: Time | None = ...,
        until: Time | None = ...,
        last: float | str | None = ...,
    ) -> Series[float | None]: ...
    @overload
    def gauge_series(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = ...,
        by: str | Sequence[str],
        aggregate: str | None = ...,
        since: Time | None = ...,
        until: Time | None = ...,
        last: float | str | None = ...,
    ) -> list[Group[float | None]]: ...
    def gauge_series(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = None,
        by: str | Sequence[str] | None = None,
        aggregate: str | None = None,
        exact: bool = False,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
    ) -> Series[float | None] | list[Group[float | None]]:
        """Return the stored samples of a gauge, oldest first; None where it was not set.

        A gauge is summed over its label `instance`, which tells processes apart: an interval sums
        the processes that set it within the interval. If label sets differ in another label, choose
        `by`, `labels` or `aggregate`, since a sum of temperatures means nothing.

        Args:
            aggregate: "sum", "min", "max" or "mean" of the label sets.
            name, precision, labels, by, exact, since, until, last: see series().

        Returns:
            A Series; with `by` a list of Group, in order of the labels.

        Raises:
            InvalidValue: the gauge has labels other than `instance` that none of `by`, `labels` and
                `aggregate` covers; also if there is only one label set. See also series().
            UnknownPrecision, LimitExceeded, InvalidName, StoreError: see series().
        """
        selector = select(name, labels, by, exact=exact)
        period = _period(precision, since, until, last=last)
        found = self._backend.gauges(selector, period, aggregate)
        if by is None:
            return found[0][1]
        from redmeter.results import Group

        return [Group(_labels_of(selector, key), series) for key, series in found]

    def forecast(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = None,
        exact: bool = False,
        aggregate: str | None = None,
        ahead: int | None = None,
    ) -> Forecast:
        """Return the expected range of the next intervals of a counter or a gauge.

        It is the forecast of the sum of all label sets. It also has each stored interval with the
        range that was expected before the interval began. The method uses level and trend; for
        hours also the time of day, for days also the day of the week. The current interval is not
        judged: it is the first of those ahead. The page "Forecast" of the docs describes the method
        and its measured error.

        Args:
            name, labels, exact: see series(). If there is no such counter, a gauge is read.
            precision: interval width; see series().
            aggregate: of a gauge; see gauge_series().
            ahead: how many intervals, 1 to 48. Default: 24 hours, 14 days, else 12.

        Returns:
            Without ranges and with a `reason` if too little is stored.

        Raises:
            LimitExceeded: fewer than 1 or more than 48 intervals; over 2,000 label sets.
            TypeError: `ahead` is not an int.
            UnknownPrecision, InvalidName, InvalidValue, StoreError: see gauge_series().
        """
        selector = select(name, labels, None, exact=exact)
        return self._backend.forecast(selector, _seconds(precision), ahead, aggregate)

    @overload
    def summary(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = ...,
        by: None = ...,
        exact: bool = ...,
        since: Time | None = ...,
        until: Time | None = ...,
        last: float | str | None = ...,
        intervals: int | None = ...,
    ) -> Summary: ...
    @overload
    def summary(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = ...,
        by: str | Sequence[str],
        since: Time | None = ...,
        until: Time | None = ...,
        last: float | str | None = ...,
        intervals: int | None = ...,
    ) -> list[SummaryGroup]: ...
    def summary(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = None,
        by: str | Sequence[str] | None = None,
        exact: bool = False,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
        intervals: int | None = None,
    ) -> Summary | list[SummaryGroup]:
        """Return the distribution of a histogram's values: count, mean, percentiles, over time.

        Label sets are merged. Percentiles are within 2.17 % of the exact ones, over any window and
        however many label sets are merged.

        Args:
            name, labels, by, exact, since, until, last: see series().
            precision: interval width, one that is kept of histograms; see series().
            intervals: no more than so many of the newest intervals, the current one included.

        Returns:
            A Summary; with `by` a list of SummaryGroup, the one with the most values first.

        Raises:
            UnknownPrecision: not kept of histograms; the error lists those that are.
            LimitExceeded: over 500 label sets, or more intervals than are kept.
            TypeError: `intervals` is not an int.
            InvalidName, InvalidValue, StoreError: see series().
        """
        selector = select(name, labels, by, exact=exact)
        period = _period(precision, since, until, intervals, last)
        found = self._backend.summary(selector, period)
        if by is None:
            return found[0][1]
        from redmeter.reading.spread import SummaryGroup

        return [SummaryGroup(_labels_of(selector, key), summary) for key, summary in found]

    def summaries(
        self,
        names: list[str],
        *,
        precision: int | str,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
        intervals: int | None = None,
    ) -> dict[str, Summary]:
        """Return the summaries of many histograms, each read exactly, in one round trip.

        Args:
            names: see series_of(), also for names that cannot be read.
            precision, since, until, last, intervals: see summary().

        Raises:
            LimitExceeded: over 500 names, or more intervals than are kept.
            TypeError: the names are a str.
            UnknownPrecision, InvalidName, InvalidValue, StoreError: see summary().
        """
        period = _period(precision, since, until, intervals, last)
        return self._backend.summaries(spellings(names), period)

    def query(
        self,
        promql: str,
        *,
        at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
        step: float | str | None = None,
    ) -> QueryResult:
        """Answer a PromQL query, as the page's address answers Grafana.

            meter.query("sum by (route) (rate(http_requests_total[5m]))")
            meter.query("histogram_quantile(0.95, rate(checkout_seconds[5m]))", last="2h", step=60)

        A counter `x` is `x_total` in a query, a histogram `x` is `x` and `x_bucket`, `x_sum`,
        `x_count`. The page "PromQL and Prometheus" of the docs has the names and the differences
        from Prometheus. Needs the extra `redmeter[prometheus]`.

        Args:
            promql: the query.
            at: evaluate it at this time; Unix seconds, or a datetime with a time zone. Default:
                now.
            since, until: evaluate it over time, at each `step` from `since` to `until` (default:
                now).
            last: the same for a time that ends now: seconds, or text such as "2h".
            step: seconds, or text such as "1m". Default: a hundredth of the time, at least 1 s.

        Returns:
            A QueryResult, with a series for each label set.

        Raises:
            QueryError: the query is invalid, or exceeds a limit.
            MissingExtra: the extra is not installed.
            InvalidValue, LimitExceeded, StoreError: see series().
        """
        _check_text("a query", promql)
        start, end, moment = _time(since), _time(until), _time(at)
        check_times(start, end, moment)
        return self._backend.query(promql, moment, _window(start, end, last, step, moment))

    def statistics(self, name: str, *, labels: Mapping[str, str] | None = None) -> Statistics:
        """Return count, ends, mean and spread of what was observed, by the hour.

        This hour, and the last one before it in which something was observed.

        Raises:
            InvalidName, StoreError: see count().
        """
        return self._backend.statistics(canonical(name, labels))

    def marks(self, *, since: Time | None = None, until: Time | None = None) -> list[Mark]:
        """Return what was noted by mark(), the oldest first, the newest 1,000 at most.

        Args:
            since, until: Unix seconds, or a datetime with a time zone.

        Raises:
            InvalidValue: a time cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        first, last = _time(since), _time(until)
        check_times(first, last)
        return self._backend.marks(first, last)

    def verdict(
        self,
        mark: str | None = None,
        *,
        since: Time | None = None,
        against: str = "previous",
        precision: int | str | None = None,
    ) -> Verdict:
        """Return whether a deploy made requests fail more often, or slower.

        All requests and each route are compared with before: error rate and p95, each with the test
        that was used. Traffic is reported, not judged. Verdicts are made at fixed looks, 5, 15 and
        60 minutes after the interval that contains the mark; the newest complete one is returned.
        A deploy without effect is called worse in at most 5 of 100 cases, over all looks and
        routes.

        Args:
            mark: the label of a mark; the newest one if neither it nor `since` is given.
            since: the moment of a deploy that has no mark; see series().
            against: "previous" (right before), "yesterday" or "last-week" (the same time of day).
            precision: interval width; default one minute, and one hour for another day.

        Returns:
            A Verdict. Its `verdict` is "worse", "better", "same", "too little data", or "not kept":
            the baseline is not kept at this precision, and `not_kept` has how far back it reaches.

        Raises:
            InvalidValue: there is no such mark, or an argument cannot be used.
            UnknownPrecision: the store does not keep this precision.
            StoreError: the store is unreachable or refuses.
        """
        if mark is not None:
            _check_text("the label of a mark", mark)
        moment = _time(since)
        check_times(moment)
        width = None if precision is None else _seconds(precision)
        from redmeter.reading.verdict import question

        return self._backend.verdict(question(mark, moment, against, width))

    def recent(
        self, logger: str, *, severity: int | str | None = None, limit: int = 100
    ) -> list[Message]:
        """Return the newest messages of a logger, the newest first.

        Args:
            logger: see log().
            severity: a name, or a level of logging; None: all of them, by time.
            limit: how many, at most 10,000; 100 of each severity are kept unless set otherwise.

        Raises:
            InvalidName, InvalidValue, LimitExceeded, TypeError: an argument cannot be used.
            StoreError: see count().
        """
        return self._backend.recent(check_logger(logger), _severity(severity), limit)

    def common(self, logger: str, *, severity: int | str | None = None) -> list[Frequency]:
        """Return how often each pattern of a logger's messages came, the most frequent first.

        In this hour and in the one before, hours being those of UTC.

        Args:
            logger, severity: see recent().

        Raises:
            InvalidName, StoreError: see recent().
        """
        return self._backend.common(check_logger(logger), _severity(severity))

    def loggers(self) -> list[LogSource]:
        """Return the loggers and severities that messages came with, the newest first.

        Raises:
            StoreError: see count().
        """
        return self._backend.loggers()

    def changes(self, logger: str | None = None) -> Changes:
        """Return which messages are new, come far more often than an hour ago, or stopped.

        What that means is told in redmeter.analysis.changes.

        Args:
            logger: only of this one; None: of all. Of thousands, those that logged last are
                compared: `sources` and `compared` of what is returned say how many.

        Raises:
            InvalidName, StoreError: see recent().
        """
        return self._backend.changes(None if logger is None else check_logger(logger))

    def exceptions(
        self,
        *,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
        precision: int | str | None = None,
        route: str | None = None,
        sort: str = "count",
        limit: int = ERROR_GROUPS,
    ) -> ErrorGroups:
        """Return the groups of recorded exceptions that have some in a window.

            meter.exceptions(last="1h").groups          # the most frequent first
            meter.exceptions(sort="first", limit=5)     # the newest groups of the last 24 hours

        Exceptions are grouped by their type and the functions of the application that they came
        through. Takes two round trips.

        Args:
            since, until, last: the window, as in series(); the last 24 hours by default.
            precision: width of the intervals: 300, 3600 or 86400 seconds, or text such as "5m";
                the finest one that reaches back to the start of the window by default.
            route: only groups that were seen on this route, or in this task.
            sort: "count", "last" or "first": by the count in the window, or by the time of the last
                or of the first exception, the newest first.
            limit: number of groups, at most 1,000; `found` and `count` of the result cover all.

        Raises:
            UnknownPrecision, InvalidValue, LimitExceeded: an argument cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        period = _period(precision or 0, since, until, last=last)
        from redmeter.reading.error_groups import ErrorQuery

        query = ErrorQuery(period, route, sort, limit)
        query.check()
        return self._backend.exceptions(query)

    def exception(
        self,
        group: str,
        *,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
        precision: int | str | None = None,
    ) -> ErrorGroup | None:
        """Return a group of exceptions with the traceback of its newest one.

        Args:
            group: `id` of a result of exceptions().
            since, until, last, precision: see exceptions().

        Returns:
            The group; None if it is not kept: 90 days after its last exception.

        Raises:
            UnknownPrecision, InvalidValue, StoreError: see exceptions().
        """
        from redmeter.reading.error_groups import ErrorQuery

        query = ErrorQuery(_period(precision or 0, since, until, last=last))
        query.check()
        return self._backend.exception(check_group(group), query)

    @overload
    def total(
        self,
        name: str,
        *,
        labels: Mapping[str, object] | None = ...,
        by: None = ...,
        exact: bool = ...,
    ) -> int: ...
    @overload
    def total(
        self,
        name: str,
        *,
        labels: Mapping[str, object] | None = ...,
        by: str | Sequence[str],
    ) -> list[TotalGroup]: ...
    def total(
        self,
        name: str,
        *,
        labels: Mapping[str, object] | None = None,
        by: str | Sequence[str] | None = None,
        exact: bool = False,
    ) -> int | list[TotalGroup]:
        """Return everything ever counted of a counter, also events that no interval holds any more.

        Takes one round trip for each 5,000 totals of the store, with `exact` one in all.

        Args:
            name, labels, by, exact: see series().

        Returns:
            A number, 0 if nothing was counted; with `by` a list of TotalGroup, the highest first.

        Raises:
            InvalidName, InvalidValue, StoreError: see series().
        """
        selector = select(name, labels, by, exact=exact)
        found = self._backend.totals(selector)
        if by is None:
            return sum(found.values())
        rows = sorted(found.items(), key=lambda row: (-row[1], [value or "" for value in row[0]]))
        from redmeter.results import TotalGroup

        return [TotalGroup(_labels_of(selector, key), total) for key, total in rows]

    def names(self, pattern: str = "*", *, kind: str = "counters") -> list[str]:
        """Return the names of all counters that match, sorted, or of another kind.

        Args:
            pattern: `*` any text, `?` one character, `[abc]` one of these.
            kind: `counters`, `gauges`, or `histograms`: what was observed.

        Raises:
            InvalidValue: there is no such kind.
            TypeError: the pattern is no text.
            LimitExceeded, StoreError: see redmeter.reading.names.read_names.
        """
        _check_text("a pattern", pattern)
        if kind not in KINDS:
            raise InvalidValue(kind, f"there are names of {', '.join(KINDS)}")
        return self._backend.names(pattern, kind)

    def top(
        self,
        name: str = "*",
        *,
        precision: int | str,
        by: str | None = None,
        intervals: int | None = None,
        limit: int = RANKED_ROWS,
        order: str = "count",
        labels: Mapping[str, object] | None = None,
        failing: Mapping[str, object] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
    ) -> Ranking:
        """Return what happened most often, took longest or failed most within a window.

        Percentiles are compared of a bounded number: of four times
        as many as there are rows, at most 200, of which mean and spread allow the highest; the
        ranking's `groups` and `examined` say of how many, `complete` whether the others matter.

        Args:
            name: with `by`, a name without labels; without, a pattern of names.
            precision: slice width, seconds; one of those kept.
            by: a label, by whose values to add up: `top("http_requests", by="route", …)`.
            intervals: at most this many of the newest intervals, the current one included. Default:
                60, or all that are kept if fewer; with `since` or `until`, all of that window.
            limit: how many rows, at most 1,000.
            order: `count`; of observed values also `total` (count x mean: what takes most time in
                all), `mean`, or a percentile: `p95`, `p99.9`; of counters also `failing`.
            labels: only series that have these labels; values are converted with str().
            failing: for that order, the labels of what failed: `{"status": "5xx"}`.
            since, until, last: see series().

        Raises:
            UnknownPrecision, LimitExceeded, InvalidValue, TypeError, StoreError: see
                redmeter.reading.top.top.
        """
        _check_text("a name or a pattern", name)
        if by is not None:
            _check_text("a label", by)
        period = _period(precision, since, until, intervals, last)
        if period.last is not None:
            intervals = max(1, ceil(period.last / period.precision))
        return self._backend.top(
            Top(
                name,
                period.precision,
                by,
                intervals,
                limit,
                order,
                _filter("labels", labels),
                _filter("failing", failing),
                period.since,
                period.until,
            )
        )

    def status(self) -> Status:
        """Return whether the last five complete minutes of a web application are as usual.

        Compares the requests, the error rate (of at least 100 requests) and the p95 response time
        with their expected ranges. The result has a sentence, its parts by name, and a check for
        each of the three, with the groups that account for an unusual value and the newest mark
        before it. The page "Explain" of the docs describes the method.

        Raises:
            StoreError: the store is unreachable or refuses.
        """
        return self._backend.status()

    def explain(
        self,
        name: str,
        since: Time | None = None,
        until: Time | None = None,
        baseline: str | tuple[Time, Time] | None = None,
        *,
        last: float | str | None = None,
        precision: int | str | None = None,
        labels: Mapping[str, object] | None = None,
        failing: Mapping[str, object] | None = None,
    ) -> Explanation:
        """Return what accounts for a rise or a fall between a baseline and a window.

            meter.explain("http_requests", last="15m")                     # its count
            meter.explain("http_requests", last="15m", failing={"status": "5xx"})  # error rate
            meter.explain("http_request_seconds", since, until, "yesterday")       # p95

        A counter is explained by the change of its count, with `failing` by that of its error rate;
        a histogram by the change of its p95. `hits`, `hits_failed` and `hits_seconds` are explained
        by the label sets of the web requests that they count. The page "Explain" of the docs
        describes the method and its measured error.

        Args:
            name: a counter or a histogram; labels in braces are a filter.
            since, until: the window; Unix seconds, or a datetime with a time zone. Without an end
                up to now, without a start the 15 minutes before.
            baseline: "before" (as long, right before the window; the default), "yesterday", "week"
                (the same time a week before), or a pair of times.
            last: the window is the last so many seconds, or text such as "15m"; excludes `since`
                and `until`.
            precision: interval width. Default: the finest that keeps the window. If it does not
                keep the baseline, the state of the result is "not kept", and its `alternatives`
                are the precisions that keep both.
            labels: only label sets that have these labels.
            failing: the labels of events that failed, such as {"status": "5xx"}.

        Raises:
            UnknownPrecision: the store does not keep this precision.
            InvalidName, InvalidValue, StoreError: see series().
        """
        from redmeter.reading.comparison import request_of

        selector = select(name, labels)
        start, end = _time(since), _time(until)
        check_times(start, end)
        return self._backend.explain(
            request_of(
                selector,
                since=start,
                until=end,
                baseline=_baseline(baseline),
                last=None if last is None else _length(last, since, until),
                precision=None if precision is None else _seconds(precision),
                failing=_filter("failing", failing),
            )
        )


def _baseline(given: str | tuple[Time, Time] | None) -> str | tuple[float, float]:
    """Read a baseline; which names there are is checked by request_of()."""
    if given is None or isinstance(given, str):
        return given or "before"
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidValue(given, 'a baseline is "before", "yesterday", "week" or (since, until)')
    first, last = (_time(one) for one in given)
    check_times(first, last)
    if first is None or last is None:
        raise InvalidValue(given, "a baseline has a start and an end")
    return first, last


def _length(last: float | str, *others: Time | None) -> float:
    """Read the length of a window."""
    if any(other is not None for other in others):
        raise InvalidValue(last, "last is the whole window: leave out since, until and intervals")
    return _duration("last", last)


def select(
    name: str,
    labels: Mapping[str, object] | None = None,
    by: str | Sequence[str] | None = None,
    *,
    exact: bool = False,
) -> Selector:
    """Return what a name and its options select; see Queries.series().

    Label values are converted, cleaned and cut as they are when events are recorded.

    Raises:
        InvalidName: the name or a label is not allowed.
        InvalidValue: `exact` and `by` together.
    """
    wanted = (by,) if isinstance(by, str) else tuple(by or ())
    for label in wanted:
        canonical("x", {label: ""})
    if exact:
        if by is not None:
            raise InvalidValue(by, "exact=True reads one series, which has no groups: leave out by")
        if labels is None:
            return Selector(check_text(name), exact=True)
        return Selector(recorded_name(name, labels)[0], exact=True)
    parsed = parse_name(recorded_name(name, labels)[0])
    return Selector(parsed.base, dict(parsed.labels), wanted)


def label_values(labels: Mapping[str, object] | None) -> Mapping[str, str] | None:
    """Return labels with their values converted to str, as they are when events are recorded."""
    if not isinstance(labels, Mapping):
        return labels
    return {label: str(value) for label, value in labels.items()}


def _filter(what: str, labels: Mapping[str, object] | None) -> Mapping[str, str] | None:
    if labels is not None and not isinstance(labels, Mapping):
        kind = type(labels).__name__
        raise TypeError(f'{what} takes labels and their values, e.g. {{"plan": "pro"}}, not {kind}')
    for label in labels or ():
        canonical("x", {label: ""})
    return label_values(labels)


def _labels_of(selector: Selector, key: Sequence[str | None]) -> dict[str, str | None]:
    return dict(zip(selector.by, key, strict=True))


def _seconds(precision: int | str) -> int:
    """Read an interval width; whether it is kept is for the backend to check."""
    if not isinstance(precision, str):
        return precision
    found = seconds_of(precision)
    if found is None:
        raise InvalidValue(precision, 'a precision is in seconds, or text: "5s", "1m", "1h"')
    return found


def _time(given: Time | None) -> float | None:
    """Read a time, Unix seconds."""
    if not isinstance(given, datetime):
        return given
    if given.tzinfo is None:
        raise InvalidValue(given, "a datetime needs a time zone, e.g. datetime.now(UTC)")
    return given.timestamp()


def _period(
    precision: int | str,
    since: Time | None,
    until: Time | None,
    intervals: int | None = None,
    last: float | str | None = None,
) -> Period:
    start, end = _time(since), _time(until)
    check_times(start, end)
    if last is None:
        return Period(_seconds(precision), start, end, intervals)
    return Period(_seconds(precision), last=_length(last, since, until, intervals))


def _window(
    since: float | None,
    until: float | None,
    last: float | str | None,
    step: float | str | None,
    at: float | None,
) -> tuple[float, float | None, float | None] | None:
    """Return the start of a range query, or minus its length; its end and its step."""
    width = None if step is None else _duration("step", step)
    if last is not None:
        return -_length(last, since, until, at), None, width
    if since is not None:
        if at is not None:
            raise InvalidValue(at, "at is one time: leave out since and until")
        return since, until, width
    if until is not None or step is not None:
        raise InvalidValue(until or step, "a query over time needs since or last")
    return None


def _duration(what: str, text: float | str) -> float:
    length = seconds_of(text) if isinstance(text, str) else text
    number = isinstance(length, int | float) and not isinstance(length, bool)
    if length is None or not number or not 0 < length < MAX_TIME:
        raise InvalidValue(text, f'{what} is a number of seconds above 0, or text as "2h"')
    return length


def _check_text(what: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(f"{what} is text (str), not {type(given).__name__}")


def _severity(given: int | str | None) -> str | None:
    return None if given is None else severity_of(check_severity(given))
