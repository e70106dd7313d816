"""The values between the layers cannot be changed."""

import copy
from typing import Any

import pytest

from redmeter.types import Batch, Operation, Outcome, Rejection


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (Operation("add", (), (), tuple), "keys"),
        (Batch("p", 1, ()), "number"),
        (Rejection("k", "aged", "", "0", 1), "amount"),
        (Outcome(), "applied"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_cannot_be_changed(value: Any, attribute: str) -> None:
    """Neither what it has nor what it has not; equal values are one key of a dict."""
    with pytest.raises(AttributeError):
        setattr(value, attribute, 2)
    with pytest.raises((AttributeError, TypeError)):
        value.other = 2
    twin = copy.deepcopy(value)
    assert {value: "found"}[twin] == "found"


def test_an_outcome_is_success_unless_it_says_otherwise() -> None:
    """Applied, nothing in doubt, nothing rejected."""
    outcome = Outcome()
    assert (outcome.applied, outcome.uncertain, outcome.rejections) == (True, False, ())
