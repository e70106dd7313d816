"""Distributions as text, sent and stored: an interval is a field in each of two hashes.

    buckets   LOW|HIGH|ZEROS|POSITIVE|NEGATIVE     0.1|9.0|0|-54=1,0,3/12=2|
    moments   COUNT TOTAL M2                       6 27.5 59.208333333333336

LOW and HIGH are the ends, as Python writes a float. POSITIVE and NEGATIVE are runs, ascending,
with a slash between: the index of a bucket, and how many values are in it and in those that follow
it. Up to two empty buckets are written as zeros, more of them end the run. Nothing in either text
would have to be escaped in JSON.

Texts of any other form are ignored, and so is an interval whose two texts disagree on the number of
values. Time and memory grow only with the length of the text, which is at most 1 MiB: more than all
buckets with 2^53 values take.
"""

import math
from collections.abc import Iterable
from operator import add
from typing import Any

from redmeter.lazy_regex import late
from redmeter.stored.exponential_histogram import HIGHEST, LOWEST, Distribution
from redmeter.stored.moments import Moments, Sums

#: Bytes of a text of buckets that are read at most.
MAX_TEXT = 2**20

#: Maximum number of values of an interval, so that Lua counts them exactly.
MAX_INTERVAL_VALUES = 2**53

#: Empty buckets in a row that are written as zeros within a run.
MAX_GAP = 2

_FLOAT = r"(-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[-+]?[0-9]{1,3})?)"
_BUCKETS = late(rf"{_FLOAT}\|{_FLOAT}\|([0-9]{{1,16}})\|([-0-9=,/]*)\|([-0-9=,/]*)")
_MOMENTS = late(rf"([0-9]{{1,16}}) {_FLOAT} {_FLOAT}")


class Numbers(dict[Any, int]):
    """Text -> number, of short ones that came before: int() takes two to three times as long.

    Raises, where a text is looked up:
        ValueError: it is no number, or none of 64 bits. Redis counts no further, but another
            program may write a thousand digits, of which a float or a chart cannot be made.
    """

    def __missing__(self, text: str | bytes) -> int:
        number = int(text)
        if len(text) < 6:
            if len(self) < 10_000:
                self[text] = number
        elif not -(2**63) <= number < 2**63:
            raise ValueError(f"a number of {len(text):,} characters")
        return number


_number = Numbers().__getitem__

# Where a run begins, and its counts.
_Run = tuple[int, list[int]]
_Text = str | bytes | None


def buckets_text(distribution: Distribution) -> str:
    """Write the buckets of a distribution.

    Raises:
        ValueError: it holds no value.
    """
    if not distribution.count:
        raise ValueError("a distribution of no values is not written")
    low, high = distribution.moments.low, distribution.moments.high
    positive, negative = _written(distribution.positive), _written(distribution.negative)
    return f"{low!r}|{high!r}|{distribution.zeros}|{positive}|{negative}"


def moments_text(distribution: Distribution) -> str:
    """Write count, sum and spread of a distribution."""
    moments = distribution.moments
    return f"{moments.count} {moments.total:.17g} {moments.m2:.17g}"


def parse_distribution(buckets: _Text, moments: _Text) -> Distribution | None:
    """Read an interval; None if it is missing or has another form."""
    read = _read(buckets, moments)
    if read is None:
        return None
    result = Distribution()
    result.moments, result.zeros, positive, negative = read
    for into, runs in (result.positive, positive), (result.negative, negative):
        for start, counts in runs:
            into.update(zip(range(start, start + len(counts)), counts, strict=True))
            if 0 in counts:
                for at, count in enumerate(counts, start):
                    if not count:
                        del into[at]
    return result


def parse_moments(text: bytes) -> Sums | None:
    """Read count, sum and spread; None if the text has another form."""
    try:
        count, total, m2 = text.split(b" ")
        sums = Sums(int(count), total=float(total), m2=float(m2))
    except ValueError:
        return None
    finite = math.isfinite(sums.total) and 0 <= sums.m2 < math.inf
    return sums if finite and 0 < sums.count <= MAX_INTERVAL_VALUES else None


