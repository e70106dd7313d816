"""The totals of a web application: requests, the share that failed, the p95 response time.

From `hits`, `hits_failed` and `hits_seconds`. Each is one series, so figures and curves are exact
at any number of routes, and they agree: both are made of the same intervals.

Writers add 0 to `hits_failed` where they add to `hits`. So failures are known from its first
interval on; but where `hits` is older, that interval may hold requests of a writer that did not
count failures yet, so it is left out. The error rate is that of the requests whose failures are
known.

Durations that are samples are in label sets, `hits_seconds{sampled="0.1"}`, one for each share that
any process is configured with.

Two round trips.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from redmeter.names import HITS, HITS_FAILED, HITS_SECONDS
from redmeter.reading.distributions import slices_answered, slices_asked
from redmeter.reading.join import Joined, series_in
from redmeter.reading.page.curves import (
    QUANTILE,
    Curve,
    counted,
    percentile,
    spread,
    summed,
)
from redmeter.reading.ranking import quantile_of
from redmeter.reading.samples import number_of
from redmeter.reading.selection import LabelSets, hashes_of
from redmeter.reading.windows import LITTLE, Coverage, whole_window
from redmeter.results.summaries import distributions
from redmeter.store import View, indexes
from redmeter.store.query import Query, Read, in_parts
from redmeter.store.servers.replies import Reply, is_misplaced, raised
from redmeter.stored.counter import count_of
from redmeter.stored.keys import Keys, slice_start

#: Shares of sampled durations that are read.
MAX_SAMPLED = 20


class Failures(NamedTuple):
    """Failed requests, and the requests whose failures are known."""

    failed: int
    of: int

    @property
    def rate(self) -> float | None:
        """The share that failed, 0 to 1; None where it is unknown."""
        return min(self.failed / self.of, 1.0) if self.of else None


@dataclass(slots=True)
class Durations:
    """The response times of all requests, seconds."""

    #: The p95 over time, within the window, and right before it; None where there are no durations.
    curve: Curve
    p95: float | None
    p95_before: float | None
    #: Whether only some requests were timed.
    sampled: bool


@dataclass(slots=True)
class Totals:
    """All requests within a window, and right before it."""

    #: Whether requests were ever counted, and can be read.
    exist: bool
    #: Requests and failed requests over time; that of failures begins where they are known.
    hits: Curve
    failed: Curve
    count: int
    #: Requests before the window; None where nothing keeps them.
    count_before: int | None
    #: Whether `hits` began within the time before, which is no measure then.
    began: bool
    failures: Failures
    failures_before: Failures
    #: None where they were not read.
    durations: Durations | None = None
    #: The same curves for a chart: of all samples that are kept, whatever the window is.
    drawn: list[Curve] = field(default_factory=list)

    def failures_since(self) -> int | None:
        """Return since when failures are known, Unix seconds; None: since the first request."""
        return _later(self.failed, self.hits)

    def durations_since(self) -> int | None:
        """Return the same of durations."""
        return None if self.durations is None else _later(self.durations.curve, self.hits)


def request_totals(
    keys: Keys, window: Coverage, observed: Coverage, *, durations: bool = True
) -> Query[Totals]:
    """Read the totals.

    Args:
        window: of counters.
        observed: of histograms.
        durations: read `hits_seconds`, too.
    """
    reads: list[Read] = [
        *hashes_of(keys, "counter", [HITS, HITS_FAILED], window.fine),
        indexes.grand_total(keys, HITS),
    ]
    if durations:
        label_sets = LabelSets(keys, keys.hists, observed.fine, HITS_SECONDS)
        reads.append(label_sets.join([], MAX_SAMPLED))
    view, (counts, failures, ever, *joins) = yield reads
    now = view.now
    hits, failed = _both(counts, failures, window, view)
    whole_time = whole_window(view.retention, window.fine)
    drawn = [hits, failed] if window == whole_time else _both(counts, failures, whole_time, view)

    before, earlier = window.slices_before(now), observed.slices_before(now)
    since = min((starts[0] for starts in before.values()), default=0)
    if before:  # The interval before that one shows whether it is known as a whole.
        oldest = next(width for width, starts in before.items() if starts[0] == since)
        before[oldest].insert(0, since - oldest)
    joined = [Joined(join, 0, needed=False) for join in joins]
    sampled = [name for name, _, _ in series_in(joined)]
    timed = [HITS_SECONDS, *sampled] if durations else []
    reads_before = [
        [("HMGET", keys.count(width, name), *map(str, starts)) for width, starts in before.items()]
        for name in (HITS, HITS_FAILED)
    ]
    *both, spreads, spreads_before = yield from in_parts(
        [
            *reads_before,
            hashes_of(keys, "histogram", timed, observed.fine),
            slices_asked(keys, timed, earlier) if earlier else [],
        ]
    )
    old, old_failed = (_counts(before, replies) for replies in both)
    count = _sum(hits)
    count_before = (
        sum(count for at, count in old.items() if at >= since) if window.earlier else None
    )
    known = count + (count_before or 0)
    result = Totals(
        bool(hits.values) or (number_of(ever) > 0 and not is_misplaced(counts)),
        hits,
        failed,
        count,
        count_before,
        # Next to nothing was before that.
        began=bool(count) and number_of(ever) - known <= LITTLE * known,
        failures=Failures(_sum(failed), _sum(hits, failed.start) if failed.values else 0),
        failures_before=_failures(old, old_failed, since),
        drawn=[*drawn],
    )
    if durations:
        summary = summed(HITS_SECONDS, spreads, observed, view.histograms, now)
        old_parts = slices_answered(timed, earlier, spreads_before, needed=False) if earlier else {}
        curve = percentile(distributions(summary))
        result.durations = Durations(
            curve,
            summary.p95,
            quantile_of(QUANTILE, old_parts.values()),
            sampled=summed("", spreads[2:], observed, view.histograms, now).count > 0,
        )
        if drawn[0] is not hits:
            all_time = whole_window(view.histograms, observed.fine)
            curve = spread(HITS_SECONDS, spreads, all_time, view.histograms, now)
        result.drawn.append(curve)
    return result


def _both(counts: Reply, failures: Reply, window: Coverage, view: View) -> tuple[Curve, Curve]:
    """Return the curves of requests and of failures within a window."""
    hits, failed = (
        counted(name, [reply], window, view.retention, view.now)
        for name, reply in ((HITS, counts), (HITS_FAILED, failures))
    )
    return hits, _known(failed, hits)


def _known(failed: Curve, hits: Curve) -> Curve:
    """Leave out the first interval of failures where there were requests before it."""
    if failed.values and hits.values and hits.start < failed.start:
        failed.values = failed.values[1:]
        failed.start += failed.precision
    return failed


def _failures(hits: Mapping[int, int], failed: Mapping[int, int], since: int) -> Failures:
    """Count the failures of intervals by their starts.

    Intervals before `since` are left out, and so is the first one with failures if there were
    requests before it: failures may not have been counted in all of it.
    """
    first = min(failed, default=0)
    older = min(hits, default=first) < first
    known = [
        at for at in hits if failed and at >= since and (at > first or (at == first and not older))
    ]
    return Failures(sum(failed.get(at, 0) for at in known), sum(hits[at] for at in known))


def _counts(asked: Mapping[int, Sequence[int]], replies: Sequence[Reply]) -> dict[int, int]:
    """Read intervals of a counter: start -> count.

    Args:
        asked: precision -> starts, in the order of the replies.
    """
    counts = {}
    for starts, reply in zip(asked.values(), replies, strict=True):
        if is_misplaced(reply):
            continue
        for start, text in zip(starts, raised(reply), strict=True):
            if text is not None:
                try:
                    counts[start] = count_of(text)
                except ValueError:
                    continue  # another program's
    return counts


def _sum(curve: Curve, since: int = 0) -> int:
    first = max(0, (since - curve.start) // curve.precision)
    return int(sum(value or 0 for value in curve.values[first:]))


def _later(curve: Curve, hits: Curve) -> int | None:
    """Return where a curve begins, if that is after the first request."""
    later = curve.values and hits.values and curve.start > slice_start(hits.start, curve.precision)
    return curve.start if later else None
