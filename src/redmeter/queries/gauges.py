"""Queries of gauges; and forecasts, which are of counters too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack, overload

from redmeter.queries.arguments import (
    Time,
    check_aggregate,
    check_ahead,
    one_or_groups,
    query_window,
    select,
    spellings,
)
from redmeter.queries.source import QueryBase

if TYPE_CHECKING:
    from redmeter.queries.arguments import WindowOptions
    from redmeter.results.forecasts import Forecast, ForecastGroup
    from redmeter.results.series import Group, Series


class GaugeQueries(QueryBase):
    """Samples of gauges, and forecasts."""

    @overload
    def gauge_series(
        self,
        name: str,
        *,
        precision: int | str | None = ...,
        by: None = ...,
        exact: bool = ...,
        aggregate: str | None = ...,
        **options: Unpack[WindowOptions],
    ) -> Series[float | None]: ...
    @overload
    def gauge_series(
        self,
        name: str,
        *,
        precision: int | str | None = ...,
        by: str | Sequence[str],
        aggregate: str | None = ...,
        **options: Unpack[WindowOptions],
    ) -> list[Group[float | None]]: ...
    def gauge_series(
        self,
        name: str,
        *,
        precision: int | str | None = None,
        labels: Mapping[str, object] | None = None,
        by: str | Sequence[str] | None = None,
        aggregate: str | None = None,
        exact: bool = False,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
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
            WrongKind: only a counter or a histogram has this name; the error names its call.
            UnknownLabel: no series has a label of `labels` or `by`; the error lists the labels.
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: over 2,000 label sets.
            InvalidName: the name or a label is not allowed.
            InvalidValue: the gauge has labels other than `instance` that none of `by`, `labels` and
                `aggregate` covers, also if there is only one label set; or a time or a combination
                of arguments cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        selection = select(name, labels, by, exact=exact)
        window = self._window("gauge", precision, since, until, last)
        check_aggregate(aggregate)
        from redmeter.reading.aggregates import read_gauge
        from redmeter.results.series import Group

        return one_or_groups(
            selection, by, self._source.run(read_gauge, selection, window, aggregate), Group
        )

    def gauge_series_many(
        self,
        names: list[str],
        *,
        precision: int | str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
    ) -> dict[str, Series[float | None]]:
        """Return the stored samples of many gauges, each read exactly, as series_many() does.

        Args:
            names, precision, since, until, last: as for series_many().

        Returns:
            A Series for each name, by its stored spelling; None where a gauge was not set.

        Raises:
            WrongKind: a name is only that of a counter or a histogram; the error names its call.
            RedmeterError, TypeError: as for series_many().
        """
        window = self._window("gauge", precision, since, until, last)
        from redmeter.reading.samples import read_gauges

        return self._source.ask(read_gauges, spellings(names), window)

    @overload
    def forecast(
        self,
        name: str,
        *,
        precision: int | str,
        by: None = ...,
        exact: bool = ...,
        aggregate: str | None = ...,
        ahead: int | None = ...,
        **options: Unpack[WindowOptions],
    ) -> Forecast: ...
    @overload
    def forecast(
        self,
        name: str,
        *,
        precision: int | str,
        by: str | Sequence[str],
        aggregate: str | None = ...,
        ahead: int | None = ...,
        **options: Unpack[WindowOptions],
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
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
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
            since, until, last: the window of `past` and `anomalies`, as for series(). The forecast
                is made of all that is kept, for any window.

        Returns:
            A Forecast, without ranges and with a `reason` if too little is stored; with `by` a list
            of ForecastGroup, of counters the one with the most events first.

        Raises:
            WrongKind: the name is that of a histogram only.
            UnknownLabel: no series has a label of `labels` or `by`; the error lists the labels.
            UnknownPrecision: the store does not keep it; the error lists those it keeps.
            LimitExceeded: fewer than 1 or more than 48 intervals; over 2,000 label sets; over 50
                groups.
            InvalidName: the name or a label is not allowed.
            InvalidValue: the gauge has labels that need `by`, `labels` or `aggregate`; or `exact`
                and `by` together.
            TypeError: `ahead` is not an int.
            StoreError: the store is unreachable or refuses.
        """
        selection = select(name, labels, by, exact=exact)
        window = query_window(precision, since, until, last)
        check_ahead(ahead)
        check_aggregate(aggregate)
        from redmeter.reading.aggregates import past_within, read_zoned_forecasts
        from redmeter.results.forecasts import ForecastGroup

        made = self._source.ask(read_zoned_forecasts, selection, window.precision, ahead, aggregate)
        cut = [(key, past_within(forecast, window)) for key, forecast in made]
        return one_or_groups(selection, by, cut, ForecastGroup)
