"""Selections: the stored series that a name means, with what their keys hold.

A name means all its label sets. `labels` filters them, `by` splits them into groups, and an exact
selection is the one series that is stored under a name.

One round trip reads the series without labels, joins the first JOINED label sets, and lists the
others; a second one reads those, if there are any. The series without labels is always read, also
if the index has no entry for it; with a filter, so is the series that has just these labels. An
exact selection does not use the index.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from redmeter.errors import LimitExceeded, StoreRefused
from redmeter.names import canonical
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined
from redmeter.reading.label_sets import LabelSets, base_of, has_labels, label_of
from redmeter.store import View
from redmeter.store.query import Query
from redmeter.store.replies import Command, Reply, translate
from redmeter.stored.families import INDEX_OF, listed_by
from redmeter.stored.keys import Keys, entry
from redmeter.types import Selector

T = TypeVar("T")

#: Label sets that are read with the first round trip.
JOINED = 50
#: Label sets that one query reads: of counters and gauges, and of histograms.
MAX_SERIES, MAX_HISTOGRAMS = 2_000, 500

_NARROW = "filter them with labels=, or rank them with top()"

#: The values of the labels of a group, in the order of `by`.
GroupKey = tuple[str | None, ...]


def read_selected(
    keys: Keys, kind: str, selector: Selector, precision: int
) -> Query[tuple[View, dict[str, Sequence[Reply]]]]:
    """Read the hashes of the series that a selector means.

    Args:
        kind: `counters`, `gauges` or `histograms`.
        precision: interval width, seconds.

    Returns:
        The view, and the replies of each series by its stored name; also errors, if another program
        keeps something else under its keys: see readable().

    Raises:
        UnknownPrecision: it is not kept; the error lists those that are.
        LimitExceeded: too many label sets.
        StoreError: the server is unreachable or refuses.
    """
    # Whether the precision is kept is known with the reply; until then it must only be a number.
    width = precision if isinstance(precision, int) else 0
    index = INDEX_OF[kind]
    families = [family.name for family in listed_by(index)]
    limit = MAX_HISTOGRAMS if kind == "histogram" else MAX_SERIES

    def key(family: str, name: str) -> str:
        return keys.key(family, entry(width, name))

    def commands(names: Sequence[str]) -> list[Command]:
        return [("HGETALL", key(family, name)) for name in names for family in families]

    whole = selector.name
    if not selector.exact and selector.labels:
        whole = canonical(selector.name, selector.labels)
    if selector.exact:
        view, replies = yield commands([whole])
        view.retention_of(kind).check(precision)
        return view, {whole: replies}

    label_sets = LabelSets(keys, keys.key(index.name), width, selector.name)
    asks = [Ask("HGETALL", keys.key(family) + entry(width, "")) for family in families]
    view, replies = yield [
        *commands([whole]),
        label_sets.join(asks, JOINED),
        label_sets.size(),
        label_sets.first_names(limit, selector.labels),
    ]
    view.retention_of(kind).check(precision)
    each = len(families)
    direct, (joined, size, listed) = replies[:each], replies[each:]
    replies_of: dict[str, Sequence[Reply]] = {
        name: [
            _with_key(reply, key(family, name)) for reply, family in zip(own, families, strict=True)
        ]
        for name, own in Joined(joined, each, needed=False).by_name()
        if selects(selector, name)
    }
    replies_of[whole] = direct
    if there(size, 0) > JOINED:
        if not selector.labels:
            check_label_sets(size, limit)
        names = yield from label_sets.names(limit, selector.labels, listed)
        rest = [name for name in names if name not in replies_of]
        if rest:
            _, replies = yield commands(rest)
            for at, name in enumerate(rest):
                replies_of[name] = replies[at * each : (at + 1) * each]
    return view, replies_of


def _with_key(reply: Reply, key: str) -> Reply:
    """Return a reply within a join; if it is an error, with the key that it is about."""
    if not isinstance(reply, Exception):
        return reply
    error = translate(reply, "")
    return StoreRefused(error.code, str(error), key) if isinstance(error, StoreRefused) else error


def check_label_sets(number: int, limit: int) -> None:
    """Check how many label sets a query would read.

    Raises:
        LimitExceeded: over the limit.
    """
    if number > limit:
        raise LimitExceeded("label sets", number, limit, _NARROW)


def selects(selector: Selector, name: str) -> bool:
    """Return whether a selector means the series of a stored name."""
    if selector.exact:
        return name == selector.name
    if name == selector.name:
        return not selector.labels
    return base_of(name) == selector.name and has_labels(name, selector.labels)


def group_of(selector: Selector, name: str) -> GroupKey:
    """Return the group of a selector that the series of a stored name belongs to."""
    return tuple(label_of(name, label) for label in selector.by)


def split(selector: Selector, found: Mapping[str, T]) -> dict[GroupKey, dict[str, T]]:
    """Split series by the values of the selector's `by` labels."""
    groups: dict[GroupKey, dict[str, T]] = {}
    for name, one in found.items():
        groups.setdefault(group_of(selector, name), {})[name] = one
    return groups


def name_of(selector: Selector) -> str:
    """Return the name of a result: that of the selector, with the labels it filters by."""
    return canonical(selector.name, selector.labels) if selector.labels else selector.name
