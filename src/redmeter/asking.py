"""What a Meter answers, through reading/. What it records is in meter.py."""

from collections.abc import Iterable, Mapping

from redmeter.errors import InvalidName, InvalidValue
from redmeter.keys import check_times
from redmeter.kinds.distribution import Distribution
from redmeter.kinds.message import check_logger, check_severity, severity_of
from redmeter.model import (
    Changes,
    Frequency,
    LogSource,
    Mark,
    Message,
    Ranking,
    Series,
    Statistics,
)
from redmeter.names import canonical
from redmeter.reading import catalogue, gauges, marks, messages, rankings, statistics, summaries
from redmeter.reading import series as reading
from redmeter.reading.spread import Summary
from redmeter.reading.summaries import check_labels
from redmeter.store import Store

#: What names() tells apart.
KINDS = ("counters", "gauges", "histograms")


def check_kind(kind: str) -> None:
    """Check what names are asked for.

    Raises:
        InvalidValue: there is no such kind.
    """
    if kind not in KINDS:
        raise InvalidValue(kind, f"there are names of {', '.join(KINDS)}")


def spellings(names: Iterable[str]) -> list[str]:
    """Return the stored spellings of names.

    Raises:
        InvalidName: see redmeter.names.
        TypeError: a text, which would be as many names as it has characters.
    """
    if isinstance(names, str | bytes):
        raise TypeError(f"a list of names is asked for, not {type(names).__name__}: [name]")
    return [canonical(name) for name in names]


