"""PromQL text to nodes: the only module that knows the parser library.

The library is `promql-parser`, of the extra redmeter[prometheus]. It checks syntax and types; what
it parses but Prometheus enables only by a feature flag is refused here.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import promql_parser

from redmeter.promql import nodes
from redmeter.promql.errors import BadQuery, UnsupportedQuery
from redmeter.promql.limits import Limits
from redmeter.promql.tokens import Positions, scan

EXPERIMENTAL_FUNCTIONS = {
    *("double_exponential_smoothing", "end", "first_over_time", "histogram_quantiles", "info"),
    *("integral", "mad_over_time", "max_of", "min_of", "range", "sort_by_label"),
    *("sort_by_label_desc", "start", "step", "ts_of_first_over_time", "ts_of_last_over_time"),
    *("ts_of_max_over_time", "ts_of_min_over_time", "start_timestamp"),
}
EXPERIMENTAL_AGGREGATIONS = {"limitk", "limit_ratio"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
#: 10,000 years in milliseconds.
_LONGEST = 10_000 * 365 * 86_400_000
_KINDS = {
    str(promql_parser.ValueType.Scalar): nodes.Kind.SCALAR,
    str(promql_parser.ValueType.Vector): nodes.Kind.VECTOR,
    str(promql_parser.ValueType.Matrix): nodes.Kind.MATRIX,
    str(promql_parser.ValueType.String): nodes.Kind.STRING,
}
_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34, "'": 39}
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)


def parse(query: str, limits: Limits | None = None) -> nodes.Node:
    """Parse a query.

    Raises:
        BadQuery: the text is no PromQL, or too long, too deep or too complex.
        UnsupportedQuery: it needs a feature that is experimental in Prometheus.
    """
    positions = scan(query, limits or Limits())
    try:
        return _translate(promql_parser.parse(query), positions)
    except (ValueError, OverflowError) as error:
        if isinstance(error, BadQuery):
            raise
        raise BadQuery(f"parse error: {error}") from None


def _translate(tree: Any, positions: Positions) -> nodes.Node:
    """Return the node of a tree of the library, and take its positions in the text's order."""
    if isinstance(tree, promql_parser.NumberLiteral):
        return nodes.Number(positions.take("number")[0], tree.val)
    if isinstance(tree, promql_parser.StringLiteral):
        position, text = positions.take("string")
        return nodes.String(position, _unquote(text) if text else tree.val)
    if isinstance(tree, promql_parser.VectorSelector):
        return _selector(tree, positions)
    if isinstance(tree, promql_parser.MatrixSelector):
        selector = _selector(tree.vector_selector, positions)
        return nodes.RangeSelector(selector.position, selector, _milliseconds(tree.range))
    if isinstance(tree, promql_parser.ParenExpr):
        position = positions.take("parentheses")[0]
        return nodes.Parentheses(position, _translate(tree.expr, positions))
    if isinstance(tree, promql_parser.UnaryExpr):
        expression = _translate(tree.expr, positions)
        return nodes.Negation(expression.position, expression)
    if isinstance(tree, promql_parser.SubqueryExpr):
        expression = _translate(tree.expr, positions)
        step = _milliseconds(tree.step) if tree.step else None
        window = _milliseconds(tree.range)
        offset, at = _milliseconds(tree.offset), _at(tree.at)
        return nodes.Subquery(expression.position, expression, window, step, offset, at)
    if isinstance(tree, promql_parser.Call):
        return _call(tree, positions)
    if isinstance(tree, promql_parser.AggregateExpr):
        return _aggregation(tree, positions)
    if isinstance(tree, promql_parser.BinaryExpr):
        return _binary(tree, positions)
    raise BadQuery(f"parse error: {type(tree).__name__} is not supported")


def _call(tree: Any, positions: Positions) -> nodes.Call:
    name = tree.func.name
    if name in EXPERIMENTAL_FUNCTIONS or tree.func.experimental:
        message = f"the function {name}() is not supported"
        raise UnsupportedQuery(message, "promql-experimental-functions")
    position = positions.take("call")[0]
    arguments = tuple(_translate(argument, positions) for argument in tree.args)
    return nodes.Call(position, name, arguments, _KINDS[str(tree.func.return_type)])


