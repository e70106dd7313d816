"""Answers as text: fast, and the same as by object."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from promql.interval_source import Memory, labels_of
from redmeter.promql.answers import as_data, json_text
from redmeter.promql.evaluator import Engine
from redmeter.promql.intervals import Intervals
from redmeter.promql.values import format_float, format_floats
from support.examples import scaled

NOW = 100_000.5
QUERIES = (
    *(
        "x_total",
        "rate(x_total[10s])",
        "h",
        "h or x_total",
        "x_total / 0",
        "vector(1e-9)",
        "nothing",
    ),
    *("x_total * 1e20", "-vector(0)", "time()", "1", '"text"', "vector(0) / vector(0)"),
)


@pytest.mark.parametrize("query", [*QUERIES, "x_total[1m]", "h[1m]"])
@pytest.mark.parametrize("most", [None, 1])
def test_the_text_of_an_answer_is_that_of_its_data(query: str, most: int | None) -> None:
    """Instants and ranges, floats and histograms, with series that begin within the range."""
    memory = Memory(NOW, {1: 10, 5: 12, 60: 10})
    memory.counters[labels_of("x_total", a='"ü"')] = [(99_950, 4), (99_990, 1)]
    memory.counters[labels_of("x_total", a="b")] = [(99_970, 4)]
    memory.natives[labels_of("h")] = {1: [(99_970, 60)], 17: [(99_980, 40)]}
    engine = Engine(Intervals(memory))
    answers = [engine.instant(query, 99_996_000)]
    if "[1m]" not in query and '"' not in query:
        answers.append(engine.range(query, 99_940_000, 99_999_500, 7_500))
    for answer in answers:
        expected = json.loads(json.dumps(as_data(answer)))
        if answer.kind.value in ("vector", "matrix"):
            expected["result"] = expected["result"][:most]
        assert json.loads(json_text(answer, most)) == expected


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=8))
@example([0.0, -0.0, 10.0, 100.5, 1e16, 5e-324, 0.1])
@settings(max_examples=scaled(60), deadline=None)
def test_many_numbers_are_written_as_each_of_them(numbers: list[float]) -> None:
    """Whole ones without a point, none with an exponent."""
    assert format_floats(np.array(numbers, np.float64)) == [format_float(one) for one in numbers]
    for number in numbers:
        text = format_float(number)
        assert "e" not in text
        assert not text.endswith(".0")
        assert np.array_equal(float(text), number, equal_nan=True)
