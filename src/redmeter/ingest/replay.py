"""An access log into the store: read lines, count hits, write the counts.

It counts `hits`, `hits_failed`, and `http_requests` by method, route and status class, with ids in
paths folded into a pattern. Query strings are never stored. Lines are summed by series and second
in memory and written in portions, so the cost of a log depends on its content, not on its length.

Malformed lines are counted, and the first few are reported. Requests that are older than the
retention are counted and left out. Every line is one of these, or about the log, also when the
store or the source fails on the way: the report is made as the work goes on.
"""

import contextlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from redmeter.errors import InvalidName, LimitExceeded, StoreError, StoreUnavailable
from redmeter.ingest.access_log import MalformedLine
from redmeter.ingest.formats import with_reader
from redmeter.ingest.lines import DamagedGzip
from redmeter.ingest.routes import Routes
from redmeter.names import HITS, HITS_FAILED, REQUESTS, canonical, is_failure, parse_name
from redmeter.reading.selection import MAX_SCANNED, LabelSets
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.results.recorder import AGED, FUTURE, MEMORY, RETENTION
from redmeter.store import Store
from redmeter.store.query import run_query
from redmeter.stored.keys import OTHER, Retention

#: Distinct (series, second) pairs held in memory before they are written.
MAX_PENDING = 200_000
#: Memory for events while the store is unreachable, bytes, and seconds until the next try: for a
#: source that may never end.
FOLLOWING_BYTES, AWAY_SECONDS = 16 * 2**20, 5.0
#: Malformed lines in the report, and characters of each.
EXAMPLES, EXAMPLE_CHARACTERS = 5, 120


@dataclass(slots=True)
class ReplayReport:
    """What a replay read and stored."""

    lines: int = 0
    requests: int = 0
    #: Malformed lines: reason -> count, and the first EXAMPLES of them.
    malformed: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    #: Requests older than every precision retains, and requests too far in the future.
    too_old: int = 0
    too_new: int = 0
    #: Requests counted under the route `(other)`, beyond max_routes.
    other_routes: int = 0
    #: Seconds added to every time, and the newest time of the log as it is written there.
    shift: int = 0
    newest: float | None = None
    #: Retained requests that failed.
    failed: int = 0
    #: Counts that the store has applied, and those whose outcome is unknown; see `counts`.
    stored: int = 0
    uncertain: int = 0
    #: Counts that the server refused at one precision or more, by reason.
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def retained(self) -> int:
        """Requests that at least one precision retains."""
        return self.requests - self.too_old - self.too_new

    @property
    def counts(self) -> int:
        """Counts written: two for each retained request, three if it failed."""
        return 2 * self.retained + self.failed


