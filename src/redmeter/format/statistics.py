"""Statistics: what observed values sum up to, in this hour and in the last one that had some.

A sorted set holds min, max, count, sum and sumsq, as the listings of "Redis in Action" keep them,
and n, mean and m2 of what was written here. From sum and sumsq the spread cannot be told where
values are large and close together (see moments.py), so they serve only for what others wrote.
"""

import math
from collections.abc import Mapping

from redmeter.format.moments import Moments, held
from redmeter.keys import Keys
from redmeter.types import Operation, Operations

#: How long an hour's statistics are kept after it began, seconds.
LIFE = 7 * 86400

#: The members of a sorted set.
MEMBERS = ("min", "max", "count", "sum", "sumsq", "n", "mean", "m2")


def operations(
    keys: Keys,
    moments: Mapping[str, Mapping[int, Moments]],
    *,
    tell: bool = False,
    as_is: bool = False,
) -> Operations:
    """Turn moments into the operation of one batch.

    Args:
        keys: the store's.
        moments: name -> {start of an hour, Unix seconds -> moments}; none of them is empty.
        tell: whether the outcome shall have count, sum and sumsq as they are afterwards, as its
            answer to the first of each four keys.
        as_is: whether the names are the listings', whose keys have no marks.
    """
    found: list[str] = []
    args = [str(LIFE), str(int(tell)), str(len(keys.stats("")))]
    lost: list[tuple[str, int]] = []
    for name, hours in moments.items():
        hourly = keys.stats(name, as_is=as_is)
        for hour, m in sorted(hours.items()):  # the oldest first: a later one moves it on
            found += hourly
            args += (str(hour), str(m.count))
            args += map(_exact, (m.low, m.high, m.total, m.sumsq, m.mean, m.m2))
            lost += [(str(hour), m.count), *[("", 0)] * (len(hourly) - 1)]
    if not found:
        return ()
    return (Operation("stat", tuple(found), tuple(args), lambda: lost),)


def _exact(number: float) -> str:
    return f"{number:.17g}"


def merged(members: Mapping[str, float]) -> Moments:
    """Return what the members of a sorted set say together; empty where they say nothing.

    What others wrote is the difference between count, sum and sumsq and what n, mean and m2 say.
    Where all digits of its spread are lost, it has none.
    """
    low, high, count, total, sumsq, n, mean, m2 = (held(members.get(name, 0.0)) for name in MEMBERS)
    found = Moments()
    if n >= 1 and "mean" in members and "m2" in members:
        found.add(int(n), low, high, held(mean * n), max(0.0, m2))
    others = int(count) - found.count
    if others > 0:
        rest = total - found.total
        spread = sumsq - m2 - found.total * mean - rest * (rest / others)
        found.add(others, low, high, rest, max(0.0, spread) if math.isfinite(spread) else 0.0)
    if found.count:
        found.total = total  # and not what the mean says of it
    return found
