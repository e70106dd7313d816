"""Observed values of many series, for rankings: sums of all, percentiles of a bounded number.

Sums come from the moments, a short text for each slice. Percentiles come from histograms: of at
most CANDIDATES times as many groups as there will be rows, of MAX_READ groups and of MAX_SERIES
series.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.errors import LimitExceeded
from redmeter.kinds.distribution import Distribution
from redmeter.kinds.moments import held
from redmeter.reading.summaries import merged_slices
from redmeter.store import Store
from redmeter.store.link import Command, raised

#: Groups of which percentiles are read, for each row.
CANDIDATES = 4
#: Groups of which percentiles are read at most, and so rows.
MAX_READ = 200
#: Series of which histograms are read at most.
MAX_SERIES = 1_000

#: Which of the candidates are chosen by their mean instead of their total: every fourth.
_BY_MEAN = 4


@dataclass
class Sum:
    """What the series of a group sum up to."""

    count: int = 0
    total: float = 0.0
    series: list[str] = field(default_factory=list)

    def add(self, series: str, count: int, total: float) -> None:
        """Add a series."""
        self.count += count
        self.total = held(self.total + total)
        self.series.append(series)

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return self.total / self.count

    def value(self, order: str) -> float:
        """Return what is ranked by."""
        return {"count": self.count, "total": self.total, "mean": self.mean}[order]


def read_sums(
    store: Store, names: Sequence[str], fields: Mapping[int, Sequence[int]]
) -> dict[str, tuple[int, float]]:
    """Read count and total of many series in one round trip; those without a value are left out.

    Args:
        fields: precision -> starts of the slices that are added up.
    """
    commands: list[Command] = [
        ("HMGET", store.keys.moments(precision, name), *starts)
        for name in names
        for precision, starts in fields.items()
    ]
    replies = store.ask(commands) if commands else []
    found = {}
    for at, name in enumerate(names):
        count, total = 0, 0.0
        for reply in replies[at * len(fields) : (at + 1) * len(fields)]:
            for text in raised(reply):
                if text is not None:
                    number, some = _count_and_total(text)
                    count, total = count + number, held(total + some)
        if count:
            found[name] = count, total
    return found


def _count_and_total(text: bytes) -> tuple[int, float]:
    """Read "COUNT TOTAL M2"; nothing where it is something else: see kinds/packed.py."""
    try:
        count, total, _ = text.split(b" ")
        found = int(count), float(total)
    except ValueError:
        return 0, 0.0
    return found if found[0] > 0 and math.isfinite(found[1]) else (0, 0.0)


def percentiles(
    store: Store,
    sums: Mapping[str | None, Sum],
    fields: Mapping[int, Sequence[int]],
    q: float,
    limit: int,
) -> dict[str | None, float]:
    """Read a percentile of those groups that may be the highest, in one round trip.

    Args:
        q: 0 to 1.
        limit: how many rows there will be.

    Raises:
        LimitExceeded: more rows than percentiles are read for, or a group of too many series.
    """
    if limit > MAX_READ:
        raise LimitExceeded("rows", limit, MAX_READ, "percentiles are read of so many at most")
    chosen = choose(sums, min(CANDIDATES * limit, MAX_READ))
    names = [series for key in chosen for series in sums[key].series]
    parts = merged_slices(store, names, fields)
    found = {}
    for key in chosen:
        whole = Distribution()
        for series in sums[key].series:
            whole.merge(parts[series])
        if whole.count:
            found[key] = whole.quantile(q)
    return found


def choose(sums: Mapping[str | None, Sum], most: int) -> list[str | None]:
    """Choose so many groups: those of the largest totals, and every fourth of the largest means.

    Raises:
        LimitExceeded: the first of them has over MAX_SERIES series.
    """
    by_total = sorted(sums, key=lambda key: (-abs(sums[key].total), key or ""))
    by_mean = sorted(sums, key=lambda key: (-sums[key].mean, key or ""))
    chosen: dict[str | None, None] = {}
    totals, means = iter(by_total), iter(by_mean)
    series = 0
    while len(chosen) < min(most, len(sums)):
        source = means if len(chosen) % _BY_MEAN == _BY_MEAN - 1 else totals
        key = next(one for one in source if one not in chosen)
        series += len(sums[key].series)
        if series > MAX_SERIES:
            if not chosen:
                raise LimitExceeded("series", series, MAX_SERIES, "narrow them down by labels")
            break
        chosen[key] = None
    return list(chosen)
