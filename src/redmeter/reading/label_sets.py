"""Label sets: which ones a name has, and filters by labels.

An index has one entry for each precision and series, PRECISION:NAME, in the order of their bytes.
So the label sets of a name are one range of it, from `PRECISION:NAME{` up to `PRECISION:NAME|`. The
series without labels has an entry of its own, which is not next to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from redmeter.errors import InvalidName, LimitExceeded, shown
from redmeter.names import parse_name
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined, join, name_of, of_window, read_on
from redmeter.reading.names import decoded, first_entries, list_entries
from redmeter.reading.samples import counts_of
from redmeter.reading.windows import Window
from redmeter.store import indexes
from redmeter.store.query import Query, Read
from redmeter.store.replies import Reply
from redmeter.stored.families import INDEX_OF
from redmeter.stored.keys import Keys, entry
from redmeter.stored.packed_text import parse_moments

#: Index entries that one listing with a filter reads at most.
MAX_SCANNED = 100_000

#: The value of a label of a series that stands for all those beyond the limit of label sets.
OTHER = "(other)"

_NARROW = "filter them by labels, or rank them with top"


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
            raise LimitExceeded("label sets", len(members), MAX_SCANNED, _NARROW)
        names = decoded(members)
        if labels:
            names = [name for name in names if has_labels(name, labels)]
        if len(names) > limit:
            raise LimitExceeded("label sets", len(names), limit, _NARROW)
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
        yield from read_on(first, partial(self.join, asks, size), size, most, pages.append)
        return pages

    def join_base(self, asks: Sequence[Ask]) -> Read:
        """Read the same of the series without labels; nothing if the index does not list it."""
        ends, cut = (f"[{self._entry}", f"[{self._entry}"), len(entry(self.precision, ""))
        return join(self.keys, self.index, ends, cut, asks, count=1)

    def size(self) -> Read:
        """Read how many label sets there are; the series without labels is not counted."""
        return indexes.size_between(self.keys, self.index, *self._ends())

    @property
    def _entry(self) -> str:
        return entry(self.precision, self.base)

    def _ends(self) -> tuple[str, str]:
        return f"[{self._entry}{{", f"({self._entry}|"


# --- Counts within a window ----------------------------------------------------------------

#: Label sets whose counts are read, and those that are merged into one curve.
MAX_COUNTED, MAX_MERGED = 500, 50


#: Kinds of records that count events.
EventKind = Literal["counter", "histogram"]


class Counts(NamedTuple):
    """Events of label sets within a window."""

    #: Those that were read, up to a limit.
    by_name: dict[str, int]
    #: How many label sets there are.
    total: int

    def busiest(self, limit: int = MAX_MERGED) -> list[str]:
        """Return the label sets with the most events, the busiest first."""
        return sorted(self.by_name, key=lambda name: (-self.by_name[name], name))[:limit]


def event_reads(
    keys: Keys, kind: EventKind, base: str, window: Window, limit: int = MAX_COUNTED
) -> list[Read]:
    """Return the two reads whose replies event_counts() takes.

    Args:
        base: a name without labels.
        window: of counters, or of histograms.
        limit: how many label sets are read.
    """
    label_sets = LabelSets(keys, keys.key(INDEX_OF[kind].name), window.fine, base)
    events = keys.key("count" if kind == "counter" else "moments")
    return [label_sets.join([of_window(events, window)], limit), label_sets.size()]


def event_counts(kind: EventKind, replies: Sequence[Reply]) -> Counts:
    """Parse the number of events of each label set: counts, or values of histograms."""
    by_name = {}
    for member, (reply,) in Joined(replies[0], 1, needed=False).readable():
        name = name_of(member)
        if kind == "counter":
            by_name[name] = sum(counts_of(reply).values())
        else:
            by_name[name] = sum(m.count for m in map(parse_moments, reply[1::2]) if m)
    return Counts(by_name, there(replies[1], 0))


# --- Labels of stored names ----------------------------------------------------------------


def base_of(name: str) -> str:
    """Return a stored name without its labels; a name of another form is returned as it is."""
    try:
        return parse_name(name).base
    except InvalidName:
        return name


def label_of(name: str, label: str) -> str | None:
    """Return the value of a label of a stored name; None if it lacks the label.

    The series that stands for those beyond the limit of label sets has lost its labels: OTHER.
    """
    try:
        parsed = parse_name(name)
    except InvalidName:
        return None
    value = parsed.label(label)
    return OTHER if value is None and parsed.label("overflow") == "true" else value


def has_labels(name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a stored name has certain labels; it may have others, too."""
    try:
        labels_of = dict(parse_name(name).labels)
    except InvalidName:
        return False
    return all(labels_of.get(label) == value for label, value in labels.items())


def check_labels(what: str, labels: object) -> None:
    """Check a filter by labels; None is no filter.

    Args:
        what: the name of the argument, for the error.

    Raises:
        TypeError: it is not a mapping of strings to strings.
    """
    if labels is None:
        return
    if not isinstance(labels, Mapping):
        kind = type(labels).__name__
        raise TypeError(f'{what} takes labels and their values, e.g. {{"route": "/"}}, not {kind}')
    for label, value in labels.items():
        for part in (label, value):
            if not isinstance(part, str):
                raise TypeError(
                    f"{what}: {shown(part, 40)} is of type {type(part).__name__}; labels and "
                    "their values are text: str(…)"
                )
