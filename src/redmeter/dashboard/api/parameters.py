"""What a parameter may be: how its text is read, and the JSON schema of that.

The table of parameters is in endpoints.py.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redmeter.names import MAX_BYTES, canonical
from redmeter.reading.ranking import Order
from redmeter.stored.exception import check_group
from redmeter.stored.keys import MAX_PRECISION, MAX_SAMPLES
from redmeter.stored.message import check_logger

#: Times are accepted up to the year 2100: later ones are a mistake of units.
MAX_MOMENT = 4_102_444_800

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a parameter may be."""

    #: Reads a text; raises ValueError where it is something else.
    read: Callable[[str], Any]
    #: JSON schema of one value.
    schema: Schema
    #: The allowed values, for the error: "give …".
    allowed: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of an endpoint's table."""

    name: str
    kind: Kind
    help: str
    #: Where it is not given; ignored for a parameter that may be given several times.
    default: Any = None
    required: bool = False
    #: How often it may be given. More than once: its value is a tuple.
    most: int = 1


def whole(low: int, high: int, what: str = "a whole number") -> Kind:
    """Return the kind of whole numbers."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise ValueError
        return int(text)

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Kind(read, schema, f"give {what}, {low:,} to {high:,}")


def number(low: float, high: float, what: str) -> Kind:
    """Return the kind of numbers."""

    def read(text: str) -> float:
        if not re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?", text):
            raise ValueError
        number = float(text) if len(text) <= 40 else math.nan
        if not low <= number <= high:
            raise ValueError
        return number

    return Kind(
        read,
        {"type": "number", "minimum": low, "maximum": high},
        f"give {what}, {low:,} to {high:,}",
    )


def text(low: int, high: int, allowed: str) -> Kind:
    """Return the kind of texts, by their length in bytes."""

    def read(text: str) -> str:
        if not low <= len(text.encode()) <= high or "\0" in text:
            raise ValueError
        return text

    return Kind(read, {"type": "string", "minLength": low, "maxLength": high}, allowed)


def choice(*words: str) -> Kind:
    """Return the kind of some words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return Kind(read, {"type": "string", "enum": list(words)}, f"give one of {', '.join(words)}")


def _switch(text: str) -> bool:
    return {"0": False, "1": True}[text]


def _pair(text: str) -> tuple[str, str]:
    label, equals, value = text.partition("=")
    if not equals or len(text) > MAX_BYTES:
        raise ValueError
    canonical("x", {label: value})
    return label, value


def _label(text: str) -> str:
    if len(text) > _MAX_LABEL:
        raise ValueError
    canonical("x", {text: ""})
    return text


def _order(text: str) -> str:
    return Order.parse(text).word


_MAX_LABEL = 100
_LABEL = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENTILE = r"p[0-9]{1,2}(\.[0-9]{1,6})?|p100"

NAME = Kind(
    canonical,
    {"type": "string", "minLength": 1, "maxLength": MAX_BYTES},
    f'give a name of 1 to {MAX_BYTES} bytes, with labels as hits{{plan="pro"}}',
)
PATTERN = text(1, MAX_BYTES, f"give 1 to {MAX_BYTES} bytes; * is any text, ? one character")
FILTER = text(0, MAX_BYTES, f"give up to {MAX_BYTES} bytes that a route contains")
LABEL = Kind(
    _label,
    {"type": "string", "maxLength": _MAX_LABEL, "pattern": f"^{_LABEL}$"},
    "give the key of a label, e.g. route",
)
PAIR = Kind(
    _pair,
    {"type": "string", "maxLength": MAX_BYTES, "pattern": f"^{_LABEL}="},
    "give LABEL=VALUE, e.g. status=5xx",
)
SWITCH = Kind(_switch, {"type": "integer", "enum": [0, 1]}, "give 0 or 1")
WIDTH = whole(1, MAX_PRECISION, "a whole number of seconds")
MOMENT = number(0, MAX_MOMENT, "Unix seconds")
MARK = text(1, MAX_BYTES, "give the label of a mark")
LOGGER = Kind(
    check_logger,
    {"type": "string", "minLength": 1, "maxLength": MAX_BYTES},
    "give the name of a logger",
)
SEVERITY = text(1, 40, "give a severity, e.g. error")
GROUP = Kind(
    check_group,
    {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    "give 16 hexadecimal digits, as /api/exceptions lists them",
)
ROUTE = text(1, MAX_BYTES, "give a route, e.g. /cart")
INTERVALS = whole(1, MAX_SAMPLES)
ORDER = Kind(
    _order,
    {"type": "string", "pattern": f"^(count|total|mean|failing|{_PERCENTILE})$"},
    "give count, total, mean, failing, or a percentile as p95",
)
