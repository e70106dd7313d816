"""Stored intervals for PromQL: an IntervalSource that reads the series that selectors select.

One round trip lists the names, unless that was done a moment ago; one more for each 500 counters
reads their grand totals, their intervals of as many precisions as the query needs, and those of the
widest one. Their sum is the total of a series that has none, or less, because other programs write
intervals alone. If a series begins within the intervals that were read, all precisions are read: an
older interval may have a 0. So the value at a time does not depend on the query.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from redmeter.errors import StoreError
from redmeter.export.prometheus_names import COUNTER, HISTOGRAM, Exported
from redmeter.names import ELLIPSIS, LABEL_BYTES, PART_SECONDS
from redmeter.promql.errors import Limits, QueryError, quoted
from redmeter.promql.intervals import GaugeSamples, Native, Stored
from redmeter.promql.intervals.buckets import classic_buckets, named_bounds
from redmeter.promql.intervals.grid import (
    INT64_END,
    Amounts,
    CounterTable,
    Grid,
    accumulate,
    lay,
    make_grid,
)
from redmeter.promql.nodes import Matcher
from redmeter.promql.semantics import SampledSeries, matches
from redmeter.promql.values import METRIC_NAME, Bools, Floats, LabelSet, Times, label, with_label
from redmeter.reading.export.listing import Exports
from redmeter.reading.foreign_keys import readable, there
from redmeter.reading.samples import held_seconds, part_number, read_live_numbers
from redmeter.reading.selection import parse_state
from redmeter.store import View, indexes
from redmeter.store.query import ParsedRead, Query, Read, StoreReader, run_query
from redmeter.store.servers.replies import Reply, pairs
from redmeter.stored import counter
from redmeter.stored.counter import parse_counter
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import STATES
from redmeter.stored.keys import Kept, Keys
from redmeter.stored.packed_text import merge_distributions, parse_distribution, parse_moments

#: The kind whose hashes are read fastest.
GAUGE = "gauge"
BUCKET, COUNT, SUM = "_bucket", "_count", "_sum"
#: Series that one round trip reads: counters and gauges, and histograms.
_CHUNK, _HISTOGRAM_CHUNK = 500, 50
#: Selectors whose data are kept for a query, which may have them several times.
KNOWN_SELECTORS = 4
#: Longest text in a matcher that is taken for no value that was cut: characters.
_SHORTEST_CUT = 8
#: Histograms that one selector may select.
MAX_SELECTED_HISTOGRAMS = 500
#: By how much the times of this process and the server may differ, seconds.
SLACK = 5.0

T = TypeVar("T")
K = TypeVar("K")
#: The types of amounts: numbers of events, sums of values.
KINDS_OF_AMOUNTS = (np.int64, np.float64)
#: The number of events; of a histogram also the sum of their values.
_Numbers = tuple[float, ...]


class _Fields(NamedTuple):
    """A hash of a series: the starts of intervals in seconds, and their amounts.

    Attributes:
        planes: the numbers of events; of a histogram also the sums of their values.
    """

    starts: Times
    planes: tuple[Amounts, ...]


class _Cumulative(NamedTuple):
    """How cumulative series are stored.

    Attributes:
        hashes, totals: the families of their intervals, and of their grand totals.
        parser: makes what parses the hashes of a precision.
        total: parses a grand total.
    """

    hashes: str
    totals: str
    parser: Callable[[], Callable[[Reply], _Fields]]
    total: Callable[[bytes | None], _Numbers]


class QueriedStore(StoreReader, Protocol):
    """A store, as PromQL reads it."""

    @property
    def keys(self) -> Keys:
        """The keys of the store."""


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
        views = {exact: views[exact]} if exact in views else _alias(exports, exact)
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
    known = {name for one in every for name, _ in one.labels} - {METRIC_NAME}
    metric = ", ".join(one.value for one in names)
    there = f"labels: {', '.join(sorted(known))}" if known else "they have no labels"
    for name in asked if every else ():
        if not any(has_label(series, name) for series in every):
            yield (
                f"PromQL info: no series of metric name {quoted(metric)} has the label"
                f" {quoted(name)}; {there}"
            )


def _cut_values(exports: Exports, matchers: Sequence[Matcher]) -> Iterator[str]:
    """Yield a text about each matcher of a value that may be stored, but cut.

    Values that are too long end with `…` in a name, so the complete value fits none.
    """
    names = [one for one in matchers if one.name == METRIC_NAME]
    for matcher in matchers:
        texts = re.split(r"[|()]", matcher.value.replace("\\", ""))
        values = [text for text in texts if len(text) > _SHORTEST_CUT]
        if matcher.name == METRIC_NAME or not values:
            continue
        for one in choose_series(exports, names):
            value = label(one.labels, matcher.name)
            whole = value.removesuffix(ELLIPSIS)
            if whole != value and any(t != value and t.startswith(whole) for t in values):
                yield (
                    f"PromQL info: a value of the label {quoted(matcher.name)} of metric name"
                    f" {quoted(label(one.labels, METRIC_NAME))} was cut, as a value has"
                    f" {LABEL_BYTES} bytes at most: {quoted(value)} may be the one that was meant"
                )
                break


def has_label(one: Chosen, label: str) -> bool:
    """Return whether a chosen series has a label; buckets get theirs when they are read."""
    return any(name == label for name, _ in one.labels) or (label == "le" and one.suffix == BUCKET)


def _alias(exports: Exports, name: str) -> dict[str, tuple[str, str]]:
    """Return the view that another name means.

    `x_total` is the sum of a histogram x: counters of fractional amounts, as OpenTelemetry and
    Prometheus have them, are stored so. `x_gauge` was the name of a gauge x next to a counter x.
    """
    base = name.removesuffix("_total")
    if base != name and base + SUM in exports.views:
        return {name: (base, SUM)}
    base = name.removesuffix("_gauge")
    if base != name and any(one.kind in STATES for one in exports.catalog.by_name.get(base, ())):
        return {name: (base, "")}
    return {}


class StoreSource:
    """Reads intervals from a store, which has the exported series."""

    def __init__(self, store: QueriedStore, exports: Exports) -> None:
        self._store, self._exports = store, exports
        #: Labels in selectors that no series has, and values that were cut, each text once.
        self.infos: dict[str, None] = {}
        #: The newest data: matchers -> from when on, and the data. Values do not depend on that.
        self._known: dict[tuple[Matcher, ...], tuple[int, Stored]] = {}

    def read(self, matchers: Sequence[Matcher], since: int, limits: Limits) -> Stored:
        """Return the data that fulfills all matchers, from a time in milliseconds on."""
        key = tuple(matchers)
        first, stored = self._known.get(key, (since + 1, Stored()))
        if first > since:
            chosen = choose_series(self._exports, matchers)
            self.infos |= dict.fromkeys(_unknown_labels(self._exports, matchers, chosen))
            self.infos |= dict.fromkeys(_cut_values(self._exports, matchers))
            limits.check_series(len(chosen))
            stored = self.read_chosen(chosen, matchers, since, limits)
            self._known[key] = since, stored
            while len(self._known) > KNOWN_SELECTORS:
                del self._known[next(iter(self._known))]
        return stored

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
        for series, how in ((counters, _COUNTERS), (sums, _MOMENTS)):
            if series:
                stored.counters.extend(self._run(partial(request.counters, series, how)))
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
        self._grids: dict[tuple[float, tuple[int, ...]], Grid] = {}

    def _precisions(self, retention: Mapping[int, int]) -> dict[int, int]:
        """Return the part of a retention that the request needs."""
        grid = make_grid(retention, self._now, self._since - SLACK)
        return {part.precision: retention[part.precision] for part in grid.parts}

    def _grid(self, needed: Mapping[int, int], now: float) -> Grid:
        key = now, tuple(needed)
        if key not in self._grids:
            self._grids = {key: make_grid(needed, now, self._since - SLACK)}
        return self._grids[key]

    def counters(
        self, chosen: Sequence[Chosen], how: _Cumulative, kept: Kept
    ) -> Query[list[CounterTable]]:
        """Read counters, or counts and sums of histograms."""
        retention = dict(kept.series if how is _COUNTERS else kept.histograms)
        needed, widest = self._precisions(retention), max(retention)
        first = list(dict.fromkeys((*needed, widest)))
        rest = [precision for precision in retention if precision not in first]
        tables: list[CounterTable] = []
        for chunk in _chunks(chosen, _CHUNK):
            self._limits.interrupt()
            names = list(dict.fromkeys(one.series.stored for one in chunk))
            # Totals first: they have no events that the intervals do not have.
            totals = indexes.fields(self._keys, self._keys.key(how.totals), names)
            view, (reply, *texts_of) = yield [totals, *self._hashes(how, names, first)]
            texts = there(reply, [None] * len(names))
            ever = dict(zip(names, map(how.total, texts), strict=True))
            hashes = _by_precision(names, first, texts_of)
            oldest = _oldest(view.now, widest, retention[widest])
            known = {
                name: max(ever[name], _kept(own[widest], oldest)) for name, own in hashes.items()
            }
            read = [one for one in chunk if one.series.stored in hashes]
            made = _tables(self._grid(needed, view.now), read, hashes, known)
            young = {
                labels
                for table in made
                for labels, complete in zip(table.labels, table.complete, strict=True)
                if complete
            }
            if young and needed != retention:
                whole = [one for one in read if one.labels in young]
                made = _tables(
                    *(
                        self._grid(needed, view.now),
                        [one for one in read if one.labels not in young],
                    ),
                    *(hashes, known),
                )
                names = list(dict.fromkeys(one.series.stored for one in whole))
                if rest:
                    _, more = yield self._hashes(how, names, rest)
                    for name, own in _by_precision(names, rest, more).items():
                        hashes[name] |= own
                made += _tables(make_grid(retention, view.now, -np.inf), whole, hashes, known)
            tables += made
        return tables

    def _hashes(
        self, how: _Cumulative, names: Sequence[str], precisions: Sequence[int]
    ) -> list[Read]:
        parsers = {precision: partial(_parsed, how.parser()) for precision in precisions}
        return [
            ParsedRead(("HGETALL", self._keys.key(how.hashes, f"{precision}:{name}")), parse)
            for name in names
            for precision, parse in parsers.items()
        ]

    def natives(self, chosen: Sequence[Chosen], kept: Kept) -> Query[list[Native]]:
        """Read histograms."""
        needed, widest = self._precisions(kept.histograms), max(kept.histograms)
        natives = []
        for chunk in _chunks(chosen, _HISTOGRAM_CHUNK):
            self._limits.interrupt()
            names = [one.series.stored for one in chunk]
            reads: list[Read] = [
                *(
                    indexes.fields(self._keys, self._keys.key(totals), names)
                    for totals in ("sums", "spreads")
                ),
                *(("HGETALL", self._keys.moments(widest, name)) for name in names),
                *(
                    ("HGETALL", key(precision, name))
                    for name in names
                    for precision in needed
                    for key in (self._keys.hist, self._keys.moments)
                ),
            ]
            view, (sums, spreads, *replies) = yield reads
            oldest = _oldest(view.now, widest, kept.histograms[widest])
            moments = [_since(oldest, there(reply, [])) for reply in replies[: len(chunk)]]
            texts = (there(reply, [None] * len(names)) for reply in (spreads, sums))
            ever = [
                parse_distribution(*both) or Distribution() for both in zip(*texts, strict=True)
            ]
            # Values from before there were grand totals.
            early = [
                number
                for number, texts_of in enumerate(moments)
                if ever[number].count < _counts_and_sums(texts_of).planes[0].sum()
            ]
            if early:
                _, hists = yield [
                    ("HGETALL", self._keys.hist(widest, names[number])) for number in early
                ]
                for number, hist in zip(early, hists, strict=True):
                    by_start = dict(pairs(moments[number]))
                    buckets = pairs(_since(oldest, there(hist, [])))
                    ever[number] = merge_distributions(
                        (text, by_start.get(at)) for at, text in buckets
                    )
            grid = self._grid(needed, view.now)
            rows = _by_series(chunk, replies[len(chunk) :], 2 * len(needed))
            for one, total in zip(chunk, ever, strict=True):
                hashes = rows.get(one, [()] * 2 * len(needed))
                both = dict(zip(needed, zip(hashes[::2], hashes[1::2], strict=True), strict=True))
                natives.append(_native(grid, view.now, one.labels, both, total))
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
                    partial(_gauge, one, precision, count),
                )
                for one in chunk
                for precision, count in needed.items()
            ]
            for row in _by_series(chunk, replies, len(needed)).values():
                for (precision, count), series in zip(needed.items(), row, strict=True):
                    oldest = _oldest(view.now, precision, count) * 1000
                    empty = GaugeSamples(precision * 1000, oldest, [], held)
                    samples.setdefault(precision, empty).series.append(series)
        return list(samples.values())


def _oldest(now: float, precision: int, count: int) -> int:
    """Return the start of the oldest interval that is kept, Unix seconds."""
    return (int(now) // precision - count + 1) * precision


def _chunks(chosen: Sequence[Chosen], size: int) -> list[Sequence[Chosen]]:
    return [chosen[at : at + size] for at in range(0, len(chosen), size)]


def _by_series(
    series: Sequence[K], replies: Sequence[Reply], each: int
) -> dict[K, Sequence[Reply]]:
    """Return the replies of each series, without those of other programs."""
    rows = {one: replies[at * each : (at + 1) * each] for at, one in enumerate(series)}
    return readable(rows, needed=False)


def _by_precision(
    names: Sequence[str], precisions: Sequence[int], replies: Sequence[Any]
) -> dict[str, dict[int, _Fields]]:
    """Return the hashes of each series, without those of other programs."""
    rows = _by_series(names, replies, len(precisions))
    return {name: dict(zip(precisions, row, strict=True)) for name, row in rows.items()}


def _tables(
    grid: Grid,
    chosen: Sequence[Chosen],
    hashes: Mapping[str, Mapping[int, _Fields]],
    known: Mapping[str, _Numbers],
) -> list[CounterTable]:
    """Return the cumulative functions of the numbers, and of the sums, that are chosen."""
    tables = []
    for plane, suffixes in enumerate((("", COUNT), (SUM,))):
        series = [one for one in chosen if one.suffix in suffixes]
        if series:
            names = [one.series.stored for one in series]
            table, *sums = (
                accumulate(
                    *(grid, [one.labels for one in series], *_laid(grid, names, hashes, number)),
                    np.array([known[name][number] for name in names], KINDS_OF_AMOUNTS[number]),
                )
                for number in range(plane + 1)
            )
            tables.append(sums[0].following(table) if sums else table)
    return tables


def _laid(
    grid: Grid, names: Sequence[str], hashes: Mapping[str, Mapping[int, _Fields]], plane: int
) -> tuple[list[Amounts], list[Bools]]:
    """Return one of the amounts of series, and which are stored, for each part of a grid."""
    counts, stored = [], []
    for part in grid.parts:
        fields = (hashes[name][part.precision] for name in names)
        pairs_of = [(one.starts, one.planes[plane]) for one in fields]
        values, there_are = lay(part, part.count(grid.now // 1000), pairs_of)
        counts.append(values)
        stored.append(there_are)
    return counts, stored


def _parsed(parse: Callable[[Reply], _Fields], _: View, reply: Reply) -> _Fields | StoreError:
    return reply if isinstance(reply, StoreError) else parse(reply)


def _kept(fields: _Fields, oldest: int) -> _Numbers:
    """Return the amounts of all intervals that start no earlier than a time in seconds."""
    inside = fields.starts >= oldest
    sums = (sum(plane[inside].tolist()) for plane in fields.planes)
    return tuple(min(amount, counter.MAX_COUNT) for amount in sums)


def _since(oldest: int, reply: Reply) -> Reply:
    """Return the fields of a hash that start no earlier than a time in Unix seconds."""
    fields = pairs(reply)
    return [
        text for field in fields if field[0].isdigit() and int(field[0]) >= oldest for text in field
    ]


def _fields(*amounts: Mapping[int, float]) -> _Fields:
    """Return the fields of a hash, given each of the amounts by start."""
    starts = [start for start in amounts[0] if abs(start) < INT64_END]
    planes = zip(amounts, KINDS_OF_AMOUNTS, strict=False)
    return _Fields(
        np.array(starts, np.int64),
        tuple(np.array([own[start] for start in starts], kind) for own, kind in planes),
    )


class _CounterParser:
    """Parses the hashes of counters; those that are recorded together have the same starts."""

    def __init__(self) -> None:
        self._texts: Sequence[bytes] = ()
        self._starts: Times = np.zeros(0, np.int64)

    def __call__(self, reply: Reply) -> _Fields:
        if isinstance(reply, dict):
            reply = [text for pair in reply.items() for text in pair]
        try:
            counts = np.array(list(map(int, reply[1::2])), np.int64)
            if self._texts != (texts := reply[::2]):
                self._texts, self._starts = texts, np.array(list(map(int, texts)), np.int64)
        except (ValueError, OverflowError):  # another program's
            self._texts = ()
            self._starts = np.zeros(0, np.int64)
            return _fields(parse_counter(pairs(reply)))
        return _Fields(self._starts, (counts,))


def _count(text: bytes | None) -> _Numbers:
    try:
        return (counter.count_of(text),)
    except ValueError:
        return (0,)


def _counts_and_sums(reply: Reply) -> _Fields:
    counts, sums = {}, {}
    for start, text in pairs(reply):
        moments = parse_moments(text)
        if moments is not None and start.isdigit():
            counts[int(start)], sums[int(start)] = moments.count, moments.total
    return _fields(counts, sums)


def _count_and_sum(text: bytes | None) -> _Numbers:
    moments = parse_moments(text) if text else None
    return (moments.count, moments.total) if moments else (0, 0.0)


_COUNTERS = _Cumulative("count", "total", _CounterParser, _count)
_MOMENTS = _Cumulative("moments", "sums", lambda: _counts_and_sums, _count_and_sum)


def _gauge(
    one: Chosen, precision: int, count: int, view: View, reply: Reply
) -> SampledSeries | StoreError:
    if isinstance(reply, StoreError):
        return reply
    oldest = _oldest(view.now, precision, count)
    samples = _plain_samples(one.series.kind, reply, precision)
    if samples is None:
        kind, kept = one.series.kind, pairs(reply)
        states = (
            parse_state(kind, text, int(start), precision)
            for start, text in kept
            if start.isdigit()
        )
        samples = np.array([state for state in states if state is not None], np.float64)
    times, values = samples.reshape(-1, 2).T
    order = np.lexsort((values, times))
    order = order[times[order] >= oldest]
    return SampledSeries(one.labels, np.rint(times[order] * 1000).astype(np.int64), values[order])


def _plain_samples(kind: str, reply: Reply, precision: int) -> Floats | None:
    """Return the times and values of a gauge's hash as Redmeter writes it; None for others."""
    if kind != GAUGE or not isinstance(reply, list):
        return None
    try:
        starts = np.array(list(map(int, reply[::2])), np.int64)
        texts = b" ".join(reply[1::2]).split(b" ")
        values, times = np.array(list(map(float, texts)), np.float64).reshape(len(starts), 2).T
    except (ValueError, OverflowError):
        return None
    inside = (starts <= times) & (times < starts + precision) & np.isfinite(values)
    return np.column_stack((times, values))[inside]


