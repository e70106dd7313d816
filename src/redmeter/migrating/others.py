"""What is not kept by slices: statistics, messages, marks. See families.py.

What is kept by the hour is written with the hour that it is of, however long ago that was, unless
TO has two later ones already.
"""

# ruff: noqa: ARG002  # all families are asked the same, and not all need to know so much

from collections.abc import Sequence
from typing import Any

from redmeter.keys import HOUR, MAX_RECENT, Kept, Keys, slice_start
from redmeter.kinds import mark, message, statistics
from redmeter.kinds.hourly import hours_of
from redmeter.kinds.message import Group, LogHour, name_of, parse_name
from redmeter.migrating.families import Content, Family, Item
from redmeter.model import Operation, Operations
from redmeter.store.replies import Command, Reply

#: Endings of the keys that belong to the one without.
_ENDINGS = (":start", ":last", ":pstart")

_BARE = Keys("")

#: Messages of a list that are kept at least.
_KEEP = 100


class Hourly(Family):
    """What has a sorted set for this hour, one for the last before it, and says which these are."""

    shapes = "zset", "string", "zset", "string", "string", "string"
    refuse = False

    def precision(self, name: str) -> int:
        return HOUR

    def hours(
        self, parts: Sequence[Any], now: float
    ) -> list[tuple[int | None, list[tuple[bytes, float]]]]:
        """Return the hours with what they hold, the older first."""
        this, start, last, *others = parts
        begun, before = hours_of([start, *others], now)
        newest = slice_start(now, HOUR) if begun is None else begun
        return [(before, last), (newest, this)]

    def sizes(self, keys: Keys, name: str) -> list[Command]:
        key, _, last, *_ = self.keys(keys, name)
        return [("ZCARD", key), ("ZCARD", last)]


class Statistics(Hourly):
    """Statistics of observed values."""

    name = "statistics"
    listed = False
    limit = 100

    def head(self, keys: Keys) -> str:
        return keys.stats_as_is("")[0]

    def parse(self, text: str) -> str | None:
        text = _base(text)
        # A name that ends as such a key does has a mark more in its key.
        name = text.removesuffix("~")
        return (name if _BARE.stats(name)[0] == f"stats:{text}" else text) or None

    def keys(self, keys: Keys, name: str) -> tuple[str, ...]:
        return keys.stats(name)

    def sizes(self, keys: Keys, name: str) -> list[Command]:
        key, _, last, *_ = self.keys(keys, name)
        return [("ZMSCORE", each, "count", "sum") for each in (key, last)]

    def size(self, replies: Sequence[Reply]) -> int | None:
        there = [scores for scores in replies if None not in scores]
        return len(there)

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        items, unread = [], 0
        for hour, members in self.hours(parts, now):
            scores = {member.decode(errors="replace"): score for member, score in members}
            found = statistics.merged(scores)
            if hour is not None and found.count:
                items.append(Item(name, HOUR, hour, found, found.count))
            else:
                unread += bool(members)
        return Content(items, unread=unread)

    def operations(self, keys: Keys, kept: Kept, items: Sequence[Item]) -> Operations:
        hours: dict[str, dict[int, Any]] = {}
        for item in items:
            hours.setdefault(item.name, {})[item.start] = item.value
        return statistics.operations(keys, hours)

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        return [(keys.stats(item.name)[0], str(item.start))]


class Frequencies(Hourly):
    """How often patterns of messages came, by the hour."""

    name = "patterns"
    limit = 300

    def head(self, keys: Keys) -> str:
        return keys.common_of("")

    def parse(self, text: str) -> str | None:
        return _source(_base(text))

    def keys(self, keys: Keys, name: str) -> tuple[str, ...]:
        return keys.common(*parse_name(name))

    def place(self, item: Item) -> str:
        return parse_name(item.name)[0]

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        items, unread = [], 0
        for hour, members in self.hours(parts, now):
            for pattern, count in sorted(members):
                if hour is not None and 1 <= count < 2**53:
                    text = pattern.decode(errors="replace")
                    items.append(Item(name, HOUR, hour, text, int(count)))
                else:
                    unread += 1
        return Content(items, unread=unread)

    def operations(self, keys: Keys, kept: Kept, items: Sequence[Item]) -> Operations:
        hours: dict[str, dict[int, LogHour]] = {}
        for item in items:
            by_hour = hours.setdefault(item.name, {})
            hour = by_hour.setdefault(item.start, LogHour(0))
            hour.add(item.value, Group(item.events, item.start, item.start, ""))
        last = [(name, float(max(by_hour))) for name, by_hour in hours.items()]
        return (*message.tally(keys, hours), message.touch(keys, last))

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        return [(keys.common_of(item.name), str(item.start))]


