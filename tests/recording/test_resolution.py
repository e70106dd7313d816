"""Widths: how finely events are remembered, so that each precision that holds them can be made."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.recording.buffer import Resolution

retentions = st.dictionaries(
    st.sampled_from((1, 5, 7, 12, 60, 300, 3600, 86400)) | st.integers(1, 10**5),
    st.integers(1, 254),
    min_size=1,
    max_size=16,
)
ages = st.integers(-(10**4), 10**7) | st.floats(-(10.0**4), 10.0**8) | st.integers(0, 600)


def edges(retention: dict[int, int]) -> list[float]:
    """Return ages around which something may change, ascending."""
    found: set[float] = {-(2.0**41), -1, 0, 1, 2.0**41}
    for precision, samples in retention.items():
        for by in (-1, -0.25, 0, 0.25, 1):
            found |= {samples * precision + by, (samples + 1) * precision + by}
    return sorted(found)


def test_an_example_gets_coarser_with_age() -> None:
    """Seconds for two minutes, 5 s for ten, minutes for two hours, then only that it happened."""
    resolution = Resolution({1: 120, 5: 120, 60: 120})
    assert [resolution.at(age) for age in (-5, 0, 121)] == [1, 1, 1]
    assert [resolution.at(age) for age in (121.5, 122, 605)] == [5, 5, 5]
    assert [resolution.at(age) for age in (605.5, 7260)] == [60, 60]
    assert [resolution.at(age) for age in (7260.5, 2**40)] == [0, 0]
    assert [resolution.until(width) for width in (1, 5, 60)] == [121, 605, 7260]


def test_precisions_that_do_not_divide_each_other_need_what_divides_both() -> None:
    """With 7 s and 60 s side by side an event is remembered by its second while both hold it."""
    resolution = Resolution({7: 10, 60: 10})
    assert (resolution.finest, resolution.at(77), resolution.at(78), resolution.at(661)) == (
        1,
        1,
        60,
        0,
    )


@given(retentions)
def test_each_width_divides_the_next(retention: dict[int, int]) -> None:
    """What was remembered finely can be remembered less finely, and nothing ever gets finer."""
    resolution = Resolution(retention)
    steps = [resolution.at(age) for age in edges(retention)]
    assert steps[0] == resolution.finest == math.gcd(*retention)
    assert steps[-1] == 0
    for finer, coarser in pairwise(steps):
        assert finer == coarser == 0 or coarser % finer == 0


@given(retentions, ages)
def test_every_precision_that_still_holds_an_age_is_a_multiple_of_its_width(
    retention: dict[int, int], age: float
) -> None:
    """And the width is the widest that is, or nothing once no precision holds it."""
    resolution = Resolution(retention)
    for at in (age, *edges(retention)):
        held = [precision for precision in retention if resolution.holding((precision,), at)]
        assert resolution.at(at) == math.gcd(*held)
        assert set(held) <= set(resolution.precisions(resolution.at(at)))


@given(retentions, ages, st.integers(0, 10**5))
def test_what_the_server_would_still_take_is_held(
    retention: dict[int, int], age: float, within: int
) -> None:
    """The server refuses a slice that ended a retention ago; the event may be its last second."""
    resolution = Resolution(retention)
    for precision, samples in retention.items():
        start = -(within % precision)  # of the slice that holds second 0
        refused = start + precision < age - samples * precision
        assert resolution.holding((precision,), age) or refused


@given(retentions, ages)
def test_a_width_is_fine_enough_until_an_age(retention: dict[int, int], age: float) -> None:
    """Up to then no finer than needed, and afterwards finer."""
    resolution = Resolution(retention)
    for width in {resolution.at(at) for at in edges(retention)} - {0}:
        for at in (age, *edges(retention)):
            needed = resolution.at(at)
            fine = needed > 0 and width % needed == 0
            assert fine == (at <= resolution.until(width))


@pytest.mark.parametrize(("width", "made"), [(1, (1, 5, 60, 7)), (5, (5, 60)), (0, ()), (9, ())])
def test_only_multiples_can_be_made_of_a_width(width: int, made: tuple[int, ...]) -> None:
    """Of what has no slice any more, none."""
    assert Resolution({1: 5, 5: 5, 60: 5, 7: 5}).precisions(width) == made
