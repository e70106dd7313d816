"""The values between the layers: a series is a sequence of samples, and nothing can be changed."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.types import Batch, Operation, Outcome, Ranked, Rejection, Sample, Series

series = st.builds(
    lambda precision, first, values: Series(
        "hits", precision, first * precision, tuple(values), partial=True
    ),
    st.integers(1, 86400),
    st.integers(-100, 100),
    st.lists(st.integers(0, 2**63 - 1), max_size=12),
)
bounds = st.none() | st.integers(-15, 15)


@given(series, bounds, bounds, bounds.filter(lambda step: step != 0))
def test_a_series_is_the_sequence_of_its_samples(
    some: Series[int], start: int | None, stop: int | None, step: int | None
) -> None:
    """Its length, order, members, slices and ends are those of a list of samples."""
    samples = [
        Sample(some.start + index * some.precision, value)
        for index, value in enumerate(some.values)
    ]
    assert list(some) == samples
    assert len(some) == len(samples)
    assert bool(some) is bool(samples)
    assert some[start:stop:step] == samples[start:stop:step]
    assert list(reversed(some)) == samples[::-1]
    assert [some[i] for i in range(-len(samples), len(samples))] == samples * 2
    assert all(sample in some for sample in samples)
    assert Sample(some.start - some.precision, 0) not in some
    assert some.total == sum(value for _, value in samples)


@given(series)
def test_a_series_ends_where_its_samples_end(some: Series[int]) -> None:
    """An index past either end is an IndexError, not a sample at a time made up."""
    for index in (len(some), -len(some) - 1, 10**6, -(10**6)):
        with pytest.raises(IndexError):
            some[index]


def test_a_series_says_when_and_how_often() -> None:
    """An example in plain numbers."""
    some = Series("hits", 60, 1585900020, (3, 0, 2), partial=True)
    assert some[0] == (1585900020, 3)
    assert some[-1] == Sample(start=1585900140, value=2)
    assert some[1:] == [(1585900080, 0), (1585900140, 2)]
    assert (some.total, some.index(Sample(1585900080, 0))) == (5, 1)
    assert not Series("hits", 60, 0, (), partial=False)


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (Sample(0, 1), "value"),
        (Series("hits", 60, 0, (1,), partial=False), "values"),
        (Ranked("a", 1, 1.0), "count"),
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
