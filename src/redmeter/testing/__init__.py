"""For tests of your own: a Meter that needs no server, and a clock that you move.

    from redmeter.testing import MemoryMeter

    def test_signing_up_is_counted():
        meter = MemoryMeter()
        sign_up(meter, plan="pro")
        assert meter.recorded("signups", labels={"plan": "pro"}) == 1

A MemoryMeter takes what a Meter takes, refuses what a Meter refuses, and keeps everything: nothing
is sent, no thread starts, and readings show at once what was recorded. Its clock stands still until
you move it: `meter.clock.advance(60)`. What a store adds (retention of old samples, several
processes) is not imitated: use the embedded server for that.
"""

from redmeter.clock import ManualClock
from redmeter.testing.meter import MemoryMeter
from redmeter.testing.recorder import Event, Logged

__all__ = ["Event", "Logged", "ManualClock", "MemoryMeter"]
