"""The number of a process: how long it is used, and when it is asked for again."""

from redmeter.clock import ManualClock
from redmeter.recording.status import LEASE_SECONDS, RENEW_SECONDS, InstanceLease
from redmeter.store.producers import INSTANCE_SECONDS


def test_a_number_is_used_until_it_might_be_given_away() -> None:
    """From when it was asked for on, since the server may have noted that moment."""
    clock = ManualClock()
    number = InstanceLease(clock)
    number.needed = True
    assert (number.number, number.is_due) == (None, True)
    number.renew(3, clock.monotonic())
    assert (number.number, number.is_due) == (3, False)
    clock.advance(RENEW_SECONDS)
    assert not number.is_due
    clock.advance(1)
    assert number.is_due
    assert number.number == 3
    clock.advance(LEASE_SECONDS - RENEW_SECONDS - 1)
    assert number.number == 3
    clock.advance(1)
    assert number.number is None
    assert clock.monotonic() < INSTANCE_SECONDS - 10
    number.renew(4, clock.monotonic())
    assert (number.number, number.is_due) == (4, False)


def test_who_needs_no_number_does_not_ask_for_it() -> None:
    """And who needs one and was told none asks again."""
    number = InstanceLease(ManualClock())
    assert not number.is_due
    number.renew(None, 0.0)
    assert (number.number, number.is_due) == (None, False)
    number.needed = True
    assert number.is_due
