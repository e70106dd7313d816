"""The kind of a name: why a query found nothing, though the name is recorded.

A counter, a gauge and a histogram may share a name, so a query reads its own kind only. If that has
nothing at all, one more round trip finds out whether another kind has the name, and that is an
error which names the right call. A name without any series is just not recorded yet.
"""

from collections.abc import Collection, Sequence
from typing import Final

from redmeter.errors import WrongKind
from redmeter.reading.foreign_keys import there
from redmeter.reading.selection import LabelSets, base_of
from redmeter.store import View, indexes
from redmeter.store.query import Query, Read
from redmeter.stored.families import SERIES_INDEXES
from redmeter.stored.keys import Keys, entry
from redmeter.types import Selection

#: Kind -> the call that reads it.
_CALLS: Final = {
    "counter": "use series() or total()",
    "gauge": "use gauge_series()",
    "histogram": "use summary()",
}


def check_kind(
    keys: Keys, view: View, selection: Selection, expected: Collection[str]
) -> Query[None]:
    """Read which kinds a name has, in one round trip, after a query found nothing.

    Args:
        expected: the kinds that the query reads: `counter`, `gauge`, `histogram`.

    Raises:
        WrongKind: it has others only.
        StoreError: the server is unreachable or refuses.
    """
    name, reads, kinds = selection.name, list[Read](), list[str]()
    for index in SERIES_INDEXES:
        key = keys.key(index.name)
        for width in view.retention_of(index.kind):
            alone = f"[{entry(width, name)}"
            reads.append(indexes.size_between(keys, key, alone, alone))
            if not selection.exact:
                reads.append(LabelSets(keys, key, width, name).size())
            kinds += [index.kind] * (len(reads) - len(kinds))
    reads.append(indexes.totals(keys, [name]))  # of a counter whose samples expired
    _, (*sizes, totals) = yield reads
    numbers = zip(kinds, (there(size, 0) for size in sizes), strict=True)
    stored = {kind for kind, number in numbers if number}
    if there(totals, [None]) != [None]:
        stored.add("counter")
    check_found(selection, expected, stored)


def check_found(selection: Selection, expected: Collection[str], found: Collection[str]) -> None:
    """Check the kinds of a name that was not found.

    Args:
        expected: the kinds that the query reads.
        found: the kinds that the name has.

    Raises:
        WrongKind: it has others only.
    """
    others: Sequence[str] = [kind for kind in _CALLS if kind in found]
    if others and not set(others) & set(expected):
        raise WrongKind(base_of(selection.name), others[0], _CALLS[others[0]])
