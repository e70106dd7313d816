"""Endpoints of the page's views: each has everything that one view shows."""

from collections.abc import Sequence
from typing import Any

from redmeter import results
from redmeter.analysis.comparing.sentences import unit_of
from redmeter.analysis.forecasting.forecast import forecast as make_forecast
from redmeter.clock import Zone
from redmeter.dashboard.api import schemas
from redmeter.dashboard.api.parameters import (
    CONTAINED_TEXT,
    FRAME_ROWS,
    MATCHING,
    ONE_NAME,
    ROUTE_NAME,
    SERIES_KIND,
    SERIES_NAME,
    SWITCH,
    Context,
    HandlerResult,
    Parameter,
    ParameterValues,
    bad_combination,
    choice,
    endpoint,
    limit_row,
    precision_row,
    whole,
)
from redmeter.dashboard.api.serialize import convert, of_patterns, of_summary, read_from
from redmeter.reading.diagnosis.verdict_data import AGAINST
from redmeter.reading.page import curves, http, listing
from redmeter.reading.page import detail as reading_detail
from redmeter.reading.page.background_ranking import RankingKey
from redmeter.reading.page.overview import KeyFigures
from redmeter.reading.page.rows import ListRow
from redmeter.reading.page.views import read_views
from redmeter.reading.page.workloads import (
    MAX_WORKLOAD_ROWS,
    STATEMENT_ORDERS,
    TASK_ORDERS,
    read_statements,
    read_tasks,
)
from redmeter.reading.windows import (
    Frame,
    histogram_window,
    span_of,
    whole_window,
    window_of_kind,
)
from redmeter.store import Store
from redmeter.store.query import run_query
from redmeter.stored.families import STATES

#: Most series of the overview's chart.
_MAX_CHARTED = 20
#: Quantiles of the page of one series.
_DETAIL_QUANTILES = (0.5, 0.9, 0.95, 0.99)


