"""The file that describes the API is made from what the API goes by."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest

from redmeter.dashboard.api import prometheus
from redmeter.dashboard.api.endpoints import ENDPOINTS
from support.tools import loaded


@pytest.fixture(scope="module")
def tool() -> Any:
    """tools/openapi.py."""
    return loaded("tools/openapi.py")


def test_the_file_is_current(tool: Any) -> None:
    """`make check` says so too."""
    assert tool.PATH.read_text() == tool.text(), tool.FIX
    assert tool.main(["--check"]) == 0


def test_the_file_is_the_document_in_lines_that_can_be_reviewed(tool: Any) -> None:
    """Nothing is lost; keys are sorted, and a short value takes one line."""
    parsed = json.loads(tool.text())
    assert parsed == tool.document()
    assert list(parsed["paths"]) == sorted(parsed["paths"])
    assert re.search(r'^ +"schema": \{"type": "string"\}$', tool.text(), re.MULTILINE)


def test_a_stale_file_is_reported_with_the_fix(
    tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1; without --check it is written."""
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "PATH", tmp_path / "openapi.json")
    assert tool.main(["--check"]) == 1
    assert "openapi.json is stale: python tools/openapi.py" in capsys.readouterr().err
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    assert tool.main(["--wrong"]) == 2


def test_the_file_is_served(tool: Any, client: httpx.Client) -> None:
    """To programs that read it."""
    answer = client.get("/api/openapi.json")
    assert answer.json() == tool.document()
    assert (
        client.get(
            "/api/openapi.json", headers={"If-None-Match": answer.headers["etag"]}
        ).status_code
        == 304
    )


def test_each_endpoint_and_parameter_is_in_it(tool: Any) -> None:
    """With what it is for; and each schema is one."""
    document = tool.document()
    assert document["openapi"] == "3.1.0"
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path]["get"]
        assert {one["name"] for one in operation["parameters"]} == {
            parameter.name for parameter in endpoint.parameters
        }
        assert all(one["description"] for one in operation["parameters"])
        assert set(operation["responses"]) >= {"200", "400", "401", "403", "414", "421", "503"}
    methods = {path: set(operations) for path, operations in document["paths"].items()}
    assert methods["/metrics"] == methods["/-/ready"] == methods["/-/healthy"] == {"get"}
    described = {path: each for path, each in methods.items() if path.startswith(prometheus.ROOT)}
    assert {path.replace("{label}", "{label:path}") for path in described} == {
        prometheus.ROOT + name for name in prometheus.NAMES
    }
    assert {path for path, each in described.items() if "post" in each} == prometheus.FORMS
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["description"]
        assert set(schema["required"]) == set(schema["properties"])
    assert json.loads(tool.text()) == document
