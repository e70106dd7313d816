"""Results of PromQL queries. Values, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class QueryBucket:
    """A bucket of a histogram: how many values are above `lower` and up to `upper`."""

    lower: float
    upper: float
    count: float


@dataclass(frozen=True, slots=True)
class QueryHistogram:
    """A histogram as a sample of a query's result."""

    count: float
    sum: float
    buckets: tuple[QueryBucket, ...]


@dataclass(frozen=True, slots=True)
class QuerySample:
    """A value of a series at one time."""

    #: Unix seconds.
    time: float
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
    series: tuple[QuerySeries, ...] = ()
    text: str = ""
    #: Problems of the query, and facts about the result, in Prometheus' words.
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()
