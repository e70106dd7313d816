"""JSON of the API: from results of readings to dataclasses, and from these to text.

`convert` copies the fields of a schema from the attributes of the same names, and follows its type
hints into lists, mappings and other schemas. Only fields that have no attribute of their name are
given by the handlers.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from redmeter import results
from redmeter.analysis.comparing.changes import passed_of
from redmeter.dashboard.api import schemas
from redmeter.reading.logs.overview import LogOverview
from redmeter.reading.logs.window import LogWindow
from redmeter.results.summaries import distributions
from redmeter.store import Store
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import HOUR

T = TypeVar("T")
_Converter = Callable[[Any], Any]


def as_json(value: Any) -> bytes:
    """Return JSON of ASCII characters; null for numbers that are not finite."""
    options: dict[str, Any] = {"allow_nan": False, "separators": (",", ":"), "default": _fields}
    try:
        return json.dumps(value, **options).encode()
    except ValueError:
        return json.dumps(_finite(value), **options).encode()


def _fields(value: Any) -> dict[str, Any]:
    row: Any = type(value)
    return {name: getattr(value, name) for name in _names(row)}


@cache
def _names(row: Any) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass.

    Raises:
        TypeError: it is not one.
    """
    if not dataclasses.is_dataclass(row):
        raise TypeError(f"{row.__name__} is no part of an answer")
    return tuple(field.name for field in dataclasses.fields(row))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value):
        value = _fields(value)
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def convert(schema: type[T], source: object, **given: Any) -> T:
    """Make a row of a schema.

    Args:
        source: has an attribute for each field; a row of the schema itself is returned as it is.
        given: values of fields, instead of attributes.
    """
    if isinstance(source, schema):
        return source
    hashable: Any = schema
    fields = {}
    for name, converter in _converters(hashable):
        value = given[name] if name in given else getattr(source, name)
        fields[name] = value if converter is None else converter(value)
    return schema(**fields)


@cache
def _converters(schema: Any) -> tuple[tuple[str, _Converter | None], ...]:
    """Return the fields of a schema, each with the function that converts its value, if any."""
    hints = get_type_hints(schema)
    return tuple(
        (field.name, _converter(hints[field.name])) for field in dataclasses.fields(schema)
    )


def _converter(hint: Any) -> _Converter | None:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return partial(convert, hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is list:
        item = _converter(arguments[0])
        return partial(_list, item) if item else list
    if origin is dict:  # precisions are numbers, and keys of JSON are texts
        return partial(_mapping, _converter(arguments[1]))
    if NoneType in arguments:
        (inner,) = (each for each in arguments if each is not NoneType)
        item = _converter(inner)
        return partial(_optional, item) if item else None
    return None


def _list(item: _Converter, values: Iterable[Any]) -> list[Any]:
    return [item(value) for value in values]


def _mapping(item: _Converter | None, mapping: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): value if item is None else item(value) for key, value in mapping.items()}


def _optional(item: _Converter, value: Any) -> Any:
    return None if value is None else item(value)


def of_summary(
    summary: results.Summary,
    wanted: Sequence[float],
    threshold: float | None = None,
    *,
    over_time: bool,
) -> schemas.SummaryRow:
    """Convert a summary, with the wanted quantiles."""
    return convert(
        schemas.SummaryRow,
        summary,
        quantiles=dict(zip(map(_quantile, wanted), summary.quantiles(wanted), strict=True)),
        share_above=None if threshold is None else summary.share_above(threshold),
        buckets=[(one.low, one.high, one.count) for one in summary.buckets],
        over_time=_over_time(distributions(summary), wanted) if over_time else None,
    )


def _over_time(
    series: results.Series[Distribution | None], wanted: Sequence[float]
) -> schemas.SummaryOverTime:
    columns = [
        [None] * len(wanted) if one is None else one.quantiles(wanted) for one in series.values
    ]
    return schemas.SummaryOverTime(
        start=series.start,
        partial=series.partial,
        count=[0 if one is None else one.count for one in series.values],
        mean=[None if one is None else one.moments.exact_mean for one in series.values],
        quantiles={_quantile(q): [each[at] for each in columns] for at, q in enumerate(wanted)},
    )


def _quantile(q: float) -> str:
    return f"{q:.15g}"


def of_patterns(found: LogOverview | LogWindow, now: float) -> dict[str, Any]:
    """Convert the changes and the frequent patterns of logs, by the names of their fields."""

    def rows(schema: type[T], patterns: Sequence[results.Change | results.Frequency]) -> list[T]:
        return [
            convert(schema, each, expected=each.before * passed_of(each, now) / HOUR)
            for each in patterns
        ]

    return {
        "changes": rows(schemas.ChangeRow, found.changes),
        "frequent": rows(schemas.FrequencyRow, found.frequent),
    }


def read_from(primary: Store) -> Literal["primary", "replica"]:
    """Return which servers of a store are read."""
    return "primary" if primary.reader is primary else "replica"
