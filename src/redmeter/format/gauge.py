"""Gauges: what something measured last, by slices of time.

A gauge is one hash per precision, slice start -> "VALUE TIME": of all values that were set within
a slice the one whose time is the newest, by the clock of whoever set it. So two gauges merge slice
by slice to the newer value, whatever order they are written in, and a value that was set before
another one of the same slice need not be sent at all.
"""

import math
from collections.abc import Mapping, Sequence

from redmeter.errors import InvalidValue
from redmeter.format.intervals import Runs, by_precision, multiples, told
from redmeter.keys import Keys
from redmeter.types import Operation, Operations

#: When it was measured, Unix seconds, and the value.
Measured = tuple[float, float]


def check_value(value: object) -> float:
    """Check a value of a gauge, and return it as a float.

    Raises:
        TypeError: not a number.
        InvalidValue: NaN, infinite, or a whole number that no float holds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(
            f"a gauge is set to a number (int or float), not {type(value).__name__}: "
            "convert it, e.g. float(value)"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValue(
            value, "a gauge is set to a finite number: where there is no value, set none"
        )
    return number


def parse(text: bytes, start: int, precision: int) -> Measured | None:
    """Read "VALUE TIME"; None where it is something else, or of a time outside of its slice.

    The script that writes takes the same for nothing: see newer() in lua/operations/last.lua.
    """
    try:
        value, time = map(float, text.split(b" "))
    except ValueError:
        return None
    return (time, value) if math.isfinite(value) and start <= time < start + precision else None


def operations(
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
        values: series name -> {start of a slice, Unix seconds -> (time within it, value)}, the
            value being finite: see check_value(). Of two with the same time the later one stays.
        width: of those slices, seconds. Precisions that are no multiple of it are left out.
    """
    before, runs = keys.key("gauge"), Runs()
    precisions = multiples(retention, width)
    for name, given in values.items():
        for precision, samples, slices in by_precision(given, width, precisions, _newest):
            texts = [f"{float(value)!r} {float(time)!r}" for time, value in slices.values()]
            runs.add(precision, samples, f"{before}{precision}:{name}", list(slices), texts)
    if not runs:
        return ()
    text = runs.text()
    args = (str(len(before.encode())), text)
    found = (keys.gauges, *runs.keys())
    return (Operation("last", found, args, lambda: told(text, lambda _: 1)),)


def _newest(measured: Sequence[Measured]) -> Measured:
    newest = measured[0]
    for each in measured:
        if each[0] >= newest[0]:
            newest = each
    return newest
