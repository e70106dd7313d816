"""Count the hours that a forecast marks as unusual around changes of the clocks.

    python benchmarks/clock_changes.py

Counters by the hour follow local time: a wave, opening hours, or an evening peak, with 100, 1,000
or 10,000 events in a mean hour. Counts are normally distributed as Poisson's are, around a mean
that varies by 5 %. In 20 time zones, the 240 hours that end a day after each change of a year are
forecast, in the zone and in UTC. The table has the mean number of marked hours in the 24 hours
after a change, and in the 24 hours before it for comparison; and the same of intervals of five
hours, in the five days before and after. A range is made to miss 5 of 100 values: 1.2 of 24.
"""

import math
import random
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from redmeter.analysis.forecasting.forecast import forecast
from redmeter.clock import UTC, Zone
from redmeter.results import Series
from table import sized

HOUR, DAY = 3600, 86400
#: Both hemispheres. The clocks of Lord Howe change by half an hour.
ZONES = (
    *("Africa/Cairo", "America/Asuncion", "America/Chicago", "America/Denver", "America/Halifax"),
    *("America/Los_Angeles", "America/New_York", "America/Santiago", "America/St_Johns"),
    *("Asia/Jerusalem", "Atlantic/Azores", "Australia/Adelaide", "Australia/Lord_Howe"),
    *("Australia/Sydney", "Europe/Berlin", "Europe/Dublin", "Europe/Helsinki", "Europe/Lisbon"),
    *("Europe/London", "Pacific/Auckland"),
)
#: 2024, in which all of them have two changes.
YEAR = range(1_704_067_200, 1_735_689_600, 1800)
SHAPES: dict[str, Callable[[float], float]] = {
    "wave": lambda hour: 1 + 0.8 * math.cos((hour - 15) / 12 * math.pi),
    "opening hours": lambda hour: 2.0 if 8 <= hour < 18 else 0.28,
    "evening": lambda hour: 0.3 + 4 * math.exp(-(((hour - 20) / 2.5) ** 2)),
}
CASES = tuple(product(SHAPES, (100, 1_000, 10_000), range(3)))[: sized(100, 1)]
#: Interval width -> how many are kept, and seconds before and after a change.
PERIODS = {HOUR: (240, DAY), 5 * HOUR: (120, 5 * DAY)}
HEADINGS = ("day before", "day after", "in UTC", "5 h: before", "after", "in UTC")


def series(zone: Zone, end: int, precision: int, shape: str, level: int, seed: int) -> Series[int]:
    """Return the counts up to a time."""
    kept, _ = PERIODS[precision]
    chance = random.Random(f"{zone.name} {end} {precision} {shape} {level} {seed}")
    start, values = end // precision * precision - kept * precision, []
    for at in range(start, start + kept * precision, precision):
        parts = range(at, at + precision, 600)
        rate = mean(SHAPES[shape]((one + zone.offset(one)) % DAY / HOUR) for one in parts)
        expected = rate * level * precision / HOUR * chance.lognormvariate(0, 0.05)
        values.append(max(0, round(chance.gauss(expected, math.sqrt(expected)))))
    return Series("x", precision, start, tuple(values), partial=False)


def marked(found: Series[int], zone: Zone, since: int) -> int:
    """Return how many intervals from a time on are marked."""
    past = forecast(found, counts=True, zone=zone).past
    return sum(point.outside for point in past if point.start >= since)


def row(zone: Zone, cases: Sequence[tuple[str, int, int]] = CASES) -> list[float]:
    """Return the means of a zone, as HEADINGS names them."""
    rows = []
    changes = [at for at in YEAR if zone.offset(at) != zone.offset(at - 1)]
    assert len(changes) == 2, f"{zone.name}: {changes}"
    for change, case in product(changes, cases):
        numbers = []
        for precision, (_, length) in PERIODS.items():
            before = series(zone, change, precision, *case)
            after = series(zone, change + length, precision, *case)
            numbers.append(marked(before, zone, change - length))
            numbers += [marked(after, each, change) for each in (zone, UTC)]
        rows.append(numbers)
    return [mean(column) for column in zip(*rows, strict=True)]


def main() -> None:
    def show(name: str, numbers: Sequence[float]) -> None:
        print("| ".join([f"{name:36}", *(f"{number:11.2f} " for number in numbers)]), flush=True)

    print("| ".join([f"{'zone':36}", *(f"{heading:>11} " for heading in HEADINGS)]))
    rows = []
    for name in ZONES[: sized(len(ZONES), 1)]:
        rows.append(row(Zone(name)))
        show(name, rows[-1])
    show("all", [mean(column) for column in zip(*rows, strict=True)])
    for shape in SHAPES:
        of_shape = [case for case in CASES if case[0] == shape]
        show(f"Australia/Lord_Howe, {shape}", row(Zone("Australia/Lord_Howe"), of_shape))


if __name__ == "__main__":
    main()
