"""Write the OpenAPI file of the dashboard's API, or check that it is current.

    python tools/openapi.py            writes src/redmeter/dashboard/openapi.json
    python tools/openapi.py --check    exits 1 and names the fix where it is stale

It is made from the table of parameters and the dataclasses of the answers, which the API itself
uses. Pydantic makes schemas of types; nothing of it is needed where the page is served.
"""
# ruff: noqa: INP001

import ast
import dataclasses
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from redmeter.dashboard.api import prometheus
from redmeter.dashboard.api import schemas as answers
from redmeter.dashboard.api.endpoints import ENDPOINTS
from redmeter.dashboard.api.parameters import Endpoint, Parameter
from redmeter.dashboard.guard import ALIVE, VITAL
from redmeter.export.exposition import BUCKETS, OPENMETRICS, RESOLUTIONS, TEXT

ROOT = Path(__file__).parents[1]
PATH = ROOT / "src" / "redmeter" / "dashboard" / "openapi.json"
FIX = "python tools/openapi.py writes it anew (so does make format)"
_SCHEMAS = "#/components/schemas/{model}"
_ABOUT = (
    "Everything that the page shows, as JSON, and Prometheus' HTTP API. No request changes the "
    "store. Times are Unix seconds by the store's clock, durations are seconds, shares 0 to 1. "
    "null: unknown."
)


