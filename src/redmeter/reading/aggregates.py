"""Aggregates: samples, summaries, forecasts and totals of all label sets that a name means.

Counters are summed interval by interval, and histograms are merged. Gauges are summed over their
label `instance`, which identifies a process; a sum over another label may mean nothing, so
the caller chooses how to aggregate it. The current interval sums live processes: a part is left out
if no live process has its number and it was not reported for INSTANCE_SECONDS; that of a live one
counts before it has a sample in this interval, see samples.py. See selection.py for which
series a name means.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeVar

from redmeter.analysis.forecasting.forecast import forecast
from redmeter.clock import UTC, Zone
from redmeter.errors import InvalidName, InvalidValue, LimitExceeded
from redmeter.names import INSTANCE, parse_name
from redmeter.reading.distributions import SummaryGrid
from redmeter.reading.foreign_keys import readable
from redmeter.reading.samples import (
    Grid,
    counts_among,
    covered,
    part_number,
    read_live_numbers,
    series_of,
    start_of,
)
from redmeter.reading.selection import (
    GroupKey,
    check_asked,
    name_of,
    parse_state,
    read_selected,
    selects,
    split,
)
from redmeter.results.forecasts import Forecast
from redmeter.results.series import CoveredWindow, Series
from redmeter.results.summaries import Summary
from redmeter.store import Store, View, indexes
from redmeter.store.producers import INSTANCE_SECONDS
from redmeter.store.query import Query, escaped, run_query, scan_fields, together
from redmeter.store.servers.replies import Reply, mapped, raised
from redmeter.stored.keys import Kept, Keys, slice_end
from redmeter.types import Selection, Window

T = TypeVar("T")
V = TypeVar("V", int, float | None)

#: Most groups that are forecast at once: each takes some milliseconds.
MAX_FORECASTS = 50

#: How label sets of a gauge are aggregated.
AGGREGATES: Mapping[str, Callable[[Iterable[float]], float]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "mean": lambda values: fmean(values),
}

Values = Sequence[float | None]


def read_counter(
    keys: Keys,
    selection: Selection,
    window: Window,
    *,
    needed: bool = True,
    kinds: Collection[str] = ("counter",),
) -> Query[list[tuple[GroupKey, Series[int]]]]:
    """Read the samples of counters, summed within each group; the busiest group comes first.

    Args:
        needed: see readable(); if not, and nothing can be read, there is no group.
        kinds: if there is no counter of this name, it has one of these kinds, or none.

    Raises:
        WrongKind: see `kinds`.
        UnknownLabel: no series of the name has a label of the selection.
        UnknownPrecision, LimitExceeded, StoreError: see read_selected().
    """
    view, replies = yield from read_selected(keys, "counter", selection, window.precision)
    yield from check_asked(keys, view, selection, kinds, _found(replies))
    replies_of = readable(replies, needed=needed)
    return counted(view, replies_of, selection, window)


def counted(
    view: View, found: Mapping[str, Sequence[Reply]], selection: Selection, window: Window
) -> list[tuple[GroupKey, Series[int]]]:
    """Sum the hashes of counters."""
    grid = Grid(covered(window, view.retention, view.now), view.now)
    parts = {name: grid.counter(name, reply).values for name, (reply,) in found.items()}
    return summed_up(parts, selection, grid.window)


def summed_up(
    parts: Mapping[str, tuple[int, ...]],
    selection: Selection,
    window: CoveredWindow,
) -> list[tuple[GroupKey, Series[int]]]:
    """Sum samples of counters within each group.

    Args:
        parts: the samples of each series up to the end of the window.
    """
    rows: list[tuple[GroupKey, Series[int]]] = []
    for key, some in _groups(selection, parts).items():
        values = [0] * max(map(len, some.values()), default=0)
        for samples in some.values():
            at = len(values) - len(samples)
            values[at:] = map(int.__add__, values[at:], samples)
        rows.append((key, series_of(name_of(selection), window, values)))
    return sorted(rows, key=lambda row: (-row[1].total, _order(row[0])))


def read_gauge(
    keys: Keys,
    selection: Selection,
    window: Window,
    aggregate: str | None,
    *,
    kind: str = "gauge",
    needed: bool = True,
    kinds: Collection[str] = (),
) -> Query[list[tuple[GroupKey, Series[float | None]]]]:
    """Read the samples of gauges, or of others of STATES, aggregated within each group.

    Groups are sorted by labels.

    Args:
        aggregate: how to aggregate label sets that differ in more than INSTANCE: a key of
            AGGREGATES.
        kind: one of STATES.
        needed: see readable(); if not, and nothing can be read, there is no group.
        kinds: if there is no series of this kind and name, it has one of these, or none; by default
            `kind` alone.

    Raises:
        WrongKind: see `kinds`.
        UnknownLabel: no series of the name has a label of the selection.
        InvalidValue: they do differ, and `aggregate` is None.
        UnknownPrecision, LimitExceeded, StoreError: see read_selected().
    """
    (view, replies), live = yield from together(
        [
            read_selected(keys, kind, selection, window.precision),
            _live_instances(keys, selection),
        ]
    )
    yield from check_asked(keys, view, selection, kinds or (kind,), _found(replies))
    replies_of = readable(replies, needed=needed)
    return measured(view, replies_of, live, selection, window, aggregate, kind)


def _live_instances(keys: Keys, selection: Selection) -> Query[Any]:
    """Read the numbers of live processes; None for an exact selection, which sums nothing."""
    if selection.exact:
        return None
    return (yield from read_live_numbers(keys))


def measured(
    view: View,
    found: Mapping[str, Sequence[Reply]],
    live: Collection[bytes] | None,
    selection: Selection,
    window: Window,
    aggregate: str | None,
    kind: str = "gauge",
) -> list[tuple[GroupKey, Series[float | None]]]:
    """Aggregate the hashes of gauges, or of others of STATES.

    Args:
        live: the numbers of live processes; None: sum all.
    """
    grid = Grid(covered(window, view.retention, view.now), view.now)
    parts: dict[str, Values] = {}
    for name, (reply,) in found.items():
        values = parts[name] = grid.state(kind, name, reply, live).values
        number = part_number(name)
        if live is None or not values or not grid.window.running or number is None:
            continue
        at = grid.starts[-1]
        text = mapped(reply).get(b"%d" % at)
        newest = None if text is None else parse_state(kind, text, at, window.precision)
        if number not in live and newest and newest[0] < view.now - INSTANCE_SECONDS:
            parts[name] = (*values[:-1], None)
    return aggregated(parts, selection, grid.window, aggregate)


def aggregated(
    parts: Mapping[str, Values],
    selection: Selection,
    window: CoveredWindow,
    aggregate: str | None,
) -> list[tuple[GroupKey, Series[float | None]]]:
    """Aggregate samples of gauges within each group; see read_gauge() and summed_up()."""
    rows: list[tuple[GroupKey, Series[float | None]]] = []
    for key, some in _groups(selection, parts).items():
        if aggregate is None:
            _check_labels(selection, some)
        processes: dict[str, list[Values]] = {}
        for name, values in some.items():
            processes.setdefault(_without_instance(name), []).append(values)
        size = max(map(len, some.values()), default=0)
        sums = [_combined(columns, size, sum) for columns in processes.values()]
        whole = _combined(sums, size, AGGREGATES[aggregate or "sum"])
        rows.append((key, series_of(name_of(selection), window, whole)))
    return sorted(rows, key=lambda row: _order(row[0]))


def _check_labels(selection: Selection, names: Iterable[str]) -> None:
    known = {INSTANCE, *selection.labels, *selection.by}
    for name in () if selection.exact else names:
        for label, _ in parse_name(name).labels:
            if label not in known:
                raise InvalidValue(
                    selection.name,
                    f"this gauge has the label {label}, and a sum over it may mean nothing: "
                    f"split by {label}, filter by it, or aggregate by sum, min, max or mean",
                )


def _without_instance(name: str) -> str:
    try:
        labels = parse_name(name).labels
    except InvalidName:  # which is read exactly
        return name
    return repr([pair for pair in labels if pair[0] != INSTANCE])


def _combined(
    columns: Sequence[Values], size: int, combine: Callable[[Iterable[float]], float]
) -> Values:
    if len(columns) == 1:
        return columns[0]
    gap: list[float | None] = [None]
    padded = [[*(gap * (size - len(values))), *values] for values in columns]
    rows = ([value for value in row if value is not None] for row in zip(*padded, strict=True))
    return [combine(row) if row else None for row in rows]


def read_summary(
    keys: Keys, selection: Selection, window: Window, *, needed: bool = True
) -> Query[list[tuple[GroupKey, Summary]]]:
    """Read distributions of histograms, merged within each group; the largest comes first.

    Args:
        needed: see readable(); if not, and nothing can be read, there is no group.

    Raises:
        WrongKind: there is no histogram of this name, but another kind has it.
        UnknownLabel: no series of the name has a label of the selection.
        UnknownPrecision, LimitExceeded, StoreError: see read_selected().
    """
    view, replies = yield from read_selected(keys, "histogram", selection, window.precision)
    yield from check_asked(keys, view, selection, ("histogram",), _found(replies))
    replies_of = readable(replies, needed=needed)
    grid = SummaryGrid(covered(window, view.histograms, view.now))
    stored = {name: hashes if any(hashes) else () for name, hashes in replies_of.items()}
    rows = [
        (key, grid.summary(name_of(selection), list(some.values())))
        for key, some in _groups(selection, stored).items()
    ]
    return sorted(rows, key=lambda row: (-row[1].count, _order(row[0])))


def read_forecasts(
    keys: Keys,
    selection: Selection,
    precision: int,
    ahead: int | None = None,
    aggregate: str | None = None,
    *,
    zone: Zone = UTC,
) -> Query[list[tuple[GroupKey, Forecast]]]:
    """Read the forecast of each group of counters or, if there are none, of gauges.

    A group is forecast as the sum of its label sets.

    Args:
        ahead: how many intervals; see analysis/forecasting/forecast.py.
        aggregate: see read_gauge().
        zone: see analysis/forecasting/forecast.py.

    Returns:
        Forecasts without ranges and with a `reason` if too little is kept; those of counters with
        the busiest group first, those of gauges in order of the labels.

    Raises:
        WrongKind: it is a histogram.
        UnknownLabel: no series of the name has a label of the selection.
        LimitExceeded: too many label sets, or over MAX_FORECASTS groups.
        InvalidValue: see read_gauge().
        UnknownPrecision, StoreError: see read_selected().
    """
    (view, counts), (_, settings), live = yield from together(
        [
            read_selected(keys, "counter", selection, precision),
            read_selected(keys, "gauge", selection, precision),
            _live_instances(keys, selection),
        ]
    )
    found = _found(counts) or _found(settings)
    yield from check_asked(keys, view, selection, ("counter", "gauge"), found)
    replies: dict[tuple[bool, str], Sequence[Reply]] = {}
    for is_gauge, some in ((False, counts), (True, settings)):
        replies |= {(is_gauge, name): own for name, own in some.items()}
    replies_of = readable(replies)
    counts = {name: own for (is_gauge, name), own in replies_of.items() if not is_gauge}
    settings = {name: own for (is_gauge, name), own in replies_of.items() if is_gauge}
    window = Window(precision)
    counters = counted(view, counts, selection, window)
    if any(series for _, series in counters) or not settings:
        return forecasts(selection, precision, counters, [], ahead, zone)
    gauges = measured(view, settings, live, selection, window, aggregate)
    return forecasts(selection, precision, [], gauges, ahead, zone)


def read_zoned_forecasts(
    store: Store, selection: Selection, precision: int, ahead: int | None, aggregate: str | None
) -> list[tuple[GroupKey, Forecast]]:
    """Read the same, with the time of day of the store's time zone."""

    def query(_: Kept) -> Query[list[tuple[GroupKey, Forecast]]]:
        return read_forecasts(store.keys, selection, precision, ahead, aggregate, zone=store.zone)

    return run_query(store, query)[1]


