"""The results of queries: frozen dataclasses of plain fields, so that every serializer takes them.

`dataclasses.asdict`, `json.dumps` of its result, FastAPI and pydantic give the same field names.
Times are Unix seconds, and widths of intervals are seconds. None stands for an unknown value or a
gap. Each module is imported with the first use of one of its classes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redmeter.results.exceptions import ExceptionShare, ExceptionSummaries, ExceptionSummary
    from redmeter.results.explanation import (
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
    from redmeter.results.forecasts import (
        Anomaly,
        Forecast,
        ForecastCheck,
        ForecastGroup,
        ForecastPoint,
    )
    from redmeter.results.logs import Change, Changes, Frequency, LogSource, Message
    from redmeter.results.promql import (
        QueryBucket,
        QueryHistogram,
        QueryResult,
        QuerySample,
        QuerySeries,
    )
    from redmeter.results.recorder import Loss, RecorderHealth
    from redmeter.results.series import (
        CoveredWindow,
        Group,
        Ranked,
        Ranking,
        Sample,
        Series,
        TotalGroup,
    )
    from redmeter.results.summaries import (
        Bucket,
        HourlyStats,
        Spread,
        Statistics,
        Summary,
        SummaryGroup,
    )
    from redmeter.results.verdict import (
        NotKept,
        Verdict,
        VerdictMetric,
        VerdictMix,
        VerdictPatterns,
        VerdictRow,
        VerdictTraffic,
        VerdictWindow,
    )
    from redmeter.types import Mark

__all__ = [
    "Alternative",
    "Anomaly",
    "Bucket",
    "Change",
    "ChangedGroup",
    "ChangedLabel",
    "Changes",
    "Check",
    "CoveredWindow",
    "DatabaseTime",
    "ExceptionChange",
    "ExceptionChanges",
    "ExceptionShare",
    "ExceptionSummaries",
    "ExceptionSummary",
    "ExplainLink",
    "Explanation",
    "Forecast",
    "ForecastCheck",
    "ForecastGroup",
    "ForecastPoint",
    "Frequency",
    "Group",
    "HourlyStats",
    "LogPattern",
    "LogSource",
    "Loss",
    "Mark",
    "Message",
    "NotKept",
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
    "Sample",
    "Series",
    "Spread",
    "Statistics",
    "Status",
    "Summary",
    "SummaryGroup",
    "TotalGroup",
    "Verdict",
    "VerdictMetric",
    "VerdictMix",
    "VerdictPatterns",
    "VerdictRow",
    "VerdictTraffic",
    "VerdictWindow",
]

_MODULES = (
    "exceptions",
    "explanation",
    "forecasts",
    "logs",
    "promql",
    "recorder",
    "series",
    "summaries",
    "verdict",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            found = getattr(import_module(f"redmeter.results.{module}"), name, None)
            if found is not None:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