def document() -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, Any] = {one.path: {"get": _operation(one)} for one in ENDPOINTS}
    paths["/api/openapi.json"] = {
        "get": {
            "operationId": "openapi",
            "summary": "This document",
            "responses": {"200": _json("This document.", {"type": "object"})} | _refused(),
        }
    }
    alive = {"$ref": _SCHEMAS.format(model="LivenessAnswer")}
    for path in VITAL:
        subject, replies = "page", {"200": _json("It does.", alive)}
        if path != ALIVE:
            subject, replies["503"] = "store", _json("It does not.", alive)
        paths[path] = {
            "get": {
                "operationId": path.rpartition("/")[2],
                "summary": f"Whether the {subject} answers; needs no access",
                "security": [],
                "responses": replies,
            }
        }
    paths |= {"/metrics": {"get": _scrape()}, **_prometheus()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Redmeter's dashboard", "version": "1", "description": _ABOUT},
        "servers": [{"url": ".", "description": "Where the page is"}],
        "security": [{}, {"token": []}, {"basic": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas() | {"PrometheusError": _PROMETHEUS_ERROR},
            "responses": _refusals("ErrorAnswer", _REFUSED)
            | _refusals("PrometheusError", _PROMETHEUS_REFUSED),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    ref = {"$ref": _SCHEMAS.format(model=endpoint.answer.__name__)}
    return {
        "operationId": endpoint.path.rpartition("/")[2],
        "summary": endpoint.summary,
        "parameters": [_parameter(row) for row in endpoint.parameters],
        "responses": {"200": _json("The answer.", ref)} | _refused(),
    }


def _parameter(row: Parameter) -> dict[str, Any]:
    schema = dict(row.kind.schema)
    if row.most > 1:
        schema = {"type": "array", "items": schema, "maxItems": row.most}
        if row.required:
            schema["minItems"] = 1
    elif row.default is not None:
        schema["default"] = int(row.default) if isinstance(row.default, bool) else row.default
    found: dict[str, Any] = {
        "name": row.name,
        "in": "query",
        "description": row.help,
        "schema": schema,
    }
    if row.required:
        found["required"] = True
    if row.most > 1:
        found |= {"style": "form", "explode": True}
    return found


#: Refusals: of the page's API, and of Prometheus' API where they differ.
_REFUSED = {
    "400": "A parameter is invalid.",
    "401": "Credentials are missing.",
    "403": "Access is denied.",
    "414": "The URL is too long.",
    "421": "The Host header names another host.",
    "503": "The store is unreachable; Retry-After is when to retry.",
}
_PROMETHEUS_REFUSED = _REFUSED | {
    "413": "The parameters are too long.",
    "415": "The body of a POST is not a form.",
    "422": "The query cannot be evaluated, or exceeds a limit.",
    "501": "The extra `redmeter[prometheus]` is not installed.",
    "503": "The store is unreachable, or the query took too long.",
}


def _refused(statuses: Collection[str] = _REFUSED, model: str = "ErrorAnswer") -> dict[str, Any]:
    return {
        status: {"$ref": f"#/components/responses/{model}-{status}"} for status in sorted(statuses)
    }


def _refusals(model: str, texts: Mapping[str, str]) -> dict[str, Any]:
    error = {"$ref": _SCHEMAS.format(model=model)}
    return {f"{model}-{status}": _json(text, error) for status, text in sorted(texts.items())}


def _json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


# --- Prometheus' API and /metrics ----------------------------------------------------------------


def _object(optional: Collection[str] = (), **properties: Any) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _tuple(*parts: dict[str, Any]) -> dict[str, Any]:
    # Without prefixItems, which Schemathesis 4 turns into a list of `items`.
    kinds = [part for at, part in enumerate(parts) if part not in parts[:at]]
    sizes = {"minItems": len(parts), "maxItems": len(parts)}
    return {"type": "array", "items": {"anyOf": kinds}, **sizes}


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}
_LABELS = {"type": "object", "additionalProperties": _TEXT}
_BUCKET = _tuple({"type": "integer", "minimum": 0, "maximum": 3}, _TEXT, _TEXT, _TEXT)
_HISTOGRAM = _object(("buckets",), count=_TEXT, sum=_TEXT, buckets=_list(_BUCKET))
_SAMPLE, _HISTOGRAM_SAMPLE = _tuple(_NUMBER, _TEXT), _tuple(_NUMBER, _HISTOGRAM)
_VECTOR = _object(
    ("value", "histogram"), metric=_LABELS, value=_SAMPLE, histogram=_HISTOGRAM_SAMPLE
)
_MATRIX = _object(
    ("values", "histograms"),
    metric=_LABELS,
    values=_list(_SAMPLE),
    histograms=_list(_HISTOGRAM_SAMPLE),
)
_RESULTS = {"vector": _list(_VECTOR), "matrix": _list(_MATRIX), "scalar": _SAMPLE} | {
    "string": _SAMPLE
}
_RESULT = {
    "oneOf": [_object(resultType=_one_of(kind), result=one) for kind, one in _RESULTS.items()]
}
_STATE = _one_of("inactive", "pending", "firing")
_ALERT = _object(labels=_LABELS, annotations=_LABELS, state=_STATE, activeAt=_TEXT, value=_TEXT)
_RULE = _object(
    ("lastError",),
    state=_STATE,
    name=_TEXT,
    query=_TEXT,
    duration=_NUMBER,
    keepFiringFor=_NUMBER,
    labels=_LABELS,
    annotations=_LABELS,
    alerts=_list(_ALERT),
    health=_one_of("ok", "unknown", "err"),
    lastError=_TEXT,
    evaluationTime=_NUMBER,
    lastEvaluation=_TEXT,
    type=_one_of("alerting"),
)
_GROUP = _object(
    name=_TEXT,
    file=_TEXT,
    rules=_list(_RULE),
    interval=_NUMBER,
    limit=_NUMBER,
    evaluationTime=_NUMBER,
    lastEvaluation=_TEXT,
)
_PROMETHEUS_ERROR = {
    **_object(
        status=_one_of("error"),
        errorType=_one_of(
            *("bad_data", "execution", "timeout", "internal", "not_found", "unavailable")
        ),
        error={"type": "string", "description": "The problem, and how to fix it."},
    ),
    "description": "Every answer of Prometheus' API other than 2xx.",
}

#: Parameters of Prometheus' API: the schema, and a description. An empty one is as if missing.
_MOMENT = {"anyOf": [_NUMBER, {"type": "string", "format": "date-time"}]}
_DURATION = {"anyOf": [_NUMBER, {"type": "string", "pattern": "^([0-9]{1,6}(ms|[smhdwy]))?$"}]}
_LIMIT = {"type": "string", "pattern": "^[0-9]{0,18}$"}
_PARAMETERS: dict[str, tuple[dict[str, Any], str]] = {
    "query": (
        _TEXT | {"examples": ["sum by (route) (rate(http_requests_total[5m]))"]},
        "The expression in PromQL.",
    ),
    "time": (_MOMENT, "When it is evaluated: Unix seconds or RFC 3339; else now."),
    "start": (_MOMENT, "Start of the time range: Unix seconds or RFC 3339."),
    "end": (_MOMENT, "End of the time range, inclusive."),
    "step": (_DURATION, "Interval between evaluations: seconds, or a duration such as 5m."),
    "timeout": (_DURATION, "Lowers the time limit of 10 s."),
    "lookback_delta": (_DURATION, "How long a gauge keeps its last value; else 5 minutes."),
    "limit": (_LIMIT, "Maximum number of results; 0: no limit."),
    "match[]": (_list(_TEXT), "Selectors; a series is listed if one of them selects it."),
    "metric": (_TEXT, "Only this metric."),
    "type": (_TEXT, "`alert` or `record`; there are no recording rules."),
    "rule_name[]": (_list(_TEXT), "Only rules with these names."),
    "exclude_alerts": (_TEXT, "`true`: rules without their alerts."),
    "label": (_TEXT | {"minLength": 1}, "The label; U__ begins an escaped UTF-8 name."),
}
_QUERY = "query!", "limit", "timeout", "lookback_delta"
_NAMES = "start", "end", "limit"
#: Path below /api/v1/ -> summary, schema of `data`, names of parameters; `!`: required.
_PROMETHEUS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "query": ("Evaluate a query at one time", _RESULT, (*_QUERY, "time")),
    "query_range": ("Evaluate a query over time", _RESULT, (*_QUERY, "start!", "end!", "step!")),
    "series": ("Label sets of series", _list(_LABELS), ("match[]!", *_NAMES)),
    "labels": ("Names of labels", _list(_TEXT), ("match[]", *_NAMES)),
    "label/{label}/values": ("Values of a label", _list(_TEXT), ("match[]", *_NAMES)),
    "metadata": (
        "Types of metrics",
        _LABELS
        | {
            "additionalProperties": _list(
                _object(type=_one_of("counter", "gauge", "histogram"), help=_TEXT, unit=_TEXT)
            )
        },
        ("metric", "limit"),
    ),
    "rules": (
        "Rules of alerts",
        _object(groups=_list(_GROUP)),
        ("type", "rule_name[]", "exclude_alerts"),
    ),
    "alerts": ("Alerts that are pending or firing", _object(alerts=_list(_ALERT)), ()),
    "status/buildinfo": (
        "The version of Prometheus whose API this is",
        _LABELS | _object(version=_TEXT),
        (),
    ),
}


def _prometheus() -> dict[str, Any]:
    """Return the paths of Prometheus' HTTP API."""
    paths: dict[str, Any] = {}
    for name, (summary, data, names) in _PROMETHEUS.items():
        success = _object(
            ("warnings", "infos"),
            status=_one_of("success"),
            data=data,
            warnings=_list(_TEXT),
            infos=_list(_TEXT),
        )
        responses = {"200": _json("The answer.", success)}
        responses |= _refused(_PROMETHEUS_REFUSED, "PrometheusError")
        path = prometheus.ROOT + name
        get: dict[str, Any] = {
            "operationId": name.replace("/{label}/", "_").replace("/", "_"),
            "summary": summary,
            "parameters": [_query_parameter(each) for each in names],
            "responses": responses,
        }
        if "{" in name:
            get["parameters"].append(_query_parameter("label!") | {"in": "path"})
        paths[path] = {"get": get}
        if path in prometheus.FORMS:
            paths[path]["post"] = _form(get)
    return paths


def _query_parameter(name: str) -> dict[str, Any]:
    bare = name.removesuffix("!")
    schema, description = _PARAMETERS[bare]
    if name == "match[]!":
        schema = schema | {"minItems": 1}
    required = {"required": True} if bare != name else {}
    return {"name": bare, "in": "query", "description": description, "schema": schema} | required


def _form(get: dict[str, Any]) -> dict[str, Any]:
    """Return the operation that takes the parameters of another one as a form."""
    rows = get["parameters"]
    form = {
        "type": "object",
        "properties": {row["name"]: row["schema"] for row in rows},
        "required": [row["name"] for row in rows if "required" in row],
    }
    return {
        "operationId": f"{get['operationId']}_form",
        "summary": get["summary"],
        "requestBody": {
            "required": bool(form["required"]),
            "content": {"application/x-www-form-urlencoded": {"schema": form}},
        },
        "responses": get["responses"],
    }


def _scrape() -> dict[str, Any]:
    buckets = {"type": "integer", "enum": list(RESOLUTIONS), "default": BUCKETS}
    texts = {kind: {"schema": _TEXT} for kind in (TEXT, OPENMETRICS)}
    return {
        "operationId": "metrics",
        "summary": "All series as Prometheus scrapes them; the Accept header chooses the format",
        "parameters": [
            {
                "name": "buckets",
                "in": "query",
                "description": "Buckets of a histogram for each power of two.",
                "schema": buckets,
            },
            {
                "name": "partial",
                "in": "query",
                "description": "1: also if servers of a cluster do not answer; then the gauge"
                " redmeter_scrape_complete is 0.",
                "schema": {"type": "integer", "enum": [0, 1], "default": 0},
            },
        ],
        "responses": {"200": {"description": "The series.", "content": texts}} | _refused(),
    }


# --- Schemas of answers --------------------------------------------------------------------------


def _schemas() -> dict[str, Any]:
    types = [
        each
        for each in vars(answers).values()
        if getattr(each, "__module__", "") == answers.__name__ and each.__name__.endswith("Answer")
    ]
    adapters: list[Any] = [(each.__name__, "serialization", TypeAdapter(each)) for each in types]
    _, found = TypeAdapter.json_schemas(adapters, ref_template=_SCHEMAS)
    documented = {each.__name__: each for answer in types for each in _dataclasses(answer)}
    # Pydantic names Series[int] `Series_int_`.
    schemas: dict[str, Any] = json.loads(re.sub(r'_int_"', '"', json.dumps(found["$defs"])))
    for name, schema in schemas.items():
        schema.pop("title", None)
        schema["required"] = list(schema["properties"])  # no field is ever left out
        schema["description"] = _as_json(inspect.cleandoc(documented[name].__doc__ or ""))
        comments = _comments(documented[name])
        for key, own in schema["properties"].items():
            own.pop("title", None)
            own.pop("default", None)
            if key in comments:
                own["description"] = _as_json(comments[key])
    return dict(sorted(schemas.items()))


def _dataclasses(hint: Any) -> Iterator[type]:
    """Yield the dataclasses that a type consists of, itself included."""
    for part in get_args(hint):
        yield from _dataclasses(part)
    kind = get_origin(hint) or hint
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        yield kind
        for field in get_type_hints(kind).values():
            yield from _dataclasses(field)


def _as_json(text: str) -> str:
    """Return a description in which values are called by their names in JSON."""
    names = {"None": "null", "True": "true", "False": "false"}
    return re.sub(r"\b(None|True|False)\b", lambda word: names[word[0]], text)


@cache
def _comments(kind: type) -> dict[str, str]:
    """Return the `#:` comments of the fields of a dataclass, inherited ones included."""
    comments: dict[str, str] = {}
    for base in kind.__bases__:
        if dataclasses.is_dataclass(base):
            comments |= _comments(base)
    source = textwrap.dedent(inspect.getsource(kind))
    lines = source.splitlines()
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    for part in definition.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            at, text = part.lineno - 2, list[str]()
            while comment := re.match(r"\s*#: (.*)", lines[at]):
                text.insert(0, comment[1])
                at -= 1
            if text:
                comments[part.target.id] = " ".join(text)
    return comments


def text() -> str:
    """Return the document as it stands in the file."""
    return _lines(document()) + "\n"


def _lines(value: Any, indent: str = "") -> str:
    """Return a value as JSON that diffs well: keys are sorted, a short value takes one line."""
    line = json.dumps(value, sort_keys=True)
    if not isinstance(value, dict | list) or len(indent + line) <= 100:
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_lines(value[key], deeper)}" for key in sorted(value)]
    else:
        parts = [_lines(part, deeper) for part in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    body = ",\n".join(deeper + part for part in parts)
    return f"{opening}\n{body}\n{indent}{closing}"


def main(arguments: list[str]) -> int:
    """Write the file, or check it; return the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: tools/openapi.py [--check]\n")
        return 2
    made = text()
    if PATH.exists() and PATH.read_text(encoding="utf-8") == made:
        return 0
    if arguments:
        sys.stderr.write(f"{PATH.relative_to(ROOT)} is stale: {FIX}\n")
        return 1
    PATH.write_text(made, encoding="utf-8")
    sys.stdout.write(f"written: {PATH.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
