"""PromQL queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redmeter.queries.arguments import QueryBase, Time, check_is_text, range_of, time_of
from redmeter.stored.keys import check_times

if TYPE_CHECKING:
    from redmeter.results import QueryResult


class PromQLQueries(QueryBase):
    """Queries in PromQL."""

    def query(
        self,
        promql: str,
        *,
        at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        last: float | str | None = None,
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
        start, end, moment = time_of(since), time_of(until), time_of(at)
        check_times(start, end, moment)
        return self._backend.query(promql, moment, range_of(start, end, last, step, moment))
