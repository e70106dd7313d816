"""Waiting: until there is room in the slices that a test writes to."""

import pytest

from support.waiting import ROOM, SLOW_ROOM, too_little_room

pytestmark = pytest.mark.nightly

#: A second that begins a minute, an hour and a day.
START = 1_700_006_400


@pytest.mark.parametrize(
    ("now", "wait", "wait_if_slow"),
    [
        (START, 0.0, 0.0),
        (START + 57.0, 0.0, 0.0),
        (START + 57.5, 0.0, 2.5),
        (START + 59.5, 0.5, 0.5),
        (START + 60.0, 0.0, 0.0),
        (START - 20.5, 0.0, 0.0),
        (START - 19.5, 0.0, 19.5),
        (START - 4.5, 4.5, 4.5),
        (START - 1.25, 1.25, 1.25),
    ],
)
def test_an_interval_that_is_about_to_end_is_waited_for(
    now: float, wait: float, wait_if_slow: float
) -> None:
    """The last second of a minute and five of an hour; for slow tests three and twenty."""
    assert too_little_room(now, ROOM) == wait
    assert too_little_room(now, SLOW_ROOM) == wait_if_slow
