"""The stored format: the names of keys, time slices, retention.

Everything that other programs may rely on is decided here and told in docs/stored-format.md.

    PREFIX known:                    sorted set, every counter hash as PRECISION:NAME, score 0
    PREFIX count:PRECISION:NAME      hash, slice start -> count
    PREFIX recent:LOGGER:SEVERITY    list, the newest messages
    PREFIX common:LOGGER:SEVERITY    sorted set, pattern -> how often in this hour
    PREFIX stats:NAME                sorted set, min, max, count, sum … of this hour
           …:start …:last …:pstart   of the last two: the hour, the hour before, and which that is
    OWN    messages:                 sorted set, LOGGER:SEVERITY, score: when the last one was
    OWN    patterns:LOGGER:SEVERITY  hash, pattern -> first and last time, a sample
    OWN    distinct:LOGGER           hash, hour -> how many patterns, of all severities
    OWN    steps:LOGGER:SEVERITY     hash, pattern -> counts of the last 25 steps of 5 minutes
    OWN    gauges:                   sorted set, every gauge hash as PRECISION:NAME, score 0
    OWN    gauge:PRECISION:NAME      hash, slice start -> last value and its time
    OWN    hists:                    sorted set, every histogram hash as PRECISION:NAME, score 0
    OWN    hist:PRECISION:NAME       hash, slice start -> lowest, highest, buckets
    OWN    moments:PRECISION:NAME    hash, slice start -> count, sum, sum of squared deviations
    OWN    marks:                    sorted set, deploys and the like, score: when
    OWN    total:                    hash, NAME -> everything counted
    OWN    batch:PRODUCER            string, highest batch number applied
    OWN    cleaned:                  hash, PREFIX -> when a cleaner's last pass ended
    OWN    meta:                     hash, what the store is: format, retention
    OWN    writers:                  sorted set, PRODUCER, score: when it last told of itself
    OWN    reports:                  hash, PRODUCER -> what it told, JSON
    OWN    instances:                hash, PRODUCER -> which of the processes it is: 0, 1, 2 …

PREFIX is `redmeter:`, or empty for the layout of the listings in "Redis in Action"; OWN is PREFIX,
and `redmeter:bare:` where PREFIX is empty: nothing of ours lies bare in a user's database, and two
stores on one database share neither totals nor retention. On a cluster a hash tag follows PREFIX,
which says in which shard a key lies: see shards.py.

Pure: no I/O, no clock.
"""

import math
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from typing import NamedTuple

from redmeter.errors import InvalidSetting, InvalidValue, UnknownPrecision, shown
from redmeter.expressions import late

#: Version of the stored format that this code reads and writes.
FORMAT = "1"

DEFAULT_PREFIX = "redmeter:"
#: What stands before our further keys where the prefix is empty.
BARE_OWN = "redmeter:bare:"

#: Most entries of `recent:`; whoever writes may keep fewer.
MAX_RECENT = 1_000

#: Longest prefix, bytes.
MAX_PREFIX = 64

#: Precision (seconds) -> number of newest samples that a new store keeps, unless the user chooses
#: otherwise. Hours reach back 10 days, so that each hour has the same hour of last week.
DEFAULT_RETENTION = {1: 120, 5: 120, 60: 120, 300: 120, 3600: 240, 18000: 120, 86400: 120}

#: What has a retention of its own.
HISTOGRAMS = "histograms"
#: The same of histograms.
DEFAULT_HISTOGRAMS = {5: 24, 60: 120, 3600: 240}
#: Those of a store that does not name any: it is older than the default.
UNNAMED_HISTOGRAMS = {5: 24, 60: 120, 3600: 120}

#: Most samples a precision may keep. A hash holds that many past slices and, when clocks run
#: ahead, as many future ones and two more: within the 512 fields up to which Redis stores a hash
#: compactly (hash-max-listpack-entries), at a tenth of the memory.
MAX_SAMPLES = 254

