"""Endpoints that judge: status, explain, verdict, alerts, doctor."""

from redmeter.alerting.status import read_alerts
from redmeter.dashboard.api import schemas
from redmeter.dashboard.api.parameters import (
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


DIAGNOSIS_ENDPOINTS = (_status, _explain, _verdict, _alerts, _doctor)
