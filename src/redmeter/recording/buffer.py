"""Buffer: recorded events that are not stored yet, merged by series and interval. Memory only.

Events of one series and interval are one number here, so an outage costs memory by series and
intervals. Intervals are rolled up as they age (see resolution.py), and earlier if memory runs
short, the oldest fine ones first. The last interval of each series and day is never dropped, and
the grand total of a counter stays right throughout.

Messages may use the memory that numbers leave free, and always half of the limit; beyond that, the
largest logs lose texts first, then their patterns are counted as (other). So a flood of messages
displaces no number.

The buffer is emptied in batches, each for one shard of the store. The contents of a batch that was
never sent are put back and merge with newer events. Pending series are grouped by shard. The shard
of a name with a placeholder for the instance number is unknown until the number is; if the number
changes, these series move with the next batch.

Used by one thread at a time: the one that holds the recorder's lock.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from redmeter.losses import AGED, MEMORY, RETENTION, TOTAL
from redmeter.recording.instance import needs_instance, with_instance
from redmeter.recording.pending import IntervalFull, PendingSeries
from redmeter.recording.resolution import Resolution
from redmeter.recording.stats import RecorderStats
from redmeter.stored.keys import MAX_TIME, Kept, Keys
from redmeter.types import Operation, Operations

#: Fields written by one batch: about 3 ms of the server's time.
FIELDS_PER_BATCH = 500
#: Estimated memory of a series in addition to its intervals, bytes.
SERIES_BYTES = 300
#: How many names with a placeholder for the instance number have their shard cached.
REMEMBERED = 10_000

#: Stands for the shard of names with a placeholder while the instance number is unknown.
UNPLACED = -1

#: No retention at all.
NO_RETENTION = Kept({}, {})

#: Kind and interval width -> series -> pending series.
Levels = dict[tuple[type[PendingSeries], int], dict[str, PendingSeries]]


class BatchContents:
    """The contents of one batch. They do not change once the batch was sent.

    Args:
        kept: the retention when they were taken.
        instance: the instance number at that time, for series with a placeholder.
    """

    __slots__ = ("_instance", "_levels", "bytes", "events", "fields", "kept")

    def __init__(self, kept: Kept, instance: int | None = None) -> None:
        self._levels: Levels = {}
        self.kept = kept
        self._instance = instance
        self.events = self.fields = self.bytes = 0

    def add(
        self, kind: type[PendingSeries], width: int, name: str, run: PendingSeries, fields: int
    ) -> None:
        """Add a pending series that is not part of it yet."""
        self._levels.setdefault((kind, width), {})[name] = run
        self.events += run.events
        self.fields += fields
        self.bytes += SERIES_BYTES + run.bytes

    def runs(self) -> Iterator[tuple[type[PendingSeries], int, str, PendingSeries]]:
        """Yield kind, width, name and pending series."""
        for (kind, width), runs in self._levels.items():
            for name, run in runs.items():
                yield kind, width, name, run

    def lacking(self, kept: Kept) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Yield name, precisions that were added to the retention since, and events."""
        return _lacking(self.runs(), self.kept, kept)

    def operations(self, keys: Keys, kept: Kept) -> Operations:
        """Return the operations of the batch."""
        made: list[Operation] = []
        # The oldest events first, which have no interval or the widest: the newest determine how
        # long a new hash lives, and lists keep their last elements.
        for (kind, width), runs in sorted(self._levels.items(), key=_oldest_first):
            number = self._instance if kind.NUMBERED else None
            by_name = {with_instance(name, number): run for name, run in runs.items()}
            made += kind.operations(keys, kept, by_name, width)
        return tuple(made)


