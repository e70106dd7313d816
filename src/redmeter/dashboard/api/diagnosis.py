"""Endpoints that judge: status, explain, verdict, alerts, doctor."""

from math import isfinite

from redmeter.alerting.state import split_name
from redmeter.alerting.status import read_alerts
from redmeter.dashboard.api import schemas
from redmeter.dashboard.api.parameters import (
    ALERT_NAME,
    FRAME_ROWS,
    LABEL_FILTERS,
    LABEL_PAIR,
    MARK_LABEL,
    MAX_PAIRS,
    MOMENT,
    SERIES_NAME,
    WIDTH,
    Context,
    HandlerResult,
    Parameter,
    ParameterValues,
    bad_combination,
    choice,
    endpoint,
    limit_row,
    precision_row,
)
from redmeter.dashboard.api.serialize import convert, read_from
from redmeter.errors import InvalidName, InvalidValue
from redmeter.health.doctor import examine
from redmeter.health.writers import unexpected_losses
from redmeter.queries import select
from redmeter.queries.arguments import explanation_of, verdict_of
from redmeter.reading.diagnosis.explain import read_explanation
from redmeter.reading.diagnosis.judged_status import read_status
from redmeter.reading.diagnosis.verdict import read_verdict
from redmeter.reading.diagnosis.verdict_data import AGAINST
from redmeter.reading.promql import read_query
from redmeter.reading.windows import Frame, span_of, whole_window


@endpoint(
    "/api/status", "Whether the last five complete minutes are as usual", schemas.StatusAnswer
)
def _status(context: Context, _: ParameterValues) -> HandlerResult:
    return HandlerResult(*read_status(context.store))


@endpoint(
    "/api/explain",
    "What accounts for a rise or a fall",
    schemas.ExplainAnswer,
    Parameter("name", SERIES_NAME, "A counter or a histogram; labels filter.", required=True),
    Parameter("since", MOMENT, "Start of the window, Unix seconds; else 15 min."),
    Parameter("until", MOMENT, "End of the window, Unix seconds; else now."),
    Parameter(
        "against",
        choice(*AGAINST),
        "Compare with as long right before (default), or the same time a day or week ago.",
    ),
    Parameter("against_since", MOMENT, "Start of another baseline, Unix seconds."),
    Parameter("against_until", MOMENT, "End of another baseline, Unix seconds."),
    Parameter("precision", WIDTH, "Width of an interval; else the finest that keeps the window."),
    LABEL_FILTERS,
    Parameter(
        "failing",
        LABEL_PAIR,
        "Explain the share of events with this label, e.g. status=5xx.",
        most=MAX_PAIRS,
    ),
)
def _explain(context: Context, values: ParameterValues) -> HandlerResult:
    custom = values["against_since"], values["against_until"]
    if (custom[0] is None) != (custom[1] is None):
        raise bad_combination("a baseline has a start and an end", "give both")
    if custom[0] is not None and values["against"] is not None:
        text = "against and against_since exclude each other"
        raise bad_combination(text, "leave out one of them")
    try:
        request = explanation_of(
            select(values["name"], dict(values["label"])),
            since=values["since"],
            until=values["until"],
            against=values["against"] if custom[0] is None else custom,
            precision=values["precision"],
            failing=dict(values["failing"]),
        )
    except InvalidName as error:
        raise bad_combination(str(error), "give a name without this label") from None
    except InvalidValue as error:
        raise bad_combination(error.reason, "swap them") from None
    return HandlerResult(*read_explanation(context.store, request))


@endpoint(
    "/api/verdict",
    "Whether a deploy made requests fail more often, or slower",
    schemas.VerdictAnswer,
    Parameter("mark", MARK_LABEL, "Label of a mark; without it and `since`, the newest mark."),
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
)
def _verdict(context: Context, values: ParameterValues) -> HandlerResult:
    if values["mark"] is not None and values["since"] is not None:
        raise bad_combination("mark and since are two ways to name a deploy", "give one of them")
    query = verdict_of(values["mark"], values["since"], values["against"], values["precision"])
    return HandlerResult(*read_verdict(context.store, query))


@endpoint(
    "/api/alerts",
    "Alerts: rules, what fires, the last changes, silences",
    schemas.AlertsAnswer,
    limit_row(1000, 50, "changes"),
)
def _alerts(context: Context, values: ParameterValues) -> HandlerResult:
    return HandlerResult(*read_alerts(context.store, transitions=values["limit"]))


#: Lines of an alert's chart, and changes that it looks through.
_ALERT_LINES, _ALERT_CHANGES = 10, 1_000


@endpoint(
    "/api/alert",
    "What an alert compares with its limit, over time",
    schemas.AlertAnswer,
    Parameter("name", ALERT_NAME, "A rule, or one of its alerts: RULE{LABEL=…}.", required=True),
    precision_row(),
    *FRAME_ROWS,
)
def _alert(context: Context, values: ParameterValues) -> HandlerResult:
    store, precision = context.store, values["precision"]
    now, alerts = read_alerts(store, transitions=_ALERT_CHANGES)
    name, _, value = split_name(values["name"])
    rule = next((each for each in alerts.rules if each.name == name), None)
    frame = Frame(values["since"], values["until"], None, now)
    view, _ = store.read()
    window = whole_window(view.retention, precision, frame)
    span = span_of(window, window, view.now)
    lines: list[schemas.AlertLine] = []
    ends = range(span.start + precision, span.end + 1, precision)
    if rule is not None and rule.expression and ends:
        result = read_query(store, rule.expression, None, (ends[0], ends[-1], precision))
        for series in result.series:
            label = series.labels.get(rule.by) if rule.by else None
            if value is None or label == value:
                at = {sample.time: sample.value for sample in series.samples}
                points = [at.get(end) for end in ends]
                known = [p if isinstance(p, float) and isfinite(p) else None for p in points]
                lines.append(schemas.AlertLine(label_value=label, values=known))
    lines.sort(key=lambda line: -max((each for each in line.values if each is not None), default=0))
    changes = [
        each
        for each in alerts.transitions
        if each.name == values["name"] or (value is None and split_name(each.name)[0] == name)
    ]
    return HandlerResult(
        view.now,
        None,
        rule=rule,
        window=span,
        lines=lines[:_ALERT_LINES],
        of=len(lines),
        transitions=changes,
    )


@endpoint("/api/doctor", "Health of the store", schemas.DoctorAnswer)
def _doctor(context: Context, _: ParameterValues) -> HandlerResult:
    store = context.primary
    diagnosis = examine(store)
    now = store.clock.wall() + diagnosis.clock_difference
    return HandlerResult(
        now,
        diagnosis,
        missing=diagnosis.missing,
        read_from=read_from(store),
        writers=[
            convert(
                schemas.WriterRow,
                writer,
                host=writer.text("host"),
                pid=int(pid) if (pid := writer.text("pid")).isdecimal() and len(pid) < 10 else 0,
                alive=writer.alive(now),
                last_flush=writer.moment("last_flush"),
                stored=writer.number("stored"),
                buffered=writer.number("buffered"),
                dropped=writer.number("dropped"),
                lost=writer.lost(),
                unexpected=bool(unexpected_losses(writer)),
                troubles=writer.counts("troubles"),
                last_trouble=writer.text("last_trouble"),
            )
            for writer in diagnosis.writers
        ],
        cleaner=schemas.CleanerInfo(ended=diagnosis.cleaned),
    )


DIAGNOSIS_ENDPOINTS = (_status, _explain, _verdict, _alerts, _alert, _doctor)
