"""Observed values of many series, for rankings: sums of all, percentiles of a bounded number.

Sums come from the moments, a short text for each slice. Percentiles come from histograms, which are
ten to a hundred times as large: of at most CANDIDATES times as many groups as there will be rows,
of MAX_READ groups and of MAX_MERGED series.

Which groups may be the highest, the moments say: no more than a part 1 - q of values can be far
above their mean, since that makes their spread large. So the quantile q of n values is at most

    mean + stddev * sqrt(min(q / (1 - q), n - 1))

whatever they are, stddev being that of all of them: n as divisor. The groups with the largest
bounds are read; and where the lowest row that is found lies above the bounds of all that were not,
nobody needs to look at those.

Source: Cantelli's inequality; Samuelson's for n - 1.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from redmeter.errors import LimitExceeded
from redmeter.format.exponential_histogram import RELATIVE_ERROR, Distribution
from redmeter.format.moments import MAX_DOUBLE, held
from redmeter.format.packed_text import MAX_COUNT
from redmeter.reading.foreign_keys import readable
from redmeter.reading.summaries import MAX_MERGED, merged_slices
from redmeter.store import Store
from redmeter.store.replies import Command, Reply

#: Groups of which percentiles are read, for each row.
CANDIDATES = 4
#: Groups of which percentiles are read at most, whatever the number of rows.
MAX_READ = 200
#: Series of which histograms are read at most.
MAX_SERIES = MAX_MERGED
#: Series that one exchange is about at most, where many are read.
PAGE = 1_000

#: By how much of itself a bound may be off: what is read of a bucket, and the rounding of sums.
_SLACK = RELATIVE_ERROR + 1e-6
#: More than what is lost of the square of a distance that is too small for one: see moments.py.
_LOST = 1e-300


@dataclass
class Sum:
    """What the series of a group sum up to."""

    count: int = 0
    total: float = 0.0
    series: list[str] = field(default_factory=list)
    #: The sum of the squares of the distances from the mean.
    m2: float = 0.0

    def add(self, series: str, part: "Sum") -> None:
        """Add a series."""
        self.merge(part)
        self.series.append(series)

    def merge(self, part: "Sum") -> None:
        """Take in what another one sums up to: see format/moments.py."""
        if self.count and part.count:
            apart = part.mean - self.mean
            share = self.count / (self.count + part.count)
            # In this order nothing becomes NaN: at worst it is infinite.
            self.m2 += part.m2 + apart * apart * share * part.count
        else:
            self.m2 += part.m2
        self.m2 = held(self.m2)
        self.count += part.count
        self.total = held(self.total + part.total)

    @property
    def mean(self) -> float:
        """The mean of all values, or of what is left of a sum that was cut."""
        return self.total / self.count

    @property
    def exact_total(self) -> float | None:
        """The sum; None where it may have been cut: see format/moments.py.

        A sum that was cut stays at the largest double, unless values of the other sign follow: then
        the squares of their distances are cut.
        """
        return None if self.m2 >= MAX_DOUBLE or abs(self.total) >= MAX_DOUBLE else self.total

    @property
    def exact_mean(self) -> float | None:
        """The mean; None where there is no value, or where the sum may have been cut."""
        total = self.exact_total
        return total / self.count if self.count and total is not None else None

    def value(self, order: str) -> float:
        """Return what is ranked by."""
        return {"count": self.count, "total": self.total, "mean": self.mean}[order]

    def bound(self, q: float) -> float:
        """Return what the quantile q of the values cannot be above, as it is read of buckets."""
        if self.exact_total is None:
            return math.inf  # total and m2 were cut, and bound nothing
        farthest = self.count - 1.0
        if q < 1.0:
            farthest = min(q / (1.0 - q), farthest)
        above = math.sqrt((self.m2 / self.count + _LOST) * farthest)
        return self.mean + above + (abs(self.mean) + above) * _SLACK  # they may cancel each other


def read_sums(
    store: Store, names: Sequence[str], fields: Mapping[int, Sequence[int]]
) -> dict[str, Sum]:
    """Read the sums of many series, 1,000 at a time; those without a value are left out.

    Args:
        fields: precision -> starts of the slices that are added up.
    """
    texts = {precision: [*map(str, starts)] for precision, starts in fields.items()}
    commands: list[Command] = [
        ("HMGET", store.keys.moments(precision, name), *starts)
        for name in names
        for precision, starts in texts.items()
    ]
    each = len(fields)
    replies = ask_in_pages(store, commands, each)
    by_name = {n: replies[at * each : (at + 1) * each] for at, n in enumerate(names)}
    found = {}
    for name, some in readable(by_name).items():
        whole = sum_of_all(text for reply in some for text in reply if text is not None)
        if whole.count:
            found[name] = whole
    return found


def ask_in_pages(store: Store, commands: Sequence[Command], each: int = 1) -> list[Reply]:
    """Return the replies to commands about many series, asked of PAGE series at a time.

    Thus neither side has to hold the answer about all of them, and others are served in between.

    Args:
        each: how many commands a series has.
    """
    size = max(1, PAGE * each)
    pages = (store.ask(commands[at : at + size]) for at in range(0, len(commands), size))
    return [reply for page in pages for reply in page]


def sum_of_all(texts: Iterable[bytes]) -> Sum:
    """Add up moments; a text that is something else is left out."""
    whole = Sum()
    for text in texts:
        if (part := sum_of(text)) is not None:
            whole.merge(part)
    return whole


def sum_of(text: bytes) -> Sum | None:
    """Read "COUNT TOTAL M2"; None where it is something else: see format/packed_text.py."""
    try:
        count, total, m2 = text.split(b" ")
        found = Sum(int(count), float(total), m2=float(m2))
    except ValueError:
        return None
    if (
        not 0 < found.count <= MAX_COUNT
        or not math.isfinite(found.total)
        or not 0 <= found.m2 < math.inf
    ):
        return None
    return found


class Percentiles(NamedTuple):
    """A percentile of those groups that may be the highest."""

    values: dict[str | None, float]
    #: Groups that have too many series to be read, the largest bound first.
    left_out: list[str | None]
    #: What no group that was not read can be above; None where all were.
    rest: float | None


def percentiles(
    store: Store,
    sums: Mapping[str | None, Sum],
    fields: Mapping[int, Sequence[int]],
    q: float,
    limit: int,
) -> Percentiles:
    """Read a percentile of those groups that may be the highest; a round trip for 500 series.

    Args:
        q: 0 to 1.
        limit: how many rows there will be.

    Raises:
        LimitExceeded: no group has few enough series.
    """
    chosen, left_out = choose(sums, q, min(CANDIDATES * limit, MAX_READ))
    names = [series for key in chosen for series in sums[key].series]
    parts = merged_slices(store, names, fields)
    found = {}
    for key in chosen:
        whole = Distribution()
        for series in sums[key].series:
            if series in parts:
                whole.merge(parts[series])
        if whole.count:
            found[key] = whole.quantile(q)
    rest = [one.bound(q) for key, one in sums.items() if key not in found]
    return Percentiles(found, left_out, max(rest) if rest else None)


def choose(
    sums: Mapping[str | None, Sum], q: float, most: int
) -> tuple[Collection[str | None], list[str | None]]:
    """Choose so many groups, those of which a percentile may be the highest.

    Returns:
        Also those that have more series than can be read beside the others.

    Raises:
        LimitExceeded: each of them has over MAX_SERIES series.
    """
    chosen: dict[str | None, None] = {}
    left_out: list[str | None] = []
    series = 0
    for key in sorted(sums, key=lambda key: (-sums[key].bound(q), key or "")):
        if len(chosen) == most:
            break
        number = len(sums[key].series)
        if series + number > MAX_SERIES:
            left_out.append(key)
            continue
        series += number
        chosen[key] = None
    if sums and not chosen:
        fewest = min(len(one.series) for one in sums.values())
        raise LimitExceeded("series", fewest, MAX_SERIES, "narrow them down by labels")
    return chosen, left_out
