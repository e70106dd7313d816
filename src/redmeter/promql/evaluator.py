"""Evaluation of a query at all its times at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from redmeter.promql import binary, functions, histogram_functions, nodes
from redmeter.promql.aggregation import aggregate
from redmeter.promql.errors import BadQuery, Limits, Note, Notes, QueryError
from redmeter.promql.histogram import NativeHistogram
from redmeter.promql.parser import parse_query
from redmeter.promql.range_functions import FUNCTIONS, apply
from redmeter.promql.semantics import RangeCall, SampledSeries, Semantics
from redmeter.promql.values import (
    METRIC_NAME,
    Bools,
    Floats,
    LabelSet,
    Times,
    Vector,
    are_histograms,
    empty_vector,
    merge_duplicates,
    without,
)

#: Step of a subquery that names none, in milliseconds.
SUBQUERY_STEP = 60_000

#: Functions of windows whose results keep the metric name.
_KEEP_NAMES = ("first_over_time", "last_over_time", "absent_over_time")

Value = Vector | Floats | str | list[SampledSeries]


@dataclass(frozen=True)
class Answer:
    """The answer to a query.

    Attributes:
        kind: the type of the answer: of a query over time, MATRIX.
        times: the evaluation times in milliseconds.
        value: a scalar for each time, a vector with a column for each time, a text, or, for an
            instant query of a range vector, series of samples.
        warnings, infos: what the reader of the answer has to know.
    """

    kind: nodes.ValueType
    times: Times
    value: Value
    warnings: list[str]
    infos: list[str]


@dataclass(frozen=True)
class Engine:
    """Answers queries.

    Attributes:
        semantics: how stored data is read.
        limits: bounds on the work of each query.
        delayed_name_removal: keep metric names until the end of a query, so that label_replace()
            can use them; Prometheus' feature flag promql-delayed-name-removal.
        rewrite: changes a query before it is evaluated.
        native_quantile: returns a quantile of a native histogram.
    """

    semantics: Semantics
    limits: Limits = field(default_factory=Limits)
    delayed_name_removal: bool = False
    rewrite: Callable[[nodes.Node], nodes.Node] = lambda node: node
    native_quantile: Callable[[float, NativeHistogram], float] = histogram_functions.native_quantile

    def instant(self, query: str, time: int) -> Answer:
        """Answer a query at one time, in milliseconds."""
        return self._answer(query, np.array([time], np.int64), instant=True)

    def range(self, query: str, start: int, end: int, step: int) -> Answer:
        """Answer a query at each step from start to end, in milliseconds.

        Raises:
            QueryError: the query cannot be answered.
        """
        if step <= 0:
            raise BadQuery("zero or negative query resolution step widths are not accepted")
        if end < start:
            raise BadQuery("end timestamp must not be before start time")
        self.limits.check_steps((end - start) // step + 1)
        return self._answer(query, np.arange(start, end + 1, step, dtype=np.int64), instant=False)

    def _answer(self, query: str, times: Times, *, instant: bool) -> Answer:
        try:
            node = self.rewrite(parse_query(query, self.limits))
            kind = nodes.value_type(node)
            if not instant and kind not in (nodes.ValueType.SCALAR, nodes.ValueType.VECTOR):
                raise BadQuery(
                    f"invalid expression type {kind.value!r} for range query, must be scalar or"
                    " instant vector"
                )
            notes = Notes()
            evaluation = _Evaluation(self, notes, int(times[0]), int(times[-1]))
            with np.errstate(all="ignore"):
                value: Value
                if kind is nodes.ValueType.MATRIX:
                    value = evaluation.matrix(nodes.bare(node), int(times[0]))
                else:
                    value = evaluation.evaluate(node, times)
        except RecursionError:
            raise BadQuery("the query is nested too deep. Remove parentheses") from None
        if isinstance(value, Vector):
            value = without_names(value, value.nameless)
        kind = kind if instant else nodes.ValueType.MATRIX
        return Answer(kind, times, value, notes.warnings, notes.infos)


def without_names(vector: Vector, which: Bools) -> Vector:
    """Return a vector without the metric names of some rows; equal label sets become one row."""
    labels: list[LabelSet] = [
        without(labels, (METRIC_NAME,)) if nameless else labels
        for labels, nameless in zip(vector.labels, which, strict=True)
    ]
    return merge_duplicates(Vector(labels, vector.values, vector.present, vector.histograms))


class _Evaluation:
    """The evaluation of one query."""

    def __init__(self, engine: Engine, notes: Notes, start: int, end: int) -> None:
        self._engine = engine
        self._limits = engine.limits
        self._notes = notes
        self._bounds = {"start": start, "end": end}

    def evaluate(self, node: nodes.Node, times: Times) -> Vector | Floats | str:
        """Return the value of a node at each time: a vector, a scalar for each, or a text."""
        self._limits.interrupt()
        match node:
            case nodes.Number():
                return np.full(len(times), node.value)
            case nodes.String():
                return node.value
            case nodes.Parentheses():
                return self.evaluate(node.expression, times)
            case nodes.Selector():
                return self._instant(node, times)[0]
            case nodes.Negation():
                value = self.evaluate(node.expression, times)
                assert not isinstance(value, str)
                return self._negated(value) if isinstance(value, Vector) else -value
            case nodes.Aggregation():
                return self._aggregation(node, times)
            case nodes.Binary():
                return self._binary(node, times)
            case nodes.Call():
                return self._call(node, times)
        raise BadQuery(f"a range vector cannot be used here ({node.position})")

    def vector(self, node: nodes.Node, times: Times) -> Vector:
        """Return the value of a node that is a vector."""
        value = self.evaluate(node, times)
        assert isinstance(value, Vector)
        return value

    def scalar(self, node: nodes.Node, times: Times) -> Floats:
        """Return the value of a node that is a scalar."""
        value = self.evaluate(node, times)
        assert isinstance(value, np.ndarray)
        return value

    def matrix(self, node: nodes.Node, time: int) -> list[SampledSeries]:
        """Return the samples of a range vector at one time."""
        times = np.array([time], np.int64)
        if isinstance(node, nodes.RangeSelector):
            selector = node.selector
            end = int(self._shifted(selector.at, selector.offset, times)[0])
            after = end - node.window
            matrix = self._engine.semantics.select(selector.matchers, after, end, self._limits)
        else:
            assert isinstance(node, nodes.Subquery)
            end = int(self._shifted(node.at, node.offset, times)[0])
            matrix = self._subquery(node, np.array([end], np.int64))
            matrix = [series.between(end - node.window, end) for series in matrix]
        return [series for series in matrix if len(series.times)]

    def _shifted(
        self, at: int | Literal["start", "end"] | None, offset: int, times: Times
    ) -> Times:
        """Return the times at which a selector looks."""
        if at is None:
            return times - offset
        fixed = at if isinstance(at, int) else self._bounds[at]
        return np.full(len(times), fixed - offset, np.int64)

    def _instant(self, node: nodes.Selector, times: Times) -> tuple[Vector, Floats]:
        shifted = self._shifted(node.at, node.offset, times)
        return self._engine.semantics.instant(node.matchers, shifted, self._limits)

    def _unnamed(self, vector: Vector) -> Vector:
        """Return a vector whose metric names are gone, or go at the end of the query."""
        every = np.ones(len(vector), bool)
        if not self._engine.delayed_name_removal:
            return without_names(vector, every)
        return replace(vector, nameless=every)

    def _negated(self, vector: Vector) -> Vector:
        histograms = vector.histograms
        if histograms is not None:
            histograms = histograms.copy()
            for index in zip(*np.nonzero(vector.is_histogram), strict=True):
                histograms[index] = histograms[index].scaled(-1.0).as_gauge()
        return self._unnamed(replace(vector, values=-vector.values, histograms=histograms))

    def _aggregation(self, node: nodes.Aggregation, times: Times) -> Vector:
        parameter: Floats | str = ""
        if node.parameter is not None:
            value = self.evaluate(node.parameter, times)
            assert not isinstance(value, Vector)
            parameter = value
        vector = self.vector(node.expression, times)
        return aggregate(vector, node, parameter, self._notes)

    def _binary(self, node: nodes.Binary, times: Times) -> Vector | Floats:
        left, right = self.evaluate(node.left, times), self.evaluate(node.right, times)
        assert not isinstance(left, str)
        assert not isinstance(right, str)
        if isinstance(left, Vector) and isinstance(right, Vector):
            if node.operator in binary.SETS:
                return binary.combine_sets(node, left, right)
            result = binary.with_vector(node, left, right, self._limits, self._notes)
        elif isinstance(left, Vector):
            assert isinstance(right, np.ndarray)
            result = binary.with_scalar(node, left, right, self._notes, swapped=False)
        elif isinstance(right, Vector):
            result = binary.with_scalar(node, right, left, self._notes, swapped=True)
        else:
            return binary.scalars(node.operator, left, right)
        return result if binary.keeps_name(node) else self._unnamed(result)

    def _call(self, node: nodes.Call, times: Times) -> Vector | Floats:
        name, arguments = node.function, node.arguments
        if name in FUNCTIONS:
            return self._range_function(node, name, times)
        if name == "absent_over_time":
            present = self._range_function(node, "present_over_time", times)
            return self._absent(arguments[0], present)
        if name == "absent":
            return self._absent(arguments[0], self.vector(arguments[0], times))
        if name == "time":
            return times / 1000
        if name == "pi":
            return np.full(len(times), np.pi)
        if name == "vector":
            values = self.scalar(arguments[0], times)[None]
            return Vector([()], values, np.ones_like(values, bool))
        if name in functions.DATE_PARTS and not arguments:
            stamps = times[None] / 1000
            return functions.elementwise(name, Vector([()], stamps, np.ones_like(stamps, bool)), ())
        if name == "timestamp":
            return self._timestamp(arguments[0], times)
        if name in ("histogram_quantile", "histogram_fraction"):
            return self._histogram_function(node, times)
        vector = self.vector(arguments[0], times)
        match name:
            case "scalar":
                return functions.to_scalar(vector)
            case "sort" | "sort_desc":
                if len(times) > 1:
                    self._notes.add(Note.SORTED_RANGE, node.position)
                return functions.sorted_by_value(vector, descending=name == "sort_desc")
            case "label_replace":
                return functions.label_replace(vector, self._texts(arguments[1:], times))
            case "label_join":
                return functions.label_join(vector, self._texts(arguments[1:], times))
        if name in histogram_functions.HISTOGRAM_VALUES:
            return self._unnamed(histogram_functions.histogram_value(name, vector))
        if name in functions.ELEMENTWISE or name in functions.DATE_PARTS:
            scalars = [self.scalar(argument, times) for argument in arguments[1:]]
            return self._unnamed(functions.elementwise(name, vector, scalars))
        raise BadQuery(f"unknown function {name}()")

    def _texts(self, arguments: Sequence[nodes.Node], times: Times) -> list[str]:
        texts = [self.evaluate(argument, times) for argument in arguments]
        return [text for text in texts if isinstance(text, str)]

    def _timestamp(self, argument: nodes.Node, times: Times) -> Vector:
        selector = nodes.bare(argument)
        if isinstance(selector, nodes.Selector):
            vector, stamps = self._instant(selector, times)
        else:
            vector = self.vector(argument, times)
            stamps = np.broadcast_to(times / 1000, vector.values.shape)
        return self._unnamed(replace(vector, values=stamps, histograms=None))

    def _histogram_function(self, node: nodes.Call, times: Times) -> Vector:
        *scalars, argument = node.arguments
        numbers = [self.scalar(scalar, times) for scalar in scalars]
        vector = self.vector(argument, times)
        if node.function == "histogram_quantile":
            positions = scalars[0].position, argument.position
            of_native = self._engine.native_quantile
            result = histogram_functions.histogram_quantile(
                vector, numbers[0], positions, self._notes, of_native
            )
        else:
            result = histogram_functions.histogram_fraction(
                vector, numbers[0], numbers[1], argument.position, self._notes
            )
        return self._unnamed(result)

    def _absent(self, argument: nodes.Node, vector: Vector) -> Vector:
        """Return 1 where a vector is empty, with the labels that its selector demands."""
        argument = nodes.bare(argument)
        selector = argument.selector if isinstance(argument, nodes.RangeSelector) else argument
        demanded: dict[str, str] = {}
        if isinstance(selector, nodes.Selector):
            named = [matcher.name for matcher in selector.matchers]
            demanded = {
                matcher.name: matcher.value
                for matcher in selector.matchers
                if matcher.operator == "=" and named.count(matcher.name) == 1 and matcher.value
            }
            demanded.pop(METRIC_NAME, None)
        absent: Bools = np.asarray(~vector.present.any(axis=0, keepdims=True))
        labels = tuple(sorted(demanded.items()))
        return Vector([labels], np.ones(absent.shape), absent).nonempty()

    def _range_function(self, node: nodes.Call, function: str, times: Times) -> Vector:
        scalars = [
            each for each in node.arguments if nodes.value_type(each) is nodes.ValueType.SCALAR
        ]
        argument = next(
            nodes.bare(each)
            for each in node.arguments
            if nodes.value_type(each) is nodes.ValueType.MATRIX
        )
        assert isinstance(argument, nodes.RangeSelector | nodes.Subquery)
        place = argument.selector if isinstance(argument, nodes.RangeSelector) else argument
        call = RangeCall(
            function,
            tuple(self.scalar(scalar, times) for scalar in scalars),
            times,
            self._shifted(place.at, place.offset, times),
            argument.window,
            argument.position,
            scalars[0].position if scalars else "",
            self._limits,
            self._notes,
        )
        if isinstance(argument, nodes.RangeSelector):
            matchers = argument.selector.matchers
            result = self._engine.semantics.apply(call, matchers)
        else:
            result = apply(call, self._subquery(argument, call.ends))
        result = result.nonempty()
        self._limits.check_cells(len(result), result.columns)
        keeps_name = node.function in _KEEP_NAMES
        return result if keeps_name else self._unnamed(result)

    def _subquery(self, node: nodes.Subquery, ends: Times) -> list[SampledSeries]:
        """Return the series of a subquery, for windows that end at certain times."""
        step = node.step or SUBQUERY_STEP
        after, until = int(ends.min()) - node.window, int(ends.max())
        first = (after // step + 1) * step
        if (until - first) // step + 1 > self._limits.cells:
            raise QueryError(
                f"the subquery has {(until - first) // step + 1:,} steps, more than"
                f" {self._limits.cells:,}. Choose a wider step"
            )
        times = np.arange(first, until + 1, step, dtype=np.int64)
        vector = self.vector(node.expression, times) if len(times) else empty_vector(0)
        result = []
        for row, labels in enumerate(vector.labels):
            present = vector.present[row]
            histograms = None
            if vector.histograms is not None:
                # Steps may skip samples, or repeat them.
                histograms = vector.histograms[row][present]
                for place in np.flatnonzero(are_histograms(histograms)):
                    histograms[place] = histograms[place].without_reset_hint()
            nameless = bool(vector.nameless[row])
            values = vector.values[row][present]
            result.append(SampledSeries(labels, times[present], values, histograms, nameless))
        return result
