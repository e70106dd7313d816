"""The dashboard on a private server, with something of everything in its store."""

import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from redmeter import Meter
from redmeter.dashboard import Dashboard
from support.asking import asking
from support.servers import Server

#: Texts that would do something where they are taken for more than text.
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}} ${7*7} <%= 7 %>",
    "a\\u202eb",
    "'; DROP TABLE x; --",
    "😀 naïve 点击量",
)


@pytest.fixture
def meter(server: Server) -> Iterator[Meter]:
    """A meter that stores at once."""
    with Meter(server.url, sync=True) as meter:
        yield meter


@pytest.fixture
def filled(meter: Meter) -> Meter:
    """A store with counters, gauges, histograms, messages, exceptions, marks; some are hostile."""
    for route in ("/", "/cart", "/checkout/{id}", "<script>alert(1)</script>"):
        for status in ("2xx", "5xx"):
            labels = {"method": "GET", "route": route, "status": status}
            meter.count("http_requests", 3 if status == "2xx" else 1, labels=labels)
        for value in (0.01, 0.02, 0.4):
            timed = {"method": "GET", "route": route}
            meter.observe("http_request_seconds", value, labels=timed)
    meter.count("hits", 12)
    for name in HOSTILE:
        meter.count("hostile", labels={"text": name})
        meter.log("shop", f"cannot do {name}", severity="error")
        meter.mark(f"deploy {name}")
        meter.record_exception(KeyError(name), route=name)
    meter.gauge("queue_length").set(7.5)
    meter.observe("cart_value", 12.5)
    meter.observe("cart_value", 99.0)
    meter.log("shop", "paid %s", 12)
    return meter


@pytest.fixture
def dashboard(server: Server) -> Iterator[Dashboard]:
    """The dashboard, for everybody."""
    dashboard = Dashboard(server.url, access="open")
    yield dashboard
    dashboard.close()


@pytest.fixture
def client(dashboard: Dashboard) -> Iterator[httpx.Client]:
    """A client of the dashboard, in this process."""
    with asking(dashboard) as client:
        yield client


@pytest.fixture(autouse=True)
def no_failure(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever is asked, nothing fails that would have been a 500."""
    with caplog.at_level(logging.ERROR):
        yield
    failed = [r.getMessage() for r in caplog.records if "dashboard failed" in r.getMessage()]
    assert failed == []


def error_of(answer: Any) -> dict[str, str]:
    """Return the error of an answer, which has to be JSON that browsers take for nothing else."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    (error,) = answer.json().values()
    assert set(error) == {"code", "message", "fix"}
    assert all(error.values())
    found: dict[str, str] = error
    return found
