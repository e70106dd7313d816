"""Everything that the page of one series shows, in two round trips.

A name without labels, of which nothing is stored, stands for all its label sets: they are merged,
up to a limit, and the result has their number. The events of very many are read in pages.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from redmeter.errors import InvalidName
from redmeter.names import parse_name
from redmeter.reading import marks as marking
from redmeter.reading.foreign_keys import there
from redmeter.reading.page.curves import (
    EVENT_KINDS,
    KINDS,
    MAX_MERGED,
    Curve,
    event_counts,
    event_reads,
    merged,
    summed,
)
from redmeter.reading.samples import number_of
from redmeter.reading.selection import base_of, hashes_of
from redmeter.reading.windows import (
    Coverage,
    Frame,
    Span,
    histogram_window,
    span_of,
    whole_window,
    window_of,
    window_of_kind,
)
from redmeter.results.summaries import Summary
from redmeter.store import View, indexes
from redmeter.store.query import Query, Read, together
from redmeter.store.servers.replies import Command, Reply
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Kept, Keys
from redmeter.types import Mark

#: Label sets that are named, and values of a label.
MAX_SHOWN, MAX_VALUES = 50, 20


@dataclass(slots=True)
class Part:
    """A value of a label, or a label set, and how often it came within the window."""

    name: str
    count: int
    #: Its part of all, 0 to 1.
    share: float


@dataclass(slots=True)
class Label:
    """A label, and what each value of it has, the most first."""

    label: str
    values: list[Part]
    of: int


@dataclass(slots=True)
class Detail:
    """A series, or all label sets of a name."""

    name: str
    #: counter, gauge or histogram; "" where nothing is known of the name.
    kind: str
    window: Span
    #: Everything ever counted; None for gauges, histograms, and more label sets than are merged.
    total: int | None = None
    #: The curve at every precision, the finest first; the p95 of histograms.
    curves: list[Curve] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    #: The label sets of its name, the busiest first.
    sets: list[Part] = field(default_factory=list)
    #: How many label sets there are, how many were examined, and merged if there is no series
    #: without labels.
    sets_of: int = 0
    sets_examined: int = 0
    sets_added: int = 0
    #: The distribution of a histogram within the window, and over time.
    summary: Summary | None = None
    marks: list[Mark] = field(default_factory=list)


def detail(
    keys: Keys, kept: Kept, name: str, precision: int, frame: Frame | None = None
) -> Query[Detail]:
    """Read a series: its samples, label sets, distribution and marks.

    Args:
        name: in its stored spelling.
        precision: interval width, seconds; its samples are the window.
        frame: the window of label sets and of the distribution, instead; curves are whole.

    Raises:
        UnknownPrecision: the store does not keep it.
        StoreError: the server is unreachable or refuses the command.
    """
    window = whole_window(kept.series, precision, frame)
    observed = histogram_window(kept.histograms, window)
    windows = {kind: window_of_kind(kind, window, observed) for kind in KINDS}
    base = base_of(name)
    reads: dict[str, Sequence[Read]] = {kind: _reads(kind, keys, kept, [name]) for kind in KINDS}
    view, replies = yield [
        marking.asked(keys),
        indexes.grand_total(keys, name),
        *(read for kind in EVENT_KINDS for read in event_reads(keys, kind, base, windows[kind])),
        *chain.from_iterable(reads.values()),
    ]
    answers = iter(replies)
    marks, total = marking.answered(there(next(answers), [])), there(next(answers), None)
    firsts = [(kind, windows[kind], [next(answers), next(answers)]) for kind in EVENT_KINDS]
    pages = yield from together(
        [event_counts(keys, kind, base, within, first) for kind, within, first in firsts]
    )
    label_sets = dict(zip(EVENT_KINDS, pages, strict=True))
    span = span_of(window, observed, view.now)
    result = Detail(name, "", span, marks=[mark for mark in marks if mark.time >= span.start])
    for kind, reads_of_kind in reads.items():
        hashes = list(islice(answers, len(reads_of_kind)))
        if not result.kind:
            _take(result, kind, hashes, [name], observed, view)
    if not result.kind and any(counts.by_name for counts in label_sets.values()):
        # There is no series without labels: its label sets are merged.
        kind = next(kind for kind, counts in label_sets.items() if counts.by_name)
        chosen, of = label_sets[kind].busiest(MAX_MERGED[kind]), label_sets[kind].total
        result.sets_added = len(chosen)
        totals: Reply = ()
        if kind == "histogram":
            view, replies = yield _reads(kind, keys, kept, chosen)
            _take(result, kind, replies, chosen, observed, view)
        else:
            widths = [window_of(kept.series, width, kept.series[width]) for width in kept.series]
            sums = together([merged(keys, kind, name, chosen, each, of) for each in widths])
            both: list[Query[Any]] = [_totals(keys, chosen), sums]
            totals, result.curves = yield from together(both)
            result.kind = kind
        total = (
            sum(map(number_of, totals))
            if totals and len(chosen) == label_sets[kind].total
            else None
        )
    if result.kind and SERIES_KINDS[result.kind].has_total and total is not None:
        result.total = number_of(total)
    if windows.get(result.kind) is observed:
        result.window = span_of(observed, observed, view.now)
    if result.kind in label_sets:
        known = label_sets[result.kind]
        result.sets_of, result.sets_examined = known.total, len(known.by_name)
        result.labels = _labels(known.by_name)
        result.sets = _parts(known.by_name)[:MAX_SHOWN]
    return result


def _totals(keys: Keys, names: Sequence[str]) -> Query[Reply]:
    _, (reply,) = yield [indexes.grand_totals(keys, names)]
    return there(reply, ())


def _reads(kind: str, keys: Keys, kept: Kept, names: Sequence[str]) -> list[Command]:
    """Return the commands that read some series at every precision."""
    return [read for width in kept.of(kind) for read in hashes_of(keys, kind, names, width)]


def _take(
    found: Detail,
    kind: str,
    replies: Sequence[Reply],
    names: Sequence[str],
    observed: Coverage,
    view: View,
) -> None:
    """Set the merged curves of series at every precision, unless they are empty."""
    kept = view.retention_of(kind)
    each = len(replies) // len(kept)
    hashes_at = {width: replies[at * each : (at + 1) * each] for at, width in enumerate(kept)}
    curves = [
        KINDS[kind](
            found.name, hashes, window_of(kept, width, kept[width]), kept, view.now, len(names)
        )
        for width, hashes in hashes_at.items()
    ]
    if any(curve.values for curve in curves):
        found.kind, found.curves = kind, curves
        if kind == "histogram" and observed.fine in hashes_at:
            hashes = hashes_at[observed.fine]
            found.summary = summed(found.name, hashes, observed, kept, view.now)


# --- Label sets ----------------------------------------------------------------------------


def _labels(counts: Mapping[str, int]) -> list[Label]:
    """Sum label sets up by each of their labels."""
    sums: dict[str, dict[str, int]] = {}
    for name, count in counts.items():
        with contextlib.suppress(InvalidName):  # written by someone else
            for label, value in parse_name(name).labels:
                by_value = sums.setdefault(label, {})
                by_value[value] = by_value.get(value, 0) + count
    return [Label(label, _parts(some)[:MAX_VALUES], len(some)) for label, some in sums.items()]


def _parts(counts: Mapping[str, int]) -> list[Part]:
    everything = sum(counts.values())
    parts = [Part(n, c, c / everything if everything else 0.0) for n, c in counts.items()]
    return sorted(parts, key=lambda part: (-part.count, part.name))
