"""The table of endpoints: path, handler, parameters; and parse(), which reads a query by it.

Error texts and openapi.json are derived from the table. Unknown and repeated parameters are refused
before the store is asked, because a typing error would be an answer to another question. Whether
the store keeps a precision, and which parameters exclude each other, is checked by the handlers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from redmeter.dashboard.api import diagnoses, handlers, schemas
from redmeter.dashboard.api.handlers import Context, Found, Values
from redmeter.dashboard.api.parameters import (
    FILTER,
    GROUP,
    INTERVALS,
    LABEL,
    LOGGER,
    MARK,
    MOMENT,
    NAME,
    ORDER,
    PAIR,
    PATTERN,
    ROUTE,
    SEVERITY,
    SWITCH,
    WIDTH,
    Parameter,
    choice,
    number,
    whole,
)
from redmeter.dashboard.errors import HTTPError
from redmeter.errors import InvalidName, InvalidValue, shown
from redmeter.reading.diagnosis.verdict_data import AGAINST
from redmeter.reading.exceptions import DEFAULT_LIMIT, EXCEPTION_ORDERS, MAX_LIMIT
from redmeter.reading.page.workloads import MAX_WORKLOAD_ROWS, STATEMENT_ORDERS, TASK_ORDERS
from redmeter.types import MAX_RANKED_ROWS, RANKED_INTERVALS, RANKED_ROWS

#: Most names of one request: of series, of summaries, and on the overview.
MAX_SERIES, MAX_SUMMARIES, MAX_CHARTED = 200, 50, 20
#: Longest query of a URL, bytes: what servers take at least, with room for headers.
MAX_QUERY = 32_768
#: Most quantiles of a summary, labels to filter by, and labels to split by.
MAX_QUANTILES, MAX_PAIRS, MAX_SPLIT = 10, 10, 5


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A question that the API schemas."""

    path: str
    #: Answers it: reads the store of a context by the parsed parameters.
    handler: Callable[[Context, Values], Found]
    summary: str
    answer: type
    parameters: tuple[Parameter, ...] = ()


def _precision(default: int = 60) -> Parameter:
    text = "Width of an interval, seconds: one that the store keeps; the error lists them."
    return Parameter("precision", WIDTH, text, default)


def _limit(most: int, default: int, of: str) -> Parameter:
    return Parameter("limit", whole(1, most), f"Number of {of}.", default)


_FROM = Parameter("since", MOMENT, "Start of the window, Unix seconds.")
_TO = Parameter("until", MOMENT, "End of the window, Unix seconds; else now.")
_AGAINST = Parameter(
    "against",
    choice("previous", "yesterday", "last-week"),
    "The period that figures are compared with.",
    "previous",
)
_FRAME = (_FROM, _TO, _AGAINST)
_NAME = Parameter("name", NAME, "A series, with its labels.", required=True)
_LABEL = Parameter("label", PAIR, "Only label sets with this label, LABEL=VALUE.", most=MAX_PAIRS)
_BY = Parameter("by", LABEL, "Split one name by the values of this label.", most=MAX_SPLIT)
_EXACT = Parameter(
    "exact", SWITCH, "1: only the series stored under the name, read without the index.", False
)
_AGGREGATE = Parameter(
    "aggregate", choice("sum", "min", "max", "mean"), "How to aggregate the label sets of a gauge."
)

_PATTERN = Parameter("pattern", PATTERN, "`*` any text, `?` one character, `[abc]`.", "*")
_KIND = Parameter("kind", choice("counter", "gauge", "histogram"), "Kind of the series.", "counter")
_EXCEPTION_PRECISION = Parameter(
    "precision",
    WIDTH,
    "Width of an interval: 300, 3600 or 86400 seconds; default: the finest that reaches `since`.",
)


