"""What there is, with a small curve of each: the rows of a list, of one kind of series.

Two round trips: which series there are, and what sums each has; then the curves of those rows that
are shown. Of a great many series, those are looked at that come first by their names, up to a
number of them; a pattern that begins with literal text leads to the others, and so does going
through the list page by page, where it is ordered by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redmeter.keys import Keys, entry, slice_start
from redmeter.reading.catalogue import matching, matching_ends
from redmeter.reading.curves import Curve, asked_counts, counted
from redmeter.reading.gauges import value_of
from redmeter.reading.join import (
    Ask,
    Joined,
    counts_of,
    join,
    of_before,
    of_field,
    of_window,
)
from redmeter.reading.observed import Sum, sum_of
from redmeter.reading.partly import there
from redmeter.reading.series import whole
from redmeter.reading.sets import base_of
from redmeter.reading.sparks import drawn
from redmeter.reading.together import Question, together
from redmeter.reading.windows import Window
from redmeter.store.replies import Command, Reply, is_misplaced, pairs, raised

#: Series that are looked at for one list.
MAX_LISTED = 1_000
#: Series of one row that its curve is made of; those of further ones are not in it.
MAX_DRAWN = 50

#: Part of all of a counter that may lie between a window and the time before, which are not quite
#: adjacent, or come while one reads.
LITTLE = 0.05

#: What is listed -> what one of it is called.
KINDS = {"counters": "counter", "gauges": "gauge", "histograms": "histogram"}
ORDERS = ("name", "count", "change")


@dataclass(slots=True)
class Row:
    """A series, or all label sets of a name, within a window."""

    name: str
    #: counter, gauge or histogram.
    kind: str
    #: How many label sets it stands for, of how many its curve is, and whether these are all: of a
    #: great many series, those of the last name that was looked at may go on.
    series: int = 1
    drawn: int = 1
    complete: bool = True
    #: How often it happened within the window; of a gauge, how many of its slices have a sample.
    count: int = 0
    #: The same within as long a time before; None where nobody keeps that, or it was not read, or
    #: where a counter began within that time, of which a part is no measure.
    before: int | None = None
    #: Of observed values their mean, of a gauge its newest sample; None where there is none.
    value: float | None = None
    #: Counts, or samples of a gauge, by slices of `Listing.values_precision`; None for gaps, and
    #: before the first.
    values: list[float | None] = field(default_factory=list)


@dataclass(slots=True)
class Listing:
    """A part of what there is."""

    rows: list[Row]
    #: Series of the kind that match, as far as that is known without looking at each: those that
    #: begin as the pattern does.
    total: int
    looked_at: int
    #: Rows that there are after grouping and matching, of those that were looked at.
    found: int
    values_start: int
    values_precision: int
    #: The busiest of them at the precision of the window, where that was asked for; and the series
    #: that each of these rows stands for.
    curves: list[Curve] = field(default_factory=list)
    busiest: dict[str, list[str]] = field(default_factory=dict)


def listing(
    keys: Keys,
    window: Window,
    *,
    kind: str = "counters",
    pattern: str = "*",
    grouped: bool = False,
    order: str = "name",
    limit: int = 50,
    offset: int = 0,
    most: int = MAX_LISTED,
    curves: int = 0,
    needed: bool = True,
) -> Question[Listing]:
    """Read rows.

    Args:
        window: of the kind.
        kind: one of KINDS.
        pattern: as for names: see catalogue.py.
        grouped: one row for all label sets of a name.
        order: one of ORDERS; `change` puts first what differs most from what was before.
        limit, offset: which rows.
        most: series that are looked at.
        curves: of how many of the first counters curves are read, too.
        needed: see Joined.
    """
    index = {"counters": keys.known, "gauges": keys.gauges, "histograms": keys.hists}[kind]
    asks = _asks(keys, kind, window, before=order == "change")
    ends = matching_ends(window.fine, pattern)
    # By name the list goes on where the page before ended; else all is put in order.
    pages = order == "name" and not grouped and _is_a_beginning(pattern)
    first, most = (offset, limit) if pages else (0, most)
    selection = ("ZRANGEBYLEX", *ends, "LIMIT", str(first), str(most))
    _, (reply, number) = yield [
        join(index, selection, len(entry(window.fine, "")), asks),
        ("ZLEXCOUNT", index, *ends),
    ]
    joined = Joined(reply, len(asks), needed=needed)
    groups = _grouped(joined, KINDS[kind], pattern, grouped=grouped)
    total, found = there(number, 0), len(groups)
    for group in groups:
        group.compare()
    shown = sorted(groups, key=lambda group: _place(group.row, order))
    if pages:
        found = total
    else:
        shown = shown[offset : offset + limit]
    width = window.fine if kind == "gauges" else window.drawn()
    slots = range(slice_start(window.start(joined.now), width), int(joined.now) + 1, width)
    busiest = {group.row.name: group.names() for group in shown[:curves]}
    made: list[Curve] = []
    if shown:
        earlier = window.slices_before(joined.now) if order != "change" else {}
        parts = [_Part(group, slots, earlier, keys) for group in shown]
        _, made = yield from together([_told(parts), redrawn(keys, window, busiest)])
        for group in shown:
            group.compare()
    rows = [group.row for group in shown]
    if not any(row.before for row in rows):
        for row in rows:  # nothing is known of the time before
            row.before = None
    looked_at = len(joined.members)
    if looked_at == most and not pages and joined.members:
        cut = base_of(_name(joined.members[-1]))
        for row in rows:
            row.complete = row.name != cut
    return Listing(rows, total, looked_at, found, slots.start, width, made, busiest)


def redrawn(keys: Keys, window: Window, busiest: Mapping[str, Sequence[str]]) -> Question[Any]:
    """Read the curves of rows, at the precision of the window; one round trip.

    Args:
        busiest: the name of a row -> the counters that it stands for, the busiest first.
    """
    asked = {name: asked_counts(keys, some, window.fine) for name, some in busiest.items()}
    view, replies = yield [command for some in asked.values() for command in some]
    answers = iter(replies)
    start = window.start(view.now)
    return [
        counted(name, [next(answers) for _ in some], window.fine, start, view.now, len(some))
        for name, some in asked.items()
    ]


def _told(parts: Sequence["_Part"]) -> Question[Any]:
    """Read the small curves of rows."""
    _, replies = yield [command for part in parts for command in part.commands]
    answers = iter(replies)
    for part in parts:
        part.tell([next(answers) for _ in part.commands])


def _asks(keys: Keys, kind: str, window: Window, *, before: bool) -> list[Ask]:
    if kind == "gauges":
        return []
    family = keys.count_of("") if kind == "counters" else keys.moments_of("")
    some = [of_window(family, window)]
    if window.earlier:
        some += [of_field(keys.total)] if kind == "counters" else []
        some += [of_before(family, window)] if before else []
    return some


def _is_a_beginning(pattern: str) -> bool:
    """Tell whether a pattern asks for all that begins with a text, or for one name."""
    return not any(c in pattern.removesuffix("*") for c in "*?[")


def _place(row: Row, order: str) -> tuple[int, str]:
    change = 0 if row.before is None else abs(row.count - row.before)
    return -{"count": row.count, "change": change}.get(order, 0), row.name


# --- Sums ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """A row, and the series that it stands for with their counts."""

    row: Row
    counts: dict[str, int] = field(default_factory=dict)
    #: How often its counters ever came; None where nobody knows it of all of them.
    total: int | None = 0

    def add(self, name: str, replies: Sequence[Reply]) -> None:
        """Add a series, with what was asked of it."""
        row = self.row
        if row.kind == "counter" and len(replies) > 1:
            window, ever, *rest = replies
            replies = [window, *rest]
            # Other programs count without grand totals.
            known = self.total is not None and ever is not None
            self.total = (self.total or 0) + whole(ever) if known else None
        else:
            self.total = None
        wholes = [_sum(row.kind, reply) for reply in replies] or [Sum()]
        if row.kind == "histogram" and wholes[0].count:
            before = (row.value or 0.0) * row.count
            row.value = (before + wholes[0].total) / (row.count + wholes[0].count)
        self.counts[name] = wholes[0].count
        row.series = len(self.counts)
        row.count += wholes[0].count
        if len(wholes) > 1:
            row.before = (row.before or 0) + wholes[1].count

    def compare(self) -> None:
        """Forget the time before where it began within that.

        It did where next to nothing of all that ever came lies before. Where less came than lies
        within both, other programs count too, and nobody knows.
        """
        row = self.row
        known = row.count + (row.before or 0)
        if row.before and self.total is not None and 0 <= self.total - known <= LITTLE * known:
            row.before = None

    def names(self) -> list[str]:
        """Return the series of which its curve is, the busiest first."""
        ordered = sorted(self.counts, key=lambda name: (-self.counts[name], name))
        return ordered[:MAX_DRAWN]


def _grouped(joined: Joined, kind: str, pattern: str, *, grouped: bool) -> list[_Group]:
    groups: dict[str, _Group] = {}
    names = {member: _name(member) for member in joined.members}
    wanted = set(matching(names.values(), pattern))
    for member, replies in joined.readable():
        name = names[member]
        if name in wanted:
            shown = base_of(name) if grouped else name
            groups.setdefault(shown, _Group(Row(shown, kind))).add(name, replies)
    return list(groups.values())


def _name(member: bytes) -> str:
    return member.decode(errors="replace").partition(":")[2]


def _sum(kind: str, reply: Sequence[bytes]) -> Sum:
    found = Sum()
    if kind == "counter":
        found.count = sum(counts_of(reply).values())
        return found
    for text in reply[1::2]:
        if (part := sum_of(text)) is not None:
            found.merge(part)
    return found


# --- Curves --------------------------------------------------------------------------------


class _Part:
    """The curve of a row: what it asks, and what it makes of the answers.

    Args:
        slots: starts of its slices.
        earlier: the slices of the time before, where that is not known yet: precision -> starts.
    """

    def __init__(
        self, group: _Group, slots: range, earlier: dict[int, list[int]], keys: Keys
    ) -> None:
        self.row, self._slots = group.row, slots
        names = group.names()
        self.row.drawn = len(names)
        key = {"counter": keys.count, "gauge": keys.gauge, "histogram": keys.moments}
        of_kind = key[self.row.kind]
        self.commands: list[Command] = [("HGETALL", of_kind(slots.step, name)) for name in names]
        # Of all or of none: a part of it would be no number to compare with.
        whole_row = len(names) == self.row.series and self.row.kind != "gauge"
        self._curves = len(self.commands)
        if whole_row:
            fields = {width: [*map(str, starts)] for width, starts in earlier.items()}
            self.commands += [
                ("HMGET", of_kind(width, name), *starts)
                for name in names
                for width, starts in fields.items()
            ]

    def tell(self, replies: Sequence[Reply]) -> None:
        """Write down what was answered to the commands."""
        row, curves = self.row, replies[: self._curves]
        before = [reply for reply in replies[self._curves :] if not is_misplaced(reply)]
        if row.kind == "gauge":
            self._tell_gauge(curves)
        else:
            read = _counts_of_moments if row.kind == "histogram" else None
            row.values = drawn(curves, self._slots, read)
        if before:
            count = whole if row.kind == "counter" else _values
            row.before = sum(count(value) for reply in before for value in raised(reply))

    def _tell_gauge(self, replies: Sequence[Reply]) -> None:
        row, slots = self.row, self._slots
        if row.series > 1 or is_misplaced(replies[0]):
            return  # of several there is no newest
        texts = dict(pairs(raised(replies[0])))
        row.values = [value_of(texts.get(b"%d" % at), at, slots.step) for at in slots]
        known = [value for value in row.values if value is not None]
        row.count, row.value = len(known), known[-1] if known else None


def _values(text: bytes | None) -> int:
    part = None if text is None else sum_of(text)
    return part.count if part else 0


def _counts_of_moments(reply: Reply) -> dict[int, int]:
    """Read how many values each slice has."""
    texts = pairs(raised(reply))
    return {int(at): _values(text) for at, text in texts if at.isdigit() and len(at) < 20}
