"""Mistakes of a user: each marked line is an error of a type checker, and no other."""

from redmeter import Meter

meter = Meter()
meter.count(7)  # type: ignore[arg-type]
meter.count("orders", labels=["pro"])  # type: ignore[arg-type]
meter.counter("orders").observe(1.0)  # type: ignore[attr-defined]
meter.series("orders", width=60)  # type: ignore[call-overload]
meter.gauge("queue").set("many")  # type: ignore[arg-type]
Meter(flush_interval="soon")  # type: ignore[arg-type]