def _rows(
    of: str, orders: Sequence[str], order: str, most: int, default: int
) -> tuple[Parameter, ...]:
    """Return the parameters of a list of rows."""
    return (
        _precision(),
        *_FRAME,
        Parameter("order", choice(*orders), "The order.", order),
        _limit(most, default, of),
        Parameter("offset", whole(0, 100_000), f"Number of {of} to skip.", 0),
        Parameter("filter", FILTER, f"Only {of} that contain this text.", ""),
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "/api/overview",
        handlers.overview,
        "The data of the overview",
        schemas.OverviewAnswer,
        (
            _precision(),
            *_FRAME,
            Parameter("series", NAME, "A series for the chart.", most=MAX_CHARTED),
        ),
    ),
    Endpoint(
        "/api/series",
        handlers.series,
        "Samples of counters or gauges",
        schemas.SeriesAnswer,
        (
            Parameter("name", NAME, "A series.", required=True, most=MAX_SERIES),
            _precision(),
            _FROM,
            _TO,
            _LABEL,
            _BY,
            _EXACT,
            _AGGREGATE,
            Parameter("kind", choice("counter", "gauge"), "Kind of the series.", "counter"),
        ),
    ),
    Endpoint(
        "/api/names",
        handlers.names,
        "Names of series",
        schemas.NamesAnswer,
        (
            _PATTERN,
            _KIND,
            _limit(10_000, 1_000, "names"),
        ),
    ),
    Endpoint(
        "/api/top",
        handlers.top,
        "The most frequent, slowest or most failing",
        schemas.TopAnswer,
        (
            Parameter("name", PATTERN, "With `by` a name without labels; without, a pattern.", "*"),
            _precision(),
            Parameter("by", LABEL, "A label to group by."),
            Parameter("order", ORDER, "The order; percentiles as p95.", "count"),
            Parameter(
                "intervals",
                INTERVALS,
                f"Number of newest intervals; default {RANKED_INTERVALS}, or all that are kept.",
            ),
            _limit(MAX_RANKED_ROWS, RANKED_ROWS, "rows"),
            _LABEL,
            Parameter(
                "failing",
                PAIR,
                "With order=failing: the label of failures, e.g. status=5xx.",
                most=MAX_PAIRS,
            ),
        ),
    ),
    Endpoint(
        "/api/summary",
        handlers.summary,
        "Distributions of histograms",
        schemas.SummaryAnswer,
        (
            Parameter("name", NAME, "A histogram.", required=True, most=MAX_SUMMARIES),
            _precision(),
            _FROM,
            _TO,
            _LABEL,
            _BY,
            _EXACT,
            Parameter(
                "q",
                number(0, 1, "a quantile"),
                "Quantiles; else 0.5 and 0.95.",
                most=MAX_QUANTILES,
            ),
            Parameter(
                "threshold",
                number(-1e300, 1e300, "a number"),
                "Also return the share of values above it.",
            ),
            Parameter("over_time", SWITCH, "1: also for each interval.", False),
        ),
    ),
    Endpoint(
        "/api/messages",
        handlers.messages,
        "Log messages: changes, the most frequent patterns, the newest",
        schemas.MessagesAnswer,
        (
            Parameter("logger", LOGGER, "Only this logger."),
            Parameter("severity", SEVERITY, "Only these severities.", most=MAX_PAIRS),
            _limit(500, 100, "messages, and patterns"),
            _FROM,
            _TO,
            Parameter("filter", FILTER, "Only patterns and messages that contain this text.", ""),
        ),
    ),
    Endpoint(
        "/api/exceptions",
        handlers.exceptions,
        "Exceptions by type and origin",
        schemas.ExceptionsAnswer,
        (
            _FROM,
            _TO,
            _EXCEPTION_PRECISION,
            Parameter("route", ROUTE, "Only groups that were seen on this route."),
            Parameter("order", choice(*EXCEPTION_ORDERS), "The order.", "count"),
            _limit(MAX_LIMIT, DEFAULT_LIMIT, "groups"),
        ),
    ),
    Endpoint(
        "/api/exception",
        handlers.exception,
        "One group of exceptions, with its traceback",
        schemas.ExceptionAnswer,
        (
            Parameter("id", GROUP, "ID of the group.", required=True),
            _FROM,
            _TO,
            _EXCEPTION_PRECISION,
        ),
    ),
    Endpoint(
        "/api/marks",
        handlers.marks,
        "Marks, such as deploys",
        schemas.MarksAnswer,
        (
            Parameter("since", MOMENT, "Start, Unix seconds."),
            Parameter("until", MOMENT, "End, Unix seconds."),
        ),
    ),
    Endpoint(
        "/api/verdict",
        diagnoses.verdict,
        "Whether a deploy made requests fail more often, or slower",
        schemas.VerdictAnswer,
        (
            Parameter("mark", MARK, "Label of a mark; without it and `since`, the newest mark."),
            Parameter("since", MOMENT, "The moment of the deploy, Unix seconds, without a mark."),
            Parameter(
                "against",
                choice(*AGAINST),
                "The baseline: right before, or the same time of another day.",
                "previous",
            ),
            Parameter(
                "precision",
                WIDTH,
                "Width of an interval, seconds; default 60, and 3600 for another day.",
            ),
        ),
    ),
    Endpoint(
        "/api/routes",
        handlers.routes,
        "Routes of a web application",
        schemas.RoutesAnswer,
        _rows("routes", ("count", "p95", "failing", "total"), "count", 200, 50),
    ),
    Endpoint(
        "/api/statements",
        handlers.statements,
        "Database statements, and the routes and tasks that send them",
        schemas.StatementsAnswer,
        (
            *_rows("statements", STATEMENT_ORDERS, "total", MAX_WORKLOAD_ROWS, MAX_WORKLOAD_ROWS),
            Parameter("caller", ROUTE, "Only statements that this route or task sends."),
        ),
    ),
    Endpoint(
        "/api/jobs",
        handlers.jobs,
        "Background tasks by outcome and time",
        schemas.JobsAnswer,
        _rows("tasks", TASK_ORDERS, "total", MAX_WORKLOAD_ROWS, MAX_WORKLOAD_ROWS),
    ),
    Endpoint("/api/views", handlers.views, "Which views have data", schemas.ViewsAnswer),
    Endpoint(
        "/api/metrics",
        handlers.metrics,
        "Counters, gauges or histograms, each with a sparkline",
        schemas.MetricsAnswer,
        (
            _precision(),
            *_FRAME,
            _PATTERN,
            _KIND,
            Parameter("grouped", SWITCH, "1: one row for all label sets of a name.", False),
            Parameter("order", choice("name", "count", "change"), "The order.", "name"),
            _limit(200, 50, "rows"),
            Parameter("offset", whole(0, 100_000), "Number of rows to skip.", 0),
        ),
    ),
    Endpoint(
        "/api/detail",
        handlers.detail,
        "Everything about one series",
        schemas.DetailAnswer,
        (_NAME, _precision(), *_FRAME),
    ),
    Endpoint(
        "/api/forecast",
        handlers.forecast,
        "The expected range of a series",
        schemas.ForecastAnswer,
        (_NAME, _precision(3600), _LABEL, _EXACT),
    ),
    Endpoint(
        "/api/status",
        diagnoses.status,
        "Whether the last five complete minutes are as usual",
        schemas.StatusAnswer,
    ),
    Endpoint(
        "/api/explain",
        diagnoses.explain,
        "What accounts for a rise or a fall",
        schemas.ExplainAnswer,
        (
            Parameter("name", NAME, "A counter or a histogram; labels filter.", required=True),
            Parameter("since", MOMENT, "Start of the window, Unix seconds; else 15 min."),
            Parameter("until", MOMENT, "End of the window, Unix seconds; else now."),
            Parameter(
                "against",
                choice("previous", "yesterday", "last-week"),
                "Compare with as long right before (default), or the same time a day or week ago.",
            ),
            Parameter("against_since", MOMENT, "Start of another baseline, Unix seconds."),
            Parameter("against_until", MOMENT, "End of another baseline, Unix seconds."),
            Parameter(
                "precision", WIDTH, "Width of an interval; else the finest that keeps the window."
            ),
            _LABEL,
            Parameter(
                "failing",
                PAIR,
                "Explain the share of events with this label, e.g. status=5xx.",
                most=MAX_PAIRS,
            ),
        ),
    ),
    Endpoint(
        "/api/alerts",
        diagnoses.alerts,
        "Alerts: rules, what fires, the last changes, silences",
        schemas.AlertsAnswer,
        (_limit(1000, 50, "changes"),),
    ),
    Endpoint("/api/doctor", handlers.doctor, "Health of the store", schemas.DoctorAnswer),
)


