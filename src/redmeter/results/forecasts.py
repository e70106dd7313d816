"""Forecasts, and how they were checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """The expected range of an interval that is not over."""

    #: Start of the interval, Unix seconds.
    start: int
    #: Lower end of the expected range; of a counter a whole number, never below 0.
    low: float
    #: The median: the value is as likely above as below.
    mid: float
    #: Upper end of the expected range; of a counter a whole number.
    high: float


@dataclass(frozen=True, slots=True)
class ForecastCheck:
    """A finished interval, and the range that was expected before it began."""

    #: Start of the interval, Unix seconds.
    start: int
    #: Its value.
    value: float
    #: Lower end of the expected range.
    low: float
    #: Median of the expected range.
    mid: float
    #: Upper end of the expected range.
    high: float
    #: Whether the value is outside the expected range; False for the first intervals of a series.
    outside: bool


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A finished interval outside its expected range."""

    #: Start of the interval, Unix seconds.
    start: int
    #: Its value.
    value: float
    #: Lower end of the expected range.
    low: float
    #: Median of the expected range.
    mid: float
    #: Upper end of the expected range.
    high: float
    #: Distance from the mean of the values before it, in standard deviations of these.
    strength: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected range of a series, past and future."""

    #: The name of the series.
    name: str
    #: The kind of the series.
    kind: Literal["counter", "gauge"]
    #: Interval width, seconds.
    precision: int
    #: A description of the method, for people.
    method: str
    #: The part of intervals that should be within the expected range, 0 to 1.
    level: float
    #: The value of the current interval so far, which is not compared; None if there is none.
    running: float | None = None
    #: Finished intervals, oldest first, from the first one with enough before it. Without gaps.
    past: tuple[ForecastCheck, ...] = ()
    #: The next intervals, the current one first.
    ahead: tuple[ForecastPoint, ...] = ()
    #: Why there is no expected range; "" if there is one.
    reason: str = ""
    #: Intervals of `past` outside their range, the strongest first.
    anomalies: tuple[Anomaly, ...] = ()


@dataclass(frozen=True, slots=True)
class ForecastGroup:
    """The forecast of the sum of series that have the same values of some labels."""

    #: The labels that the query split by; None for series without the label.
    labels: Mapping[str, str | None]
    #: The forecast of their sum.
    forecast: Forecast