class Buffer:
    """Pending series by shard, kind, interval width and name.

    Args:
        kept: the retention.
        stats: records losses.
        limit: approximate bytes above which intervals are rolled up early.
        number_of: returns the number of a text's shard; None if there is only one shard.
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
        #: The instance number by which pending series are placed.
        self._instance: int | None = None
        #: Name with a placeholder -> number of the shard.
        self._found: dict[str, int] = {}
        self._kept_now = kept
        self._known: dict[type[PendingSeries], Resolution] = {}

    def retain(self, kept: Kept) -> None:
        """Adopt another retention."""
        for name, precisions, events in _lacking(self._runs(), self._kept_now, kept):
            self._stats.record_loss(RETENTION, name, precisions, events)
        self._kept_now, self._known = kept, {}

    def _widths(self, kind: type[PendingSeries]) -> Resolution:
        widths = self._known.get(kind)
        if widths is None:
            widths = self._known[kind] = Resolution(kind.retention(self._kept_now))
        return widths

    def precisions(self, kind: type[PendingSeries]) -> tuple[int, ...]:
        """Return all precisions in the retention of a kind."""
        widths = self._widths(kind)
        return widths.precisions(widths.finest)

    @property
    def bytes(self) -> int:
        """Estimated memory."""
        return sum(SERIES_BYTES + run.bytes for _, _, _, run in self._runs())

    @property
    def numbers(self) -> set[int]:
        """The numbers of the shards with pending series, UNPLACED among them."""
        return {number for number, levels in self._places.items() if any(levels.values())}

    def _runs(self) -> Iterator[tuple[type[PendingSeries], int, str, PendingSeries]]:
        for levels in self._places.values():
            for (kind, width), runs in levels.items():
                for name, run in runs.items():
                    yield kind, width, name, run

    def _levels(self, kind: type[PendingSeries], name: str) -> Levels:
        """Return the group that a pending series belongs to."""
        if self._number_of is None:
            return self._places[0]
        numbered = kind.NUMBERED and needs_instance(name)
        number = self._numbered(name) if numbered else self._number_of(kind.home(name))
        levels = self._places.get(number)
        if levels is None:
            levels = self._places[number] = {}
        return levels

    def _numbered(self, name: str) -> int:
        """Return the shard of a name with a placeholder for the instance number."""
        if self._instance is None:
            return UNPLACED
        number = self._found.get(name)
        if number is None:
            assert self._number_of is not None, "there are several shards"
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            number = self._found[name] = self._number_of(with_instance(name, self._instance))
        return number

    def _place(self, instance: int) -> None:
        """Place series with a placeholder by this instance number from now on."""
        moved = BatchContents(self._kept_now)
        try:
            # Without a number before, all of them are in one place.
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
        """Regroup everything by the shards of another store.

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
            value: a value of this kind's pending series.
            now: Unix seconds; not ahead of the server's clock, or fine intervals are lost too soon.
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
        """Put back contents that were never sent."""
        if part.kept is not self._kept_now:  # the retention changed since
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
        if known is None:  # only now, so that no pending series is without an interval
            levels.setdefault((kind, width), {})[name] = run

    # Roll-up

    def roll_up(self, now: float) -> None:
        """Roll up intervals that have grown old.

        Args:
            now: see add().
        """
        self._roll_up(now, now)

    def shrink(self, now: float) -> None:
        """Roll up intervals, the oldest first, until the buffer is within its limit."""
        self._shrink_logs()
        ahead = 60.0
        while self._excess(now) and ahead < 4 * MAX_TIME:
            self._roll_up(now, now + ahead)  # as if so much time had passed
            ahead *= 2

    def _shrink_logs(self) -> None:
        """Drop texts and patterns of messages that exceed the memory left by numbers."""
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
        """Return whether the limit is exceeded and rolling up can free memory."""
        return self.bytes > self._limit and any(
            width and (width != widths.widest or not _kept(widths, run.last - now))
            for kind, width, _, run in self._runs()
            for widths in [self._widths(kind)]
        )

    def _roll_up(self, now: float, pretended: float) -> None:
        for levels in self._places.values():
            self._roll_up_levels(levels, now, pretended)

    def _roll_up_levels(self, levels: Levels, now: float, pretended: float) -> None:
        for (kind, width), runs in list(levels.items()):
            if not width:
                continue
            widths = self._widths(kind)
            # The newest event of an interval may be in its last second.
            before = pretended - width - widths.until(width)
            for name, run in list(runs.items()):
                older = run.older(before)
                if not older:
                    continue
                for start, value in run.cut(older):
                    wider = widths.at(pretended - (start + width))
                    if not wider and _kept(widths, start + width - now):
                        wider = widths.widest  # despite the memory: an interval must remain
                    if wider == width or (wider and wider % width):  # fine enough, or not divisible
                        self._merge(levels, kind, width, name, start, value)
                        continue
                    gone, events = widths.lost(width, wider), kind.events_of(value)
                    early = widths.holding(gone, now - (start + width))
                    if early:  # because of the memory
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
        """Remove and return as much as one batch holds; None if nothing is left.

        Args:
            number: of the shard that the batch is for.
            instance: the instance number; if None, series that need one stay.
        """
        if instance not in (None, self._instance) and self._number_of is not None:
            self._place(instance)
        part = BatchContents(self._kept_now, instance)
        try:
            if levels := self._places.get(number):
                self._fill(part, levels, numbered=instance is not None)
        except BaseException:  # a bug, or a signal handler's: the data is nowhere else
            self.put_back(part)
            raise
        return part if part.fields else None

    def _fill(self, part: BatchContents, levels: Levels, *, numbered: bool) -> None:
        """Move as much into a batch as it holds.

        Args:
            numbered: include series with a placeholder for the instance number.
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
                if name in runs:  # the newer half, for the next batch
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
    """Return whether any precision holds an interval this far ahead (negative: in the past)."""
    return widths.at(abs(ahead)) > 0


def _lacking(
    runs: Iterable[tuple[type[PendingSeries], int, str, PendingSeries]], before: Kept, after: Kept
) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield name, precisions that the pending data is too coarse for, and events."""
    if before == after:
        return
    for kind, width, name, run in runs:
        came = set(kind.retention(after)) - set(kind.retention(before))
        lacking = tuple(sorted(p for p in came if not width or p % width))
        if lacking:
            yield name, lacking, run.events
