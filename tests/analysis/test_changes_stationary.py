"""Changes found in logs in which nothing changes: few, just after the hour and at its middle."""

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

import pytest

from redmeter.analysis.comparing.changes import GONE, KINDS, NEW, SPIKING, find_changes
from redmeter.results import Frequency
from redmeter.stored.keys import HOUR, STEP, slice_start

#: The start of an hour.
NOON = 1700000000 - 1700000000 % HOUR
#: Simulated hours.
HOURS = 1_000
#: Messages per hour of patterns that are always there; and patterns that come up at some time.
RATES = (0.6, 2.0, 5.0, 8.0, 12.0, 30.0, 60.0, 120.0, 300.0) * 2
COMING = 400
#: Minutes at which somebody looks: just after the hour, and at its middle; both within two steps.
AFTER, MIDDLE = (1, 3, 5), (26, 30, 34)

Times = list[float]
Counts = Callable[[Times, float], tuple[int, int]]


def poisson(rate: float, start: float, end: float, numbers: random.Random) -> Times:
    """The times of messages that come at random."""
    times, at = [], start
    while at < end:
        times.append(at)
        at += numbers.expovariate(rate / HOUR)
    return times


def between(times: Times, start: float, end: float) -> int:
    return bisect_left(times, end) - bisect_left(times, start)


def frequency(name: str, times: Times, now: float, *, sliding: bool) -> Frequency:
    """The counts of sliding hours, or of clock hours."""
    start = slice_start(now, STEP) - HOUR if sliding else slice_start(now, HOUR)
    counts = between(times, start, now), between(times, start - HOUR, start)
    return Frequency("app", "info", name, *counts, times[0], None, "", sliding)


@pytest.fixture(scope="module")
def logs() -> dict[str, Times]:
    """Messages by pattern."""
    numbers = random.Random(5)
    made = {}
    for n, rate in enumerate(RATES):
        made[f"always {n}"] = poisson(rate, NOON, NOON + HOURS * HOUR, numbers)
    for n in range(COMING):
        start = NOON + numbers.uniform(3, HOURS - 6) * HOUR
        made[f"coming {n}"] = poisson(3.0, start, start + 3 * HOUR, numbers)
    return made


def found(logs: dict[str, Times], minutes: tuple[int, ...], *, sliding: bool) -> Counter[str]:
    """How often each kind of change is found, at some minutes of all hours."""
    kinds: Counter[str] = Counter()
    for name, times in logs.items():
        first = int(times[0] - NOON) // HOUR
        hours = range(3, HOURS) if name.startswith("always") else range(first, first + 7)
        for now in (NOON + hour * HOUR + m * 60.0 for hour in hours for m in minutes):
            if times[0] <= now:
                one = frequency(name, times, now, sliding=sliding)
                kinds.update(change.kind for change in find_changes([one], now))
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("sliding", [True, False])
def test_sliding_hours_find_as_much_just_after_the_hour_as_at_its_middle(
    logs: dict[str, Times], sliding: bool
) -> None:
    """What begins is new for two hours, at all minutes alike; chance changes nothing."""
    after, middle = (found(logs, minutes, sliding=sliding) for minutes in (AFTER, MIDDLE))
    assert middle[NEW] > 50
    alike = [after[kind] == pytest.approx(middle[kind], rel=0.3, abs=10) for kind in KINDS]
    assert all(alike), (after, middle)
    looks = len(RATES) * HOURS * len(AFTER)
    false = [kinds[kind] for kinds in (after, middle) for kind in (SPIKING, GONE)]
    assert max(false) < looks / 5_000, false
