"""Rankings."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING

from redmeter.queries.arguments import QueryBase, Time, check_is_text, filter_of, period_of
from redmeter.types import RANKED_ROWS, Top

if TYPE_CHECKING:
    from redmeter.results import Ranking


class RankingQueries(QueryBase):
    """Rankings of series and of the values of a label."""

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
        """Return the series, or the values of a label, that rank highest within a window.

            meter.top("http_requests", by="route", precision="1m", last="1h")
            meter.top("http_request_seconds", by="route", precision="1m", order="p95")
            meter.top("http_requests", by="route", precision="1m", order="failing",
                      failing={"status": "5xx"})
            meter.top("orders*", precision="1h")            # series whose names match

        A ranking by a percentile reads the distributions of a bounded number of groups: of those
        whose mean and spread allow the highest percentile, four for each row, at most 200. In the
        result, `groups` and `examined` are the number of groups and of those that were compared;
        `complete` is whether none of the others can be among the rows.

        Args:
            name: with `by`, a name without labels; without, a pattern: `*` is any text, `?` one
                character, `[abc]` one of these.
            precision: interval width: seconds, or text such as "1m"; one that is kept.
            by: a label; the series that have the same value of it are one group.
            intervals: at most this many of the newest intervals, the current one included. Default:
                60, or all that are kept if fewer; with `since` or `until`, all of that window.
            limit: number of rows, at most 1,000.
            order: "count"; for histograms also "total" (the sum of the values: what takes most time
                in all), "mean", or a percentile such as "p95" or "p99.9"; for counters also
                "failing".
            labels: only series that have these labels; values are converted with str().
            failing: for the order "failing", the labels of events that failed, such as
                {"status": "5xx"}.
            since, until: leave out intervals that end before or start after; Unix seconds, or a
                datetime with a time zone.
            last: the newest intervals that this time holds, the current one included: seconds, or
                text such as "2h". Excludes `since`, `until` and `intervals`.

        Returns:
            A Ranking, which is also the sequence of its rows, the highest first.

        Raises:
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: over 1,000 rows, more intervals than are kept, or over 20,000 series.
            InvalidName: a label is not allowed.
            InvalidValue: the order, a time or a combination of arguments cannot be used.
            TypeError: the name or `by` is not text, or `labels` or `failing` is not a mapping.
            StoreError: the store is unreachable or refuses.
        """
        check_is_text("a name or a pattern", name)
        if by is not None:
            check_is_text("a label", by)
        period = period_of(precision, since, until, intervals, last)
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
                filter_of("labels", labels),
                filter_of("failing", failing),
                period.since,
                period.until,
            )
        )
