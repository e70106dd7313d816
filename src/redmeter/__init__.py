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
    StoreRefused,
    StoreUnavailable,
    UnknownPrecision,
)
from redmeter.meter import Meter
from redmeter.model import (
    Anomaly,
    Change,
    Changes,
    Drop,
    Expected,
    Forecast,
    Frequency,
    Hour,
    Judged,
    LogSource,
    Mark,
    Message,
    Ranked,
    Ranking,
    RecorderHealth,
    Sample,
    Series,
    Statistics,
)
from redmeter.reading.spread import Spread, Summary
from redmeter.recording.instruments import Counter, Gauge
from redmeter.recording.observations import Histogram
from redmeter.recording.timer import Timer

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "Anomaly",
    "Change",
    "Changes",
    "ClockDisagreement",
    "Counter",
    "Drop",
    "EmbeddedServerError",
    "Expected",
    "Forecast",
    "Frequency",
    "Gauge",
    "Histogram",
    "Hour",
    "IncompatibleStore",
    "InvalidName",
    "InvalidSetting",
    "InvalidValue",
    "Judged",
    "LimitExceeded",
    "LogSource",
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
    "StoreRefused",
    "StoreUnavailable",
    "Summary",
    "Timer",
    "UnknownPrecision",
    "__version__",
]
