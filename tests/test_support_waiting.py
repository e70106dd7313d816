"""Waiting: until there is room in the slices that a test writes to."""

import pytest

from support.waiting import too_little_room

#: A second that begins a minute, an hour and a day.
START = 1_700_006_400


@pytest.mark.parametrize(
    ("now", "wait"),
    [
        (START, 0.0),
        (START + 57.0, 0.0),
        (START + 57.5, 2.5),
        (START + 60.0, 0.0),
        (START - 20.5, 0.0),
        (START - 19.5, 19.5),
        (START - 1.25, 1.25),
    ],
)
def test_a_slice_that_is_about_to_end_is_waited_for(now: float, wait: float) -> None:
    """A minute for its last three seconds, an hour for its last twenty."""
    assert too_little_room(now) == wait
