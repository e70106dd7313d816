"""Which series of a store PromQL selectors select, by their names and labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redmeter.export.prometheus_names import Exported
from redmeter.promql.errors import BadQuery
from redmeter.promql.nodes import Matcher, Selector
from redmeter.promql.parser import parse
from redmeter.promql.semantics import matches
from redmeter.promql.values import NAME, Labels, with_label
from redmeter.reading.export.listing import Exports

BUCKET, COUNT, SUM = "_bucket", "_count", "_sum"


@dataclass(frozen=True)
class Chosen:
    """A series that a selector selects: by which suffix, and under which labels."""

    series: Exported
    suffix: str
    labels: Labels


def choose(exports: Exports, matchers: Sequence[Matcher]) -> list[Chosen]:
    """Return the series that a selector selects. Matchers of `le` do not count for histograms."""
    names = [matcher for matcher in matchers if matcher.name == NAME]
    rest = [matcher for matcher in matchers if matcher.name != NAME]
    views: Mapping[str, tuple[str, str]] = exports.views
    exact = next((matcher.value for matcher in names if matcher.operator == "="), None)
    if exact is not None:
        views = {exact: views[exact]} if exact in views else _as_total(exports, exact)
    chosen = []
    for name in sorted(views):
        if not matches(((NAME, name),), names):
            continue
        stored, suffix = views[name]
        effective = (
            [matcher for matcher in rest if matcher.name != "le"] if suffix == BUCKET else rest
        )
        chosen += [
            Chosen(series, suffix, with_label(series.labels, NAME, name))
            for series in exports.catalog.by_name[stored]
            if matches(series.labels, effective)
        ]
    return chosen


def selectors(texts: Sequence[str]) -> list[tuple[Matcher, ...]]:
    """Return the matchers of series selectors.

    Raises:
        BadQuery: a text is no selector.
    """
    nodes = [(text, parse(text)) for text in texts]
    for text, node in nodes:
        if not isinstance(node, Selector) or node.offset or node.at is not None:
            raise BadQuery(f'{text[:200]} is no series selector. Give one such as {{job="api"}}')
    return [node.matchers for _, node in nodes if isinstance(node, Selector)]


def _as_total(exports: Exports, name: str) -> dict[str, tuple[str, str]]:
    """Return the view of `x_total` where x is a histogram: its sum.

    Counters of fractional amounts, as OpenTelemetry and Prometheus have them, are stored so.
    """
    base = name.removesuffix("_total")
    if base != name and base + SUM in exports.views:
        return {name: (base, SUM)}
    return {}
