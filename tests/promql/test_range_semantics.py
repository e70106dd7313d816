"""Range functions over samples: closed forms, and range queries that equal instant queries."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promql.engine_tests.samples import Samples
from redmeter.promql.evaluator import Answer, Engine
from redmeter.promql.nodes import Matcher
from redmeter.promql.semantics import SampledSeries, matches
from redmeter.promql.values import LabelSet, Vector
from support.examples import scaled


class Kept:
    """Series in memory."""

    def __init__(self, *series: SampledSeries) -> None:
        self.series = series

    def read(self, matchers: Sequence[Matcher], after: int, until: int) -> list[SampledSeries]:
        """Return the series that fulfill all matchers."""
        del after, until
        return [each for each in self.series if matches(each.labels, matchers)]


def series(
    name: str, times: Sequence[int], values: Sequence[float], **labels: str
) -> SampledSeries:
    """Return a series; times in milliseconds."""
    pairs = tuple(sorted({"__name__": name, **labels}.items()))
    return SampledSeries(pairs, np.array(times, np.int64), np.array(values, float))


def cells(answer: Answer) -> dict[LabelSet, list[float | None]]:
    """Return an answer's values by labels, None where there is none."""
    assert isinstance(answer.value, Vector)
    found = answer.value
    return {
        labels: [
            float(value) if there else None
            for value, there in zip(found.values[row], found.present[row], strict=True)
        ]
        for row, labels in enumerate(found.labels)
    }


@given(
    interval=st.integers(1_000, 60_000),
    slope=st.floats(1, 1e6),
    start=st.floats(0, 1e6),
    window=st.integers(3, 40),
    offset=st.integers(0, 999),
)
@settings(max_examples=scaled(30), deadline=None)
def test_the_rate_of_a_steady_counter_is_its_slope(
    interval: int, slope: float, start: float, window: int, offset: int
) -> None:
    """Wherever the window begins and ends, as long as samples reach its ends."""
    times = [number * interval for number in range(100)]
    values = [start + slope * time / 1000 for time in times]
    engine = Engine(Samples(Kept(series("x_total", times, values))))
    at = 80 * interval + offset * interval // 1000
    query = f"rate(x_total[{window * interval}ms])"
    ((value,),) = cells(engine.instant(query, at)).values()
    assert value == pytest.approx(slope, rel=1e-5)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40))
def test_the_increase_counts_on_after_each_reset(counts: list[int]) -> None:
    """Where a value falls, the counter has restarted at 0."""
    times = [number * 10_000 for number in range(len(counts))]
    engine = Engine(Samples(Kept(series("x_total", times, counts))))
    window = times[-1] + 1  # extends the samples by one millisecond
    ((increase,),) = cells(engine.instant(f"increase(x_total[{window}ms])", times[-1])).values()
    steps = itertools.pairwise(counts)
    counted = sum(after - before if after >= before else after for before, after in steps)
    assert increase == pytest.approx(counted, rel=2e-4)
    ((resets,),) = cells(engine.instant(f"resets(x_total[{window}ms])", times[-1])).values()
    assert resets == sum(after < before for before, after in itertools.pairwise(counts))


values = st.lists(
    st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([float("nan"), float("inf"), 0.0])),
    min_size=30,
    max_size=30,
)
QUERIES = [
    "x",
    "rate(x[2m])",
    "sum by (a) (x)",
    "avg(x)",
    "topk(1, x)",
    "quantile(0.3, x)",
    "stddev(x)",
    "x > 0",
    "x > bool scalar(y)",
    "x / on (a) group_left y",
    "y or x",
    "x unless on (a) y",
    "max_over_time(x[3m])",
    "quantile_over_time(0.7, x[3m])",
    "stdvar_over_time(x[3m])",
    "avg_over_time(sum(x)[4m:30s])",
    "changes(x[5m])",
    "deriv(x[5m])",
    "predict_linear(x[5m], 60)",
    "last_over_time(x[1m] offset 1m)",
    "timestamp(x)",
    "absent(x)",
    "absent_over_time(x[1m])",
    "count_values('v', x)",
    "label_replace(x, 'c', '$1', 'b', '(.*)')",
    "clamp(x, -1, time())",
    "hour() + minute(y)",
    "histogram_quantile(.5, label_replace(x, 'le', '1', 'a', '1') or label_join(y, 'le', '', 'a'))",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=scaled(8), deadline=None)
@given(one=values, two=values, three=values)
def test_a_range_query_is_its_instant_queries(
    query: str, one: list[float | None], two: list[float | None], three: list[float | None]
) -> None:
    """Evaluating all steps at once changes no value."""
    stored = []
    for labels, samples in (
        ({"__name__": "x", "a": "1", "b": "1"}, one),
        ({"__name__": "x", "a": "1", "b": "2"}, two),
        ({"__name__": "y", "a": "1"}, three),
    ):
        kept = [(n * 20_000, v) for n, v in enumerate(samples) if v is not None]
        name = labels.pop("__name__")
        stored.append(series(name, [t for t, _ in kept], [v for _, v in kept], **labels))
    engine = Engine(Samples(Kept(*stored), lookback=50_000))
    start, end, step = 0, 660_000, 60_000
    whole = cells(engine.range(query, start, end, step))
    for column, time in enumerate(range(start, end + 1, step)):
        single = {k: v[0] for k, v in cells(engine.instant(query, time)).items()}
        assert single == pytest.approx(
            {k: v[column] for k, v in whole.items() if v[column] is not None}, nan_ok=True
        )


def test_absent_over_time_accepts_series_that_differ_in_their_names_alone() -> None:
    """Their names do not matter, as nothing of them is in the answer."""
    kept = Kept(series("x", [0], [1.0], a="1"), series("y", [0], [1.0], a="1"))
    engine = Engine(Samples(kept))
    assert cells(engine.instant('absent_over_time({a="1"}[1m])', 30_000)) == {}
    assert cells(engine.instant('absent_over_time({a="1"}[1m])', 90_000)) == {(("a", "1"),): [1.0]}
