"""Rows of an export: every finished interval of many series, a few series at a time.

The window ends where it ended when the export began, so the rows of all series end together.
Series are read in chunks, so memory depends on the size of a chunk and on the list of names.
"""

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from redmeter.errors import UnknownPrecision
from redmeter.reading.distributions import read_summaries
from redmeter.reading.foreign_keys import readable
from redmeter.reading.names import read_names
from redmeter.reading.samples import covered, read_series, start_of, states_of
from redmeter.reading.selection import base_of, check_labels, hashes_of, labels_in
from redmeter.store import Store
from redmeter.stored.families import SERIES_KINDS, STATES
from redmeter.stored.keys import slice_start
from redmeter.types import Window

#: What a pattern begins with literally.
_HEAD = re.compile(r"[^*?\[{]*")


class Row(NamedTuple):
    """An interval of a series. Fields that its kind does not have are None."""

    #: Start of the interval, Unix seconds.
    time: int
    #: counter, gauge or histogram.
    kind: str
    #: The name without labels.
    name: str
    labels: Mapping[str, str]
    #: The number of events of a counter, the newest value of a gauge.
    value: float | None
    #: The same number of a counter, as a whole number in every format; of a histogram's values.
    count: int | None = None  # type: ignore[assignment]  # tuple.count() counts members
    # Columns of histograms
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Export(NamedTuple):
    """The request for an export.

    Attributes:
        pattern: of names without labels: `*` any text, `?` one character, `[abc]` one of these.
        labels: only label sets that have these.
        window: at a precision.
        kinds: some of SERIES_KINDS.
    """

    pattern: str
    labels: Mapping[str, str]
    window: Window
    kinds: Sequence[str]


def export_rows(
    store: Store, wanted: Export, progress: Callable[[int, int], None] = lambda *_: None
) -> Iterator[list[Row]]:
    """Yield the rows of an export, some series at a time.

    Args:
        progress: called with the number of series that were read, and of all.

    Raises:
        UnknownPrecision: no kind keeps it.
        UnknownLabel: no series of the pattern has a label of the filter.
        LimitExceeded: more than 100,000 series begin like the pattern.
        StoreError: the server is unreachable or refuses.
    """
    view, _ = store.read()
    kept = {kind: view.retention_of(kind) for kind in wanted.kinds}
    precision, _, until, _ = wanted.window
    kinds = [kind for kind in wanted.kinds if precision in kept[kind]]
    if not kinds:
        kept[wanted.kinds[0]].check(precision)
        raise UnknownPrecision(precision, kept[wanted.kinds[0]])
    # The running interval may grow.
    newest = slice_start(view.now, precision)
    since = start_of(wanted.window, view.now)
    window = Window(precision, since, newest if until is None else min(until, newest))
    chosen = {kind: _chosen(store, wanted, kind) for kind in kinds}
    number, done = sum(map(len, chosen.values())), 0
    if not number and wanted.labels:
        every = wanted._replace(labels={})
        names = [name for kind in SERIES_KINDS for name in _chosen(store, every, kind)]
        check_labels(wanted.pattern, wanted.labels, names)
    progress(0, number)
    for kind, names in chosen.items():
        chunk_size, read = _KINDS[kind]
        for at in range(0, len(names), chunk_size):
            chunk = names[at : at + chunk_size]
            yield list(read(store, chunk, window))
            done += len(chunk)
            progress(done, number)


def _chosen(store: Store, wanted: Export, kind: str) -> list[str]:
    """Return the stored names of a kind that are exported, sorted."""
    head = _HEAD.match(wanted.pattern)
    begins = f"{head[0] if head else ''}*"
    matches = re.compile(fnmatch.translate(wanted.pattern)).match
    chosen = []
    for stored in read_names(store, begins, kind):
        base, labels = _parsed(stored)
        if matches(base) and wanted.labels.items() <= labels.items():
            chosen.append(stored)
    return chosen


def _parsed(stored: str) -> tuple[str, dict[str, str]]:
    """Return a name without labels, and labels; other programs' names may have another form."""
    return base_of(stored), labels_in(stored)


def _counters(store: Store, names: Sequence[str], window: Window) -> Iterator[Row]:
    by_series = read_series(store, names, window)
    for stored, series in by_series.items():
        base, labels = _parsed(stored)
        for start, value in series:
            yield Row(start, "counter", base, labels, value, value)


def _states(kind: str, store: Store, names: Sequence[str], window: Window) -> Iterator[Row]:
    view, replies = store.read(hashes_of(store.keys, kind, names, window.precision))
    starts = covered(window, view.retention, view.now).starts
    by_name = {name: [reply] for name, reply in zip(names, replies, strict=True)}
    for stored, (reply,) in readable(by_name, needed=False).items():
        base, labels = _parsed(stored)
        for start, value in zip(starts, states_of(kind, reply, starts), strict=True):
            if value is not None:
                yield Row(start, kind, base, labels, value)


def _histograms(store: Store, names: Sequence[str], window: Window) -> Iterator[Row]:
    by_series = read_summaries(store, names, window)
    for stored, summary in by_series.items():
        base, labels = _parsed(stored)
        for start, one in summary.over_time():
            if one is not None:
                spread = one.count, one.total, one.low, one.high, one.p50, one.p95, one.p99
                yield Row(start, "histogram", base, labels, None, *spread)


#: Kind -> how many series one round trip reads, and the rows of some.
_KINDS: Mapping[str, tuple[int, Callable[[Store, Sequence[str], Window], Iterator[Row]]]] = {
    "counter": (200, _counters),
    **{kind: (200, partial(_states, kind)) for kind in STATES},
    "histogram": (20, _histograms),
}
