"""PromQL text to nodes: the only module that knows the parser library.

The library is `promql-parser`, of the extra redmeter[prometheus]. It checks syntax and types; what
it parses but Prometheus enables only by a feature flag is refused here.

The text is scanned before it is parsed. The scan bounds what the library has to do, whose time is
quadratic in operators and nesting, and finds the positions of calls, selectors, parentheses,
numbers and strings, which the library does not report. Both trees and texts list each of these in
the same order.
"""

import contextlib
import itertools
import re
from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import promql_parser

from redmeter.promql import nodes
from redmeter.promql.errors import BadQuery, Limits, UnsupportedQuery

# --- Tokens ----------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|\#[^\n]*)
    | (?P<string>"(?:\\.|[^"\\])*(?:"|\\?\Z)|'(?:\\.|[^'\\])*(?:'|\\?\Z)|`[^`]*(?:`|\Z))
    | (?P<number>0[xX][0-9a-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?[a-z0-9]*)
    | (?P<word>[A-Za-z_:][A-Za-z0-9_:]*)
    | (?P<sign>==|!=|=~|!~|>=|<=|</|>/|[-+*/%^<>=@(){}\[\],:])
    """,
    re.VERBOSE | re.DOTALL,
)
#: Words that are followed by a list of labels or a value in parentheses.
_LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right", "fill"}
_LISTS |= {"fill_left", "fill_right"}
_OPERATORS = {"and", "or", "unless", "atan2", "bool", "offset"}
_OPERATORS |= {*"+-*/%^<>@", "==", "!=", ">=", "<=", "</", ">/"}
#: Operators of which the library does not know all, and those that it knows instead.
_TRIMS = {"</": "< bool ", ">/": "> bool "}
_ORDERS = {"<", ">", *_TRIMS}
_AGGREGATIONS = {
    *("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk"),
    *("count_values", "quantile", "limitk", "limit_ratio"),
}
_NUMBERS = {"inf", "nan"}
_DURATION_WORDS = ("(", "step", "range", "min_of", "max_of")
_DURATIONS = ("arithmetic of durations is not supported", "promql-duration-expr")


class Positions:
    """The positions of each kind of token, in the order of the text."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[tuple[str, str]]] = defaultdict(deque)

    def add(self, kind: str, position: str, text: str) -> None:
        """Note a token."""
        self._queues[kind].append((position, text))

    def take(self, kind: str) -> tuple[str, str]:
        """Return the position and the text of the next token of a kind; "1:1" if none is left."""
        queue = self._queues[kind]
        return queue.popleft() if queue else ("1:1", "")


def scan_query(query: str, limits: Limits) -> Positions:
    """Return the positions of a query's tokens.

    Raises:
        BadQuery: the text is longer, deeper or has more operators than the limits allow.
    """
    if len(query) > limits.text:
        raise BadQuery(
            f"the query has {len(query):,} characters, more than {limits.text:,}. Split it up"
        )
    tokens = [
        (match.lastgroup or "", match.group(), match.start())
        for match in _TOKEN.finditer(query)
        if match.lastgroup != "space"
    ]
    _check_size(tokens, limits)
    _check_features(tokens)
    positions = Positions()
    lines = [0, *(match.end() for match in re.finditer("\n", query))]
    line = 0
    closed_by: list[str] = []  # the brackets that are open and how each is read
    before = ""
    for number, (kind, text, start) in enumerate(tokens):
        while line + 1 < len(lines) and lines[line + 1] <= start:
            line += 1
        position = f"{line + 1}:{start - lines[line] + 1}"
        after = tokens[number + 1][1] if number + 1 < len(tokens) else ""
        skipping = bool(closed_by) and closed_by[-1] != "("
        if text in ("(", "[", "{") and kind == "sign":
            if text == "(" and not skipping:
                in_list = before.lower() in _LISTS or before in ("start@", "end@")
                closed_by.append("list" if in_list else "(")
                if not in_list and before != "call":
                    positions.add("parentheses", position, text)
            else:
                if text == "{" and not skipping and before != "name":
                    positions.add("selector", position, text)
                closed_by.append(text)
            before = text
        elif text in (")", "]", "}") and kind == "sign":
            if closed_by:
                closed_by.pop()
            before = text
        elif skipping:
            before = text
        elif kind == "string" or (kind == "number" and before not in ("offset", "@")):
            positions.add(kind, position, text)
            before = kind
        elif kind == "word":
            before = _read_word(positions, position, text, before, after)
        elif text not in ("-", "+") or before not in ("offset", "@"):
            if text in _ORDERS:
                positions.add("order", position, text)
            before = text
    return positions


def _read_word(positions: Positions, position: str, text: str, before: str, after: str) -> str:
    """Note what a word is; return what to remember of it."""
    lower = text.lower()
    if before == "@":
        return f"{lower}@"
    if lower in _LISTS or lower in _OPERATORS:
        return lower
    if after == "(" or (lower in _AGGREGATIONS and after.lower() in ("by", "without")):
        positions.add("call", position, text)
        return "call"
    if lower in _NUMBERS:
        positions.add("number", position, text)
        return "number"
    positions.add("selector", position, text)
    return "name"


def _check_features(tokens: list[tuple[str, str, int]]) -> None:
    """Raise BadQuery for syntax that the parser does not know, that of feature flags above all."""
    in_brackets = False

    def is_modifier(number: int) -> bool:
        """Return whether a word follows a selector, instead of being a name."""
        before = tokens[number - 1] if number else ("", "", 0)
        name = before[0] == "word" and before[1].lower() not in _OPERATORS | _LISTS
        return before[1] in ("]", "}") or name or before[0] == "number"

    for number, ((kind, text, _), (_, following, _)) in enumerate(
        itertools.pairwise([*tokens, ("", "", 0)])
    ):
        if text in ("[", "]"):
            in_brackets = text == "["
        elif kind == "word" and text.lower() in _MODIFIERS and is_modifier(number):
            message = f"the modifier {text.lower()} is not supported"
            raise UnsupportedQuery(message, "promql-extended-range-selectors")
        elif in_brackets and (text in _OPERATORS or (kind == "word" and following == "(")):
            raise UnsupportedQuery(*_DURATIONS)
        if text == "@" and following == "-":
            raise BadQuery("a time before 1970 after @ is not supported. Use offset instead")
        if text.lower() == "offset" and following.lower() in _DURATION_WORDS:
            raise UnsupportedQuery(*_DURATIONS)


def _check_size(tokens: list[tuple[str, str, int]], limits: Limits) -> None:
    signs = [text for kind, text, _ in tokens if kind == "sign"]
    levels = itertools.accumulate((text in "([{") - (text in ")]}") for text in signs)
    deepest = max(levels, default=0)
    operators = sum(
        kind in ("sign", "word") and text.lower() in _OPERATORS for kind, text, _ in tokens
    )
    if deepest > limits.nesting:
        raise BadQuery(
            f"the query is nested {deepest:,} levels deep, more than {limits.nesting:,}."
            " Remove parentheses"
        )
    if operators > limits.operators:
        raise BadQuery(
            f"the query has {operators:,} operators, more than {limits.operators:,}. Split it up"
        )


# --- Nodes -----------------------------------------------------------------------------------

EXPERIMENTAL_FUNCTIONS = {
    *("double_exponential_smoothing", "end", "histogram_quantiles", "info"),
    *("integral", "mad_over_time", "max_of", "min_of", "range", "sort_by_label"),
    *("sort_by_label_desc", "start", "step", "ts_of_first_over_time", "ts_of_last_over_time"),
    *("ts_of_max_over_time", "ts_of_min_over_time", "start_timestamp"),
}
#: Functions that the library takes for experimental, and Prometheus no longer does.
STABLE_FUNCTIONS = {"first_over_time"}
EXPERIMENTAL_AGGREGATIONS = {"limitk", "limit_ratio"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_KINDS = {
    str(promql_parser.ValueType.Scalar): nodes.ValueType.SCALAR,
    str(promql_parser.ValueType.Vector): nodes.ValueType.VECTOR,
    str(promql_parser.ValueType.Matrix): nodes.ValueType.MATRIX,
    str(promql_parser.ValueType.String): nodes.ValueType.STRING,
}
_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34, "'": 39}
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)


def parse_query(query: str, limits: Limits | None = None) -> nodes.Node:
    """Parse a query.

    Raises:
        BadQuery: the text is no PromQL, or too long, too deep or too complex.
        UnsupportedQuery: it needs a feature that is experimental in Prometheus.
    """
    positions = scan_query(query, limits or Limits())
    try:
        return _translate(promql_parser.parse(_for_library(query)), positions)
    except (ValueError, OverflowError) as error:
        if isinstance(error, BadQuery):
            raise
        raise BadQuery(f"parse error: {error}") from None


#: Words that the library takes for modifiers everywhere, and what stands for them as names.
_MODIFIERS = ("smoothed", "anchored")
_STAND_IN = "__redmeter_"


def _for_library(query: str) -> str:
    """Return a query as the library knows it: without underscores in numbers, with stand-ins.

    Trimming is written as a comparison, which has the same precedence.
    """

    def known(match: re.Match[str]) -> str:
        text = match.group()
        if match.lastgroup == "word" and text.lower() in _MODIFIERS:
            return _STAND_IN + text
        if text in _TRIMS:
            return _TRIMS[text]
        if match.lastgroup == "number" and "_" in text:
            with contextlib.suppress(ValueError):  # Python's rules are those of Go
                int(text, 16) if text[:2] in ("0x", "0X") else float(text)
                return text.replace("_", "")
        return text

    return _TOKEN.sub(known, query)


def _own(name: str) -> str:
    """Return a name as the query has it."""
    return name.removeprefix(_STAND_IN)


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
    if name in EXPERIMENTAL_FUNCTIONS or (tree.func.experimental and name not in STABLE_FUNCTIONS):
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
    labels = tuple(sorted(map(_own, modifier.labels))) if modifier else ()
    without = bool(modifier) and modifier.type == promql_parser.AggModifierType.Without
    return nodes.Aggregation(position, operator, expression, parameter, labels, without)


def _binary(tree: Any, positions: Positions) -> nodes.Binary:
    left = _translate(tree.lhs, positions)
    operator = str(tree.op)
    if operator in _ORDERS:
        operator = positions.take("order")[1] or operator
    right = _translate(tree.rhs, positions)
    if operator in _TRIMS and (
        nodes.value_type(left) is nodes.value_type(right) is nodes.ValueType.SCALAR
    ):
        raise BadQuery(f"the operator {operator} trims histograms. Both of its sides are numbers")
    modifier = tree.modifier
    if modifier is None:
        matching = nodes.Matching(False, (), None, ())
        return nodes.Binary(left.position, operator, left, right, False, matching)
    if modifier.fill_values.lhs is not None or modifier.fill_values.rhs is not None:
        message = "the modifiers fill(), fill_left() and fill_right() are not supported"
        raise UnsupportedQuery(message, "promql-binop-fill-modifiers")
    labels = modifier.matching
    include = labels is not None and labels.type == promql_parser.LabelModifierType.Include
    sides: dict[str, Literal["left", "right"]] = {"ManyToOne": "left", "OneToMany": "right"}
    matching = nodes.Matching(
        on=include,
        labels=tuple(map(_own, labels.labels)) if labels else (),
        many=sides.get(str(modifier.card).rpartition(".")[2]),
        include=tuple(map(_own, modifier.group_labels or ())),
    )
    returns_bool = bool(modifier.return_bool) and operator not in _TRIMS
    return nodes.Binary(left.position, operator, left, right, returns_bool, matching)


def _selector(tree: Any, positions: Positions) -> nodes.Selector:
    if tree.matchers.or_matchers:
        raise BadQuery("parse error: `or` between label matchers is not PromQL")
    named = (nodes.Matcher("__name__", "=", _own(tree.name)),) if tree.name else ()
    matchers = named + tuple(
        nodes.Matcher(_own(matcher.name), _MATCH_OPERATORS[str(matcher.op)], matcher.value)
        for matcher in tree.matchers.matchers
    )
    position = positions.take("selector")[0]
    return nodes.Selector(position, matchers, _milliseconds(tree.offset), _at(tree.at))


_MATCH_OPERATORS: dict[str, nodes.MatchOperator] = {
    str(promql_parser.MatchOp.Equal): "=",
    str(promql_parser.MatchOp.NotEqual): "!=",
    str(promql_parser.MatchOp.Re): "=~",
    str(promql_parser.MatchOp.NotRe): "!~",
}


def _milliseconds(duration: timedelta | None) -> int:
    milliseconds = 0 if duration is None else duration // _MILLISECOND
    if abs(milliseconds) > nodes.LONGEST_DURATION:
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
