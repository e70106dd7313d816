"""The busiest counters of a store without requests, for status().

Two round trips: the newest intervals of up to _MAX_SERIES series, in the order of their names, and
the label sets of the _MAX_COUNTERS busiest names. A name with more than _MAX_LABEL_SETS is left
out, since part of its events is no traffic.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from redmeter.analysis.comparing.incidents import BLOCK
from redmeter.analysis.comparing.significance import sum_counts
from redmeter.reading.join import Ask, Joined, entry_name, of_counts
from redmeter.reading.ranking import MatchingSeries, highest, sums_of
from redmeter.reading.samples import counts_of
from redmeter.reading.selection import LabelSets, base_of
from redmeter.reading.windows import Coverage
from redmeter.store.query import Query, in_parts
from redmeter.stored.keys import Keys

#: Counters that are judged, series that are ranked, and label sets of a counter.
_MAX_COUNTERS: Final = 3
_MAX_SERIES: Final = 1_000
_MAX_LABEL_SETS: Final = 500
#: Five-minute intervals by which counters are ranked: an hour.
RANKED: Final = 12


def busiest_counters(
    keys: Keys, widths: Sequence[int]
) -> Query[dict[str, dict[int, dict[int, int]]]]:
    """Read the busiest counters of the last hour, the busiest first: their counts by precision.

    Args:
        widths: the precisions.
    """
    ask = of_counts(keys.key("count"), Coverage(BLOCK, RANKED, (BLOCK,)))
    _, (page,) = yield [MatchingSeries(keys, "counter", BLOCK, "*").join([ask], _MAX_SERIES)]
    sums = Counter[str]()
    for member, (reply,) in Joined(page, 1, needed=False).readable():
        sums[base_of(entry_name(member))] += sums_of("counter", reply).count
    names = busiest_names(sums)
    asks = [Ask("HGETALL", f"{keys.key('count')}{width}:") for width in widths]
    reads = []
    for name in names:
        label_sets = LabelSets(keys, keys.known, BLOCK, name)
        reads.append([label_sets.join_base(asks), label_sets.join(asks, _MAX_LABEL_SETS + 1)])
    by_name: dict[str, dict[int, dict[int, int]]] = {}
    for name, replies in zip(names, (yield from in_parts(reads)), strict=True):
        joins = (Joined(reply, len(widths), needed=False) for reply in replies)
        parts = [values for joined in joins for _, values in joined.readable()]
        if len(parts) <= _MAX_LABEL_SETS:
            by_name[name] = {
                width: sum_counts(counts_of(part[at]) for part in parts)
                for at, width in enumerate(widths)
            }
    return by_name


def busiest_names(sums: Mapping[str, int]) -> list[str]:
    """Return the names with the most events."""
    names = (name for name in sums if sums[name] > 0)
    return highest(names, sums.__getitem__, limit=_MAX_COUNTERS)
