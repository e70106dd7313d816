"""How far rates are from the truth: Redmeter's, and Prometheus' of the same events.

    python benchmarks/rate_errors.py

Prints the table of docs/prometheus.md. Events are made with a fixed seed. Redmeter keeps them by
its default retention, and by one with more intervals of 5 minutes. For Prometheus, they are counted
by four processes that live six hours each, and are scraped every 15 s; its answers are those of our
evaluator on samples, which equal those of a real one: see dashboard_queries.py. The error is the
mean of |answer - truth| over all steps, as a part of the mean of the truth; the error of the sum is
that of all steps together.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

from promql.engine_tests.samples import Samples  # noqa: E402
from promql.interval_source import Memory, labels_of  # noqa: E402
from redmeter.promql.evaluator import Engine  # noqa: E402
from redmeter.promql.intervals import Intervals  # noqa: E402
from redmeter.promql.nodes import Matcher  # noqa: E402
from redmeter.promql.semantics import SampledSeries  # noqa: E402
from redmeter.promql.values import Floats, Times, Vector  # noqa: E402
from redmeter.stored.keys import DEFAULT_RETENTION  # noqa: E402
from table import SMOKE  # noqa: E402

MINUTE, HOUR, DAY = 60, 3_600, 86_400
#: Now, in the middle of an hour and of a minute; processes, how long they live, and scrapes.
NOW, PROCESSES, LIFE, SCRAPE = 1_800_001_830.0, 4, 6 * HOUR, 15
#: The retention of the how-to for Grafana.
LONGER = {300: 254}
#: How long before now each range ends.
ENDED = 30


def steady(draw: random.Random, seconds: int) -> list[float]:
    """Five events a second."""
    return [NOW - seconds * draw.random() for _ in range(5 * seconds)]


def bursts(draw: random.Random, seconds: int) -> list[float]:
    """Twenty events a second for 90 s of each half hour."""
    starts = np.arange(NOW - seconds, NOW, 1_800)
    return [start + 90 * draw.random() for start in starts.tolist() for _ in range(1_800)]


def rare(draw: random.Random, seconds: int) -> list[float]:
    """Six events an hour."""
    return [NOW - seconds * draw.random() for _ in range(6 * seconds // HOUR)]


def new(draw: random.Random, seconds: int) -> list[float]:
    """One event a minute, for the last 40 minutes."""
    del seconds
    return [NOW - 40 * MINUTE + (number + draw.random()) * MINUTE for number in range(40)]


Kind = Callable[[random.Random, int], list[float]]
#: Kind of events, range, step and window in seconds.
CASES: Sequence[tuple[Kind, int, int, int]] = [
    (steady, HOUR, 15, MINUTE),
    (steady, HOUR, MINUTE, 5 * MINUTE),
    (steady, 6 * HOUR, MINUTE, 5 * MINUTE),
    (steady, DAY, MINUTE, 5 * MINUTE),
    (bursts, HOUR, MINUTE, 5 * MINUTE),
    (bursts, 6 * HOUR, MINUTE, 5 * MINUTE),
    (bursts, DAY, MINUTE, 5 * MINUTE),
    (bursts, DAY, 5 * MINUTE, HOUR),
    (rare, HOUR, MINUTE, 5 * MINUTE),
    (rare, DAY, 5 * MINUTE, HOUR),
    (rare, 7 * DAY, HOUR, DAY),
    (new, HOUR, MINUTE, 5 * MINUTE),
    (new, DAY, 5 * MINUTE, HOUR),
]


class Scraped:
    """Samples of counters in several processes.

    Args:
        events: times in seconds, ascending.
    """

    def __init__(self, events: Sequence[float]) -> None:
        self._series = [
            self._of(number, np.array(events[number::PROCESSES])) for number in range(PROCESSES)
        ]

    def _of(self, number: int, events: Floats) -> SampledSeries:
        first = int(events[0]) if len(events) else int(NOW)
        scrapes = np.arange(first // SCRAPE * SCRAPE + number + 3, NOW, SCRAPE, dtype=np.int64)
        counted = np.searchsorted(events, scrapes, side="right").astype(np.float64)
        shift = number * LIFE // PROCESSES
        begun = (scrapes - shift) // LIFE * LIFE + shift
        values = counted - np.searchsorted(events, begun, side="right")
        shown = values > 0  # a series begins with its first count
        labels = labels_of("x_total", process=str(number))
        return SampledSeries(labels, scrapes[shown] * 1000, values[shown])

    def read(self, matchers: Sequence[Matcher], after: int, until: int) -> list[SampledSeries]:
        """Return all series."""
        del matchers, after, until
        return self._series


def answers(engine: Engine, times: Times, window: int) -> Floats:
    """Return the rate at each time, 0 where there is none."""
    step = int(times[1] - times[0])
    answer = engine.range(f"sum(rate(x_total[{window}s]))", int(times[0]), int(times[-1]), step)
    assert isinstance(answer.value, Vector)
    if not len(answer.value):
        return np.zeros(len(times))
    return np.where(answer.value.present[0], answer.value.values[0], 0)


def errors(kind: Kind, length: int, step: int, window: int) -> list[tuple[float, float]]:
    """Return the error and that of the sum: of Redmeter, with LONGER retention, of Prometheus."""
    draw = random.Random(f"{kind.__name__} {length}")
    events = sorted(kind(draw, max(length + window, 2 * HOUR) + HOUR))
    last = int(NOW - ENDED) // step * step
    times = np.arange(last - length, last + 1, step, dtype=np.int64) * 1000
    both = np.array(events)
    truth = (
        np.searchsorted(both, times / 1000, side="right")
        - np.searchsorted(both, times / 1000 - window, side="right")
    ) / window
    seconds = Counter(int(event) for event in events)
    engines = [Engine(Intervals(kept(seconds, more))) for more in ({}, LONGER)]
    result = []
    for engine in (*engines, Engine(Samples(Scraped(events)))):
        found = answers(engine, times, window)
        error = float(np.abs(found - truth).mean() / truth.mean())
        result.append((error, float(found.mean() / truth.mean() - 1)))
    return result


def kept(seconds: Mapping[int, int], more: Mapping[int, int]) -> Memory:
    """Return a store of one counter."""
    memory = Memory(NOW, {**DEFAULT_RETENTION, **more})
    memory.counters[labels_of("x_total")] = list(seconds.items())
    return memory


def named(seconds: int) -> str:
    """Return a duration."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds % unit == 0:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


def main() -> None:
    print("| events | range, step, window | Redmeter | `300=254` | sum | Prometheus | sum |")
    print("|---|---|---|---|---|---|---|")
    before = ""
    for kind, *times in CASES[:1] if SMOKE else CASES:
        (ours, our_sum), (longer, _), (theirs, their_sum) = errors(kind, *times)
        what = "" if kind.__name__ == before else (kind.__doc__ or "").rstrip(".").lower()
        before = kind.__name__
        row = [what, ", ".join(map(named, times)), *(f"{error:.1%}" for error in (ours, longer))]
        print("|", " | ".join([*row, f"{our_sum:+.1%}", f"{theirs:.1%}", f"{their_sum:+.1%}"]), "|")


if __name__ == "__main__":
    main()
