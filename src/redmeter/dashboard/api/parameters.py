"""What an endpoint of the API is: its handler and its parameters; and how a query is read by these.

Error texts and openapi.json are derived from the rows of parameters. Unknown and repeated ones are
refused before the store is asked, because a typing error would be an answer to another question.
Whether the store keeps a precision, and which parameters exclude each other, is checked by the
handlers, each of which is in the module of its area, below its row.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from redmeter.clock import seconds_of
from redmeter.dashboard.api.schemas import EndpointAnswer
from redmeter.dashboard.errors import HTTPError
from redmeter.errors import InvalidName, InvalidValue, shown
from redmeter.names import MAX_BYTES, MAX_SERIES_BYTES, canonical
from redmeter.reading.diagnosis.verdict_data import AGAINST
from redmeter.reading.page.background_ranking import RowRankings
from redmeter.reading.page.overview import Watch
from redmeter.reading.ranking import Order
from redmeter.store import Store
from redmeter.stored.exception import check_group
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import MAX_PRECISION
from redmeter.stored.message import check_logger

#: Times are accepted up to the year 2100: later ones are a mistake of units.
MAX_MOMENT = 4_102_444_800
#: Longest query of a URL, bytes: what servers take at least, with room for headers.
MAX_QUERY = 32_768
#: Most labels to filter by.
MAX_PAIRS = 10

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ParameterType:
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
    kind: ParameterType
    help: str
    #: Where it is not given; ignored for a parameter that may be given several times.
    default: Any = None
    required: bool = False
    #: How often it may be given. More than once: its value is a tuple.
    most: int = 1


def whole(low: int, high: int, what: str = "a whole number") -> ParameterType:
    """Return the type of whole numbers."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise ValueError
        return int(text)

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return ParameterType(read, schema, f"give {what}, {low:,} to {high:,}")


def number(low: float, high: float, what: str) -> ParameterType:
    """Return the type of numbers."""

    def read(text: str) -> float:
        if not re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?", text):
            raise ValueError
        number = float(text) if len(text) <= 40 else math.nan
        if not low <= number <= high:
            raise ValueError
        return number

    return ParameterType(
        read,
        {"type": "number", "minimum": low, "maximum": high},
        f"give {what}, {low:,} to {high:,}",
    )


def bounded_text(low: int, high: int, allowed: str) -> ParameterType:
    """Return the type of texts, by their length in bytes."""

    def read(text: str) -> str:
        if not low <= len(text.encode()) <= high or "\0" in text:
            raise ValueError
        return text

    return ParameterType(read, {"type": "string", "minLength": low, "maxLength": high}, allowed)


