"""The series of a store under their names for Prometheus.

The listing of a store's indexes is kept for a moment: queries that arrive together share it.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from redmeter.errors import StoreError
from redmeter.export.prometheus_names import HISTOGRAM, SUFFIXES, Catalog, Namer
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import list_entries
from redmeter.reading.names import MAX_NAMES, matching_ends, names_in
from redmeter.store import Store, indexes
from redmeter.store.query import Query, in_parts, run_query, together
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Kept, Keys

#: How long a listing is used, seconds.
LISTING = 2.0

#: The members of an index by precision.
_Members = list[tuple[int, Sequence[bytes]]]


@dataclass(frozen=True)
class Exports:
    """What a store exports.

    Attributes:
        catalog: its series.
        views: metric name -> name within the catalog, and suffix: "" or one of SUFFIXES.
        now: the server's time when it was listed, Unix seconds.
        listed: the same by this process' monotonic clock.
        missing: what a best-effort listing left out, as sentences.
    """

    catalog: Catalog
    views: Mapping[str, tuple[str, str]]
    now: float
    listed: float
    missing: Sequence[str] = ()

    def time(self) -> float:
        """Return the server's current time, as far as known without asking."""
        return self.now + monotonic() - self.listed


def exported(catalog: Catalog, now: float, listed: float) -> Exports:
    """Return what a store exports, given its series, and when they were listed."""
    views: dict[str, tuple[str, str]] = {}
    for name, series in catalog.by_name.items():
        views[name] = name, ""
        if series[0].kind == HISTOGRAM:
            views |= {name + suffix: (name, suffix) for suffix in SUFFIXES}
    return Exports(catalog, views, now, listed)


class ExportList:
    """Lists what a store exports. Safe to share between threads.

    Args:
        store: the store.
        seconds: how long a listing is used.
        widest: list the widest precision alone, which has all series that Redmeter writes. If
            another one has more, as after a change of the retention, it is listed, too.
        best_effort: leave out the series of servers that do not answer.
    """

    def __init__(
        self,
        store: Store,
        seconds: float = LISTING,
        *,
        widest: bool = False,
        best_effort: bool = False,
    ) -> None:
        self.store = store
        self._best_effort = best_effort
        self._seconds, self._widest = seconds, widest
        self._namer = Namer()
        self._lock = threading.Lock()
        self._newest: Exports | None = None
        #: The members that it was made of.
        self._members: list[_Members] = []

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
        # Each listing has its own list of servers that do not answer.
        store = self.store.best_effort() if self._best_effort else self.store
        view, members = run_query(store, lambda kept: _members(keys, kept, widest=self._widest))
        missing = store.skipped()
        newest = self._newest
        if newest is not None and members == self._members:
            return replace(newest, now=view.now, listed=monotonic(), missing=missing)
        names = [{name for _, entries in index for name in names_in(entries)} for index in members]
        catalog = self._namer.catalog(dict(zip(SERIES_KINDS, names, strict=True)))
        self._members = members
        return replace(exported(catalog, view.now, monotonic()), missing=missing)


def _members(keys: Keys, kept: Kept, *, widest: bool) -> Query[list[_Members]]:
    """Read the members of the index of each kind of series."""
    listings = {
        keys.key(stored.index.name): tuple(kept.of(kind)) for kind, stored in SERIES_KINDS.items()
    }

    def listing(entry: tuple[str, int]) -> Query[Sequence[Any]]:
        index, width = entry
        try:
            ends = matching_ends(width, "*")
            return (yield from list_entries(keys, index, ends, MAX_NAMES + 1))
        except StoreError as error:
            return there(error, [])

    def sizes(some: Sequence[tuple[str, int]]) -> Query[Sequence[Any]]:
        ranges = [(index, *matching_ends(width, "*")) for index, width in some]
        (replies,) = yield from in_parts([[indexes.size_between(keys, *each) for each in ranges]])
        return [there(reply, 0) for reply in replies]

    entries = [(index, width) for index, widths in listings.items() for width in widths]
    first = [(index, max(widths)) for index, widths in listings.items()] if widest else entries
    counted = entries if widest else []
    *found, counts = yield from together([*map(listing, first), sizes(counted)])
    read: dict[tuple[str, int], Sequence[bytes]] = dict(zip(first, found, strict=True))
    more = [
        (index, width)
        for (index, width), count in zip(counted, counts, strict=True)
        if count > len(read[index, max(listings[index])])
    ]
    read |= zip(more, (yield from together([*map(listing, more)])), strict=True)
    members: dict[str, _Members] = {index: [] for index in listings}
    for (index, width), some in read.items():
        members[index].append((width, some))
    return list(members.values())