def past_within(forecast: Forecast, window: Window) -> Forecast:
    """Return a forecast whose past and anomalies are those of a window."""
    if not forecast.ahead:
        return forecast
    start = start_of(window, forecast.ahead[0].start)
    first = -math.inf if start is None else start
    end = math.inf if window.until is None else slice_end(window.until, window.precision)
    return replace(
        forecast,
        past=tuple(one for one in forecast.past if first <= one.start < end),
        anomalies=tuple(one for one in forecast.anomalies if first <= one.start < end),
    )


def read_total(
    keys: Keys, selection: Selection, *, checked: bool = True
) -> Query[dict[GroupKey, int]]:
    """Read everything ever counted of each group.

    Totals are found by name among all totals, not by the index: they do not expire, so a total
    never falls.

    Raises:
        WrongKind: there is no counter of this name, but another kind has it; not without `checked`.
        UnknownLabel: no series of the name has a label of the selection; not without `checked`.
        StoreError: the server is unreachable or refuses.
    """
    if selection.exact:
        view, (reply,) = yield [indexes.grand_totals(keys, [selection.name])]
        (value,) = raised(reply)
        texts = {} if value is None else {selection.name: value}
        totals = None
    else:
        whole = name_of(selection)
        one = _total_of(keys, whole)
        scan = scan_fields(keys, keys.total, escaped(selection.name) + "{*")
        both: list[Query[Any]] = [one, scan]
        (view, base), others = yield from together(both)
        totals = {field.decode(errors="replace"): value for field, value in (base | others).items()}
        texts = {name: value for name, value in totals.items() if selects(selection, name)}
    if checked:
        yield from check_asked(keys, view, selection, ("counter",), texts, counted=totals)
    counts = counts_among(texts, keys.total, of=len(texts))
    return {key: sum(some.values()) for key, some in split(selection, counts).items()}