def _native(
    grid: Grid,
    now: float,
    labels: LabelSet,
    hashes: Mapping[int, tuple[Reply, Reply]],
    total: Distribution,
) -> Native:
    """Return a histogram, given buckets and moments at each precision, and of all time."""
    parts: list[dict[int, Distribution]] = []
    for part in grid.parts:
        buckets, moments = (dict(pairs(reply)) for reply in hashes[part.precision])
        parts.append({})
        for start, text in buckets.items():
            if start.isdigit() and int(start) >= part.first:
                distribution = parse_distribution(text, moments.get(start))
                if distribution is not None:
                    parts[-1][int(start)] = distribution
    every = [total, *(one for part in parts for one in part.values())]
    positive = sorted({index for one in every for index in one.positive})
    negative = sorted({index for one in every for index in one.negative})
    size = 3 + len(positive) + len(negative)
    place = {index: 3 + number for number, index in enumerate(positive)}
    mirrored = {index: 3 + len(positive) + number for number, index in enumerate(negative)}

    def column_of(one: Distribution) -> Floats:
        column = np.zeros(size)
        column[:3] = one.count, one.moments.total, one.zeros
        column[[place[index] for index in one.positive]] = list(one.positive.values())
        column[[mirrored[index] for index in one.negative]] = list(one.negative.values())
        return column

    counts, stored = [], []
    for part, distributions in zip(grid.parts, parts, strict=True):
        columns = part.count(int(now))
        values, there = np.zeros((size, columns)), np.zeros(columns, bool)
        for begin, one in distributions.items():
            column = min((begin - part.first) // part.precision, columns - 1)
            if part.end is not None and begin >= part.end:
                continue
            there[column] = True
            values[:, column] += column_of(one)
        counts.append(values)
        stored.append(np.tile(there, (size, 1)))
    table = accumulate(grid, [labels] * size, counts, stored, column_of(total))
    table = table.following(table.rows(slice(1)))
    # Bucket i holds values up to 2^((i+1)/16) here, and up to 2^(i/16) as Prometheus counts.
    return Native(labels, table, tuple(i + 1 for i in positive), tuple(i + 1 for i in negative))