#: Widest slice: 366 days, in seconds.
MAX_PRECISION = 366 * 86400

MAX_PRECISIONS = 16

#: Width of what is rotated by the hour, seconds.
HOUR = 3600

#: Width of the steps by which sliding hours move on, seconds.
STEP = 300

#: Endings of the keys of hourly_parts(), and the marks of names that end so.
_ENDING = late(r":(?:start|last|pstart)~*\Z")

#: Times are accepted up to this many seconds on either side of 1970 (34,865 years).
MAX_TIME = 2**40


def slice_start(time: float, precision: int) -> int:
    """Return the start of the slice that holds a time: floor(time / precision) * precision.

    Floor also before 1970: second -1 lies in the minute that starts at -60. Whole seconds are
    divided as integers, so no rounding moves an event over an edge.

    Args:
        time: Unix seconds.
        precision: slice width, seconds.
    """
    return math.floor(time) // precision * precision


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
        of: what it is the retention of, where that is said: "histograms".

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
        """Return the start of the oldest slice that still counts at a time."""
        return slice_start(now, precision) - (self._samples[precision] - 1) * precision


class Kept(NamedTuple):
    """What is kept: precision (seconds) -> number of newest samples."""

    #: Of counters and gauges.
    series: Mapping[int, int]
    histograms: Mapping[int, int]


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


