"""Curves: the lines of a chart, one value for each interval of a window.

The values are the counts of a counter, the newest samples of a gauge, or a percentile of a
histogram. Several series are merged to one curve.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from redmeter.reading import samples
from redmeter.reading.distributions import SummaryGrid
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Joined, entry_name, of_window
from redmeter.reading.ranking import sums_of
from redmeter.reading.samples import covered
from redmeter.reading.selection import LabelSets, hashes_of
from redmeter.reading.windows import Coverage, window_of_kind
from redmeter.results.series import Series
from redmeter.results.summaries import Summary
from redmeter.store.query import Query, Read, together
from redmeter.store.servers.replies import Reply, is_misplaced, raised
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import SERIES_KINDS, STATES
from redmeter.stored.keys import Keys, Retention
from redmeter.types import Window

#: The percentile of the curve of a histogram.
QUANTILE = 0.95


@dataclass(slots=True)
class Curve:
    """Values by intervals, from the oldest that is known; None for a gap."""

    name: str
    #: counter, gauge or histogram.
    kind: str
    #: Interval width, seconds, and where the first interval starts, Unix seconds.
    precision: int
    start: int
    values: list[float | None] = field(default_factory=list)
    #: Whether the newest interval is still running.
    partial: bool = False
    #: How many series were summed, and how many there are.
    examined: int = 1
    of: int = 1


def counted(
    name: str,
    replies: Sequence[Reply],
    window: Coverage,
    _: Retention,
    now: float,
    of: int = 1,
) -> Curve:
    """Sum counters to one curve, which begins with the oldest interval that one of them has."""
    values = samples.summed(replies, window.slots(now, window.fine))
    return _curve_from("counter", name, window, now, values, len(replies), of)


def _stated(
    kind: str,
    name: str,
    replies: Sequence[Reply],
    window: Coverage,
    _: Retention,
    now: float,
    of: int = 1,
) -> Curve:
    """Read the curve of one of STATES."""
    values = samples.current(kind, name, replies[0], window.slots(now, window.fine), now)
    return _curve_from(kind, name, window, now, values, 1, of)


def _curve_from(
    kind: str,
    name: str,
    window: Coverage,
    now: float,
    values: Sequence[float | None],
    examined: int,
    of: int,
) -> Curve:
    """Return the values from the oldest sample on as a curve."""
    first = samples.first_sample(values)
    start = window.start(now)
    curve = Curve(name, kind, window.fine, start, examined=examined, of=of)
    if first < len(values):
        curve.start, curve.values = start + first * window.fine, list(values[first:])
        curve.partial = window.running()
    return curve


def summed(
    name: str, replies: Sequence[Reply], window: Coverage, histograms: Retention, now: float
) -> Summary:
    """Merge histograms; other values are left out."""
    return grid(window, histograms, now).summary(name, _by_series(replies))


def spread(
    name: str,
    replies: Sequence[Reply],
    window: Coverage,
    histograms: Retention,
    now: float,
    of: int = 1,
) -> Curve:
    """Merge the same to the curve of a percentile."""
    series = grid(window, histograms, now).over_time(name, _by_series(replies))
    return percentile(series, len(replies) // 2, of)


def percentile(found: Series[Distribution | None], examined: int = 1, of: int = 1) -> Curve:
    """Return the curve of a percentile of histograms."""
    return Curve(
        found.name,
        "histogram",
        found.precision,
        found.start,
        [None if one is None else one.quantile(QUANTILE) for one in found.values],
        partial=found.partial,
        examined=examined,
        of=of,
    )


def grid(window: Coverage, histograms: Retention, now: float) -> SummaryGrid:
    """Return the intervals of a window of histograms."""
    if window.until is None:
        return SummaryGrid(covered(Window(window.fine, last=window.length), histograms, now))
    limits = Window(window.fine, window.start(now), window.until)
    return SummaryGrid(covered(limits, histograms, now))


def _by_series(replies: Sequence[Reply]) -> list[list[Reply]]:
    """Return the two hashes of each histogram."""
    return [
        [raised(reply) for reply in two]
        for two in zip(replies[::2], replies[1::2], strict=True)
        if not any(map(is_misplaced, two))
    ]


#: Kind -> makes a curve of: name, the hashes of its series, window, retention, now, how many series
#: it has. A name that has several kinds is drawn as the first of them.
KINDS: Mapping[str, Callable[..., Curve]] = {
    "counter": counted,
    **{kind: partial(_stated, kind) for kind in STATES},
    "histogram": spread,
}
#: The kinds that count events.
EVENT_KINDS = [kind for kind, stored in SERIES_KINDS.items() if stored.events]


def curves(
    keys: Keys, names: Sequence[str], window: Coverage, observed: Coverage
) -> Query[list[Curve]]:
    """Read the curves of some series of any kinds; two round trips.

    A name without labels, of which nothing is stored, stands for its label sets: the busiest of
    them are merged.

    Args:
        names: in their stored spelling.
        window, observed: of counters and gauges, and of histograms.
    """
    limit = max(MAX_MERGED, MAX_COUNTED // max(1, len(names)))
    return (yield from together([_curve(keys, name, window, observed, limit) for name in names]))


def _curve(keys: Keys, name: str, window: Coverage, observed: Coverage, limit: int) -> Query[Curve]:
    """Read the curve of a series, or of the busiest label sets of a name: see curves()."""
    windows = {kind: window_of_kind(kind, window, observed) for kind in KINDS}
    reads: list[Sequence[Read]] = [
        hashes_of(keys, kind, [name], windows[kind].fine) for kind in KINDS
    ]
    if "{" not in name:
        reads += [event_reads(keys, kind, name, windows[kind], limit) for kind in EVENT_KINDS]
    view, replies = yield list(chain.from_iterable(reads))
    answers = iter(replies)

    def curve_of(kind: str, replies: Sequence[Reply], of: int = 1) -> Curve:
        return KINDS[kind](name, replies, windows[kind], view.retention_of(kind), view.now, of)

    drawn = [
        curve_of(kind, list(islice(answers, len(reads_of_kind))))
        for kind, reads_of_kind in zip(KINDS, reads, strict=False)
    ]
    curve = next((one for one in drawn if one.values), drawn[0])
    if curve.values or "{" in name:
        return curve
    for kind in EVENT_KINDS:
        counts = event_counts(kind, list(islice(answers, 2)))
        if counts.by_name:
            names = counts.busiest()
            view, replies = yield hashes_of(keys, kind, names, windows[kind].fine)
            return curve_of(kind, replies, counts.total)
    return curve


# --- Events of label sets within a window -------------------------------------------------------

#: Label sets whose counts are read, and those that are merged into one curve.
MAX_COUNTED, MAX_MERGED = 500, 50


class EventCounts(NamedTuple):
    """Events of label sets within a window."""

    #: Those that were read, up to a limit.
    by_name: dict[str, int]
    #: How many label sets there are.
    total: int

    def busiest(self, limit: int = MAX_MERGED) -> list[str]:
        """Return the label sets with the most events, the busiest first."""
        return sorted(self.by_name, key=lambda name: (-self.by_name[name], name))[:limit]


def event_reads(
    keys: Keys, kind: str, base: str, window: Coverage, limit: int = MAX_COUNTED
) -> list[Read]:
    """Return the two reads whose replies event_counts() takes.

    Args:
        kind: one of EVENT_KINDS.
        base: a name without labels.
        window: of this kind.
        limit: how many label sets are read.
    """
    stored = SERIES_KINDS[kind]
    assert stored.events
    label_sets = LabelSets(keys, keys.key(stored.index.name), window.fine, base)
    events = keys.key(stored.events.name)
    return [label_sets.join([of_window(events, window)], limit), label_sets.size()]


def event_counts(kind: str, replies: Sequence[Reply]) -> EventCounts:
    """Parse the number of events of each label set: counts, or values of histograms."""
    joined = Joined(replies[0], 1, needed=False).readable()
    by_name = {entry_name(member): sums_of(kind, reply).count for member, (reply,) in joined}
    return EventCounts(by_name, there(replies[1], 0))
