"""The query API of a Meter: the one way in to read, for applications, the command and alerts.

Each query is a method here, once, with its docstring. It checks its arguments by arguments.py,
which makes a Window and a Selection of them, and asks a Source with them: a store, a meter's memory
in tests, or nothing where the meter is off. The recording half of a Meter is in meter.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redmeter.queries.arguments import Time, check_is_text, range_of, unix_time
from redmeter.queries.arguments import select as select
from redmeter.queries.counters import CounterQueries
from redmeter.queries.diagnosis import DiagnosisQueries
from redmeter.queries.gauges import GaugeQueries
from redmeter.queries.histograms import HistogramQueries
from redmeter.queries.logs import LogQueries
from redmeter.stored.keys import check_times

if TYPE_CHECKING:
    from redmeter.results.promql import QueryResult


class Queries(CounterQueries, GaugeQueries, HistogramQueries, LogQueries, DiagnosisQueries):
    """The query methods of a Meter.

    Args:
        store: the store to read; None: every query returns an empty result.
    """

    def query(
        self,
        promql: str,
        *,
        at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        last: int | str | None = None,
        step: float | str | None = None,
    ) -> QueryResult:
        """Return the result of a PromQL query; the page answers Grafana the same way.

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
            InvalidValue: a time or a combination of arguments cannot be used.
            LimitExceeded: the query reads too many series.
            StoreError: the store is unreachable or refuses.
        """
        check_is_text("a query", promql)
        start, end, moment = unix_time(since), unix_time(until), unix_time(at)
        check_times(start, end, moment)
        window = range_of(start, end, last, step, moment)
        from redmeter.reading.promql import read_query

        return self._source.ask(read_query, promql, moment, window)
