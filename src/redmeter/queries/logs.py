"""Queries of log messages and of exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redmeter.queries.arguments import (
    Time,
    check_limit,
    exceptions_of,
    query_window,
    stored_severity,
)
from redmeter.queries.source import QueryBase
from redmeter.stored.exception import check_group
from redmeter.stored.message import check_logger
from redmeter.types import EXCEPTION_GROUPS

if TYPE_CHECKING:
    from redmeter.results.exceptions import ExceptionSummaries, ExceptionSummary
    from redmeter.results.logs import Changes, Frequency, LogSource, Message


class LogQueries(QueryBase):
    """Log messages, their patterns, and groups of exceptions."""

    def log_messages(
        self, logger: str, *, severity: int | str | None = None, limit: int = 100
    ) -> list[Message]:
        """Return the newest messages of a logger, the newest first.

        Args:
            logger: the name of a logger, as given to log().
            severity: a name such as "error", or a level of logging; None for all, by time.
            limit: number of messages, at most 10,000. 100 of each severity are kept, unless the
                setting `recent_messages` is another number.

        Raises:
            InvalidName: the logger's name is not allowed.
            InvalidValue: the limit is not a whole number, 1 or more.
            LimitExceeded: over 10,000 messages.
            TypeError: the severity is neither text nor a whole number.
            StoreError: the store is unreachable or refuses.
        """
        name, level = check_logger(logger), stored_severity(severity)
        from redmeter.reading.logs.recent import MAX_MESSAGES, read_recent

        check_limit(limit, MAX_MESSAGES, "messages")
        return self._source.ask(read_recent, name, severity=level, limit=limit)

    def log_frequencies(self, logger: str, *, severity: int | str | None = None) -> list[Frequency]:
        """Return the frequency of each pattern of a logger's messages, the most frequent first.

        The counts are those of the current clock hour, UTC, and of the hour before.

        Args:
            logger: the name of a logger, as given to log().
            severity: a name such as "error", or a level of logging; None for all.

        Raises:
            InvalidName: the logger's name is not allowed.
            TypeError: the severity is neither text nor a whole number.
            StoreError: the store is unreachable or refuses.
        """
        name, level = check_logger(logger), stored_severity(severity)
        from redmeter.reading.logs.recent import read_common

        return self._source.ask(read_common, name, severity=level)

    def loggers(self) -> list[LogSource]:
        """Return the loggers and severities of stored messages, the last seen first.

        Raises:
            StoreError: the store is unreachable or refuses.
        """
        from redmeter.reading.logs.recent import read_loggers

        return self._source.ask(read_loggers)

    def log_changes(self, logger: str | None = None) -> Changes:
        """Return the log patterns that are new, far more frequent than an hour ago, or gone.

        The last 60 minutes are compared with the 60 minutes before.

        Args:
            logger: only this logger; None for all. If there are thousands of pairs of logger and
                severity, those that logged last are compared: `sources` and `compared` of the
                result are their numbers.

        Returns:
            Changes, which is also the sequence of its rows, by severity, then kind, then count.

        Raises:
            InvalidName: the logger's name is not allowed.
            StoreError: the store is unreachable or refuses.
        """
        name = None if logger is None else check_logger(logger)
        from redmeter.reading.logs.recent import read_changes

        return self._source.ask(read_changes, name)

    def exceptions(
        self,
        *,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
        precision: int | str | None = None,
        route: str | None = None,
        order: str = "count",
        limit: int = EXCEPTION_GROUPS,
    ) -> ExceptionSummaries:
        """Return the groups of recorded exceptions that have some in a window.

            meter.exceptions(last="1h").groups          # the most frequent first
            meter.exceptions(order="first", limit=5)     # the newest groups of the last 24 hours

        Exceptions are grouped by their type and the functions of the application that they came
        through. Takes two round trips.

        Args:
            since, until: the window; Unix seconds, or a datetime with a time zone. Default: the
                last 24 hours.
            last: the window that ends now: text such as "2h", or a number of intervals of the
                precision. Excludes `since` and `until`.
            precision: width of the intervals: 300, 3600 or 86400 seconds, or text such as "5m";
                the finest one that reaches back to the start of the window by default.
            route: only groups that were seen on this route, or in this task.
            order: "count", "last" or "first": by the count in the window, or by the time of the
                last or of the first exception, the newest first.
            limit: number of groups, at most 1,000; `found` and `count` of the result cover all.

        Raises:
            UnknownPrecision: not one of these widths.
            LimitExceeded: over 1,000 groups.
            InvalidValue: the order, the limit or a time cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        window = query_window(precision or 0, since, until, last)
        query = exceptions_of(window, route, order, limit)
        from redmeter.reading.exceptions import read_exceptions

        return self._source.ask(read_exceptions, query)

    def exception(
        self,
        group: str,
        *,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
        precision: int | str | None = None,
    ) -> ExceptionSummary | None:
        """Return a group of exceptions with the traceback of its newest one.

        Args:
            group: the `id` of a group of exceptions().
            since, until, last, precision: the window and the width of its intervals, as for
                exceptions().

        Returns:
            The group; None if it is not kept: 90 days after its last exception.

        Raises:
            UnknownPrecision: not one of the widths of exceptions().
            InvalidValue: not the `id` of a group, or a time cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        window = query_window(precision or 0, since, until, last)
        query = exceptions_of(window)
        from redmeter.reading.exceptions import read_exception

        return self._source.ask(read_exception, check_group(group), query)
