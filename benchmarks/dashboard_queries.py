"""Evaluate the queries of dashboards on generated series, and compare with a real Prometheus.

    python benchmarks/dashboard_queries.py FILE [--list] [--server valkey-9.1]

FILE has a query per line. Series are generated that match every selector, and every query is
answered over five minutes by

    samples      our evaluator on raw samples, with Prometheus' semantics
    prometheus   a real Prometheus, if `prometheus` and `promtool` are on PATH, on the same samples
    intervals    our evaluator on a store of Redmeter, to which the same events are written

Neither samples nor steps of subqueries are at the edge of a window, because Prometheus before 3.0
counts both edges. The exit code is 1 if we have an error that Prometheus has not (without one: an
error in only one of the ways), if a value differs from Prometheus', or if fewer than 90 % of the
queries with an answer from samples have one from intervals. --list prints every difference.
"""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

from prometheus_server import PrometheusServer, found  # noqa: E402
from promql.engine_tests.samples import Samples  # noqa: E402
from redmeter import Meter  # noqa: E402
from redmeter import store as stores  # noqa: E402
from redmeter.errors import InvalidName  # noqa: E402
from redmeter.names import canonical  # noqa: E402
from redmeter.promql.answers import as_data  # noqa: E402
from redmeter.promql.errors import QueryError  # noqa: E402
from redmeter.promql.evaluator import Engine  # noqa: E402
from redmeter.promql.nodes import Matcher, Selector  # noqa: E402
from redmeter.promql.parser import parse_query  # noqa: E402
from redmeter.promql.semantics import SampledSeries, matches  # noqa: E402
from redmeter.promql.values import METRIC_NAME, Floats, LabelSet, with_label, without  # noqa: E402
from redmeter.reading.export.listing import ExportList  # noqa: E402
from redmeter.reading.promql import query as promql  # noqa: E402
from redmeter.reading.promql.source import StoreSource  # noqa: E402
from regex_samples import samples  # noqa: E402
from support.servers import Server  # noqa: E402

#: Times of samples: every SCRAPE seconds of SPAN, this much after whole minutes.
SCRAPE, SPAN, SCRAPED = 15, 900, 7
#: A counter's value before the first sample: far from 0, where versions extrapolate differently.
BEFORE = 1_000_000
#: The range of each query, its step, how long before now it ends, and after whole minutes.
RANGE, STEP, ENDED, EVALUATED = 300, 60, 60, 4
#: Bounds of classic buckets.
BOUNDS = ("0.1", "1", "+Inf")
#: The least share of answered queries.
SHARE = 0.9
SUFFIXES = ("_bucket", "_sum", "_count")
#: Relative difference of values that count as equal.
TOLERANCE = 1e-9

#: An answer: label set -> time in ms -> value; or the error.
Values = dict[LabelSet, dict[int, float]]
Answer = Values | str


def selectors(node: Any) -> Iterator[Selector]:
    """Yield the selectors of a query."""
    if isinstance(node, Selector):
        yield node
    elif is_dataclass(node):
        for field in fields(node):
            yield from selectors(getattr(node, field.name))
    elif isinstance(node, tuple):
        for each in node:
            yield from selectors(each)


def labels_for(matchers: Sequence[Matcher]) -> LabelSet | None:
    """Return labels that fulfill matchers, but those of `le`; None if no text fulfills them all."""
    labels = {METRIC_NAME: "anything", "instance": "one"}
    for name in dict.fromkeys(matcher.name for matcher in matchers if matcher.name != "le"):
        own = [matcher for matcher in matchers if matcher.name == name]
        found = next((text for text in candidates(own, labels.get(name)) if fits(text, own)), None)
        if found is None:
            return None
        labels[name] = found
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def candidates(matchers: Sequence[Matcher], default: str | None) -> Iterator[str]:
    """Yield texts that may fulfill matchers of one label."""
    if default is not None:
        yield default
    for matcher in matchers:
        if matcher.operator == "=":
            yield matcher.value
        elif matcher.operator == "=~":
            yield from samples(matcher.value)
    yield from ("other", "")


def fits(text: str, matchers: Sequence[Matcher]) -> bool:
    """Return whether a text fulfills matchers of one label."""
    return matches(((matchers[0].name, text),), matchers)


def base_of(name: str, histograms: set[str]) -> tuple[str, str]:
    """Return the stored name of a metric, and the suffix of a counter's or histogram's."""
    for suffix in SUFFIXES:
        base = name.removesuffix(suffix)
        if base != name and (suffix == "_bucket" or base in histograms):
            return base, suffix
    if name in histograms:
        return name, "_bucket"
    base = name.removesuffix("_total")
    return (base, "_total") if base != name else (name, "")


