"""Endpoints of log messages, exceptions and marks."""

from redmeter.dashboard.api import schemas
from redmeter.dashboard.api.parameters import (
    CONTAINED_TEXT,
    EXCEPTION_ID,
    LOGGER_NAME,
    MAX_PAIRS,
    MOMENT,
    ROUTE_NAME,
    SEVERITY_NAME,
    SINCE,
    UNTIL,
    WIDTH,
    Context,
    HandlerResult,
    Parameter,
    ParameterValues,
    choice,
    endpoint,
    limit_row,
)
from redmeter.dashboard.api.serialize import of_patterns
from redmeter.queries.arguments import exceptions_of
from redmeter.reading import exceptions as reading_exceptions
from redmeter.reading.exceptions import DEFAULT_LIMIT, EXCEPTION_ORDERS, MAX_LIMIT, ExceptionQuery
from redmeter.reading.logs.overview import LogOverview, log_overview
from redmeter.reading.logs.window import LogQuery, LogWindow, log_window
from redmeter.reading.marks import read_marks_now
from redmeter.store.query import run_query
from redmeter.stored.keys import HOUR
from redmeter.types import Window

_EXCEPTION_PRECISION = Parameter(
    "precision",
    WIDTH,
    "Width of an interval: 300, 3600 or 86400 seconds; default: the finest that reaches `since`.",
)


@endpoint(
    "/api/messages",
    "Log messages: changes, the most frequent patterns, the newest",
    schemas.MessagesAnswer,
    Parameter("logger", LOGGER_NAME, "Only this logger."),
    Parameter("severity", SEVERITY_NAME, "Only these severities.", most=MAX_PAIRS),
    limit_row(500, 100, "messages, and patterns"),
    SINCE,
    UNTIL,
    Parameter("filter", CONTAINED_TEXT, "Only patterns and messages that contain this text.", ""),
)
def _messages(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    logger, severities, limit = values["logger"], values["severity"], values["limit"]
    since, until, containing = values["since"], values["until"], values["filter"]
    found: LogOverview | LogWindow
    window: dict[str, float | None] = {}
    if since is None and until is None and not containing:
        view, found = run_query(
            store, lambda _: log_overview(store.keys, logger, severities, limit)
        )
        window = dict.fromkeys(("since", "until", "counted_since"))
    else:
        until = store.clock.wall() if until is None else until
        query = LogQuery(
            until - HOUR if since is None else since, until, logger, severities, containing, limit
        )
        view, found = run_query(store, lambda _: log_window(store.keys, query))
    return HandlerResult(
        view.now,
        found,
        **window,
        **of_patterns(found, view.now),
    )


@endpoint(
    "/api/exceptions",
    "Exceptions by type and origin",
    schemas.ExceptionsAnswer,
    SINCE,
    UNTIL,
    _EXCEPTION_PRECISION,
    Parameter("route", ROUTE_NAME, "Only groups that were seen on this route."),
    Parameter("order", choice(*EXCEPTION_ORDERS), "The order.", "count"),
    limit_row(MAX_LIMIT, DEFAULT_LIMIT, "groups"),
)
def _exceptions(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    query, now = _exception_query(values), store.clock.wall()
    view, result = run_query(store, lambda _: reading_exceptions.exceptions(store.keys, query, now))
    return HandlerResult(view.now, result)


@endpoint(
    "/api/exception",
    "One group of exceptions, with its traceback",
    schemas.ExceptionAnswer,
    Parameter("id", EXCEPTION_ID, "ID of the group.", required=True),
    SINCE,
    UNTIL,
    _EXCEPTION_PRECISION,
)
def _exception(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    query, now = _exception_query(values), store.clock.wall()
    view, (window, group) = run_query(
        store, lambda _: reading_exceptions.exception(store.keys, values["id"], query, now)
    )
    return HandlerResult(view.now, window, exception=group)


def _exception_query(values: ParameterValues) -> ExceptionQuery:
    window = Window(values["precision"] or 0, values["since"], values["until"])
    more = {name: values[name] for name in ("route", "order", "limit") if name in values}
    return exceptions_of(window, **more)


@endpoint(
    "/api/marks",
    "Marks, such as deploys",
    schemas.MarksAnswer,
    Parameter("since", MOMENT, "Start, Unix seconds."),
    Parameter("until", MOMENT, "End, Unix seconds."),
)
def _marks(context: Context, values: ParameterValues) -> HandlerResult:
    now, found = read_marks_now(context.store, since=values["since"], until=values["until"])
    return HandlerResult(now, None, marks=found)


LOG_ENDPOINTS = (_messages, _exceptions, _exception, _marks)
