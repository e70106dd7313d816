"""A user's program: calls and results of the docs, with the types that an editor infers."""

from datetime import UTC, datetime
from typing import assert_type

from fastapi import FastAPI
from flask import Flask

from redmeter import Counter, Gauge, Histogram, Mark, Meter, RecorderHealth, RedmeterError
from redmeter.dashboard import Dashboard
from redmeter.integrations.asgi import RedmeterMiddleware
from redmeter.integrations.flask import Redmeter
from redmeter.results import Forecast, Group, Message, Sample, Series, Status, Summary, Verdict
from redmeter.testing import MemoryMeter

app = FastAPI()
app.add_middleware(RedmeterMiddleware)
app.mount("/metrics", Dashboard(access="open"))
flask = Flask(__name__)
Redmeter(flask)


def record(meter: Meter) -> None:
    """Record with each instrument."""
    orders = meter.counter("orders", labels={"plan": "pro", "shop": 7})
    assert_type(orders, Counter)
    orders.inc()
    meter.count("orders", 2, at=datetime.now(UTC).timestamp())
    gauge = meter.gauge("queue_length")
    assert_type(gauge, Gauge)
    gauge.set(7.5)
    with gauge.track_in_progress():
        pass
    histogram = meter.histogram("cart_value")
    assert_type(histogram, Histogram)
    histogram.observe(12.5)
    with meter.timer("checkout_seconds"):
        pass
    meter.log("shop", "order %d of %s", 7, "ada", severity="warning")
    meter.mark("v1")
    assert_type(meter.flush(), bool)
    assert_type(meter.recorder_health(), RecorderHealth)


@MemoryMeter().timer("checkout_seconds")
def check_out(cart: str, *, gift: bool = False) -> int:
    """A decorated function keeps its signature."""
    return len(cart) + gift


def read(meter: Meter) -> float:
    """Read results; `by` makes a list of groups of one."""
    try:
        series = meter.series("orders", precision="1m", last="2h")
    except RedmeterError as error:
        raise SystemExit(str(error)) from error
    assert_type(meter.marks(), list[Mark])
    assert_type(meter.log_messages("shop"), list[Message])
    assert_type(meter.status(), Status)
    assert_type(meter.verdict(), Verdict)
    total: float = 0.0
    assert_type(series, Series[int])
    assert_type(meter.series("orders", by="plan", precision="1m"), list[Group[int]])
    for sample in series:
        assert_type(sample.start, int)
        total += sample.value
    assert_type(check_out("tea", gift=True), int)
    return total


def keep(*values: Forecast | Group[int] | Sample[int] | Summary) -> None:
    """Results have names, for annotations."""
