"""Application metrics at several time precisions at once, in the Redis you already run.

The public names, nothing else. Importing this starts nothing and connects to nothing.
"""

from redmeter import interrupts as _interrupts  # noqa: F401  first, see there

# isort: split
from redmeter.errors import (
    AccessDenied,
    ClockDisagreement,
    EmbeddedServerError,
    IncompatibleStore,
    InvalidName,
    InvalidSetting,
    InvalidValue,
    LimitExceeded,
    MissingExtra,
    RedmeterError,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
    UnknownPrecision,
)
from redmeter.meter import Meter
from redmeter.reading.spread import Spread, Summary, SummaryGroup
from redmeter.recording.instruments import Counter, Gauge, Histogram
from redmeter.recording.scopes import CountedExceptions, InProgress
from redmeter.recording.timer import Timer
from redmeter.types import (
    Anomaly,
    Change,
    Changes,
    Forecast,
    ForecastCheck,
    ForecastPoint,
    Frequency,
    Group,
    HourlyStats,
    LogSource,
    Loss,
    Mark,
    Message,
    Ranked,
    Ranking,
    RecorderHealth,
    Sample,
    Series,
    Statistics,
    TotalGroup,
)

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "Anomaly",
    "Change",
    "Changes",
    "ClockDisagreement",
    "CountedExceptions",
    "Counter",
    "EmbeddedServerError",
    "Forecast",
    "ForecastCheck",
    "ForecastPoint",
    "Frequency",
    "Gauge",
    "Group",
    "Histogram",
    "HourlyStats",
    "InProgress",
    "IncompatibleStore",
    "InvalidName",
    "InvalidSetting",
    "InvalidValue",
    "LimitExceeded",
    "LogSource",
    "Loss",
    "Mark",
    "Message",
    "Meter",
    "MissingExtra",
    "Ranked",
    "Ranking",
    "RecorderHealth",
    "RedmeterError",
    "Sample",
    "Series",
    "Spread",
    "Statistics",
    "StoreError",
    "StoreMoving",
    "StoreRefused",
    "StoreUnavailable",
    "Summary",
    "SummaryGroup",
    "Timer",
    "TotalGroup",
    "UnknownPrecision",
    "__version__",
]
