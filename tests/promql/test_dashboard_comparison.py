"""Queries of dashboards in both range semantics, by the tool that compares them."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter.promql.semantics import matches

ROOT = Path(__file__).parents[2]
QUERIES = ROOT / "tests" / "data" / "dashboard_queries.txt"
ONE = {(("a", "b"),): {0: 1.0}}


@pytest.fixture(scope="module")
def tool() -> Iterator[Any]:
    """benchmarks/dashboard_queries.py, as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("dashboard_queries")


def test_queries_have_an_answer_in_both_semantics(
    tool: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On series that match every selector."""
    real = importlib.import_module("prometheus_server")
    for module in (tool, real):
        monkeypatch.setattr(module, "found", lambda: False)
    assert tool.main([str(QUERIES), "--list"]) == 0
    printed = capsys.readouterr().out
    assert "selectors without one: 0" in printed
    assert "16  answered from intervals too" in printed


@pytest.mark.parametrize(
    ("samples", "intervals", "real", "passed"),
    [
        (ONE, ONE, None, True),
        (ONE, ONE, ONE, True),
        (ONE, ONE, {(): {0: 1.0}}, False),
        (ONE, {}, None, False),
        (ONE, "an error", None, False),
        ("an error", "an error", ONE, False),
        ("an error", "an error", "an error", True),
        ("an error", "an error", None, True),
    ],
)
def test_an_error_or_a_missing_answer_fails(
    tool: Any, samples: Any, intervals: Any, real: Any, passed: bool
) -> None:
    """Unless Prometheus refuses the query, too; a value that differs fails."""
    comparison = tool.Comparison(False)
    comparison.add("x", samples, intervals, real)
    assert comparison.passed is passed


def test_answers_are_compared_by_value(tool: Any) -> None:
    """But for rounding; NaN equals NaN."""
    nan = float("nan")
    assert tool.same({(): {0: 1.0, 1: nan}}, {(): {0: 1.0 + 1e-12, 1: nan}})
    for other in ({(): {0: 1.1}}, {(): {1: 1.0}}, {(("a", "b"),): {0: 1.0}}, {}):
        assert not tool.same({(): {0: 1.0}}, other)


@pytest.mark.parametrize(
    "selector",
    [
        'x{a=~"(b|c)/d.+", e!~"f.*", g!=""}',
        'x{a=~"b.*|c[0-9]{2}", a!="b"}',
        '{__name__=~"x|y", a=~"[^:]+:\\\\d+"}',
    ],
)
def test_labels_fulfill_all_matchers(tool: Any, selector: str) -> None:
    """Those of each selector are found."""
    matchers = tool.parse_query(selector).matchers
    labels = tool.labels_for(matchers)
    assert labels is not None
    assert matches(labels, matchers)
    assert tool.labels_for(tool.parse_query('x{a="b", a="c"}').matchers) is None
