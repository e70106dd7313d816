"""Handlers of the API that judge: status, explain, alerts, verdict; others are in handlers.py."""

from redmeter.alerting.status import read_alerts
from redmeter.dashboard.api.handlers import Context, Found, Values, bad_combination
from redmeter.errors import InvalidName, InvalidValue
from redmeter.queries import select
from redmeter.queries.arguments import explanation_of, verdict_of
from redmeter.reading.diagnosis.explain import read_explanation
from redmeter.reading.diagnosis.status import read_status
from redmeter.reading.diagnosis.verdict import read_verdict


def status(context: Context, _: Values) -> Found:
    """Answer /api/status."""
    store = context.store
    return Found(*read_status(store))


def explain(context: Context, values: Values) -> Found:
    """Answer /api/explain."""
    store = context.store
    custom = values["against_since"], values["against_until"]
    if (custom[0] is None) != (custom[1] is None):
        raise bad_combination("a baseline has a start and an end", "give both")
    if custom[0] is not None and values["against"] is not None:
        raise bad_combination(
            "against and against_since exclude each other", "leave out one of them"
        )
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
    return Found(*read_explanation(store, request))


def alerts(context: Context, values: Values) -> Found:
    """Answer /api/alerts."""
    store = context.store
    return Found(*read_alerts(store, transitions=values["limit"]))


def verdict(context: Context, values: Values) -> Found:
    """Answer /api/verdict."""
    store = context.store
    if values["mark"] is not None and values["since"] is not None:
        raise bad_combination("mark and since are two ways to name a deploy", "give one of them")
    query = verdict_of(values["mark"], values["since"], values["against"], values["precision"])
    return Found(*read_verdict(store, query))
