"""Prometheus' HTTP API over a store, as Grafana's data source "Prometheus" asks it.

    /api/v1/query, /api/v1/query_range, /api/v1/series, /api/v1/labels       GET and POST
    /api/v1/label/NAME/values, /api/v1/metadata, /api/v1/rules, /api/v1/alerts,
    /api/v1/status/buildinfo                                                 GET

Answers have Prometheus' form, errors too. Every other path under /api/v1/ is `404 page not found`:
by that, Grafana knows what to leave out. The evaluator needs an extra, and is imported with the
first query. Functions here run in threads.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from redmeter.alerting.state import FIRING, PENDING
from redmeter.alerting.status import AlertsStatus, AlertStatus, RuleStatus, read_alerts
from redmeter.dashboard.api.endpoints import ANSWER_SECONDS
from redmeter.dashboard.cache import Body
from redmeter.dashboard.errors import HTTPError
from redmeter.errors import LimitExceeded, MissingExtra, RedmeterError
from redmeter.export.exposition import RESOLUTIONS, Format, negotiated
from redmeter.export.prometheus_names import HISTOGRAM, SUFFIXES, metric_type, unescaped
from redmeter.reading.export.listing import ExportList, Exports
from redmeter.reading.export.scrape import Scraper
from redmeter.store import Store

#: Where the API is.
ROOT = "/api/v1/"
#: The paths that take POST, with a form.
FORMS = frozenset(ROOT + name for name in ("query", "query_range", "series", "labels"))
#: Longest query string or form, bytes.
MAX_PARAMETER_BYTES = 256 * 1024
#: Queries that are evaluated at once.
QUERY_THREADS = 2

#: The version of Prometheus by which Grafana chooses its requests.
PROMETHEUS_VERSION = "2.55.1"
_BUILD = ("revision", "branch", "buildUser", "buildDate", "goVersion")
_TIMED_OUT = "query timed out after {:g} s. Choose fewer series or a shorter range"
_TRUNCATED = "results truncated due to limit"
_FORM = "application/x-www-form-urlencoded"

#: The group of all rules of alerts, and the file that it names.
_GROUP = "redmeter"
_NEVER = "0001-01-01T00:00:00Z"

#: Error type -> status, of those that come from queries.
_STATUS = {"bad_data": 400, "execution": 422, "timeout": 503}


class Parameters:
    """The parameters of a request; repeated ones, such as match[], have several values."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)

    def one(self, name: str) -> str | None:
        """Return the first value of a parameter; None where it is missing or empty."""
        return next((value for key, value in self.pairs if key == name and value), None)

    def all(self, name: str) -> list[str]:
        """Return all values of a parameter."""
        return [value for key, value in self.pairs if key == name]

    def limit(self) -> int | None:
        """Return how many results are wanted at most; None for no limit.

        Raises:
            APIError: it is no number.
        """
        text = self.one("limit")
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise APIError(400, "bad_data", 'invalid parameter "limit": give a number, 0 for all')
        return int(text) or None


class APIError(HTTPError):
    """A request is answered by an error in Prometheus' form."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(status, kind, message, "")


def scrape_options(request: Request) -> tuple[Format, bool]:
    """Return the format that a scraper asks for, and whether a part of the data is enough.

    The format is that of its Accept header and `buckets`; `partial=1`: servers may be missing.

    Raises:
        HTTPError: there is no such parameter, or no such value.
    """
    form, given = negotiated(request.headers.get("accept", "")), dict(request.query_params)
    buckets = given.pop("buckets", str(form.buckets))
    partial = given.pop("partial", "0")
    for unknown in given:
        text = f"there is no parameter {unknown[:80]}"
        raise HTTPError(400, "unknown-parameter", text, "known: buckets, partial")
    if buckets not in map(str, RESOLUTIONS):
        text = "buckets is the number of them to each power of two"
        raise HTTPError(400, "bad-request", text, "give 1, 2 or 4")
    if partial not in ("0", "1"):
        text = "partial is whether servers may be missing"
        raise HTTPError(400, "bad-request", text, "give 0 or 1")
    return replace(form, buckets=int(buckets)), partial == "1"


class _Text(str):
    """Data that is JSON text already."""

    __slots__ = ()


class Success(NamedTuple):
    """The data of an answer, with its notes."""

    data: Any
    warnings: Sequence[str] = ()
    infos: Sequence[str] = ()


def prometheus_error(error: HTTPError) -> Response:
    """Return an error in Prometheus' form."""
    kinds = {404: "not_found", 500: "internal", 503: "unavailable"}
    kind = error.kind if isinstance(error, APIError) else kinds.get(error.status, "bad_data")
    message = f"{error.message}: {error.fix}" if error.fix else error.message
    content = json.dumps({"status": "error", "errorType": kind, "error": message})
    headers = {**error.headers, "Cache-Control": "no-store"}
    return Response(content, error.status, headers, "application/json")


