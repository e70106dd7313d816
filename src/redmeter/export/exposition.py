"""Metrics as Prometheus scrapes them: its text format 0.0.4, and OpenMetrics 1.0.

Stored labels are in Prometheus' syntax already, so a line consists of the metric name, the stored
labels and the value. A `Template` has everything but the values, and is used for many scrapes.

A histogram has cumulative buckets. The bounds are those of wider exponential buckets, two to each
power of two by default, so that each stored bucket is within one. All label sets of a name have the
same bounds, from the lowest to the highest that one of them needs, at most MAX_BOUNDS: beyond that
they are wider. Bounds that are dropped then are every second one, so the others keep their counts.

Pure: no I/O.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from redmeter.export.prometheus_names import (
    COUNTER,
    HISTOGRAM,
    Catalog,
    Exported,
    metric_name,
    metric_type,
)
from redmeter.lazy_regex import late
from redmeter.stored.exponential_histogram import SCALE, Distribution, upper_edge

OPENMETRICS = "application/openmetrics-text"
TEXT = "text/plain"
#: The versions that we write, and None for any.
_VERSIONS = {OPENMETRICS: (None, "1.0.0", "0.0.1"), TEXT: (None, "1.0.0", "0.0.4")}
#: The family that counts series that are not exported.
HIDDEN = "redmeter_not_exported_series"
#: Whether a scrape that may be partial has the data of all servers.
COMPLETE = "redmeter_scrape_complete"

_PARAMETER = late(r"([^=\s;]+)\s*=\s*\"?([^\";]*)\"?")
#: Classic buckets to each power of two: by default, and which others there are.
BUCKETS, RESOLUTIONS = 2, (1, 2, 4)
#: Most bounds of the buckets of a name, without +Inf.
MAX_BOUNDS = 64
#: Labels that are not exported as they are stored: without a value, or of a reserved name.
_CHANGED = late(r'=""|[{,]__')


@dataclass(frozen=True)
class Format:
    """What a scraper accepts."""

    #: OpenMetrics instead of the text format.
    openmetrics: bool = False
    #: Names as they are stored, in quotes where necessary, instead of underscores.
    utf8: bool = False
    #: How many classic buckets a histogram has to each power of two, one of RESOLUTIONS.
    buckets: int = BUCKETS

    @property
    def content_type(self) -> str:
        """The Content-Type of the answer."""
        escaping = "allow-utf-8" if self.utf8 else "underscores"
        if self.openmetrics:
            return f"{OPENMETRICS}; version=1.0.0; charset=utf-8; escaping={escaping}"
        version = "1.0.0" if self.utf8 else "0.0.4"
        return f"{TEXT}; version={version}; charset=utf-8; escaping={escaping}"


def negotiated(accept: str) -> Format:
    """Return the format that an Accept header prefers; the text format if it names none."""
    best, weight = Format(), 0.0
    for item in accept.split(","):
        media_type, _, rest = item.strip().partition(";")
        parameters = {name.lower(): value for name, value in _PARAMETER.findall(rest)}
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            continue
        version, media_type = parameters.get("version"), media_type.strip().lower()
        utf8 = parameters.get("escaping") == "allow-utf-8"
        if version in _VERSIONS.get(media_type, ()) and quality > weight:
            best, weight = Format(media_type == OPENMETRICS, utf8 and version == "1.0.0"), quality
    return best


class _Name(NamedTuple):
    """A metric name as it is written."""

    text: str
    #: Whether it needs no quotes.
    plain: bool

    def series(self, suffix: str, labels: str) -> str:
        """Return the name of a series: labels are `{a="b"}`, or nothing."""
        if self.plain:
            return f"{self.text}{suffix}{labels}"
        rest = f",{labels[1:]}" if labels else "}"
        return f"{{{_quoted(self.text + suffix)}{rest}"

    def head(self, kind: str, help_text: str, form: Format) -> str:
        """Return the lines before the series of a metric."""
        name = self.text if self.plain else _quoted(self.text)
        help_text = help_text.replace("\\", r"\\").replace("\n", r"\n")
        if form.openmetrics:
            help_text = help_text.replace('"', r"\"")
        return f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"


class _Lines:
    """Series of one value: counters, or gauges."""

    def __init__(self) -> None:
        self.series: list[Exported] = []
        #: The lines before each series, if it is the first of its metric.
        self._heads: list[bytes] = []
        #: The line of each series up to the value.
        self._lines: list[bytes] = []

    def add(self, one: Exported, head: str, line: str) -> None:
        self.series.append(one)
        self._heads.append(head.encode())
        self._lines.append(line.encode())

    def filled(self, values: Iterable[bytes | None]) -> list[bytes]:
        """Return the lines of those series that have a value, given in the order of `series`."""
        written, waiting = [], b""
        for head, line, value in zip(self._heads, self._lines, values, strict=True):
            if head:
                waiting = head
            if value is not None:
                written.append(waiting + line + value if waiting else line + value)
                waiting = b""
        return written


class _Histogram(NamedTuple):
    """The label sets of a histogram."""

    name: _Name
    head: str
    #: Stored name and labels of each.
    series: list[tuple[str, str]]


class Template:
    """The text of a scrape without its values.

    Args:
        catalog: the series.
        form: the format.
    """

    def __init__(self, catalog: Catalog, form: Format) -> None:
        self.form = form
        self._counters, self._gauges = _Lines(), _Lines()
        self._histograms: dict[_Name, _Histogram] = {}
        by_name: dict[str, list[Exported]] = {}
        for one in catalog:
            by_name.setdefault(_utf8_name(one) if form.utf8 else one.name, []).append(one)
        names = {text: _Name(text, metric_name(text) == text) for text in by_name}
        families = {text for text, (one, *_) in by_name.items() if one.kind != COUNTER}
        for text in sorted(by_name):
            kind, base = by_name[text][0].kind, by_name[text][0].base
            family, type_name = names[text], metric_type(kind)
            if form.openmetrics and kind == COUNTER:
                bare = text.removesuffix("_total")
                if bare in families:  # two metrics of one name are an error
                    type_name = "unknown"
                else:
                    family = _Name(bare, names[text].plain)
            head = family.head(type_name, f"{kind} {base}", form)
            if kind == HISTOGRAM:
                series = [(one.stored, _labels(one, anew=True)) for one in by_name[text]]
                self._histograms[family] = _Histogram(family, head, series)
                continue
            lines = self._counters if kind == COUNTER else self._gauges
            for one in by_name[text]:
                lines.add(one, head, f"{names[text].series('', _labels(one))} ")
                head = ""
        #: A user's metric may have the name.
        self._ours = {HIDDEN, COMPLETE} - by_name.keys()

    @property
    def counters(self) -> Sequence[str]:
        """The stored names of the counters, in the order in which their values are expected."""
        return [one.stored for one in self._counters.series]

    @property
    def gauges(self) -> Sequence[Exported]:
        """The gauges, and others of STATES, in the order in which their values are expected."""
        return self._gauges.series

    @property
    def histograms(self) -> list[str]:
        """The stored names of the histograms."""
        return [stored for one in self._histograms.values() for stored, _ in one.series]

    def filled(
        self,
        counters: Iterable[bytes | None],
        gauges: Iterable[float | None],
        histograms: Mapping[str, Distribution],
        hidden: Mapping[str, int],
        *,
        complete: bool | None = None,
    ) -> bytes:
        """Return the text of a scrape.

        Args:
            counters: grand totals, as digits; None leaves a series out.
            gauges: current values; None leaves a series out.
            histograms: stored name -> grand total; others are left out.
            hidden: reason -> how many series are not exported.
            complete: whether all servers have answered; None: they must.
        """
        measured = [None if value is None else repr(value).encode() for value in gauges]
        lines = self._counters.filled(counters) + self._gauges.filled(measured)
        for histogram in self._histograms.values():
            lines += self._classic(histogram, histograms)
        if hidden:
            text = "Series of the store that are not exported, by reason"
            lines += self._own(
                HIDDEN, text, {f'{{reason="{why}"}}': n for why, n in hidden.items()}
            )
        if complete is not None:
            lines += self._own(COMPLETE, "Whether all servers have answered", {"": int(complete)})
        if self.form.openmetrics:
            lines.append(b"# EOF")
        return b"\n".join([*lines, b""])

    def _own(self, name: str, text: str, values: Mapping[str, int]) -> Iterable[bytes]:
        """Return the lines of a gauge of our own; `values` are by labels."""
        if name in self._ours:
            yield _Name(name, plain=True).head("gauge", text, self.form).encode()[:-1]
            for labels, value in values.items():
                yield f"{name}{labels} {value}".encode()

    def _classic(
        self, histogram: _Histogram, values: Mapping[str, Distribution]
    ) -> Iterable[bytes]:
        chosen = [
            (labels, values[stored]) for stored, labels in histogram.series if stored in values
        ]
        if not chosen:
            return
        name = histogram.name
        shift, first, count = _bounds([one for _, one in chosen], self.form.buckets)
        width = 1 << shift
        bounds = [repr(upper_edge((first + n) * width + width - 1)) for n in range(count)]
        if any(one.zeros or one.negative for _, one in chosen):
            bounds.insert(0, "0.0")
        yield histogram.head.encode()[:-1]
        for labels, one in chosen:
            counts = [0] * count
            for index, number in one.positive.items():
                counts[(index >> shift) - first] += number
            below = one.zeros + sum(one.negative.values())
            cumulative = list(accumulate(counts, initial=below))[-len(bounds) :]
            for bound, number in zip([*bounds, "+Inf"], [*cumulative, one.count], strict=True):
                inner = f'{{le="{bound}",{labels[1:]}' if labels else f'{{le="{bound}"}}'
                yield f"{name.series('_bucket', inner)} {number}".encode()
            # With negative values a sum may fall, so it is no counter.
            if one.moments.low >= 0:
                yield f"{name.series('_sum', labels)} {one.moments.total!r}".encode()
            if one.moments.low >= 0 or not self.form.openmetrics:
                yield f"{name.series('_count', labels)} {one.count}".encode()


def _bounds(histograms: Sequence[Distribution], buckets: int) -> tuple[int, int, int]:
    """Return by how many bits indexes are shifted, the first shifted index, and how many follow."""
    ends = [end(one.positive) for one in histograms if one.positive for end in (min, max)]
    shift = SCALE - buckets.bit_length() + 1
    if not ends:
        return shift, 0, 0
    low, high = min(ends), max(ends)
    while (high >> shift) - (low >> shift) + 2 > MAX_BOUNDS:
        shift += 1
    # With the empty bucket before the first one, the lower bound of that is a bound, too.
    return shift, (low >> shift) - 1, (high >> shift) - (low >> shift) + 2


def _labels(one: Exported, *, anew: bool = False) -> str:
    """Return the labels of a series as they are exported, in braces, or nothing."""
    labels = one.stored[len(one.base) :]
    if not anew and not _CHANGED.search(labels):
        return labels
    labels = ",".join(f"{label}={_quoted(value)}" for label, value in one.labels)
    return f"{{{labels}}}" if labels else ""


def _utf8_name(one: Exported) -> str:
    """Return a metric name with the characters of the stored one."""
    suffix = one.name[len(metric_name(one.base)) :]
    return one.base + suffix


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
