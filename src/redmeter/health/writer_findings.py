"""What the reports of writers mean: how many there are, what they lost, who is in trouble now.

Pure functions from writers to findings. A report counts since its writer started, which may be
long ago. Texts are other processes', and shown as ASCII.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from redmeter.health.findings import Finding
from redmeter.health.writers import MAX_WRITERS, Writer, answers, questions
from redmeter.keys import Keys, span
from redmeter.store.query import Query
from redmeter.store.writer_reports import INSTANCE_SECONDS

#: Events may wait for so many seconds before it is worth a word.
STUCK = 60.0
#: Findings that the overview shows.
PANEL = 3
#: Most reasons, precisions and writers that are shown one by one.
SHOWN = 5

_LABELS = "keep ids, addresses and raw paths out of labels: give each few values"
#: Why events were lost -> which these are.
_LOST = {
    "aged": "events that came too late",
    "future": "events whose time lies too far ahead",
    "memory": "events that found no room in a buffer",
    "series": "gauges that found no room in a buffer",
    "retention": "events that were meant for another retention",
    "overflow": "events that a number could not hold any more",
    "not-finite": "observed values that are no finite numbers",
    "marks": "marks beyond those that may wait",
    "WRONGTYPE": "events whose keys hold something else",
    "not-a-number": "events in whose place another program's texts lie",
    "denied": "events that the server does not allow to be stored",
    "OOM": "events for which the server had no memory",
}
#: Why events were lost -> what to do about it.
_FIXES = {
    "aged": "nothing brings them back, and it goes on only where the cause does: the store is away "
    "for longer than such a chart is wide, a clock is wrong (NTP), or at= is of long ago",
    "future": "let NTP set the writers' clocks, and look at the times that are given to events",
    "memory": f"the buffers were full: raise REDMETER_BUFFER_BYTES, or {_LABELS}",
    "series": f"gauges have too many label sets: {_LABELS}",
    "retention": "configure the writers for what the store keeps: REDMETER_RETENTION",
    "overflow": "a count reached 2^63 - 1, or a slice 2^53 observed values: count in larger units",
    "not-finite": "observed were NaN, infinities or numbers that no float holds: see who does",
    "marks": "over 1,000 waited: mark deploys and the like, not what happens all the time",
    "WRONGTYPE": "another program uses these keys: choose another prefix",
    "not-a-number": "another program writes to these counters: choose another prefix",
    "denied": "ACL LOG on the server shows the command or key that the writers' user lacks; "
    "ACL SETUSER grants it",
    "OOM": "raise maxmemory",
}
_OTHERS = "the warnings in the writers' own logs give the details"


def writer_findings(now: float, found: Sequence[Writer], unreadable: int) -> Iterator[Finding]:
    """Judge the writers of the last day.

    Args:
        now: the server's clock, Unix seconds.
        unreadable: how many more have a report that cannot be read.
    """
    size = len(found) + unreadable
    alive = sum(writer.alive(now) for writer in found)
    if size:
        within = (
            f"{size:,} within a day" if size < MAX_WRITERS else f"{size:,} or more within a day"
        )
        text = f"{alive:,} seen within {span(INSTANCE_SECONDS)}, {within}"
    else:
        text = "none seen within a day (those that buffer events tell of themselves)"
    yield Finding("ok", "writers", text)
    yield from _lost(found)
    yield from _summed(found)
    yield from _stuck(now, found)
    yield from _grouped(now, found)
    if unreadable:
        yield Finding(
            "warn",
            "writers",
            f"reports that cannot be read: {unreadable:,}",
            "update this redmeter, should a newer one write there; else see who does",
        )


@dataclass(slots=True)
class HealthPanel:
    """The state of the writers, as the overview shows it."""

    level: str
    #: The first findings of a level other than "ok".
    findings: list[Finding]
    #: Writers that published lately.
    writers: int


def health_panel(keys: Keys) -> Query[HealthPanel]:
    """Read the reports of the writers; one round trip."""
    view, replies = yield questions(keys)
    found, unreadable = answers(view.now, replies, needed=False)
    bad = [f for f in writer_findings(view.now, found, unreadable) if f.level != "ok"]
    levels = {finding.level for finding in bad}
    level = "fail" if "fail" in levels else "warn" if levels else "ok"
    return HealthPanel(level, bad[:PANEL], sum(writer.alive(view.now) for writer in found))


def unknown(key: str, error: Exception) -> Iterator[Finding]:
    """Say that the server does not tell of the writers."""
    text = f"{key} and what belongs to it cannot be read: {_plain(str(error), 300)}"
    fix = "if another program uses these keys, choose another prefix"
    yield Finding("warn", "writers", text, fix)


def _lost(found: Sequence[Writer]) -> Iterator[Finding]:
    """Tell lost events by reason, those that cost most first."""
    lost: dict[str, dict[int, int]] = {}
    for writer in found:
        for reason, some in _unexpected(writer).items():
            sums = lost.setdefault(reason, {})
            for precision, events in some.items():
                sums[precision] = sums.get(precision, 0) + events
    ordered = sorted(lost, key=lambda reason: (-max(lost[reason].values()), reason))
    for reason in ordered[:SHOWN]:

        def amount(writer: Writer, reason: str = reason) -> int:
            return max(_unexpected(writer).get(reason, {}).values(), default=0)

        which = f"{_LOST.get(reason, 'events')} ({_plain(reason)})"
        yield Finding(
            "warn",
            "writers",
            f"{which} are missing: {_missing(lost[reason])}; by {_by(found, amount)}",
            _FIXES.get(reason, _OTHERS),
        )
    if len(ordered) > SHOWN:
        rest = ", ".join(map(_plain, ordered[SHOWN : 2 * SHOWN]))
        more = f" … ({len(ordered) - 2 * SHOWN:,} more)" if len(ordered) > 2 * SHOWN else ""
        text = f"events are missing for further reasons: {rest}{more}"
        yield Finding("warn", "writers", text, _OTHERS)


def _unexpected(writer: Writer) -> dict[str, dict[int, int]]:
    """Return the losses of a writer that are worth a warning: reason -> {precision: events}.

    Events of the past, recorded with at=, cannot be in charts that do not reach back so far: that
    is what their program asked for. Events that were nearly too old may become so on their way,
    so up to as many again are expected of such a program.
    """
    lost, past = writer.lost(), writer.past()
    aged = {p: n for p, n in lost.pop("aged", {}).items() if n > 2 * past.get(p, 0)}
    return {"aged": aged, **lost} if aged else lost


def _summed(found: Sequence[Writer]) -> Iterator[Finding]:
    """Tell what writers count as one number each."""
    for field, text, fix in (
        (
            "uncertain",
            "events may be stored or not: they were sent, and the watermark was gone after",
            "let the server keep its keys: maxmemory-policy noeviction, appendonly yes",
        ),
        (
            "dropped",
            "events dropped whole, also from the grand totals",
            "why is told with the events that are missing",
        ),
        (
            "overflowed",
            'events are in series labelled overflow="true": a name has too many label values',
            _LABELS,
        ),
    ):

        def amount(writer: Writer, field: str = field) -> int:
            return writer.number(field)

        if total := sum(map(amount, found)):
            by = _by(found, amount)
            yield Finding("warn", "writers", f"{total:,} {text}; by {by}", fix)

    def changed(writer: Writer) -> int:
        return writer.counts("troubles").get("label-value", 0)

    if total := sum(map(changed, found)):
        yield Finding(
            "warn",
            "writers",
            f"{total:,} label values were cut to fit a name, or had characters that are not "
            f"allowed; by {_by(found, changed)}",
            "label values come from a small set of short texts: a plan, a route, a status",
        )


def _stuck(now: float, found: Sequence[Writer]) -> Iterator[Finding]:
    """Tell who has events that it cannot store."""
    stuck = [writer for writer in found if writer.alive(now) and _waits(writer) > STUCK]
    stuck.sort(key=lambda writer: -writer.number("buffered"))
    for writer in stuck[:SHOWN]:
        waiting, seconds = writer.number("buffered"), _waits(writer)
        yield Finding(
            "warn",
            "writers",
            f"{_name(writer)} has not stored for {seconds:,.0f} s, {waiting:,} events wait: "
            f"{_plain(writer.text('last_trouble'), 200)}",
            "mend what it says: what waits is lost when it ends",
        )
    if len(stuck) > SHOWN:
        yield Finding("warn", "writers", f"… ({len(stuck) - SHOWN:,} more that cannot store)")


def _grouped(now: float, found: Sequence[Writer]) -> Iterator[Finding]:
    """Tell where messages are grouped in several ways, by versions of redmeter that differ."""
    versions = {writer.number("patterns") for writer in found if writer.alive(now)} - {0}
    if len(versions) > 1:
        told = ", ".join(map(str, sorted(versions)))
        yield Finding(
            "warn",
            "writers",
            f"messages are grouped by several versions of patterns: {told}",
            "let all writers have one version of redmeter: until two hours after that, messages "
            "without a format may seem new or gone",
        )


def _waits(writer: Writer) -> float:
    """Return for how long a writer had been unable to store when it published, seconds."""
    if not writer.number("buffered") or not writer.text("last_trouble"):
        return 0.0
    since = writer.moment("last_flush") or writer.moment("started")
    return 0.0 if since is None else writer.seen - since


def _missing(events: dict[int, int]) -> str:
    """Say where events are missing, and what has them.

    Of {1: 12, 5: 12, 60: 3}: "12 in charts by 1s, 5s; 3 in charts by 1min; all others and the grand
    totals have them". Of {0: 3}: "3 in grand totals".
    """
    groups: dict[int, list[str]] = {}
    for precision in sorted(set(events) - {0}):
        groups.setdefault(events[precision], []).append(span(precision))
    parts = []
    for number in sorted(groups, reverse=True):
        widths = groups[number]
        more = f" … ({len(widths) - SHOWN} more)" if len(widths) > SHOWN else ""
        parts.append(f"{number:,} in charts by {', '.join(widths[:SHOWN])}{more}")
    if 0 in events:
        parts.append(f"{events[0]:,} in grand totals")
    else:
        parts.append("all others and the grand totals have them")
    return "; ".join(parts)


def _by(found: Sequence[Writer], amount: Callable[[Writer], int]) -> str:
    """Say how many writers something is about, and which of them most."""
    concerned = [writer for writer in found if amount(writer)]
    most = _name(max(concerned, key=amount))
    return most if len(concerned) == 1 else f"{len(concerned):,} writers, most by {most}"


def _name(writer: Writer) -> str:
    """Say who a writer is, e.g. "web-1 pid 4711"."""
    host, pid = (_plain(writer.text(field)) for field in ("host", "pid"))
    if not host and not pid:
        return f"producer {_plain(writer.producer, 8)}"
    return f"{host or '?'} pid {pid or '?'}"


def _plain(text: str, width: int = 60) -> str:
    cut = text[:width]
    if not cut.isascii() or not cut.isprintable():
        cut = ascii(cut)[1:-1]
    return cut if len(text) <= width else f"{cut}…"