def not_found(path: str) -> Response:
    """Return the answer of a path that Prometheus has, or not, and Redmeter has not."""
    if path == ROOT + "query_exemplars":  # JSON, or Grafana would take it for a broken server
        return prometheus_error(APIError(404, "not_found", "exemplars are not stored"))
    if path.startswith(ROOT + "label/") and path.endswith("/values"):  # a line break in the name
        return prometheus_error(APIError(400, "bad_data", "invalid label name"))
    return Response("404 page not found\n", 404, {"Cache-Control": "no-store"}, "text/plain")


async def parameters_of(request: Request) -> Parameters:
    """Read the parameters of a request: of its form, then of its URL.

    Raises:
        APIError: too long, or not a form.
    """
    texts = []
    if request.method == "POST":
        media_type = request.headers.get("content-type", _FORM).partition(";")[0].strip().lower()
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_PARAMETER_BYTES:
                raise _too_long()
        if body and media_type != _FORM:
            raise APIError(415, "bad_data", f"send parameters as {_FORM}")
        texts.append(bytes(body))
    texts.append(request.scope.get("query_string", b""))
    pairs: list[tuple[str, str]] = []
    for text in texts:
        if len(text) > MAX_PARAMETER_BYTES:
            raise _too_long()
        try:
            pairs += parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict")
        except (UnicodeDecodeError, ValueError):
            raise APIError(400, "bad_data", "parameters are not URL-encoded UTF-8") from None
    return Parameters(pairs)


def _too_long() -> APIError:
    return APIError(
        413, "bad_data", f"over {MAX_PARAMETER_BYTES:,} bytes of parameters: ask for less"
    )


def timed_out() -> APIError:
    """Return the error of a query that is not answered in time, because others are evaluated."""
    return APIError(503, "timeout", _TIMED_OUT.format(ANSWER_SECONDS))


class _Reading:
    """What one request reads.

    Attributes:
        store: leaves out the data of servers that do not answer.
        arrived: when the request arrived, by the monotonic clock.
    """

    def __init__(self, store: Store, listing: ExportList, arrived: float) -> None:
        self.store, self.arrived = store, arrived
        self._listing = listing
        self._exports: Exports | None = None

    def exports(self) -> Exports:
        """Return the series of the store."""
        self._exports = self._exports or self._listing.read()
        return self._exports

    def missing(self) -> dict[str, None]:
        """Return the omissions, as sentences."""
        listed = self._exports.missing if self._exports else ()
        return dict.fromkeys([*listed, *self.store.skipped()])


