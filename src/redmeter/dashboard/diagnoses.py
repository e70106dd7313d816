"""The handlers of /api/status, /api/explain and /api/alerts; others are in handlers.py."""

from collections.abc import Mapping
from typing import Any

from redmeter.alerting.status import read_alerts
from redmeter.dashboard import schemas
from redmeter.dashboard.errors import HTTPError
from redmeter.dashboard.serialize import convert
from redmeter.errors import InvalidName, InvalidValue
from redmeter.queries import select
from redmeter.reading.comparison import request_of
from redmeter.reading.explain import read_explanation
from redmeter.reading.status import read_status
from redmeter.store import Store

Values = Mapping[str, Any]


def status(store: Store, _: Values) -> schemas.StatusAnswer:
    """Answer /api/status."""
    now, found_status = read_status(store)
    return convert(schemas.StatusAnswer, found_status, now=now, missing=store.skipped())


def explain(store: Store, values: Values) -> schemas.ExplainAnswer:
    """Answer /api/explain."""
    custom = values["baseline_since"], values["baseline_until"]
    if (custom[0] is None) != (custom[1] is None):
        raise _bad("a baseline has a start and an end", "give both")
    if custom[0] is not None and values["baseline"] is not None:
        raise _bad("baseline and baseline_since exclude each other", "leave out one of them")
    try:
        request = request_of(
            select(values["name"], dict(values["label"])),
            since=values["since"],
            until=values["until"],
            baseline=values["baseline"] or "before" if custom[0] is None else custom,
            precision=values["precision"],
            failing=dict(values["failing"]),
        )
    except InvalidName as error:
        raise _bad(str(error), "give a name without this label") from None
    except InvalidValue as error:
        raise _bad(error.reason, "swap them") from None
    now, explanation = read_explanation(store, request)
    return convert(schemas.ExplainAnswer, explanation, now=now, missing=store.skipped())


def alerts(store: Store, values: Values) -> schemas.AlertsAnswer:
    """Answer /api/alerts."""
    now, found = read_alerts(store, transitions=values["limit"])
    return convert(schemas.AlertsAnswer, found, now=now, missing=store.skipped())


def _bad(message: str, fix: str) -> HTTPError:
    return HTTPError(400, "bad-combination", message, fix)
