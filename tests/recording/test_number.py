"""The number of a process: how long it is used, and when it is asked for again."""

from redmeter.clock import ManualClock
from redmeter.recording.instance import NUMBER_SECONDS
from redmeter.recording.number import USED_SECONDS, Number
from redmeter.store.publishing import INSTANCE_SECONDS


def test_a_number_is_used_until_it_might_be_given_away() -> None:
    """From when it was asked for on, since the server may have noted that moment."""
    clock = ManualClock()
    number = Number(clock)
    number.needed = True
    assert (number.usable, number.is_due) == (None, True)
    number.tell(3, clock.monotonic())
    assert (number.usable, number.is_due) == (3, False)
    clock.advance(NUMBER_SECONDS)
    assert not number.is_due
    clock.advance(1)
    assert number.is_due
    assert number.usable == 3
    clock.advance(USED_SECONDS - NUMBER_SECONDS - 1)
    assert number.usable == 3
    clock.advance(1)
    assert number.usable is None
    assert clock.monotonic() < INSTANCE_SECONDS - 10
    number.tell(4, clock.monotonic())
    assert (number.usable, number.is_due) == (4, False)


def test_who_needs_no_number_does_not_ask_for_it() -> None:
    """And who needs one and was told none asks again."""
    number = Number(ManualClock())
    assert not number.is_due
    number.tell(None, 0.0)
    assert (number.usable, number.is_due) == (None, False)
    number.needed = True
    assert number.is_due
