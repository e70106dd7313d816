"""An access log into the store: read lines, count hits, write the counts.

It counts `hits`, `hits_failed`, and `http_requests` by method, route and status class, with ids in
paths folded into a pattern. Durations, where the log has them, are observed as the web integrations
do: `hits_seconds`, and `http_request_seconds` by method and route. Query strings are never stored.
Lines are summed by series and second in memory and written in portions, so the cost of a log
depends on its content, not on its length.

Malformed lines are counted, and the first few are reported. Requests that are older than the
retention are counted and left out. Every line is one of these, or about the log, also when the
store or the source fails on the way: the report is made as the work goes on.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from redmeter.errors import InvalidName, LimitExceeded, StoreError, StoreUnavailable
from redmeter.ingest.access_log import MalformedLine
from redmeter.ingest.formats import FORMATS, LogFormat
from redmeter.ingest.lines import DamagedFile
from redmeter.ingest.log_reader import LogReader, first_lines_first
from redmeter.ingest.routes import Routes
from redmeter.names import (
    HITS,
    HITS_FAILED,
    HITS_SECONDS,
    REQUESTS,
    SECONDS,
    canonical,
    is_failure,
    parse_name,
)
from redmeter.reading.selection import MAX_SCANNED, LabelSets
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.results.recorder import AGED, FUTURE, MEMORY, RETENTION
from redmeter.store import Store
from redmeter.store.query import run_query
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import OTHER, Retention

#: Distinct (series, second) pairs held in memory before they are written.
MAX_PENDING = 200_000
#: Memory for events while the store is unreachable, bytes, and seconds until the next try: for a
#: source that may never end.
FOLLOWING_BYTES, AWAY_SECONDS = 16 * 2**20, 5.0
_DAY: Final = 86_400
#: Requests far newer than all others are outliers if they are so few, or such a part of all; and
#: the gap that makes them far, seconds.
FEW, OUTLIERS, GAP = 5, 0.01, 7 * _DAY
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
    #: Lines about the log or the server, such as the columns of a W3C log.
    notices: int = 0
    #: Format -> requests; of a mixed log, several.
    formats: dict[str, int] = field(default_factory=dict)
    #: Requests older than every precision retains, and requests too far in the future: of a shifted
    #: log, far newer than the others.
    too_old: int = 0
    too_new: int = 0
    #: Requests counted under the route `(other)`, beyond max_routes.
    other_routes: int = 0
    #: Seconds added to every time, and the newest time of the log as it is written there.
    shift: int = 0
    newest: float | None = None
    #: Retained requests that failed, and retained durations.
    failed: int = 0
    durations: int = 0
    #: Counts that the store has applied, and those whose outcome is unknown; see `counts`.
    stored: int = 0
    uncertain: int = 0
    #: How far it came: bytes of the source that were read, and all; None if it is a pipe.
    bytes_read: int = 0
    bytes_total: int | None = None
    #: Counts that the server refused at one precision or more, by reason.
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def retained(self) -> int:
        """Requests that at least one precision retains."""
        return self.requests - self.too_old - self.too_new

    @property
    def counts(self) -> int:
        """Counts and durations written.

        Two for each retained request, three if it failed, and two more if its duration is known.
        """
        return 2 * self.retained + self.failed + 2 * self.durations


def replay(
    store: Store,
    source: Iterable[list[str]],
    *,
    formats: Mapping[str, LogFormat] = FORMATS,
    shift: int = 0,
    until: float = math.inf,
    max_routes: int = 500,
    flush: float = math.inf,
    report: ReplayReport | None = None,
    progress: Callable[[], None] | None = None,
    away: Callable[[StoreError], None] | None = None,
) -> ReplayReport:
    """Read a log to its end and store its counts.

    Args:
        source: batches of lines, see ingest.lines.Lines.
        formats: those that the log may have, by name.
        shift: seconds added to every time.
        until: Unix seconds in the log; requests after it are too new. See newest_time().
        max_routes: number of distinct routes, with those that the store has already; the others
            become one, `(other)`.
        flush: write at least so often, seconds: for a source that may never end. Requests without
            a time then have that of reading; otherwise they are malformed.
        report: filled as the work goes on, for who wants to know how far it came before an error.
        progress: called after every batch of lines.
        away: called while the store is unreachable; events are then kept in memory, and only at
            the end is it an error that they cannot be stored.

    Raises:
        StoreError: the store cannot be reached or refuses; `report.stored` counts are stored, and
            `report.uncertain` ones may be.
        DamagedFile, OSError: the source cannot be read further; the lines before are stored.
    """
    report = ReplayReport() if report is None else report
    report.shift = shift
    clock = store.clock
    view, _ = store.read()
    routes = Routes(max_routes, _routes(store, view.retention))
    store.config()
    follows = flush != math.inf
    bulk = BulkWriter(store, limit=FOLLOWING_BYTES if follows else math.inf)
    counts: dict[str, dict[int, int]] = {}
    durations = _Durations(bulk)
    names: dict[tuple[str, str, int], tuple[str, bool]] = {}
    started = written_at = clock.monotonic()
    pending, now = 0, view.now
    hits = counts.setdefault(HITS, {})
    reader = LogReader(formats, (lambda: now) if follows else None)
    slowly, main = reader.parse_hit, ""
    last = -math.inf

    def write(*, last: bool = True) -> None:
        nonlocal counts, hits, pending, written_at
        full, counts, pending = counts, {}, 0
        # A second without failures has none, which is not the same as unknown: see web.py.
        full[HITS_FAILED] = dict.fromkeys(hits, 0) | full.get(HITS_FAILED, {})
        hits = counts.setdefault(HITS, {})
        for name, seconds in full.items():
            for second, amount in seconds.items():
                bulk.add(name, second, amount, now)
        durations.add_to_bulk(now)
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
        for batch in first_lines_first(source):
            now = view.now + clock.monotonic() - started
            oldest, newest = _bounds(store.config().retention, now)
            newest = min(newest, until + shift)
            main, parse = reader.main or (main, slowly)
            requests = 0
            for line in batch:
                try:
                    hit = parse(line)
                except MalformedLine as refused:
                    try:
                        if parse is slowly:
                            raise
                        hit = reader.parse_refused(line, refused.reason)
                    except MalformedLine as error:
                        _malformed(report, error.reason, line)
                        continue
                if hit is None:
                    report.notices += 1
                    continue
                requests += 1
                time, method, path, status, _, duration = hit
                if time > last:
                    last = time
                second = int(time // 1) + shift
                if second < oldest:
                    report.too_old += 1
                    continue
                if second > newest:
                    report.too_new += 1
                    continue
                key = (method, routes.route(path), status // 100)
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
                if duration is not None and durations.add(key[:2], second, duration, now):
                    report.durations += 1
                    pending += 1
            report.lines += len(batch)
            report.requests += requests
            report.newest = last if report.requests else None
            report.other_routes = routes.overflowed
            report.formats = dict(reader.requests)
            if by_main := report.requests - reader.requests.total():
                report.formats[main] = report.formats.get(main, 0) + by_main
            if pending >= MAX_PENDING or clock.monotonic() - written_at >= flush:
                write(last=False)
            if progress:
                progress()
    except (DamagedFile, OSError):
        write()
        raise
    write()
    return report


class _Durations:
    """Durations that are not in the bulk writer yet, by series and interval.

    Those of one interval become one distribution. An interval is as wide as the buffer would keep
    it: a second for new requests, an hour or more for old ones.
    """

    def __init__(self, bulk: BulkWriter) -> None:
        self._bulk = bulk
        self._series: dict[str, dict[int, list[float]]] = {}
        #: Second -> start of its interval, None if none holds it; and a second of each interval.
        self._starts: dict[int, int | None] = {}
        self._seconds: dict[int, int] = {}
        self._names: dict[tuple[str, str], str] = {}

    def add(self, key: tuple[str, str], second: int, duration: float, now: float) -> bool:
        """Add the duration of a request; return False if histograms do not keep its time.

        Args:
            key: method and route.
            second: when, Unix seconds.
            duration: seconds.
            now: Unix seconds.
        """
        if second not in self._starts:
            width = self._bulk.histogram_width(now - second)
            self._starts[second] = start = second - second % width if width else None
            if start is not None:
                self._seconds[start] = second
        start = self._starts[second]
        if start is None:
            return False
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = _labeled(SECONDS, {"method": key[0], "route": key[1]})
        for series in (HITS_SECONDS, name):
            by_start = self._series.setdefault(series, {})
            by_start.setdefault(start, []).append(duration)
        return True

    def add_to_bulk(self, now: float) -> None:
        """Move all to the bulk writer."""
        for name, by_start in self._series.items():
            for start, values in by_start.items():
                distribution = Distribution()
                distribution.add_all(values)
                self._bulk.observe(name, self._seconds[start], distribution, now)
        self._series, self._starts, self._seconds = {}, {}, {}


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


def newest_time(
    source: Iterable[list[str]], formats: Mapping[str, LogFormat] = FORMATS
) -> float | None:
    """Read a log to its end and return its newest time, Unix seconds; None where there is none.

    A few requests far newer than all others, of a machine whose clock was wrong, are no part of
    the log: there are at most FEW of them, or OUTLIERS, and the gap before them is longer than GAP
    and than the rest of the log.
    """
    reader = LogReader(formats)
    days: dict[float, list[float]] = {}  # day -> its newest time, and its requests
    with contextlib.suppress(DamagedFile):  # reported when its hits are read
        for batch in first_lines_first(source):
            times = reader.parse_times(batch)
            newest = max(times, default=0.0)
            if times and min(times) // _DAY == newest // _DAY:
                times, added = [newest], len(times)
            else:
                added = 1
            for time in times:
                day = days.setdefault(time // _DAY, [time, 0])
                day[0] = max(day[0], time)
                day[1] += added
    return _without_outliers(sorted(days.items()))


def _without_outliers(days: list[tuple[float, list[float]]]) -> float | None:
    """Return the newest time of days, in order, that is no outlier."""
    total = sum(count for _, (_, count) in days)
    far = 0.0
    for at in range(len(days) - 1, 0, -1):
        far += days[at][1][1]
        if far > max(FEW, OUTLIERS * total) or 2 * far >= total:
            break
        before = days[at - 1][1][0]
        if days[at][0] * _DAY - before > max(GAP, before - days[0][0] * _DAY):
            return before
    return days[-1][1][0] if days else None


def _status(status_class: int) -> str:
    return f"{status_class}xx"


def series_name(method: str, route: str, status_class: int) -> str:
    """Return the series of a request, e.g. http_requests{method="GET",route="/",status="2xx"}."""
    return _labeled(REQUESTS, {"method": method, "route": route, "status": _status(status_class)})


def _labeled(name: str, labels: dict[str, str]) -> str:
    try:
        return canonical(name, labels)
    except InvalidName:  # quotes and backslashes, escaped, made it too long
        return canonical(name, labels | {"route": OTHER})


def shortened(line: str) -> str:
    """Return a line for a report: its beginning, and how much more there is."""
    rest = len(line) - EXAMPLE_CHARACTERS
    return line[:EXAMPLE_CHARACTERS] + (f"… ({rest} more)" if rest > 0 else "")


def _malformed(report: ReplayReport, reason: str, line: str) -> None:
    report.malformed[reason] = report.malformed.get(reason, 0) + 1
    if len(report.examples) < EXAMPLES:
        report.examples.append(shortened(line))
