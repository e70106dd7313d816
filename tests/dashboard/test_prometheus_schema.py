"""Schemathesis asks whatever Prometheus' own OpenAPI description allows, on a real server."""

from typing import Any

import pytest
import schemathesis
import yaml  # type: ignore[import-untyped]
from hypothesis import HealthCheck, Phase, settings
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from dashboard.test_page_server import served
from redmeter import Meter
from redmeter.dashboard.api.prometheus import FORMS, ROOT
from redmeter.dashboard.server import PageServer
from support.realdata import FOLDER, NAMED
from support.servers import Server

DOCUMENT = FOLDER / "prometheus" / "openapi.yaml"
GET = ("metadata", "rules", "alerts", "status/buildinfo", "label/{name}/values")
CHECKS = (content_type_conformance, response_schema_conformance)


@settings(
    max_examples=15,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def is_answered_as_prometheus_would(case: Any, address: str) -> None:
    """Send a request and check the answer; `case` is given by Schemathesis."""
    response = case.call(base_url=address, timeout=30)
    late = response.status_code == 503 and response.json()["errorType"] == "timeout"
    assert response.status_code < 500 or late, response.text
    case.validate_response(response, checks=CHECKS)


@pytest.mark.realdata
@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", pytest.param("POST", marks=pytest.mark.nightly)])
def test_every_answer_has_the_shape_that_prometheus_describes(
    method: str, server: Server, filled: Meter
) -> None:
    """No 500, no other type and no other shape, whatever the parameters are.

    By day, test_schema.py asks by POST.
    """
    if not DOCUMENT.exists():
        pytest.skip(f"missing: {DOCUMENT}: set {NAMED} to the folder that holds it")
    filled.flush()
    schema = schemathesis.openapi.from_dict(yaml.safe_load(DOCUMENT.read_text(encoding="utf-8")))
    asked = [path.removeprefix(ROOT) for path in FORMS]
    if method == "GET":
        asked += GET
    with served(PageServer(server.url, port=0)) as page:
        for path in sorted(asked):
            ask = build_operation_test(
                config=schema.config,
                operation=schema[f"/{path}"][method],
                test_func=is_answered_as_prometheus_would,
                given_kwargs={},
                feedback=FeedbackSources(),
            )
            ask(address=page.address.rstrip("/") + ROOT.rstrip("/"))
