"""The query API of a Meter: every query once, with the checks of its names and times.

Backends execute the queries: of a store, in backends.py; in memory, in testing/. A new query is a
method here and in each backend. The recording half of a Meter is in meter.py.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from redmeter.errors import InvalidName, InvalidValue
from redmeter.format.message import check_logger, check_severity, severity_of
from redmeter.keys import check_times
from redmeter.names import canonical
from redmeter.reading.spread import Summary
from redmeter.store import Store
from redmeter.types import (
    RANKED_ROWS,
    Changes,
    Forecast,
    Frequency,
    LogSource,
    Mark,
    Message,
    Period,
    Ranking,
    Series,
    Statistics,
    Top,
)

if TYPE_CHECKING:
    from redmeter.backends import Backend

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
    def _backend(self) -> "Backend":
        # Imported with the first query: a process that only records does not load the readings.
        from redmeter.backends import Backend, StoreBackend

        return Backend() if self._store is None else StoreBackend(self._store.reader)

    def series(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Series[int]:
        """Return the kept samples of a counter, oldest first.

        Args:
            name: see count().
            precision: slice width, seconds; one of those kept.
            labels: see count().
            since, until: leave out slices that end before or start after, Unix seconds.

        Raises:
            UnknownPrecision: not kept; the error lists those that are.
            InvalidName, StoreError: see count().
        """
        wanted = canonical(name, labels)
        return self.series_of([wanted], precision=precision, since=since, until=until)[wanted]

    def series_of(
        self,
        names: list[str],
        *,
        precision: int,
        since: float | None = None,
        until: float | None = None,
    ) -> dict[str, Series[int]]:
        """Return the kept samples of many counters, in one round trip. See series().

        Names under whose keys another program keeps something else are left out, with a warning in
        the log; where there is nothing else, that is a StoreRefused.

        Raises:
            LimitExceeded: over 5,000 names.
            TypeError: the names are a text.
        """
        return self._backend.series(spellings(names), _period(precision, since, until))

    def gauge_series(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Series[float | None]:
        """Return the kept samples of a gauge, oldest first; None where it was not set.

        Args, Raises: see series().
        """
        return self._backend.gauge(canonical(name, labels), _period(precision, since, until))

    def forecast(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        ahead: int | None = None,
    ) -> Forecast:
        """Return what is to be expected of a counter or a gauge: a band of the next slices.

        And of each one that is kept, what was expected of it before it began. By level and trend;
        from slices of an hour on by the time of day, of days by the day of the week as well. The
        running slice is not judged: it is the first of those ahead. The page "Forecast" of the
        docs describes the method and its measured error.

        Args:
            name, labels: see series(). Where there is no such counter, a gauge is looked for.
            precision: slice width, seconds; one of those kept.
            ahead: how many slices, at most 48. If not given, 24 of hours, 14 of days, else 12.

        Returns:
            Without bands and with a `reason` where too little is kept.

        Raises:
            LimitExceeded: more slices than 48, or none.
            TypeError: their number is no whole one.
            UnknownPrecision, InvalidName, StoreError: see series().
        """
        return self._backend.forecast(canonical(name, labels), precision, ahead)

    def summary(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        all_labels: bool = False,
        since: float | None = None,
        until: float | None = None,
        slices: int | None = None,
    ) -> Summary:
        """Return how observed values were spread: count, mean, percentiles, over time as well.

        Percentiles are within 2.17 % of the exact ones, over any window and whatever is merged.

        Args:
            name: see observe().
            precision: slice width, seconds; one of those kept of histograms.
            labels: see count().
            all_labels: merge all label sets of the name; with `labels`, all that have these.
            since, until: leave out slices that end before or start after, Unix seconds.
            slices: no more than so many of the newest, the running one included.

        Raises:
            UnknownPrecision: not kept of histograms; the error lists those that are.
            LimitExceeded: more slices than are kept, or over 2,500 label sets.
            TypeError: the number of slices is none.
            InvalidName, StoreError: see count().
        """
        period = _period(precision, since, until, slices)
        if not all_labels:
            wanted = canonical(name, labels)
            return self._backend.summaries([wanted], period)[wanted]
        base = canonical(name)
        if "{" in base:
            raise InvalidName(name, "with all_labels, labels are given beside the name")
        canonical(base, labels)
        return self._backend.merged(base, labels, period)

    def summaries(
        self,
        names: list[str],
        *,
        precision: int,
        since: float | None = None,
        until: float | None = None,
        slices: int | None = None,
    ) -> dict[str, Summary]:
        """Return the summaries of many series, in one round trip. See summary().

        See series_of() for names that cannot be read.

        Raises:
            LimitExceeded: over 500 names.
            TypeError: the names are a text.
        """
        return self._backend.summaries(spellings(names), _period(precision, since, until, slices))

    def statistics(self, name: str, *, labels: Mapping[str, str] | None = None) -> Statistics:
        """Return count, ends, mean and spread of what was observed, by the hour.

        This hour, and the last one before it in which something was observed.

        Raises:
            InvalidName, StoreError: see count().
        """
        return self._backend.statistics(canonical(name, labels))

    def marks(self, *, since: float | None = None, until: float | None = None) -> list[Mark]:
        """Return what was noted by mark(), the oldest first, the newest 1,000 at most.

        Args:
            since, until: Unix seconds.

        Raises:
            StoreError: see count().
        """
        check_times(since, until)
        return self._backend.marks(since, until)

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

    def total(self, name: str, *, labels: Mapping[str, str] | None = None) -> int:
        """Return everything ever counted of a series, also what no slice holds any more.

        Raises:
            InvalidName, StoreError: see count().
        """
        return self._backend.total(canonical(name, labels))

    def names(self, pattern: str = "*", *, kind: str = "counters") -> list[str]:
        """Return the names of all counters that match, sorted, or of another kind.

        Args:
            pattern: `*` any text, `?` one character, `[abc]` one of these.
            kind: `counters`, `gauges`, or `histograms`: what was observed.

        Raises:
            InvalidValue: there is no such kind.
            TypeError: the pattern is no text.
            LimitExceeded, StoreError: see redmeter.reading.catalogue.read_names.
        """
        _check_text("a pattern", pattern)
        if kind not in KINDS:
            raise InvalidValue(kind, f"there are names of {', '.join(KINDS)}")
        return self._backend.names(pattern, kind)

    def top(
        self,
        name: str = "*",
        *,
        precision: int,
        by: str | None = None,
        slices: int | None = None,
        limit: int = RANKED_ROWS,
        order: str = "count",
        where: Mapping[str, str] | None = None,
        failing: Mapping[str, str] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Ranking:
        """Return what happened most often, took longest or failed most within a window.

        Percentiles are compared of a bounded number: of four times
        as many as there are rows, at most 200, of which mean and spread allow the highest; the
        ranking's `groups` and `looked_at` say of how many, `complete` whether the others matter.

        Args:
            name: with `by`, a name without labels; without, a pattern of names.
            precision: slice width, seconds; one of those kept.
            by: a label, by whose values to add up: `top("http_requests", by="route", …)`.
            slices: at most this many of the newest slices, the running one included. Default: 60,
                or all that are kept if fewer; with `since` or `until`, all slices in that window.
            limit: how many rows, at most 1,000.
            order: `count`; of observed values also `total` (count x mean: what takes most time in
                all), `mean`, or a percentile: `p95`, `p99.9`; of counters also `failing`.
            where: only series that have these labels.
            failing: for that order, the labels of what failed: `{"status": "5xx"}`.
            since, until: leave out slices that end before or start after, Unix seconds.

        Raises:
            UnknownPrecision, LimitExceeded, InvalidValue, TypeError, StoreError: see
                redmeter.reading.top.top.
        """
        _check_text("a name or a pattern", name)
        if by is not None:
            _check_text("a label", by)
        check_times(since, until)
        return self._backend.top(
            Top(name, precision, by, slices, limit, order, where, failing, since, until)
        )


def _period(
    precision: int, since: float | None, until: float | None, slices: int | None = None
) -> Period:
    check_times(since, until)
    return Period(precision, since, until, slices)


def _check_text(what: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(f"{what} is text (str), not {type(given).__name__}")


def _severity(given: int | str | None) -> str | None:
    return None if given is None else severity_of(check_severity(given))