def replay(
    store: Store,
    source: Iterable[list[str]],
    *,
    shift: int = 0,
    max_routes: int = 500,
    flush: float = math.inf,
    report: ReplayReport | None = None,
    progress: Callable[[], None] | None = None,
    away: Callable[[StoreError], None] | None = None,
) -> ReplayReport:
    """Read a log to its end and store its counts.

    Args:
        source: batches of lines, see ingest.lines.Lines.
        shift: seconds added to every time.
        max_routes: number of distinct routes, with those that the store has already; the others
            become one, `(other)`.
        flush: write at least so often, seconds: for a source that may never end.
        report: filled as the work goes on, for who wants to know how far it came before an error.
        progress: called after every batch of lines.
        away: called while the store is unreachable; events are then kept in memory, and only at
            the end is it an error that they cannot be stored.

    Raises:
        StoreError: the store cannot be reached or refuses; `report.stored` counts are stored, and
            `report.uncertain` ones may be.
        DamagedGzip, OSError: the source cannot be read further; the lines before are stored.
    """
    report = ReplayReport() if report is None else report
    report.shift = shift
    clock = store.clock
    view, _ = store.read()
    routes = Routes(max_routes, _routes(store, view.retention))
    store.config()
    bulk = BulkWriter(store, limit=math.inf if flush == math.inf else FOLLOWING_BYTES)
    counts: dict[str, dict[int, int]] = {}
    names: dict[tuple[str, str, int], tuple[str, bool]] = {}
    started = written_at = clock.monotonic()
    pending, now = 0, view.now
    hits = counts.setdefault(HITS, {})

    def write(*, last: bool = True) -> None:
        nonlocal counts, hits, pending, written_at
        full, counts, pending = counts, {}, 0
        # A second without failures has none, which is not the same as unknown: see web.py.
        full[HITS_FAILED] = dict.fromkeys(hits, 0) | full.get(HITS_FAILED, {})
        hits = counts.setdefault(HITS, {})
        for name, seconds in full.items():
            for second, amount in seconds.items():
                bulk.add(name, second, amount, now)
        written_at = clock.monotonic()
        try:
            bulk.write(store.timeout, now)
        except StoreUnavailable as error:
            if last or away is None:
                raise
            away(error)
            written_at = clock.monotonic() + AWAY_SECONDS
        finally:
            _account(bulk, report)

    try:
        for reader, batch in with_reader(source):
            now = view.now + clock.monotonic() - started
            oldest, newest = _bounds(store.config().retention, now)
            for line in batch:
                try:
                    hit = reader.parse_hit(line)
                except MalformedLine as error:
                    _malformed(report, error.reason, line)
                    continue
                if hit is None:
                    continue
                report.requests += 1
                time = hit.time
                if report.newest is None or time > report.newest:
                    report.newest = time
                second = int(time // 1) + shift
                if second < oldest:
                    report.too_old += 1
                    continue
                if second > newest:
                    report.too_new += 1
                    continue
                key = (hit.method, routes.route(hit.path), hit.status // 100)
                known = names.get(key)
                if known is None:
                    known = names[key] = series_name(*key), is_failure(_status(key[2]))
                name, failed = known
                series = counts.get(name)
                if series is None:
                    series = counts[name] = {}
                before = len(hits) + len(series)
                hits[second] = hits.get(second, 0) + 1
                series[second] = series.get(second, 0) + 1
                if failed:
                    report.failed += 1
                    failures = counts.setdefault(HITS_FAILED, {})
                    failures[second] = failures.get(second, 0) + 1
                pending += len(hits) + len(series) - before
            report.lines += len(batch)
            report.other_routes = routes.overflowed
            if pending >= MAX_PENDING or clock.monotonic() - written_at >= flush:
                write(last=False)
            if progress:
                progress()
    except (DamagedGzip, OSError):
        write()
        raise
    write()
    return report


def _routes(store: Store, kept: Retention) -> set[str]:
    """Return the routes that a store has; they are kept longest at the widest precision.

    None where there are so many that the limit is long past: then it is of this run alone.
    """
    routes: set[str] = set()
    try:
        label_sets = LabelSets(store.keys, store.keys.known, max(kept), REQUESTS)
        _, names = run_query(store, lambda _: label_sets.names(MAX_SCANNED))
    except LimitExceeded:
        return routes
    for name in names:
        with contextlib.suppress(InvalidName):  # another program's
            routes.add(parse_name(name).label("route") or OTHER)
    return routes - {OTHER}


def _account(bulk: BulkWriter, report: ReplayReport) -> None:
    """Report the outcome of the counts."""
    health = bulk.health()
    report.stored = health.stored
    report.uncertain = health.uncertain + bulk.unacknowledged
    refused: dict[str, dict[str, int]] = {}
    for loss in health.losses:
        if loss.reason not in (AGED, MEMORY, RETENTION, FUTURE):
            by_series = refused.setdefault(loss.reason, {})
            by_series[loss.series] = max(loss.events, by_series.get(loss.series, 0))
    report.refused = {reason: sum(some.values()) for reason, some in refused.items()}


def _bounds(retention: Retention, now: float) -> tuple[int, float]:
    """Return the oldest and the newest second of which any precision shows something, or will."""
    oldest = min(retention.oldest(precision, now) for precision in retention)
    return oldest, now + max(precision * samples for precision, samples in retention.items())


def newest_time(source: Iterable[list[str]]) -> float | None:
    """Read a log to its end and return its newest time, Unix seconds; None where there is none."""
    newest: float | None = None
    with contextlib.suppress(DamagedGzip):  # reported when its hits are read
        for reader, batch in with_reader(source):
            for line in batch:
                try:
                    time = reader.parse_hit_time(line)
                except MalformedLine:
                    continue
                if time is not None and (newest is None or time > newest):
                    newest = time
    return newest


def _status(status_class: int) -> str:
    return f"{status_class}xx"


def series_name(method: str, route: str, status_class: int) -> str:
    """Return the series of a request, e.g. http_requests{method="GET",route="/",status="2xx"}."""
    labels = {"method": method, "route": route, "status": _status(status_class)}
    try:
        return canonical(REQUESTS, labels)
    except InvalidName:  # quotes and backslashes, escaped, made it too long
        return canonical(REQUESTS, labels | {"route": OTHER})


def _malformed(report: ReplayReport, reason: str, line: str) -> None:
    report.malformed[reason] = report.malformed.get(reason, 0) + 1
    if len(report.examples) < EXAMPLES:
        rest = len(line) - EXAMPLE_CHARACTERS
        report.examples.append(line[:EXAMPLE_CHARACTERS] + (f"… ({rest} more)" if rest > 0 else ""))
