"""What a meter answers to questions that mean nothing: an error that names the fix."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from redmeter import InvalidName, InvalidValue, Meter
from redmeter.testing import MemoryMeter
from support.stores import OpenMeter

#: The question, the error and what it says.
CASES: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda m: m.log_messages("app", severity=1.5), TypeError, "a severity is a name or a level"),
    (
        lambda m: m.log_frequencies("app", severity=True),
        TypeError,
        "a severity is a name or a level",
    ),
    (lambda m: m.log("app", "x", exception="x"), TypeError, "an exception is one that was raised"),
    (lambda m: m.log_messages(""), InvalidName, "invalid logger name '': "),
    (lambda m: m.log_changes(5), InvalidName, "invalid logger name 5: "),
    (
        lambda m: m.summary("x", precision=60, last=0),
        InvalidValue,
        "last is a duration as text",
    ),
    (lambda m: m.summary("x", precision=60, last=True), InvalidValue, "last is a duration as"),
    (lambda m: m.top("x", precision=60, limit=1.5), TypeError, "limit is a whole number"),
    (lambda m: m.top("x", precision=60, last="5x"), InvalidValue, "last is a duration as"),
    (lambda m: m.top("x", precision=60, labels=[1]), TypeError, "labels takes labels and"),
    (lambda m: m.top("x", precision=60, labels={5: "a"}), InvalidName, "label key 5 does not"),
    (lambda m: m.log_messages("app", limit=1.5), InvalidValue, "a limit is a whole number"),
]


@pytest.mark.parametrize("at", range(len(CASES)))
def test_a_question_that_means_nothing_says_what_would(
    client: Any, open_meter: OpenMeter, at: int
) -> None:
    """By a store and in memory alike."""
    ask, kind, told = CASES[at]
    for meter in (open_meter(), MemoryMeter()):
        meter.count("x")
        meter.observe("y", 1.0)
        with pytest.raises(kind) as caught:
            ask(meter)
        assert told in str(caught.value)


@pytest.mark.parametrize("sync", [True, False])
def test_a_decimal_that_signals_is_not_finite(
    client: Any, open_meter: OpenMeter, sync: bool
) -> None:
    """And counted as such, like every other value that is none."""
    meter: Meter = open_meter(sync=sync)
    meter.observe("x", Decimal("sNaN"))  # type: ignore[arg-type]
    meter.observe("x", Decimal("1.5"))  # type: ignore[arg-type]
    assert meter.flush()
    assert meter.summary("x", precision=60).count == 1
    assert meter.recorder_health().dropped == 1
