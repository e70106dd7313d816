"""Selections: the stored series that a name means, with what their keys hold.

A name means all its label sets. `labels` filters them, `by` splits them into groups, and an exact
selection is the one series that is stored under a name.

One round trip reads the series without labels, joins the first JOINED label sets, and lists the
others; a second one reads those, if there are any. The series without labels is always read, also
if the index has no entry for it; with a filter, so is the series that has just these labels. An
exact selection does not use the index.

An index has one entry for each precision and series, PRECISION:NAME, in the order of their bytes.
So the label sets of a name are one range of it, from `PRECISION:NAME{` up to `PRECISION:NAME|`. The
series without labels has an entry of its own, which is not next to them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from redmeter.errors import InvalidName, LimitExceeded, StoreRefused, UnknownLabel, WrongKind
from redmeter.names import SeriesName, canonical, parse_name
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import (
    Ask,
    Budget,
    Joined,
    decoded,
    first_entries,
    join,
    list_entries,
    read_on,
)
from redmeter.store import View, indexes
from redmeter.store.query import Query, Read, escaped, scan_fields, together
from redmeter.store.servers.replies import Command, Reply, translate
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.gauge import Measured, parse_gauge
from redmeter.stored.keys import Keys, entry
from redmeter.types import Selection

T = TypeVar("T")

#: Label sets that are read with the first round trip.
JOINED = 50
#: Label sets that one query reads: of counters and gauges, and of histograms.
MAX_SERIES, MAX_HISTOGRAMS = 2_000, 500

#: The values of the labels of a group, in the order of `by`.
GroupKey = tuple[str | None, ...]
#: Index entries that one listing with a filter reads at most.
MAX_SCANNED = 100_000

#: The value of a label of a series that stands for all those beyond the limit of label sets.
OTHER = "(other)"


class KindReads(NamedTuple):
    """How a kind of series is read by name."""

    #: Label sets that one query reads.
    most: int
    #: The call that reads it, for the error of a query of another kind.
    call: str
    #: Parses the value of an interval of one of STATES, given its start and the precision.
    parse: Callable[[bytes, int, int], Measured | None] | None = None


#: Kind -> how it is read.
KINDS: Final[dict[str, KindReads]] = {
    "counter": KindReads(MAX_SERIES, "use series() or total()"),
    "gauge": KindReads(MAX_SERIES, "use gauge_series()", parse_gauge),
    "histogram": KindReads(MAX_HISTOGRAMS, "use summary()"),
}

_NARROW = "filter them with labels=, or rank them with top()"


def parse_state(kind: str, text: bytes, start: int, precision: int) -> Measured | None:
    """Parse the value of an interval of one of STATES, and its time; None if it has another form.

    Args:
        kind: one of STATES.
        text: as it is stored.
        start, precision: of the interval, Unix seconds and seconds.
    """
    parse = KINDS[kind].parse
    assert parse, "it is one of STATES"
    return parse(text, start, precision)


def hashes_of(keys: Keys, kind: str, names: Sequence[str], precision: int) -> list[Command]:
    """Return the commands that read the hashes of series, for each name in turn."""
    return [("HGETALL", key) for name in names for key in keys.hashes(kind, precision, name)]


def read_selected(
    keys: Keys, kind: str, selection: Selection, precision: int
) -> Query[tuple[View, dict[str, Sequence[Reply]]]]:
    """Read the hashes of the series that a selection means.

    Args:
        kind: a key of SERIES_KINDS.
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
    stored, limit = SERIES_KINDS[kind], KINDS[kind].most

    def commands(names: Sequence[str]) -> list[Command]:
        return hashes_of(keys, kind, names, width)

    whole = selection.name
    if not selection.exact and selection.labels:
        whole = canonical(selection.name, selection.labels)
    if selection.exact:
        view, replies = yield commands([whole])
        view.retention_of(kind).check(precision)
        return view, {whole: replies}

    label_sets = LabelSets(keys, keys.key(stored.index.name), width, selection.name)
    # On a cluster, a key without a name is the beginning of the keys in each shard.
    heads = [keys.key(family.name) + entry(width, "") for family in stored.hashes]
    asks = [Ask("HGETALL", head) for head in heads]
    view, replies = yield [
        *commands([whole]),
        label_sets.join(asks, JOINED),
        label_sets.size(),
        label_sets.first_names(limit, selection.labels),
    ]
    view.retention_of(kind).check(precision)
    each = len(asks)
    direct, (joined, size, listed) = replies[:each], replies[each:]
    replies_of: dict[str, Sequence[Reply]] = {
        name: [
            _with_key(reply, key)
            for reply, key in zip(own, keys.hashes(kind, width, name), strict=True)
        ]
        for name, own in Joined(joined, each, needed=False).by_name()
        if selects(selection, name)
    }
    replies_of[whole] = direct
    if there(size, 0) > JOINED:
        if not selection.labels:
            check_label_sets(size, limit)
        names = yield from label_sets.names(limit, selection.labels, listed)
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


