"""Functions of instant vectors that work on each sample, and on labels.

They ignore histograms.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from redmeter.promql import regex
from redmeter.promql.errors import QueryError, quoted
from redmeter.promql.values import METRIC_NAME, Floats, Vector, label, merge_duplicates, with_label

#: Years -9999 to 9999, in seconds from 1970: beyond, there is no date.
_EARLIEST, _LATEST = -377_705_116_800, 253_402_300_800


def _date_part(part: str, timestamps: Floats) -> Floats:
    """Return a part of the dates, in UTC, of Unix timestamps; NaN where there is no date."""
    valid = (timestamps >= _EARLIEST) & (timestamps < _LATEST)
    seconds = np.floor(np.where(valid, timestamps, 0)).astype(np.int64)
    days = seconds // 86_400
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    years = months.astype("datetime64[Y]")
    first_of_month = months.astype("datetime64[D]").astype(np.int64)
    match part:
        case "minute":
            result = seconds // 60 % 60
        case "hour":
            result = seconds // 3600 % 24
        case "day_of_week":
            result = (days + 4) % 7
        case "day_of_month":
            result = days - first_of_month + 1
        case "day_of_year":
            result = days - years.astype("datetime64[D]").astype(np.int64) + 1
        case "days_in_month":
            result = (months + 1).astype("datetime64[D]").astype(np.int64) - first_of_month
        case "month":
            result = months.astype(np.int64) % 12 + 1
        case _:
            result = years.astype(np.int64) + 1970
    return np.where(valid, result.astype(float), np.nan)


def _round_to(values: Floats, nearest: Floats | float = 1.0) -> Floats:
    """Round to the nearest multiple, half up."""
    inverse = 1.0 / np.asarray(nearest)
    return np.floor(values * inverse + 0.5) / inverse


#: Functions of the values, and of scalar arguments. A bound that is NaN makes the values NaN.
ELEMENTWISE: dict[str, Callable[..., Floats]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "clamp": lambda values, low, high: np.maximum(low, np.minimum(high, values)),
    "clamp_max": lambda values, high: np.minimum(high, values),
    "clamp_min": lambda values, low: np.maximum(low, values),
    "cos": np.cos,
    "cosh": np.cosh,
    "deg": np.degrees,
    "exp": np.exp,
    "floor": np.floor,
    "ln": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "rad": np.radians,
    "round": _round_to,
    "sgn": lambda values: np.where(values < 0, -1.0, np.where(values > 0, 1.0, values)),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}

DATE_PARTS = (
    *("minute", "hour", "day_of_week", "day_of_month", "day_of_year", "days_in_month"),
    *("month", "year"),
)


def elementwise(function: str, vector: Vector, arguments: Sequence[Floats]) -> Vector:
    """Return a function of each float."""
    if function in DATE_PARTS:
        values = _date_part(function, vector.values)
    else:
        values = ELEMENTWISE[function](vector.values, *arguments)
    present = vector.is_float
    if function == "clamp":
        present = present & ~(arguments[0] > arguments[1])
    return Vector(vector.labels, values, present, None, vector.nameless).nonempty()


def to_scalar(vector: Vector) -> Floats:
    """Return the float of a vector where it has exactly one, else NaN."""
    floats = vector.is_float
    if not len(vector):
        return np.full(vector.columns, np.nan)
    only = vector.values[floats.argmax(axis=0), np.arange(vector.columns)]
    return np.where(floats.sum(axis=0) == 1, only, np.nan)


def check_label_name(name: str, message: str = "") -> None:
    """Raise QueryError, with this message if there is one, if a text is no label's name."""
    if not name or any("\ud800" <= character <= "\udfff" for character in name):
        raise QueryError(message or f"invalid label name {quoted(name)}")


def label_replace(vector: Vector, texts: Sequence[str]) -> Vector:
    """Set a label from parts of another where a regular expression matches all of it."""
    target, replacement, source, pattern = texts
    expression = regex.compiled(pattern)
    check_label_name(target, f"invalid destination label name in label_replace(): {target}")
    labels, nameless = list(vector.labels), vector.nameless.copy()
    for row, old in enumerate(vector.labels):
        match = expression.fullmatch(label(old, source))
        if match is not None:
            labels[row] = with_label(old, target, regex.expand(match, replacement))
            nameless[row] &= target != METRIC_NAME
    return merge_duplicates(replace(vector, labels=labels, nameless=nameless))


def label_join(vector: Vector, texts: Sequence[str]) -> Vector:
    """Set a label to others' values with a separator between them."""
    target, separator, *sources = texts
    check_label_name(target, f"invalid destination label name in label_join(): {target}")
    labels = [
        with_label(old, target, separator.join(label(old, source) for source in sources))
        for old in vector.labels
    ]
    nameless = vector.nameless & (target != METRIC_NAME)
    return merge_duplicates(replace(vector, labels=labels, nameless=nameless))


def sorted_by_value(vector: Vector, *, descending: bool) -> Vector:
    """Return the floats of an instant vector in the order of their values, NaN last."""
    vector = vector.masked(vector.is_float).nonempty()
    if vector.columns != 1:
        return vector
    values = vector.values[:, 0]
    missing = np.isnan(values)
    keys = np.where(missing, 0, -values if descending else values)
    return vector.rows(np.lexsort((keys, missing)))
