"""What there is, with a small curve of each: the rows of a list, of one kind of series.

One round trip. Of a great many series, those are looked at that come first by their names, up to a
number of them; a pattern that begins with literal text leads to the others, and so does going
through the list page by page, where it is ordered by name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from redmeter.errors import InvalidName
from redmeter.keys import Keys, entry, slice_start
from redmeter.names import parse_name
from redmeter.reading.catalogue import matching, matching_ends
from redmeter.reading.gauges import value_of
from redmeter.reading.join import Ask, Joined, join, of_before, of_window
from redmeter.reading.observed import Sum, sum_of
from redmeter.reading.together import Question
from redmeter.reading.traffic import counts_of, filled
from redmeter.reading.windows import Window
from redmeter.store.link import Reply, pairs, raised

#: Series that are looked at for one list.
MAX_LISTED = 1_000

KINDS = ("counters", "gauges", "histograms")
ORDERS = ("name", "count", "change")


@dataclass(slots=True)
class Row:
    """A series, or all label sets of a name, within a window."""

    name: str
    #: counter, gauge or histogram.
    kind: str
    #: How many label sets it stands for.
    series: int = 1
    #: How often it happened, within the window and within as long a time before; of a gauge, how
    #: many samples there are. None where nothing keeps what was before.
    count: int = 0
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
) -> Question[Listing]:
    """Read rows.

    Args:
        window: of the kind.
        kind: one of KINDS.
        pattern: as for names: see catalogue.py.
        grouped: one row for all label sets of a name.
        order: one of ORDERS; `change` puts first what differs most from what was before.
        limit, offset: which rows.
    """
    index = {"counters": keys.known, "gauges": keys.gauges, "histograms": keys.hists}[kind]
    asks = _asks(keys, kind, window)
    ends = matching_ends(window.fine, pattern)
    # By name the list goes on where the page before ended; else all is put in order.
    literal = ends[0].startswith(b"[") and pattern.rstrip("*") == pattern.split("*")[0]
    pages = order == "name" and not grouped and literal and not any(c in pattern for c in "?[")
    first, most = (offset, limit) if pages else (0, MAX_LISTED)
    _, (reply, number) = yield [
        join(
            index,
            ("ZRANGEBYLEX", *ends, "LIMIT", first, most),
            len(entry(window.fine, "")),
            asks,
        ),
        ("ZLEXCOUNT", index, *ends),
    ]
    joined = Joined(reply, len(asks))
    width = window.fine if kind == "gauges" else window.coarse
    start = slice_start(window.start(joined.now), width)
    size = (slice_start(joined.now, width) - start) // width + 1
    read = {"counters": _counter, "gauges": _gauge, "histograms": _histogram}[kind]
    slots = range(start, start + size * width, width)
    rows: dict[str, Row] = {}
    names = {m: m.decode(errors="replace").partition(":")[2] for m in joined.members}
    wanted = set(matching(names.values(), pattern))
    for member, replies in joined.readable():
        name = names[member]
        if name in wanted:
            row = read(name, replies, slots)
            _add(rows, _base(name) if grouped else name, row)
    total = raised(number)
    for row in rows.values():
        if row.kind != "gauge":
            row.values = filled(row.values)
    ordered = _ordered(rows.values(), order)
    shown = ordered if pages else ordered[offset : offset + limit]
    return Listing(shown, total, len(joined.members), total if pages else len(rows), start, width)


def _asks(keys: Keys, kind: str, window: Window) -> list[Ask]:
    if kind == "gauges":
        return [Ask("HGETALL", keys.gauge_of(entry(window.fine, "")))]
    family = keys.count_of("") if kind == "counters" else keys.moments_of("")
    return [of_window(family, window), *([of_before(family, window)] if window.earlier else [])]


def _counter(name: str, replies: Sequence[Reply], slots: range) -> Row:
    row = Row(name, "counter", values=[None] * len(slots))
    for at, count in counts_of(replies[0]).items():
        _count(row, at, count, slots)
    if len(replies) > 1:
        row.before = sum(counts_of(replies[1]).values())
    return row


def _histogram(name: str, replies: Sequence[Reply], slots: range) -> Row:
    row = Row(name, "histogram", values=[None] * len(slots))
    whole = Sum()
    for at, one in _sums(replies[0]):
        whole.merge(one)
        _count(row, at, one.count, slots)
    if whole.count:
        row.value = whole.mean
    if len(replies) > 1:
        row.before = sum(one.count for _, one in _sums(replies[1]))
    return row


def _gauge(name: str, replies: Sequence[Reply], slots: range) -> Row:
    row = Row(name, "gauge")
    texts = dict(pairs(replies[0]))
    row.values = [value_of(texts.get(b"%d" % at), at, slots.step) for at in slots]
    known = [value for value in row.values if value is not None]
    row.count = len(known)
    if known:
        row.value = known[-1]
    return row


def _sums(reply: Sequence[bytes]) -> Iterable[tuple[int, Sum]]:
    for start, text in zip(reply[::2], reply[1::2], strict=True):
        one = sum_of(text)
        if one is not None:
            yield int(start), one


def _count(row: Row, at: int, count: int, slots: range) -> None:
    row.count += count
    place = (at - slots.start) // slots.step
    if 0 <= place < len(row.values):
        row.values[place] = (row.values[place] or 0) + count


def _base(name: str) -> str:
    try:
        return parse_name(name).base
    except InvalidName:
        return name  # written by someone else


def _add(rows: dict[str, Row], name: str, row: Row) -> None:
    """Add a row to those of its name."""
    before = rows.get(name)
    if before is None:
        row.name = name
        rows[name] = row
        return
    whole, both = before.count + row.count, (before.value, row.value)
    if row.kind == "histogram" and None not in both and whole:
        before.value = ((both[0] or 0.0) * before.count + (both[1] or 0.0) * row.count) / whole
    elif before.value is None or row.kind == "gauge":
        before.value = None if row.kind == "gauge" else row.value  # of several there is no newest
    before.series += 1
    before.count = whole
    if row.before is not None:
        before.before = (before.before or 0) + row.before
    if row.kind == "gauge":
        before.values = []
    else:
        both_values = zip(before.values, row.values, strict=True)
        before.values = [
            None if one is None and other is None else (one or 0) + (other or 0)
            for one, other in both_values
        ]


def _ordered(rows: Iterable[Row], order: str) -> list[Row]:
    if order == "count":
        return sorted(rows, key=lambda row: (-row.count, row.name))
    if order == "change":
        return sorted(rows, key=lambda row: (-abs(row.count - (row.before or 0)), row.name))
    return sorted(rows, key=lambda row: row.name)
