"""Sliding hours: how often patterns came in the last 60 minutes, and in the 60 minutes before.

The counts by five minutes replace those of the clock hours where they are complete: see
format/steps.py. They are not complete within two hours after an upgrade, and for messages that
another program counts. A pattern's clock hours then show more than its steps do, and stay.
"""

from collections.abc import Mapping, Sequence

from redmeter.format.steps import ALL, Steps, is_complete, parse, windows
from redmeter.keys import HOUR, slice_start
from redmeter.types import Frequency


def slid(
    source: tuple[str, str], hourly: Sequence[Frequency], steps: Mapping[str, bytes], now: float
) -> list[Frequency]:
    """Return the frequencies of a logger and severity by sliding hours, as far as these are known.

    Args:
        hourly: by clock hours.
        steps: what is stored of each pattern, and of all.
    """
    if not is_complete(parse(steps.get(ALL)), now):
        return list(hourly)
    found = [slid_one(one, steps.get(one.pattern), now) for one in hourly]
    listed = {one.pattern for one in hourly}
    for pattern, text in steps.items():
        known = parse(text)
        if known is not None and pattern != ALL and pattern not in listed:
            count, before = windows(known, now)
            if count or before:  # within the last two hours, but in neither clock hour
                found.append(Frequency(*source, pattern, count, before, None, None, "", True))
    return found


def slid_one(hourly: Frequency, text: bytes | None, now: float) -> Frequency:
    """Return a frequency by sliding hours; as it is where its steps hold less than its hours."""
    steps = parse(text) or Steps(0, ())
    hour = slice_start(now, HOUR)
    if (
        steps.between(hour, hour + HOUR) < hourly.count
        or steps.between(hour - HOUR, hour) < hourly.before
    ):
        return hourly
    count, before = windows(steps, now)
    return hourly._replace(count=count, before=before, sliding=True)


def clock_hours(frequencies: Sequence[Frequency]) -> int:
    """Return of how many loggers and severities something is known by clock hours alone."""
    return len({(one.logger, one.severity) for one in frequencies if not one.sliding})
