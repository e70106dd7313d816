"""Queries of counters: samples, totals, rankings; and the names of all series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack, overload

from redmeter.errors import InvalidValue
from redmeter.queries.arguments import (
    Time,
    check_is_text,
    one_or_groups,
    ranking_of,
    select,
    spellings,
)
from redmeter.queries.source import QueryBase
from redmeter.stored.families import SERIES_KINDS
from redmeter.types import RANKED_ROWS, Window

if TYPE_CHECKING:
    from redmeter.queries.arguments import FilterOptions, WindowOptions
    from redmeter.results.series import Group, Ranking, Series, TotalGroup

#: The kinds of names().


class CounterQueries(QueryBase):
    """Samples, totals and rankings of counters, and names of series."""

    @overload
    def series(
        self,
        name: str,
        *,
        precision: int | str | None = ...,
        by: None = ...,
        exact: bool = ...,
        **options: Unpack[WindowOptions],
    ) -> Series[int]: ...
    @overload
    def series(
        self,
        name: str,
        *,
        precision: int | str | None = ...,
        by: str | Sequence[str],
        **options: Unpack[WindowOptions],
    ) -> list[Group[int]]: ...
    def series(
        self,
        name: str,
        *,
        precision: int | str | None = None,
        labels: Mapping[str, object] | None = None,
        by: str | Sequence[str] | None = None,
        exact: bool = False,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
    ) -> Series[int] | list[Group[int]]:
        """Return the stored samples of a counter, oldest first, summed over its label sets.

            meter.series("orders", precision="1m")                          # all label sets
            meter.series("orders", precision="1m", labels={"plan": "pro"})  # those that match
            meter.series("orders", precision="1m", by="plan")               # one group per plan
            meter.series("orders", precision="1m", exact=True)              # one stored series

        Takes one round trip for up to 50 label sets, and two for more.

        Args:
            name: the counter's name. Labels in braces, `orders{plan="pro"}`, are a filter.
            precision: interval width: seconds, or text such as "1s", "5m", "1h", "1d". Default: the
                finest that keeps the whole window, for one more round trip.
            labels: only label sets that have these labels; values are converted with str(). Name
                all labels of a label set if a value was cut when it was recorded.
            by: a label, or several; the result has a group for each of their values.
            exact: read the one series that is stored under `name` and `labels`, without the index.
            since, until: the window, [since, until), in whole intervals; Unix seconds, or datetimes
                with a time zone. The `window` of the result says which intervals it covers, and
                since when, if the store no longer keeps all of it.
            last: the newest intervals, the current one included: a number of them, or as many as
                hold a time such as "2h". Excludes `since` and `until`. Default without these: all
                that is kept; without a precision, the last hour.

        Returns:
            A Series; with `by` a list of Group, the one with the most events first.

        Raises:
            WrongKind: only a gauge or a histogram has this name; the error names its call.
            UnknownLabel: no series has a label of `labels` or `by`; the error lists the labels.
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: over 2,000 label sets.
            InvalidName: the name or a label is not allowed.
            InvalidValue: a time or a combination of arguments cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        selection = select(name, labels, by, exact=exact)
        window = self._window("counter", precision, since, until, last)
        from redmeter.reading.aggregates import read_counter
        from redmeter.results.series import Group

        return one_or_groups(
            selection, by, self._source.run(read_counter, selection, window), Group
        )

    def series_many(
        self,
        names: list[str],
        *,
        precision: int | str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
    ) -> dict[str, Series[int]]:
        """Return the stored samples of many counters, each read exactly, in one round trip.

        A second one follows if there is nothing under a name, to find out whether it has another
        kind; the first 50 of such names are checked.

        Names under whose keys another program stores something else are left out, with a warning in
        the log; if no other name is left, that is a StoreRefused.

        Args:
            names: names with their labels, as names() returns them; the order of labels does not
                matter.
            precision, since, until, last: as for series().

        Returns:
            A Series for each name, by its stored spelling.

        Raises:
            WrongKind: a name is only that of a gauge or a histogram; the error names its call.
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: over 5,000 names.
            TypeError: the names are a str.
            InvalidName: a name is not allowed.
            InvalidValue: a time or a combination of arguments cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        window = self._window("counter", precision, since, until, last)
        from redmeter.reading.samples import read_series

        return self._source.ask(read_series, spellings(names), window)

    @overload
    def total(
        self,
        name: str,
        *,
        by: None = ...,
        exact: bool = ...,
        **options: Unpack[FilterOptions],
    ) -> int: ...
    @overload
    def total(
        self,
        name: str,
        *,
        by: str | Sequence[str],
        **options: Unpack[FilterOptions],
    ) -> list[TotalGroup]: ...
    def total(
        self,
        name: str,
        *,
        labels: Mapping[str, object] | None = None,
        by: str | Sequence[str] | None = None,
        exact: bool = False,
    ) -> int | list[TotalGroup]:
        """Return the number of all events ever counted, including those whose intervals expired.

            meter.total("orders")                       # all label sets
            meter.total("orders", by="plan")            # one group per plan

        Takes one round trip for each 5,000 totals of the store, with `exact` one in all.

        Args:
            name, labels, by: as for series().
            exact: read the one total that is stored under `name` and `labels`.

        Returns:
            A number, 0 if nothing was counted; with `by` a list of TotalGroup, the highest first.

        Raises:
            WrongKind: only a gauge or a histogram has this name; the error names its call.
            UnknownLabel: no series has a label of `labels` or `by`; the error lists the labels.
            InvalidName: the name or a label is not allowed.
            InvalidValue: `exact` and `by` together.
            StoreError: the store is unreachable or refuses.
        """
        selection = select(name, labels, by, exact=exact)
        from redmeter.reading.aggregates import read_total
        from redmeter.results.series import TotalGroup

        groups = self._source.run(read_total, selection)
        rows = sorted(groups.items(), key=lambda row: (-row[1], [value or "" for value in row[0]]))
        return one_or_groups(selection, by, rows or [((), 0)] if by is None else rows, TotalGroup)

    def names(self, pattern: str = "*", *, kind: str = "counter") -> list[str]:
        """Return the names of all stored series of a kind, with their labels, sorted.

        Args:
            pattern: only names that match it: `*` is any text, `?` one character, `[abc]` one of
                these.
            kind: "counter", "gauge" or "histogram".

        Raises:
            InvalidValue: there is no such kind.
            TypeError: the pattern is not text.
            LimitExceeded: over 100,000 names.
            StoreError: the store is unreachable or refuses.
        """
        check_is_text("a pattern", pattern)
        if kind not in SERIES_KINDS:
            raise InvalidValue(kind, f"a kind is one of {', '.join(SERIES_KINDS)}")
        from redmeter.reading.names import read_names

        return self._source.ask(read_names, pattern, kind)

    def top(
        self,
        name: str = "*",
        *,
        precision: int | str | None = None,
        by: str | None = None,
        limit: int = RANKED_ROWS,
        order: str = "count",
        labels: Mapping[str, object] | None = None,
        failing: Mapping[str, object] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
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
            precision: interval width, as for series().
            by: a label; the series that have the same value of it are one group.
            limit: number of rows, at most 1,000.
            order: "count"; for histograms also "total" (the sum of the values: what takes most time
                in all), "mean", or a percentile such as "p95" or "p99.9"; for counters also
                "failing".
            labels: only series that have these labels; values are converted with str().
            failing: for the order "failing", the labels of events that failed, such as
                {"status": "5xx"}.
            since, until, last: the window, as for series(). Default: 60 intervals, or all that are
                kept if fewer; without a precision, the last hour.

        Returns:
            A Ranking, which is also the sequence of its rows, the highest first.

        Raises:
            WrongKind: `name` is no pattern, and nothing of this name can be ranked by this order;
                the error names the call for its kind.
            UnknownLabel: no series has a label of the arguments; the error lists the labels.
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: over 1,000 rows, or over 20,000 series.
            InvalidName: a label is not allowed.
            InvalidValue: the order, a time or a combination of arguments cannot be used.
            TypeError: the name or `by` is not text, or `labels` or `failing` is not a mapping.
            StoreError: the store is unreachable or refuses.
        """
        check_is_text("a name or a pattern", name)
        if by is not None:
            check_is_text("a label", by)
        ranking = ranking_of(name, Window(0), by, limit, order, labels, failing)
        from redmeter.reading.ranking import Order
        from redmeter.reading.top import read_top

        kinds = Order.parse(order).kinds
        for kind in kinds if precision is None else kinds[:1]:  # each has its finest precision
            window = self._window(kind, precision, since, until, last)
            found = self._source.ask(read_top, ranking._replace(window=window))
            if found.groups:
                break
        return found
