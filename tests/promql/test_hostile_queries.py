"""Hostile queries: bounded work, a clear error, no crash."""

import contextlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promql.engine_tests.samples import Samples
from redmeter.promql import regex
from redmeter.promql.errors import BadQuery, Limits, QueryError
from redmeter.promql.evaluator import Engine
from redmeter.promql.parser import parse_query, scan_query
from redmeter.promql.semantics import SampledSeries
from support.fuzzing import assert_work_is_linear, fuzzed, fuzzed_slowly, grown, mutated

TIMES = np.arange(0, 600_000, 60_000, dtype=np.int64)


class Many:
    """A source with some series of every name."""

    def __init__(self, count: int) -> None:
        self.count = count

    def read(self, matchers: object, after: int, until: int) -> list[SampledSeries]:
        """Return the series, whatever is asked for."""
        del matchers, after, until
        return [
            SampledSeries(
                (("__name__", "x"), ("i", str(number))),
                TIMES,
                np.arange(len(TIMES), dtype=np.float64),
            )
            for number in range(self.count)
        ]


def engine(count: int = 3, limits: Limits | None = None) -> Engine:
    """Return an engine over some series."""
    return Engine(Samples(Many(count)), limits or Limits())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("(" * 1_000_000, "characters"),
        ("(" * 5_000 + "x" + ")" * 5_000, "nested"),
        ("abs(" * 101 + "x" + ")" * 101, "nested"),
        ("x" + "[5m:1m]" * 5, "parse error"),
        ("+".join(["x"] * 10_000), "operators"),
        ("-" * 60_000 + "1", "operators"),
        ("x @ -1", "offset"),
        ("x @ 1e50", "parse error"),
        ("x offset 200000y", "10,000 years"),
        ("x[5m", "parse error"),
        ("", "parse error"),
        ("x{a='b' or c='d'}", "parse error"),
        ("rate(x)", "parse error"),
        ("x + fill(0) y", "promql-binop-fill-modifiers"),
        ("x[5m] smoothed", "promql-extended-range-selectors"),
        ("rate(x[5m + 1m])", "promql-duration-expr"),
        ("x offset (1m)", "promql-duration-expr"),
        ("1 </ 2", "the operator </ trims histograms. Both of its sides are numbers$"),
        ("x </ bool 2", "parse error"),
        ("x < / 2", "parse error"),
        ("x offset step()", "promql-duration-expr"),
        ("rate(x[5m] smoothed)", "promql-extended-range-selectors"),
        ("limitk(1, x)", "promql-experimental-functions"),
        ("sort_by_label(x, 'i')", "promql-experimental-functions"),
        ("x[5m]", "range query"),
        ("'text'", "range query"),
        ("label_replace(x, '', '', 'i', '.*')", "label name"),
        ("label_replace(x, 'a', '', 'i', '(')", "regular expression"),
        ("count_values('\\xff', x)", r'invalid label name "\\xff"'),
        ("sum_over_time(x[100000d:1ms])", "steps"),
        ("topk(1e30, x)", "overflows"),
    ],
)
def test_a_hostile_query_is_refused(query: str, message: str) -> None:
    """With an error that says why."""
    with pytest.raises(QueryError, match=message):
        engine().range(query, 0, 600_000, 60_000)


def test_deep_and_long_queries_within_the_limits_are_answered() -> None:
    """The limits are what the evaluator really can do."""
    limits = Limits()
    engine().instant("(" * limits.nesting + "x" + ")" * limits.nesting, 60_000)
    engine().instant("abs(" * limits.nesting + "x" + ")" * limits.nesting, 60_000)
    engine().instant("+".join(["1"] * limits.operators), 60_000)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(steps=9), "11 steps"),
        (Limits(series=2), "3 series, more than 2"),
        (Limits(cells=32), "3 series with 11 values each, more than 32"),
    ],
)
def test_large_answers_are_refused(limits: Limits, message: str) -> None:
    """More steps, series or values than the limits allow."""
    with pytest.raises(QueryError, match=message):
        engine(3, limits).range("x", 0, 600_000, 60_000)
    with pytest.raises(QueryError, match=message):
        engine(3, limits).range("rate(x[5m])", 0, 600_000, 60_000)


def test_matching_is_bounded_by_cells() -> None:
    """Also where few series make many pairs."""
    with pytest.raises(QueryError, match="more than 20"):
        engine(3, Limits(cells=20)).range(
            "x * on () group_left vector(1) + on () group_left vector(1)", 0, 600_000, 60_000
        )


def test_a_query_can_be_interrupted() -> None:
    """The hook is called on the way."""

    def interrupt() -> None:
        raise QueryError("too late")

    with pytest.raises(QueryError, match="too late"):
        engine(3, Limits(interrupt=interrupt)).instant("x", 60_000)


