"""Statistics: a histogram's aggregates of the current hour, and of the last one that had values.

A sorted set holds min, max, count, sum and sumsq, as in the listings of "Redis in Action", and n,
mean and m2 of the values that Redmeter wrote. The spread of large values that are close together
cannot be computed from sum and sumsq (see moments.py), so these serve only for values that other
programs wrote.
"""

import math
from collections.abc import Mapping

from redmeter.stored.keys import Keys
from redmeter.stored.moments import Moments, held
from redmeter.types import Operation, Operations

#: How long an hour's statistics are kept after it began, seconds.
LIFE = 7 * 86400

#: The members of a sorted set.
MEMBERS = ("min", "max", "count", "sum", "sumsq", "n", "mean", "m2")


def operations(
    keys: Keys,
    moments: Mapping[str, Mapping[int, Moments]],
    *,
    return_totals: bool = False,
    as_is: bool = False,
) -> Operations:
    """Turn moments into the operation of one batch.

    Args:
        keys: the store's.
        moments: name -> {start of an hour, Unix seconds -> moments}; none of them is empty.
        return_totals: whether the outcome has the new count, sum and sumsq, as the reply for the
            first of each four keys.
        as_is: whether to use the listings' keys, which have no `~` after the name.
    """
    sorted_sets: list[str] = []
    args = [str(LIFE), str(int(return_totals)), str(len(keys.stats("")))]
    lost: list[tuple[str, int]] = []
    for name, hours in moments.items():
        hourly = keys.stats(name, as_is=as_is)
        for hour, m in sorted(hours.items()):  # oldest first, since a later hour replaces it
            sorted_sets += hourly
            args += (name, str(hour), str(m.count))
            args += map(_exact, (m.low, m.high, m.total, m.sumsq, m.mean, m.m2))
            lost += [(str(hour), m.count), *[("", 0)] * (len(hourly) - 1)]
    if not sorted_sets:
        return ()
    return (Operation("stat", tuple(sorted_sets), tuple(args), lambda: lost),)


def _exact(number: float) -> str:
    return f"{number:.17g}"


def merged(members: Mapping[str, float]) -> Moments:
    """Return the moments of a sorted set's members; empty if there are none.

    The values of other programs are the difference between count, sum and sumsq, and n, mean and
    m2. If rounding lost all digits of their spread, it is 0.
    """
    low, high, count, total, sumsq, n, mean, m2 = (held(members.get(name, 0.0)) for name in MEMBERS)
    moments = Moments()
    if n >= 1 and "mean" in members and "m2" in members:
        moments.add(int(n), low, high, held(mean * n), max(0.0, m2))
    others = int(count) - moments.count
    if others > 0:
        rest = total - moments.total
        spread = sumsq - m2 - moments.total * mean - rest * (rest / others)
        moments.add(others, low, high, rest, max(0.0, spread) if math.isfinite(spread) else 0.0)
    if moments.count:
        moments.total = total  # exact, unlike the product of mean and count
    return moments