@dataclass
class Data:
    """Generated series: counters, histograms and gauges by their labels without a suffix."""

    counters: set[LabelSet]
    histograms: set[LabelSet]
    gauges: set[LabelSet]
    times: np.ndarray[Any, Any]

    def samples(self) -> Iterator[SampledSeries]:
        """Yield the series of a Prometheus that is scraped."""
        rise = np.arange(BEFORE, BEFORE + len(self.times), dtype=np.float64)
        wave: Floats = 5 + np.arange(len(self.times), dtype=np.float64) % 7
        for labels in self.counters:
            yield SampledSeries(renamed(labels, "_total"), self.times, 3 * rise)
        for labels in self.gauges:
            yield SampledSeries(labels, self.times, wave)
        for labels in self.histograms:
            yield SampledSeries(renamed(labels, "_count"), self.times, 2 * rise)
            yield SampledSeries(renamed(labels, "_sum"), self.times, 0.55 * rise)
            for bound, count in zip(BOUNDS, (1, 2, 2), strict=True):
                bucket = with_label(renamed(labels, "_bucket"), "le", bound)
                yield SampledSeries(bucket, self.times, count * rise)

    def record(self, meter: Meter) -> int:
        """Write the same events to a store; return how many series are stored as overflow."""
        long = 0
        for number, labels in enumerate([*self.counters, *self.gauges, *self.histograms]):
            name, rest = dict(labels)[METRIC_NAME], dict(without(labels, (METRIC_NAME,)))
            try:
                canonical(name, rest)
            except InvalidName:
                long += 1
            self._record(meter, labels, name, rest)
            if number % 500 == 499:
                meter.flush(60)
        assert meter.flush(60), meter.recorder_health()
        return long

    def _record(self, meter: Meter, labels: LabelSet, name: str, rest: dict[str, str]) -> None:
        for place, moment in enumerate(self.times):
            at = float(moment) / 1000
            if labels in self.counters:
                meter.count(name, 3, labels=rest, at=at)
            elif labels in self.gauges:
                meter.gauge(name, labels=rest).set(5 + place % 7, at=at)
            else:
                meter.observe(name, 0.05, labels=rest, at=at)
                meter.observe(name, 0.5, labels=rest, at=at)


def renamed(labels: LabelSet, suffix: str) -> LabelSet:
    """Return labels with a suffix to the name."""
    return with_label(labels, METRIC_NAME, dict(labels)[METRIC_NAME] + suffix)


def generated(queries: Sequence[str], now: float) -> tuple[Data, int]:
    """Return series for every selector, and how many selectors none was found for."""
    found: set[LabelSet] = set()
    unmatched = 0
    for query in queries:
        try:
            chosen = list(selectors(parse_query(query)))
        except QueryError:
            continue
        for selector in chosen:
            labels = labels_for(selector.matchers)
            unmatched += labels is None
            found |= {labels} if labels is not None else set()
    names = {dict(labels)[METRIC_NAME] for labels in found}
    histograms = {name.removesuffix("_bucket") for name in names if name.endswith("_bucket")}
    first = int(now - SPAN) // STEP * STEP + SCRAPED
    times = np.arange(first, int(now - 5), SCRAPE, dtype=np.int64) * 1000
    data = Data(set(), set(), set(), times)
    for labels in found:
        base, suffix = base_of(dict(labels)[METRIC_NAME], histograms)
        stored = with_label(labels, METRIC_NAME, base)
        kinds = {"_total": data.counters, "": data.gauges}
        kinds.get(suffix, data.histograms).add(stored)
    return data, unmatched


class Indexed:
    """Generated samples, by metric name."""

    def __init__(self, series: Sequence[SampledSeries]) -> None:
        self._all = series
        self._named: dict[str, list[SampledSeries]] = {}
        for one in series:
            self._named.setdefault(dict(one.labels)[METRIC_NAME], []).append(one)

    def read(self, matchers: Sequence[Matcher], after: int, until: int) -> list[SampledSeries]:
        """Return the series that fulfill all matchers."""
        del after, until
        exact = [m.value for m in matchers if (m.name, m.operator) == (METRIC_NAME, "=")]
        among = self._named.get(exact[0], []) if exact else self._all
        return [one for one in among if matches(one.labels, matchers)]


def values_of(data: dict[str, Any]) -> Values:
    """Return an answer in Prometheus' form as values."""
    rows = data["result"]
    if data["resultType"] == "scalar":
        rows = [{"metric": {}, "values": [rows]}]
    return {
        tuple(sorted(row["metric"].items())): {
            round(at * 1000): float(value) for at, value in row.get("values", ())
        }
        | {round(at * 1000): math.nan for at, _ in row.get("histograms", ())}
        for row in rows
    }


