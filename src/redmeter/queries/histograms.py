"""Queries of histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack, overload

from redmeter.names import recorded_name
from redmeter.queries.arguments import Time, one_or_groups, select, spellings
from redmeter.queries.source import QueryBase

if TYPE_CHECKING:
    from redmeter.queries.arguments import WindowOptions
    from redmeter.results.summaries import Statistics, Summary, SummaryGroup


class HistogramQueries(QueryBase):
    """Distributions of values."""

    @overload
    def summary(
        self,
        name: str,
        *,
        precision: int | str | None = ...,
        by: None = ...,
        exact: bool = ...,
        **options: Unpack[WindowOptions],
    ) -> Summary: ...
    @overload
    def summary(
        self,
        name: str,
        *,
        precision: int | str | None = ...,
        by: str | Sequence[str],
        **options: Unpack[WindowOptions],
    ) -> list[SummaryGroup]: ...
    def summary(
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
    ) -> Summary | list[SummaryGroup]:
        """Return the distribution of a histogram's values: count, mean, percentiles, over time.

            meter.summary("checkout_seconds", precision="1m", last="1h").quantile(0.95)
            meter.summary("checkout_seconds", precision="1m", by="shop")    # one group per shop

        Label sets are merged. Percentiles are within 2.17 % of the exact ones, over any window and
        however many label sets are merged. Values are in the unit in which they were observed.

        Args:
            name, precision, labels, by, exact, since, until, last: as for series(); histograms have
                precisions of their own.

        Returns:
            A Summary; with `by` a list of SummaryGroup, the one with the most values first.

        Raises:
            WrongKind: only a counter or a gauge has this name; the error names its call.
            UnknownLabel: no series has a label of `labels` or `by`; the error lists the labels.
            UnknownPrecision: not kept for histograms; the error lists those that are.
            LimitExceeded: over 500 label sets.
            InvalidName: the name or a label is not allowed.
            InvalidValue: a time or a combination of arguments cannot be used.
            StoreError: the store is unreachable or refuses.
        """
        selection = select(name, labels, by, exact=exact)
        window = self._window("histogram", precision, since, until, last)
        from redmeter.reading.aggregates import read_summary
        from redmeter.results.summaries import SummaryGroup

        return one_or_groups(
            selection, by, self._source.run(read_summary, selection, window), SummaryGroup
        )

    def summary_many(
        self,
        names: list[str],
        *,
        precision: int | str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
    ) -> dict[str, Summary]:
        """Return the summaries of many histograms, each read exactly, as series_many() does.

        Args:
            names, precision, since, until, last: as for series_many().

        Returns:
            A Summary for each name, by its stored spelling.

        Raises:
            WrongKind: a name is only that of a counter or a gauge; the error names its call.
            UnknownPrecision: not kept for histograms; the error lists those that are.
            LimitExceeded: over 500 names.
            RedmeterError, TypeError: as for series_many().
        """
        window = self._window("histogram", precision, since, until, last)
        from redmeter.reading.distributions import read_summaries

        return self._source.ask(read_summaries, spellings(names), window)

    def statistics(self, name: str, *, labels: Mapping[str, object] | None = None) -> Statistics:
        """Return the statistics of one stored histogram by the hour: count, extremes, mean, spread.

        For the current hour, and for the last hour before it that has values; hours are those of
        UTC.

        Args:
            name, labels: the histogram, read exactly.

        Raises:
            WrongKind: only a counter or a gauge has this name; the error names its call.
            UnknownLabel: no series has a label of `labels`; the error lists the labels.
            InvalidName: the name or a label is not allowed.
            StoreError: the store is unreachable or refuses.
        """
        from redmeter.reading.statistics import read_statistics

        return self._source.ask(read_statistics, recorded_name(name, labels)[0])
