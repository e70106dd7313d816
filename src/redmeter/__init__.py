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
from redmeter.model import Ranked, Sample, Series

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "ClockDisagreement",
    "EmbeddedServerError",
    "IncompatibleStore",
    "InvalidName",
    "InvalidSetting",
    "InvalidValue",
    "LimitExceeded",
    "Meter",
    "Ranked",
    "RedmeterError",
    "Sample",
    "Series",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "UnknownPrecision",
    "__version__",
]