def same(one: Values, other: Values) -> bool:
    """Return whether two answers are equal but for rounding."""
    if one.keys() != other.keys():
        return False
    for labels, values in one.items():
        if values.keys() != other[labels].keys():
            return False
        for at, value in values.items():
            close = math.isclose(value, other[labels][at], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
            if not close and not (math.isnan(value) and math.isnan(other[labels][at])):
                return False
    return True


def answered(evaluate: Callable[[], Any]) -> Answer:
    """Return an answer of our evaluator as values, or its error."""
    try:
        return values_of(as_data(evaluate()))
    except QueryError as error:
        return f"{error}"


def real(prometheus: PrometheusServer, query: str, window: tuple[int, int, int]) -> Answer:
    """Return the answer of a Prometheus."""
    data = prometheus.range(query, *window)
    return data if isinstance(data, str) else values_of(data)


class Comparison:
    """Counts answers, and lists differences."""

    def __init__(self, listed: bool) -> None:
        self._listed = listed
        self.counts: Counter[str] = Counter()

    def add(self, query: str, samples: Answer, intervals: Answer, real: Answer | None) -> None:
        """Count the answers to a query; `real` is None without a Prometheus."""
        self.counts["queries"] += 1
        failed = isinstance(samples, str) or isinstance(intervals, str)
        if isinstance(real, str):
            self.counts["refused by Prometheus"] += 1
        elif real is None and isinstance(samples, str) and isinstance(intervals, str):
            self.counts["refused in both ways"] += 1
        elif failed:
            self.counts["errors of ours"] += 1
            self._list("error", query, f"samples {samples!r:.200}; intervals {intervals!r:.200}")
        if real is not None and not isinstance(real, str) and not isinstance(samples, str):
            equal = same(samples, real)
            self.counts["equal to Prometheus" if equal else "not equal to Prometheus"] += 1
            if not equal:
                self._list("differs", query, f"ours {samples!r:.300}; Prometheus {real!r:.300}")
        if not isinstance(samples, str) and samples:
            self.counts["answered from samples"] += 1
            if isinstance(intervals, dict) and intervals:
                self.counts["answered from intervals too"] += 1
            else:
                self._list("empty", query, str(intervals)[:200])

    def _list(self, kind: str, query: str, note: str) -> None:
        if self._listed:
            print(f"{kind}: {query}\n    {note}")

    @property
    def passed(self) -> bool:
        """Whether there is no error of ours, and few answers are missing."""
        counts = self.counts
        enough = SHARE * counts["answered from samples"]
        wrong = counts["errors of ours"] or counts["not equal to Prometheus"]
        return not wrong and counts["answered from intervals too"] >= enough


def compare(queries: Sequence[str], server: str, *, listed: bool) -> Comparison:
    """Answer all queries in each way."""
    now = time.time()
    data, unmatched = generated(queries, now)
    series = list(data.samples())
    print(f"{len(queries):,} queries, {len(series):,} series; selectors without one: {unmatched}")
    comparison = Comparison(listed)
    end = (int(now - ENDED) // STEP * STEP + EVALUATED) * 1000
    window = end - RANGE * 1000, end, STEP * 1000
    raw = Engine(Samples(Indexed(series)))
    with Server(server) as redis, PrometheusServer(series) as prometheus:
        with Meter(redis.url, max_series=100_000) as meter:
            print(f"series with too long a name, stored as overflow: {data.record(meter)}")
        store = stores.open(redis.url)
        assert store is not None
        exports = ExportList(store, seconds=3600)
        intervals = promql.engine(StoreSource(store, exports.read()))
        for query in queries:
            comparison.add(
                query,
                answered(lambda query=query: raw.range(query, *window)),  # type: ignore[misc]
                answered(lambda query=query: intervals.range(query, *window)),  # type: ignore[misc]
                real(prometheus, query, window) if found() else None,
            )
    return comparison


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--list", action="store_true", help="print every difference")
    parser.add_argument("--server", default="valkey-9.1", help="as in tests/support/binaries.py")
    options = parser.parse_args(arguments)
    lines = options.file.read_text(encoding="utf-8").splitlines()
    queries = [line for line in lines if line.strip() and not line.startswith("#")]
    comparison = compare(queries, options.server, listed=options.list)
    for name, count in comparison.counts.items():
        print(f"{count:7,}  {name}")
    return 0 if comparison.passed else 1


if __name__ == "__main__":
    sys.exit(main())
