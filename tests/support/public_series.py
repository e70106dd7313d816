"""Public series with labeled anomalies, and how well a forecast does on them.

The folder `series` of the real data has the series as CSV, and `windows.json`, the times in which
something really was wrong. Counters are added up over an interval, gauges keep the last value.
"""

import csv
import json
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from redmeter.analysis.forecasting.forecast import UNMARKED, forecast
from redmeter.results import Series
from redmeter.stored.keys import DEFAULT_RETENTION
from support.realdata import FOLDER

#: Where the series are, which may not exist.
SERIES = FOLDER / "series"
#: What is in the names of counters.
_COUNTERS = ("volume", "taxi", "request_count")
MINUTE, HOUR = 60, 3600


class Public(NamedTuple):
    """A series, and the windows in which something was wrong, Unix seconds."""

    name: str
    counts: bool
    precision: int
    start: int
    values: Sequence[float | None]
    windows: Sequence[tuple[float, float]]

    @property
    def kept(self) -> int:
        """The number of samples that a store keeps."""
        return DEFAULT_RETENTION.get(self.precision, 120)

    def known(self, end: int) -> Series[float | None]:
        """Return the samples that are kept when so many intervals are over."""
        first = max(0, end - self.kept)
        start = self.start + first * self.precision
        return Series("x", self.precision, start, tuple(self.values[first:end]), partial=False)


def read(precision: int, folder: Path = SERIES) -> Iterator[Public]:
    """Read the series by intervals of a precision, or of their own where they are coarser.

    Hourly series are left out of shorter intervals.
    """
    windows = json.loads((folder / "windows.json").read_text(encoding="utf-8"))
    for file in sorted(folder.glob("*.csv")):
        with file.open(encoding="utf-8") as lines:
            rows = [(_unix(row["timestamp"]), float(row["value"])) for row in csv.DictReader(lines)]
        own = statistics.median(b - a for (a, _), (b, _) in pairwise(rows))
        width = max(precision, round(own / (5 * MINUTE)) * 5 * MINUTE)
        if precision < HOUR <= width:
            continue
        counts = any(part in file.name for part in _COUNTERS)
        start = int(rows[0][0] // width * width)
        values: list[float | None] = [0 if counts else None] * (
            int((rows[-1][0] - start) // width) + 1
        )
        for time, value in rows:
            at = int((time - start) // width)
            values[at] = int((values[at] or 0) + value) if counts else value
        spans = [(_unix(first), _unix(last)) for first, last in windows.get(file.name, [])]
        # The first and the last interval are not complete.
        yield Public(file.stem, counts, width, start + width, values[1:-1], spans)


def _unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def coverage(series: Public, origins: int, ahead: int = 24) -> dict[int, float]:
    """Return the part of values in the range, by intervals ahead, as forecast from some origins."""
    inside: dict[int, list[bool]] = {step: [] for step in range(1, ahead + 1)}
    ends = range(series.kept, len(series.values) - ahead)
    for end in random.Random(5).sample(ends, min(origins, len(ends))):
        found = forecast(series.known(end), counts=series.counts, ahead=ahead)
        for step, point in enumerate(found.ahead, 1):
            value = series.values[end + step - 1]
            if value is not None:
                inside[step].append(point.low <= value <= point.high)
    return {step: statistics.fmean(some) for step, some in inside.items() if some}


def mean_coverage(found: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Return the mean over series, by intervals ahead."""
    return {step: statistics.fmean(one[step] for one in found if step in one) for step in found[0]}


def hits(series: Public) -> tuple[int, int]:
    """Return how many windows the strongest 1 % of intervals hit: by strength, and by z-score."""
    ours: dict[int, float] = {}
    kept = series.kept
    half = kept // 2
    for end in range(kept, len(series.values) + half, half):
        known = series.known(min(end, len(series.values)))
        found = forecast(known, counts=series.counts)
        strengths = {one.start: one.strength for one in found.anomalies}
        for one in found.past:
            if end == kept or one.start >= known.start + half * series.precision:
                ours.setdefault(one.start, strengths.get(one.start, 0.0))
    scores = {}
    for at, value in enumerate(series.values):
        before = [each for each in series.values[max(0, at - kept) : at] if each is not None]
        if value is not None and len(before) >= UNMARKED:
            spread, off = statistics.pstdev(before), abs(value - statistics.fmean(before))
            scores[series.start + at * series.precision] = off / spread if spread else off * 1e9
    return _hit(series, ours), _hit(series, scores)


def _hit(series: Public, strengths: Mapping[int, float]) -> int:
    number = max(1, round(0.01 * len(strengths)))
    strongest = [
        start
        for start in sorted(strengths, key=strengths.__getitem__)[-number:]
        if strengths[start]
    ]
    return sum(
        any(first - series.precision < start <= last for start in strongest)
        for first, last in series.windows
    )