def parse(endpoint: Endpoint, query: bytes) -> dict[str, Any]:
    """Read the query of a URL.

    Returns:
        A value for every parameter; a tuple where it may be given several times.

    Raises:
        HTTPError: 400, or 414 where it is too long.
    """
    pairs = _pairs(query)
    table = {parameter.name: parameter for parameter in endpoint.parameters}
    texts: dict[str, list[str]] = {}
    for name, text in pairs:
        if name not in table:
            known = ", ".join(table) or "none"
            raise _bad(
                "unknown-parameter", f"there is no parameter {_cut(name)}", f"known: {known}"
            )
        texts.setdefault(name, []).append(text)
    return {name: _value(row, texts.get(name, [])) for name, row in table.items()}


def _pairs(query: bytes) -> list[tuple[str, str]]:
    if len(query) > MAX_QUERY:
        message = f"the query has {len(query):,} bytes"
        raise HTTPError(
            414, "query-too-long", message, f"at most {MAX_QUERY:,}: ask for fewer names"
        )
    try:
        text = query.decode()
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except UnicodeDecodeError:
        raise _bad("not-utf-8", "the query is no UTF-8", "encode it as UTF-8") from None
    except ValueError:
        raise _bad("too-many", "over 1,000 parameters", "ask for fewer at a time") from None


