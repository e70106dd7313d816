"""Statistics by the hour: of this hour, and of the last one before it that had something.

They are kept beside the histograms in the layout of "Redis in Action", what other programs have
written too: see kinds/statistics.py.
"""

import math
import re
from calendar import timegm

from redmeter.keys import HOUR, slice_start
from redmeter.kinds.statistics import merged
from redmeter.model import Hour, Statistics
from redmeter.store import Store
from redmeter.store.link import Reply, pairs, raised

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d)")


def read_statistics(store: Store, name: str) -> Statistics:
    """Read the statistics of this hour and of the one before, in one round trip.

    Args:
        name: in its stored spelling.

    Raises:
        StoreError: the server cannot be reached or refuses.
    """
    key, start_key, last_key, pstart_key = store.keys.stats(name)
    view, (now, start, last, pstart) = store.read(
        [
            ("ZRANGE", key, 0, -1, "WITHSCORES"),
            ("GET", start_key),
            ("ZRANGE", last_key, 0, -1, "WITHSCORES"),
            ("GET", pstart_key),
        ]
    )
    this = slice_start(view.now, HOUR)
    begun = hour_of(raised(start), view.now)
    newest, before = _hour(now, begun), _hour(last, hour_of(raised(pstart), view.now))
    if newest is None or newest.start >= this:
        return Statistics(name, newest, before)
    # Nobody has recorded since that hour ended: it is the one before.
    return Statistics(name, None, newest)


def hour_of(text: bytes | None, now: float) -> int | None:
    """Return which hour a text means, Unix seconds; None where it is none.

    Other programs write an hour of the day (0 to 23), which is taken for the latest one that has
    come, or an ISO text. The script that rotates reads the same: store/lua/operations/hourly.lua.
    """
    if text is None:
        return None
    written = text.decode(errors="replace")
    found = _ISO.match(written)
    if found:
        year, month, day, hour = map(int, found.groups())
        try:
            return timegm((year, month, day, hour, 0, 0))
        except ValueError:
            return None
    try:
        number = float(written)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if not 0 <= number < 24:
        return slice_start(number, HOUR)
    at = slice_start(now, 86400) + int(number) * HOUR
    return at - 86400 if at > slice_start(now, HOUR) else at


def _hour(reply: Reply, start: int | None) -> Hour | None:
    members = {name.decode(errors="replace"): float(n) for name, n in pairs(raised(reply))}
    found = merged(members)
    if start is None or not found.count:
        return None
    total = members.get("sum", found.total)
    ends = found.low, found.high
    return Hour(start, found.count, *ends, total, found.mean, found.stddev())
