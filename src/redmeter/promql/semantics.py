"""What the evaluator needs of stored data.

Selectors and range functions are all that depends on how data is stored: as intervals, or as
samples with their times, as in Prometheus. Operators, aggregations and other functions are common.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from redmeter.promql.errors import Limits, Notes
from redmeter.promql.nodes import Matcher
from redmeter.promql.regex import full_match
from redmeter.promql.values import (
    Bools,
    Floats,
    LabelSet,
    Objects,
    Times,
    Vector,
    are_histograms,
    label,
)


@dataclass
class SampledSeries:
    """Samples of one label set in the order of their times.

    Attributes:
        labels: the label set.
        times: milliseconds, ascending.
        values: floats; undefined where the sample is a histogram.
        histograms: a NativeHistogram or None for each sample; None if all are floats.
        nameless: the metric name goes at the end of the query.
    """

    labels: LabelSet
    times: Times
    values: Floats
    histograms: Objects | None = None
    nameless: bool = False

    def between(self, after: int, until: int) -> "SampledSeries":
        """Return the samples later than `after` and no later than `until`."""
        low, high = np.searchsorted(self.times, [after, until], side="right")
        return self.chosen(slice(low, high))

    def chosen(self, which: "slice | Bools") -> "SampledSeries":
        """Return some samples."""
        histograms = None if self.histograms is None else self.histograms[which]
        times, values = self.times[which], self.values[which]
        return SampledSeries(self.labels, times, values, histograms, self.nameless)

    @property
    def is_histogram(self) -> Bools:
        """Return which samples are histograms."""
        if self.histograms is None:
            return np.zeros(len(self.times), bool)
        return are_histograms(self.histograms)


@dataclass(frozen=True)
class RangeCall:
    """A range function with everything but its range.

    Attributes:
        function: its name.
        arguments: its scalar arguments, each with a value for each evaluation time.
        times: the evaluation times in milliseconds.
        ends: where the window of each evaluation time ends.
        window: how long the windows are, in milliseconds.
        position: where the range is in the query.
        argument_position: where the scalar argument is.
        limits: bounds on the work.
        notes: where warnings go.
    """

    function: str
    arguments: tuple[Floats, ...]
    times: Times
    ends: Times
    window: int
    position: str
    argument_position: str
    limits: Limits
    notes: Notes


class Semantics(Protocol):
    """How selectors and range functions read stored data."""

    def instant(
        self, matchers: Sequence[Matcher], times: Times, limits: Limits
    ) -> tuple[Vector, Floats]:
        """Return the sample that each series has at each time, and the sample's time in seconds."""

    def apply(self, call: RangeCall, matchers: Sequence[Matcher]) -> Vector:
        """Return a range function of each series; metric names are kept."""

    def select(
        self, matchers: Sequence[Matcher], after: int, until: int, limits: Limits
    ) -> list[SampledSeries]:
        """Return the samples later than `after` and no later than `until`."""


def matches(labels: LabelSet, matchers: Sequence[Matcher]) -> bool:
    """Return whether a label set fulfills all matchers; a missing label is an empty one."""
    for matcher in matchers:
        value = label(labels, matcher.name)
        match matcher.operator:
            case "=":
                fulfilled = value == matcher.value
            case "!=":
                fulfilled = value != matcher.value
            case "=~":
                fulfilled = full_match(matcher.value)(value)
            case _:
                fulfilled = not full_match(matcher.value)(value)
        if not fulfilled:
            return False
    return True
