"""What each kind of record is in a store that is moved: its keys, its parts, how they are written.

A unit is what is taken at once: the hash of a counter at one precision, the four keys of the
statistics of a name. Its items are what batches are made of; which they are, and in which order, is
the same however often a unit is read. Here is what is kept by slices; others.py has the rest.
"""

# ruff: noqa: ARG002  # all families are asked the same, and not all need to know so much

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from redmeter.keys import Kept, Keys, parse_entry, slice_start
from redmeter.kinds import counter, gauge, histogram, packed
from redmeter.model import Operation, Operations
from redmeter.store.replies import Command, Reply


class Item(NamedTuple):
    """A part of a unit: one slice, one pattern of an hour, one message."""

    #: Of the series; or LOGGER:SEVERITY.
    name: str
    #: Slice width, seconds; 0 where there is none.
    precision: int
    #: Start of the slice or hour, Unix seconds.
    start: int
    value: Any
    #: How many events it stands for.
    events: int


class Content(NamedTuple):
    """What a unit holds."""

    items: list[Item]
    #: What others keep in a hash of ours, to be put back: number of the key, field, value.
    foreign: Sequence[tuple[int, bytes, bytes]] = ()
    #: How much else is not of the form, and goes with what was taken.
    unread: int = 0
    #: How many events more there are than any store keeps.
    aged: int = 0


class Family:
    """One kind of record."""

    #: As it is told.
    name = ""
    #: What the keys of a unit hold: hash, zset, list, string.
    shapes: tuple[str, ...] = ("hash",)
    #: Items of a batch at most.
    limit = 500
    #: Whether TO shall refuse what is aged.
    refuse = True
    #: Whether Walk.total() counts its units; else nothing says how many there are.
    listed = True

    def head(self, keys: Keys) -> str:
        """Return what stands before a unit's name in its first key."""
        raise NotImplementedError

    def parse(self, text: str) -> str | None:
        """Return the name of the unit that a key belongs to, given what stands behind the head."""
        return text

    def keys(self, keys: Keys, name: str) -> tuple[str, ...]:
        """Return the keys of a unit."""
        return (self.head(keys) + name,)

    def index(self, keys: Keys) -> str:
        """Return the index that has an entry for each unit, under its name; "" where none has."""
        return ""

    def sizes(self, keys: Keys, name: str) -> list[Command]:
        """Return commands that say how many items there are."""
        return [("HLEN", key) for key in self.keys(keys, name)[:1]]

    def size(self, replies: Sequence[Reply]) -> int | None:
        """Return how many items there are; None where it is nothing of ours."""
        return sum(replies)

    def precision(self, name: str) -> int:
        """Return the precision of a unit; 0 where it has none."""
        return 0

    def kept(self, kept: Kept) -> Mapping[int, int] | None:
        """Return the retention that counts; None where there is none."""
        return None

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        """Return the items of a unit.

        Args:
            parts: what its keys hold: (field, value) pairs, (member, score) pairs, entries, or a
                text or None.
            now: Unix seconds, by TO's clock.
        """
        raise NotImplementedError

    def unit(self, item: Item) -> str:
        """Return the name of the unit that an item is of."""
        return item.name

    def place(self, item: Item) -> str:
        """Return the text that says in which partition of TO an item goes."""
        return item.name

    def operations(self, keys: Keys, kept: Kept, items: Sequence[Item]) -> Operations:
        """Return the operations of one batch."""
        raise NotImplementedError

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        """Return under which keys and fields TO says that it has not stored an item."""
        raise NotImplementedError

    def look(self, keys: Keys, items: Sequence[Item]) -> list[Command]:
        """Return commands that say what TO holds of some items."""
        return []

    def held(
        self, keys: Keys, items: Sequence[Item], before: Sequence[Reply], after: Sequence[Reply]
    ) -> list[int]:
        """Return by how many events TO holds more of each item, given replies to look()."""
        return []


