"""Queries of counters and gauges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, overload

from redmeter.errors import InvalidValue
from redmeter.queries.arguments import (
    QueryBase,
    Time,
    check_is_text,
    group_labels,
    period_of,
    precision_of,
    select,
    spellings,
)

if TYPE_CHECKING:
    from redmeter.results import Forecast, ForecastGroup, Group, Series, TotalGroup

#: The kinds of names().
KINDS = ("counter", "gauge", "histogram")


class SeriesQueries(QueryBase):
    """Samples, totals, forecasts and names of series."""

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
        groups = self._backend.series(selector, period_of(precision, since, until, last=last))
        if by is None:
            return groups[0][1]
        from redmeter.results import Group

        return [Group(group_labels(selector, key), series) for key, series in groups]

    def series_many(
        self,
        names: list[str],
        *,
        precision: int | str,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
    ) -> dict[str, Series[int]]:
        """Return the stored samples of many counters, each read exactly, in one round trip.

        Names under whose keys another program stores something else are left out, with a warning in
        the log; if no other name is left, that is a StoreRefused.

        Args:
            names: names with their labels, as names() returns them; the order of labels does not
                matter.
            precision, since, until, last: as for series().

        Returns:
            A Series for each name, by its stored spelling.

        Raises:
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: over 5,000 names.
            TypeError: the names are a str.
            InvalidName: a name is not allowed.
            InvalidValue: a time or a combination of arguments cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        period = period_of(precision, since, until, last=last)
        return self._backend.series_many(spellings(names), period)

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

        A gauge is summed over its label `instance`, which identifies a process: a past interval
        sums the processes that set it, the current one those that live. If label sets differ in
        another label, choose `by`, `labels` or `aggregate`: a sum of temperatures means nothing.

            meter.gauge_series("queue_length", precision="1m", last="1h")
            meter.gauge_series("temperature", precision="1m", by="room")
            meter.gauge_series("temperature", precision="1m", aggregate="mean")

        Args:
            aggregate: "sum", "min", "max" or "mean" of the label sets.
            name, precision, labels, by, exact, since, until, last: as for series().

        Returns:
            A Series; with `by` a list of Group, in order of the labels.

        Raises:
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: over 2,000 label sets.
            InvalidName: the name or a label is not allowed.
            InvalidValue: the gauge has labels other than `instance` that none of `by`, `labels` and
                `aggregate` covers, also if there is only one label set; or a time or a combination
                of arguments cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        selector = select(name, labels, by, exact=exact)
        period = period_of(precision, since, until, last=last)
        groups = self._backend.gauges(selector, period, aggregate)
        if by is None:
            return groups[0][1]
        from redmeter.results import Group

        return [Group(group_labels(selector, key), series) for key, series in groups]

    @overload
    def forecast(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = ...,
        by: None = ...,
        exact: bool = ...,
        aggregate: str | None = ...,
        ahead: int | None = ...,
    ) -> Forecast: ...
    @overload
    def forecast(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = ...,
        by: str | Sequence[str],
        aggregate: str | None = ...,
        ahead: int | None = ...,
    ) -> list[ForecastGroup]: ...
    def forecast(
        self,
        name: str,
        *,
        precision: int | str,
        labels: Mapping[str, object] | None = None,
        by: str | Sequence[str] | None = None,
        exact: bool = False,
        aggregate: str | None = None,
        ahead: int | None = None,
    ) -> Forecast | list[ForecastGroup]:
        """Return the expected range of the next intervals of a counter or a gauge.

            meter.forecast("orders", precision="1h").ahead      # the next 24 hours
            meter.forecast("orders", precision="1h").anomalies  # past hours outside their range
            meter.forecast("orders", precision="1h", by="plan") # one forecast per plan

        It is the forecast of the sum of all label sets. It also has each stored interval with the
        range that was expected before the interval began. The method uses level and trend; for
        hours also the time of day, for days also the day of the week. The current interval is not
        judged: it is the first of those ahead. The page "Forecast" of the docs describes the method
        and its measured error.

        Args:
            name, labels, exact: as for series(). If there is no such counter, a gauge is read.
            precision: interval width: seconds, or text such as "5m", "1h", "1d".
            by: a label, or several; the result has a forecast for each of their values, at most 50.
            aggregate: how label sets of a gauge are aggregated, as for gauge_series().
            ahead: how many intervals, 1 to 48. Default: 24 hours, 14 days, else 12.

        Returns:
            A Forecast, without ranges and with a `reason` if too little is stored; with `by` a list
            of ForecastGroup, of counters the one with the most events first.

        Raises:
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: fewer than 1 or more than 48 intervals; over 2,000 label sets; over 50
                groups.
            InvalidName: the name or a label is not allowed.
            InvalidValue: the gauge has labels that need `by`, `labels` or `aggregate`; or `exact`
                and `by` together.
            TypeError: `ahead` is not an int.
            StoreError: the store is unreachable or refuses.
        """
        selector = select(name, labels, by, exact=exact)
        groups = self._backend.forecast(selector, precision_of(precision), ahead, aggregate)
        if by is None:
            return groups[0][1]
        from redmeter.results import ForecastGroup

        return [ForecastGroup(group_labels(selector, key), forecast) for key, forecast in groups]

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
        """Return the number of all events ever counted, including those whose intervals expired.

            meter.total("orders")                       # all label sets
            meter.total("orders", by="plan")            # one group per plan

        Takes one round trip for each 5,000 totals of the store, with `exact` one in all.

        Args:
            name: the counter's name. Labels in braces, `orders{plan="pro"}`, are a filter.
            labels: only label sets that have these labels; values are converted with str().
            by: a label, or several; the result has a group for each of their values.
            exact: read the one total that is stored under `name` and `labels`.

        Returns:
            A number, 0 if nothing was counted; with `by` a list of TotalGroup, the highest first.

        Raises:
            InvalidName: the name or a label is not allowed.
            InvalidValue: `exact` and `by` together.
            StoreError: the store is unreachable or refuses.
        """
        selector = select(name, labels, by, exact=exact)
        groups = self._backend.totals(selector)
        if by is None:
            return sum(groups.values())
        rows = sorted(groups.items(), key=lambda row: (-row[1], [value or "" for value in row[0]]))
        from redmeter.results import TotalGroup

        return [TotalGroup(group_labels(selector, key), total) for key, total in rows]

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
        if kind not in KINDS:
            raise InvalidValue(kind, f"a kind is one of {', '.join(KINDS)}")
        return self._backend.names(pattern, kind)