def choice(*words: str) -> ParameterType:
    """Return the type of some words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return ParameterType(
        read, {"type": "string", "enum": list(words)}, f"give one of {', '.join(words)}"
    )


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


def _last(text: str) -> str:
    if not seconds_of(text):
        raise ValueError
    return text


_MAX_LABEL = 100
_LABEL = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENTILE = r"p[0-9]{1,2}(\.[0-9]{1,6})?|p100"

SERIES_NAME = ParameterType(
    canonical,
    {"type": "string", "minLength": 1, "maxLength": MAX_SERIES_BYTES},
    f'give a name of 1 to {MAX_SERIES_BYTES} bytes, with labels as hits{{plan="pro"}}',
)
NAME_PATTERN = bounded_text(
    1, MAX_SERIES_BYTES, f"give 1 to {MAX_SERIES_BYTES} bytes; * is any text, ? one character"
)
CONTAINED_TEXT = bounded_text(0, MAX_BYTES, f"give up to {MAX_BYTES} bytes that a route contains")
LABEL_NAME = ParameterType(
    _label,
    {"type": "string", "maxLength": _MAX_LABEL, "pattern": f"^{_LABEL}$"},
    "give the key of a label, e.g. route",
)
LABEL_PAIR = ParameterType(
    _pair,
    {"type": "string", "maxLength": MAX_BYTES, "pattern": f"^{_LABEL}="},
    "give LABEL=VALUE, e.g. status=5xx",
)
SWITCH = ParameterType(_switch, {"type": "integer", "enum": [0, 1]}, "give 0 or 1")
WIDTH = whole(1, MAX_PRECISION, "a whole number of seconds")
MOMENT = number(0, MAX_MOMENT, "Unix seconds")
ALERT_NAME = bounded_text(1, 2 * MAX_SERIES_BYTES, "give the name of an alert")
MARK_LABEL = bounded_text(1, MAX_BYTES, "give the label of a mark")
LOGGER_NAME = ParameterType(
    check_logger,
    {"type": "string", "minLength": 1, "maxLength": MAX_BYTES},
    "give the name of a logger",
)
SEVERITY_NAME = bounded_text(1, 40, "give a severity, e.g. error")
EXCEPTION_ID = ParameterType(
    check_group,
    {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    "give 16 hexadecimal digits, as /api/exceptions lists them",
)
ROUTE_NAME = bounded_text(1, MAX_BYTES, "give a route, e.g. /cart")
_LAST = ParameterType(
    _last,
    {"type": "string", "pattern": "^[0-9]{1,9}[a-z]*$"},
    "give a duration as 2h, or a number of intervals",
)
ROW_ORDER = ParameterType(
    _order,
    {"type": "string", "pattern": f"^(count|total|mean|failing|{_PERCENTILE})$"},
    "give count, total, mean, failing, or a percentile as p95",
)


# --- Parameters of several endpoints


def precision_row(default: int = 60) -> Parameter:
    """Return the parameter for the width of an interval, seconds."""
    text = "Width of an interval, seconds: one that the store keeps; the error lists them."
    return Parameter("precision", WIDTH, text, default)


def limit_row(most: int, default: int, of: str) -> Parameter:
    """Return the parameter for the number of things listed, at most so many."""
    return Parameter("limit", whole(1, most), f"Number of {of}.", default)


SINCE = Parameter("since", MOMENT, "Start of the window, Unix seconds.")
UNTIL = Parameter("until", MOMENT, "End of the window, Unix seconds; else now.")
#: The window of a reader that chooses a precision where none is named.
WINDOW = (
    Parameter(
        "precision",
        WIDTH,
        "Width of an interval, seconds; default: the finest that is kept for the whole window, and "
        "without any of these parameters the last hour.",
    ),
    SINCE,
    UNTIL,
    Parameter("last", _LAST, "The window up to now instead: 2h, or a number of intervals."),
)
COMPARED = Parameter(
    "against",
    choice(*AGAINST),
    "The period that figures are compared with.",
    "previous",
)
FRAME_ROWS = (
    SINCE,
    UNTIL,
    COMPARED,
    Parameter(
        "last",
        whole(1, MAX_PRECISION, "a whole number of seconds"),
        "Length of a window that ends now, seconds, instead of `since` and `until`.",
    ),
)
ONE_NAME = Parameter("name", SERIES_NAME, "A series, with its labels.", required=True)
LABEL_FILTERS = Parameter(
    "label", LABEL_PAIR, "Only label sets with this label, LABEL=VALUE.", most=MAX_PAIRS
)
EXACT_NAME = Parameter(
    "exact", SWITCH, "1: only the series stored under the name, read without the index.", False
)
MATCHING = Parameter("pattern", NAME_PATTERN, "`*` any text, `?` one character, `[abc]`.", "*")
SERIES_KIND = Parameter("kind", choice(*SERIES_KINDS), "Kind of the series.", "counter")

# --- Endpoints

ParameterValues = Mapping[str, Any]


class HandlerResult:
    """What a handler read.

    Args:
        now: the server's clock, Unix seconds.
        source, given: as of serialize.convert().
    """

    def __init__(self, now: float, source: object, **given: Any) -> None:
        self.now, self.source, self.given = now, source, given


class Context(NamedTuple):
    """What handlers read.

    Attributes:
        store: the store, or its replicas; unreachable nodes are left out, and named.
        primary: the store itself.
        watch, rankings: keep what several requests share.
    """

    store: Store
    primary: Store
    watch: Watch
    rankings: RowRankings


Handler = Callable[[Context, ParameterValues], HandlerResult]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A question that the API answers."""

    path: str
    #: Reads the store of a context by the parsed parameters, in two round trips at most.
    handler: Handler
    summary: str
    answer: type[EndpointAnswer]
    parameters: tuple[Parameter, ...]


