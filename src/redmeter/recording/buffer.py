"""Buffer: recorded events that are not stored yet, merged by series and interval. Memory only.

Events of one series and interval are one number here, so an outage costs memory by series and
intervals. Intervals are rolled up as they age (see Resolution), and earlier if memory runs
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
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from redmeter.recording.pending import IntervalFull, PendingSeries, needs_instance, with_instance
from redmeter.recording.status import RecorderStats
from redmeter.results.recorder import AGED, MEMORY, RETENTION, TOTAL
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


class Resolution:
    """The interval width in which an event is kept, by age.

    A buffered event is kept only as finely as some precision of the retention still needs it. With
    precisions of 1 s, 5 s and 1 min and 120 samples each, an event of the last two minutes is kept
    by its second; once the 1 s precision no longer holds it, by its 5 s interval; after ten minutes
    by its minute; after two hours only as a part of the total. In general the width is the greatest
    common divisor of the precisions that still hold the event, so that each of them can be made
    from it, even 7 s next to 60 s.

    Args:
        retention: precision -> samples.
    """

    __slots__ = ("_ages", "_lost", "_widths", "_windows")

    def __init__(self, retention: Mapping[int, int]) -> None:
        # An event may be in the last second of its interval, which the store rejects once its end
        # is outside the retention: see store/lua/apply.lua.
        self._windows = {p: (samples + 1) * p for p, samples in retention.items()}
        self._lost: dict[tuple[int, int], tuple[int, ...]] = {}
        self._ages = sorted(set(self._windows.values()))
        # One for each range of ages, each a divisor of the next; 0 for events that no precision
        # holds any more.
        self._widths = [
            math.gcd(*(p for p, window in self._windows.items() if window >= age))
            for age in self._ages
        ] + [0]

    @property
    def finest(self) -> int:
        """The width of new events, seconds."""
        return self._widths[0]

    @property
    def widest(self) -> int:
        """The width of events so old that only one precision holds them, seconds."""
        return self._widths[-2]

    def at(self, age: float) -> int:
        """Return the width for an age (seconds, negative in the future); 0 if none holds it."""
        return self._widths[bisect_left(self._ages, age)]

    def until(self, width: int) -> float:
        """Return the age up to which a width is no finer than needed, seconds."""
        needed = zip(self._ages, self._widths, strict=False)
        return max((age for age, w in needed if width % w == 0), default=-math.inf)

    def precisions(self, width: int) -> tuple[int, ...]:
        """Return the precisions that can be made from intervals of a width."""
        return tuple(p for p in self._windows if p % width == 0) if width else ()

    def lost(self, width: int, wider: int) -> tuple[int, ...]:
        """Return the precisions that can be made from intervals of a width, but not a wider one."""
        lost = self._lost.get((width, wider))
        if lost is None:
            left = self.precisions(wider)
            lost = tuple(p for p in self.precisions(width) if p not in left)
            self._lost[width, wider] = lost
        return lost

    def holding(self, precisions: tuple[int, ...], age: float) -> tuple[int, ...]:
        """Return the given precisions that still hold an event of an age, seconds."""
        return tuple(p for p in precisions if self._windows[p] >= age)


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
        self, kind: type[PendingSeries], width: int, name: str, pending: PendingSeries, fields: int
    ) -> None:
        """Add a pending series that is not part of it yet."""
        self._levels.setdefault((kind, width), {})[name] = pending
        self.events += pending.events
        self.fields += fields
        self.bytes += SERIES_BYTES + pending.bytes

    def pending(self) -> Iterator[tuple[type[PendingSeries], int, str, PendingSeries]]:
        """Yield kind, width, name and pending series."""
        for (kind, width), by_name in self._levels.items():
            for name, pending in by_name.items():
                yield kind, width, name, pending

    def lacking(self, kept: Kept) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Yield name, precisions that were added to the retention since, and events."""
        return _lacking(self.pending(), self.kept, kept)

    def operations(self, keys: Keys, kept: Kept) -> Operations:
        """Return the operations of the batch."""
        made: list[Operation] = []
        # The oldest events first, which have no interval or the widest: the newest determine how
        # long a new hash lives, and lists keep their last elements.
        for (kind, width), by_name in sorted(self._levels.items(), key=_oldest_first):
            number = self._instance if kind.NUMBERED else None
            if number is not None:
                by_name = {with_instance(name, number): each for name, each in by_name.items()}
            made += kind.operations(keys, kept, by_name, width)
        return tuple(made)