class Recent(Family):
    """The newest messages: as many of a list as a store keeps at most, and no more."""

    name = "messages"
    shapes = ("list",)
    limit = 200

    def head(self, keys: Keys) -> str:
        return keys.recent("", "")[:-1]

    def parse(self, text: str) -> str | None:
        return _source(text)

    def sizes(self, keys: Keys, name: str) -> list[Command]:
        return [("LLEN", key) for key in self.keys(keys, name)]

    def place(self, item: Item) -> str:
        return parse_name(item.name)[0]

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        (entries,) = parts
        newest = entries[:MAX_RECENT]
        keep, items = max(_KEEP, len(newest)), []
        for at, entry in enumerate(newest):
            time, _ = message.parse_entry(entry)
            text = entry.decode(errors="replace")
            items.append(Item(name, 0, at, (keep, text, now if time is None else time), 1))
        # Of other programs: ours cut a list whenever they write.
        return Content(items, aged=len(entries) - len(newest))

    def operations(self, keys: Keys, kept: Kept, items: Sequence[Item]) -> Operations:
        by_name: dict[str, list[tuple[int, str, float]]] = {}
        for item in items:
            by_name.setdefault(item.name, []).append(item.value)
        lists = tuple(keys.recent(*parse_name(name)) for name in by_name)
        args = [str(message.LIFE), str(MAX_RECENT)]
        for entries in by_name.values():
            args += (str(entries[0][0]), str(len(entries)), *(text for _, text, _ in entries))
        told = [(name, len(entries)) for name, entries in by_name.items()]
        last = [(name, max(time for _, _, time in each)) for name, each in by_name.items()]
        put = Operation("weave", lists, tuple(args), lambda: told)
        return put, message.touch(keys, last)

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        return [(keys.recent(*parse_name(item.name)), item.name)]


class Samples(Family):
    """When each pattern was seen first and last, with a sample. Nothing that is counted."""

    name = "samples"
    limit = 200

    def head(self, keys: Keys) -> str:
        return keys.patterns("", "")[:-1]

    def parse(self, text: str) -> str | None:
        return _source(text)

    def place(self, item: Item) -> str:
        return parse_name(item.name)[0]

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        items, (fields,) = [], parts
        for pattern, text in sorted(fields):
            first, _, rest = text.decode(errors="replace").partition(" ")
            last, _, sample = rest.partition(" ")
            try:
                group = Group(0, float(first), float(last), sample)
            except ValueError:
                continue
            items.append(Item(name, 0, 0, (pattern.decode(errors="replace"), group), 1))
        return Content(items, unread=len(fields) - len(items))

    def operations(self, keys: Keys, kept: Kept, items: Sequence[Item]) -> Operations:
        hours: dict[str, LogHour] = {}
        for item in items:
            hours.setdefault(item.name, LogHour(0)).add(*item.value)
        last = [(name, hour.last) for name, hour in hours.items()]
        return (*message.seen(keys, hours), message.touch(keys, last))

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        return [(keys.patterns(*parse_name(item.name)), "")]


class Marks(Family):
    """Marks: one set for all."""

    name = "marks"
    listed = False
    shapes = ("zset",)
    limit = 100

    def head(self, keys: Keys) -> str:
        return keys.marks

    def sizes(self, keys: Keys, name: str) -> list[Command]:
        return [("ZCARD", keys.marks)]

    def place(self, item: Item) -> str:
        return ""

    def content(self, name: str, parts: Sequence[Any], now: float) -> Content:
        (members,) = parts
        found = sorted(one for member, _ in members if (one := mark.parse(member)) is not None)
        release = next((name for member, _ in members if (name := mark.parse_release(member))), "")
        newest = max((one for one in found if one.label == release), default=None)
        noted = [mark.Noted(*one, release=one == newest) for one in found]
        items = [Item("", 0, int(one.time), one, 1) for one in noted]
        return Content(items, unread=len(members) - len(items) - bool(release))

    def operations(self, keys: Keys, kept: Kept, items: Sequence[Item]) -> Operations:
        marks = [item.value for item in items]
        # The mark itself as it is; then TO's newest release, which adds no second one.
        return (
            *mark.operations(keys, [one._replace(release=False) for one in marks]),
            *mark.operations(keys, [one for one in marks if one.release]),
        )

    def told(self, keys: Keys, item: Item) -> list[tuple[str, str]]:
        return [(keys.marks, item.value[1])]


def _base(text: str) -> str:
    """Return the first of the four keys that one of them belongs to."""
    ending = next((each for each in _ENDINGS if text.endswith(each)), "")
    return text.removesuffix(ending)


def _source(text: str) -> str | None:
    """Return LOGGER:SEVERITY; None where a key has not both."""
    logger, severity = parse_name(text)
    return name_of(logger, severity) if logger and severity else None
