"""What events in memory answer: pure functions, as readings of a store."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce

from redmeter.analysis.comparing.storms import SUM_WIDTH
from redmeter.names import HITS, HITS_FAILED, HITS_SECONDS, REQUESTS, SECONDS
from redmeter.reading.diagnosis.verdict_data import VerdictData
from redmeter.reading.exceptions import ExceptionWindow, StoredGroup, shares_of
from redmeter.reading.logs.frequencies import merge_variants
from redmeter.reading.selection import base_of, has_labels
from redmeter.recording.logging.exceptions import OccurrencesByInterval
from redmeter.results.logs import Frequency, LogSource, Message
from redmeter.results.series import CoveredWindow
from redmeter.results.summaries import HourlyStats, Statistics, Summary, summary_of
from redmeter.stored.exception import Details, Occurrences
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import HOUR, STEP, slice_start
from redmeter.stored.moments import merge_all
from redmeter.testing.recorder import Event, Logged


def event_sums(
    events: Iterable[Event], name: str, names: Collection[str], window: CoveredWindow
) -> Summary:
    """Return the summary of several histograms' values, merged."""
    precision, first, end = window.precision, window.since, window.until
    observed: dict[int, list[float]] = {}
    for event in events:
        if event.observed is not None and event.series in names and first <= event.time < end:
            observed.setdefault(slice_start(event.time, precision), []).append(event.observed)
    parts = {start: _distribution(values) for start, values in observed.items()}
    starts = range(min(parts, default=end), end, precision)
    return summary_of(
        merge_all(Distribution(), parts.values()),
        name,
        window,
        lambda: [parts.get(at) for at in starts],
    )


def _distribution(values: Sequence[float]) -> Distribution:
    made = Distribution()
    made.add_all(values)
    return made


def traffic(events: Sequence[Event], precision: int) -> VerdictData:
    """Return the requests that a deploy verdict compares."""
    values: dict[str, dict[int, list[float]]] = {}
    for event in events:
        if event.observed is not None and base_of(event.series) in (HITS_SECONDS, SECONDS):
            at = slice_start(event.time, precision)
            values.setdefault(event.series, {}).setdefault(at, []).append(event.observed)
    data = VerdictData(_requests(events, precision), sums=_requests(events, SUM_WIDTH))
    for name, by_start in values.items():
        data.times[name] = spread = {at: Distribution() for at in by_start}
        for at, some in by_start.items():
            spread[at].add_all(some)
    return data


def _requests(events: Iterable[Event], precision: int) -> dict[str, Mapping[int, int]]:
    counts: dict[str, dict[int, int]] = {}
    for event in events:
        if event.amount is not None and base_of(event.series) in (HITS, HITS_FAILED, REQUESTS):
            mine, at = counts.setdefault(event.series, {}), slice_start(event.time, precision)
            mine[at] = mine.get(at, 0) + event.amount
    return dict(counts)


def by_the_hour(events: Sequence[Event], series: str, now: float) -> Statistics:
    """Return the statistics of a histogram in this hour, and in the last one before it."""
    this = slice_start(now, HOUR)
    hours = {}
    observed = [e for e in events if e.series == series and e.observed is not None]
    for start in sorted({slice_start(event.time, HOUR) for event in observed}):
        values = [e.observed for e in observed if slice_start(e.time, HOUR) == start]
        m = _distribution([value for value in values if value is not None]).moments
        totals = m.exact_total, m.exact_mean, m.exact_stddev
        hours[start] = HourlyStats(start, m.count, m.low, m.high, *totals)
    before = [hour for start, hour in hours.items() if start < this]
    return Statistics(series, hours.get(this), before[-1] if before else None)


def event_distributions(
    events: Sequence[Event], names: Iterable[str], intervals: range
) -> dict[str, Distribution]:
    """Return the values of histograms within some intervals.

    Args:
        intervals: starts, in steps of the precision.
    """
    values: dict[str, list[float]] = {name: [] for name in names}
    for event in events:
        within = intervals.start <= event.time < intervals.stop
        if event.observed is not None and event.series in values and within:
            values[event.series].append(event.observed)
    return {name: _distribution(some) for name, some in values.items()}


def frequencies(
    messages: Iterable[Logged], now: float, *, sliding: bool = False
) -> list[Frequency]:
    """Return how often each pattern came in this hour and in the one before.

    Args:
        sliding: whether these are the last 60 minutes and the 60 before; else clock hours.
    """
    width = STEP if sliding else HOUR
    running = slice_start(now, width)
    start = running - HOUR if sliding else running
    groups: dict[tuple[str, str, str], list[Message]] = {}
    for one in messages:
        groups.setdefault((one.message.logger, one.message.severity, one.pattern), []).append(
            one.message
        )
    result = []
    for group, members in groups.items():
        times = sorted(message.time or 0.0 for message in members)
        starts = [slice_start(time, width) for time in times]
        count = sum(start <= at <= running for at in starts)
        before = sum(start - HOUR <= at < start for at in starts)
        if count or before:
            sample, ends = members[-1].text, (times[0], times[-1])
            result.append(Frequency(*group, count, before, *ends, sample, sliding))
    return merge_variants(result)


def stored_group(
    recorded: OccurrencesByInterval, group: str, window: ExceptionWindow, *, traceback: bool = False
) -> StoredGroup:
    """Return a group of exceptions that were recorded in memory.

    Args:
        recorded: start of an interval -> group -> exceptions.
        traceback: whether it is included.
    """
    parts = {start: groups[group] for start, groups in recorded.items() if group in groups}
    whole = reduce(Occurrences.merge, parts.values())
    counts = [0] * ((window.end - window.start) // window.precision)
    for start, part in parts.items():
        at = (start - window.start) // window.precision
        if 0 <= at < len(counts):
            counts[at] += part.events
    details = whole.details or Details("", "", "", "", "", "")
    routes, releases = shares_of(whole.routes), shares_of(whole.releases)
    return StoredGroup(
        group,
        (details.kind, details.message, details.place, details.log_place, details.function),
        whole.events,
        whole.first,
        whole.last,
        tuple(sorted(routes, key=lambda share: -share.count)),
        releases,
        counts,
        details.traceback if traceback else "",
        whole.coarse == group,
    )


def newest_messages(messages: Iterable[Message], keep: int) -> list[Message]:
    """Return the newest messages, so many of each logger and severity, the newest first."""
    kept: dict[tuple[str, str], list[Message]] = {}
    for message in messages:
        kept.setdefault((message.logger, message.severity), []).append(message)
    kept_messages = [message for messages_of in kept.values() for message in messages_of[-keep:]]
    return sorted(kept_messages, key=lambda message: message.time or 0.0)[::-1]


def sources(messages: Iterable[Logged]) -> list[LogSource]:
    """Return the loggers and severities there are, those that logged last first."""
    last: dict[tuple[str, str], float] = {}
    for message in (one.message for one in messages):
        source = message.logger, message.severity
        last[source] = max(last.get(source, -math.inf), message.time or 0.0)
    result = [LogSource(*source, time) for source, time in last.items()]
    return sorted(result, key=lambda source: source.last, reverse=True)


def labelled(names: Iterable[str], labels: Mapping[str, str] | None) -> list[str]:
    """Return the names that have these labels, whatever others they have."""
    return [name for name in names if has_labels(name, labels or {})]