class Sliced(Family):
    """What is one hash for each precision, slice start -> value."""

    def parse(self, text: str) -> str | None:
        return text if parse_entry(text) else None

    def precision(self, name: str) -> int:
        parsed = parse_entry(name)
        assert parsed is not None, "its key was parsed"
        return parsed[0]

    def kept(self, kept: Kept) -> Mapping[int, int]:
        return kept.series

    def unit(self, item: Item) -> str:
        return f"{item.precision}:{item.name}"

    def key(self, keys: Keys, item: Item) -> str:
        """Return the key of the hash that an item lies in."""
        return self.head(keys) + self.unit(item)

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        return [(self.key(keys, item), str(item.start))]

    def operations(self, keys: Keys, kept: Kept, items: Sequence[Item]) -> Operations:
        retention = self.kept(kept)
        made: list[Operation] = []
        for precision, values in _nested(items).items():
            if precision in retention:
                made += self.written(keys, {precision: retention[precision]}, values, precision)
        return tuple(made)

    def written(
        self, keys: Keys, retention: Mapping[int, int], values: Any, width: int
    ) -> Operations:
        """Return the operations that write slices of one precision: name -> {start -> value}."""
        raise NotImplementedError

    def look(self, keys: Keys, items: Sequence[Item]) -> list[Command]:
        asked = self._starts(keys, items)
        return [("HMGET", key, *map(str, starts)) for key, starts in asked.items()]

    def held(
        self, keys: Keys, items: Sequence[Item], before: Sequence[Reply], after: Sequence[Reply]
    ) -> list[int]:
        asked = self._starts(keys, items)
        was, now = _texts(asked, before), _texts(asked, after)
        found = []
        for item in items:
            at = self.key(keys, item), item.start
            found.append(self.more(item, was.get(at), now.get(at)))
        return found

    def _starts(self, keys: Keys, items: Sequence[Item]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for item in items:
            found.setdefault(self.key(keys, item), []).append(item.start)
        return found

    def more(self, item: Item, before: bytes | None, after: bytes | None) -> int:
        """Return by how many events the text of a slice has more than before."""
        raise NotImplementedError


class Counters(Sliced):
    """Counters. Only these may be another program's: what is none of their slices is put back."""

    name = "counters"

    def head(self, keys: Keys) -> str:
        return keys.count_of("")

    def index(self, keys: Keys) -> str:
        return keys.known

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        precision, series = _entry(name)
        (fields,) = parts
        foreign = [(0, start, n) for start, n in fields if not _is_slice(start, n, precision)]
        if foreign:
            fields = [(start, n) for start, n in fields if _is_slice(start, n, precision)]
        slices = sorted(counter.parse(fields).items())
        items = [Item(series, precision, start, count, count) for start, count in slices]
        return Content(items, foreign)

    def written(
        self, keys: Keys, retention: Mapping[int, int], values: Any, width: int
    ) -> Operations:
        return counter.operations(keys, retention, values, totals=False, width=width)

    def more(self, item: Item, before: bytes | None, after: bytes | None) -> int:
        return _whole(after) - _whole(before)


class Gauges(Sliced):
    """Gauges: a slice counts as one event, since of two values the newer one stays."""

    name = "gauges"

    def head(self, keys: Keys) -> str:
        return keys.gauge_of("")

    def index(self, keys: Keys) -> str:
        return keys.gauges

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        precision, series = _entry(name)
        items, (fields,) = [], parts
        for start_text, text in fields:
            start = _start(start_text, precision)
            measured = None if start is None else gauge.parse(text, start, precision)
            if start is not None and measured is not None:
                items.append(Item(series, precision, start, measured, 1))
        return Content(sorted(items), unread=len(fields) - len(items))

    def written(
        self, keys: Keys, retention: Mapping[int, int], values: Any, width: int
    ) -> Operations:
        return gauge.operations(keys, retention, values, width=width)

    def more(self, item: Item, before: bytes | None, after: bytes | None) -> int:
        found = gauge.parse(after or b"", item.start, item.precision)
        return int(found is not None and found[0] >= item.value[0])


class Histograms(Sliced):
    """Histograms; the statistics of their hours are moved by themselves."""

    name = "histograms"
    shapes = "hash", "hash"
    limit = 100

    def head(self, keys: Keys) -> str:
        return keys.hist_of("")

    def keys(self, keys: Keys, name: str) -> tuple[str, ...]:
        return keys.hist_of(name), keys.moments_of(name)

    def index(self, keys: Keys) -> str:
        return keys.hists

    def kept(self, kept: Kept) -> Mapping[int, int]:
        return kept.histograms

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        precision, series = _entry(name)
        buckets, moments = parts
        beside, items = dict(moments), []
        for start_text, text in buckets:
            start, read = _start(start_text, precision), packed.parse(text, beside.get(start_text))
            if start is not None and read is not None:
                items.append(Item(series, precision, start, read, read.count))
        items.sort(key=lambda item: item.start)
        return Content(items, unread=len(buckets) - len(items))

    def written(
        self, keys: Keys, retention: Mapping[int, int], values: Any, width: int
    ) -> Operations:
        return histogram.operations(keys, retention, values, hours=False, width=width)

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        start = str(item.start)
        beside = keys.moments(item.precision, item.name)
        return [(self.key(keys, item), start), (beside, start)]

    def look(self, keys: Keys, items: Sequence[Item]) -> list[Command]:
        asked: list[Command] = []
        for key, starts in self._starts(keys, items).items():
            beside = keys.moments_of(key[len(self.head(keys)) :])
            fields = [*map(str, starts)]
            asked += [("HMGET", key, *fields), ("HMGET", beside, *fields)]
        return asked

    def held(
        self, keys: Keys, items: Sequence[Item], before: Sequence[Reply], after: Sequence[Reply]
    ) -> list[int]:
        asked = self._starts(keys, items)
        was = [_texts(asked, before[n::2]) for n in range(2)]
        now = [_texts(asked, after[n::2]) for n in range(2)]
        found = []
        for item in items:
            at = self.key(keys, item), item.start
            old = packed.parse(was[0].get(at), was[1].get(at))
            new = packed.parse(now[0].get(at), now[1].get(at))
            found.append((new.count if new else 0) - (old.count if old else 0))
        return found


class Totals(Family):
    """Grand totals: fields of one hash, of which some are taken at once."""

    name = "totals"

    def head(self, keys: Keys) -> str:
        return keys.total

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        (fields,) = parts
        items, unread = [], 0
        for series, text in sorted(fields):
            try:
                total = int(text)
                items.append(Item(series.decode(), 0, 0, total, total))
            except ValueError:
                unread += 1
        return Content(items, unread=unread)

    def unit(self, item: Item) -> str:
        return ""

    def operations(self, keys: Keys, kept: Kept, items: Sequence[Item]) -> Operations:
        return counter.operations(keys, {}, {item.name: {0: item.value} for item in items}, width=0)

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        return [(keys.total, item.name)]

    def look(self, keys: Keys, items: Sequence[Item]) -> list[Command]:
        return [("HMGET", keys.total, *(item.name for item in items))]

    def held(
        self, keys: Keys, items: Sequence[Item], before: Sequence[Reply], after: Sequence[Reply]
    ) -> list[int]:
        was = before[0] if before else [None] * len(items)
        return [_whole(a) - _whole(b) for b, a in zip(was, after[0], strict=True)]


def _entry(name: str) -> tuple[int, str]:
    parsed = parse_entry(name)
    assert parsed is not None, "its key was parsed"
    return parsed


def _nested(items: Iterable[Item]) -> dict[int, dict[str, dict[int, Any]]]:
    """Return precision -> name -> {start -> value}."""
    found: dict[int, dict[str, dict[int, Any]]] = {}
    for item in items:
        found.setdefault(item.precision, {}).setdefault(item.name, {})[item.start] = item.value
    return found


def _texts(
    asked: Mapping[str, list[int]], replies: Sequence[Reply]
) -> dict[tuple[str, int], bytes | None]:
    found = {}
    for (key, starts), reply in zip(asked.items(), replies, strict=False):
        for start, text in zip(starts, reply, strict=True):
            found[key, start] = text
    return found


def _start(text: bytes, precision: int) -> int | None:
    """Read the start of a slice; None where it is none."""
    try:
        start = int(text)
    except ValueError:
        return None
    return start if slice_start(start, precision) == start else None


def _is_slice(start: bytes, count: bytes, precision: int) -> bool:
    """Tell whether a field of a counter is one of its slices."""
    try:
        int(count)
        return float(start) % precision == 0
    except ValueError:
        return False


def _whole(text: bytes | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0
