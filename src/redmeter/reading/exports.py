"""The series of a store under their names for Prometheus, and scrapes of them.

The listing of a store's indexes is kept for a moment: queries that arrive together share it.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from redmeter.format import gauge
from redmeter.format.counter import count_of
from redmeter.formats.exposition import Format, exposition
from redmeter.formats.prometheus_names import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    SUFFIXES,
    Catalog,
    Exported,
    Namer,
)
from redmeter.keys import Kept, Keys, slice_start
from redmeter.reading.foreign_keys import there
from redmeter.reading.names import MAX_NAMES, matching_ends, names_in
from redmeter.store import Store, indexes
from redmeter.store.query import Query, Read, run

#: How long a listing is used, seconds.
LISTING = 2.0


@dataclass(frozen=True)
class Exports:
    """What a store exports.

    Attributes:
        catalog: its series.
        views: metric name -> name within the catalog, and suffix: "" or one of SUFFIXES.
        now: the server's time when it was listed, Unix seconds.
        listed: the same by this process' monotonic clock.
    """

    catalog: Catalog
    views: Mapping[str, tuple[str, str]]
    now: float
    listed: float

    def time(self) -> float:
        """Return the server's current time, as far as known without asking."""
        return self.now + monotonic() - self.listed


class ExportList:
    """Lists what a store exports. Safe to share between threads.

    Args:
        store: the store.
        seconds: how long a listing is used.
    """

    def __init__(self, store: Store, seconds: float = LISTING) -> None:
        self.store = store
        self._seconds = seconds
        self._namer = Namer()
        self._lock = threading.Lock()
        self._newest: Exports | None = None

    def read(self) -> Exports:
        """Return the series of the store.

        Raises:
            LimitExceeded: over 100,000 of a kind.
            StoreError: the store is unreachable or refuses.
        """
        with self._lock:
            newest = self._newest
            if newest is None or monotonic() - newest.listed >= self._seconds:
                newest = self._newest = self._read()
            return newest

    def _read(self) -> Exports:
        keys = self.store.keys
        view, names = run(self.store, lambda kept: _names(keys, kept))
        catalog = self._namer.catalog(*names)
        views: dict[str, tuple[str, str]] = {}
        for name, series in catalog.by_name.items():
            views[name] = name, ""
            if series[0].kind == HISTOGRAM:
                views |= {name + suffix: (name, suffix) for suffix in SUFFIXES}
        return Exports(catalog, views, view.now, monotonic())


def _names(keys: Keys, kept: Kept) -> Query[tuple[set[str], set[str], set[str]]]:
    """Read the stored names of counters, gauges and histograms."""
    listings = [
        (keys.known, kept.series),
        (keys.gauges, kept.series),
        (keys.hists, kept.histograms),
    ]
    reads: list[Read] = [
        indexes.members(keys, index, *matching_ends(precision, "*"), count=MAX_NAMES + 1)
        for index, retention in listings
        for precision in retention
    ]
    _, replies = yield reads
    answers = iter(replies)
    counters, gauges, histograms = (
        {name for precision in retention for name in names_in(there(next(answers), []), precision)}
        for _, retention in listings
    )
    return counters, gauges, histograms


# --- Scrapes -----------------------------------------------------------------------------------
#
# The values of a scrape are grand totals of counters, and current values of gauges. Grand totals
# are the only values that never fall. Counters that only other programs write have none, and
# neither have histograms: they are counted as not exported.

#: Series that one round trip reads.
CHUNK = 5_000
#: How long the last value of a gauge is its current one, seconds.
LOOKBACK = 300

Values = dict[str, dict[str, float]]


def scrape(exports: ExportList, form: Format) -> str:
    """Return the text of a scrape.

    Raises:
        LimitExceeded, StoreError: of the store.
    """
    listed = exports.read()
    by_kind: dict[str, list[Exported]] = {COUNTER: [], GAUGE: [], HISTOGRAM: []}
    for one in listed.catalog:
        by_kind[one.kind].append(one)
    now, keys = listed.time(), exports.store.keys
    _, values = run(exports.store, lambda kept: _values(keys, kept, by_kind, now))
    hidden = {
        **listed.catalog.hidden,
        "no-total": len(by_kind[COUNTER]) - len(values[COUNTER]),
        "histogram": len(by_kind[HISTOGRAM]),
    }
    shown = {reason: count for reason, count in hidden.items() if count}
    return exposition(listed.catalog, values, form, shown)


def _values(
    keys: Keys, kept: Kept, by_kind: Mapping[str, Sequence[Exported]], now: float
) -> Query[Values]:
    values: Values = {COUNTER: {}, GAUGE: {}}
    counters = [one.stored for one in by_kind[COUNTER]]
    for at in range(0, len(counters), CHUNK):
        names = counters[at : at + CHUNK]
        _, (reply,) = yield [indexes.totals(keys, names)]
        for name, text in zip(names, there(reply, [None] * len(names)), strict=True):
            try:
                if text is not None:
                    values[COUNTER][name] = count_of(text)
            except ValueError:
                continue  # another program's
    width = max((p for p in kept.series if p <= LOOKBACK), default=min(kept.series))
    newest = slice_start(now, width)
    starts = [newest + width, newest, newest - width]  # the server's clock may be ahead
    fields = [str(start) for start in starts]
    gauges = [one.stored for one in by_kind[GAUGE]]
    for at in range(0, len(gauges), CHUNK):
        names = gauges[at : at + CHUNK]
        _, replies = yield [("HMGET", keys.gauge(width, name), *fields) for name in names]
        for name, reply in zip(names, replies, strict=True):
            for start, text in zip(starts, there(reply, [None] * len(starts)), strict=True):
                measured = None if text is None else gauge.parse(text, start, width)
                if measured is not None and measured[0] > now - max(LOOKBACK, width):
                    values[GAUGE][name] = measured[1]
                    break
    return values
