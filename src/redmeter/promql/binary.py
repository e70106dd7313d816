"""Binary operations between vectors and scalars."""

from collections.abc import Callable

import numpy as np

from redmeter.promql.errors import Limits, Note, Notes, QueryError, quoted
from redmeter.promql.histogram import NativeHistogram, resets_conflict
from redmeter.promql.histogram_functions import trimmed
from redmeter.promql.nodes import Binary, Matching
from redmeter.promql.values import (
    METRIC_NAME,
    Bools,
    Floats,
    LabelSet,
    Objects,
    Vector,
    concatenate,
    empty_vector,
    label,
    merge_duplicates,
    only,
    only_where,
    with_label,
    without,
)

ARITHMETIC: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
    "atan2": np.arctan2,
}
COMPARISONS: dict[str, Callable[[Floats, Floats], Bools]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    "<": np.less,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}
#: Operators that remove the observations of a histogram above or below a number.
TRIMS = ("</", ">/")
SETS = ("and", "or", "unless")

_NOT_GROUPED = (
    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
)
_NOT_UNIQUE = "multiple matches for labels: grouping labels must ensure unique matches"


def scalars(operator: str, left: Floats, right: Floats) -> Floats:
    """Return an operation of two scalars at each time; comparisons are 0 or 1."""
    if operator in COMPARISONS:
        return COMPARISONS[operator](left, right).astype(float)
    return ARITHMETIC[operator](left, right)


def keeps_name(node: Binary) -> bool:
    """Return whether a result keeps the metric name of its left side."""
    return node.operator in TRIMS or _is_filter(node)


def _is_filter(node: Binary) -> bool:
    return node.operator in COMPARISONS and not node.returns_bool


def _combine(
    node: Binary, left: Vector, right: Vector, notes: Notes
) -> tuple[Floats, Bools, Objects | None]:
    """Combine vectors cell by cell, whatever their labels; return what a Vector has."""
    both = left.present & right.present
    left_native, right_native = left.is_histogram & both, right.is_histogram & both
    present = both & ~left_native & ~right_native
    if node.operator in TRIMS:
        values = np.zeros(present.shape)
        if present.any():
            _incompatible(node, "float", "float", notes)
        present = np.zeros(present.shape, bool)
    elif node.operator in ARITHMETIC:
        values = ARITHMETIC[node.operator](left.values, right.values)
    else:
        true = COMPARISONS[node.operator](left.values, right.values)
        values = true.astype(float) if node.returns_bool else left.values.copy()
        if not node.returns_bool:
            present &= true
    histograms: Objects | None = None
    for cell in zip(*np.nonzero(left_native | right_native), strict=True):
        one: NativeHistogram | float = left.values[cell]
        other: NativeHistogram | float = right.values[cell]
        if left_native[cell] and left.histograms is not None:
            one = left.histograms[cell]
        if right_native[cell] and right.histograms is not None:
            other = right.histograms[cell]
        result = _combine_histograms(node, one, other, notes)
        if result is None:
            continue
        present[cell] = True
        if isinstance(result, NativeHistogram):
            if histograms is None:
                histograms = np.full(present.shape, None, dtype=object)
            histograms[cell] = result
        else:
            values[cell] = result
    return values, present, histograms


def _combine_histograms(
    node: Binary, left: NativeHistogram | float, right: NativeHistogram | float, notes: Notes
) -> NativeHistogram | float | None:
    operator = node.operator
    if isinstance(left, NativeHistogram) and isinstance(right, NativeHistogram):
        if operator in ("+", "-"):
            if resets_conflict((left, right)):
                name = "addition" if operator == "+" else "subtraction"
                notes.add(Note.CONFLICTING_RESETS, node.left.position, name)
            result = left + right if operator == "+" else left - right
            return result.as_gauge() if operator == "-" else result.compacted()
        if operator in ("==", "!="):
            true = left.same(right) == (operator == "==")
            return float(true) if node.returns_bool else (left if true else None)
    elif isinstance(left, NativeHistogram) and isinstance(right, float) and operator in ("*", "/"):
        result = left.scaled(right) if operator == "*" else left.divided(right)
        return result.compacted()
    elif isinstance(left, NativeHistogram) and isinstance(right, float) and operator in TRIMS:
        return trimmed(left, right, above=operator == ">/").compacted()
    elif isinstance(right, NativeHistogram) and isinstance(left, float) and operator == "*":
        return right.scaled(left).compacted()
    kinds = [
        "histogram" if isinstance(side, NativeHistogram) else "float" for side in (left, right)
    ]
    _incompatible(node, kinds[0], kinds[1], notes)
    return None


def _incompatible(node: Binary, left: str, right: str, notes: Notes) -> None:
    notes.add(Note.INCOMPATIBLE_TYPES, node.left.position, left, node.operator, right)


