"""Curves: the lines of a chart, one value for each interval of a window.

The values are the counts of a counter, the newest samples of a gauge, or a percentile of a
histogram. Several series are merged to one curve.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from redmeter.reading import samples
from redmeter.reading.aggregates import summed_up
from redmeter.reading.distributions import SummaryGrid
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined, decoded, entry_name, of_window
from redmeter.reading.ranking import sums_of
from redmeter.reading.samples import Grid, covered
from redmeter.reading.selection import MAX_HISTOGRAMS, LabelSets, hashes_of
from redmeter.reading.windows import Coverage, window_of_kind
from redmeter.results.series import CoveredWindow, Series
from redmeter.results.summaries import Summary
from redmeter.store import View
from redmeter.store.query import ParsedRead, Query, Read, together
from redmeter.store.servers.replies import Reply, is_misplaced, raised
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import SERIES_KINDS, STATES
from redmeter.stored.keys import Keys, Retention
from redmeter.types import Selection, Window

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
    return SummaryGrid(_covered(window, histograms, now))


def _covered(window: Coverage, retention: Retention, now: float) -> CoveredWindow:
    if window.until is None:
        return covered(Window(window.fine, last=window.length), retention, now)
    return covered(Window(window.fine, window.start(now), window.until), retention, now)


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


#: Label sets that one curve sums: of counters, and of histograms, whose values are larger. Several
#: curves of a request share _SHARED times as many.
MAX_MERGED: Mapping[str, int] = {"counter": 10_000, "histogram": MAX_HISTOGRAMS}
_SHARED = 3


def curves(
    keys: Keys, names: Sequence[str], window: Coverage, observed: Coverage
) -> Query[list[Curve]]:
    """Read the curves of some series of any kinds; two round trips.

    A name without labels, of which nothing is stored, stands for its label sets: they are summed,
    as read_counter() and read_summary() do.

    Args:
        names: in their stored spelling.
        window, observed: of counters and gauges, and of histograms.
    """
    number = max(1, len(names))
    share = {kind: min(most, _SHARED * most // number) for kind, most in MAX_MERGED.items()}
    return (yield from together([_curve(keys, name, window, observed, share) for name in names]))


def _curve(
    keys: Keys, name: str, window: Coverage, observed: Coverage, share: Mapping[str, int]
) -> Query[Curve]:
    """Read the curve of a series, or of the label sets of a name: see curves()."""
    windows = {kind: window_of_kind(kind, window, observed) for kind in KINDS}
    reads: list[Sequence[Read]] = [
        hashes_of(keys, kind, [name], windows[kind].fine) for kind in KINDS
    ]
    sets = {kind: _label_sets(keys, kind, name, windows[kind]) for kind in EVENT_KINDS}
    if "{" not in name:
        reads += [[sets[kind].first_names(share[kind]), sets[kind].size()] for kind in EVENT_KINDS]
    view, replies = yield list(chain.from_iterable(reads))
    answers = iter(replies)
    drawn = [
        KINDS[kind](
            name,
            list(islice(answers, len(reads_of_kind))),
            windows[kind],
            view.retention_of(kind),
            view.now,
        )
        for kind, reads_of_kind in zip(KINDS, reads, strict=False)
    ]
    curve = next((one for one in drawn if one.values), drawn[0])
    if curve.values or "{" in name:
        return curve
    for kind in EVENT_KINDS:
        listed, size = islice(answers, 2)
        if series := decoded(there(listed, []))[: share[kind]]:
            return (yield from merged(keys, kind, name, series, windows[kind], there(size, 0)))
    return curve


def merged(
    keys: Keys, kind: str, name: str, series: Sequence[str], window: Coverage, of: int
) -> Query[Curve]:
    """Read the curve of several series together; one round trip.

    Args:
        kind: one of EVENT_KINDS.
        series: their stored names.
        window: of this kind.
        of: how many label sets there are.
    """
    if kind == "histogram":
        view, replies = yield hashes_of(keys, kind, series, window.fine)
        return spread(name, replies, window, view.histograms, view.now, of)
    grids: dict[float, Grid] = {}

    def read_of(one: str) -> ParsedRead:
        def parse(view: View, reply: Reply) -> Sequence[int] | Exception:
            if isinstance(reply, Exception):
                return reply
            if view.now not in grids:
                grids[view.now] = Grid(_covered(window, view.retention, view.now), view.now)
            return grids[view.now].counter(one, reply).values

        return ParsedRead(("HGETALL", keys.count(window.fine, one)), parse)

    view, parts = yield [read_of(one) for one in series]
    values = {
        one: raised(part) for one, part in zip(series, parts, strict=True) if not is_misplaced(part)
    }
    rows = summed_up(values, Selection(name), _covered(window, view.retention, view.now))
    if not rows:
        return Curve(name, kind, window.fine, window.start(view.now), examined=0, of=of)
    ((_, total),) = rows
    return Curve(
        name,
        kind,
        total.precision,
        total.start,
        list(total.values),
        partial=total.partial,
        examined=len(series),
        of=max(of, len(series)),
    )


def _label_sets(keys: Keys, kind: str, base: str, window: Coverage) -> LabelSets:
    return LabelSets(keys, keys.key(SERIES_KINDS[kind].index.name), window.fine, base)


# --- Events of label sets within a window -------------------------------------------------------

#: Label sets whose counts one round trip reads, and those that are read in all.
COUNTS_PAGE, MAX_COUNTED = 500, 10_000


class EventCounts(NamedTuple):
    """Events of label sets within a window."""

    #: Those that were read, up to a limit.
    by_name: dict[str, int]
    #: How many label sets there are.
    total: int

    def busiest(self, limit: int) -> list[str]:
        """Return the label sets with the most events, the busiest first."""
        return sorted(self.by_name, key=lambda name: (-self.by_name[name], name))[:limit]


def event_reads(keys: Keys, kind: str, base: str, window: Coverage) -> list[Read]:
    """Return the two reads whose replies event_counts() takes.

    Args:
        kind: one of EVENT_KINDS.
        base: a name without labels.
        window: of this kind.
    """
    label_sets = _label_sets(keys, kind, base, window)
    return [label_sets.join(_asks(keys, kind, window), COUNTS_PAGE), label_sets.size()]


def event_counts(
    keys: Keys, kind: str, base: str, window: Coverage, replies: Sequence[Reply]
) -> Query[EventCounts]:
    """Return the number of events of each label set: counts, or values of histograms.

    One round trip for each COUNTS_PAGE label sets beyond the first.
    """
    first, asks = Joined(replies[0], 1, needed=False), _asks(keys, kind, window)
    label_sets = _label_sets(keys, kind, base, window)
    pages = yield from label_sets.read_on(first, asks, COUNTS_PAGE, MAX_COUNTED)
    return EventCounts(_counts_in(kind, pages), there(replies[1], 0))


def _asks(keys: Keys, kind: str, window: Coverage) -> list[Ask]:
    stored = SERIES_KINDS[kind]
    assert stored.events
    return [of_window(keys.key(stored.events.name), window)]


def _counts_in(kind: str, pages: Iterable[Joined]) -> dict[str, int]:
    return {
        entry_name(member): sums_of(kind, reply).count
        for page in pages
        for member, (reply,) in page.readable()
    }
