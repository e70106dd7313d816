"""Everything that the page of one series shows, in two round trips.

A name without labels, of which nothing is stored, stands for all its label sets: then the busiest
of them are merged, and the result has their number.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.errors import InvalidName
from redmeter.names import parse_name
from redmeter.reading import marks as marking
from redmeter.reading.foreign_keys import there
from redmeter.reading.page.curves import (
    Curve,
    asked_counts,
    asked_spreads,
    counted,
    event_counts,
    event_reads,
    measured,
    spread,
    summed,
)
from redmeter.reading.samples import number_of
from redmeter.reading.selection import base_of
from redmeter.reading.windows import (
    Coverage,
    Frame,
    Span,
    histogram_window,
    span_of,
    whole_window,
    window_of,
)
from redmeter.results.summaries import Summary
from redmeter.store import View, indexes
from redmeter.store.query import Query
from redmeter.store.servers.replies import Command, Reply
from redmeter.stored.keys import Kept, Keys
from redmeter.types import Mark

_KINDS = ("counter", "gauge", "histogram")

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
    base = base_of(name)
    commands_of = {kind: _asked(kind, keys, kept, [name]) for kind in _KINDS}
    view, replies = yield [
        marking.asked(keys),
        indexes.grand_total(keys, name),
        *event_reads(keys, "counter", base, window),
        *event_reads(keys, "histogram", base, observed),
        *(command for commands in commands_of.values() for command in commands),
    ]
    marks, total = marking.answered(there(replies[0], [])), there(replies[1], None)
    label_sets = {
        "counter": event_counts("counter", replies[2:4]),
        "histogram": event_counts("histogram", replies[4:6]),
    }
    span = span_of(window, observed, view.now)
    result = Detail(name, "", span, marks=[mark for mark in marks if mark.time >= span.start])
    at = 6
    for kind, commands in commands_of.items():
        answers = replies[at : at + len(commands)]
        at += len(commands)
        if not result.kind:
            _tell(result, kind, answers, [name], observed, view)
    if not result.kind and any(counts.by_name for counts in label_sets.values()):
        # What nobody stored under this name, its label sets have.
        kind = next(kind for kind, counts in label_sets.items() if counts.by_name)
        chosen = label_sets[kind].busiest()
        view, replies = yield [
            indexes.grand_totals(keys, chosen),
            *_asked(kind, keys, kept, chosen),
        ]
        result.sets_added = len(chosen)
        _tell(result, kind, replies[1:], chosen, observed, view)
        totals = there(replies[0], ())
        total = (
            sum(map(number_of, totals))
            if totals and len(chosen) == label_sets[kind].total
            else None
        )
    if result.kind == "counter" and total is not None:
        result.total = number_of(total)
    if result.kind in label_sets:
        known = label_sets[result.kind]
        result.sets_of, result.sets_examined = known.total, len(known.by_name)
        result.labels = _labels(known.by_name)
        result.sets = _parts(known.by_name)[:MAX_SHOWN]
    return result


def _asked(kind: str, keys: Keys, kept: Kept, names: Sequence[str]) -> list[Command]:
    """Return the commands that read some series at every precision."""
    if kind == "histogram":
        return [c for width in kept.histograms for c in asked_spreads(keys, names, width)]
    if kind == "counter":
        return [c for width in kept.series for c in asked_counts(keys, names, width)]
    return [("HGETALL", keys.gauge(width, name)) for width in kept.series for name in names]


def _tell(
    found: Detail,
    kind: str,
    replies: Sequence[Reply],
    names: Sequence[str],
    observed: Coverage,
    view: View,
) -> None:
    """Set the merged curves of series at every precision, unless they are empty."""
    kept = view.histograms if kind == "histogram" else view.retention
    each = len(replies) // len(kept)
    curves = []
    for at, width in enumerate(kept):
        hashes = replies[at * each : (at + 1) * each]
        start = kept.oldest(width, view.now)
        if kind == "histogram":
            of_width = window_of(kept, width, kept[width])
            curves.append(spread(found.name, hashes, of_width, kept, view.now, len(names)))
            if width == observed.fine:
                found.summary = summed(found.name, hashes, observed, kept, view.now)
        elif kind == "counter":
            curves.append(counted(found.name, hashes, width, start, view.now, len(names)))
        else:
            curves.append(measured(found.name, hashes[0], width, start, view.now))
    if any(curve.values for curve in curves):
        found.kind, found.curves = kind, curves
    else:
        found.summary = None


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
