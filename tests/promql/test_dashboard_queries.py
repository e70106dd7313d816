"""Queries of public dashboards: all parse, and are evaluated without an error of ours."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from promql.engine_tests.samples import Samples
from redmeter.promql.evaluator import Engine
from redmeter.promql.nodes import Matcher
from redmeter.promql.semantics import SampledSeries, matches
from support.realdata import FOLDER, NAMED

QUERIES = FOLDER / "prometheus" / "dashboard_queries.txt"
TIMES = np.arange(0, 3_600_000, 15_000, dtype=np.int64)


class Anything:
    """A source with one series for each selector, made to match it."""

    def __init__(self) -> None:
        self.unmatched: list[Sequence[Matcher]] = []

    def read(self, matchers: Sequence[Matcher], after: int, until: int) -> list[SampledSeries]:
        """Return a counter whose labels fulfill the matchers."""
        del after, until
        labels = {"__name__": "anything", "instance": "one"}
        for matcher in matchers:
            if matcher.operator == "=":
                labels[matcher.name] = matcher.value
            elif matcher.operator == "=~":
                first = re.sub(r"[.][*+]", "a", matcher.value.strip("()").split("|")[0])
                labels[matcher.name] = re.sub(r"\\(.)", r"\1", re.sub(r"[()^$?]", "", first))
            elif matcher.operator == "!=":
                labels.setdefault(matcher.name, f"not {matcher.value}")
        pairs = tuple(sorted((name, value) for name, value in labels.items() if value))
        if not matches(pairs, matchers):
            self.unmatched.append(matchers)
            return []
        return [SampledSeries(pairs, TIMES, np.arange(len(TIMES), dtype=np.float64))]


@pytest.mark.realdata
@pytest.mark.slow
def test_every_query_of_public_dashboards_is_evaluated() -> None:
    """None is refused, and most have an answer although few labels of the series are equal."""
    if not QUERIES.exists():
        pytest.skip(f"missing: {QUERIES}: set {NAMED} to the folder that holds it")
    source = Anything()
    engine = Engine(Samples(source))
    answered = total = 0
    for query in QUERIES.read_text(encoding="utf-8").splitlines():
        answer = engine.range(query, 1_800_000, 3_600_000, 600_000)
        answered += len(answer.value) > 0
        total += 1
    assert total == 5843
    assert answered > 0.75 * total
    assert len(source.unmatched) < 0.1 * total
