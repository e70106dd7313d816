"""Write the OpenAPI file of the dashboard's API, or check that it is current.

    python tools/openapi.py            writes src/redmeter/dashboard/openapi.json
    python tools/openapi.py --check    exits 1 and names the fix where it is stale

It is made from the table of parameters and the dataclasses of the answers, which the API itself
uses. Pydantic makes schemas of types; nothing of it is needed where the page is served.
"""
# ruff: noqa: INP001

import ast
import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from redmeter.analysis import explanation
from redmeter.dashboard import rows, verdict_rows
from redmeter.dashboard import schemas as answers
from redmeter.dashboard.endpoints import ENDPOINTS, Endpoint
from redmeter.dashboard.parameters import Parameter

ROOT = Path(__file__).parents[1]
PATH = ROOT / "src" / "redmeter" / "dashboard" / "openapi.json"
FIX = "python tools/openapi.py writes it anew (so does make format)"
_SCHEMAS = "#/components/schemas/{model}"
#: Answers whose fields are those of a result.
_BASES = {"ExplainAnswer": "Explanation", "StatusAnswer": "Status", "CheckRow": "Check"}
_ABOUT = (
    "Everything that the page shows, as JSON. All is asked by GET and changes nothing. Times are "
    "Unix seconds by the store's clock, durations seconds, shares 0 to 1. null: not known."
)
#: The modules of the answers' dataclasses.
_MODULES = (answers, rows, verdict_rows, explanation)


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
        for module in _MODULES
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__
        if each not in (explanation.Explanation, explanation.Status, explanation.Check)
    ]
    adapters: list[Any] = [(each.__name__, "serialization", TypeAdapter(each)) for each in types]
    _, found = TypeAdapter.json_schemas(adapters, ref_template=_SCHEMAS)
    comments = {key: text for module in _MODULES for key, text in _comments(module).items()}
    for name, base in _BASES.items():
        comments |= {(name, key): text for (of, key), text in comments.items() if of == base}
    documented = {each.__name__: each for each in types}
    schemas: dict[str, Any] = found["$defs"]
    for name, schema in schemas.items():
        schema.pop("title", None)
        schema["required"] = list(schema["properties"])  # no field is ever left out
        schema["description"] = inspect.cleandoc(documented[name].__doc__ or "")
        for key, own in schema["properties"].items():
            own.pop("title", None)
            own.pop("default", None)
            if (name, key) in comments:
                own["description"] = comments[name, key]
    return dict(sorted(schemas.items()))


def _comments(module: ModuleType) -> dict[tuple[str, str], str]:
    """Return what the `#:` comments of a module say: (type, key) -> text."""
    source = inspect.getsource(module)
    lines = source.splitlines()
    found = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                at, text = part.lineno - 2, list[str]()
                while comment := re.match(r"\s*#: (.*)", lines[at]):
                    text.insert(0, comment[1])
                    at -= 1
                if text:
                    found[node.name, part.target.id] = " ".join(text)
    return found


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
