"""Application metrics at several time precisions at once, in the Redis you already run.

The public names, nothing else. Importing this starts nothing and connects to nothing.
"""

from redmeter import interrupts as _interrupts  # noqa: F401  first, see there

# isort: split
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
    RedmeterError,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
    UnknownPrecision,
)
from redmeter.meter import Meter
from redmeter.reading.error_groups import ErrorGroup, ErrorGroups, ErrorShare
from redmeter.reading.query_results import (
    QueryBucket,
    QueryHistogram,
    QueryResult,
    QuerySample,
    QuerySeries,
)
from redmeter.reading.spread import Bucket, Spread, Summary, SummaryGroup
from redmeter.recording.instruments import Counter, Gauge, Histogram
from redmeter.recording.scopes import CountedExceptions, InProgress
from redmeter.recording.timer import Timer
from redmeter.results import (
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
from redmeter.verdicts import Verdict, VerdictMetric, VerdictRow

if TYPE_CHECKING:
    from redmeter.analysis.explanation import (
        Alternative,
        ChangedGroup,
        ChangedLabel,
        Check,
        DatabaseTime,
        ExplainLink,
        Explanation,
        LogPattern,
        Part,
        PatternChanges,
        Status,
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
    "ExplainLink",
    "Explanation",
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
    "LogPattern",
    "LogSource",
    "Loss",
    "Mark",
    "Message",
    "Meter",
    "MissingExtra",
    "Part",
    "PatternChanges",
    "QueryBucket",
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
    "UnknownPrecision",
    "Verdict",
    "VerdictMetric",
    "VerdictRow",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import the results of diagnoses with their first use, not with every program."""
    if name in __all__:
        from redmeter.analysis import explanation

        return getattr(explanation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