def _value(row: Parameter, texts: list[str]) -> Any:
    if not texts:
        if row.required:
            raise _bad("missing-parameter", f"{row.name} is missing", row.kind.allowed)
        return () if row.most > 1 else row.default
    if row.most == 1 and len(texts) > 1:
        raise _bad("doubled-parameter", f"{row.name} is given {len(texts)} times", "give it once")
    if len(texts) > row.most:
        fix = f"at most {row.most}: ask for fewer at a time"
        raise _bad("too-many", f"{row.name} is given {len(texts):,} times", fix)
    values = [_one(row, text) for text in texts]
    return tuple(dict.fromkeys(values)) if row.most > 1 else values[0]


def _one(row: Parameter, text: str) -> Any:
    try:
        return row.kind.read(text)
    except (InvalidName, InvalidValue) as error:
        message = f"{row.name}={_cut(text)}: {error.reason}"
    except (ValueError, LookupError):
        message = f"{row.name}={_cut(text)} cannot be used"
    raise _bad("bad-parameter", message, row.kind.allowed)


def check_order_of_times(values: Mapping[str, Any]) -> None:
    """Check that a window does not end before it starts.

    Raises:
        HTTPError: it does.
    """
    since, until = values.get("since"), values.get("until")
    if since is not None and until is not None and since > until:
        raise _bad(
            "start-after-end", f"since={since:.15g} is after until={until:.15g}", "swap them"
        )


def _bad(code: str, message: str, fix: str) -> HTTPError:
    return HTTPError(400, code, message, fix)


def _cut(text: str) -> str:
    """Return a parameter's text for an error message: ASCII, and short."""
    return shown(text.encode("ascii", "backslashreplace").decode(), 80)
