"""Classic buckets as views of native histograms.

`x_bucket` is what dashboards ask for, and the store has more: exponential buckets. So
histogram_quantile() of rates and sums of `x_bucket` is rewritten to the native histogram `x`, which
keeps the full resolution. Elsewhere `x_bucket` has series with a label `le`: the same bounds for
all series of an answer, at the finest schema with at most 64 of them. A bound that a matcher names,
as in `x_bucket{le="0.3"}`, exists too; within a native bucket it is interpolated.
"""

import contextlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from redmeter.promql import nodes
from redmeter.promql.histogram import upper_bound
from redmeter.promql.intervals import Native
from redmeter.promql.intervals.grid import CounterTable
from redmeter.promql.nodes import Matcher
from redmeter.promql.values import METRIC_NAME, Floats, format_float, with_label, without

SUFFIX = "_bucket"
LE = "le"
#: Most bounds of classic buckets, without +Inf.
MAX_CLASSIC_BOUNDS = 64
#: The schema of stored histograms.
SCHEMA = 4

_RANGES = ("rate", "increase", "irate")
_FUNCTIONS = ("histogram_quantile", "histogram_fraction")
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


# --- Full resolution -------------------------------------------------------------------------


def full_resolution(node: nodes.Node) -> nodes.Node:
    """Return a query in which quantiles of classic buckets are those of native histograms."""
    match node:
        case nodes.Call():
            arguments = tuple(full_resolution(each) for each in node.arguments)
            if node.function in _FUNCTIONS:
                with contextlib.suppress(_NotNative):
                    arguments = (*arguments[:-1], _native(arguments[-1]))
            return replace(node, arguments=arguments)
        case nodes.Binary():
            left, right = full_resolution(node.left), full_resolution(node.right)
            return replace(node, left=left, right=right)
        case nodes.Aggregation() | nodes.Parentheses() | nodes.Negation() | nodes.Subquery():
            return replace(node, expression=full_resolution(node.expression))
        case _:
            return node


class _NotNative(Exception):
    """An expression over classic buckets is none over native histograms."""


def _native(node: nodes.Node) -> nodes.Node:
    """Return an expression over classic buckets as one over native histograms."""
    scalar = nodes.ValueType.SCALAR
    match node:
        case nodes.Selector():
            return replace(node, matchers=_native_matchers(node.matchers))
        case nodes.RangeSelector():
            matchers = _native_matchers(node.selector.matchers)
            return replace(node, selector=replace(node.selector, matchers=matchers))
        case nodes.Parentheses():
            return replace(node, expression=_native(node.expression))
        case nodes.Call() if node.function in _RANGES:
            return replace(node, arguments=(_native(node.arguments[0]),))
        case nodes.Aggregation() if node.operator in ("sum", "avg"):
            if (LE in node.labels) is not node.without:
                labels = tuple(label for label in node.labels if label != LE)
                return replace(node, expression=_native(node.expression), labels=labels)
        case nodes.Binary() if node.operator in ("*", "/"):
            if nodes.value_type(node.right) is scalar:
                return replace(node, left=_native(node.left))
            if nodes.value_type(node.left) is scalar and node.operator == "*":
                return replace(node, right=_native(node.right))
        case nodes.Binary() if node.operator == "or":
            # "Native or classic": the same histograms, whichever is there.
            sides = [_native_or_same(side) for side in (node.left, node.right)]
            return replace(node, left=sides[0], right=sides[1])
    raise _NotNative


def _native_or_same(node: nodes.Node) -> nodes.Node:
    try:
        return _native(node)
    except _NotNative:
        return node


def _native_matchers(matchers: Sequence[Matcher]) -> tuple[Matcher, ...]:
    native: list[Matcher] = []
    for matcher in matchers:
        if matcher.name == METRIC_NAME and matcher.operator == "=":
            if not matcher.value.endswith(SUFFIX):
                raise _NotNative
            matcher = replace(matcher, value=matcher.value.removesuffix(SUFFIX))
        elif matcher.name in (LE, METRIC_NAME):
            raise _NotNative
        native.append(matcher)
    if all(matcher.name != METRIC_NAME for matcher in native):
        raise _NotNative
    return tuple(native)


# --- Classic buckets -------------------------------------------------------------------------


