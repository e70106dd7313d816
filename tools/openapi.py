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
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from redmeter.dashboard import schemas as answers
from redmeter.dashboard.endpoints import ENDPOINTS, Endpoint
from redmeter.dashboard.parameters import Parameter

ROOT = Path(__file__).parents[1]
PATH = ROOT / "src" / "redmeter" / "dashboard" / "openapi.json"
FIX = "python tools/openapi.py writes it anew (so does make format)"
_SCHEMAS = "#/components/schemas/{model}"
_ABOUT = (
    "Everything that the page shows, as JSON. All is asked by GET and changes nothing. Times are "
    "Unix seconds by the store's clock, durations seconds, shares 0 to 1. null: not known."
)


def document() -> dict[str, Any]:
    """Return the document."""
    paths = {one.path: {"get": _operation(one)} for one in ENDPOINTS}
    paths["/api/openapi.json"] = {
        "get": {
            "operationId": "openapi",
            "summary": "This document",
            "responses": {"200": _json("This document.", {"type": "object"})} | _refused(),
        }
    }
    alive = {"$ref": _SCHEMAS.format(model="LivenessAnswer")}
    paths["/healthz"] = {
        "get": {
            "operationId": "healthz",
            "summary": "Whether the store answers; needs no access",
            "security": [],
            "responses": {"200": _json("It does.", alive), "503": _json("It does not.", alive)},
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Redmeter's dashboard", "version": "1", "description": _ABOUT},
        "servers": [{"url": ".", "description": "Where the page is"}],
        "security": [{}, {"token": []}, {"basic": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
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


def _refused() -> dict[str, Any]:
    texts = {
        "400": "A parameter cannot be used.",
        "401": "Who asks has not said who that is.",
        "403": "Who asks may not.",
        "414": "The query is too long.",
        "421": "The Host header names somebody else.",
        "503": "The store is away; Retry-After says when to ask again.",
    }
    error = {"$ref": _SCHEMAS.format(model="ErrorAnswer")}
    return {status: _json(text, error) for status, text in texts.items()}


def _json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _schemas() -> dict[str, Any]:
    types = [
        each
        for each in vars(answers).values()
        if getattr(each, "__module__", "") == answers.__name__
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
    return json.dumps(document(), indent=1, ensure_ascii=True, sort_keys=False) + "\n"


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
