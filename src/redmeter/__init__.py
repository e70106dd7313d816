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
    QueryError,
    RedmeterError,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
    Unconfirmed,
    UnknownLabel,
    UnknownPrecision,
    WrongKind,
)
from redmeter.meter import Meter
from redmeter.recording.instruments import Counter, Gauge, Histogram
from redmeter.recording.scopes import CountedExceptions, InProgress, Timer
from redmeter.results.recorder import Loss, RecorderHealth
from redmeter.types import Mark

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "ClockDisagreement",
    "CountedExceptions",
    "Counter",
    "EmbeddedServerError",
    "Gauge",
    "Histogram",
    "InProgress",
    "IncompatibleStore",
    "InvalidName",
    "InvalidSetting",
    "InvalidValue",
    "LimitExceeded",
    "Loss",
    "Mark",
    "Meter",
    "MissingExtra",
    "QueryError",
    "RecorderHealth",
    "RedmeterError",
    "StoreError",
    "StoreMoving",
    "StoreRefused",
    "StoreUnavailable",
    "Timer",
    "Unconfirmed",
    "UnknownLabel",
    "UnknownPrecision",
    "WrongKind",
    "__version__",
]