def named_bounds(matchers: Sequence[Matcher]) -> tuple[str, ...]:
    """Return the finite bounds that matchers of `le` name, as they spell them."""
    named: dict[str, None] = {}
    for matcher in matchers:
        if matcher.name != LE or matcher.operator not in ("=", "=~"):
            continue
        text = matcher.value
        if matcher.operator == "=~":
            text = text.removeprefix("(").removesuffix(")").replace("\\.", ".")
        for one in text.split("|") if matcher.operator == "=~" else [text]:
            if _DECIMAL.fullmatch(one):
                named[one] = None
    return tuple(named)


def classic_buckets(natives: Iterable[Native], named: Sequence[str] = ()) -> list[CounterTable]:
    """Return the classic buckets of histograms; their labels get the label `le`.

    Args:
        natives: with the names of the buckets.
        named: further bounds.
    """
    chosen = list(natives)
    positive = {index for one in chosen for index in one.positive}
    negative = {index for one in chosen for index in one.negative}
    shift = 0
    while len(_groups(positive, shift, -1)) + len(_groups(negative, shift, 1)) > MAX_CLASSIC_BOUNDS:
        shift += 1
    uppers, lowers = _groups(positive, shift, -1), _groups(negative, shift, 1)[::-1]
    bounds = [-upper_bound(index - 1, SCHEMA - shift) for index in lowers]
    bounds += [0.0, *(upper_bound(index, SCHEMA - shift) for index in uppers), math.inf]
    zeros = bool(negative) or any(one.table.values[2].any() for one in chosen)
    which = [number for number, edge in enumerate(bounds) if zeros or edge]
    shown = {format_float(bounds[number]) for number in which}
    further = [text for text in named if text not in shown]
    return [_classic(one, shift, (lowers, uppers), bounds, which, further) for one in chosen]


def _groups(indexes: Iterable[int], shift: int, next_to: int) -> list[int]:
    """Return the indexes of wider buckets that hold some buckets, and of those next to them.

    With the empty bucket before another, the lower bound of that is a bound, too.
    """
    groups = {((index - 1) >> shift) + 1 for index in indexes}
    return sorted(groups | {group + next_to for group in groups})


def _classic(
    one: Native,
    shift: int,
    groups: tuple[Sequence[int], Sequence[int]],
    bounds: Sequence[float],
    which: Sequence[int],
    further: Sequence[str],
) -> CounterTable:
    values = one.table.values
    split = 3 + len(one.positive)

    def summed(own: Sequence[int], rows: Floats, groups: Sequence[int]) -> Floats:
        sums = np.zeros((len(groups), values.shape[1]))
        place = {group: row for row, group in enumerate(groups)}
        for index, row in zip(own, rows, strict=True):
            sums[place[((index - 1) >> shift) + 1]] += row
        return sums

    below = summed(one.negative, values[split:], groups[0])
    above = summed(one.positive, values[3:split], groups[1])
    counts = np.cumsum(np.concatenate([below, values[2:3], above]), axis=0)
    cumulative = np.concatenate([counts, values[:1]])[list(which)]
    if further:
        edges = [(0.0, 0.0)]
        edges += [
            (upper_bound(index - 1, SCHEMA), upper_bound(index, SCHEMA)) for index in one.positive
        ]
        edges += [
            (-upper_bound(index, SCHEMA), -upper_bound(index - 1, SCHEMA)) for index in one.negative
        ]
        shares = np.array(
            [[_share_up_to(float(text), *pair) for pair in edges] for text in further]
        )
        cumulative = np.concatenate([cumulative, shares @ values[2:]])
    bare = without(one.labels, (LE,))
    texts = [*(format_float(bounds[number]) for number in which), *further]
    labels = [with_label(bare, LE, text) for text in texts]
    size = len(labels)
    birth, complete = np.repeat(one.table.birth[:1], size), np.repeat(one.table.complete[:1], size)
    return CounterTable(one.table.grid, labels, cumulative, birth, complete)


def _share_up_to(value: float, lower: float, upper: float) -> float:
    """Return the share of a bucket's observations that are no greater than a value."""
    if value >= upper:
        return 1.0
    if value <= lower:
        return 0.0
    return (math.log2(abs(value)) - math.log2(abs(lower))) / (
        math.log2(abs(upper)) - math.log2(abs(lower))
    )
