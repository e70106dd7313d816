"""Label sets and instant vectors.

A vector is a table: a row for each label set, a column for each evaluation time. Operations work on
whole tables, so a range query costs about as much as an instant query.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redmeter.promql.errors import QueryError

#: Names and values of labels, sorted by name, the metric name among them as __name__.
LabelSet = tuple[tuple[str, str], ...]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Times = NDArray[np.int64]
#: An array of NativeHistogram or None.
Objects = NDArray[Any]

METRIC_NAME = "__name__"
DUPLICATES = "vector cannot contain metrics with the same labelset"


def label(labels: LabelSet, name: str) -> str:
    """Return the value of a label, or ""."""
    for key, value in labels:
        if key == name:
            return value
    return ""


def with_label(labels: LabelSet, name: str, value: str) -> LabelSet:
    """Return labels with one set; an empty value removes it."""
    rest = [pair for pair in labels if pair[0] != name]
    return tuple(sorted([*rest, (name, value)])) if value else tuple(rest)


def without(labels: LabelSet, names: Iterable[str]) -> LabelSet:
    """Return labels without some."""
    return tuple(pair for pair in labels if pair[0] not in names)


def only(labels: LabelSet, names: Iterable[str]) -> LabelSet:
    """Return some of the labels."""
    return tuple(pair for pair in labels if pair[0] in names)


#: In a number's text: that it is written with an exponent, infinite or no number.
_SPECIAL = re.compile("[en]")


def format_float(value: float) -> str:
    """Return a number as Prometheus writes it: the shortest digits, no exponent."""
    text = repr(float(value))
    if not _SPECIAL.search(text):
        return text.removesuffix(".0")
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = format(Decimal(text), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_floats(values: Floats) -> list[str]:
    """Return numbers as format_float() does, in a third of the time."""
    text = str(values.tolist())[1:-1]
    if _SPECIAL.search(text):
        return [format_float(value) for value in values.tolist()]
    return text.replace(".0, ", ", ").removesuffix(".0").split(", ") if text else []


def are_histograms(samples: Objects) -> Bools:
    """Return which elements are histograms."""
    result: Bools = np.not_equal(samples, np.full(samples.shape, None, dtype=object))
    return result


def only_where(mask: Bools, samples: Objects) -> Objects:
    """Return the histograms where a mask is true, None elsewhere."""
    return np.where(mask, samples, np.full(samples.shape, None, dtype=object))


@dataclass
class Vector:
    """Instant vectors at several times.

    Attributes:
        labels: of each row.
        values: floats, rows x times. Undefined where there is no float.
        present: where there is a sample, a float or a histogram.
        histograms: rows x times of NativeHistogram or None; None if all samples are floats.
        nameless: rows whose metric name goes at the end of the query.
    """

    labels: list[LabelSet]
    values: Floats
    present: Bools
    histograms: Objects | None = None
    nameless: Bools = field(default_factory=lambda: np.zeros(0, bool))

    def __post_init__(self) -> None:
        if len(self.nameless) != len(self.labels):
            self.nameless = np.zeros(len(self.labels), bool)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> int:
        """Return the number of evaluation times."""
        return int(self.values.shape[1])

    @property
    def is_histogram(self) -> Bools:
        """Return where the sample is a histogram."""
        if self.histograms is None:
            return np.zeros_like(self.present)
        return are_histograms(self.histograms)

    @property
    def is_float(self) -> Bools:
        """Return where the sample is a float."""
        return self.present if self.histograms is None else self.present & ~self.is_histogram

    def rows(self, chosen: Any) -> "Vector":
        """Return some rows: their numbers, or a truth value for each."""
        numbers = np.arange(len(self))[chosen]
        return Vector(
            [self.labels[number] for number in numbers],
            self.values[numbers],
            self.present[numbers],
            None if self.histograms is None else self.histograms[numbers],
            self.nameless[numbers],
        )

    def nonempty(self) -> "Vector":
        """Return the rows that have a sample."""
        kept = self.present.any(axis=1)
        return self if kept.all() else self.rows(kept)

    def masked(self, mask: Bools) -> "Vector":
        """Return the samples where a mask is true."""
        histograms = self.histograms
        if histograms is not None:
            histograms = only_where(mask, histograms)
        return Vector(self.labels, self.values, self.present & mask, histograms, self.nameless)


def empty_vector(columns: int) -> Vector:
    """Return a vector without rows."""
    return Vector([], np.zeros((0, columns)), np.zeros((0, columns), bool))


def concatenate(vectors: list[Vector], columns: int) -> Vector:
    """Return the rows of several vectors."""
    vectors = [vector for vector in vectors if len(vector)]
    if not vectors:
        return empty_vector(columns)
    if len(vectors) == 1:
        return vectors[0]
    histograms = None
    if any(vector.histograms is not None for vector in vectors):
        histograms = np.concatenate([_histograms(vector) for vector in vectors])
    return Vector(
        [labels for vector in vectors for labels in vector.labels],
        np.concatenate([vector.values for vector in vectors]),
        np.concatenate([vector.present for vector in vectors]),
        histograms,
        np.concatenate([vector.nameless for vector in vectors]),
    )


def _histograms(vector: Vector) -> Objects:
    if vector.histograms is not None:
        return vector.histograms
    return np.full(vector.values.shape, None, dtype=object)


def merge_duplicates(vector: Vector, message: str = DUPLICATES) -> Vector:
    """Return a vector with one row for each label set.

    Rows with the same labels become one if no two of them have a sample at the same time.

    Raises:
        QueryError: two have.
    """
    if len(set(vector.labels)) == len(vector):
        return vector
    first: dict[LabelSet, int] = {}
    values, present = vector.values.copy(), vector.present.copy()
    histograms = None if vector.histograms is None else vector.histograms.copy()
    nameless = vector.nameless.copy()
    for row, labels in enumerate(vector.labels):
        target = first.setdefault(labels, row)
        if target == row:
            continue
        mask = present[row]
        if (present[target] & mask).any():
            raise QueryError(message)
        values[target] = np.where(mask, values[row], values[target])
        present[target] |= mask
        nameless[target] |= nameless[row]
        if histograms is not None:
            histograms[target] = np.where(mask, histograms[row], histograms[target])
    merged = Vector(vector.labels, values, present, histograms, nameless)
    return merged.rows(list(first.values()))
