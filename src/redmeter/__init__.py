"""Application metrics at several time precisions at once, in the Redis you already run.

The public names, nothing else. Importing this starts nothing and connects to nothing.
"""

from redmeter.errors import (
    AccessDenied,
    ClockDisagreement,
    EmbeddedServerError,
    IncompatibleStore,
    InvalidName,
    InvalidSetting,
    InvalidValue,
    LimitExceeded,
    RedmeterError,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    UnknownPrecision,
)
from redmeter.meter import Meter
from redmeter.model import (
    Change,
    Frequency,
    LogSource,
    Mark,
    Message,
    Ranked,
    Ranking,
    Sample,
    Series,
    Statistics,
)
from redmeter.reading.spread import Spread, Summary

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "Change",
    "ClockDisagreement",
    "EmbeddedServerError",
    "Frequency",
    "IncompatibleStore",
    "InvalidName",
    "InvalidSetting",
    "InvalidValue",
    "LimitExceeded",
    "LogSource",
    "Mark",
    "Message",
    "Meter",
    "Ranked",
    "Ranking",
    "RedmeterError",
    "Sample",
    "Series",
    "Spread",
    "Statistics",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "Summary",
    "UnknownPrecision",
    "__version__",
]