class Keys:
    """The names of the keys of one store, or of one shard of it.

    Args:
        prefix: what stands before `count:` and `known:`; may be empty.
        tag: the hash tag of a shard; "" where there is one shard.
    """

    def __init__(self, prefix: str = DEFAULT_PREFIX, tag: str = "") -> None:
        self.prefix = check_prefix(prefix)
        #: What all keys begin with.
        self.head = head = f"{prefix}{{{tag}}}" if tag else prefix
        own = head or BARE_OWN
        self.known = f"{head}known:"
        self.meta = f"{own}meta:"
        self.total = f"{own}total:"
        self.cleaned = f"{own}cleaned:"
        self.writers = f"{own}writers:"
        self.reports = f"{own}reports:"
        self.instances = f"{own}instances:"
        self.gauges = f"{own}gauges:"
        self.messages = f"{own}messages:"
        self.hists = f"{own}hists:"
        self.marks = f"{own}marks:"
        self._batch = f"{own}batch:"
        self._count = f"{head}count:"
        self._gauge = f"{own}gauge:"
        self._hist = f"{own}hist:"
        self._moments = f"{own}moments:"
        self._patterns = f"{own}patterns:"
        self._distinct = f"{own}distinct:"
        self._steps = f"{own}steps:"
        #: How many bytes of a counter's key stand before its entry in `known:`.
        self.count_bytes = len(self._count.encode())
        #: How many bytes of a gauge's key stand before its entry in `gauges:`.
        self.gauge_bytes = len(self._gauge.encode())
        #: How many bytes of a histogram's key stand before its entry in `hists:`.
        self.hist_bytes = len(self._hist.encode())

    def count(self, precision: int, name: str) -> str:
        """Return the key of a counter's hash, e.g. `redmeter:count:60:hits`."""
        return f"{self._count}{precision}:{name}"

    def count_of(self, entry: str) -> str:
        """Return the key of the hash that an entry of `known:` stands for."""
        return self._count + entry

    def gauge(self, precision: int, name: str) -> str:
        """Return the key of a gauge's hash, e.g. `redmeter:gauge:60:queue`."""
        return f"{self._gauge}{precision}:{name}"

    def gauge_of(self, entry: str) -> str:
        """Return the key of the hash that an entry of `gauges:` stands for."""
        return self._gauge + entry

    def hist(self, precision: int, name: str) -> str:
        """Return the key of a histogram's buckets, e.g. `redmeter:hist:60:checkout_seconds`."""
        return f"{self._hist}{precision}:{name}"

    def hist_of(self, entry: str) -> str:
        """Return the key of the buckets that an entry of `hists:` stands for."""
        return self._hist + entry

    def moments(self, precision: int, name: str) -> str:
        """Return the key of a histogram's moments, e.g. `redmeter:moments:60:checkout_seconds`."""
        return f"{self._moments}{precision}:{name}"

    def moments_of(self, entry: str) -> str:
        """Return the key of the moments that an entry of `hists:` stands for."""
        return self._moments + entry

    def recent(self, logger: str, severity: str) -> str:
        """Return the key of the newest messages, e.g. `redmeter:recent:worker:error`."""
        return f"{self.head}recent:{logger}:{severity}"

    def common(self, logger: str, severity: str) -> tuple[str, ...]:
        """Return the keys of the frequencies of messages, in the order of hourly_parts()."""
        return tuple(head + tail for head, tail in self.common_parts(f"{logger}:{severity}"))

    def common_parts(self, entry: str) -> list[tuple[str, str]]:
        """Return hourly_parts() of an entry of `messages:`; of "", what surrounds any entry."""
        return self.hourly_parts(f"common:{entry}")

    def hourly_parts(self, key: str) -> list[tuple[str, str]]:
        """Return the keys of what is kept for this hour and for the last one that had something.

        Args:
            key: without the prefix.

        Returns:
            Each key as (head, ending): this hour's, which hour that is, the hour's before, which
            that is. Without a prefix two more, in which the listings keep the hour of the day.
        """
        data = f"{self.head}{key}"
        hours = data if self.head else f"{BARE_OWN}{key}"
        parts = [(data, ""), (hours, ":start"), (data, ":last"), (hours, ":pstart")]
        return parts if self.head else [*parts, (data, ":start"), (data, ":pstart")]

    def stats(self, name: str) -> tuple[str, ...]:
        """Return the keys of the statistics of a series, in the order of hourly_parts().

        A name that ends as one of these keys does gets a mark: `job:last` has `stats:job:last~`, as
        `stats:job:last` is of `job`. One that ends with marks gets one more, so no two names meet.
        """
        return self.stats_as_is(f"{name}~" if _ENDING.search(name) else name)

    def stats_as_is(self, name: str) -> tuple[str, ...]:
        """Return the keys of the statistics of a name that the listings chose."""
        return tuple(head + tail for head, tail in self.hourly_parts(f"stats:{name}"))

    def patterns(self, logger: str, severity: str) -> str:
        """Return the key of what is known of the patterns of messages."""
        return f"{self._patterns}{logger}:{severity}"

    def distinct(self, logger: str) -> str:
        """Return the key of how many patterns a logger has by the hour, of all severities."""
        return f"{self._distinct}{logger}"

    def steps_of(self, entry: str) -> str:
        """Return the key of the counts by five minutes that an entry of `messages:` has."""
        return f"{self._steps}{entry}"

    def series_of(self, key: str) -> tuple[int, str] | None:
        """Return precision and name of a key; None where it is none of a series."""
        for family in (self._count, self._gauge, self._hist, self._moments):
            if key.startswith(family):
                return parse_entry(key[len(family) :])
        stats, common = f"{self.head}stats:", f"{self.head}common:"
        if key.startswith(stats):
            name = key[len(stats) :]
            return HOUR, name[:-1] if name.endswith("~") and _ENDING.search(name) else name
        if key.startswith(common):
            return HOUR, key[len(common) :]
        return None

    def is_observed(self, key: str) -> bool:
        """Tell whether a key holds observed values: in buckets, in moments or as statistics."""
        return key.startswith((self._hist, self._moments, f"{self.head}stats:"))

    def in_each(self, key: str) -> list[str]:
        """Return one that all shards have, as it is in each of them."""
        return [key]

    def batch(self, producer: str) -> str:
        """Return the key of a producer's watermark."""
        return self._batch + producer


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
    """Return a width in words: 300 is 5min."""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds % unit == 0:
            return f"{seconds // unit}{name}"
    return f"{seconds}s"


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
