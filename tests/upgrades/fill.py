"""Fill a store by the code of any commit: only with calls that every version has.

    PYTHONPATH=OLD/src python tests/upgrades/fill.py URL NOW HOUR

tests/upgrades/stored.py runs it with the code of an earlier commit. Imports nothing else of the
project.
"""

import sys

from redmeter import Meter
from redmeter.clock import ManualClock


def fill(meter: Meter, hour: int) -> None:
    """Record an hour's counters, gauges, histograms, messages and a mark."""
    meter.count("orders", 10 + hour)
    meter.count("signups", 2, labels={"plan": "pro"})
    meter.count("signups", 3, labels={"plan": "free"})
    meter.count("点击量", 1)
    meter.gauge("queue_length").set(7.5 + hour)
    for value in (0.25, 0.5, 4.0):
        meter.observe("checkout_seconds", value, labels={"shop": "a"})
    meter.log("shop.orders", "order %d of %s paid", 4711 + hour, "ada", severity="info")
    meter.log("shop.orders", "password=hunter2", severity="error")
    meter.mark(f"v{hour}")


if __name__ == "__main__":
    url, now, hour = sys.argv[1:]
    with Meter(url, clock=ManualClock(float(now)), flush_interval=3600.0) as meter:
        fill(meter, int(hour))
        assert meter.flush(30.0)
