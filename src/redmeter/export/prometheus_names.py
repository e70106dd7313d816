"""Series of a store as Prometheus names them: for PromQL, for its HTTP API and for /metrics.

    counter x                      x_total
    gauge x                        x, or x_gauge if a histogram has that name
    histogram x                    x_bucket, x_sum and x_count, and x as a native histogram

Other characters than letters, digits, `_` and `:` become `_`, and a digit at the beginning gets one
before it. The labels `le` and `quantile` of a histogram, and labels that begin with `__`, are
`exported_…`. An empty label is none. Two series that get the same name and labels would be one: the
first by code point is exported, the others are counted.

Pure: no I/O.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from redmeter.errors import InvalidName
from redmeter.lazy_regex import late
from redmeter.names import parse_name
from redmeter.stored.families import STATES

_INVALID = late(r"[^a-zA-Z0-9_:]")
#: Labels of histograms that Prometheus gives a meaning.
_RESERVED = ("le", "quantile")

COUNTER, HISTOGRAM = "counter", "histogram"
#: Suffixes of the series of a histogram.
SUFFIXES = ("_bucket", "_count", "_sum")

Pairs = tuple[tuple[str, str], ...]


class Exported(NamedTuple):
    """A stored series and its name for Prometheus."""

    kind: str
    #: Its name in the store.
    stored: str
    #: Its metric name: of a counter with `_total`, of a histogram without a suffix.
    name: str
    #: Its labels, sorted, without the metric name.
    labels: Pairs
    #: Its name in the store without labels.
    base: str


@dataclass(frozen=True)
class Catalog:
    """The series of a store.

    Attributes:
        by_name: metric name -> its series, in the order of their stored names.
        hidden: reason -> how many series are not exported: `same-name`, or `invalid-name` for those
            of other programs that are no names.
    """

    by_name: Mapping[str, list[Exported]]
    hidden: Mapping[str, int]

    def __iter__(self) -> Iterator[Exported]:
        """Yield all series, sorted by metric name."""
        for name in sorted(self.by_name):
            yield from self.by_name[name]


def metric_name(base: str) -> str:
    """Return a stored name without labels as a metric name."""
    name = _INVALID.sub("_", base)
    return f"_{name}" if name[:1].isdigit() else name


def counter_name(base: str) -> str:
    """Return the metric name of a counter."""
    name = metric_name(base)
    return name if name.endswith("_total") else f"{name}_total"


def metric_type(kind: str) -> str:
    """Return the type of the metrics of a kind of series."""
    return "gauge" if kind in STATES else kind


def label_name(label: str, kind: str) -> str:
    """Return a label's name as it is exported."""
    reserved = kind == HISTOGRAM and label in _RESERVED
    return f"exported_{label}" if reserved or label.startswith("__") else label


class _ExportKind(NamedTuple):
    """The metric names of a kind of series."""

    #: Makes one of a name without labels.
    name: Callable[[str], str]
    #: What is appended to it if another kind has it.
    otherwise: tuple[str, ...] = ()
    #: The further metrics of a series.
    suffixes: tuple[str, ...] = ()


#: Kind -> its names, in this order: a kind gets names that those before it have not.
_KINDS = {
    COUNTER: _ExportKind(counter_name),
    HISTOGRAM: _ExportKind(metric_name, suffixes=SUFFIXES),
    **{kind: _ExportKind(metric_name, otherwise=(f"_{kind}",)) for kind in STATES},
}


class Namer:
    """Makes catalogs, and remembers the names of series that it has seen."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[str, Pairs] | None] = {}

    def catalog(self, names: Mapping[str, Iterable[str]]) -> Catalog:
        """Return the catalog of series, given the stored names of each kind."""
        before, self._known = self._known, {}
        by_name: dict[str, list[Exported]] = {}
        hidden = {"same-name": 0, "invalid-name": 0}
        labelled: set[tuple[str, Pairs]] = set()
        # Metric name -> the kind that has it, and of which metric it is.
        owner: dict[str, tuple[str, str]] = {}

        def parsed(kind: str) -> Iterator[tuple[str, str, Pairs]]:
            for stored in sorted(names[kind]):
                key = kind, stored
                entry = self._known[key] = before[key] if key in before else _parsed(kind, stored)
                if entry is None:
                    hidden["invalid-name"] += 1
                else:
                    yield stored, *entry

        def name_for(kind: str, row: _ExportKind, base: str) -> str | None:
            for name in (row.name(base), *(row.name(base) + end for end in row.otherwise)):
                own = name, *(name + suffix for suffix in row.suffixes)
                free = all(owner.get(one, (kind, name)) == (kind, name) for one in own)
                if free:
                    owner.update(dict.fromkeys(own, (kind, name)))
                    return name
            return None

        for kind, row in _KINDS.items():
            for stored, base, labels in parsed(kind):
                name = name_for(kind, row, base)
                if name is None or (name, labels) in labelled:
                    hidden["same-name"] += 1
                else:
                    labelled.add((name, labels))
                    by_name.setdefault(name, []).append(Exported(kind, stored, name, labels, base))
        return Catalog(by_name, {reason: count for reason, count in hidden.items() if count})


def _parsed(kind: str, stored: str) -> tuple[str, Pairs] | None:
    try:
        base, labels = parse_name(stored)
    except InvalidName:
        return None
    exported = {label_name(label, kind): value for label, value in labels if value}
    return base, tuple(sorted(exported.items()))


def unescaped(text: str) -> str:
    """Return a name that was escaped as `U__…`, as Prometheus' value escaping does."""
    if not text.startswith("U__"):
        return text
    return re.sub(
        r"__|_([0-9a-fA-F]{1,6})_",
        lambda match: chr(int(match[1], 16)) if match[1] else "_",
        text[3:],
    )
