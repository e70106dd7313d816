"""Shared by all kinds: downsamples intervals to each precision, in the form the scripts take.

Events arrive by series and by interval of some width, in seconds: 1, or more if they were
aggregated before. Only precisions that are multiples of the width can be made.

In a flush most series have the same intervals, so these are written once for many hashes: a run is

    PRECISION, SAMPLES, ["START", "START", …], ["VALUE", "VALUE", …]

with the values of the first hash for each start, then those of the second, and so on; the keys of
the hashes are passed separately, one for each interval. A batch has one list of runs for each kind,
as JSON.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from redmeter.lazy_regex import late
from redmeter.stored.keys import HOUR, slice_start

#: The value of an interval.
V = TypeVar("V")

#: Separates the texts of a list, none of which needs escaping.
_BETWEEN = '","'


def multiples(retention: Mapping[int, int], width: int) -> tuple[tuple[int, int], ...]:
    """Return the (precision, samples) pairs that can be made from intervals of a width.

    Args:
        width: seconds; 0: the intervals of the events are unknown.
    """
    if width == 1:
        return tuple(retention.items())
    return tuple([(p, samples) for p, samples in retention.items() if width and p % width == 0])


def by_interval(
    values_at: Mapping[int, V], precision: int, merged: Callable[[Sequence[V]], V]
) -> dict[int, V]:
    """Downsample to the intervals of a precision.

    Args:
        values_at: start, Unix seconds -> value.
        merged: merges several values, in their order, without changing them.
    """
    groups: dict[int, list[V]] = {}
    for at, value in values_at.items():
        start = at // precision * precision
        if start in groups:
            groups[start].append(value)
        else:
            groups[start] = [value]
    return {
        start: merged(values) if len(values) > 1 else values[0] for start, values in groups.items()
    }


def by_precision(
    given: Mapping[int, V],
    width: int,
    precisions: Iterable[tuple[int, int]],
    merged: Callable[[Sequence[V]], V],
) -> Iterator[tuple[int, int, Mapping[int, V]]]:
    """Yield precision, samples and intervals, for each precision.

    Args:
        given: interval start, Unix seconds -> value.
        width: of these intervals, seconds.
        merged: see by_interval().
        precisions: see multiples().
    """
    intervals, last = given, width
    for precision, samples in precisions:
        if precision != last:
            # If it is a multiple of the last precision, there are fewer intervals to merge.
            intervals = by_interval(given if precision % last else intervals, precision, merged)
            last = precision
        yield precision, samples, intervals


def stems(before: str, precisions: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return the keys of hashes up to the name, one for each precision.

    Args:
        before: the key up to `PRECISION:NAME`.
        precisions: see multiples().
    """
    return tuple([f"{before}{width}:" for width, _ in precisions])


def heads(precisions: Iterable[tuple[int, int]], at: int) -> tuple[str, ...]:
    """Return runs of one interval up to the value, one for each precision, all at one second.

    Args:
        precisions: see multiples().
        at: Unix seconds.
    """
    return tuple([_head(width, samples, str(at - at % width)) for width, samples in precisions])


def _head(precision: int, samples: int, starts: str) -> str:
    return f'{precision},{samples},["{starts}"],["'


def single(heads: Sequence[str], value: object) -> str:
    """Return the runs of one event of one series, from the heads, which must not be empty."""
    end = f'{value}"]'
    return f"[{f'{end},'.join(heads)}{end}]"