class Buffer:
    """Pending series by shard, kind, interval width and name.

    Args:
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
        self._by_shard: dict[int, Levels] = {0: {}}
        #: The instance number by which pending series are placed.
        self._instance: int | None = None
        #: Name with a placeholder -> number of the shard.
        self._shard_of: dict[str, int] = {}
        self._kept_now = kept
        self._resolutions: dict[type[PendingSeries], Resolution] = {}

    def retain(self, kept: Kept) -> None:
        """Adopt another retention."""
        for name, precisions, events in _lacking(self._pending(), self._kept_now, kept):
            self._stats.record_loss(RETENTION, name, precisions, events)
        self._kept_now, self._resolutions = kept, {}

    def _resolution(self, kind: type[PendingSeries]) -> Resolution:
        resolution = self._resolutions.get(kind)
        if resolution is None:
            resolution = self._resolutions[kind] = Resolution(kind.retention(self._kept_now))
        return resolution

    def precisions(self, kind: type[PendingSeries]) -> tuple[int, ...]:
        """Return all precisions in the retention of a kind."""
        resolution = self._resolution(kind)
        return resolution.precisions(resolution.finest)

    def width(self, kind: type[PendingSeries], age: float) -> int:
        """Return the interval width for an age (seconds); 0 if no precision holds it any more."""
        return self._resolution(kind).at(age)

    @property
    def bytes(self) -> int:
        """Estimated memory."""
        return sum(SERIES_BYTES + pending.bytes for _, _, _, pending in self._pending())

    @property
    def numbers(self) -> set[int]:
        """The numbers of the shards with pending series, UNPLACED among them."""
        return {number for number, levels in self._by_shard.items() if any(levels.values())}

    def _pending(self) -> Iterator[tuple[type[PendingSeries], int, str, PendingSeries]]:
        for levels in self._by_shard.values():
            for (kind, width), by_name in levels.items():
                for name, pending in by_name.items():
                    yield kind, width, name, pending

    def _levels(self, kind: type[PendingSeries], name: str) -> Levels:
        """Return the group that a pending series belongs to."""
        if self._number_of is None:
            return self._by_shard[0]
        numbered = kind.NUMBERED and needs_instance(name)
        number = self._numbered(name) if numbered else self._number_of(kind.home(name))
        levels = self._by_shard.get(number)
        if levels is None:
            levels = self._by_shard[number] = {}
        return levels

    def _numbered(self, name: str) -> int:
        """Return the shard of a name with a placeholder for the instance number."""
        if self._instance is None:
            return UNPLACED
        number = self._shard_of.get(name)
        if number is None:
            assert self._number_of is not None, "there are several shards"
            if len(self._shard_of) >= REMEMBERED:
                self._shard_of.clear()
            number = self._shard_of[name] = self._number_of(with_instance(name, self._instance))
        return number

    def _place(self, instance: int) -> None:
        """Place series with a placeholder by this instance number from now on."""
        moved = BatchContents(self._kept_now)
        try:
            # Without a number before, all of them are in one place.
            for number in [UNPLACED] if self._instance is None else list(self._by_shard):
                levels = self._by_shard.get(number, {})
                for kind, width in [level for level in levels if level[0].NUMBERED]:
                    by_name = levels[kind, width]
                    for name in [name for name in by_name if needs_instance(name)]:
                        moved.add(kind, width, name, by_name.pop(name), 0)
                    if not by_name:
                        del levels[kind, width]
            self._instance, self._shard_of = instance, {}
        finally:
            self.put_back(moved)

    def reshard(self, number_of: Callable[[str], int] | None) -> None:
        """Regroup everything by the shards of another store.

        Args:
            number_of: as in the constructor.
        """
        series = list(self._pending())
        self._number_of, self._by_shard, self._instance, self._shard_of = (
            number_of,
            {0: {}},
            None,
            {},
        )
        for each in series:
            self._put_series(*each)

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
        second, resolution = math.floor(time), self._resolution(kind)
        width = resolution.at(now - second)
        if width != resolution.finest:
            gone = resolution.lost(resolution.finest, width)
            events = kind.events_of(value)
            self._stats.record_loss(AGED, name, gone, events)
            self._stats.past.update(dict.fromkeys(gone, events))
        start = second - second % width if width else 0
        levels = self._by_shard[0] if self._number_of is None else self._levels(kind, name)
        self._merge(levels, kind, width, name, start, value)

    def put_back(self, batch: BatchContents) -> None:
        """Put back contents that were never sent."""
        if batch.kept is not self._kept_now:  # the retention changed since
            for name, precisions, events in batch.lacking(self._kept_now):
                self._stats.record_loss(RETENTION, name, precisions, events)
        for series in batch.pending():
            self._put_series(*series)

    def _put_series(
        self, kind: type[PendingSeries], width: int, name: str, pending: PendingSeries
    ) -> None:
        levels = self._levels(kind, name)
        by_name = levels.setdefault((kind, width), {})
        if name in by_name:
            for start, value in pending:
                self._merge(levels, kind, width, name, start, value)
        else:
            by_name[name] = pending

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
        by_name = levels.get((kind, width))
        known = by_name.get(name) if by_name else None
        pending = kind() if known is None else known
        try:
            pending.add(start, value)
        except IntervalFull as full:
            lost = self._resolution(kind).precisions(width)
            self._stats.drop(full.reason, name, lost, kind.events_of(value))
            return
        if known is None:  # only now, so that no pending series is without an interval
            levels.setdefault((kind, width), {})[name] = pending

    # Roll-up

    def roll_up(self, now: float, ahead: float = 0.0) -> None:
        """Roll up intervals that have grown old.

        Args:
            now: see add().
            ahead: as if so much more time had passed, seconds.
        """
        for levels in self._by_shard.values():
            self._roll_up_levels(levels, now, now + ahead)

    def shrink(self, now: float) -> None:
        """Roll up intervals, the oldest first, until the buffer is within its limit."""
        self._shrink_logs()
        ahead = 60.0
        while self._excess(now) and ahead < 4 * MAX_TIME:
            self.roll_up(now, ahead)
            ahead *= 2

    def _shrink_logs(self) -> None:
        """Drop texts and patterns of messages that exceed the memory left by numbers."""
        logs = [(name, pending) for kind, _, name, pending in self._pending() if kind.TEXTS]
        size = sum(SERIES_BYTES + pending.bytes for _, pending in logs)
        numbers = self.bytes - size
        need = size - max(self._limit / 2, self._limit - numbers)
        if need <= 0:
            return
        logs.sort(key=lambda log: -log[1].bytes)
        for name, pending in logs:
            if need > 0:
                freed, texts = pending.give_up_texts(math.ceil(need))
                need -= freed
                self._stats.record_loss(MEMORY, name, (TOTAL,), texts)
        for _, pending in logs:
            if need > 0:
                need -= pending.give_up_patterns(math.ceil(need))

    def _excess(self, now: float) -> bool:
        """Return whether the limit is exceeded and rolling up can free memory."""
        return self.bytes > self._limit and any(
            width and (width != resolution.widest or not _kept(resolution, pending.last - now))
            for kind, width, _, pending in self._pending()
            for resolution in [self._resolution(kind)]
        )

    def _roll_up_levels(self, levels: Levels, now: float, pretended: float) -> None:
        for (kind, width), by_name in list(levels.items()):
            if not width:
                continue
            resolution = self._resolution(kind)
            # The newest event of an interval may be in its last second.
            before = pretended - width - resolution.until(width)
            for name, pending in list(by_name.items()):
                older = pending.older(before)
                if not older:
                    continue
                for start, value in pending.cut(older):
                    wider = resolution.at(pretended - (start + width))
                    if not wider and _kept(resolution, start + width - now):
                        wider = resolution.widest  # despite the memory: an interval must remain
                    if wider == width or (wider and wider % width):  # fine enough, or not divisible
                        self._merge(levels, kind, width, name, start, value)
                        continue
                    gone, events = resolution.lost(width, wider), kind.events_of(value)
                    early = resolution.holding(gone, now - (start + width))
                    if early:  # because of the memory
                        self._stats.record_loss(MEMORY, name, early, events)
                        gone = tuple(p for p in gone if p not in early)
                    self._stats.record_loss(AGED, name, gone, events)
                    wide = start - start % wider if wider else 0
                    self._merge(levels, kind, wider, name, wide, value)
                if not pending:
                    del by_name[name]
            if not by_name:
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
        batch = BatchContents(self._kept_now, instance)
        try:
            if levels := self._by_shard.get(number):
                self._fill(batch, levels, numbered=instance is not None)
        except BaseException:  # a bug, or a signal handler's: the data is nowhere else
            self.put_back(batch)
            raise
        return batch if batch.fields else None

    def _fill(self, batch: BatchContents, levels: Levels, *, numbered: bool) -> None:
        """Move as much into a batch as it holds.

        Args:
            numbered: include series with a placeholder for the instance number.
        """
        for (kind, width), by_name in sorted(levels.items(), key=_oldest_first):
            precisions = self._resolution(kind).precisions(width)
            for name in list(by_name):
                if not numbered and kind.NUMBERED and needs_instance(name):
                    continue
                pending = by_name.pop(name)
                try:
                    fields = pending.fields(precisions)
                    while fields > FIELDS_PER_BATCH and len(pending) > 1:
                        pending, newer = pending.cut(len(pending) // 2), pending
                        self._put_series(kind, width, name, newer)
                        fields = pending.fields(precisions)
                except BaseException:
                    self._put_series(kind, width, name, pending)
                    raise
                if batch.fields and batch.fields + fields > FIELDS_PER_BATCH:
                    self._put_series(kind, width, name, pending)
                    return
                batch.add(kind, width, name, pending, fields)
                if name in by_name:  # the newer half, for the next batch
                    return
            if not by_name:
                del levels[kind, width]


def _oldest_first(level: tuple[tuple[type[PendingSeries], int], object]) -> tuple[bool, int]:
    (_, width), _ = level
    return width > 0, -width


def _kept(resolution: Resolution, ahead: float) -> bool:
    """Return whether any precision holds an interval this far ahead (negative: in the past)."""
    return resolution.at(abs(ahead)) > 0


def _lacking(
    series: Iterable[tuple[type[PendingSeries], int, str, PendingSeries]],
    before: Kept,
    after: Kept,
) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield name, precisions that the pending data is too coarse for, and events."""
    if before == after:
        return
    for kind, width, name, pending in series:
        added = set(kind.retention(after)) - set(kind.retention(before))
        lacking = tuple(sorted(p for p in added if not width or p % width))
        if lacking:
            yield name, lacking, pending.events
