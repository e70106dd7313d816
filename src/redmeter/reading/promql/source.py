"""Stored intervals for PromQL: an IntervalSource that reads the series that selectors select.

One round trip lists the names, unless that was done a moment ago; one more for each 500 counters
reads their intervals of as many precisions as the query needs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from redmeter.errors import StoreError
from redmeter.export.prometheus_names import COUNTER, HISTOGRAM, Exported
from redmeter.names import PART_SECONDS
from redmeter.promql.errors import Limits, QueryError, quoted
from redmeter.promql.intervals import GaugeSamples, Native, Stored
from redmeter.promql.intervals.buckets import classic_buckets, named_bounds
from redmeter.promql.intervals.grid import (
    CounterTable,
    Counts,
    Grid,
    GridPart,
    accumulate,
    lay,
    make_grid,
)
from redmeter.promql.nodes import Matcher
from redmeter.promql.semantics import SampledSeries, matches
from redmeter.promql.values import METRIC_NAME, Bools, LabelSet, with_label
from redmeter.reading.export.listing import Exports
from redmeter.reading.foreign_keys import readable
from redmeter.reading.samples import held_seconds, part_number, read_live_numbers
from redmeter.reading.selection import parse_state
from redmeter.store import Store, View, indexes
from redmeter.store.query import ParsedRead, Query, Read, run_query
from redmeter.store.servers.replies import Reply, pairs, raised
from redmeter.stored import counter
from redmeter.stored.counter import parse_counter
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import STATES
from redmeter.stored.keys import Kept, Keys
from redmeter.stored.packed_text import parse_distribution, parse_moments

BUCKET, COUNT, SUM = "_bucket", "_count", "_sum"
#: Series that one round trip reads: counters and gauges, and histograms.
_CHUNK, _HISTOGRAM_CHUNK = 500, 50
#: Histograms that one selector may select.
MAX_SELECTED_HISTOGRAMS = 500
#: By how much the times of this process and the server may differ, seconds.
SLACK = 5.0

T = TypeVar("T")
#: Values of the intervals of a part, and which are stored.
_Row = tuple[Counts, Bools]


@dataclass(frozen=True)
class Chosen:
    """A series that a selector selects: by which suffix, and under which labels."""

    series: Exported
    suffix: str
    labels: LabelSet


def choose_series(exports: Exports, matchers: Sequence[Matcher]) -> list[Chosen]:
    """Return the series that a selector selects. Matchers of `le` do not count for histograms."""
    names = [matcher for matcher in matchers if matcher.name == METRIC_NAME]
    rest = [matcher for matcher in matchers if matcher.name != METRIC_NAME]
    views: Mapping[str, tuple[str, str]] = exports.views
    exact = next((matcher.value for matcher in names if matcher.operator == "="), None)
    if exact is not None:
        views = {exact: views[exact]} if exact in views else _as_total(exports, exact)
    chosen = []
    for name in sorted(views):
        if not matches(((METRIC_NAME, name),), names):
            continue
        stored, suffix = views[name]
        effective = (
            [matcher for matcher in rest if matcher.name != "le"] if suffix == BUCKET else rest
        )
        chosen += [
            Chosen(series, suffix, with_label(series.labels, METRIC_NAME, name))
            for series in exports.catalog.by_name[stored]
            if matches(series.labels, effective)
        ]
    return chosen


def _unknown_labels(
    exports: Exports, matchers: Sequence[Matcher], chosen: Sequence[Chosen]
) -> Iterator[str]:
    """Yield a text about each label that matchers name and no series of the metric has.

    Matchers that are meant to fit series without the label, as x="" and x=~".*", need none.

    Args:
        chosen: the series that fulfill all matchers.
    """
    asked = {
        one.name: None
        for one in matchers
        if not (one.operator in ("=", "=~") and matches((), [one]))
        and not any(has_label(series, one.name) for series in chosen)
    }
    if not asked:
        return
    names = [one for one in matchers if one.name == METRIC_NAME]
    every = choose_series(exports, names)
    known = {label for one in every for label, _ in one.labels} - {METRIC_NAME}
    metric = ", ".join(one.value for one in names)
    there = f"labels: {', '.join(sorted(known))}" if known else "they have no labels"
    for label in asked if every else ():
        if not any(has_label(series, label) for series in every):
            yield (
                f"PromQL info: no series of metric name {quoted(metric)} has the label"
                f" {quoted(label)}; {there}"
            )


def has_label(one: Chosen, label: str) -> bool:
    """Return whether a chosen series has a label; buckets get theirs when they are read."""
    return any(name == label for name, _ in one.labels) or (label == "le" and one.suffix == BUCKET)


def _as_total(exports: Exports, name: str) -> dict[str, tuple[str, str]]:
    """Return the view of `x_total` where x is a histogram: its sum.

    Counters of fractional amounts, as OpenTelemetry and Prometheus have them, are stored so.
    """
    base = name.removesuffix("_total")
    if base != name and base + SUM in exports.views:
        return {name: (base, SUM)}
    return {}


class StoreSource:
    """Reads intervals from a store, which has the exported series."""

    def __init__(self, store: Store, exports: Exports) -> None:
        self._store, self._exports = store, exports
        #: What selectors ask for that no series has, each text once.
        self.infos: dict[str, None] = {}

    def read(self, matchers: Sequence[Matcher], since: int, limits: Limits) -> Stored:
        """Return the data that fulfills all matchers, from a time in milliseconds on."""
        chosen = choose_series(self._exports, matchers)
        self.infos |= dict.fromkeys(_unknown_labels(self._exports, matchers, chosen))
        limits.check_series(len(chosen))
        return self.read_chosen(chosen, matchers, since, limits)

    def read_chosen(
        self, chosen: Sequence[Chosen], matchers: Sequence[Matcher], since: int, limits: Limits
    ) -> Stored:
        """Return the data of series that were chosen by matchers, as read() does."""
        counters = [one for one in chosen if one.series.kind == COUNTER]
        gauges = [one for one in chosen if one.series.kind in STATES]
        sums = [one for one in chosen if one.suffix in (COUNT, SUM)]
        natives = [
            one
            for one in chosen
            if one.suffix == BUCKET or (not one.suffix and one.series.kind == HISTOGRAM)
        ]
        if len(natives) > MAX_SELECTED_HISTOGRAMS:
            raise QueryError(
                f"the query selects {len(natives):,} histograms, more than"
                f" {MAX_SELECTED_HISTOGRAMS}. Add label matchers to the selector"
            )
        request = _Request(self._store.keys, since / 1000, self._exports.time(), limits)
        stored = Stored()
        for series, of_histograms in ((counters, False), (sums, True)):
            if series:
                query = partial(request.counters, series, sums=of_histograms)
                stored.counters.extend(self._run(query))
        if gauges:
            stored.gauges.extend(self._run(partial(request.gauges, gauges)))
        if natives:
            every = list(zip(self._run(partial(request.natives, natives)), natives, strict=True))
            stored.natives.extend(one for one, how in every if not how.suffix)
            shown = [one for one, how in every if how.suffix]
            classic = classic_buckets(shown, named_bounds(matchers))
            tables = [_matching(table, matchers) for table in classic]
            stored.counters.extend(table for table in tables if table.labels)
            limits.check_series(sum(len(table.labels) for table in tables))
        return stored

    def _run(self, query: Callable[[Kept], Query[T]]) -> T:
        return run_query(self._store, query)[1]


def _matching(table: CounterTable, matchers: Sequence[Matcher]) -> CounterTable:
    """Return the rows that fulfill all matchers, those of `le` included."""
    return table.rows(np.array([matches(labels, matchers) for labels in table.labels], bool))


class _Request:
    """The reads of one selector.

    Args:
        since: Unix seconds.
        now: the server's time, about.
    """

    def __init__(self, keys: Keys, since: float, now: float, limits: Limits) -> None:
        self._keys, self._since, self._now, self._limits = keys, since, now, limits
        self._grids: dict[float, Grid] = {}

    def _precisions(self, retention: Mapping[int, int]) -> dict[int, int]:
        """Return the part of a retention that the request needs."""
        grid = make_grid(retention, self._now, self._since - SLACK)
        return {part.precision: retention[part.precision] for part in grid.parts}

    def _grid(self, needed: Mapping[int, int], now: float) -> Grid:
        if now not in self._grids:
            self._grids = {now: make_grid(needed, now, -np.inf)}
        return self._grids[now]

    def counters(
        self, chosen: Sequence[Chosen], kept: Kept, *, sums: bool
    ) -> Query[list[CounterTable]]:
        """Read counters; or counts and sums of histograms, which have no grand totals."""
        retention = kept.histograms if sums else kept.series
        needed = self._precisions(retention)
        tables = []
        for chunk in _chunks(chosen, _CHUNK):
            self._limits.interrupt()
            reads: list[Read] = [
                self._laid(needed, precision, one) for one in chunk for precision in needed
            ]
            names = [one.series.stored for one in chunk]
            view, replies = (
                yield reads if sums else [*reads, indexes.grand_totals(self._keys, names)]
            )
            rows = _by_series(chunk, replies[: len(reads)], len(needed))
            totals: Counts | None = None
            if not sums:
                known = dict(zip(names, raised(replies[-1]), strict=True))
                totals = np.array([_number(known[one.series.stored]) for one in rows], np.int64)
            whole = len(needed) == len(retention)
            tables.append(_table(self._grid(needed, view.now), needed, rows, totals, whole=whole))
        return tables

    def _laid(self, needed: Mapping[int, int], precision: int, one: Chosen) -> ParsedRead:
        """Return a read of a hash that becomes a row of a part of the grid."""
        key = self._keys.moments if one.suffix else self._keys.count
        kind = np.float64 if one.suffix else np.int64
        fields = partial(_moments, summed=one.suffix == SUM) if one.suffix else _counts

        def row(view: View, reply: Reply) -> _Row | StoreError:
            if isinstance(reply, StoreError):
                return reply
            for part in self._grid(needed, view.now).parts:
                if part.precision == precision:
                    return _row(part, view.now, fields(reply), kind)
            return np.zeros(0, kind), np.zeros(0, bool)  # finer intervals reach as far back

        return ParsedRead(("HGETALL", key(precision, one.series.stored)), row)

    def natives(self, chosen: Sequence[Chosen], kept: Kept) -> Query[list[Native]]:
        """Read histograms."""
        needed = self._precisions(kept.histograms)
        whole = len(needed) == len(kept.histograms)
        natives = []
        for chunk in _chunks(chosen, _HISTOGRAM_CHUNK):
            self._limits.interrupt()
            reads: list[Read] = [
                ("HGETALL", key(precision, one.series.stored))
                for one in chunk
                for precision in needed
                for key in (self._keys.hist, self._keys.moments)
            ]
            view, replies = yield reads
            grid = self._grid(needed, view.now)
            rows = _by_series(chunk, replies, 2 * len(needed))
            for one in chunk:
                hashes = rows.get(one, [()] * 2 * len(needed))
                both = dict(zip(needed, zip(hashes[::2], hashes[1::2], strict=True), strict=True))
                natives.append(_native(grid, view.now, one.labels, both, whole=whole))
                self._limits.interrupt()
        return natives

    def gauges(self, chosen: Sequence[Chosen], kept: Kept) -> Query[list[GaugeSamples]]:
        """Read gauges."""
        needed = self._precisions(kept.series)
        samples: dict[int, GaugeSamples] = {}
        parts = [one for one in chosen if part_number(one.series.stored) is not None]
        live = (yield from read_live_numbers(self._keys)) if parts else ()
        held = {
            one.labels: round(1000 * max(PART_SECONDS, held_seconds(one.series.stored, live)))
            for one in parts
        }
        for chunk in _chunks(chosen, _CHUNK):
            self._limits.interrupt()
            view, replies = yield [
                ParsedRead(
                    ("HGETALL", *self._keys.hashes(one.series.kind, precision, one.series.stored)),
                    partial(_gauge, one, precision),
                )
                for one in chunk
                for precision in needed
            ]
            for row in _by_series(chunk, replies, len(needed)).values():
                for (precision, count), series in zip(needed.items(), row, strict=True):
                    oldest = (int(view.now) // precision - count + 1) * precision
                    empty = GaugeSamples(precision * 1000, oldest * 1000, [], held)
                    samples.setdefault(precision, empty).series.append(series)
        return list(samples.values())


def _chunks(chosen: Sequence[Chosen], size: int) -> list[Sequence[Chosen]]:
    return [chosen[at : at + size] for at in range(0, len(chosen), size)]


def _by_series(
    chosen: Sequence[Chosen], replies: Sequence[Reply], each: int
) -> dict[Chosen, Sequence[Reply]]:
    """Return the replies of each series, without those of other programs."""
    rows = {one: replies[at * each : (at + 1) * each] for at, one in enumerate(chosen)}
    return readable(rows, needed=False)


def _row(part: GridPart, now: float, fields: Mapping[int, float], kind: type) -> _Row:
    size = part.count(int(now))
    values: Counts = np.zeros(size, kind)
    stored = np.zeros(size, bool)
    lay(part, size, fields, values, stored)
    return values, stored


def _number(text: bytes | None) -> int:
    try:
        return counter.count_of(text)
    except ValueError:
        return 0


def _table(
    grid: Grid,
    needed: Mapping[int, int],
    rows: Mapping[Chosen, Sequence[_Row]],
    totals: Counts | None,
    *,
    whole: bool,
) -> CounterTable:
    counts, stored = [], []
    for part in grid.parts:
        number = list(needed).index(part.precision)
        size = part.count(grid.now // 1000)
        parts = [row[number] for row in rows.values()]
        counts.append(np.array([values for values, _ in parts]).reshape(len(rows), size))
        stored.append(np.array([there for _, there in parts], bool).reshape(len(rows), size))
    labels = [one.labels for one in rows]
    return accumulate(grid, labels, counts, stored, totals, whole=whole)


def _counts(reply: Reply) -> Mapping[int, float]:
    return parse_counter(pairs(reply))


def _moments(reply: Reply, *, summed: bool) -> dict[int, float]:
    fields = {}
    for start, text in pairs(reply):
        moments = parse_moments(text)
        if moments is not None and start.isdigit():
            fields[int(start)] = moments.total if summed else float(moments.count)
    return fields


def _gauge(one: Chosen, precision: int, _: View, reply: Reply) -> SampledSeries | StoreError:
    if isinstance(reply, StoreError):
        return reply
    kind = one.series.kind
    samples = sorted(
        state
        for start, text in pairs(reply)
        if start.isdigit() and (state := parse_state(kind, text, int(start), precision)) is not None
    )
    times = np.array([round(at * 1000) for at, _ in samples], np.int64)
    return SampledSeries(one.labels, times, np.array([value for _, value in samples], np.float64))


def _native(
    grid: Grid,
    now: float,
    labels: LabelSet,
    hashes: Mapping[int, tuple[Reply, Reply]],
    *,
    whole: bool,
) -> Native:
    """Return a histogram, given buckets and moments at each precision."""
    parts: list[dict[int, Distribution]] = []
    for part in grid.parts:
        buckets, moments = (dict(pairs(reply)) for reply in hashes[part.precision])
        parts.append({})
        for start, text in buckets.items():
            if start.isdigit() and int(start) >= part.first:
                distribution = parse_distribution(text, moments.get(start))
                if distribution is not None:
                    parts[-1][int(start)] = distribution
    every = [one for part in parts for one in part.values()]
    positive = sorted({index for one in every for index in one.positive})
    negative = sorted({index for one in every for index in one.negative})
    size = 3 + len(positive) + len(negative)
    place = {index: 3 + number for number, index in enumerate(positive)}
    mirrored = {index: 3 + len(positive) + number for number, index in enumerate(negative)}
    counts, stored = [], []
    for part, distributions in zip(grid.parts, parts, strict=True):
        columns = part.count(int(now))
        values, there = np.zeros((size, columns)), np.zeros(columns, bool)
        for begin, one in distributions.items():
            column = min((begin - part.first) // part.precision, columns - 1)
            if part.end is not None and begin >= part.end:
                continue
            there[column] = True
            values[:3, column] += one.count, one.moments.total, one.zeros
            for index, count in one.positive.items():
                values[place[index], column] += count
            for index, count in one.negative.items():
                values[mirrored[index], column] += count
        counts.append(values)
        stored.append(np.tile(there, (size, 1)))
    table = accumulate(grid, [labels] * size, counts, stored, None, whole=whole)
    # Bucket i holds values up to 2^((i+1)/16) here, and up to 2^(i/16) as Prometheus counts.
    return Native(labels, table, tuple(i + 1 for i in positive), tuple(i + 1 for i in negative))
