"""The results of PromQL queries."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class QueryBucket:
    """A bucket of a histogram: how many values are above `lower` and up to `upper`."""

    #: Lower edge.
    lower: float
    #: Upper edge.
    upper: float
    #: The number of values, which may be a fraction after PromQL's arithmetic.
    count: float


@dataclass(frozen=True, slots=True)
class QueryHistogram:
    """A histogram as a sample of a query's result."""

    #: The number of values, which may be a fraction after PromQL's arithmetic.
    count: float
    #: The sum of the values.
    sum: float
    #: The buckets that hold values, ascending.
    buckets: tuple[QueryBucket, ...]


@dataclass(frozen=True, slots=True)
class QuerySample:
    """A value of a series at one time."""

    #: Unix seconds.
    time: float
    #: A number, or a native histogram.
    value: float | QueryHistogram


@dataclass(frozen=True, slots=True)
class QuerySeries:
    """A series of a query's result."""

    #: The metric name, if there is one, is the label `__name__`.
    labels: Mapping[str, str]
    #: Oldest first.
    samples: tuple[QuerySample, ...]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a PromQL query."""

    #: `vector`: one sample for each series. `matrix`: samples over time. `scalar`: one series
    #: without labels. `string`: `text`.
    kind: Literal["vector", "matrix", "scalar", "string"]
    #: The series; empty for `string`.
    series: tuple[QuerySeries, ...] = ()
    #: The text, for `string`.
    text: str = ""
    #: Problems of the query, in Prometheus' words.
    warnings: tuple[str, ...] = ()
    #: Facts about the result, in Prometheus' words.
    infos: tuple[str, ...] = ()
