"""The handlers of the API: each reads the store, in two round trips at most.

Each is a function of a context and the parsed parameters. endpoints.py has the table of paths, and
api.py converts the results to the schema of the path.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

from redmeter import results
from redmeter.analysis.comparing.sentences import unit_of
from redmeter.analysis.forecasting.forecast import forecast as make_forecast
from redmeter.dashboard.api import rows, schemas, serialize
from redmeter.dashboard.api.serialize import convert
from redmeter.dashboard.errors import HTTPError
from redmeter.errors import InvalidName
from redmeter.health.check import Finding
from redmeter.health.doctor import examine
from redmeter.health.writers import PANEL
from redmeter.queries import select
from redmeter.queries.arguments import exceptions_of, ranking_of
from redmeter.reading import exceptions as reading_exceptions
from redmeter.reading.aggregates import read_counter, read_forecasts, read_gauge, read_summary
from redmeter.reading.exceptions import ExceptionQuery
from redmeter.reading.logs.overview import LogOverview, log_overview
from redmeter.reading.logs.window import LogQuery, LogWindow, log_window
from redmeter.reading.marks import read_marks_now
from redmeter.reading.names import find_names
from redmeter.reading.page import curves, http, listing
from redmeter.reading.page import detail as reading_detail
from redmeter.reading.page import overview as reading_overview
from redmeter.reading.page.background_ranking import RankingKey, RowRankings
from redmeter.reading.page.rows import Row
from redmeter.reading.page.views import read_views
from redmeter.reading.page.workloads import read_statements, read_tasks
from redmeter.reading.samples import starts_of
from redmeter.reading.top import top as rank
from redmeter.reading.windows import Frame, histogram_window, span_of, whole_window
from redmeter.store import Store
from redmeter.store.query import Query, run, together
from redmeter.stored.keys import HOUR
from redmeter.types import Selection, Window
from redmeter.zones import Zone

#: Maximum number of values of a label that are distinguished.
MAX_VALUES = 50
#: Default quantiles of a summary, and those of the page of one series.
QUANTILES = (0.5, 0.95)
DETAIL_QUANTILES = (0.5, 0.9, 0.95, 0.99)
#: Seconds from the compared period to the window, without changes of the clock, by the value of
#: `against`.
SHIFTS = {"previous": None, "yesterday": 86_400, "last-week": 604_800}

Values = Mapping[str, Any]


class Found:
    """What a handler read.

    Args:
        now: the server's clock, Unix seconds.
        source, given: as of serialize.convert().
    """

    def __init__(self, now: float, source: object, **given: Any) -> None:
        self.now, self.source, self.given = now, source, given


class Context(NamedTuple):
    """What handlers read.

    Attributes:
        store: the store, or its replicas; unreachable nodes are left out, and named.
        primary: the store itself.
        watch, rankings: keep what several requests share.
    """

    store: Store
    primary: Store
    watch: reading_overview.Watch
    rankings: RowRankings


def series(context: Context, values: Values) -> Found:
    """Answer /api/series."""
    store = context.store
    precision, kind, by = values["precision"], values["kind"], values["by"]
    window = Window(precision, values["since"], values["until"])
    selections = _selectors(values)
    if kind != "gauge" and values["aggregate"] is not None:
        raise bad_combination("aggregate is for kind=gauge", "leave it out: counters are summed")

    def query(selection: Selection) -> Query[Any]:
        needed = len(selections) == 1
        if kind == "gauge":
            aggregate = values["aggregate"]
            return read_gauge(store.keys, selection, window, aggregate, needed=needed)
        return read_counter(store.keys, selection, window, needed=needed)

    view, found = run(store, lambda _: together([query(one) for one in selections]))
    starts = starts_of(window, view.retention, view.now)
    groups = list(chain.from_iterable(found))
    return Found(
        view.now,
        None,
        precision=precision,
        start=starts.start,
        end=starts.stop,
        series=[
            convert(rows.GroupedSeries, one, kind=kind, labels=dict(zip(by, key, strict=True)))
            for key, one in groups[: MAX_VALUES if by else None]
        ],
        of=len(groups),
    )


def _selectors(values: Values) -> list[Selection]:
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


def names(context: Context, values: Values) -> Found:
    """Answer /api/names."""
    store = context.store
    view, found = run(
        store, lambda kept: find_names(store.keys, kept, values["pattern"], values["kind"])
    )
    return Found(view.now, None, names=found[: values["limit"]], total=len(found))


def top(context: Context, values: Values) -> Found:
    """Answer /api/top."""
    store = context.store
    precision, intervals = values["precision"], values["intervals"]
    order, by = values["order"], values["by"]
    where, failing = _labels("label", values), _labels("failing", values)
    if by is not None and any(c in values["name"] for c in "{}"):
        raise bad_combination("by takes a name without labels", "give labels as label=LABEL=VALUE")
    if (order == "failing") != bool(failing):
        raise bad_combination(
            "order=failing and failing=LABEL=VALUE go together", "give both, as failing=status=5xx"
        )
    window = Window(precision, last=intervals and intervals * precision)
    ranked = ranking_of(values["name"], window, by, values["limit"], order, where, failing)
    view, ranking = run(store, lambda kept: rank(store.keys, kept, ranked))
    return Found(view.now, ranking, complete=ranking.complete and not store.skipped())


def _labels(name: str, values: Values) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    for label, value in values[name]:
        if label in labels:
            raise bad_combination(f"{name} has {label} twice", "a series has one value of a label")
        labels[label] = value
    return labels or None


def summary(context: Context, values: Values) -> Found:
    """Answer /api/summary."""
    store = context.store
    precision, by = values["precision"], values["by"]
    window = Window(precision, values["since"], values["until"])
    selections = _selectors(values)
    needed = len(selections) == 1
    view, found = run(
        store,
        lambda _: together(
            [read_summary(store.keys, one, window, needed=needed) for one in selections]
        ),
    )
    starts = starts_of(window, view.histograms, view.now)
    quantiles = values["q"] or QUANTILES
    groups = list(chain.from_iterable(found))
    options = {"over_time": values["over_time"]}
    summaries = [
        rows.GroupedSummary(
            **vars(serialize.of_summary(one, quantiles, values["threshold"], **options)),
            labels=dict(zip(by, key, strict=True)),
        )
        for key, one in groups[: MAX_VALUES if by else None]
    ]
    return Found(
        view.now,
        None,
        precision=precision,
        start=starts.start,
        end=starts.stop,
        summaries=summaries,
        of=len(groups),
    )


def messages(context: Context, values: Values) -> Found:
    """Answer /api/messages."""
    store = context.store
    logger, severities, limit = values["logger"], values["severity"], values["limit"]
    since, until, containing = values["since"], values["until"], values["filter"]
    found: LogOverview | LogWindow
    window: dict[str, float | None] = {}
    if since is None and until is None and not containing:
        view, found = run(store, lambda _: log_overview(store.keys, logger, severities, limit))
        window = dict.fromkeys(("since", "until", "counted_since"))
    else:
        until = store.clock.wall() if until is None else until
        query = LogQuery(
            until - HOUR if since is None else since, until, logger, severities, containing, limit
        )
        view, found = run(store, lambda _: log_window(store.keys, query))
    return Found(
        view.now,
        found,
        **window,
        changes=[serialize.of_change(change, view.now) for change in found.changes],
        frequent=[serialize.of_frequency(one, view.now) for one in found.frequent],
    )


def exceptions(context: Context, values: Values) -> Found:
    """Answer /api/exceptions."""
    store = context.store
    query, now = _exception_query(values), store.clock.wall()
    view, result = run(store, lambda _: reading_exceptions.exceptions(store.keys, query, now))
    return Found(view.now, result)


def exception(context: Context, values: Values) -> Found:
    """Answer /api/exception."""
    store = context.store
    query, now = _exception_query(values), store.clock.wall()
    view, (window, group) = run(
        store, lambda _: reading_exceptions.exception(store.keys, values["id"], query, now)
    )
    return Found(view.now, window, exception=group)


def _exception_query(values: Values) -> ExceptionQuery:
    window = Window(values["precision"] or 0, values["since"], values["until"])
    more = {name: values[name] for name in ("route", "order", "limit") if name in values}
    return exceptions_of(window, **more)


def marks(context: Context, values: Values) -> Found:
    """Answer /api/marks."""
    store = context.store
    now, found = read_marks_now(store, since=values["since"], until=values["until"])
    return Found(now, None, marks=found)


def forecast(context: Context, values: Values) -> Found:
    """Answer /api/forecast."""
    store = context.store
    name, precision = values["name"], values["precision"]
    (selection,) = _selectors({**values, "name": [name], "by": ()})
    view, ((_, found),) = run(
        store, lambda _: read_forecasts(store.keys, selection, precision, zone=store.zone)
    )
    return Found(view.now, found, name=name)


def _frame(store: Store, values: Values) -> Frame:
    """Return the window of a request and its compared period."""
    now, shift = store.clock.wall(), SHIFTS[values["against"]]
    if shift is not None:
        end = now if values["until"] is None else min(values["until"] - 1, now)
        shift = store.zone.back(end, shift)
    return Frame(values["since"], values["until"], shift, now)


def routes(context: Context, values: Values) -> Found:
    """Answer /api/routes."""
    store = context.store
    return Found(*http.read_routes(store, values["precision"], **_rows(store, values)))


def statements(context: Context, values: Values) -> Found:
    """Answer /api/statements."""
    store = context.store
    options, caller = _rows(store, values), values["caller"]
    return Found(*read_statements(store, values["precision"], caller=caller, **options))


def jobs(context: Context, values: Values) -> Found:
    """Answer /api/jobs."""
    store = context.store
    return Found(*read_tasks(store, values["precision"], **_rows(store, values)))


def views(context: Context, _: Values) -> Found:
    """Answer /api/views."""
    store = context.store
    return Found(*read_views(store))


def _rows(store: Store, values: Values) -> dict[str, Any]:
    """Return the options of a list of rows."""
    options = {name: values[name] for name in ("order", "limit", "offset")}
    return {**options, "containing": values["filter"], "frame": _frame(store, values)}


def metrics(context: Context, values: Values) -> Found:
    """Answer /api/metrics."""
    store = context.store
    precision, kind, order = values["precision"], values["kind"], values["order"]
    options = {name: values[name] for name in ("pattern", "order", "limit", "offset", "grouped")}
    key = RankingKey(precision, kind, values["pattern"], values["grouped"], order)
    frame = _frame(store, values)
    framed = frame.chosen or frame.shift is not None
    ranks = order != "name" and kind != "gauge" and not framed
    ranked = context.rankings.last(key) if ranks else None

    def make(kept: Any) -> Any:
        window = listing.window_for(kept, kind, precision, frame)
        return listing.listing(store.keys, window, kind=kind, **options, ranked=ranked)

    view, found = run(store, make)
    if ranks:
        context.rankings.refresh(key, found)
    window = whole_window(view.retention, precision, frame)
    observed = histogram_window(view.histograms, window)
    running = (observed if kind == "histogram" else window).running()
    return Found(
        view.now,
        found,
        window=span_of(window, observed, view.now),
        rows=_metric_rows(found.rows, running=running),
    )


def _metric_rows(listed: Sequence[Row], *, running: bool) -> list[rows.MetricRow]:
    return [convert(rows.MetricRow, row, partial=running and bool(row.values)) for row in listed]


def detail(context: Context, values: Values) -> Found:
    """Answer /api/detail."""
    store = context.store
    name, precision, frame = values["name"], values["precision"], _frame(store, values)
    view, found = run(
        store, lambda kept: reading_detail.detail(store.keys, kept, name, precision, frame)
    )
    curves = [curve for curve in found.curves if curve.precision == found.window.precision]
    hours = [curve for curve in found.curves if curve.precision == 3600]
    return Found(
        view.now,
        found,
        name=name,
        unit=unit_of(name),
        precisions=found.curves,
        labels=[
            rows.Label(
                label=label.label,
                values=[convert(rows.LabelValue, part, value=part.name) for part in label.values],
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
        else serialize.of_summary(found.summary, DETAIL_QUANTILES, over_time=True),
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


def doctor(context: Context, _: Values) -> Found:
    """Answer /api/doctor."""
    store = context.primary
    diagnosis = examine(store)
    now = store.clock.wall() + diagnosis.clock_difference
    return Found(
        now,
        diagnosis,
        missing=diagnosis.missing,
        read_from=_read_from(replica=store.reader is not store),
        writers=[
            rows.Writer(
                host=writer.text("host"),
                pid=int(pid) if (pid := writer.text("pid")).isdecimal() and len(pid) < 10 else 0,
                seen=writer.seen,
                alive=writer.alive(now),
                instance=writer.instance,
                last_flush=writer.moment("last_flush"),
                stored=writer.number("stored"),
                buffered=writer.number("buffered"),
                dropped=writer.number("dropped"),
                lost={
                    reason: {str(precision): count for precision, count in counts.items()}
                    for reason, counts in writer.lost().items()
                },
                troubles=writer.counts("troubles"),
                last_trouble=writer.text("last_trouble"),
            )
            for writer in diagnosis.writers
        ],
        cleaner=rows.Cleaner(ended=diagnosis.cleaned),
    )


def _read_from(*, replica: bool) -> Literal["primary", "replica"]:
    return "replica" if replica else "primary"


def overview(context: Context, values: Values) -> Found:
    """Answer /api/overview."""
    store = context.store
    frame = _frame(store, values)
    view, found = context.watch.look(
        values["precision"], series=values["series"], store=store, frame=frame
    )
    missing = store.skipped()
    lacking = [Finding("fail", "cluster", f"{reason}: its data is missing") for reason in missing]
    counted = found.chart and found.chart[0].kind == "counter"
    return Found(
        view.now,
        found,
        store=rows.StoreInfo(
            location=store.location,
            read_from=_read_from(replica=context.primary.reader is not context.primary),
            prefix=store.keys.prefix,
            version=view.version,
            retention={str(p): samples for p, samples in view.retention.items()},
            histograms={str(p): samples for p, samples in view.histograms.items()},
        ),
        numbers=serialize.of_numbers(found.numbers),
        expected=_expected(found.chart[0], store.zone) if counted else None,
        messages=convert(
            schemas.OverviewMessages,
            found.messages,
            changes=[serialize.of_change(change, view.now) for change in found.messages.changes],
            frequent=[serialize.of_frequency(one, view.now) for one in found.messages.frequent],
        ),
        counters=convert(
            schemas.OverviewCounters,
            found.counters,
            rows=_metric_rows(found.counters.rows, running=found.window.end > view.now),
        ),
        health=convert(
            schemas.OverviewHealth,
            found.health,
            level="fail" if lacking else found.health.level,
            findings=[*lacking, *found.health.findings][:PANEL],
        ),
    )


def bad_combination(message: str, fix: str) -> HTTPError:
    return HTTPError(400, "bad-combination", message, fix)