def with_scalar(
    node: Binary, vector: Vector, scalar: Floats, notes: Notes, *, swapped: bool
) -> Vector:
    """Return an operation of a vector and a scalar; `swapped` if the scalar is on the left."""
    shape = vector.values.shape
    other = Vector(vector.labels, np.broadcast_to(scalar, shape), np.ones(shape, bool))
    sides = (other, vector) if swapped else (vector, other)
    values, present, histograms = _combine(node, *sides, notes)
    if _is_filter(node):
        # It keeps the sample of the vector, on whichever side it is.
        values, histograms = vector.values, vector.histograms
        if histograms is not None:
            histograms = only_where(present, histograms)
    return Vector(vector.labels, values, present, histograms, vector.nameless).nonempty()


def signature(labels: LabelSet, matching: Matching) -> LabelSet:
    """Return the labels by which the sides of an operation find each other."""
    if matching.on:
        return only(labels, matching.labels)
    return without(labels, (METRIC_NAME, *matching.labels))


def combine_sets(node: Binary, left: Vector, right: Vector) -> Vector:
    """Return `and`, `or` or `unless` of two vectors."""
    base, other = (right, left) if node.operator == "or" else (left, right)
    nowhere = np.zeros(left.columns, bool)
    known: dict[LabelSet, Bools] = {}
    for row, labels in enumerate(other.labels):
        key = signature(labels, node.matching)
        known[key] = known.get(key, nowhere) | other.present[row]
    matched = np.array(
        [known.get(signature(labels, node.matching), nowhere) for labels in base.labels], bool
    ).reshape(base.present.shape)
    if node.operator == "and":
        return left.masked(matched).nonempty()
    rest = base.masked(~matched).nonempty()
    if node.operator == "unless":
        return rest
    return merge_duplicates(concatenate([left, rest], left.columns))


def with_vector(node: Binary, left: Vector, right: Vector, limits: Limits, notes: Notes) -> Vector:
    """Return an arithmetic operation or a comparison of two vectors."""
    matching = node.matching
    many, one = (right, left) if matching.many == "right" else (left, right)
    # Where a side is empty, nothing is matched, and ambiguous labels do not matter.
    relevant: Bools = np.asarray(left.present.any(axis=0) & right.present.any(axis=0))
    by_signature: dict[LabelSet, list[int]] = {}
    for row, labels in enumerate(one.labels):
        by_signature.setdefault(signature(labels, matching), []).append(row)
    for key, rows in by_signature.items():
        if len(rows) > 1:
            _check_unique(one, rows, key, relevant, "left" if one is left else "right")
    pairs = [
        (row, partner, key)
        for row, labels in enumerate(many.labels)
        if (key := signature(labels, matching)) in by_signature
        for partner in by_signature[key]
    ]
    limits.check_cells(len(pairs), left.columns)
    if not pairs:
        return empty_vector(left.columns)
    chosen_many = many.rows([row for row, _, _ in pairs])
    chosen_one = one.rows([partner for _, partner, _ in pairs])
    if matching.many is None:
        _check_one_to_one(chosen_many, chosen_one, [key for _, _, key in pairs])
    sides = (chosen_one, chosen_many) if many is right else (chosen_many, chosen_one)
    values, present, histograms = _combine(node, *sides, notes)
    results = [
        _result_labels(node, many.labels[row], one.labels[partner]) for row, partner, _ in pairs
    ]
    nameless = chosen_many.nameless.copy()
    if any(name == METRIC_NAME for name in matching.include):
        nameless &= chosen_one.nameless
    result = Vector(results, values, present, histograms, nameless).nonempty()
    return merge_duplicates(result, _NOT_UNIQUE if matching.many else _NOT_GROUPED)


def _check_unique(one: Vector, rows: list[int], key: LabelSet, relevant: Bools, side: str) -> None:
    """Raise QueryError if several series of the "one" side match at the same time."""
    present = one.present[rows] & relevant
    twice = np.flatnonzero(present.sum(axis=0) > 1)
    if not len(twice):
        return
    duplicates = [
        one.labels[row] for row, there in zip(rows, present[:, twice[0]], strict=True) if there
    ]
    listed = ", ".join(_written(labels) for labels in sorted(duplicates)[:2])
    raise QueryError(
        f"found duplicate series for the match group {_written(key)} on the {side} hand-side of the"
        f" operation: [{listed}];many-to-many matching not allowed: matching labels must be unique"
        " on one side"
    )


def _check_one_to_one(many: Vector, one: Vector, keys: list[LabelSet]) -> None:
    """Raise QueryError if several series of the left side have the same partner."""
    matched: dict[LabelSet, Bools] = {}
    for row, key in enumerate(keys):
        both = many.present[row] & one.present[row]
        before = matched.get(key, np.False_)
        if (before & both).any():
            raise QueryError(_NOT_GROUPED)
        matched[key] = before | both


def _result_labels(node: Binary, many: LabelSet, one: LabelSet) -> LabelSet:
    matching = node.matching
    labels = many
    if matching.many is None:
        labels = only(many, matching.labels) if matching.on else without(many, matching.labels)
    for name in matching.include:
        labels = with_label(labels, name, label(one, name))
    return labels


def _written(labels: LabelSet) -> str:
    """Return a label set in the form of error messages."""
    return "{" + ", ".join(f"{name}={quoted(value)}" for name, value in labels) + "}"
