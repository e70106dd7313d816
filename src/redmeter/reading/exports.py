"""The series of a store under their names for Prometheus.

The listing of a store's indexes is kept for a moment: queries that arrive together share it.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

from redmeter.formats.prometheus_names import HISTOGRAM, SUFFIXES, Catalog, Namer
from redmeter.keys import Kept, Keys
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