class Runs:
    """Collects intervals of many hashes, and writes them as runs."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        # Text up to the values -> keys and values.
        self._runs: dict[str, tuple[list[str], list[str]]] = {}

    def add_one(self, head: str, key: str, value: str) -> None:
        """Add one interval of a hash; heads() returns the text up to its value."""
        run = self._runs.get(head)
        if run is None:
            self._runs[head] = ([key], [value])
        else:
            run[0].append(key)
            run[1].append(value)

    def add(
        self,
        precision: int,
        samples: int,
        key: str,
        starts: Sequence[int],
        values: Sequence[str | int],
    ) -> None:
        """Add intervals of a hash, with their values in the order of `starts`."""
        if not starts:
            return
        head = _head(precision, samples, _BETWEEN.join(map(str, starts)))
        keys, texts = self._runs.setdefault(head, ([], []))
        keys += [key] * len(starts)
        texts += map(str, values)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def keys(self) -> list[str]:
        """Return the keys, one for each interval, in the order of text()."""
        return [key for keys, _ in self._runs.values() for key in keys]

    def text(self) -> str:
        """Return the runs."""
        runs = [f'{head}{_BETWEEN.join(values)}"]' for head, (_, values) in self._runs.items()]
        return f"[{','.join(runs)}]"


def parse_runs(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Read runs: yield precision, samples, start and value of each interval."""
    for precision, samples, starts, values in zip(*[iter(json.loads(text))] * 4, strict=True):
        for at, value in enumerate(values):
            yield precision, samples, starts[at % len(starts)], value


def events_at_stake(text: str, events: Callable[[str], int]) -> list[tuple[str, int]]:
    """Return the start and the events of each key of an operation: see Operation.at_stake.

    Args:
        text: the runs.
        events: returns the number of events that a value stands for.
    """
    return [("", 0), *((start, events(value)) for _, _, start, value in parse_runs(text))]


# --- Hours ---------------------------------------------------------------------------------------

# Parses the hour in `:start` or `:pstart`, as Redmeter and other programs write it.
#
#     1700000000          integer Unix seconds, Redmeter's form: the hour that contains them
#     14                  an hour of the day, UTC: its latest occurrence
#     2019-06-23T06:00    ISO text, UTC, with any text after the hour
#
# Without a prefix both kinds are stored: the listings compare hours of the day, so
# `common:…:start` holds one of these, and a key of ours holds the Unix second that gives it a
# date.
#
# store/lua/operations/hourly.lua has the same rules for writing.


#: An hour in the future, which the server replaces with the current one.
THIS_HOUR = 2**40

# Without backtracking, since texts of other programs may be long.
_NUMBER = late(r"\s*+[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?\s*+\Z", re.ASCII)
_ISO = late(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d)", re.ASCII)

_DAY = 86400
#: How far the clock of a program that writes an hour of the day may be ahead of ours, seconds.
_AHEAD = 60


def hour_of(text: bytes | str | None, now: float) -> int | None:
    """Return the start of the hour in a text, Unix seconds.

    Args:
        text: as stored.
        now: Unix seconds; an hour of the day is its latest occurrence up to a minute after that.

    Returns:
        None if the text has none of the forms.
    """
    if text is None:
        return None
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    if _NUMBER.match(text):
        number = float(text)
        if not math.isfinite(number):
            return None
        if not 0 <= number < 24:
            return slice_start(number, HOUR)
        now += _AHEAD
        hour = slice_start(now, _DAY) + int(number) * HOUR
        return hour - _DAY if hour > slice_start(now, HOUR) else hour
    parts = _ISO.match(text)
    if parts is None:
        return None
    year, month, day, hour = map(int, parts.groups())
    return _days(year, month, day) * _DAY + hour * HOUR


def hours_of(texts: Sequence[bytes | str | None], now: float) -> tuple[int | None, int | None]:
    """Return the hour that is being counted and the one before it, Unix seconds of their starts.

    Args:
        texts: `:start` and `:pstart`; without a prefix followed by those of the listings, which
            decide where they name another hour of the day than ours: then another program has
            moved the hours on since we wrote.
        now: Unix seconds.
    """
    (start, before), others = (hour_of(text, now) for text in texts[:2]), texts[2:]
    if not others:
        return start, before
    other_start, other_before = (hour_of(text, now) for text in others)
    if other_start is None or _same_of_day(other_start, start):
        return start, before
    if other_before is not None and _same_of_day(other_before, start):
        other_before = start
    return other_start, other_before


def _same_of_day(hour: int, other: int | None) -> bool:
    return other is not None and hour % _DAY == other % _DAY


def _days(year: int, month: int, day: int) -> int:
    """Count the days from 1970 to a date of the Gregorian calendar, which need not exist."""
    if month <= 2:
        year, month = year - 1, month + 12
    leaps = year // 4 - year // 100 + year // 400
    return 365 * year + leaps + (153 * (month - 3) + 2) // 5 + day - 719469