@pytest.mark.parametrize(("start", "end", "step"), [(0, 10, 0), (0, 10, -1), (10, 0, 1)])
def test_an_impossible_range_is_refused(start: int, end: int, step: int) -> None:
    """With the words that clients know."""
    with pytest.raises(BadQuery, match=r"not accepted|before start"):
        engine().range("x", start, end, step)


@pytest.mark.parametrize(
    ("pattern", "backtracks"),
    [
        ("a|b|c", False),
        ("web-.*", False),
        (".*foo.*bar.*", False),
        (".*foo.*bar.*z", True),
        ("(a|b)-c", False),
        ("[0-9]+", False),
        ("(x+x+)+y", True),
        ("(a|aa)*", True),
        ("(a{1,9}){1,9}", True),
        ("a?a?a?a?aaaa", True),
        (".*a.*b.*c.*d", True),
        ("(?i)abc", True),
        ("a(?i:b)", True),
        ("[[:alpha:]]", True),
        (r"\pL", True),
        (r"\Qa.b\E", True),
    ],
)
def test_only_patterns_of_bounded_work_go_to_re(pattern: str, backtracks: bool) -> None:
    """All others go to google-re2."""
    assert (regex.compiled(pattern).backtracking is None) is backtracks


def test_a_long_pattern_is_refused_unless_it_lists_plain_texts() -> None:
    """Variables with many values make long alternatives."""
    with pytest.raises(BadQuery, match="20,000 characters"):
        regex.full_match("a." * 10_000)
    assert regex.full_match("|".join(f"web-{n}" for n in range(10_000)))("web-9999")


def test_a_pattern_without_google_re2_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package."""
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    regex.compiled.cache_clear()
    with pytest.raises(BadQuery, match="google-re2"):
        regex.compiled("(x+x+)+y")


@pytest.mark.parametrize(
    ("pattern", "text", "matching"),
    [
        ("a|b", "b", True),
        ("a|b", "ab", False),
        (r"a\.b|c", "a.b", True),
        (r"a\.b|c", "axb", False),
        ("a.*", "a\nb", True),
        ("a$", "a\n", False),
        ("", "", True),
        ("(?i)A+", "aaa", True),
        ("(x+x+)+y", "x" * 5000, False),
        ("x*x*y", "x" * 50_000, False),
        ("x*.*", "x" * 50_000, True),
    ],
)
def test_patterns_match_whole_texts(pattern: str, text: str, matching: bool) -> None:
    """Dots match line breaks."""
    assert regex.full_match(pattern)(text) is matching


def test_a_warning_names_the_line_and_column_of_its_cause() -> None:
    """Positions are those of Prometheus."""
    query = "sum by (i) (x)\n  # (comment\n  + rate(x{a='(\"'}[5m])"
    (info,) = engine().instant(query, 60_000).infos
    assert info.endswith('name does not end in _total/_sum/_count/_bucket: "x" (3:10)')


def scanned(text: str) -> None:
    """Do what depends on a text's length before the limits apply."""
    with contextlib.suppress(BadQuery):
        scan_query(text, Limits(text=10_000_000, nesting=10_000_000, operators=10_000_000))
    with contextlib.suppress(BadQuery):
        regex.Expression(text)


@fuzzed_slowly
@given(grown(('"\\\\', "'", "`", "[", "{", "=~'[", "#", "a ", "1e", '"', "\\\\", "(", "[:a", "\n")))
def test_the_scan_of_a_text_takes_linear_time(of_length: Callable[[int], str]) -> None:
    """Also of brackets and quotes that nothing closes."""
    assert_work_is_linear(scanned, of_length)


SEEDS = (
    'sum by (a, b) (rate(x_total{a=~"b|c",d!="e"}[5m] offset 1m)) / on (a) group_left (z) y',
    "histogram_quantile(0.9, sum without (le) (x)) > bool 3 or -y ^ 2",
    "max_over_time(deriv(x[5m])[1h:1m] @ end()) unless ignoring (i) topk(3, x)",
    'label_replace(x, "a", "$1", "i", "(.)") and x == 1e3 % Inf',
    "x @ start() offset -1d1h * on () group_right () vector(0x1f) atan2 1",
)


@fuzzed
@given(mutated(SEEDS))
def test_a_nearly_valid_query_is_answered_or_refused(query: str) -> None:
    """Nothing but QueryError comes out."""
    try:
        engine().range(query, 0, 600_000, 60_000)
    except QueryError:
        return


@given(st.text(max_size=50))
def test_any_text_is_parsed_or_refused(query: str) -> None:
    """Nothing but BadQuery comes out."""
    try:
        parse_query(query)
    except BadQuery:
        return
