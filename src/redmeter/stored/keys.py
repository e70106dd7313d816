"""The stored format: names of keys, starts of intervals, retention.

A key is PREFIX, the name of its family, a colon, and the rest: `redmeter:count:60:hits`. The table
in families.py has all families; docs/stored-format.md is the contract with other programs.

PREFIX is `redmeter:`, or empty for the layout of the listings in "Redis in Action". If it is
empty, families that the listings don't have start with `redmeter:bare:`, so that none of their keys
can be a user's. On a cluster a hash tag follows PREFIX, which determines the shard: see shards.py.

Pure: no I/O, no clock.
"""

import math
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from redmeter.errors import InvalidSetting, InvalidValue, UnknownPrecision, shown
from redmeter.lazy_regex import late
from redmeter.stored.families import FAMILIES, SERIES_KINDS, Family

#: Version of the stored format that this code reads and writes.
FORMAT = "1"

DEFAULT_PREFIX = "redmeter:"
#: The prefix of keys that the listings do not have, if the prefix is empty.
BARE_OWN = "redmeter:bare:"

#: Maximum entries of `recent:`; writers may keep fewer.
MAX_RECENT = 1_000

#: Longest prefix, bytes.
MAX_PREFIX = 64

#: Precision (seconds) -> number of newest samples that a new store keeps, unless the user chooses
#: otherwise. Hours reach back 10 days, so that each hour has the same hour of last week.
DEFAULT_RETENTION = {1: 120, 5: 120, 60: 120, 300: 120, 3600: 240, 18000: 120, 86400: 120}

#: The name of the histograms' own retention.
HISTOGRAMS = "histograms"
#: The default retention of histograms.
DEFAULT_HISTOGRAMS = {5: 24, 60: 120, 3600: 240}
#: Those of a store that does not name any: it is older than the default.
UNNAMED_HISTOGRAMS = {5: 24, 60: 120, 3600: 120}

#: Intervals kept for a precision that is not in the store's retention: other programs' counters.
OTHER_SAMPLES = 120

#: Maximum samples of a precision. A hash has that many past intervals and, if clocks run ahead, as
#: many future ones and two more: within the 512 fields up to which Redis stores a hash compactly
#: (hash-max-listpack-entries), at a tenth of the memory.
MAX_SAMPLES = 254

#: Widest interval, seconds: 366 days.
MAX_PRECISION = 366 * 86400

MAX_PRECISIONS = 16

#: Seconds of an hour, by which statistics and patterns rotate.
HOUR = 3600

#: Width of the steps by which sliding hours move on, seconds.
STEP = 300

#: What stands for everything beyond a limit: patterns, groups of exceptions, routes, label values.
OTHER: Final = "(other)"

#: Endings of the keys of hourly_parts(), and the marks of names that end so.
_ENDING = late(r":(?:start|last|pstart)~*\Z")

#: Times are accepted up to this many seconds on either side of 1970 (34,865 years).
MAX_TIME = 2**40


def slice_start(time: float, precision: int) -> int:
    """Return the start of the interval of a time: floor(time / precision) * precision.

    Floor also before 1970: second -1 is in the minute that starts at -60. Whole seconds are divided
    as integers, so rounding moves no event to another interval.

    Args:
        time: Unix seconds.
        precision: width of the interval, seconds.
    """
    return math.floor(time) // precision * precision


def slice_end(time: float, precision: int) -> int:
    """Return the first edge of intervals that is not before a time, Unix seconds."""
    return -slice_start(-time, precision)


