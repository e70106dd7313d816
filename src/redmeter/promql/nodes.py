"""The syntax tree of a PromQL query, as the evaluator reads it.

Times and durations are whole milliseconds. `position` is the 1-based "line:column" where a node
begins in the query, for warnings.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

#: 10,000 years.
LONGEST_DURATION = 10_000 * 365 * 86_400_000

MatchOperator = Literal["=", "!=", "=~", "!~"]


class ValueType(Enum):
    """The type of an expression's value."""

    SCALAR = "scalar"
    VECTOR = "vector"
    MATRIX = "matrix"
    STRING = "string"


@dataclass(frozen=True)
class Matcher:
    """One condition on a label."""

    name: str
    operator: MatchOperator
    value: str


@dataclass(frozen=True)
class Node:
    """What every expression has."""

    position: str


@dataclass(frozen=True)
class Number(Node):
    """A number literal."""

    value: float


@dataclass(frozen=True)
class String(Node):
    """A string literal. Bytes that are no UTF-8 are surrogate escapes."""

    value: str


@dataclass(frozen=True)
class Selector(Node):
    """An instant vector selector.

    Attributes:
        matchers: a series is selected if it fulfills all of them.
        offset: how far back to look, in milliseconds; negative for later.
        at: a fixed time in milliseconds, or the start or the end of the query.
    """

    matchers: tuple[Matcher, ...]
    offset: int
    at: int | Literal["start", "end"] | None


@dataclass(frozen=True)
class RangeSelector(Node):
    """A range vector selector: the window in milliseconds."""

    selector: Selector
    window: int


@dataclass(frozen=True)
class Subquery(Node):
    """An expression evaluated over a window; `step` None is the evaluator's default."""

    expression: Node
    window: int
    step: int | None
    offset: int
    at: int | Literal["start", "end"] | None


@dataclass(frozen=True)
class Call(Node):
    """A function call."""

    function: str
    arguments: tuple[Node, ...]
    returns: ValueType


@dataclass(frozen=True)
class Aggregation(Node):
    """An aggregation; `without`: whether `labels` are removed, instead of kept."""

    operator: str
    expression: Node
    parameter: Node | None
    labels: tuple[str, ...]
    without: bool


@dataclass(frozen=True)
class Matching:
    """How the two sides of a binary operation find each other.

    Attributes:
        on: `labels` are the only ones compared; else they are ignored.
        many: the side with several series to one of the other: None, "left" or "right".
        include: labels that the result takes from the side with one series.
    """

    on: bool
    labels: tuple[str, ...]
    many: Literal["left", "right"] | None
    include: tuple[str, ...]


@dataclass(frozen=True)
class Binary(Node):
    """A binary operation."""

    operator: str
    left: Node
    right: Node
    returns_bool: bool
    matching: Matching


@dataclass(frozen=True)
class Negation(Node):
    """A minus sign before an expression."""

    expression: Node


@dataclass(frozen=True)
class Parentheses(Node):
    """An expression in parentheses."""

    expression: Node


def bare(node: Node) -> Node:
    """Return a node without the parentheses around it."""
    while isinstance(node, Parentheses):
        node = node.expression
    return node


def value_type(node: Node) -> ValueType:
    """Return the type of a node's value."""
    node = bare(node)
    match node:
        case Number():
            return ValueType.SCALAR
        case String():
            return ValueType.STRING
        case RangeSelector() | Subquery():
            return ValueType.MATRIX
        case Call():
            return node.returns
        case Negation():
            return value_type(node.expression)
        case Binary():
            scalars = value_type(node.left) is value_type(node.right) is ValueType.SCALAR
            return ValueType.SCALAR if scalars else ValueType.VECTOR
        case _:
            return ValueType.VECTOR
