"""Deploy verdicts: which routes are worse after a deploy, and is the whole?

Each route, and all requests together, have two tests: of the error rate and of p95
(significance.py). Traffic is reported and not judged. A change is reported if it is unlikely to be
chance among all tests of all looks, and large enough to matter:

    looks       a verdict is wanted after 5 minutes, and a better one after 15 and 60. Each of these
                fixed looks gets an equal part of the error budget of 5 % (Bonferroni)
    routes      within a look, the tests of all routes and metrics share its part (Holm, 1979)
    margins     the hypothesis that is tested is not "no change at all", which no deploy is, but
                "at most a quarter more errors", "p95 at most two buckets (9 %) higher"
    effects     and the difference itself is at least 0.1 percentage points, or 1 ms
    too little  a metric is "the same" only if a large change would have been seen: three times the
                error rate (or one percentage point), twice the p95. Else there is too little data

Judged by simulation in benchmarks/verdict.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from redmeter.analysis.comparing.mix import Mix, same_mix, shift_errors
from redmeter.analysis.comparing.significance import (
    PER_DOUBLING,
    QUANTILE,
    BucketCounts,
    Counts,
    Dispersion,
    RateTest,
    count_slow,
    dispersions,
    holm,
    p95_ratio_interval,
    paired_dispersion,
    ratio_interval,
    rise,
    slow_edge,
    slowest,
    sum_counts,
    total_counts,
    upper_share,
)
from redmeter.results.verdict import (
    BETTER,
    NOT_KEPT,
    SAME,
    TOO_LITTLE,
    WORSE,
    Judgment,
    VerdictMetric,
    VerdictRow,
    VerdictTraffic,
)

#: Seconds of the longer blocks of each look, by which clusters are found.
BLOCKS: Final = {300: 300, 900: 480, 3600: 600}
#: Requests that each window of a route must have.
MIN_REQUESTS: Final = 20
#: Factors within which a change is none: of the error rate, and buckets of p95.
RATE_MARGIN, P95_MARGIN = 1.25, 2
#: Least differences: of the error rate, and of p95, seconds.
RATE_DIFFERENCE, P95_DIFFERENCE = 0.001, 0.001
#: Factors that must be excluded for "same"; of the error rate alternatively a difference.
LARGE_RATE, LARGE_P95, LARGE_DIFFERENCE = 3.0, 2.0, 0.01
#: Standard errors that the effect of a mix of routes has at least.
MIX_ERRORS: Final = 4.0
#: Pairs of intervals that a comparison with another day needs.
MIN_PAIRS: Final = 6


@dataclass(slots=True)
class Traffic:
    """The requests of a route in both windows."""

    #: None for all requests.
    route: str | None
    #: Failures and requests of each interval, oldest first.
    after: Sequence[Counts] = ()
    before: Sequence[Counts] = ()
    #: Response times by interval; and p95 of both windows, seconds.
    times_after: Sequence[BucketCounts] = ()
    times_before: Sequence[BucketCounts] = ()
    p95_after: float | None = None
    p95_before: float | None = None
    #: The response times of each window, merged; None: judge() merges them.
    all_after: BucketCounts | None = None
    all_before: BucketCounts | None = None
    #: If the windows are a day or a week apart: intervals before the deploy, each with the one a
    #: day or a week earlier.
    pairs: Sequence[tuple[Counts, Counts]] = ()
    times_pairs: Sequence[tuple[BucketCounts, BucketCounts]] = ()

    def whole(self, side: int) -> BucketCounts:
        """Return the response times of a window: 0 for after, 1 for before."""
        if side:
            return sum_counts(self.times_before) if self.all_before is None else self.all_before
        return sum_counts(self.times_after) if self.all_after is None else self.all_after


@dataclass(slots=True)
class _Tested:
    """A metric with the direction in which it changed."""

    metric: VerdictMetric
    rose: bool = True
    #: Whether the change is large enough to matter, and whether a large one is excluded.
    matters: bool = False
    excluded: bool = False
    p: float | None = None
    #: The effect of the mix of routes, in standard errors.
    mix_errors: float = 0.0


class _Sides(NamedTuple):
    """Tested counts by interval of both windows, weighted if they are of all requests."""

    after: Sequence[Counts]
    before: Sequence[Counts]
    #: By how much weights raise the variance of either.
    effects: tuple[float, float] = (1.0, 1.0)
    mix_errors: float = 0.0

    def scaled(self, estimates: Sequence[Dispersion]) -> list[Dispersion]:
        """Return estimates of the dispersion that include the weights."""
        after, before = (max(effect, 1.0) for effect in self.effects)
        return [
            one._replace(after=one.after * after, before=one.before * before) for one in estimates
        ]


def judge(
    traffic: Sequence[Traffic],
    *,
    lengths: Sequence[int],
    seconds: tuple[float, float],
    level: float,
    paired: bool = False,
    without_times: str = "",
) -> list[VerdictRow]:
    """Judge routes; their order is kept.

    Args:
        traffic: all requests, and each route.
        lengths: of blocks, in intervals.
        seconds: the length of the windows, after and before.
        level: the part of the error budget that this look has.
        paired: whether the windows are a day or a week apart.
        without_times: why there are no response times; "" if there are.
    """
    rows = []
    for one in traffic:
        routes = [] if one.route is not None else [each for each in traffic if each is not one]
        rate = _compare(_RATE, one, routes, lengths, paired=paired)
        times = (
            _Tested(VerdictMetric(NOT_KEPT, reason=without_times))
            if without_times
            else _compare(_TIMES, one, routes, lengths, paired=paired)
        )
        rows.append((rate, times))
    tested = [test for row in rows for test in row]
    for rose in (True, False):
        probabilities = holm(
            [None if t.p is None else t.p if t.rose is rose else 1.0 for t in tested]
        )
        for test, adjusted in zip(tested, probabilities, strict=True):
            if test.p is not None and adjusted is not None and test.rose is rose:
                test.metric = _judged(test, adjusted, level)
    return [_row(one, *row, seconds) for one, row in zip(traffic, rows, strict=True)]


def count_tests(rows: Sequence[VerdictRow]) -> int:
    """Return how many tests were made."""
    return sum(metric.p is not None for row in rows for metric in (row.error_rate, row.p95))


def _judged(test: _Tested, adjusted: float, level: float) -> VerdictMetric:
    metric = replace(test.metric, p_adjusted=adjusted)
    if adjusted <= level:
        if test.matters:
            return replace(metric, verdict=WORSE if test.rose else BETTER)
        return replace(metric, verdict=SAME, reason="below the least difference that matters")
    if test.excluded:
        return replace(metric, verdict=SAME)
    return replace(metric, verdict=TOO_LITTLE, reason="a large change could not be seen yet")


class _Measure(NamedTuple):
    """How a metric is tested."""

    test: Callable[..., _Tested]
    #: The requests of both windows that it is a measure of.
    sizes: Callable[[Traffic], tuple[float, float]]
    #: The least change that matters: as a factor, and as a difference.
    factor: float
    difference: float


def _compare(
    measure: _Measure,
    one: Traffic,
    routes: Sequence[Traffic],
    lengths: Sequence[int],
    *,
    paired: bool,
) -> _Tested:
    """Test a route, or all requests at the same mix of routes; and judge the mix itself."""
    sizes = [measure.sizes(each) for each in routes]
    mix = same_mix(measure.sizes(one), sizes, MIN_REQUESTS) if routes else None
    if mix is None:
        return measure.test(one, lengths, paired=paired)
    result = measure.test(one, lengths, paired=paired, mix=mix, routes=routes)
    before, effect = result.metric.before, result.metric.mix
    if effect is not None and before is not None:
        least = max(measure.difference, (measure.factor - 1) * min(before, before + effect))
        seen = abs(effect) >= least and result.mix_errors >= MIX_ERRORS
        judged: Judgment = (WORSE if effect > 0 else BETTER) if seen else SAME
        result.metric = replace(result.metric, mix_verdict=judged)
    return result


def _rate(
    one: Traffic,
    lengths: Sequence[int],
    *,
    paired: bool,
    mix: Mix | None = None,
    routes: Sequence[Traffic] = (),
) -> _Tested:
    after, before = total_counts(one.after), total_counts(one.before)
    now, then = _share(after), _share(before)
    metric = _metric(now, then)
    reason = _missing(after.of, before.of, "requests")
    if paired and len(one.pairs) < MIN_PAIRS:
        reason = reason or _few_pairs(one.pairs)
    if reason or now is None or then is None:
        return _Tested(replace(metric, reason=reason))
    sides, change = _Sides(one.after, one.before), now - then
    if mix:
        sides = _weighted(mix, [(each.after, each.before) for each in (one, *routes)])
        weighted = total_counts(sides.after), total_counts(sides.before)
        change = weighted[0].events / after.of - weighted[1].events / before.of
        metric = replace(metric, mix=now - then - change)
        after, before = weighted
    if paired:
        estimates = [paired_dispersion(one.pairs, after, before)]
    else:
        estimates = dispersions(sides.after, sides.before, lengths)
    rose = change >= 0
    result = _test(after, before, sides.scaled(estimates), rose=rose, margin=RATE_MARGIN)
    interval = ratio_interval(after, before, result.dispersion)
    upper = upper_share(after, result.dispersion.after, result.dispersion.freedom)
    test = f"conditional binomial test; {_words(result.dispersion)}"
    return _Tested(
        _with(metric, interval, result.p, test),
        rose,
        matters=abs(change) >= RATE_DIFFERENCE,
        excluded=upper - then <= LARGE_DIFFERENCE
        or (interval is not None and interval[1] <= LARGE_RATE),
        p=result.p,
        mix_errors=sides.mix_errors,
    )


def _p95(
    one: Traffic,
    lengths: Sequence[int],
    *,
    paired: bool,
    mix: Mix | None = None,
    routes: Sequence[Traffic] = (),
) -> _Tested:
    values = one.whole(0), one.whole(1)
    now, then = one.p95_after, one.p95_before
    metric = _metric(now, then)
    reason = _missing(sum(values[0].values()), sum(values[1].values()), "response times")
    if paired and len(one.times_pairs) < MIN_PAIRS:
        reason = reason or _few_pairs(one.times_pairs)
    if reason or now is None or then is None:
        return _Tested(replace(metric, reason=reason))
    change = now - then
    if mix:
        whole, parts = values, [[each.whole(side) for each in routes] for side in (0, 1)]
        values = mix.buckets(whole[0], parts[0], 0), mix.buckets(whole[1], parts[1], 1)
        seconds = [_quantile(buckets) for buckets in (*values, *whole)]
        change = seconds[0] - seconds[1]
        metric = replace(metric, mix=seconds[2] - seconds[3] - change)
    rose = change >= 0
    shift = P95_MARGIN if rose else -P95_MARGIN
    if mix:
        edge = slow_edge(*values, shift)
        counted = [_slow(one, edge, shift), *(_slow(each, edge, shift) for each in routes)]
        sides = _weighted(mix, counted)
    else:
        sides = _Sides(*slowest(one.times_after, one.times_before, shift, values))
    after, before = total_counts(sides.after), total_counts(sides.before)
    if paired:
        pairs = [
            (pair.after[0], pair.before[0])
            for two in one.times_pairs
            for pair in (slowest(two[:1], two[1:]),)
        ]
        estimates = [paired_dispersion(pairs, after, before)]
    else:
        estimates = dispersions(sides.after, sides.before, lengths)
    result = _test(after, before, sides.scaled(estimates), rose=rose, margin=1.0)
    interval = p95_ratio_interval(*values, result.dispersion)
    test = f"conditional test of the slowest 5 %; {_words(result.dispersion)}"
    return _Tested(
        _with(metric, interval, result.p, test),
        rose,
        matters=abs(change) >= max(P95_DIFFERENCE, (_TIMES.factor - 1) * min(now, then)),
        excluded=interval is not None and interval[1] <= LARGE_P95,
        p=result.p,
        mix_errors=sides.mix_errors,
    )


_RATE = _Measure(
    _rate,
    lambda one: (total_counts(one.after).of, total_counts(one.before).of),
    RATE_MARGIN,
    RATE_DIFFERENCE,
)
_TIMES = _Measure(
    _p95,
    lambda one: (sum(one.whole(0).values()), sum(one.whole(1).values())),
    2 ** (P95_MARGIN / PER_DOUBLING),
    P95_DIFFERENCE,
)


def _weighted(mix: Mix, counted: Sequence[tuple[Sequence[Counts], Sequence[Counts]]]) -> _Sides:
    """Return the counts of all requests at the same mix of routes.

    Args:
        counted: the counts of all requests, then of each route, in both windows.
    """
    after, before = ([each[side] for each in counted] for side in (0, 1))
    totals = [*map(total_counts, after)], [*map(total_counts, before)]
    effects = mix.effect(totals[0][0], totals[0][1:], 0), mix.effect(totals[1][0], totals[1][1:], 1)
    return _Sides(
        mix.counts(after[0], after[1:], 0),
        mix.counts(before[0], before[1:], 1),
        effects,
        shift_errors(*totals),
    )


def _slow(one: Traffic, edge: int, shift: int) -> tuple[list[Counts], list[Counts]]:
    return count_slow(one.times_after, edge + shift), count_slow(one.times_before, edge)


def _quantile(buckets: BucketCounts) -> float:
    """Return the p95 of values, interpolated within the bucket."""
    rank = QUANTILE * sum(buckets.values())
    for bucket in sorted(buckets):
        if rank <= buckets[bucket]:
            return float(2.0 ** min((bucket + rank / buckets[bucket]) / PER_DOUBLING, 1023))
        rank -= buckets[bucket]
    return 0.0


def _test(
    after: Counts,
    before: Counts,
    estimates: Sequence[Dispersion],
    *,
    rose: bool,
    margin: float,
) -> RateTest:
    if rose:
        return rise(after, before, estimates, margin)
    swapped = [one._replace(after=one.before, before=one.after) for one in estimates]
    result = rise(before, after, swapped, margin)
    one = result.dispersion
    return result._replace(dispersion=one._replace(after=one.before, before=one.after))


def _with(
    metric: VerdictMetric, interval: tuple[float, float] | None, p: float, test: str
) -> VerdictMetric:
    low, high = interval or (None, None)
    return replace(metric, low=low, high=high, p=p, test=test)


def _missing(after: float, before: float, what: str) -> str:
    for number, when in ((after, "after"), (before, "before")):
        if not number:
            return f"no {what} {when} the deploy"
        if number < MIN_REQUESTS:
            return f"only {number:.0f} {what} {when} the deploy, of at least {MIN_REQUESTS}"
    return ""


def _few_pairs(pairs: Sequence[object]) -> str:
    return f"only {len(pairs)} intervals before the deploy can be compared, of {MIN_PAIRS}"


def _words(dispersion: Dispersion) -> str:
    number = f"dispersion {max(dispersion.after, dispersion.before):.1f}"
    if not dispersion.block:
        return f"{number} by {dispersion.freedom:.0f} pairs of intervals before"
    plural = "s" if dispersion.block > 1 else ""
    return f"{number} by blocks of {dispersion.block} interval{plural}"


def _share(counts: Counts) -> float | None:
    return counts.events / counts.of if counts.of else None


def _metric(after: float | None, before: float | None) -> VerdictMetric:
    if after is None or before is None:
        return VerdictMetric(TOO_LITTLE, after, before)
    ratio = after / before if before else None
    return VerdictMetric(TOO_LITTLE, after, before, ratio, after - before)


def _row(one: Traffic, rate: _Tested, times: _Tested, seconds: tuple[float, float]) -> VerdictRow:
    after, before = round(total_counts(one.after).of), round(total_counts(one.before).of)
    rates_of = after / seconds[0], before / seconds[1]
    ratio = rates_of[0] / rates_of[1] if before else None
    requests = VerdictTraffic(after, before, *rates_of, ratio)
    metrics = rate.metric, times.metric
    return VerdictRow(one.route, combined(metrics), requests, *metrics)


def ordered(rows: Sequence[VerdictRow]) -> list[VerdictRow]:
    """Return routes, worse ones first, then better ones, then by requests."""
    first: Mapping[str, int] = {WORSE: 0, BETTER: 1}
    return sorted(
        rows, key=lambda row: (first.get(row.verdict, 2), -row.requests.after, row.route or "")
    )


def combined(metrics: Sequence[VerdictMetric]) -> Judgment:
    """Return the judgment of several metrics: worse before unknown before better before same."""
    # A metric that is not recorded at all, neither before nor after, is left out.
    known = [one for one in metrics if one.before is not None or one.after is not None]
    judgments = {metric.verdict for metric in known or metrics}
    order: tuple[Judgment, ...] = (WORSE, NOT_KEPT, TOO_LITTLE, BETTER, SAME)
    return next(judgment for judgment in order if judgment in judgments)
