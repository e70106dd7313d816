"""What the outcome of one event means for who counted it."""

import pytest

from redmeter.errors import StoreRefused, StoreUnavailable
from redmeter.recording.sync import check_written
from redmeter.types import Outcome, Rejection


def test_being_late_or_early_is_no_error() -> None:
    """Other rejections are: the first of them is raised, with the key and the server's words."""
    late = (Rejection("k", "aged", "aged", "0", 1), Rejection("k", "future", "future", "9", 1))
    check_written(Outcome(), "here")
    check_written(Outcome(rejections=late), "here")
    full = Rejection("key", "overflow", "ERR increment would overflow", "0", 1)
    other = Rejection("other", "WRONGTYPE", "WRONGTYPE …", "0", 1)
    with pytest.raises(StoreRefused, match="key: ERR increment would overflow") as caught:
        check_written(Outcome(rejections=(*late, full, other)), "here")
    assert caught.value.code == "overflow"


def test_an_event_of_which_nobody_can_know_is_said_to_be_one() -> None:
    """It was sent, so counting it once more may count it twice."""
    with pytest.raises(StoreUnavailable, match="the event was sent") as caught:
        check_written(Outcome(applied=False, uncertain=True), "here")
    assert caught.value.sent


def test_an_event_that_was_applied_before_is_stored() -> None:
    """Its answer was lost the first time."""
    check_written(Outcome(applied=False), "here")
