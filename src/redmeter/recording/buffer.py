"""Buffer: what was recorded and is not stored yet, merged by series and slice. Memory only.

Events of one series and slice are one number here, so an outage costs memory by series and slices.
Slices are downsampled as they age (see resolution.py), and earlier if memory runs short, the oldest
fine ones first. The final slice of each series and day is never dropped, and the grand total of a
counter stays right throughout.

Messages may take what numbers leave, and half of the limit if they leave less; beyond that, of the
logs that take most, texts are given up first, then patterns are counted as (other). So a flood of
messages costs no number.

What goes out is taken as Parts, each for one batch, and so for one shard of the store. A part
that was never sent is put back, and merges with what came meanwhile. Runs lie by shard. Those
whose names have a place for the number of the process have none until that is known, and change it
with the number: with the first part that is taken for another one.

Used by one thread at a time: whoever holds the recorder's lock.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from redmeter.keys import MAX_TIME, Kept, Keys
from redmeter.losses import AGED, MEMORY, RETENTION, TOTAL
from redmeter.recording.instance import needs_instance, with_instance
from redmeter.recording.pending import IntervalFull, PendingSeries
from redmeter.recording.resolution import Resolution
from redmeter.recording.stats import RecorderStats
from redmeter.types import Operation, Operations

#: Fields written by one batch: about 3 ms of the server's time.
FIELDS_PER_BATCH = 500
#: Estimate of what a series takes beside its slices, bytes.
SERIES_BYTES = 300
#: Of so many names with the number of the process the shard is remembered.
REMEMBERED = 10_000

#: Where runs lie whose shard depends on the number of the process, until that is known.
UNPLACED = -1

#: Where nothing is kept.
NOTHING = Kept({}, {})

#: Kind and width of runs -> series -> run.
Levels = dict[tuple[type[PendingSeries], int], dict[str, PendingSeries]]


class BatchContents:
    """What one batch is made of. Not changed any more once it was sent.

    Args:
        kept: what was kept when it was taken.
        instance: the number of this process then, for series that have a place for one.
    """

    __slots__ = ("_instance", "_levels", "events", "fields", "kept")

    def __init__(self, kept: Kept, instance: int | None = None) -> None:
        self._levels: Levels = {}
        self.kept = kept
        self._instance = instance
        self.events = self.fields = 0

    def add(
        self, kind: type[PendingSeries], width: int, name: str, run: PendingSeries, fields: int
    ) -> None:
        """Add a run that is not part of it yet."""
        self._levels.setdefault((kind, width), {})[name] = run
        self.events += run.events
        self.fields += fields

    def runs(self) -> Iterator[tuple[type[PendingSeries], int, str, PendingSeries]]:
        """Yield kind, width, series and run."""
        for (kind, width), runs in self._levels.items():
            for name, run in runs.items():
                yield kind, width, name, run

    def lacking(self, kept: Kept) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Yield series, precisions that came to be kept since it was taken, and events."""
        return _lacking(self.runs(), self.kept, kept)

    def operations(self, keys: Keys, kept: Kept) -> Operations:
        """Turn it into the operations of a batch."""
        made: list[Operation] = []
        # The oldest events first, and those are of no slice at all or of the widest: how long a new
        # hash lives is settled by its newest, and lists keep what comes last.
        for (kind, width), runs in sorted(self._levels.items(), key=_oldest_first):
            number = self._instance if kind.NUMBERED else None
            by_name = {with_instance(name, number): run for name, run in runs.items()}
            made += kind.operations(keys, kept, by_name, width)
        return tuple(made)


