"""The syntax tree of a PromQL query, as the evaluator reads it.

Times and durations are whole milliseconds. `position` is the 1-based "line:column" where a node
begins in the query, for warnings.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

MatchOperator = Literal["=", "!=", "=~", "!~"]


class Kind(Enum):
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

    @property
    def name(self) -> str:
        """Return the metric name that the selector asks for, or "" where it names none."""
        for matcher in self.matchers:
            if matcher.name == "__name__" and matcher.operator == "=":
                return matcher.value
        return ""


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
    returns: Kind


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


def kind_of(node: Node) -> Kind:
    """Return the type of a node's value."""
    node = bare(node)
    match node:
        case Number():
            return Kind.SCALAR
        case String():
            return Kind.STRING
        case RangeSelector() | Subquery():
            return Kind.MATRIX
        case Call():
            return node.returns
        case Negation():
            return kind_of(node.expression)
        case Binary():
            scalars = kind_of(node.left) is kind_of(node.right) is Kind.SCALAR
            return Kind.SCALAR if scalars else Kind.VECTOR
        case _:
            return Kind.VECTOR


def metric_name(node: Node) -> str:
    """Return the metric name that an argument of a function selects, or ""."""
    node = bare(node)
    if isinstance(node, RangeSelector):
        return node.selector.name
    return node.name if isinstance(node, Selector) else ""
