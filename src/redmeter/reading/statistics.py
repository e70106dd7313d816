"""Statistics by the hour: of this hour, and of the last one before it that had something.

They are kept in addition to the histograms, in the layout of "Redis in Action", and include the
values of other programs: see stored/histogram.py.
"""

from redmeter.reading.selection import check_asked
from redmeter.results.summaries import HourlyStats, Statistics
from redmeter.store import Store
from redmeter.store.query import run_query
from redmeter.store.servers.replies import Reply, raised, scored
from redmeter.stored.histogram import statistics_moments
from redmeter.stored.intervals import hours_of
from redmeter.stored.keys import HOUR, slice_start
from redmeter.types import Selection


def read_statistics(store: Store, name: str) -> Statistics:
    """Read the statistics of this hour and of the one before, in one round trip.

    A second one follows if there are none: see check_asked().

    Args:
        name: in its stored spelling.

    Raises:
        WrongKind: the name is one of another kind.
        UnknownLabel: no series of the name has one of its labels.
        StoreError: the server cannot be reached or refuses.
    """
    key, start, last, *others = store.keys.stats(name)
    view, (newest_reply, older_reply, *texts) = store.read(
        [
            *(("ZRANGE", each, "0", "-1", "WITHSCORES") for each in (key, last)),
            *(("GET", each) for each in (start, *others)),
        ]
    )
    this = slice_start(view.now, HOUR)
    begun, earlier = hours_of([raised(text) for text in texts], view.now)
    # Without a stored hour, the next writer takes it for this one.
    newest = _hour(newest_reply, this if begun is None else begun)
    before = _hour(older_reply, earlier)
    if newest is None and before is None:
        selection = Selection(name, exact=True)
        run_query(store, lambda _: check_asked(store.keys, view, selection, ("histogram",), ()))
    if newest is None or newest.start >= this:
        return Statistics(name, newest, before)
    # Nobody has recorded since that hour ended: it is the one before.
    return Statistics(name, None, newest)


def _hour(reply: Reply, start: int | None) -> HourlyStats | None:
    members = {name.decode(errors="replace"): n for name, n in scored(raised(reply))}
    moments = statistics_moments(members)
    if start is None or not moments.count:
        return None
    return HourlyStats(
        start,
        moments.count,
        moments.low,
        moments.high,
        moments.exact_total,
        moments.exact_mean,
        moments.exact_stddev,
    )
