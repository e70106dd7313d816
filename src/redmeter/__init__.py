"""Application metrics at several time precisions at once, in the Redis you already run.

The public names, nothing else. Importing this starts nothing and connects to nothing.
"""

from redmeter import interrupts as _interrupts  # noqa: F401  first, see there

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    UnknownPrecision,
    WrongKind,
)
from redmeter.meter import Meter
from redmeter.recording.instruments import Counter, Gauge, Histogram
from redmeter.recording.scopes import CountedExceptions, InProgress, Timer
from redmeter.types import Loss, Mark, RecorderHealth

if TYPE_CHECKING:
    from redmeter.analysis.explanation import (
        Alternative,
        ChangedGroup,
        ChangedLabel,
        Check,
        DatabaseTime,
        ExceptionChange,
        ExceptionChanges,
        ExplainLink,
        Explanation,
        LogPattern,
        Part,
        PatternChanges,
        Status,
    )
    from redmeter.reading.error_groups import ErrorGroup, ErrorGroups, ErrorShare
    from redmeter.reading.spread import Bucket, Spread, Summary, SummaryGroup
    from redmeter.results import (
        Anomaly,
        Change,
        Changes,
        Forecast,
        ForecastCheck,
        ForecastGroup,
        ForecastPoint,
        Frequency,
        Group,
        HourlyStats,
        LogSource,
        Message,
        QueryBucket,
        QueryHistogram,
        QueryResult,
        QuerySample,
        QuerySeries,
        Ranked,
        Ranking,
        Sample,
        Series,
        Statistics,
        TotalGroup,
    )
    from redmeter.verdicts import (
        NotKept,
        Verdict,
        VerdictMetric,
        VerdictPatterns,
        VerdictRow,
        VerdictTraffic,
        VerdictWindow,
    )

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "Alternative",
    "Anomaly",
    "Bucket",
    "Change",
    "ChangedGroup",
    "ChangedLabel",
    "Changes",
    "Check",
    "ClockDisagreement",
    "CountedExceptions",
    "Counter",
    "DatabaseTime",
    "EmbeddedServerError",
    "ErrorGroup",
    "ErrorGroups",
    "ErrorShare",
    "ExceptionChange",
    "ExceptionChanges",
    "ExplainLink",
    "Explanation",
    "Forecast",
    "ForecastCheck",
    "ForecastGroup",
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
    "LogPattern",
    "LogSource",
    "Loss",
    "Mark",
    "Message",
    "Meter",
    "MissingExtra",
    "NotKept",
    "Part",
    "PatternChanges",
    "QueryBucket",
    "QueryError",
    "QueryHistogram",
    "QueryResult",
    "QuerySample",
    "QuerySeries",
    "Ranked",
    "Ranking",
    "RecorderHealth",
    "RedmeterError",
    "Sample",
    "Series",
    "Spread",
    "Statistics",
    "Status",
    "StoreError",
    "StoreMoving",
    "StoreRefused",
    "StoreUnavailable",
    "Summary",
    "SummaryGroup",
    "Timer",
    "TotalGroup",
    "Unconfirmed",
    "UnknownPrecision",
    "Verdict",
    "VerdictMetric",
    "VerdictPatterns",
    "VerdictRow",
    "VerdictTraffic",
    "VerdictWindow",
    "WrongKind",
    "__version__",
]


#: Modules of results, which __getattr__() imports with their first use.
_RESULTS = (
    "redmeter.results",
    "redmeter.reading.spread",
    "redmeter.reading.error_groups",
    "redmeter.verdicts",
    "redmeter.analysis.explanation",
)


def __getattr__(name: str) -> Any:
    """Import the classes of results with their first use, not in processes that only record."""
    if name in __all__:
        for module in _RESULTS:
            if (result := getattr(import_module(module), name, None)) is not None:
                return result
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
