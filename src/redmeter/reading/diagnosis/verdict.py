"""Deploy verdicts: reads what analysis/comparing/verdict.py compares.

Two round trips: marks, totals and the counts of all routes; then the histograms of the busiest
routes. One more for each 1,000 label sets of requests beyond the first, and for log patterns.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from redmeter.analysis.comparing.changes import severity_rank, stopped
from redmeter.analysis.comparing.storms import SUM_WIDTH
from redmeter.analysis.comparing.verdict import count_tests, judge, ordered
from redmeter.analysis.comparing.verdict_metrics import has_history
from redmeter.clock import Zone
from redmeter.errors import InvalidValue
from redmeter.names import HITS, HITS_FAILED, HITS_SECONDS, REQUESTS, SECONDS
from redmeter.reading import marks as reading_marks
from redmeter.reading.diagnosis.verdict_data import (
    AGAINST,
    VerdictData,
    VerdictPlan,
    busiest_routes,
    plan,
    traffic_of,
)
from redmeter.reading.distributions import interval_distributions
from redmeter.reading.join import Ask, Joined, series_in
from redmeter.reading.logs import recent as logs
from redmeter.reading.page.http import route_of
from redmeter.reading.samples import counts_of
from redmeter.reading.selection import LabelSets
from redmeter.reading.totals import MAX_SAMPLED
from redmeter.results.logs import Frequency
from redmeter.results.verdict import (
    BETTER,
    NOT_KEPT,
    SAME,
    TOO_LITTLE,
    WATCHING,
    WORSE,
    Against,
    Judgment,
    Verdict,
    VerdictMetric,
    VerdictMix,
    VerdictPatterns,
    VerdictRow,
    VerdictWindow,
)
from redmeter.store import Store
from redmeter.store.query import Query, Read, run_query
from redmeter.store.servers.replies import is_misplaced, raised
from redmeter.stored.keys import HOUR, Keys, entry, span
from redmeter.types import Mark

#: Label sets of requests that one round trip reads, and round trips at most.
_PAGE, MAX_PAGES = 1_000, 10
#: Names of durations that are read.
_MAX_SECONDS = 10_000
#: Log patterns of each kind.
_MAX_PATTERNS = 50

#: Totals of requests.
_TOTALS = (HITS, HITS_FAILED)

_OTHER = "(other)"


class VerdictQuestion(NamedTuple):
    """Which verdict is asked for: see Queries.verdict()."""

    #: The label of a mark; None: the newest one, unless `since` is given.
    mark: str | None
    #: The moment of the deploy, Unix seconds.
    since: float | None
    against: Against
    precision: int


def find_mark(
    asked: VerdictQuestion, marks: Sequence[Mark], now: float
) -> tuple[Mark | None, float]:
    """Return the mark and the moment of a deploy.

    Args:
        marks: the oldest first.

    Raises:
        InvalidValue: there is no such mark, or the moment is in the future.
    """
    if asked.since is not None:
        if asked.since > now:
            raise InvalidValue(asked.since, "this moment is in the future")
        return None, asked.since
    matches = [one for one in marks if one.time <= now and asked.mark in (None, one.label)]
    if not matches:
        if asked.mark is None:
            raise InvalidValue("", "there is no mark yet: set one when you deploy, or give since")
        raise InvalidValue(asked.mark, "there is no mark with this label")
    return matches[-1], matches[-1].time


def read_verdict(store: Store, asked: VerdictQuestion) -> tuple[float, Verdict]:
    """Read the verdict about a deploy.

    Returns:
        The server's clock, Unix seconds, and the verdict.

    Raises:
        InvalidValue: see find_mark().
        UnknownPrecision: the store does not keep it.
        StoreError: the server is unreachable or refuses.
    """
    view, (marks, windows, data) = run_query(store, lambda _: _read(store.keys, asked, store.zone))
    patterns = logs.read_frequencies(store).frequencies
    return view.now, build(asked, view.now, marks, windows, data, patterns)


def _read(
    keys: Keys, question: VerdictQuestion, zone: Zone
) -> Query[tuple[list[Mark], VerdictPlan, VerdictData]]:
    width = question.precision
    requests = LabelSets(keys, keys.known, width, REQUESTS)
    seconds = LabelSets(keys, keys.hists, width, SECONDS)
    sampled = LabelSets(keys, keys.hists, width, HITS_SECONDS)
    # Against another day, the noise is that of pairs of intervals.
    widths = [width] if AGAINST[question.against] else [width, SUM_WIDTH]
    asks = [Ask("HGETALL", keys.key("count") + entry(each, "")) for each in widths]
    reads: list[Read] = [
        reading_marks.asked(keys),
        requests.join(asks, _PAGE),
        seconds.join([], _MAX_SECONDS),
        sampled.join([], MAX_SAMPLED),
        *(("HGETALL", keys.count(each, name)) for each in widths for name in _TOTALS),
    ]
    view, replies = yield reads
    marks = reading_marks.answered(raised(replies[0]))
    _, moment = find_mark(question, marks, view.now)
    kept = view.retention, view.histograms
    windows = plan(moment, view.now, question.against, width, *kept, zone)
    data = VerdictData()
    if not windows.compares:
        return marks, windows, data
    kinds = [data.counts, data.sums][: len(widths)]
    totals = iter(replies[4:])
    for counts in kinds:
        for name, reply in zip(_TOTALS, totals, strict=False):
            counts[name] = {} if is_misplaced(reply) else counts_of(reply)
    joined = yield from requests.read_on(
        Joined(replies[1], len(asks), needed=False), asks, _PAGE, MAX_PAGES * _PAGE
    )
    data.complete = len(joined[-1].members) < _PAGE
    for name, _, values in series_in(joined):
        for counts, reply in zip(kinds, values, strict=True):
            counts[name] = counts_of(reply)
    if windows.not_kept is None:
        chosen = set(busiest_routes(data.counts, windows.starts))
        timed = [Joined(reply, 0, needed=False) for reply in replies[2:4]]
        names = [
            name
            for name, parsed, _ in series_in(timed)
            if parsed.base == HITS_SECONDS or route_of(parsed.labels) in chosen
        ]
        series = [HITS_SECONDS, *names]
        data.times |= yield from interval_distributions(keys, series, width, windows.starts)
    return marks, windows, data


# --- The verdict ---------------------------------------------------------------------------


def build(
    asked: VerdictQuestion,
    now: float,
    marks: Sequence[Mark],
    windows: VerdictPlan,
    data: VerdictData,
    patterns: Sequence[Frequency],
) -> Verdict:
    """Make a verdict of stored data.

    Args:
        now: Unix seconds.
        marks: the oldest first.
        patterns: the frequencies of log patterns within the last two hours.
    """
    mark, moment = find_mark(asked, marks, now)
    overall, routes, number = None, list[VerdictRow](), 0
    noise = None
    if windows.compares:
        traffic, number = traffic_of(windows, data)
        if windows.noise and has_history(traffic[0]):
            since = windows.noise.until - len(traffic[0].history) * SUM_WIDTH
            noise = VerdictWindow(since, windows.noise.until)
        missing = f"histograms of {span(windows.precision)} do not reach back to the baseline"
        rows = judge(
            traffic,
            lengths=windows.lengths,
            seconds=_lengths(windows),
            level=windows.level,
            paired=windows.paired,
            without_times=missing if windows.not_kept else "",
        )
        overall, routes = rows[0], ordered(rows[1:])
    mix = _mix(overall)
    judgment, reason = _judgment(windows, overall, routes, mix)
    return Verdict(
        judgment,
        reason,
        mark,
        moment,
        asked.against,
        asked.precision,
        windows.looks,
        windows.look,
        windows.next_look,
        windows.after,
        windows.before,
        windows.not_kept,
        tests=count_tests([*([overall] if overall else []), *routes]),
        overall=overall,
        mix=mix,
        routes=tuple(routes),
        routes_of=number,
        patterns=changed_patterns(
            patterns, moment, windows.after.until if windows.after else None, now
        ),
        noise=noise,
        marks=tuple(one for one in marks if one != mark and _within(one, windows)),
    )


def _lengths(windows: VerdictPlan) -> tuple[float, float]:
    assert windows.after is not None
    assert windows.before is not None
    after, before = windows.after, windows.before
    return float(after.until - after.since), float(before.until - before.since)


def _within(mark: Mark, windows: VerdictPlan) -> bool:
    return any(
        window is not None and window.since <= mark.time < window.until
        for window in (windows.after, windows.before)
    )


# --- In words ------------------------------------------------------------------------------


def _judgment(
    windows: VerdictPlan,
    overall: VerdictRow | None,
    routes: Sequence[VerdictRow],
    mix: VerdictMix,
) -> tuple[Judgment, str]:
    if windows.look is None:
        assert windows.next_look is not None
        at = datetime.fromtimestamp(windows.next_look, UTC)
        return TOO_LITTLE, f"the first look is complete at {at:%H:%M:%S} UTC"
    if overall is None:
        missing = windows.not_kept
        assert missing is not None
        back = datetime.fromtimestamp(missing.oldest, UTC)
        width = span(windows.precision)
        return NOT_KEPT, (
            f"{missing.of} of {width} reach back to {back:%Y-%m-%d %H:%M} UTC, after the baseline"
        )
    rows = [*routes, overall]  # A route explains more than the whole.
    for judgment in (WORSE, WATCHING, BETTER):
        changed = [
            _sentence(row, what, metric)
            for row in rows
            for what, metric in _metrics(row)
            if metric.verdict == judgment
        ]
        if changed:
            more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
            if judgment == WATCHING:
                return judgment, f"worse so far: {changed[0]}{more}; {_evidence(windows)}"
            if judgment == WORSE or overall.verdict not in (TOO_LITTLE, NOT_KEPT):
                return judgment, changed[0] + more
    if overall.verdict in (TOO_LITTLE, NOT_KEPT):
        reasons = [
            f"{what}: {metric.reason}"
            for what, metric in _metrics(overall)
            if metric.verdict == overall.verdict
        ]
        return overall.verdict, "; ".join(reasons)
    if mix.reason:
        return SAME, f"no route is better or worse; {mix.reason}"
    return SAME, "no change of the error rate or p95 beyond chance"


def _evidence(windows: VerdictPlan) -> str:
    """Return what a rise that could be a storm still needs."""
    if windows.next_look is None:
        return "only for a part of the time, as a storm of some minutes"
    return "it could be a storm until it has lasted for more than 8 minutes"


def _mix(overall: VerdictRow | None) -> VerdictMix:
    """Return the effect of a changed mix of routes; an effect for the worse comes first."""
    if overall is None:
        return VerdictMix()
    for judgment in (WORSE, BETTER):
        effects = [
            f"{_sentence(overall, what, metric)}, of which {_signed(what, metric.mix)} by the mix"
            for what, metric in _metrics(overall)
            if metric.mix is not None and metric.mix_verdict == judgment
        ]
        if effects:
            return VerdictMix(judgment, "; ".join(effects))
    return VerdictMix()


def _signed(what: str, value: float) -> str:
    sign = "+" if value >= 0 else "-"
    if what == "error rate":
        return f"{sign}{abs(value) * 100:.3g} percentage points"
    return f"{sign}{_value(what, abs(value))}"


def _metrics(row: VerdictRow) -> tuple[tuple[str, VerdictMetric], ...]:
    return ("error rate", row.error_rate), ("p95", row.p95)


def _sentence(row: VerdictRow, what: str, metric: VerdictMetric) -> str:
    of = "of all requests" if row.route is None else f"of {row.route}"
    values = [_value(what, one) for one in (metric.before, metric.after)]
    return f"{what} {of}: {values[0]} → {values[1]}"


def _value(what: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    if what == "error rate":
        return f"{value * 100:.3g} %"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def changed_patterns(
    frequencies: Iterable[Frequency], since: float, until: float | None, now: float
) -> VerdictPatterns:
    """Return the log patterns that are new since a deploy, and those that vanished.

    A pattern vanished if it was not seen since, until the end of a complete look, and that is more
    than chance: see stopped(). The rate before is that of an hour or more, so that a burst right
    before the deploy is not taken for a rate.

    Args:
        frequencies: of the last hour and of the hour before.
        since: the moment of the deploy; now: Unix seconds.
        until: end of the newest complete look; None: no look is complete, so none has vanished.
    """
    kept_since = now - 2 * HOUR
    if since <= kept_since:
        return VerdictPatterns()
    new, vanished = [], []
    for one in frequencies:
        if one.pattern == _OTHER or one.first is None:
            continue
        if since <= one.first < (until or now):
            new.append(one)
        elif until is not None and one.last is not None and one.last < since:
            known = max(since - max(one.first, kept_since), HOUR)
            if stopped(one.count + one.before, (until - since) / known):
                vanished.append(one)
    for patterns in (new, vanished):
        patterns.sort(key=lambda one: (severity_rank(one.severity), -one.count - one.before))
    return VerdictPatterns(True, tuple(new[:_MAX_PATTERNS]), tuple(vanished[:_MAX_PATTERNS]))
