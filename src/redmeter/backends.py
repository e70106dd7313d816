"""The backends of the query API: an empty one, and one that reads a store. In memory: testing/.

Names and times are checked by queries.py, and names are in their stored spelling. A backend checks
the rest.
"""
# ruff: noqa: ARG002 - the empty backend ignores its arguments

from collections.abc import Mapping

from redmeter.format.exponential_histogram import Distribution
from redmeter.reading import (
    catalogue,
    forecasts,
    gauges,
    marks,
    messages,
    ranking,
    statistics,
    summaries,
    top,
)
from redmeter.reading import series as reading
from redmeter.reading.spread import Summary
from redmeter.store import Store
from redmeter.types import (
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


class Backend:
    """The backend of a meter that is off: every query returns an empty result."""

    def series(self, names: list[str], period: Period) -> dict[str, Series[int]]:
        return {name: Series(name, period.precision, 0, (), partial=False) for name in names}

    def gauge(self, name: str, period: Period) -> Series[float | None]:
        return Series(name, period.precision, 0, (), partial=False)

    def forecast(self, name: str, precision: int, ahead: int | None) -> Forecast:
        period = Period(precision)
        return forecasts.either(self.series([name], period)[name], self.gauge(name, period), ahead)

    def summaries(self, names: list[str], period: Period) -> dict[str, Summary]:
        return {name: self.merged(name, None, period) for name in names}

    def merged(self, base: str, labels: Mapping[str, str] | None, period: Period) -> Summary:
        """Answer for all series of a name without labels that have these, as of one."""
        return Summary(Distribution(), base, period.precision, 0, 0, partial=False)

    def statistics(self, name: str) -> Statistics:
        return Statistics(name, None, None)

    def marks(self, since: float | None, until: float | None) -> list[Mark]:
        return []

    def recent(self, logger: str, severity: str | None, limit: int) -> list[Message]:
        messages.check_limit(limit)
        return []

    def common(self, logger: str, severity: str | None) -> list[Frequency]:
        return []

    def loggers(self) -> list[LogSource]:
        return []

    def changes(self, logger: str | None) -> Changes:
        return Changes()

    def total(self, name: str) -> int:
        return 0

    def names(self, pattern: str, kind: str) -> list[str]:
        return []

    def top(self, wanted: Top) -> Ranking:
        ranking.check(wanted)
        return Ranking()


class StoreBackend(Backend):
    """Reads a store, through reading/."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def series(self, names: list[str], period: Period) -> dict[str, Series[int]]:
        precision, since, until, _ = period
        return reading.read_series(self._store, names, precision, since=since, until=until)

    def gauge(self, name: str, period: Period) -> Series[float | None]:
        precision, since, until, _ = period
        return gauges.read_gauges(self._store, [name], precision, since=since, until=until)[name]

    def forecast(self, name: str, precision: int, ahead: int | None) -> Forecast:
        return forecasts.read_forecast(self._store, name, precision, ahead=ahead)

    def summaries(self, names: list[str], period: Period) -> dict[str, Summary]:
        return summaries.read_summaries(self._store, names, **period._asdict())

    def merged(self, base: str, labels: Mapping[str, str] | None, period: Period) -> Summary:
        return summaries.read_merged(self._store, base, labels=labels, **period._asdict())

    def statistics(self, name: str) -> Statistics:
        return statistics.read_statistics(self._store, name)

    def marks(self, since: float | None, until: float | None) -> list[Mark]:
        return marks.read_marks(self._store, since=since, until=until)

    def recent(self, logger: str, severity: str | None, limit: int) -> list[Message]:
        return messages.read_recent(self._store, logger, severity=severity, limit=limit)

    def common(self, logger: str, severity: str | None) -> list[Frequency]:
        return messages.read_common(self._store, logger, severity=severity)

    def loggers(self) -> list[LogSource]:
        return messages.read_loggers(self._store)

    def changes(self, logger: str | None) -> Changes:
        return messages.read_changes(self._store, logger)

    def total(self, name: str) -> int:
        return reading.read_totals(self._store, [name])[name]

    def names(self, pattern: str, kind: str) -> list[str]:
        return catalogue.read_names(
            self._store, pattern, gauges=kind == "gauges", histograms=kind == "histograms"
        )

    def top(self, wanted: Top) -> Ranking:
        return top.read_top(self._store, wanted)
