"""Whatever the file allows is asked, and what it does not: schemathesis, on a real server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from dashboard.test_page_server import served
from redmeter import Meter
from redmeter.dashboard.api import prometheus
from redmeter.dashboard.api.endpoints import openapi
from redmeter.dashboard.server import PageServer
from support.examples import scaled
from support.servers import Server

DOCUMENT = json.loads(openapi().content)
OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]
#: Among how many tests they are divided, so that several workers have some.
SHARES = 6
CHECKS = (
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


@pytest.fixture
def address(server: Server, filled: Meter) -> Iterator[str]:
    """A page of a store with something of everything."""
    with served(PageServer(server.url, port=0)) as page:
        yield page.address.rstrip("/")


@settings(
    max_examples=scaled(40),
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def is_answered_as_documented(case: Any, address: str) -> None:
    """Send a request and check the answer; `case` is given by Schemathesis.

    Prometheus takes an empty parameter as a missing one, ignores those that it does not know, and
    answers 503 after a short `timeout`.
    """
    lenient = case.path.startswith(prometheus.ROOT)
    checks = [*CHECKS] if lenient else [*CHECKS, not_a_server_error, negative_data_rejection]
    case.call_and_validate(base_url=address, checks=checks)


@pytest.mark.slow
@pytest.mark.hypothesis  # which it is not seen to be: the test within is made while it runs
@pytest.mark.parametrize("share", range(SHARES))
def test_every_answer_is_one_that_the_file_names(share: int, address: str) -> None:
    """No 500, no other status, no other type and no other shape; what is wrong is refused.

    Each share of the operations is asked for on a page that is started once.
    """
    # `@schema.parametrize()` would generate the cases of all endpoints while tests are collected,
    # which each worker does.
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    for path, method in OPERATIONS[share::SHARES]:
        ask = build_operation_test(
            config=schema.config,
            operation=schema[path][method.upper()],
            test_func=is_answered_as_documented,
            given_kwargs={},
            feedback=FeedbackSources(),
        )
        ask(address=address)
