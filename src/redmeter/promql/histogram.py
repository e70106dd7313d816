"""Native histograms with exponential buckets.

Bucket i of schema s holds (2^((i-1)/2^s), 2^(i/2^s)]; negative values mirror it; values up to a
threshold from zero are in the zero bucket. Counts are floats. Histograms of different schemas and
thresholds combine at the coarser of each.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from redmeter.promql.values import format_float

Hint = Literal["unknown", "reset", "not_reset", "gauge"]
Side = Literal["negative", "zero", "positive"]
Buckets = Mapping[int, float]


@dataclass(slots=True)
class NativeBucket:
    """One bucket: its bounds, its count, and its place in the histogram.

    Attributes:
        lower, upper: the bounds; the one further from zero belongs to it, of the zero bucket both.
        side: the sign of its values.
        index: its index on that side.
    """

    lower: float
    upper: float
    count: float
    side: Side = "positive"
    index: int = 0


@dataclass(frozen=True, eq=False)
class NativeHistogram:
    """A native histogram; immutable.

    Attributes:
        schema: the resolution, -4 to 8.
        count, sum: of all observations.
        zero_threshold, zero_count: width and count of the zero bucket.
        positive, negative: counts by bucket index, without empty buckets.
        hint: whether a counter reset precedes it, or that it is not a counter.
    """

    schema: int = 0
    count: float = 0.0
    sum: float = 0.0
    zero_threshold: float = 0.0
    zero_count: float = 0.0
    positive: Buckets = field(default_factory=dict)
    negative: Buckets = field(default_factory=dict)
    hint: Hint = "unknown"

    def same(self, other: "NativeHistogram") -> bool:
        """Return whether two histograms hold the same observations in the same layout."""
        return (
            (self.schema, self.count, self.zero_threshold, self.zero_count)
            == (other.schema, other.count, other.zero_threshold, other.zero_count)
            and (self.sum == other.sum or (math.isnan(self.sum) and math.isnan(other.sum)))
            and compact(self.positive) == compact(other.positive)
            and compact(self.negative) == compact(other.negative)
        )

    def __add__(self, other: "NativeHistogram") -> "NativeHistogram":
        return _combined(self, other, 1.0)

    def __sub__(self, other: "NativeHistogram") -> "NativeHistogram":
        return _combined(self, other, -1.0)

    def scaled(self, factor: float) -> "NativeHistogram":
        """Return a histogram with all counts and the sum multiplied."""
        return self._mapped(lambda count: count * factor)

    def divided(self, divisor: float) -> "NativeHistogram":
        """Return a histogram with all counts and the sum divided; by zero, it has no buckets."""
        scaled = self._mapped(lambda count: divide(count, divisor))
        return scaled if divisor else replace(scaled, positive={}, negative={})

    def _mapped(self, change: Callable[[float], float]) -> "NativeHistogram":
        """Return a histogram with all numbers changed; a gauge if that turns their signs."""
        return replace(
            self,
            count=change(self.count),
            sum=change(self.sum),
            zero_count=change(self.zero_count),
            positive={index: change(count) for index, count in self.positive.items()},
            negative={index: change(count) for index, count in self.negative.items()},
            hint="gauge" if change(1.0) < 0 else self.hint,
        )

    def compacted(self) -> "NativeHistogram":
        """Return a histogram without empty buckets."""
        return replace(self, positive=compact(self.positive), negative=compact(self.negative))

    def without_reset_hint(self) -> "NativeHistogram":
        """Return a histogram of which is only known whether it is a gauge."""
        return self if self.hint == "gauge" else replace(self, hint="unknown")

    def as_gauge(self) -> "NativeHistogram":
        """Return a histogram that is no counter, without empty buckets."""
        return replace(self.compacted(), hint="gauge")

    def at_schema(self, schema: int) -> "NativeHistogram":
        """Return a histogram at a schema that is no finer than its own."""
        shift = self.schema - schema
        if not shift:
            return self
        return replace(
            self,
            schema=schema,
            positive=_coarser(self.positive, shift),
            negative=_coarser(self.negative, shift),
        )

    def widened(self, threshold: float) -> "NativeHistogram":
        """Return a histogram whose zero bucket is at least so wide.

        Where the threshold is inside a bucket, the zero bucket takes all of it and is wider.
        """
        if threshold <= self.zero_threshold:
            return self
        both = [index for side in (self.positive, self.negative) for index in compact(side)]
        while True:
            inside = [index for index in both if upper_bound(index - 1, self.schema) < threshold]
            upper = max((upper_bound(index, self.schema) for index in inside), default=0.0)
            if upper <= threshold:
                break
            threshold = upper
        taken = set(inside)
        zero = sum(
            side.get(index, 0.0) for side in (self.positive, self.negative) for index in taken
        )
        return replace(
            self,
            zero_threshold=threshold,
            zero_count=self.zero_count + zero,
            positive={i: count for i, count in self.positive.items() if i not in taken},
            negative={i: count for i, count in self.negative.items() if i not in taken},
        )

    def is_reset_after(self, previous: "NativeHistogram") -> bool:
        """Return whether a counter was reset between a previous histogram and this one."""
        if self.hint == "reset":
            return True
        if self.hint == "not_reset":
            return False
        if self.count < previous.count:
            return True
        if self.schema > previous.schema or self.zero_threshold < previous.zero_threshold:
            return True
        before = previous.at_schema(self.schema).widened(self.zero_threshold)
        if before.zero_threshold != self.zero_threshold or self.zero_count < before.zero_count:
            return True
        return any(
            now.get(index, 0.0) < count
            for now, was in ((self.positive, before.positive), (self.negative, before.negative))
            for index, count in was.items()
        )

    def buckets(self) -> Iterator[NativeBucket]:
        """Yield the populated buckets in ascending order, the zero bucket among them."""
        for index in sorted(compact(self.negative), reverse=True):
            lower, upper = -upper_bound(index, self.schema), -upper_bound(index - 1, self.schema)
            yield NativeBucket(lower, upper, self.negative[index], "negative", index)
        if self.zero_count:
            yield NativeBucket(-self.zero_threshold, self.zero_threshold, self.zero_count, "zero")
        for index in sorted(compact(self.positive)):
            lower, upper = upper_bound(index - 1, self.schema), upper_bound(index, self.schema)
            yield NativeBucket(lower, upper, self.positive[index], "positive", index)

    def __str__(self) -> str:
        parts = [f"count:{format_float(self.count)}", f"sum:{format_float(self.sum)}"]
        for bucket in self.buckets():
            left = "(" if bucket.side == "positive" else "["
            right = ")" if bucket.side == "negative" else "]"
            # Shortest, with an exponent.
            bounds = ",".join(
                repr(edge).removesuffix(".0") for edge in (bucket.lower, bucket.upper)
            )
            parts.append(f"{left}{bounds}{right}:{format_float(bucket.count)}")
        return "{" + ", ".join(parts) + "}"


@functools.lru_cache(maxsize=16_384)
def upper_bound(index: int, schema: int) -> float:
    """Return the upper bound of a bucket."""
    try:
        if schema <= 0:
            return math.ldexp(1.0, index << -schema)
        exponent, fraction = index >> schema, index & ((1 << schema) - 1)
        return math.ldexp(2.0 ** (fraction / (1 << schema)), exponent)
    except OverflowError:
        return math.inf


def divide(value: float, divisor: float) -> float:
    """Return a quotient as floating-point hardware does, also by zero."""
    if divisor:
        return value / divisor
    if not value or math.isnan(value) or math.isnan(divisor):
        return math.nan
    return math.copysign(math.inf, value) * math.copysign(1.0, divisor)


def compact(buckets: Buckets) -> dict[int, float]:
    """Return the buckets that are not empty."""
    return {index: count for index, count in buckets.items() if count}


def _coarser(buckets: Buckets, shift: int) -> dict[int, float]:
    merged: dict[int, float] = {}
    for index, count in buckets.items():
        target = ((index - 1) >> shift) + 1
        merged[target] = merged.get(target, 0.0) + count
    return merged


def _combined(left: NativeHistogram, right: NativeHistogram, sign: float) -> NativeHistogram:
    while left.zero_threshold != right.zero_threshold:
        left, right = left.widened(right.zero_threshold), right.widened(left.zero_threshold)
    schema = min(left.schema, right.schema)
    left, right = left.at_schema(schema), right.at_schema(schema)
    return NativeHistogram(
        schema,
        left.count + sign * right.count,
        left.sum + sign * right.sum,
        left.zero_threshold,
        left.zero_count + sign * right.zero_count,
        _merged(left.positive, right.positive, sign),
        _merged(left.negative, right.negative, sign),
        _common_hint((left, right)),
    )


def resets_conflict(histograms: Iterable[NativeHistogram]) -> bool:
    """Return whether some of several histograms follow a reset, and others do not."""
    return {"reset", "not_reset"} <= {one.hint for one in histograms}


def total_of(histograms: Sequence[NativeHistogram]) -> NativeHistogram:
    """Return the sum of one or more histograms; large numbers that cancel leave the small ones."""
    return _reduced(histograms, _exact_sum)


def mean_of(histograms: Sequence[NativeHistogram]) -> NativeHistogram:
    """Return the mean of one or more histograms, also where their sum is too large."""
    return _reduced(histograms, _exact_mean)


def _reduced(
    histograms: Sequence[NativeHistogram], reduce: Callable[[Sequence[float]], float]
) -> NativeHistogram:
    schema = min(one.schema for one in histograms)
    aligned = [one.at_schema(schema) for one in histograms]
    while len({one.zero_threshold for one in aligned}) > 1:
        widest = max(one.zero_threshold for one in aligned)
        aligned = [one.widened(widest) for one in aligned]

    def merged(sides: Iterable[Buckets]) -> dict[int, float]:
        counts: dict[int, list[float]] = {}
        for side in sides:
            for index, count in side.items():
                counts.setdefault(index, []).append(count)
        # The others have an empty bucket.
        return {
            index: reduce([*own, *[0.0] * (len(aligned) - len(own))])
            for index, own in counts.items()
        }

    return NativeHistogram(
        schema,
        reduce([one.count for one in aligned]),
        reduce([one.sum for one in aligned]),
        aligned[0].zero_threshold,
        reduce([one.zero_count for one in aligned]),
        merged(one.positive for one in aligned),
        merged(one.negative for one in aligned),
        _common_hint(aligned),
    )


def _common_hint(histograms: Iterable[NativeHistogram]) -> Hint:
    hints = {one.hint for one in histograms}
    return "gauge" if "gauge" in hints else hints.pop() if len(hints) == 1 else "unknown"


def _exact_sum(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # infinite, or infinities of both signs
        return sum(numbers)


def _exact_mean(numbers: Sequence[float]) -> float:
    total = _exact_sum(numbers)
    if math.isinf(total) and not any(map(math.isinf, numbers)):
        return _exact_sum([number / len(numbers) for number in numbers])
    return total / len(numbers)


def _merged(left: Buckets, right: Buckets, sign: float) -> dict[int, float]:
    merged = dict(left)
    for index, count in right.items():
        merged[index] = merged.get(index, 0.0) + sign * count
    return merged