def merge_moments(texts: Iterable[bytes]) -> Sums:
    """Read and merge moments; texts of another form are left out."""
    whole = Sums()
    for text in texts:
        if (part := parse_moments(text)) is not None:
            whole.merge(part)
    return whole


def merge_distributions(texts: Iterable[tuple[_Text, _Text]]) -> Distribution:
    """Read intervals and merge them; those of another form are skipped.

    Args:
        texts: the buckets and the moments of each interval.

    Returns:
        The distribution; empty if there are no valid intervals.
    """
    result = Distribution()
    positive, negative = _Sum(), _Sum()
    for buckets, moments in texts:
        read = _read(buckets, moments)
        if read is None:
            continue
        result.moments.merge(read[0])
        result.zeros += read[1]
        for run in read[2]:
            positive.add(*run)
        for run in read[3]:
            negative.add(*run)
    result.positive, result.negative = positive.buckets(), negative.buckets()
    return result


class _Sum:
    """Sums runs in one list, whose first element is bucket `first`."""

    __slots__ = ("counts", "first")

    def __init__(self) -> None:
        self.first = 0
        self.counts: list[int] = []

    def add(self, start: int, counts: list[int]) -> None:
        mine = self.counts
        if not mine:
            self.first = start
        at = start - self.first
        if at < 0:
            mine[:0] = [0] * -at
            self.first, at = start, 0
        end = at + len(counts)
        if end > len(mine):
            mine += [0] * (end - len(mine))
        mine[at:end] = map(add, mine[at:end], counts)

    def buckets(self) -> dict[int, int]:
        return {index: count for index, count in enumerate(self.counts, self.first) if count}


def _written(buckets: dict[int, int]) -> str:
    parts: list[str] = []
    last = LOWEST - MAX_GAP - 2
    for index in sorted(buckets):
        gap = index - last - 1
        if gap > MAX_GAP:
            parts.append(f"{'/' if parts else ''}{index}={buckets[index]}")
        else:
            parts.append(f"{',0' * gap},{buckets[index]}")
        last = index
    return "".join(parts)


def _read(buckets: _Text, moments: _Text) -> tuple[Moments, int, list[_Run], list[_Run]] | None:
    """Read both texts: moments, zeros, positive and negative runs."""
    if buckets is None or moments is None or len(buckets) > MAX_TEXT or len(moments) > MAX_TEXT:
        return None
    try:
        if isinstance(buckets, bytes):
            buckets = buckets.decode("ascii")
        if isinstance(moments, bytes):
            moments = moments.decode("ascii")
        parts, summed = _BUCKETS.fullmatch(buckets), _MOMENTS.fullmatch(moments)
        if parts is None or summed is None:
            return None
        low, high, zeros = float(parts[1]) + 0.0, float(parts[2]) + 0.0, int(parts[3])
        count, total, m2 = int(summed[1]), float(summed[2]), float(summed[3])
        positive, negative = _runs(parts[4]), _runs(parts[5])
    except ValueError:  # not ASCII, or a number that is none
        return None
    held = zeros + sum([sum(run[1]) for run in positive]) + sum([sum(run[1]) for run in negative])
    # Not finite either if an infinity or a NaN is among the values.
    finite = math.isfinite(low) and math.isfinite(high) and math.isfinite(total)
    if not (0 < count <= MAX_INTERVAL_VALUES and held == count and finite and low <= high):
        return None
    if not 0 <= m2 < math.inf:
        return None
    return Moments(count, low, high, total, m2 if low < high else 0.0), zeros, positive, negative


def _runs(text: str) -> list[_Run]:
    """Read runs, in a text of digits and -=,/ alone. Raises ValueError if they are none."""
    runs: list[_Run] = []
    if not text:
        return runs
    end = LOWEST
    for run in text.split("/"):
        head, _, tail = run.partition("=")
        start = int(head)
        if start < end or "-" in tail:
            raise ValueError(run)
        counts = list(map(_number, tail.split(",")))
        runs.append((start, counts))
        end = start + len(counts)
    if end > HIGHEST + 1:
        raise ValueError(end)
    return runs
