"""The writers of the store, and the report that each of them publishes.

A writer is a producer that publishes a report from time to time; see store/producers.py.
Reports come from other processes, perhaps of other versions, so nothing in them is assumed: a value
that is not a number or a text counts as 0 or "".
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, NoReturn

from redmeter.errors import StoreError
from redmeter.health.check import DoctorCheck, Finding, Seen, listed
from redmeter.health.servers import SERVERS, OtherKeys
from redmeter.lazy_regex import late
from redmeter.reading.foreign_keys import there
from redmeter.results.recorder import AGED, EMPTIED, LOSS_REASONS, TOTAL, LossReason
from redmeter.store import Store
from redmeter.store.producers import INSTANCE_SECONDS, WRITER_SECONDS
from redmeter.store.query import Query
from redmeter.store.servers.replies import Command, Reply, pairs, raised, scored
from redmeter.stored.keys import MAX_TIME, Keys, span
from redmeter.stored.message import parse_source

#: Most writers that are read, the newest ones.
MAX_WRITERS = 1000
#: Longest report, bytes, and most braces and brackets in one; usual are 1,000 bytes and 10.
MAX_REPORT, MAX_BRACES = 65_536, 200
#: Keys scanned for producers' watermarks.
SCANNED = 10_000

_PRECISION = late("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Writer:
    """A producer and its last report."""

    #: 128 random bits, in hexadecimal.
    producer: str
    #: When it last published, by the server's clock, Unix seconds.
    seen: float
    #: Its instance number: 0, 1, 2 …; None if it has none.
    instance: int | None
    #: RecorderHealth.as_dict(), with `host` and `pid` for people.
    report: Mapping[str, Any]

    def alive(self, now: float) -> bool:
        """Return whether it has published recently.

        Args:
            now: the server's clock, Unix seconds.
        """
        return self.seen >= now - INSTANCE_SECONDS

    def vanished(self, now: float) -> bool:
        """Return whether it no longer publishes, and never published a last report.

        Args:
            now: the server's clock, Unix seconds.
        """
        longest = max(INSTANCE_SECONDS, 3 * (self.moment("interval") or 0.0))
        return self.report.get("ended") is False and self.seen < now - longest

    def number(self, field: str) -> int:
        """Return a number of events, 0 if it is missing."""
        return _number(self.report.get(field))

    def moment(self, field: str) -> float | None:
        """Return a time, Unix seconds; None if it is missing."""
        value = self.report.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if abs(value) < MAX_TIME else None

    def text(self, field: str) -> str:
        """Return a text, "" if it is missing."""
        value = self.report.get(field)
        return value if isinstance(value, str) else ""

    def counts(self, field: str) -> dict[str, int]:
        """Return counts by kind; {} if the report has none."""
        counts = {kind: _number(count) for kind, count in _items(self.report.get(field))}
        return {kind: count for kind, count in counts.items() if count}

    def trouble(self, kind: str) -> int:
        """Return how often a kind of trouble occurred."""
        return self.counts("troubles").get(kind, 0)

    def lost(self) -> dict[str, dict[int, int]]:
        """Return the events missing from single precisions: reason -> {precision: events}."""
        lost: dict[str, dict[int, int]] = {}
        for reason, by_precision in _items(self.report.get("lost")):
            for precision, events in _items(by_precision):
                if (number := _number(events)) and _PRECISION.fullmatch(precision):
                    lost.setdefault(reason, {})[int(precision)] = number
        return lost

    def past(self) -> dict[int, int]:
        """Return the events that were too old when they were recorded: {precision: events}."""
        counts = self.counts("past")
        return {int(text): number for text, number in counts.items() if _PRECISION.fullmatch(text)}


def writer_commands(keys: Keys) -> list[Command]:
    """Return the commands whose replies parse_writers() takes."""
    return [
        ("ZREVRANGE", keys.writers, "0", str(MAX_WRITERS - 1), "WITHSCORES"),
        ("HGETALL", keys.reports),
        ("HGETALL", keys.instances),
    ]


def parse_writers(
    now: float, replies: Sequence[Reply], *, needed: bool = True
) -> tuple[list[Writer], int]:
    """Return the writers of the last day, and the number of reports that cannot be parsed.

    Args:
        now: the server's clock, Unix seconds.
        needed: if False, a key that another program uses counts as empty.

    Raises:
        StoreError: the error that a reply is.
    """
    seen, reports, instances = (raised(r) if needed else there(r, []) for r in replies)
    texts, numbers = dict(pairs(reports)), dict(pairs(instances))
    writers, unreadable = [], 0
    for producer, score in scored(seen):
        if not now - WRITER_SECONDS <= score <= now + WRITER_SECONDS:
            continue  # expired; the next report removes it
        report = _parsed(texts.get(producer, b""))
        if report is None:
            unreadable += 1
            continue
        number = numbers.get(producer, b"")
        instance = int(number) if number.isdigit() and len(number) <= 10 else None
        name = producer.decode(errors="replace")
        writers.append(Writer(name, score, instance, report))
    return writers, unreadable


def _parsed(text: bytes) -> dict[str, Any] | None:
    """Parse a report; None if it is not one, or not printable."""
    if len(text) > MAX_REPORT or text.count(b"{") + text.count(b"[") > MAX_BRACES:
        return None
    try:
        report = json.loads(text, parse_float=_finite, parse_constant=_refuse)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        _refuse(text)
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that JSON has")


def _items(value: object) -> Iterable[tuple[str, object]]:
    return value.items() if isinstance(value, dict) else ()


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value < 2**63 else 0


# --- Findings ------------------------------------------------------------------------------------

# Pure functions from writers to findings. A report counts since its writer started, which may be
# long ago. Texts come from other processes and are shown as ASCII.

#: Events that have been buffered for longer are reported, seconds.
STUCK_SECONDS = 60.0
#: Most reasons, precisions and writers that are listed one by one.
MAX_FINDINGS = 5

_END_NORMALLY = (
    "let processes end normally, or call flush() before: SIGKILL, SIGTERM without a handler, "
    "os._exit and the kernel's OOM killer leave no time to store"
)
#: Problems that writers count as a single number: field, text and fix.
_TOTALS = (
    (
        "uncertain",
        "events have an unknown outcome: they were sent, and the watermark is gone",
        "let the server keep its keys: maxmemory-policy noeviction, appendonly yes",
    ),
    (
        "dropped",
        "events were dropped: no precision and no grand total has them",
        "the findings about missing events have the reasons",
    ),
    (
        "overflowed",
        'events are in series beyond a limit, labeled overflow="true" or named (other)',
        "keep ids, addresses and raw paths out of labels: give each few values",
    ),
)
#: Kinds of trouble that are reported: kind, text and fix.
_TROUBLES = (
    (
        "label-value",
        "label values were truncated, or had characters that are not allowed",
        "take label values from a small set of short texts: a plan, a route, a status",
    ),
    (
        "child-ended",
        "writers of forked processes ended before they had stored their events",
        _END_NORMALLY,
    ),
    (
        "unconfirmed",
        "batches are stored, but were not confirmed in time by a replica or the disk",
        "the warnings in the writers' own logs have the reason; see the finding about durability",
    ),
    (
        "callback-hangs",
        "calls of gauges' callbacks did not return within a second",
        "a callback must not wait for anything: have it return what another thread has measured",
    ),
)
_FEWER_PATTERNS = (
    "log values as arguments, so that the format is the pattern: log.error('order %s failed', id); "
    "redmeter logs LOGGER lists the patterns"
)
#: For a reason that is not in the table: an error code of the server.
_OTHER_REASON = LossReason("events", "", "the warnings in the writers' own logs have the details")


def writer_findings(
    now: float,
    writers: Sequence[Writer],
    unreadable: int,
    others: OtherKeys | None = None,
) -> Iterator[Finding]:
    """Judge the writers of the last day.

    Args:
        now: the server's clock, Unix seconds.
        unreadable: the number of reports that cannot be parsed.
        others: keys of other programs next to those of the store, if known.
    """
    size = len(writers) + unreadable
    alive = sum(writer.alive(now) for writer in writers)
    if size:
        within = (
            f"{size:,} within a day" if size < MAX_WRITERS else f"{size:,} or more within a day"
        )
        text = f"{alive:,} active within {span(INSTANCE_SECONDS)}, {within}"
    else:
        text = "none within a day (only buffered writers publish a report)"
    yield Finding("ok", "writers", text)
    yield from _emptied_store(writers, others)
    yield from _lost_events(writers)
    for field, text, fix in _TOTALS:
        yield from _counted(writers, methodcaller("number", field), text, fix)
    yield from _crowded_logs(writers)
    yield from _stuck_writers(now, writers)
    yield from _vanished_writers(now, writers)
    for kind, text, fix in _TROUBLES:
        yield from _counted(writers, methodcaller("trouble", kind), text, fix)
    yield from _pattern_versions(now, writers)
    if unreadable:
        yield Finding(
            "warn",
            "writers",
            f"reports that cannot be parsed: {unreadable:,}",
            "update this redmeter if a newer version writes here; otherwise find out which program "
            "writes them",
        )


def emptied_events(writers: Sequence[Writer]) -> int:
    """Return the acknowledged events that were in the store when it was emptied."""
    return sum(writer.number("emptied") for writer in writers)


def _emptied_store(writers: Sequence[Writer], others: OtherKeys | None) -> Iterator[Finding]:
    """Report that the store was emptied, and how many acknowledged events its writers had in it."""
    if not (gone := emptied_events(writers)):
        return
    lost = sum(writer.lost().get(EMPTIED, {}).get(TOTAL, 0) for writer in writers)
    by = _by(writers, lambda writer: writer.number("emptied"))
    text = (
        f"the store was emptied: of {gone:,} acknowledged events, {max(0, gone - lost):,} were "
        f"sent again and {lost:,} are lost; by {by}"
    )
    if others is None or not others.count:
        yield Finding("warn", "writers", text, LOSS_REASONS[EMPTIED].fix)
        return
    text += f"; the likely cause: {others.text()}, and FLUSHDB, as by cache.clear(), empties it"
    yield Finding("warn", "writers", text, others.fix)


def _lost_events(writers: Sequence[Writer]) -> Iterator[Finding]:
    """Report lost events by reason, the largest losses first."""
    lost: dict[str, dict[int, int]] = {}
    for writer in writers:
        for reason, by_precision in unexpected_losses(writer).items():
            sums = lost.setdefault(reason, {})
            for precision, events in by_precision.items():
                sums[precision] = sums.get(precision, 0) + events
    ordered = sorted(lost, key=lambda reason: (-max(lost[reason].values()), reason))
    for reason in ordered[:MAX_FINDINGS]:

        def amount(writer: Writer, reason: str = reason) -> int:
            return max(unexpected_losses(writer).get(reason, {}).values(), default=0)

        known = LOSS_REASONS.get(reason, _OTHER_REASON)
        text = f"{known.events} ({_plain(reason)}) are missing: {_missing(lost[reason])}"
        yield Finding("warn", "writers", f"{text}; by {_by(writers, amount)}", known.fix)
    if len(ordered) > MAX_FINDINGS:
        rest = listed([_plain(reason) for reason in ordered[MAX_FINDINGS:]], MAX_FINDINGS)
        text = f"events are missing for other reasons: {rest}"
        yield Finding("warn", "writers", text, _OTHER_REASON.fix)


def unexpected_losses(writer: Writer) -> dict[str, dict[int, int]]:
    """Return the losses of a writer that deserve a warning: reason -> {precision: events}.

    Events recorded with an old `at=` cannot be in charts that do not go back that far, as their
    program must expect. Events that were nearly too old may become so before they are stored, so up
    to as many again are expected of such a program.
    """
    lost, past = writer.lost(), writer.past()
    aged = {p: n for p, n in lost.pop(AGED, {}).items() if n > 2 * past.get(p, 0)}
    return {AGED: aged, **lost} if aged else lost


def _counted(
    writers: Sequence[Writer], amount: Callable[[Writer], int], text: str, fix: str
) -> Iterator[Finding]:
    """Report a problem that writers count, if one has."""
    if total := sum(map(amount, writers)):
        yield Finding("warn", "writers", f"{total:,} {text}; by {_by(writers, amount)}", fix)


def _crowded_logs(writers: Sequence[Writer]) -> Iterator[Finding]:
    """Report the loggers whose severities have too many patterns, the most messages first."""
    coarse, other = Counter[str](), Counter[str]()
    for writer in writers:
        coarse.update(writer.counts("coarse_messages"))
        other.update(writer.counts("other_messages"))
    crowded = (coarse + other).most_common()
    for source, _ in crowded[:MAX_FINDINGS]:
        logger, severity = parse_source(source)
        text = f"{_plain(logger)}, severity {_plain(severity)}, has too many patterns of messages"
        text += f": {coarse[source]:,} are counted under coarse ones, {other[source]:,} in (other)"
        if other[source]:
            text += ", where new ones may be hidden"
        yield Finding("warn", "writers", text, _FEWER_PATTERNS)
    if len(crowded) > MAX_FINDINGS:
        rest = f"… ({len(crowded) - MAX_FINDINGS:,} more loggers with too many patterns)"
        yield Finding("warn", "writers", rest, _FEWER_PATTERNS)


def _stuck_writers(now: float, writers: Sequence[Writer]) -> Iterator[Finding]:
    stuck = [writer for writer in writers if writer.alive(now) and _waits(writer) > STUCK_SECONDS]
    stuck.sort(key=lambda writer: -writer.number("buffered"))
    for writer in stuck[:MAX_FINDINGS]:
        waiting, seconds = writer.number("buffered"), _waits(writer)
        yield Finding(
            "warn",
            "writers",
            f"{_name(writer)} has not stored anything for {seconds:,.0f} s and buffers "
            f"{waiting:,} events: {_plain(writer.text('last_trouble'), 300)}",
            "fix this error: buffered events are lost when the process ends",
        )
    if len(stuck) > MAX_FINDINGS:
        yield Finding(
            "warn", "writers", f"… ({len(stuck) - MAX_FINDINGS:,} more that cannot store)"
        )


def _vanished_writers(now: float, writers: Sequence[Writer]) -> Iterator[Finding]:
    """Report processes that ended without storing their last events, as far as one can know."""
    vanished = [writer for writer in writers if writer.vanished(now)]
    if vanished:
        most = max(writer.moment("interval") or 0.0 for writer in vanished)
        text = (
            f"{len(vanished):,} stopped reporting without a last report, so they ended, hang or "
            f"are cut off: up to {most:g} s of the events of each are missing, and all that were "
            "buffered; "
            f"by {_by(vanished, lambda writer: 1 + writer.number('buffered'))}"
        )
        yield Finding("warn", "writers", text, _END_NORMALLY)


def _pattern_versions(now: float, writers: Sequence[Writer]) -> Iterator[Finding]:
    """Report writers that group messages differently, by their version of redmeter."""
    versions = {writer.number("patterns") for writer in writers if writer.alive(now)} - {0}
    if len(versions) > 1:
        shown = ", ".join(map(str, sorted(versions)))
        yield Finding(
            "warn",
            "writers",
            f"writers group messages by different versions of patterns: {shown}",
            "run the same version of redmeter everywhere: until two hours after that, messages "
            "without a format may seem new or gone",
        )


def _waits(writer: Writer) -> float:
    """Return for how long a writer had been unable to store when it published, seconds."""
    if not writer.number("buffered") or not writer.text("last_trouble"):
        return 0.0
    since = writer.moment("last_flush") or writer.moment("started")
    return 0.0 if since is None else writer.seen - since


def _missing(events: dict[int, int]) -> str:
    """Return which precisions lack how many events.

    Of {1: 12, 5: 12, 60: 3}: "12 in charts by 1s, 5s; 3 in charts by 1m; all others and the grand
    totals have them". Of {0: 3}: "3 in grand totals".
    """
    groups: dict[int, list[str]] = {}
    for precision in sorted(set(events) - {TOTAL}):
        groups.setdefault(events[precision], []).append(span(precision))
    parts = [
        f"{number:,} in charts by {listed(groups[number], MAX_FINDINGS)}"
        for number in sorted(groups, reverse=True)
    ]
    if TOTAL in events:
        parts.append(f"{events[TOTAL]:,} in grand totals")
    else:
        parts.append("all others and the grand totals have them")
    return "; ".join(parts)


def _by(writers: Sequence[Writer], amount: Callable[[Writer], int]) -> str:
    """Return how many writers a finding concerns, and the one with the largest amount."""
    concerned = [writer for writer in writers if amount(writer)]
    most = _name(max(concerned, key=amount))
    return most if len(concerned) == 1 else f"{len(concerned):,} writers, most by {most}"


def _name(writer: Writer) -> str:
    """Return a name of a writer for people, such as "web-1 pid 4711"."""
    host, pid = (_plain(writer.text(field)) for field in ("host", "pid"))
    if not host and not pid:
        return f"producer {_plain(writer.producer, 8)}"
    return f"{host or '?'} pid {pid or '?'}"


def _plain(text: str, width: int = 60) -> str:
    cut = text[:width]
    if not cut.isascii() or not cut.isprintable():
        cut = ascii(cut)[1:-1]
    return cut if len(text) <= width else f"{cut}…"


# --- The check of the doctor -----------------------------------------------------------------


@dataclass(slots=True)
class Reports:
    """The reports of all writers."""

    #: Writers that published one within the last day, newest first.
    writers: list[Writer]
    #: Reports that cannot be parsed.
    unreadable: int
    #: Why none could be read: another program's key, or an ACL that forbids it.
    error: StoreError | None
    #: Producers that wrote within the last day; None on a cluster, or with too many keys to scan.
    producers: int | None


def _read_reports(store: Store) -> Query[Reports]:
    keys = store.keys
    # On a cluster a process has a producer for each shard.
    spread = len(store.shards) > 1
    watermarks = [] if spread else [("SCAN", "0", "MATCH", keys.batch("*"), "COUNT", str(SCANNED))]
    view, replies = yield [*writer_commands(keys), *watermarks]
    reports, scanned = replies[: len(replies) - len(watermarks)], replies[-1]
    producers = None if spread else _producers(scanned)
    try:
        return Reports(*parse_writers(view.now, reports), None, producers)
    except StoreError as error:
        return Reports([], 0, error, producers)


def _producers(reply: Reply) -> int | None:
    if isinstance(reply, StoreError):
        return None
    cursor, keys = reply
    return len({key.rpartition(b":")[2] for key in keys}) if int(cursor) == 0 else None


def _report_findings(reports: Reports, seen: Seen) -> Iterator[Finding]:
    if reports.error is None:
        others = seen[SERVERS].other_keys
        yield from writer_findings(seen.view.now, reports.writers, reports.unreadable, others)
        return
    cause = _plain(str(reports.error), 300)
    text = f"{seen.keys.writers} and the keys of the reports cannot be read: {cause}"
    fix = "if another program uses these keys, choose another prefix"
    yield Finding("warn", "writers", text, fix)


WRITERS = DoctorCheck(_read_reports, _report_findings)
