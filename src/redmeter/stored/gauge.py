"""Gauges: the last value that was set, by interval.

A gauge is one hash per precision, interval start -> "VALUE TIME": the newest value of the interval,
by the clock of the process that set it. So gauges merge to the newer value of each interval, in
whatever order they are written, and a value that is followed by another one in its interval need
not be sent at all.
"""

import math
from collections.abc import Mapping, Sequence

from redmeter.stored.intervals import Runs, by_precision, events_at_stake, multiples
from redmeter.stored.keys import Keys
from redmeter.types import Operation, Operations

#: When it was measured, Unix seconds, and the value.
Measured = tuple[float, float]


def parse_gauge(text: bytes, start: int, precision: int) -> Measured | None:
    """Read "VALUE TIME"; None if the text has another form, or its time is outside the interval.

    The script that writes ignores the same texts: see newer() in lua/operations/intervals.lua.
    """
    try:
        value, time = map(float, text.split(b" "))
    except ValueError:
        return None
    return (time, value) if math.isfinite(value) and start <= time < start + precision else None


def gauge_operations(
    keys: Keys,
    retention: Mapping[int, int],
    values: Mapping[str, Mapping[int, Measured]],
    *,
    width: int = 1,
) -> Operations:
    """Turn values into the operations of one batch.

    Args:
        keys: the store's.
        retention: precision -> samples.
        values: series name -> {interval start, Unix seconds -> (time within it, value)}; the value
            is finite. The later of two with the same time wins.
        width: of those intervals, seconds. Precisions that are not multiples of it are skipped.
    """
    before, runs = keys.key("gauge"), Runs()
    precisions = multiples(retention, width)
    for name, given in values.items():
        for precision, samples, intervals in by_precision(given, width, precisions, _newest):
            texts = [f"{float(value)!r} {float(time)!r}" for time, value in intervals.values()]
            runs.add(precision, samples, f"{before}{precision}:{name}", list(intervals), texts)
    if not runs:
        return ()
    text = runs.text()
    args = (str(len(before.encode())), text)
    hashes = (keys.gauges, *runs.keys())
    return (Operation("last", hashes, args, lambda: events_at_stake(text, lambda _: 1)),)


def _newest(measured: Sequence[Measured]) -> Measured:
    newest = measured[0]
    for each in measured:
        if each[0] >= newest[0]:
            newest = each
    return newest
