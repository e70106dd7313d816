"""The errors of a query, each a kind of QueryError."""

from redmeter.errors import QueryError as QueryError


class BadQuery(QueryError):
    """The text is no query that can be evaluated: a syntax error, an unknown function."""

    kind = "bad_data"


class QueryTimeout(QueryError):
    """The evaluation of a query took too long."""

    kind = "timeout"


class UnsupportedQuery(BadQuery):
    """The query uses a feature that is experimental in Prometheus.

    Attributes:
        feature: the name of Prometheus' feature flag.
    """

    def __init__(self, message: str, feature: str) -> None:
        self.feature = feature
        super().__init__(f"{message} (experimental in Prometheus: --enable-feature={feature})")
