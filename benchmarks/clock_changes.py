"""Count the hours that a forecast marks as unusual after a change of the clocks.

    python benchmarks/clock_changes.py

Counters by the hour follow local time: a wave, opening hours, and an evening peak, with 100 to
10,000 events in a mean hour. Each count is Poisson-distributed around a mean that varies by 5 %. In
20 time zones, the 240 hours that end 24 hours after each of two changes are forecast, once in UTC
and once in the zone. The table has the mean number of marked hours in these last 24 hours, and, for
comparison, in the 24 hours that end with the change. "All hours" is of gauges, which have half of
the noise of the counts, and "5 hours" of counters by five hours: marked intervals of the 5 days
after.
"""

import math
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from redmeter.analysis.forecast import forecast
from redmeter.results import Series
from redmeter.zones import UTC, Zone

HOUR, DAY = 3600, 86400
#: Half of them have their summer in the south; the last two change by half an hour, and at another
#: time than Europe.
ZONES = (
    *("Europe/Berlin", "Europe/London", "Europe/Lisbon", "Europe/Helsinki", "Europe/Dublin"),
    *("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
    *("America/Halifax", "America/St_Johns", "Atlantic/Azores", "Africa/Cairo", "Asia/Jerusalem"),
    *("America/Santiago", "America/Asuncion", "Australia/Sydney", "Australia/Adelaide"),
    *("Pacific/Auckland", "Australia/Lord_Howe"),
)
#: A year with two changes in each of them.
YEAR = 1_704_067_200  # 2024
SHAPES: dict[str, Callable[[float], float]] = {
    "wave": lambda hour: 1 + 0.8 * math.cos((hour - 15) / 12 * math.pi),
    "opening hours": lambda hour: 2.0 if 8 <= hour < 18 else 0.28,
    "evening": lambda hour: 0.3 + 4 * math.exp(-(((hour - 20) / 2.5) ** 2)),
}
LEVELS, SEEDS = (100, 1_000, 10_000), 3


def changes(zone: Zone) -> list[int]:
    """Return when the clocks change in the year, Unix seconds."""
    starts = range(YEAR, YEAR + 366 * DAY, 1800)
    return [at for at in starts if zone.offset(at) != zone.offset(at - 1)]


def series(zone: Zone, end: int, precision: int, shape: str, level: int, seed: int) -> Series[int]:
    """Return the counts up to a time."""
    count = 240 if precision == HOUR else 120
    chance = random.Random(zlib.crc32(f"{zone.name} {end} {shape} {level} {seed}".encode()))
    start = end // precision * precision - count * precision
    values = []
    for at in range(start, start + count * precision, precision):
        minutes = range(at, at + precision, 600)
        expected = mean(SHAPES[shape]((one + zone.offset(one)) % DAY / HOUR) for one in minutes)
        expected *= level * precision / HOUR * chance.lognormvariate(0, 0.05)
        values.append(max(0, round(chance.gauss(expected, math.sqrt(expected)))))
    return Series("x", precision, start, tuple(values), partial=False)


def marked(found: Series[int], zone: Zone, since: int) -> int:
    """Return how many intervals from a time on are marked."""
    past = forecast(found, counts=True, zone=zone).past
    return sum(point.outside for point in past if point.start >= since)


def cases() -> Iterator[tuple[str, int, int]]:
    for shape in SHAPES:
        for level in LEVELS:
            for seed in range(SEEDS):
                yield shape, level, seed


def main() -> None:
    print(f"{'zone':22}{'before':>8}{'after':>8}{'in UTC':>8}   (5 h: {'after':>6}{'in UTC':>8})")
    rows = []
    for name in ZONES:
        zone, row = Zone(name), []
        for change in changes(zone):
            for case in cases():
                calm = series(zone, change, HOUR, *case)
                after = series(zone, change + DAY, HOUR, *case)
                wide = series(zone, change + 5 * DAY, 5 * HOUR, *case)
                row.append(
                    (
                        marked(calm, zone, change - DAY),
                        *(marked(after, each, change) for each in (zone, UTC)),
                        *(marked(wide, each, change) for each in (zone, UTC)),
                    )
                )
        means = [mean(column) for column in zip(*row, strict=True)]
        rows.append(means)
        print(
            f"{name:22}{means[0]:8.2f}{means[1]:8.2f}{means[2]:8.2f}{means[3]:14.2f}{means[4]:8.2f}"
            f"   {len(changes(zone))} changes"
        )
    means = [mean(column) for column in zip(*rows, strict=True)]
    print(f"{'all':22}{means[0]:8.2f}{means[1]:8.2f}{means[2]:8.2f}{means[3]:14.2f}{means[4]:8.2f}")


if __name__ == "__main__":
    main()