class Buffer:
    """Runs by shard, kind, width and series.

    Args:
        kept: to know what is worth remembering.
        stats: where losses are written down.
        limit: from about how many bytes on slices fade before their time.
        number_of: returns the number of the shard that a text lies in; None: there is one.
    """

    def __init__(
        self,
        kept: Kept,
        stats: RecorderStats,
        limit: float,
        number_of: Callable[[str], int] | None = None,
    ) -> None:
        self._stats = stats
        self._limit = limit
        self._number_of = number_of
        self._places: dict[int, Levels] = {0: {}}
        #: The number of this process that runs lie by.
        self._instance: int | None = None
        #: Name that has a place for it -> number of the shard.
        self._found: dict[str, int] = {}
        self._kept_now = kept
        self._known: dict[type[PendingSeries], Resolution] = {}

    def retain(self, kept: Kept) -> None:
        """Go by another retention from now on."""
        for name, precisions, events in _lacking(self._runs(), self._kept_now, kept):
            self._stats.record_loss(RETENTION, name, precisions, events)
        self._kept_now, self._known = kept, {}

    def _widths(self, kind: type[PendingSeries]) -> Resolution:
        widths = self._known.get(kind)
        if widths is None:
            widths = self._known[kind] = Resolution(kind.retention(self._kept_now))
        return widths

    def precisions(self, kind: type[PendingSeries]) -> tuple[int, ...]:
        """All precisions that are kept of a kind."""
        widths = self._widths(kind)
        return widths.precisions(widths.finest)

    @property
    def bytes(self) -> int:
        """An estimate of what it takes."""
        return sum(SERIES_BYTES + run.bytes for _, _, _, run in self._runs())

    @property
    def numbers(self) -> set[int]:
        """The shards that something is for, UNPLACED among them."""
        return {number for number, levels in self._places.items() if any(levels.values())}

    def _runs(self) -> Iterator[tuple[type[PendingSeries], int, str, PendingSeries]]:
        for levels in self._places.values():
            for (kind, width), runs in levels.items():
                for name, run in runs.items():
                    yield kind, width, name, run

    def _levels(self, kind: type[PendingSeries], name: str) -> Levels:
        """Return where a run lies."""
        if self._number_of is None:
            return self._places[0]
        numbered = kind.NUMBERED and needs_instance(name)
        number = self._numbered(name) if numbered else self._number_of(kind.home(name))
        levels = self._places.get(number)
        if levels is None:
            levels = self._places[number] = {}
        return levels

    def _numbered(self, name: str) -> int:
        """Return the shard of a name that has a place for the number of the process."""
        if self._instance is None:
            return UNPLACED
        found = self._found.get(name)
        if found is None:
            assert self._number_of is not None, "else all lies in one"
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            found = self._found[name] = self._number_of(with_instance(name, self._instance))
        return found

    def _place(self, instance: int) -> None:
        """Have what has a place for the number of the process lie by that number from now on."""
        moved = BatchContents(self._kept_now)
        try:
            # Without a number before, all of it is in one place.
            for number in [UNPLACED] if self._instance is None else list(self._places):
                levels = self._places.get(number, {})
                for kind, width in [level for level in levels if level[0].NUMBERED]:
                    runs = levels[kind, width]
                    for name in [name for name in runs if needs_instance(name)]:
                        moved.add(kind, width, name, runs.pop(name), 0)
                    if not runs:
                        del levels[kind, width]
            self._instance, self._found = instance, {}
        finally:
            self.put_back(moved)

    def reshard(self, number_of: Callable[[str], int] | None) -> None:
        """Sort everything by the shards of another store.

        Args:
            number_of: as in the constructor.
        """
        runs = list(self._runs())
        self._number_of, self._places, self._instance, self._found = number_of, {0: {}}, None, {}
        for kind, width, name, run in runs:
            self.put_back(self._alone(kind, width, name, run))

    # In

    def add(
        self, kind: type[PendingSeries], name: str, time: float, value: Any, now: float
    ) -> None:
        """Add to a series.

        Args:
            time: when it happened, Unix seconds.
            value: as the kind's run takes it.
            now: Unix seconds; not later than the server's clock, or fine slices go too early.
        """
        second, widths = math.floor(time), self._widths(kind)
        width = widths.at(now - second)
        if width != widths.finest:
            gone = widths.lost(widths.finest, width)
            events = kind.events_of(value)
            self._stats.record_loss(AGED, name, gone, events)
            self._stats.past.update(dict.fromkeys(gone, events))
        start = second - second % width if width else 0
        levels = self._places[0] if self._number_of is None else self._levels(kind, name)
        self._merge(levels, kind, width, name, start, value)

    def put_back(self, part: BatchContents) -> None:
        """Put back what was taken and never sent."""
        if part.kept is not self._kept_now:  # what is kept has changed since it was taken
            for name, precisions, events in part.lacking(self._kept_now):
                self._stats.record_loss(RETENTION, name, precisions, events)
        for kind, width, name, run in part.runs():
            levels = self._levels(kind, name)
            runs = levels.setdefault((kind, width), {})
            if name in runs:
                for start, value in run:
                    self._merge(levels, kind, width, name, start, value)
            else:
                runs[name] = run

    def _merge(
        self,
        levels: Levels,
        kind: type[PendingSeries],
        width: int,
        name: str,
        start: int,
        value: Any,
    ) -> None:
        if not width and not kind.HAS_TOTAL:
            self._stats.dropped += kind.events_of(value)
            return
        runs = levels.get((kind, width))
        known = runs.get(name) if runs else None
        run = kind() if known is None else known
        try:
            run.add(start, value)
        except IntervalFull as full:
            lost = self._widths(kind).precisions(width)
            self._stats.drop(full.reason, name, lost, kind.events_of(value))
            return
        if known is None:  # only now, so that no run is without a slice
            levels.setdefault((kind, width), {})[name] = run

    # Getting older

    def fade(self, now: float) -> None:
        """Remember less of what got older.

        Args:
            now: see add().
        """
        self._fade(now, now)

    def shrink(self, now: float) -> None:
        """Remember less of everything, the oldest first, until there is no more than may be."""
        self._shrink_logs()
        ahead = 60.0
        while self._excess(now) and ahead < 4 * MAX_TIME:
            self._fade(now, now + ahead)  # as if it were so much later
            ahead *= 2

    def _shrink_logs(self) -> None:
        """Give up texts and patterns of messages that have no room beside the numbers."""
        logs = [(name, run) for kind, _, name, run in self._runs() if kind.TEXTS]
        size = sum(SERIES_BYTES + run.bytes for _, run in logs)
        numbers = self.bytes - size
        need = size - max(self._limit / 2, self._limit - numbers)
        if need <= 0:
            return
        logs.sort(key=lambda log: -log[1].bytes)
        for name, run in logs:
            if need > 0:
                freed, texts = run.give_up_texts(math.ceil(need))
                need -= freed
                self._stats.record_loss(MEMORY, name, (TOTAL,), texts)
        for _, run in logs:
            if need > 0:
                need -= run.give_up_patterns(math.ceil(need))

    def _excess(self, now: float) -> bool:
        """Whether there is too much, and fading may free something: not the series themselves."""
        return self.bytes > self._limit and any(
            width and (width != widths.widest or not _kept(widths, run.last - now))
            for kind, width, _, run in self._runs()
            for widths in [self._widths(kind)]
        )

    def _fade(self, now: float, pretended: float) -> None:
        for levels in self._places.values():
            self._fade_levels(levels, now, pretended)

    def _fade_levels(self, levels: Levels, now: float, pretended: float) -> None:
        for (kind, width), runs in list(levels.items()):
            if not width:
                continue
            widths = self._widths(kind)
            # A slice's newest event may be of its last second.
            before = pretended - width - widths.until(width)
            for name, run in list(runs.items()):
                older = run.older(before)
                if not older:
                    continue
                for start, value in run.cut(older):
                    wider = widths.at(pretended - (start + width))
                    if not wider and _kept(widths, start + width - now):
                        wider = widths.widest  # not for the memory's sake: some slice stays
                    if wider == width or (wider and wider % width):  # still fine, or not to be made
                        self._merge(levels, kind, width, name, start, value)
                        continue
                    gone, events = widths.lost(width, wider), kind.events_of(value)
                    early = widths.holding(gone, now - (start + width))
                    if early:  # but for the memory
                        self._stats.record_loss(MEMORY, name, early, events)
                        gone = tuple(p for p in gone if p not in early)
                    self._stats.record_loss(AGED, name, gone, events)
                    wide = start - start % wider if wider else 0
                    self._merge(levels, kind, wider, name, wide, value)
                if not run:
                    del runs[name]
            if not runs:
                del levels[kind, width]

    # Out

    def take(self, number: int = 0, *, instance: int | None = None) -> BatchContents | None:
        """Take out as much as one batch holds; None where nothing is left.

        Args:
            number: of the shard that the batch is for.
            instance: the number of this process; what needs it stays where it is not known.
        """
        if instance not in (None, self._instance) and self._number_of is not None:
            self._place(instance)
        part = BatchContents(self._kept_now, instance)
        try:
            if levels := self._places.get(number):
                self._fill(part, levels, numbered=instance is not None)
        except BaseException:  # a fault of ours, or a signal handler's: it is nowhere else
            self.put_back(part)
            raise
        return part if part.fields else None

    def _fill(self, part: BatchContents, levels: Levels, *, numbered: bool) -> None:
        """Move as much into a part as one batch holds.

        Args:
            numbered: also series that may have a place for the number of the process.
        """
        for (kind, width), runs in sorted(levels.items(), key=_oldest_first):
            precisions = self._widths(kind).precisions(width)
            for name in list(runs):
                if not numbered and kind.NUMBERED and needs_instance(name):
                    continue
                run = runs.pop(name)
                try:
                    fields = run.fields(precisions)
                    while fields > FIELDS_PER_BATCH and len(run) > 1:
                        run, newer = run.cut(len(run) // 2), run
                        self.put_back(self._alone(kind, width, name, newer))
                        fields = run.fields(precisions)
                except BaseException:
                    self.put_back(self._alone(kind, width, name, run))
                    raise
                if part.fields and part.fields + fields > FIELDS_PER_BATCH:
                    self.put_back(self._alone(kind, width, name, run))
                    return
                part.add(kind, width, name, run, fields)
                if name in runs:  # its other half, for the next
                    return
            if not runs:
                del levels[kind, width]

    def _alone(
        self, kind: type[PendingSeries], width: int, name: str, run: PendingSeries
    ) -> BatchContents:
        part = BatchContents(self._kept_now)
        part.add(kind, width, name, run, 0)
        return part


def _oldest_first(level: tuple[tuple[type[PendingSeries], int], object]) -> tuple[bool, int]:
    (_, width), _ = level
    return width > 0, -width


def _kept(widths: Resolution, ahead: float) -> bool:
    """Whether any precision holds what is so far ahead or, negative, so long ago."""
    return widths.at(abs(ahead)) > 0


def _lacking(
    runs: Iterable[tuple[type[PendingSeries], int, str, PendingSeries]], before: Kept, after: Kept
) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield what cannot be made for precisions that came to be kept: series, precisions, events."""
    if before == after:
        return
    for kind, width, name, run in runs:
        came = set(kind.retention(after)) - set(kind.retention(before))
        lacking = tuple(sorted(p for p in came if not width or p % width))
        if lacking:
            yield name, lacking, run.events
