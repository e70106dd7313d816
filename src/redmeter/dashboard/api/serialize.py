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
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from redmeter import results
from redmeter.analysis.comparing.changes import passed_of
from redmeter.dashboard.api import rows
from redmeter.reading.page import overview as reading_overview
from redmeter.results.summaries import distributions
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
) -> rows.Summary:
    """Convert a summary, with the wanted quantiles."""
    return convert(
        rows.Summary,
        summary,
        quantiles=_quantiles(wanted, summary.quantiles(wanted)),
        share_above=None if threshold is None else summary.share_above(threshold),
        buckets=[(one.low, one.high, one.count) for one in summary.buckets],
        over_time=_over_time(distributions(summary), wanted) if over_time else None,
    )


def _over_time(
    series: results.Series[Distribution | None], wanted: Sequence[float]
) -> rows.OverTime:
    columns = [
        [None] * len(wanted) if one is None else one.quantiles(wanted) for one in series.values
    ]
    return rows.OverTime(
        start=series.start,
        partial=series.partial,
        count=[0 if one is None else one.count for one in series.values],
        mean=[None if one is None else one.moments.exact_mean for one in series.values],
        quantiles={f"{q:.15g}": [column[at] for column in columns] for at, q in enumerate(wanted)},
    )


def _quantiles(
    wanted: Sequence[float], values: Sequence[float | None]
) -> Mapping[str, float | None]:
    return {f"{q:.15g}": value for q, value in zip(wanted, values, strict=True)}


def of_frequency(one: results.Frequency, now: float) -> rows.FrequencyRow:
    """Convert the frequency of a pattern."""
    return convert(rows.FrequencyRow, one, expected=_expected(one, now))


def of_change(change: results.Change, now: float) -> rows.ChangeRow:
    """Convert a change."""
    return convert(rows.ChangeRow, change, expected=_expected(change, now))


def _expected(one: results.Frequency, now: float) -> float:
    return one.before * passed_of(one, now) / HOUR


def of_numbers(numbers: reading_overview.KeyFigures) -> rows.Numbers:
    """Convert the five numbers of the overview."""
    hits, slowest, logged = numbers.hits, numbers.slowest, numbers.logged
    return convert(
        rows.Numbers,
        numbers,
        hits=convert(rows.Hits, hits, name=hits.name or None),
        slowest=convert(
            rows.Slowest, slowest, route=None if slowest.value is None else slowest.name
        ),
        logged=convert(
            rows.Logged,
            logged,
            value=None if logged.value is None else int(logged.value),
            before=logged.count_before,
            expected=logged.before,
        ),
    )