@endpoint(
    "/api/overview",
    "The data of the overview",
    schemas.OverviewAnswer,
    precision_row(),
    *FRAME_ROWS,
    Parameter("series", SERIES_NAME, "A series for the chart.", most=_MAX_CHARTED),
)
def _overview(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    frame = _frame(store, values)
    view, found = context.watch.look(
        values["precision"], series=values["series"], store=store, frame=frame
    )
    counted = found.chart and found.chart[0].kind == "counter"
    return HandlerResult(
        view.now,
        found,
        store=convert(
            schemas.StoreInfo,
            view,
            location=store.location,
            read_from=read_from(context.primary),
            prefix=store.keys.prefix,
        ),
        numbers=_numbers(found.numbers),
        expected=_expected(found.chart[0], store.zone) if counted else None,
        messages=convert(
            schemas.OverviewMessages,
            found.messages,
            **of_patterns(found.messages, view.now),
        ),
        counters=convert(
            schemas.OverviewCounters,
            found.counters,
            rows=_metric_rows(found.counters.rows, running=found.window.end > view.now),
        ),
    )


def _numbers(numbers: KeyFigures) -> schemas.OverviewNumbers:
    hits, slowest, logged = numbers.hits, numbers.slowest, numbers.logged
    return convert(
        schemas.OverviewNumbers,
        numbers,
        hits=convert(schemas.Hits, hits, name=hits.name or None),
        slowest=convert(
            schemas.SlowestRoute, slowest, route=None if slowest.value is None else slowest.name
        ),
        logged=convert(
            schemas.LoggedErrors,
            logged,
            value=None if logged.value is None else int(logged.value),
            before=logged.count_before,
            expected=logged.before,
        ),
    )


def _list_parameters(
    of: str, orders: Sequence[str], order: str, most: int, default: int
) -> tuple[Parameter, ...]:
    return (
        precision_row(),
        *FRAME_ROWS,
        Parameter("order", choice(*orders), "The order.", order),
        limit_row(most, default, of),
        Parameter("offset", whole(0, 100_000), f"Number of {of} to skip.", 0),
        Parameter("filter", CONTAINED_TEXT, f"Only {of} that contain this text.", ""),
    )


@endpoint(
    "/api/routes",
    "Routes of a web application",
    schemas.RoutesAnswer,
    *_list_parameters("routes", ("count", "p95", "failing", "total"), "count", 200, 50),
)
def _routes(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    return HandlerResult(
        *http.read_routes(store, values["precision"], **_options(context.store, values))
    )


@endpoint(
    "/api/statements",
    "Database statements, and the routes and tasks that send them",
    schemas.StatementsAnswer,
    *_list_parameters(
        "statements", STATEMENT_ORDERS, "total", MAX_WORKLOAD_ROWS, MAX_WORKLOAD_ROWS
    ),
    Parameter("caller", ROUTE_NAME, "Only statements that this route or task sends."),
)
def _statements(context: Context, values: ParameterValues) -> HandlerResult:
    options, caller = _options(context.store, values), values["caller"]
    return HandlerResult(
        *read_statements(context.store, values["precision"], caller=caller, **options)
    )


@endpoint(
    "/api/jobs",
    "Background tasks by outcome and time",
    schemas.JobsAnswer,
    *_list_parameters("tasks", TASK_ORDERS, "total", MAX_WORKLOAD_ROWS, MAX_WORKLOAD_ROWS),
)
def _jobs(context: Context, values: ParameterValues) -> HandlerResult:
    return HandlerResult(
        *read_tasks(context.store, values["precision"], **_options(context.store, values))
    )


@endpoint("/api/views", "Which views have data", schemas.ViewsAnswer)
def _views(context: Context, _: ParameterValues) -> HandlerResult:
    return HandlerResult(*read_views(context.store))


def _options(store: Store, values: ParameterValues) -> dict[str, Any]:
    options = {name: values[name] for name in ("order", "limit", "offset")}
    return {**options, "containing": values["filter"], "frame": _frame(store, values)}


@endpoint(
    "/api/metrics",
    "Counters, gauges or histograms, each with a sparkline",
    schemas.MetricsAnswer,
    precision_row(),
    *FRAME_ROWS,
    MATCHING,
    SERIES_KIND,
    Parameter(
        "grouped",
        SWITCH,
        "1: one row for all label sets of a name that matches; label sets that match by their "
        "labels only have rows of their own.",
        False,
    ),
    Parameter("order", choice("name", "count", "change"), "The order.", "name"),
    limit_row(200, 50, "rows"),
    Parameter("offset", whole(0, 100_000), "Number of rows to skip.", 0),
)
def _metrics(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    precision, kind, order = values["precision"], values["kind"], values["order"]
    options = {name: values[name] for name in ("pattern", "order", "limit", "offset", "grouped")}
    key = RankingKey(precision, kind, values["pattern"], values["grouped"], order)
    frame = _frame(store, values)
    framed = frame.chosen or frame.shift is not None
    ranks = (values["grouped"] or (order != "name" and kind not in STATES)) and not framed
    ranked = context.rankings.last(key) if ranks else None

    def make(kept: Any) -> Any:
        window = listing.window_for(kept, kind, precision, frame)
        return listing.listing(store.keys, window, kind=kind, **options, ranked=ranked)

    view, found = run_query(store, make)
    if ranks:
        context.rankings.refresh(key, found)
    window = whole_window(view.retention, precision, frame)
    observed = histogram_window(view.histograms, window)
    shown = window_of_kind(kind, window, observed)
    return HandlerResult(
        view.now,
        found,
        window=span_of(shown, observed, view.now),
        rows=_metric_rows(found.rows, running=shown.running()),
    )


def _metric_rows(listed: Sequence[ListRow], *, running: bool) -> list[schemas.MetricRow]:
    return [convert(schemas.MetricRow, row, partial=running and bool(row.values)) for row in listed]


@endpoint(
    "/api/detail",
    "Everything about one series",
    schemas.DetailAnswer,
    ONE_NAME,
    precision_row(),
    *FRAME_ROWS,
)
def _detail(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    name, precision, frame = values["name"], values["precision"], _frame(store, values)
    view, found = run_query(
        store, lambda kept: reading_detail.detail(store.keys, kept, name, precision, frame)
    )
    curves = [curve for curve in found.curves if curve.precision == found.window.precision]
    hours = [curve for curve in found.curves if curve.precision == 3600]
    return HandlerResult(
        view.now,
        found,
        name=name,
        unit=unit_of(name),
        precisions=found.curves,
        labels=[
            schemas.LabelRow(
                label=label.label,
                values=[
                    convert(schemas.LabelValue, part, value=part.name) for part in label.values
                ],
                of=label.of,
            )
            for label in found.labels
        ],
        siblings=found.sets,
        siblings_of=found.sets_of,
        siblings_examined=found.sets_examined,
        added=found.sets_added,
        summary=None
        if found.summary is None
        else of_summary(found.summary, _DETAIL_QUANTILES, over_time=True),
        forecast=_expected(curves[0], store.zone) if curves and found.kind != "histogram" else None,
        hours=hours[0] if hours else None,
    )


def _expected(curve: curves.Curve, zone: Zone) -> results.Forecast:
    """Return the forecast of a curve of a counter or a gauge, which is read already."""
    values: Any = tuple(curve.values)
    series: Any = results.Series(
        curve.name, curve.precision, curve.start, values, partial=curve.partial
    )
    return make_forecast(series, counts=curve.kind == "counter", zone=zone)


def _frame(store: Store, values: ParameterValues) -> Frame:
    """Return the window of a request and its compared period."""
    now, shift = store.clock.wall(), AGAINST[values["against"]] or None
    if shift is not None:
        end = now if values["until"] is None else min(values["until"] - 1, now)
        shift = store.zone.back(end, shift)
    if values["last"] is not None and (values["since"], values["until"]) != (None, None):
        raise bad_combination("last is a window that ends now", "leave out since and until")
    return Frame(values["since"], values["until"], shift, now, values["last"])


PAGE_ENDPOINTS = (_overview, _routes, _statements, _jobs, _views, _metrics, _detail)