class Asking:
    """Questions to a store.

    Args:
        store: None answers that there is nothing.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store

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
        wanted = spellings(names)
        check_times(since, until)
        if self._store is None:
            return {name: Series(name, precision, 0, (), partial=False) for name in wanted}
        return reading.read_series(self._store, wanted, precision, since=since, until=until)

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
        wanted = canonical(name, labels)
        check_times(since, until)
        if self._store is None:
            return Series(wanted, precision, 0, (), partial=False)
        options = {"since": since, "until": until}
        return gauges.read_gauges(self._store, [wanted], precision, **options)[wanted]

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
        check_times(since, until)
        if all_labels:
            base = canonical(name)
            if "{" in base:
                raise InvalidName(name, "with all_labels, labels are given beside the name")
            canonical(base, labels)
            if self._store is None:
                return Summary(Distribution(), base, precision, 0, 0, partial=False)
            return summaries.read_merged(
                self._store,
                base,
                precision,
                labels=labels,
                since=since,
                until=until,
                slices=slices,
            )
        wanted = canonical(name, labels)
        return self.summaries(
            [wanted], precision=precision, since=since, until=until, slices=slices
        )[wanted]

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
        wanted = spellings(names)
        check_times(since, until)
        if self._store is None:
            nothing = Distribution()
            return {n: Summary(nothing, n, precision, 0, 0, partial=False) for n in wanted}
        return summaries.read_summaries(
            self._store, wanted, precision, since=since, until=until, slices=slices
        )

    def statistics(self, name: str, *, labels: Mapping[str, str] | None = None) -> Statistics:
        """Return count, ends, mean and spread of what was observed, by the hour.

        This hour, and the last one before it in which something was observed.

        Raises:
            InvalidName, StoreError: see count().
        """
        wanted = canonical(name, labels)
        if self._store is None:
            return Statistics(wanted, None, None)
        return statistics.read_statistics(self._store, wanted)

    def marks(self, *, since: float | None = None, until: float | None = None) -> list[Mark]:
        """Return what was noted by mark(), the oldest first, the newest 1,000 at most.

        Args:
            since, until: Unix seconds.

        Raises:
            StoreError: see count().
        """
        check_times(since, until)
        return (
            [] if self._store is None else marks.read_marks(self._store, since=since, until=until)
        )

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
        name = check_logger(logger)
        messages.check_limit(limit)
        if self._store is None:
            return []
        return messages.read_recent(self._store, name, severity=_severity(severity), limit=limit)

    def common(self, logger: str, *, severity: int | str | None = None) -> list[Frequency]:
        """Return how often each pattern of a logger's messages came, the most frequent first.

        In this hour and in the one before, hours being those of UTC.

        Args:
            logger, severity: see recent().

        Raises:
            InvalidName, StoreError: see recent().
        """
        name = check_logger(logger)
        if self._store is None:
            return []
        return messages.read_common(self._store, name, severity=_severity(severity))

    def loggers(self) -> list[LogSource]:
        """Return the loggers and severities that messages came with, the newest first.

        Raises:
            StoreError: see count().
        """
        return [] if self._store is None else messages.read_loggers(self._store)

    def changes(self, logger: str | None = None) -> Changes:
        """Return which messages are new, come far more often than an hour ago, or stopped.

        What that means is told in redmeter.analysis.changes.

        Args:
            logger: only of this one; None: of all. Of thousands, those that logged last are
                compared: `sources` and `compared` of what is returned say how many.

        Raises:
            InvalidName, StoreError: see recent().
        """
        name = None if logger is None else check_logger(logger)
        return Changes() if self._store is None else messages.read_changes(self._store, name)

    def total(self, name: str, *, labels: Mapping[str, str] | None = None) -> int:
        """Return everything ever counted of a series, also what no slice holds any more.

        Raises:
            InvalidName, StoreError: see count().
        """
        wanted = canonical(name, labels)
        return 0 if self._store is None else reading.read_totals(self._store, [wanted])[wanted]

    def names(self, pattern: str = "*", *, kind: str = "counters") -> list[str]:
        """Return the names of all counters that match, sorted, or of another kind.

        Args:
            pattern: `*` any text, `?` one character, `[abc]` one of these.
            kind: `counters`, `gauges`, or `histograms`: what was observed.

        Raises:
            InvalidValue: there is no such kind.
            LimitExceeded, StoreError: see redmeter.reading.catalogue.read_names.
        """
        check_kind(kind)
        if self._store is None:
            return []
        return catalogue.read_names(
            self._store, pattern, gauges=kind == "gauges", histograms=kind == "histograms"
        )

    def top(
        self,
        name: str = "*",
        *,
        precision: int,
        by: str | None = None,
        slices: int = 5,
        limit: int = 10,
        order: str = "count",
        where: Mapping[str, str] | None = None,
        failing: Mapping[str, str] | None = None,
    ) -> Ranking:
        """Return what happened most often, took longest or failed most within the newest slices.

        The running slice is included. Percentiles are compared of a bounded number: of four times
        as many as there are rows, at most 200, of which mean and spread allow the highest; the
        ranking's `groups` and `looked_at` say of how many, `complete` whether the others matter.

        Args:
            name: with `by`, a name without labels; without, a pattern of names.
            precision: slice width, seconds; one of those kept.
            by: a label, by whose values to add up: `top("http_requests", by="route", …)`.
            slices: how many of the newest slices.
            limit: how many rows.
            order: `count`; of observed values also `total` (count x mean: what takes most time in
                all), `mean`, or a percentile: `p95`, `p99.9`; of counters also `failing`.
            where: only series that have these labels.
            failing: for that order, the labels of what failed: `{"status": "5xx"}`.

        Raises:
            UnknownPrecision, LimitExceeded, InvalidValue, TypeError, StoreError: see
                redmeter.reading.rankings.rank.
        """
        if self._store is None:
            rankings.check_order(order, failing)
            check_labels("where", where)
            return Ranking()
        return rankings.rank(
            self._store,
            name,
            precision,
            by=by,
            slices=slices,
            limit=limit,
            order=order,
            where=where,
            failing=failing,
        )


def _severity(given: int | str | None) -> str | None:
    return None if given is None else severity_of(check_severity(given))