def _total_of(keys: Keys, name: str) -> Query[tuple[View, dict[bytes, bytes]]]:
    view, (reply,) = yield [indexes.grand_totals(keys, [name])]
    (value,) = raised(reply)
    return view, {} if value is None else {name.encode(): value}


def _found(replies: Mapping[str, Sequence[Reply]]) -> list[str]:
    """Return the series that have anything; an error is something."""
    return [name for name, hashes in replies.items() if any(hashes)]


def _groups(selection: Selection, found: Mapping[str, T]) -> dict[GroupKey, dict[str, T]]:
    """Split series into groups, without those that are empty; one group if there is no `by`."""
    groups = split(selection, {name: one for name, one in found.items() if one})
    return groups if groups or selection.by or not found else {(): {}}


def _order(key: GroupKey) -> tuple[str, ...]:
    return tuple(value or "" for value in key)


# --- Forecasts, see analysis/forecasting/forecast.py ----------------------------------------


def forecasts(
    selection: Selection,
    precision: int,
    counters: Sequence[tuple[GroupKey, Series[int]]],
    gauges: Sequence[tuple[GroupKey, Series[float | None]]],
    ahead: int | None = None,
    zone: Zone = UTC,
) -> list[tuple[GroupKey, Forecast]]:
    """Return the forecast of each group of counters, or of gauges if no counter has samples.

    Raises:
        LimitExceeded: over MAX_FORECASTS groups.
    """
    groups = max(len(counters), len(gauges))
    if groups > MAX_FORECASTS:
        raise LimitExceeded("forecasts", groups, MAX_FORECASTS, "filter by labels")
    if any(series for _, series in gauges) and not any(series for _, series in counters):
        return [
            (key, forecast(series, counts=False, ahead=ahead, zone=zone)) for key, series in gauges
        ]
    if not counters and not selection.by:
        empty = Series[int](name_of(selection), precision, 0, (), partial=False)
        counters = [((), empty)]
    return [
        (key, forecast(series, counts=True, ahead=ahead, zone=zone)) for key, series in counters
    ]