def selects(selection: Selection, name: str) -> bool:
    """Return whether a selection means the series of a stored name."""
    if selection.exact:
        return name == selection.name
    if name == selection.name:
        return not selection.labels
    return base_of(name) == selection.name and has_labels(name, selection.labels)


def group_of(selection: Selection, name: str) -> GroupKey:
    """Return the group of a selection that the series of a stored name belongs to."""
    return tuple(label_of(name, label) for label in selection.by)


def split(selection: Selection, found: Mapping[str, T]) -> dict[GroupKey, dict[str, T]]:
    """Split series by the values of the selection's `by` labels."""
    groups: dict[GroupKey, dict[str, T]] = {}
    for name, one in found.items():
        groups.setdefault(group_of(selection, name), {})[name] = one
    return groups


def name_of(selection: Selection) -> str:
    """Return the name of a result: that of the selection, with the labels it filters by."""
    return canonical(selection.name, selection.labels) if selection.labels else selection.name


# --- The label sets of a name ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelSets:
    """The label sets of a name that an index lists at one precision.

    `names()` reads their names, `join()` also the values that are stored under their keys. `size()`
    counts them without reading them.
    """

    keys: Keys
    #: The key of the index: `known:`, `gauges:` or `hists:`.
    index: str
    #: Interval width, seconds.
    precision: int
    #: A name without labels.
    base: str

    def first_names(self, limit: int, labels: Mapping[str, str] | None = None) -> Read:
        """Return the read of the first page of names()."""
        most = (MAX_SCANNED if labels else limit) + 1
        return first_entries(self.keys, self.index, self._ends(), most)

    def names(
        self, limit: int, labels: Mapping[str, str] | None = None, first: Reply = None
    ) -> Query[list[str]]:
        """Read the names as they are stored; the series without labels is left out.

        Args:
            limit: how many label sets are allowed.
            labels: only label sets that have these labels.
            first: the reply to first_names(), if that was read already.

        Raises:
            LimitExceeded: there are more than the limit, or with a filter over MAX_SCANNED.
            StoreError: the server refuses.
        """
        most = (MAX_SCANNED if labels else limit) + 1
        members = yield from list_entries(self.keys, self.index, self._ends(), most, first)
        if labels and len(members) > MAX_SCANNED:
            raise LimitExceeded("label sets", len(members), MAX_SCANNED, _NARROW, at_least=True)
        names = decoded(members)
        if labels:
            names = [name for name in names if has_labels(name, labels)]
        if len(names) > limit:
            cut = len(members) == most
            raise LimitExceeded("label sets", len(names), limit, _NARROW, at_least=cut)
        return names

    def join(self, asks: Sequence[Ask], count: int, after: bytes = b"") -> Read:
        """Read label sets, with the values of their keys; the series without labels is left out.

        Args:
            asks: what to read of each: see redmeter.reading.join.
            count: how many label sets to read.
            after: the index entry to continue after.
        """
        first, last = self._ends()
        cut = len(entry(self.precision, ""))
        ends = (b"(" + after if after else first, last)
        return join(self.keys, self.index, ends, cut, asks, count=count)

    def read_on(
        self, first: Joined, asks: Sequence[Ask], size: int, most: int
    ) -> Query[list[Joined]]:
        """Read the label sets after a first page, page by page, and return all pages.

        Args:
            first: the answer to join().
            asks: as of join().
            size: label sets of a page, which takes a round trip.
            most: label sets that are read at most.
        """
        pages = [first]
        yield from read_on(first, partial(self.join, asks), Budget(most, size), pages.append)
        return pages

    def join_base(self, asks: Sequence[Ask]) -> Read:
        """Read the same of the series without labels; nothing if the index does not list it."""
        ends, cut = (f"[{self._entry}", f"[{self._entry}"), len(entry(self.precision, ""))
        return join(self.keys, self.index, ends, cut, asks, count=1)

    def has_base(self) -> Read:
        """Read whether the index lists the series without labels."""
        return indexes.has(self.keys, self.index, self._entry)

    def size(self) -> Read:
        """Read how many label sets there are; the series without labels is not counted."""
        return indexes.size_between(self.keys, self.index, *self._ends())

    @property
    def _entry(self) -> str:
        return entry(self.precision, self.base)

    def _ends(self) -> tuple[str, str]:
        return f"[{self._entry}{{", f"({self._entry}|"