def _aggregation(tree: Any, positions: Positions) -> nodes.Aggregation:
    operator = str(tree.op)
    if operator in EXPERIMENTAL_AGGREGATIONS:
        message = f"the aggregation {operator}() is not supported"
        raise UnsupportedQuery(message, "promql-experimental-functions")
    position = positions.take("call")[0]
    parameter = None if tree.param is None else _translate(tree.param, positions)
    expression = _translate(tree.expr, positions)
    modifier = tree.modifier
    labels = tuple(sorted(modifier.labels)) if modifier else ()
    without = bool(modifier) and modifier.type == promql_parser.AggModifierType.Without
    return nodes.Aggregation(position, operator, expression, parameter, labels, without)


def _binary(tree: Any, positions: Positions) -> nodes.Binary:
    left = _translate(tree.lhs, positions)
    right = _translate(tree.rhs, positions)
    modifier = tree.modifier
    if modifier is None:
        matching = nodes.Matching(False, (), None, ())
        return nodes.Binary(left.position, str(tree.op), left, right, False, matching)
    if modifier.fill_values.lhs is not None or modifier.fill_values.rhs is not None:
        message = "the modifiers fill(), fill_left() and fill_right() are not supported"
        raise UnsupportedQuery(message, "promql-binop-fill-modifiers")
    labels = modifier.matching
    include = labels is not None and labels.type == promql_parser.LabelModifierType.Include
    sides: dict[str, Literal["left", "right"]] = {"ManyToOne": "left", "OneToMany": "right"}
    matching = nodes.Matching(
        on=include,
        labels=tuple(labels.labels) if labels else (),
        many=sides.get(str(modifier.card).rpartition(".")[2]),
        include=tuple(modifier.group_labels or ()),
    )
    operator, returns_bool = str(tree.op), bool(modifier.return_bool)
    return nodes.Binary(left.position, operator, left, right, returns_bool, matching)


def _selector(tree: Any, positions: Positions) -> nodes.Selector:
    if tree.matchers.or_matchers:
        raise BadQuery("parse error: `or` between label matchers is not PromQL")
    named = (nodes.Matcher("__name__", "=", tree.name),) if tree.name else ()
    matchers = named + tuple(
        nodes.Matcher(matcher.name, _OPERATORS[str(matcher.op)], matcher.value)
        for matcher in tree.matchers.matchers
    )
    position = positions.take("selector")[0]
    return nodes.Selector(position, matchers, _milliseconds(tree.offset), _at(tree.at))


_OPERATORS: dict[str, nodes.MatchOperator] = {
    str(promql_parser.MatchOp.Equal): "=",
    str(promql_parser.MatchOp.NotEqual): "!=",
    str(promql_parser.MatchOp.Re): "=~",
    str(promql_parser.MatchOp.NotRe): "!~",
}


def _milliseconds(duration: timedelta | None) -> int:
    milliseconds = 0 if duration is None else duration // _MILLISECOND
    if abs(milliseconds) > _LONGEST:
        raise BadQuery("a duration of more than 10,000 years is not supported")
    return milliseconds


def _at(at: Any) -> int | Literal["start", "end"] | None:
    if at is None:
        return None
    if at.type == promql_parser.AtModifierType.Start:
        return "start"
    if at.type == promql_parser.AtModifierType.End:
        return "end"
    return _milliseconds(at.at - _EPOCH)


def _unquote(text: str) -> str:
    """Return the value of a string literal, as bytes where its escapes are bytes."""
    if text[0] == "`":
        return text[1:-1]

    def byte(match: re.Match[str]) -> bytes:
        hexadecimal, octal, short, long, letter = match.groups()
        if hexadecimal or octal:
            return bytes([int(hexadecimal or octal, 16 if hexadecimal else 8) & 0xFF])
        if letter:
            return bytes([_ESCAPES.get(letter, ord(letter) & 0xFF)])
        return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")

    parts, end = [], 1
    for match in _ESCAPE.finditer(text, 1, len(text) - 1):
        parts += [text[end : match.start()].encode("utf-8", "surrogatepass"), byte(match)]
        end = match.end()
    parts.append(text[end:-1].encode("utf-8", "surrogatepass"))
    return b"".join(parts).decode("utf-8", "surrogateescape")