def endpoint(
    path: str, summary: str, answer: type[EndpointAnswer], *parameters: Parameter
) -> Callable[[Handler], Endpoint]:
    """Return a decorator that makes an endpoint of its handler."""
    return lambda handler: Endpoint(path, handler, summary, answer, parameters)


# --- Reading a query


def parse_query(endpoint: Endpoint, query: bytes) -> dict[str, Any]:
    """Read the query of a URL.

    Returns:
        A value for every parameter; a tuple where it may be given several times.

    Raises:
        HTTPError: 400, or 414 where it is too long.
    """
    pairs = _pairs(query)
    table = {parameter.name: parameter for parameter in endpoint.parameters}
    texts: dict[str, list[str]] = {}
    for name, text in pairs:
        if name not in table:
            known = ", ".join(table) or "none"
            raise _bad(
                "unknown-parameter", f"there is no parameter {_cut(name)}", f"known: {known}"
            )
        texts.setdefault(name, []).append(text)
    return {name: _value(row, texts.get(name, [])) for name, row in table.items()}


def _pairs(query: bytes) -> list[tuple[str, str]]:
    if len(query) > MAX_QUERY:
        message = f"the query has {len(query):,} bytes"
        raise HTTPError(
            414, "query-too-long", message, f"at most {MAX_QUERY:,}: ask for fewer names"
        )
    try:
        text = query.decode()
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except UnicodeDecodeError:
        raise _bad("not-utf-8", "the query is no UTF-8", "encode it as UTF-8") from None
    except ValueError:
        raise _bad("too-many", "over 1,000 parameters", "ask for fewer at a time") from None


def _value(row: Parameter, texts: list[str]) -> Any:
    if not texts:
        if row.required:
            raise _bad("missing-parameter", f"{row.name} is missing", row.kind.allowed)
        return () if row.most > 1 else row.default
    if row.most == 1 and len(texts) > 1:
        raise _bad("doubled-parameter", f"{row.name} is given {len(texts)} times", "give it once")
    if len(texts) > row.most:
        fix = f"at most {row.most}: ask for fewer at a time"
        raise _bad("too-many", f"{row.name} is given {len(texts):,} times", fix)
    values = [_one(row, text) for text in texts]
    return tuple(dict.fromkeys(values)) if row.most > 1 else values[0]


def _one(row: Parameter, text: str) -> Any:
    try:
        return row.kind.read(text)
    except (InvalidName, InvalidValue) as error:
        message = f"{row.name}={_cut(text)}: {error.reason}"
    except (ValueError, LookupError):
        message = f"{row.name}={_cut(text)} cannot be used"
    raise _bad("bad-parameter", message, row.kind.allowed)


def check_order_of_times(values: Mapping[str, Any]) -> None:
    """Check that a window does not end before it starts.

    Raises:
        HTTPError: it does.
    """
    since, until = values.get("since"), values.get("until")
    if since is not None and until is not None and since > until:
        raise _bad(
            "start-after-end", f"since={since:.15g} is after until={until:.15g}", "swap them"
        )


def bad_combination(message: str, fix: str) -> HTTPError:
    """Return the error for parameters that exclude each other."""
    return _bad("bad-combination", message, fix)


def _bad(code: str, message: str, fix: str) -> HTTPError:
    return HTTPError(400, code, message, fix)


def _cut(text: str) -> str:
    """Return a parameter's text for an error message: ASCII, and short."""
    return shown(text.encode("ascii", "backslashreplace").decode(), 80)