# --- Labels of stored names --------------------------------------------------------------------


def base_of(name: str) -> str:
    """Return a stored name without its labels; a name of another form is returned as it is."""
    return _parts(name).base


def labels_in(name: str) -> dict[str, str]:
    """Return the labels of a stored name; a name of another form has none."""
    return dict(_parts(name).labels)


def _parts(name: str) -> SeriesName:
    try:
        return parse_name(name)
    except InvalidName:
        return SeriesName(name)


def label_of(name: str, label: str) -> str | None:
    """Return the value of a label of a stored name; None if it lacks the label.

    The series that stands for those beyond the limit of label sets has lost its labels: OTHER.
    """
    parsed = _parts(name)
    value = parsed.label(label)
    return OTHER if value is None and parsed.label("overflow") == "true" else value


def has_labels(name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a stored name has certain labels; it may have others, too."""
    labels_of = labels_in(name)
    return all(labels_of.get(label) == value for label, value in labels.items())


# --- The kind and the labels of a name --------------------------------------------------------
# Why a query found nothing, though the name is recorded. A counter, a gauge and a histogram may
# share a name, so a query reads its own kind only. If that has nothing at all, one more round trip
# finds out whether another kind has the name, and that is an error which names the right call. A
# name without any series is just not recorded yet. In the same way, a label is looked for if the
# query found no series that has it.


def check_asked(
    keys: Keys,
    view: View,
    selection: Selection,
    expected: Collection[str],
    found: Collection[str],
    failing: Collection[str] = (),
    counted: Collection[str] | None = None,
) -> Query[None]:
    """Check the name and the labels of a query, if it found no series with these labels.

    Otherwise it takes no round trip; else one, and another one before an UnknownLabel.

    Args:
        expected: the kinds that the query reads.
        found: the stored names of the series that it found.
        failing: more labels that it names: those of events that failed.
        counted: the stored names of all grand totals of the name, if the query read them.

    Raises:
        WrongKind: it found nothing, and the name has other kinds only.
        UnknownLabel: the name has series, and none of them has a certain label.
        LimitExceeded: over MAX_SCANNED label sets have to be looked at.
        StoreError: the server is unreachable or refuses.
    """
    name, labels = selection.name, [*selection.labels, *selection.by, *failing]
    if selection.exact:
        name, labels = base_of(name), [*labels, *labels_in(name)]
    if found:
        labels = lacking((*selection.by, *failing), found)
    checks: list[Query[Any]] = [] if found else [check_kind(keys, view, selection, expected)]
    if labels:
        checks.append(stored_names(keys, view, name))
    answers = yield from together(checks)
    if not labels:
        return
    names = [*answers[-1], *(counted or ())]
    if names and lacking(labels, names):
        if counted is None:  # grand totals do not expire
            totals = yield from scan_fields(keys, keys.total, escaped(name) + "*")
            fields = (field.decode(errors="replace") for field in totals)
            names += [one for one in fields if base_of(one) == name]
        check_labels(name, labels, names)


def stored_names(
    keys: Keys, view: View, name: str, kinds: Collection[str] = tuple(SERIES_KINDS)
) -> Query[list[str]]:
    """Read the stored names of all series of a name, of each precision.

    Raises:
        LimitExceeded: over MAX_SCANNED label sets.
        StoreError: the server is unreachable or refuses.
    """
    sets = [
        LabelSets(keys, keys.key(SERIES_KINDS[kind].index.name), width, name)
        for kind in kinds
        for width in view.retention_of(kind)
    ]
    _, replies = yield [
        read for one in sets for read in (one.first_names(MAX_SCANNED), one.has_base())
    ]
    names = [name] if any(there(reply, 0) for reply in replies[1::2]) else []
    listed = yield from together(
        [one.names(MAX_SCANNED, first=first) for one, first in zip(sets, replies[::2], strict=True)]
    )
    return sorted({*names, *chain.from_iterable(listed)})


def check_labels(name: str, labels: Iterable[str], stored: Collection[str]) -> None:
    """Check the labels that a query of a name, or of a pattern, asks for.

    Args:
        stored: the names of the series; without any, nothing is recorded yet.

    Raises:
        UnknownLabel: none of them has one of the labels.
    """
    if stored and (unknown := lacking(labels, stored)):
        known = {label for one in stored for label in labels_in(one)}
        raise UnknownLabel(name, unknown[0], sorted(known))


def lacking(labels: Iterable[str], stored: Collection[str]) -> list[str]:
    """Return those labels that no series has, of their stored names."""
    return [one for one in labels if all(label_of(name, one) is None for name in stored)]


def check_kind(
    keys: Keys, view: View, selection: Selection, expected: Collection[str]
) -> Query[None]:
    """Read which kinds a name has, in one round trip, after a query found nothing.

    Args:
        expected: the kinds that the query reads.

    Raises:
        WrongKind: it has others only.
        StoreError: the server is unreachable or refuses.
    """
    name, reads, kinds = selection.name, list[Read](), list[str]()
    for kind, stored in SERIES_KINDS.items():
        key = keys.key(stored.index.name)
        for width in view.retention_of(kind):
            reads.append(indexes.has(keys, key, entry(width, name)))
            if not selection.exact:
                reads.append(LabelSets(keys, key, width, name).size())
            kinds += [kind] * (len(reads) - len(kinds))
    reads.append(indexes.grand_totals(keys, [name]))  # of a counter whose samples expired
    _, (*sizes, totals) = yield reads
    numbers = zip(kinds, (there(size, 0) for size in sizes), strict=True)
    found = {kind for kind, number in numbers if number}
    if there(totals, [None]) != [None]:
        found |= {kind for kind, stored in SERIES_KINDS.items() if stored.has_total}
    check_found(selection, expected, found)


def check_kinds(keys: Keys, view: View, names: Sequence[str], kind: str) -> Query[None]:
    """Read the kinds of series under whose names a query of many found nothing.

    Args:
        names: as they are stored; the first JOINED are checked.
        kind: the one that the query reads.

    Raises:
        WrongKind: one of them has others only.
        StoreError: the server is unreachable or refuses.
    """
    selections = (Selection(name, exact=True) for name in names[:JOINED])
    yield from together([check_kind(keys, view, one, (kind,)) for one in selections])


def check_found(selection: Selection, expected: Collection[str], found: Collection[str]) -> None:
    """Check the kinds of a name that was not found.

    Args:
        expected: the kinds that the query reads.
        found: the kinds that the name has.

    Raises:
        WrongKind: it has others only.
    """
    others: Sequence[str] = [kind for kind in KINDS if kind in found]
    if others and not set(others) & set(expected):
        raise WrongKind(base_of(selection.name), others[0], KINDS[others[0]].call)
