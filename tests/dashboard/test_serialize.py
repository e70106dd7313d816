"""JSON of the API: rows are made of results by their type hints, and become text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from redmeter.dashboard.api.serialize import as_json, convert


@dataclass(frozen=True, kw_only=True)
class Point:
    """A row."""

    start: int
    value: float | None


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of rows."""

    name: str
    points: list[Point]
    newest: Point | None
    counts: dict[str, int]
    unit: str = ""


class Sample(NamedTuple):
    """A result; the schema does not have its last field."""

    start: int
    value: float | None
    internal: object


class Found(NamedTuple):
    """Results."""

    name: str
    points: tuple[Sample, ...]
    newest: Sample | None
    counts: Mapping[int, int]


def test_fields_are_copied_by_name_and_rows_within_rows_are_converted() -> None:
    """Attributes without a field are left out; a given field needs no attribute."""
    samples = (Sample(60, 1.0, object()), Sample(120, None, object()))
    line = convert(Line, Found("hits", samples, samples[1], {60: 3}), unit="seconds")
    assert line == Line(
        name="hits",
        points=[Point(start=60, value=1.0), Point(start=120, value=None)],
        newest=Point(start=120, value=None),
        counts={"60": 3},
        unit="seconds",
    )
    assert convert(Line, line) is line
    assert convert(Line, Found("hits", (), None, {}), unit="", name="other").newest is None


def test_a_field_without_a_value_is_an_error() -> None:
    """Nothing is made up."""
    with pytest.raises(AttributeError, match="unit"):
        convert(Line, Found("hits", (), None, {}))


def test_rows_become_json_with_null_for_what_is_not_finite() -> None:
    """At any depth; what is no row is an error."""
    points = [Point(start=0, value=float("nan")), Point(start=1, value=2.5)]
    line = Line(name="é", points=points, newest=None, counts={"1": 2})
    text = as_json({"rows": [line]})
    assert text.isascii()
    assert json.loads(text)["rows"] == [
        {
            "name": "é",
            "points": [{"start": 0, "value": None}, {"start": 1, "value": 2.5}],
            "newest": None,
            "counts": {"1": 2},
            "unit": "",
        }
    ]
    with pytest.raises(TypeError, match="object"):
        as_json({"row": object()})
