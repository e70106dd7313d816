"""Endpoints of series: their samples, names, rankings, distributions and forecasts."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from redmeter.dashboard.api import schemas
from redmeter.dashboard.api.parameters import (
    EXACT_NAME,
    LABEL_FILTERS,
    LABEL_NAME,
    LABEL_PAIR,
    MATCHING,
    MAX_PAIRS,
    NAME_PATTERN,
    ONE_NAME,
    ROW_ORDER,
    SERIES_KIND,
    SERIES_NAME,
    SWITCH,
    WINDOW,
    Context,
    HandlerResult,
    Parameter,
    ParameterValues,
    bad_combination,
    choice,
    endpoint,
    limit_row,
    number,
    precision_row,
)
from redmeter.dashboard.api.serialize import convert, of_summary
from redmeter.errors import InvalidName, InvalidValue
from redmeter.queries import select
from redmeter.queries.arguments import ranking_of
from redmeter.queries.source import FromStore, window_kept
from redmeter.reading.aggregates import (
    past_within,
    read_counter,
    read_forecasts,
    read_gauge,
    read_summary,
)
from redmeter.reading.names import find_names
from redmeter.reading.ranking import Order
from redmeter.reading.samples import covered
from redmeter.reading.top import top as rank
from redmeter.store import Store
from redmeter.store.query import Query, run_query, together
from redmeter.stored.families import STATES
from redmeter.stored.keys import Kept
from redmeter.types import MAX_RANKED_ROWS, RANKED_ROWS, Selection, Window

#: Most names of one request: of series, and of summaries.
_MAX_NAMES, _MAX_SUMMARIES = 200, 50
#: Most quantiles of a summary, and labels to split by.
_MAX_QUANTILES, _MAX_SPLIT = 10, 5
#: Maximum number of values of a label that are distinguished.
_MAX_GROUPS = 50
#: Default quantiles of a summary.
_QUANTILES = (0.5, 0.95)

_BY = Parameter("by", LABEL_NAME, "Split one name by the values of this label.", most=_MAX_SPLIT)
_AGGREGATE = Parameter(
    "aggregate", choice("sum", "min", "max", "mean"), "How to aggregate the label sets of a gauge."
)


@endpoint(
    "/api/series",
    "Samples of counters or gauges",
    schemas.SeriesAnswer,
    Parameter("name", SERIES_NAME, "A series.", required=True, most=_MAX_NAMES),
    *WINDOW,
    LABEL_FILTERS,
    _BY,
    EXACT_NAME,
    _AGGREGATE,
    Parameter("kind", choice("counter", *STATES), "Kind of the series.", "counter"),
)
def _series(context: Context, values: ParameterValues) -> HandlerResult:
    kind, selections = values["kind"], _selectors(values)
    if kind not in STATES and values["aggregate"] is not None:
        raise bad_combination("aggregate is for kind=gauge", "leave it out: counters are summed")
    gauges = partial(read_gauge, aggregate=values["aggregate"], kind=kind)
    read = gauges if kind in STATES else read_counter
    now, fields, groups = _read_groups(context, values, kind, selections, read)
    series = [
        convert(schemas.GroupedSeries, one, kind=kind, labels=labels) for labels, one in groups
    ]
    return HandlerResult(now, None, series=series, **fields)


def _read_groups(
    context: Context,
    values: ParameterValues,
    kind: str,
    selections: Sequence[Selection],
    read: Callable[..., Query[Any]],
) -> tuple[float, dict[str, Any], list[tuple[dict[str, str | None], Any]]]:
    """Read what the names of a request select, by the values of the labels of `by`.

    Returns:
        The server's clock, the common fields of the answer, and each group with its labels.
    """
    store, by = context.store, values["by"]
    window = _window(store, values, kind)
    needed = len(selections) == 1

    def make(_: Kept) -> Query[Any]:
        return together([read(store.keys, each, window, needed=needed) for each in selections])

    view, found = run_query(store, make)
    groups = list(chain.from_iterable(found))
    fields = {
        "window": covered(window, view.retention_of(kind), view.now),
        "of": len(groups),
    }
    shown = groups[: _MAX_GROUPS if by else None]
    return view.now, fields, [(dict(zip(by, key, strict=True)), one) for key, one in shown]


def _window(store: Store, values: ParameterValues, kind: str) -> Window:
    """Return the window of a request."""
    try:
        options = {name: values[name] for name in ("precision", "since", "until", "last")}
        return window_kept(FromStore(store), kind, **options)
    except InvalidValue as error:
        raise bad_combination(error.reason, "see the parameters since, until and last") from None


def _selectors(values: ParameterValues) -> list[Selection]:
    """Return what the names of a request select."""
    labels, by, exact = _labels("label", values), values["by"], values["exact"]
    if exact and by:
        raise bad_combination("exact=1 reads one series, which has no groups", "leave out by")
    if by and len(values["name"]) > 1:
        raise bad_combination("by splits one name", "give one name")
    try:
        return [select(name, labels, by or None, exact=exact) for name in values["name"]]
    except InvalidName as error:
        raise bad_combination(str(error), "give names without labels, or exact=1") from None


@endpoint(
    "/api/names",
    "Names of series",
    schemas.NamesAnswer,
    MATCHING,
    SERIES_KIND,
    limit_row(10_000, 1_000, "names"),
)
def _names(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    view, found = run_query(
        store, lambda kept: find_names(store.keys, kept, values["pattern"], values["kind"])
    )
    return HandlerResult(view.now, None, names=found[: values["limit"]], total=len(found))


@endpoint(
    "/api/top",
    "The most frequent, slowest or most failing",
    schemas.TopAnswer,
    Parameter("name", NAME_PATTERN, "With `by` a name without labels; without, a pattern.", "*"),
    *WINDOW,
    Parameter("by", LABEL_NAME, "A label to group by."),
    Parameter("order", ROW_ORDER, "The order; percentiles as p95.", "count"),
    limit_row(MAX_RANKED_ROWS, RANKED_ROWS, "rows"),
    LABEL_FILTERS,
    Parameter(
        "failing",
        LABEL_PAIR,
        "With order=failing: the label of failures, e.g. status=5xx.",
        most=MAX_PAIRS,
    ),
)
def _top(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    order, by = values["order"], values["by"]
    where, failing = _labels("label", values), _labels("failing", values)
    if by is not None and any(c in values["name"] for c in "{}"):
        raise bad_combination("by takes a name without labels", "give labels as label=LABEL=VALUE")
    if (order == "failing") != bool(failing):
        raise bad_combination(
            "order=failing and failing=LABEL=VALUE go together", "give both, as failing=status=5xx"
        )
    kinds = Order.parse(order).kinds
    for kind in kinds if values["precision"] is None else kinds[:1]:  # as Meter.top() does
        window = _window(store, values, kind)
        wanted = ranking_of(values["name"], window, by, values["limit"], order, where, failing)
        view, ranking = run_query(store, partial(rank, store.keys, wanted=wanted))
        if ranking.groups:
            break
    return HandlerResult(view.now, ranking, complete=ranking.complete and not store.skipped())


def _labels(name: str, values: ParameterValues) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    for label, value in values[name]:
        if label in labels:
            raise bad_combination(f"{name} has {label} twice", "a series has one value of a label")
        labels[label] = value
    return labels or None


@endpoint(
    "/api/summary",
    "Distributions of histograms",
    schemas.SummaryAnswer,
    Parameter("name", SERIES_NAME, "A histogram.", required=True, most=_MAX_SUMMARIES),
    *WINDOW,
    LABEL_FILTERS,
    _BY,
    EXACT_NAME,
    Parameter(
        "q",
        number(0, 1, "a quantile"),
        "Quantiles; else 0.5 and 0.95.",
        most=_MAX_QUANTILES,
    ),
    Parameter(
        "threshold",
        number(-1e300, 1e300, "a number"),
        "Also return the share of values above it.",
    ),
    Parameter("over_time", SWITCH, "1: also for each interval.", False),
)
def _summary(context: Context, values: ParameterValues) -> HandlerResult:
    selections, quantiles = _selectors(values), values["q"] or _QUANTILES
    now, fields, groups = _read_groups(context, values, "histogram", selections, read_summary)
    threshold, over_time = values["threshold"], values["over_time"]
    summaries = [
        schemas.GroupedSummary(
            **vars(of_summary(one, quantiles, threshold, over_time=over_time)), labels=labels
        )
        for labels, one in groups
    ]
    return HandlerResult(now, None, summaries=summaries, **fields)


@endpoint(
    "/api/forecast",
    "The expected range of a series",
    schemas.ForecastAnswer,
    ONE_NAME,
    precision_row(3600),
    *WINDOW[1:],
    LABEL_FILTERS,
    EXACT_NAME,
)
def _forecast(context: Context, values: ParameterValues) -> HandlerResult:
    store = context.store
    name, window = values["name"], _window(store, values, "counter")
    (selection,) = _selectors({**values, "name": [name], "by": ()})
    view, ((_, found),) = run_query(
        store, lambda _: read_forecasts(store.keys, selection, window.precision, zone=store.zone)
    )
    return HandlerResult(view.now, past_within(found, window), name=name)


SERIES_ENDPOINTS = (_series, _names, _top, _summary, _forecast)