def check_whole(what: str, number: object) -> None:
    """Check a number of things.

    Raises:
        TypeError: not a whole number.
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{what} is a whole number (int), not {type(number).__name__}")


def check_time(time: object) -> float:
    """Check a time given by a caller.

    Raises:
        InvalidValue: not a number, NaN, infinite, or absurdly far away (e.g. milliseconds).
    """
    if isinstance(time, bool) or not isinstance(time, int | float):
        raise InvalidValue(time, "a time is a number of Unix seconds, e.g. time.time()")
    if not -MAX_TIME < time < MAX_TIME:
        raise InvalidValue(time, "a time is in Unix seconds (not milliseconds), and finite")
    return time


def check_times(*times: object) -> None:
    """Check the times that a caller gave, where it gave one.

    Raises:
        InvalidValue: see check_time().
    """
    for time in times:
        if time is not None:
            check_time(time)


class Retention(Mapping[int, int]):
    """How much is kept: precision (seconds) -> number of newest samples. Immutable, ascending.

    Args:
        samples: the mapping, in any order.
        of: "histograms" for their retention, "" for that of counters and gauges.

    Raises:
        InvalidSetting: empty, too many precisions, or a number out of range.
    """

    __slots__ = ("_of", "_samples")

    def __init__(self, samples: Mapping[int, int], *, of: str = "") -> None:
        if not 1 <= len(samples) <= MAX_PRECISIONS:
            raise InvalidSetting(
                "retention", f"1 to {MAX_PRECISIONS} precisions, not {len(samples)}"
            )
        for precision, count in samples.items():
            if not _whole(precision) or not 1 <= precision <= MAX_PRECISION:
                raise InvalidSetting(
                    "retention",
                    f"precision {shown(precision, 40)}: a whole number of seconds, "
                    f"1 to {MAX_PRECISION}",
                )
            if not _whole(count) or not 1 <= count <= MAX_SAMPLES:
                raise InvalidSetting(
                    "retention",
                    f"{shown(count, 40)} samples at precision {precision}: a whole number, "
                    f"1 to {MAX_SAMPLES} (more would leave Redis' compact encoding, at ten times "
                    "the memory; add a coarser precision instead)",
                )
        self._samples = dict(sorted(samples.items()))
        self._of = of

    @classmethod
    def parse(cls, text: str, *, of: str = "") -> "Retention":
        """Read `1=120 60=240` (spaces or commas between). See Retention.

        Raises:
            InvalidSetting: not of that form, a precision twice, or out of range.
        """
        samples: dict[int, int] = {}
        for precision, count in parse_changes(text.replace(",", " ").split()):
            if precision in samples:
                raise InvalidSetting("retention", f"precision {precision} is given twice")
            samples[precision] = count
        return cls(samples, of=of)

    def __str__(self) -> str:
        return " ".join(f"{precision}={count}" for precision, count in self._samples.items())

    def __repr__(self) -> str:
        return f"Retention.parse({str(self)!r})"

    def __getitem__(self, precision: int) -> int:
        return self._samples[precision]

    def __iter__(self) -> Iterator[int]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def items(self) -> ItemsView[int, int]:
        """Return (precision, samples) pairs, ascending. On every write's path, so a dict's own."""
        return self._samples.items()

    def check(self, precision: object) -> int:
        """Return the precision if it is kept.

        Raises:
            UnknownPrecision: it is not; the error lists those that are.
        """
        if not _whole(precision) or precision not in self._samples:
            raise UnknownPrecision(precision, self._samples, of=self._of)
        assert isinstance(precision, int)
        return precision

    def changed(self, changes: Iterable[tuple[int, int]]) -> "Retention":
        """Return this retention with changes applied; 0 samples removes a precision."""
        samples = self._samples | dict(changes)
        left = {precision: count for precision, count in samples.items() if count != 0}
        return Retention(left, of=self._of)

    def oldest(self, precision: int, now: float) -> int:
        """Return the start of the oldest retained interval at a time."""
        return slice_start(now, precision) - (self._samples[precision] - 1) * precision


class Kept(NamedTuple):
    """Retentions: precision, seconds -> number of newest samples."""

    #: The retention of counters and gauges.
    series: Mapping[int, int]
    histograms: Mapping[int, int]

    def of(self, kind: str) -> Mapping[int, int]:
        """Return the retention of a kind of series."""
        retention: Mapping[int, int] = getattr(self, SERIES_KINDS[kind].retention)
        return retention


def epoch_of(version: str) -> tuple[int, int]:
    """Return the epoch of a version of the retention: the higher of two is that of the store.

    A retention that someone chose precedes a default. The latest chosen one is valid, but the first
    default: otherwise a shard that has lost its configuration would replace the others'
    with that of some new process.
    """
    number = int(version) if version.isdecimal() else 0
    if not number:
        return -1, 0
    return (1, number) if number % 2 else (0, -number)


def parse_changes(words: Iterable[str]) -> list[tuple[int, int]]:
    """Read `60=240 300=0` given as words: (precision, samples) pairs, 0 meaning "no longer kept".

    Raises:
        InvalidSetting: a word is not PRECISION=SAMPLES, or a precision is given twice.
    """
    changes: dict[int, int] = {}
    for word in words:
        precision, equals, count = word.partition("=")
        if not equals or not precision.isdecimal() or not count.isdecimal() or len(word) > 40:
            raise InvalidSetting(
                "retention", f"{word!r:.40} is not PRECISION=SAMPLES, e.g. 60=240 (seconds=samples)"
            )
        if int(precision) in changes:
            raise InvalidSetting("retention", f"precision {int(precision)} is given twice")
        changes[int(precision)] = int(count)
    return list(changes.items())


def check_prefix(prefix: str) -> str:
    """Check a key prefix.

    Raises:
        InvalidSetting: braces (they would make a hash tag), control characters, or too long.
    """
    if not isinstance(prefix, str) or len(prefix.encode(errors="replace")) > MAX_PREFIX:
        raise InvalidSetting("prefix", f"text of at most {MAX_PREFIX} bytes")
    if any(c in "{}" or not c.isprintable() for c in prefix):
        raise InvalidSetting(
            "prefix", "no braces (they are Redis Cluster's) and no control characters"
        )
    if prefix == BARE_OWN:
        raise InvalidSetting("prefix", f"{BARE_OWN} belongs to the store without a prefix")
    return prefix


#: Name of a family -> whether the listings have it.
_SHARED = {family.name: family.shared for family in FAMILIES.values()}


class Keys:
    """The names of the keys of one store, or of one shard of it.

    Args:
        prefix: the beginning of all keys; may be empty.
        tag: the hash tag of a shard; "" if there is only one.
    """

    def __init__(self, prefix: str = DEFAULT_PREFIX, tag: str = "") -> None:
        self.prefix = check_prefix(prefix)
        #: The beginning of all keys, except for those that start with BARE_OWN.
        self.head = f"{prefix}{{{tag}}}" if tag else prefix
        self._heads = self._make_heads()
        self.known = self._heads["known"]
        self.gauges = self._heads["gauges"]
        self.hists = self._heads["hists"]
        self.messages = self._heads["messages"]
        self.total = self._heads["total"]
        self.sums = self._heads["sums"]
        self.spreads = self._heads["spreads"]
        self.exceptions = self._heads["exceptions"]
        self.marks = self._heads["marks"]
        self.meta = self._heads["meta"]
        self.cleaned = self._heads["cleaned"]
        self.writers = self._heads["writers"]
        self.reports = self._heads["reports"]
        self.instances = self._heads["instances"]

    def _make_heads(self) -> dict[str, str]:
        """Return the beginning of the keys of each family."""
        head, own = self.head, self.head or BARE_OWN
        return {name: f"{head if shared else own}{name}:" for name, shared in _SHARED.items()}

    def key(self, family: str, rest: str = "") -> str:
        """Return a key of a family, e.g. `redmeter:count:60:hits`.

        Args:
            family: its name, see families.py.
            rest: the text after the family, e.g. the member of an index that lists the key.
                Without it, the beginning of all keys of the family.
        """
        return self._heads[family] + rest

    def keys_of(self, family: Family, rest: str) -> tuple[str, ...]:
        """Return the keys of a family that have a rest: one, or those of hourly_parts()."""
        if family.rest == "NAME":
            return self.stats(rest)
        if family.hourly:
            return _joined(self.hourly_parts(family.name, rest))
        return (self.key(family.name, rest),)

    def hashes(self, kind: str, precision: int, name: str) -> list[str]:
        """Return the keys of a series at a precision."""
        return [
            self.key(family.name, entry(precision, name)) for family in SERIES_KINDS[kind].hashes
        ]

    def count(self, precision: int, name: str) -> str:
        """Return the key of a counter's hash, e.g. `redmeter:count:60:hits`."""
        return self.key("count", f"{precision}:{name}")

    def gauge(self, precision: int, name: str) -> str:
        """Return the key of a gauge's hash, e.g. `redmeter:gauge:60:queue`."""
        return self.key("gauge", f"{precision}:{name}")

    def hist(self, precision: int, name: str) -> str:
        """Return the key of a histogram's buckets, e.g. `redmeter:hist:60:checkout_seconds`."""
        return self.key("hist", f"{precision}:{name}")

    def moments(self, precision: int, name: str) -> str:
        """Return the key of a histogram's moments, e.g. `redmeter:moments:60:checkout_seconds`."""
        return self.key("moments", f"{precision}:{name}")

    def recent(self, logger: str, severity: str) -> str:
        """Return the key of the newest messages, e.g. `redmeter:recent:worker:error`."""
        return self.key("recent", f"{logger}:{severity}")

    def patterns(self, logger: str, severity: str) -> str:
        """Return the key of the first and last times of the patterns of messages."""
        return self.key("patterns", f"{logger}:{severity}")

    def distinct(self, logger: str) -> str:
        """Return the key of a logger's number of patterns by hour, all severities together."""
        return self.key("distinct", logger)

    def common(self, logger: str, severity: str) -> tuple[str, ...]:
        """Return the keys of the frequencies of messages, in the order of hourly_parts()."""
        return _joined(self.hourly_parts("common", f"{logger}:{severity}"))

    def stats(self, name: str, *, as_is: bool = False) -> tuple[str, ...]:
        """Return the keys of the statistics of a series, in the order of hourly_parts().

        A name that ends as one of these keys does gets a mark: `job:last` has `stats:job:last~`,
        because `stats:job:last` belongs to `job`. A name that already ends with marks gets one
        more, so no two names share a key.

        Args:
            as_is: without marks, as the listings do.
        """
        marked = not as_is and _ENDING.search(name)
        return _joined(self.hourly_parts("stats", f"{name}~" if marked else name))

    def hourly_parts(self, family: str, rest: str) -> list[tuple[str, str]]:
        """Return the keys for the current hour and for the last one before it that has data.

        Returns:
            Each key as (head, ending): the current hour's, its date, the earlier hour's, its date.
            Without a prefix two more, in which the listings keep the hour of the day.
        """
        data = f"{self._heads[family]}{rest}"
        dates = data if self.head else f"{BARE_OWN}{data}"
        parts = [(data, ""), (dates, ":start"), (data, ":last"), (dates, ":pstart")]
        return parts if self.head else [*parts, (data, ":start"), (data, ":pstart")]

    def series_of(self, key: str) -> tuple[int, str] | None:
        """Return precision and name of a key; None if it does not belong to a series."""
        family = self._family_of(key)
        if family is None:
            return None
        rest = key[len(self._heads[family.name]) :]
        if family.rest == "PRECISION:NAME":
            return parse_entry(rest)
        if family.rest == "NAME":
            return HOUR, rest[:-1] if rest.endswith("~") and _ENDING.search(rest) else rest
        return (HOUR, rest) if family.hourly else None

    def is_of_histogram(self, key: str) -> bool:
        """Return whether a key holds data of a histogram: buckets, moments or statistics."""
        family = self._family_of(key)
        return family is not None and family.kind == "histogram"

    def _family_of(self, key: str) -> Family | None:
        for name, head in self._heads.items():
            if len(key) > len(head) and key.startswith(head):
                return FAMILIES[name]
        return None

    def owns(self, key: str) -> bool:
        """Return whether a key is one of this store, by its name alone."""
        for start in {self.head, self.head or BARE_OWN}:
            name, colon, rest = key[len(start) :].partition(":")
            family = FAMILIES.get(name) if key.startswith(start) and colon else None
            if family is not None and bool(rest) == bool(family.rest):
                # Without a prefix, the dates of shared keys start with BARE_OWN: hourly_parts().
                return start == BARE_OWN or f"{start}{name}:" == self._heads[name]
        return False

    def in_each(self, key: str) -> list[str]:
        """Return a key that every shard has, as it is in each of them."""
        return [key]

    def batch(self, producer: str) -> str:
        """Return the key of a producer's watermark."""
        return self.key("batch", producer)


def _joined(parts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(head + ending for head, ending in parts)


def entry(precision: int, name: str) -> str:
    """Return an entry of an index (`known:`, `gauges:`, `hists:`), e.g. `60:hits`."""
    return f"{precision}:{name}"


def parse_entry(text: str) -> tuple[int, str] | None:
    """Read an entry of an index, or return None where it is none (`60*60:hits`, `:x`)."""
    precision, colon, name = text.partition(":")
    if (
        not colon
        or not name
        or len(precision) > 10
        or not (precision.isascii() and precision.isdigit())
    ):
        return None
    width = int(precision)
    return (width, name) if 1 <= width <= MAX_PRECISION else None


def span(seconds: int) -> str:
    """Return a width in words: 300 is 5m."""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds % unit == 0:
            return f"{seconds // unit}{name}"
    return f"{seconds}s"


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