class PrometheusAPI:
    """Answers requests about a store. Called in threads.

    Args:
        store: the store that is read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._exports = ExportList(store, best_effort=True)
        self._scrapers = {partial: Scraper(store, partial=partial) for partial in (False, True)}

    def body(self, name: str, parameters: Parameters, arrived: float) -> Body:
        """Return the body of an answer.

        Args:
            name: of the endpoint.
            arrived: when the request arrived, by the monotonic clock.

        Raises:
            APIError: the request cannot be answered.
        """
        reading = _Reading(self._store.best_effort(), self._exports, arrived)
        try:
            with self._store.link.bounded(ANSWER_SECONDS):
                answer = _ENDPOINTS[name](self, parameters, reading)
        except HTTPError:
            raise
        except MissingExtra as error:
            raise APIError(501, "unavailable", str(error)) from None
        except LimitExceeded as error:
            raise APIError(422, "execution", str(error)) from None
        except RedmeterError as error:
            kind = getattr(error, "kind", "unavailable")
            raise APIError(_STATUS.get(kind, 503), kind, str(error)) from None
        content: dict[str, Any] = {"status": "success"}
        if not isinstance(answer.data, _Text):
            content["data"] = answer.data
        warnings = [*answer.warnings, *reading.missing()]
        if warnings:
            content["warnings"] = warnings
        if answer.infos:
            content["infos"] = list(answer.infos)
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        if isinstance(answer.data, _Text):
            text = f'{text[:-1]},"data":{answer.data}}}'
        return Body(text.encode(errors="replace"), "application/json")

    def metrics(self, form: Format, *, partial: bool) -> Body:
        """Return the answer to a scrape; `partial`: also if servers do not answer."""
        with self._store.link.bounded(ANSWER_SECONDS):
            text = self._scrapers[partial].scrape(form)
        return Body(text, form.content_type, headers={"Vary": "Accept"})

    # Queries

    def query(self, parameters: Parameters, reading: _Reading) -> Success:
        """Evaluate a query at one time."""
        from redmeter.promql.answers import parse_time

        moment = parameters.one("time")
        at = None if moment is None else parse_time("time", moment) / 1000
        text = _required(parameters, "query")
        answer = self._answered(text, at, None, parameters, reading)
        return _result(answer, parameters)

    def query_range(self, parameters: Parameters, reading: _Reading) -> Success:
        """Evaluate a query over time."""
        from redmeter.promql.answers import parse_duration, parse_time

        start, end = (
            parse_time(name, _required(parameters, name)) / 1000 for name in ("start", "end")
        )
        step = parse_duration("step", _required(parameters, "step")) / 1000
        if end < start:
            raise _ends_before_start()
        if step <= 0:
            raise APIError(
                *(400, "bad_data"),
                'invalid parameter "step": zero or negative query resolution step widths are not'
                " accepted. Try a positive integer",
            )
        text = _required(parameters, "query")
        window = start, end, step
        answer = self._answered(text, None, window, parameters, reading)
        return _result(answer, parameters)

    def _answered(
        self,
        text: str,
        at: float | None,
        window: tuple[float, float, float] | None,
        parameters: Parameters,
        reading: _Reading,
    ) -> Any:
        from redmeter.reading.promql.query import answer

        limits, lookback = _limits(parameters, reading.arrived), _lookback(parameters)
        series = reading.exports()
        return answer(reading.store, series, text, at, window, limits, lookback)

    # Names

    def series(self, parameters: Parameters, reading: _Reading) -> Success:
        """List the label sets that selectors select."""
        if not parameters.all("match[]"):
            raise APIError(400, "bad_data", "no match[] parameter provided")
        listing = self._listing(parameters, reading)
        return _limited([dict(labels) for labels in listing.labels], parameters, listing.warnings)

    def labels(self, parameters: Parameters, reading: _Reading) -> Success:
        """List the names of labels."""
        listing = self._listing(parameters, reading, bounds=False)
        names = {label for labels in listing.labels for label, _ in labels}
        return _limited(sorted(names), parameters, listing.warnings)

    def label_values(self, parameters: Parameters, reading: _Reading) -> Success:
        """List the values of a label; its name is the parameter `label`."""
        name = unescaped(parameters.one("label") or "")
        if not name or "\ufffd" in name:
            raise APIError(400, "bad_data", f'invalid label name: "{name[:80]}"')
        listing = self._listing(parameters, reading, bounds=name == "le")
        pairs = (pair for labels in listing.labels for pair in labels)
        values = {value for label, value in pairs if label == name}
        return _limited(sorted(values), parameters, listing.warnings)

    def metadata(self, parameters: Parameters, reading: _Reading) -> Success:
        """List the types of metrics."""
        types: dict[str, list[dict[str, str]]] = {}
        chosen = parameters.one("metric")
        by_name = reading.exports().catalog.by_name
        for name in sorted(by_name):
            if chosen in (None, name):
                help_text = _help(by_name[name][0].kind, by_name[name][0].base)
                types[name] = [
                    {"type": metric_type(by_name[name][0].kind), "help": help_text, "unit": ""}
                ]
        limit = parameters.limit()
        return Success(types if limit is None else dict(list(types.items())[:limit]))

    def _listing(self, parameters: Parameters, reading: _Reading, *, bounds: bool = True) -> Any:
        """Return the label sets of the time range that match[] selects, or all."""
        from redmeter.promql.answers import parse_time
        from redmeter.reading.promql.query import SeriesLister, selectors

        texts = (parameters.one(name) for name in ("start", "end"))
        start, end = (
            None if text is None else parse_time(name, text)
            for name, text in zip(("start", "end"), texts, strict=True)
        )
        if start is not None and end is not None and end < start:
            raise _ends_before_start()
        matches = parameters.all("match[]")
        chosen = selectors(matches) if matches else [()]
        lister = SeriesLister(
            *(reading.store, reading.exports(), start, end),
            *(_limits(parameters, reading.arrived), bounds),
        )
        return lister.list(chosen)

    # Constants

    def buildinfo(self, _: Parameters, __: _Reading) -> Success:
        """Return the version of Prometheus whose API this is."""
        return Success({"version": PROMETHEUS_VERSION, **dict.fromkeys(_BUILD, "")})

    def rules(self, parameters: Parameters, reading: _Reading) -> Success:
        """List the rules of alerts; there are no recording rules."""
        if parameters.one("type") == "record":
            return Success({"groups": []})
        _now, status = read_alerts(reading.store)
        names = parameters.all("rule_name[]")
        listed = parameters.one("exclude_alerts") != "true"
        return Success({"groups": _rule_groups(status, names=names, alerts=listed)})

    def alerts(self, _: Parameters, reading: _Reading) -> Success:
        """List the alerts that are pending or fire."""
        _now, status = read_alerts(reading.store)
        return Success({"alerts": [alert for rule in status.rules for alert in _alerts(rule)]})


_Method = Callable[[PrometheusAPI, Parameters, _Reading], Success]
_ENDPOINTS: Mapping[str, _Method] = {
    "query": PrometheusAPI.query,
    "query_range": PrometheusAPI.query_range,
    "series": PrometheusAPI.series,
    "labels": PrometheusAPI.labels,
    "label/{label:path}/values": PrometheusAPI.label_values,
    "metadata": PrometheusAPI.metadata,
    "rules": PrometheusAPI.rules,
    "alerts": PrometheusAPI.alerts,
    "status/buildinfo": PrometheusAPI.buildinfo,
}
#: The endpoints, each a path below ROOT.
NAMES: Iterable[str] = _ENDPOINTS.keys()


def shared_seconds(name: str, parameters: Parameters) -> float:
    """Return how long an answer is shared."""
    moving = name == "query" and parameters.one("time") is None
    return 0.2 if moving or name not in ("query", "query_range") else 1.0


def _help(kind: str, base: str) -> str:
    suffixes = ", ".join(SUFFIXES)
    views = f", also a classic one with {suffixes}" if kind == HISTOGRAM else ""
    return f"{kind} {base}{views}"


def _ends_before_start() -> APIError:
    message = 'invalid parameter "end": end timestamp must not be before start time'
    return APIError(400, "bad_data", message)


def _required(parameters: Parameters, name: str) -> str:
    value = parameters.one(name)
    if value is None:
        raise APIError(400, "bad_data", f'invalid parameter "{name}": it is missing or empty')
    return value


def _limits(parameters: Parameters, arrived: float) -> Any:
    """Return the limits of a query, which ends ANSWER_SECONDS after it arrived, or by `timeout`."""
    from redmeter.promql.answers import parse_duration
    from redmeter.promql.errors import Limits, QueryTimeout

    text = parameters.one("timeout")
    seconds = (
        ANSWER_SECONDS
        if text is None
        else min(ANSWER_SECONDS, parse_duration("timeout", text) / 1000)
    )
    deadline = arrived + seconds

    def interrupt() -> None:
        if time.monotonic() > deadline:
            raise QueryTimeout(_TIMED_OUT.format(seconds))

    return Limits(interrupt=interrupt)


def _lookback(parameters: Parameters) -> int:
    """Return how long gauges keep their last value, in milliseconds."""
    from redmeter.promql.answers import parse_duration
    from redmeter.promql.intervals import LOOKBACK

    text = parameters.one("lookback_delta")
    return (parse_duration("lookback_delta", text) if text is not None else 0) or LOOKBACK


def _result(answer: Any, parameters: Parameters) -> Success:
    from redmeter.promql.answers import json_text

    warnings, limit = list(answer.warnings), parameters.limit()
    is_list = isinstance(answer.value, list) or hasattr(answer.value, "labels")
    if limit is not None and is_list and len(answer.value) > limit:
        warnings.append(_TRUNCATED)
    return Success(_Text(json_text(answer, limit)), warnings, answer.infos)


def _limited(rows: list[Any], parameters: Parameters, warnings: Iterable[str]) -> Success:
    limit = parameters.limit()
    if limit is None or len(rows) <= limit:
        return Success(rows, list(warnings))
    return Success(rows[:limit], [*warnings, _TRUNCATED])


# --- Alerts --------------------------------------------------------------------------------------


def _rule_groups(
    status: AlertsStatus, *, names: Collection[str] = (), alerts: bool = True
) -> list[dict[str, Any]]:
    """Return the only group of rules; none if there is no rule.

    Where a condition has no PromQL expression, its query is in words.

    Args:
        names: only these rules; all if empty.
        alerts: whether rules have their alerts.
    """
    evaluated = _rfc3339(status.evaluated)
    rules = [
        {
            "state": rule.status if rule.status in (PENDING, FIRING) else "inactive",
            "name": rule.name,
            "query": rule.query or rule.name,
            "duration": rule.for_seconds,
            "keepFiringFor": rule.keep,
            "labels": {"severity": rule.severity, **rule.labels},
            "annotations": _annotations(rule),
            "alerts": _alerts(rule) if alerts else [],
            "health": "unknown" if rule.unknown or status.evaluated is None else "ok",
            **({"lastError": rule.unknown} if rule.unknown else {}),
            "evaluationTime": 0,
            "lastEvaluation": evaluated,
            "type": "alerting",
        }
        for rule in status.rules
        if not names or rule.name in names
    ]
    if not rules:
        return []
    return [
        {
            "name": _GROUP,
            "file": _GROUP,
            "rules": rules,
            "interval": status.interval or 0,
            "limit": 0,
            "evaluationTime": 0,
            "lastEvaluation": evaluated,
        }
    ]


def _alerts(rule: RuleStatus) -> list[dict[str, Any]]:
    """Return the alerts of a rule that are pending or fire."""
    return [
        {
            "labels": {"alertname": rule.name, "severity": rule.severity, **alert.labels},
            "annotations": _annotations(rule, alert),
            "state": alert.status,
            "activeAt": _rfc3339(alert.since),
            "value": "NaN" if alert.value is None else f"{alert.value:e}",
        }
        for alert in rule.alerts
        if alert.status in (PENDING, FIRING)
    ]


def _annotations(rule: RuleStatus, alert: AlertStatus | None = None) -> dict[str, str]:
    detail = {"description": alert.detail} if alert and alert.detail else {}
    return {**({"summary": rule.condition} if rule.condition else {}), **detail}


def _rfc3339(seconds: float | None) -> str:
    if seconds is None:
        return _NEVER
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
