"""For tests of your own: a Meter that needs no server, and a clock that you move.

    from redmeter.testing import MemoryMeter

    def test_signing_up_is_counted():
        meter = MemoryMeter()
        sign_up(meter, plan="pro")
        assert meter.recorded("signups", labels={"plan": "pro"}) == 1

A MemoryMeter accepts and refuses the same arguments as a Meter, and keeps everything in memory. It
sends nothing and starts no thread, and queries see each event at once. Its clock moves only when
you move it: `meter.clock.advance(60)`. It does not imitate the expiry of old samples, or several
processes: use the embedded server to test those.
"""

from redmeter.clock import ManualClock
from redmeter.testing.meter import MemoryMeter
from redmeter.testing.recorder import Event, Logged

__all__ = ["Event", "Logged", "ManualClock", "MemoryMeter"]
