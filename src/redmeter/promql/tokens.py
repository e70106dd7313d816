"""A scan of a query's text before it is parsed.

It bounds what the parser has to do, whose time is quadratic in operators and nesting, and finds
the positions of calls, selectors, parentheses, numbers and strings, which the parser does not
report. Both trees and texts list each of these in the same order.
"""

import itertools
import re
from collections import defaultdict, deque

from redmeter.promql.errors import BadQuery, UnsupportedQuery
from redmeter.promql.limits import Limits

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|\#[^\n]*)
    | (?P<string>"(?:\\.|[^"\\])*(?:"|\\?\Z)|'(?:\\.|[^'\\])*(?:'|\\?\Z)|`[^`]*(?:`|\Z))
    | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[a-z0-9]*)
    | (?P<word>[A-Za-z_:][A-Za-z0-9_:]*)
    | (?P<sign>==|!=|=~|!~|>=|<=|[-+*/%^<>=@(){}\[\],:])
    """,
    re.VERBOSE | re.DOTALL,
)
#: Words that are followed by a list of labels or a value in parentheses.
_LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right", "fill"}
_LISTS |= {"fill_left", "fill_right"}
_OPERATORS = {
    "and",
    "or",
    "unless",
    "atan2",
    "bool",
    "offset",
    *"+-*/%^<>@",
    "==",
    "!=",
    ">=",
    "<=",
}
_AGGREGATIONS = {
    *("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk"),
    *("count_values", "quantile", "limitk", "limit_ratio"),
}
_NUMBERS = {"inf", "nan"}
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


def scan(query: str, limits: Limits) -> Positions:
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
    _check_features(query, tokens)
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
        elif kind == "number" and before not in ("offset", "@"):
            positions.add("number", position, text)
            before = "number"
        elif kind == "string":
            positions.add("string", position, text)
            before = "string"
        elif kind == "word":
            before = _read_word(positions, position, text, before, after)
        elif text not in ("-", "+") or before not in ("offset", "@"):
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


def _check_features(query: str, tokens: list[tuple[str, str, int]]) -> None:
    """Raise UnsupportedQuery for syntax of feature flags, which the parser does not know."""
    in_brackets = False
    for (kind, text, start), (_, following, next_start) in itertools.pairwise(
        [*tokens, ("", "", 0)]
    ):
        if text in ("[", "]"):
            in_brackets = text == "["
        elif kind == "word" and text.lower() in ("smoothed", "anchored") and following != "(":
            message = f"the modifier {text.lower()} is not supported"
            raise UnsupportedQuery(message, "promql-extended-range-selectors")
        elif in_brackets and (text in _OPERATORS or (kind == "word" and following == "(")):
            raise UnsupportedQuery(*_DURATIONS)
        if text.lower() == "offset" and following == "(":
            raise UnsupportedQuery(*_DURATIONS)
        if query[start : start + 2] in ("</", ">/") and next_start == start + 1:
            message = "the operators </ and >/, which trim histograms, are not supported"
            raise UnsupportedQuery(message, "trim-operators")


def _check_size(tokens: list[tuple[str, str, int]], limits: Limits) -> None:
    depth = deepest = operators = 0
    before = ""
    for kind, text, _ in tokens:
        if kind == "sign" and text in ("(", "[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif kind == "sign" and text in (")", "]", "}"):
            depth -= 1
        elif kind in ("sign", "word") and text.lower() in _OPERATORS:
            operators += 1
        if before == "@" and text == "-":
            raise BadQuery("a time before 1970 after @ is not supported. Use offset instead")
        before = text
    if deepest > limits.nesting:
        raise BadQuery(
            f"the query is nested {deepest:,} levels deep, more than {limits.nesting:,}."
            " Remove parentheses"
        )
    if operators > limits.operators:
        raise BadQuery(
            f"the query has {operators:,} operators, more than {limits.operators:,}. Split it up"
        )
