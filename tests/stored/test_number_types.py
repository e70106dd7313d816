"""Numbers that applications record: what is one, and what becomes of it in each call."""

import datetime
import decimal
import math
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy
import pytest

from redmeter import Meter
from redmeter.stored.moments import to_float
from redmeter.testing import MemoryMeter
from support.servers import Server

#: The number 2, of each type.
TWO = (2, 2.0, Decimal(2), Fraction(4, 2), numpy.int64(2), numpy.uint8(2), numpy.float32(2))
NOT_FINITE = (math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), numpy.float64("nan"))
KINDS = ("counter", "histogram", "gauge")
NO_NUMBERS = (True, "1.5", b"1.5", None, 1j, [1.0], datetime.timedelta(seconds=1))


@pytest.fixture(params=["buffered", "sync", "memory"])
def any_meter(request: pytest.FixtureRequest, server: Server) -> Iterator[Any]:
    """A meter of each kind."""
    if request.param == "memory":
        yield MemoryMeter()
        return
    with Meter(server.url, sync=request.param == "sync") as meter:
        yield meter


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((two, 2.0) for two in TWO),
        (Fraction(1, 4), 0.25),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        (Fraction(10**400), math.inf),
        (Decimal("-1e999"), -math.inf),
        (sys.float_info.max, sys.float_info.max),
    ],
)
def test_a_number_of_any_type_is_a_float(value: object, expected: float) -> None:
    """A number that is too large for a float is infinite."""
    found = to_float(value, "observe()")
    assert (type(found), found) == (float, expected)


def test_every_call_takes_every_type_of_number(any_meter: Any) -> None:
    """And records the same."""
    gauge, level = any_meter.gauge("set"), any_meter.gauge("changed")
    for two in TWO:
        any_meter.count("counted", two)
        any_meter.counter("counted").inc(two)
        any_meter.observe("observed", two)
        any_meter.histogram("observed").observe(two)
        gauge.set(two)
        level.inc(two)
        level.dec(two)
        level.inc(two)
    any_meter.flush()
    assert any_meter.total("counted") == 4 * len(TWO)
    summary = any_meter.summary("observed", precision=60)
    assert (summary.count, summary.mean) == (2 * len(TWO), 2.0)
    assert any_meter.gauge_series("set", precision=60)[-1].value == 2.0
    assert any_meter.gauge_series("changed", precision=60)[-1].value == 2.0 * len(TWO)
    health = any_meter.recorder_health()
    assert (health.dropped, health.troubles) == (0, {})


@pytest.mark.parametrize("value", NOT_FINITE, ids=repr)
def test_a_value_that_is_not_finite_is_counted_as_dropped(any_meter: Any, value: Any) -> None:
    """In each call that takes a measured value, and nothing else is affected."""
    gauge = any_meter.gauge("g")
    gauge.set(7)
    gauge.set(value)
    gauge.inc(value)
    gauge.dec(value)
    any_meter.observe("o", value)
    any_meter.histogram("o").observe(value)
    any_meter.flush()
    health = any_meter.recorder_health()
    assert (health.dropped, set(health.lost())) == (5, {"not-finite"})
    assert health.recorded == health.stored + health.buffered + health.uncertain + 5
    assert any_meter.gauge_series("g", precision=60)[-1].value == 7.0


@pytest.mark.parametrize("value", [*NO_NUMBERS], ids=repr)
def test_what_is_no_number_is_a_mistake_in_the_code(any_meter: Any, value: Any) -> None:
    """A TypeError that names the type."""
    counter, histogram, gauge = (getattr(any_meter, kind)("x") for kind in KINDS)
    calls = (counter.inc, histogram.observe, gauge.set, gauge.inc, gauge.dec)
    for call in (partial(any_meter.count, "x"), partial(any_meter.observe, "x"), *calls):
        with pytest.raises(TypeError, match=rf"not {type(value).__name__}: convert it"):
            call(value)


@pytest.mark.parametrize(
    "value",
    [2.5, Decimal("2.5"), Fraction(5, 2), numpy.float64(2.5), math.nan, math.inf, Decimal("sNaN")],
)
def test_a_count_that_is_not_whole_is_an_error_that_names_observe(
    any_meter: Any, value: Any
) -> None:
    """Events are whole; nothing is recorded."""
    with pytest.raises(TypeError, match=r"whole numbers, not .*: a measured value is observed"):
        any_meter.count("c", value)
    any_meter.flush()
    assert any_meter.total("c") == 0


@pytest.mark.parametrize("value", [2**63, 2.0**63, Decimal("1e1000000000"), -1, -1.0])
def test_a_count_past_the_limits_is_refused(any_meter: Any, value: Any) -> None:
    """Also one whose digits alone would fill the memory."""
    with pytest.raises(ValueError, match="counters only go up"):
        any_meter.count("c", value)


def test_a_large_count_keeps_all_of_its_digits(any_meter: Any) -> None:
    """A float would round it."""
    with decimal.localcontext(prec=30):
        any_meter.count("c", Decimal(2**62 + 1))
    any_meter.count("c", numpy.uint64(2))
    any_meter.flush()
    assert any_meter.total("c") == 2**62 + 3
