"""The metrics of a deploy verdict: the compared values, and how likely a change is by chance.

A question is a metric of a route, or of all requests at the same mix of routes (mix.py): the counts
by interval of both windows, and estimates of their dispersion. It is answered after all questions
about the same metric are prepared, since the dispersion of a route is shrunk toward that of all.
"""

from collections.abc import Callable, Sequence
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
    Usual,
    Variation,
    count_slow,
    excess_of,
    p95_ratio_interval,
    paired_dispersion,
    ratio_interval,
    rise,
    slow_edge,
    slowest,
    sum_counts,
    total_counts,
    upper_share,
    usual,
)
from redmeter.analysis.comparing.storms import LEAST_SUMS, SUM_WIDTH
from redmeter.results.verdict import BETTER, SAME, TOO_LITTLE, WORSE, Judgment, VerdictMetric

#: Seconds of the longer blocks of each look, by which clusters are found.
BLOCKS: Final = {300: 300, 900: 480, 3600: 600}
#: The same of a history, in 5-minute sums.
_HISTORY_BLOCKS: Final = (1, 2)
#: Requests that each window of a route must have.
MIN_REQUESTS: Final = 20
#: Factors within which a change is none: of the error rate, and buckets of p95; and the probability
#: with which a change of the error rate is within.
RATE_MARGIN, P95_MARGIN, MARGIN_LEVEL = 1.25, 2, 0.05
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
    #: 5-minute sums before the deploy, from the first request on: see has_history().
    history: Sequence[Counts] = ()
    #: If the windows are a day or a week apart: intervals before the deploy, each with the one a
    #: day or a week earlier.
    pairs: Sequence[tuple[Counts, Counts]] = ()
    times_pairs: Sequence[tuple[BucketCounts, BucketCounts]] = ()

    def whole(self, side: int) -> BucketCounts:
        """Return the response times of a window: 0 for after, 1 for before."""
        if side:
            return sum_counts(self.times_before) if self.all_before is None else self.all_before
        return sum_counts(self.times_after) if self.all_after is None else self.all_after


#: The requests of both windows, or the response times.
_SIZES: Final[tuple[Callable[[Traffic], tuple[float, float]], ...]] = (
    lambda one: (total_counts(one.after).of, total_counts(one.before).of),
    lambda one: (sum(one.whole(0).values()), sum(one.whole(1).values())),
)
#: The least change of either that matters: as a factor, and as a difference.
_LEAST: Final = (
    (RATE_MARGIN, RATE_DIFFERENCE),
    (2 ** (P95_MARGIN / PER_DOUBLING), P95_DIFFERENCE),
)


class _Sides(NamedTuple):
    """Tested counts by interval of both windows, weighted if they are of all requests."""

    after: Sequence[Counts]
    before: Sequence[Counts]
    #: By how much weights raise the variance of either.
    effects: tuple[float, float] = (1.0, 1.0)
    #: The effect of the mix of routes, in standard errors.
    mix_errors: float = 0.0

    def totals(self) -> tuple[Counts, Counts]:
        """Return the sums of both windows."""
        return total_counts(self.after), total_counts(self.before)

    def scaled(self, one: Dispersion) -> Dispersion:
        """Return a dispersion that includes the weights."""
        after, before = (max(effect, 1.0) for effect in self.effects)
        return one._replace(after=one.after * after, before=one.before * before)


@dataclass(slots=True)
class Question:
    """A metric that is tested, or the reason why it is not; and the answer."""

    metric: VerdictMetric
    sides: _Sides = _Sides((), ())  # noqa: RUF009 - immutable
    #: The change within routes: its direction, and whether it is large enough to matter.
    rose: bool = True
    matters: bool = False
    #: Estimates of the dispersion: by blocks, or that of pairs.
    excesses: Sequence[Variation] = ()
    paired: Dispersion | None = None
    #: Values of p95 in both windows.
    values: tuple[BucketCounts, BucketCounts] | None = None
    #: Whether a large change is excluded.
    excluded: bool = False
    #: Whether a change within the margin is excluded.
    certain: bool = True
    p: float | None = None


def has_history(one: Traffic) -> bool:
    """Return whether the noise of a route's error rate is learned from 5-minute sums."""
    return len(one.history) >= LEAST_SUMS


# Questions


def question_of(
    which: int,
    one: Traffic,
    routes: Sequence[Traffic],
    lengths: Sequence[int],
    seconds: tuple[float, float],
    *,
    paired: bool,
) -> Question:
    """Prepare the test of a route, or of all requests at the same mix of routes.

    Args:
        which: 0 for the error rate, 1 for p95.
    """
    mix = None
    if routes:
        sizes = [_SIZES[which](each) for each in (one, *routes)]
        mix = same_mix(sizes[0], sizes[1:], MIN_REQUESTS)
    question = (_p95 if which else _rate)(one, mix, routes, paired=paired)
    metric, sides = question.metric, question.sides
    if metric.mix is not None and metric.before is not None:
        factor, difference = _LEAST[which]
        least = (factor - 1) * min(metric.before, metric.before + metric.mix)
        matters = abs(metric.mix) >= max(difference, least)
        judged: Judgment = SAME
        if matters and sides.mix_errors >= MIX_ERRORS:
            judged = WORSE if metric.mix > 0 else BETTER
        question.metric = replace(metric, mix_verdict=judged)
    if not question.metric.reason and not paired:
        question.excesses = [excess_of(sides.after, sides.before, length) for length in lengths]
        if not which and has_history(one):
            width = seconds[0] / len(one.after)
            question.excesses = [question.excesses[0], *_of_history(one, sides, width)]
    return question


def _of_history(one: Traffic, sides: _Sides, width: float) -> list[Variation]:
    variations = []
    for length in _HISTORY_BLOCKS:
        excess = excess_of((), one.history, length)
        block = max(int(length * SUM_WIDTH // width), 1)
        squares = excess_of(sides.after, sides.before, block).squares
        variations.append(excess._replace(squares=squares, block=-length))
    return variations


def _rate(one: Traffic, mix: Mix | None, routes: Sequence[Traffic], *, paired: bool) -> Question:
    after, before = total_counts(one.after), total_counts(one.before)
    now, then = _share(after), _share(before)
    metric = _metric(now, then)
    reason = _missing(after.of, before.of, "requests")
    if paired and len(one.pairs) < MIN_PAIRS:
        reason = reason or _few_pairs(one.pairs)
    if reason or now is None or then is None:
        return Question(replace(metric, reason=reason))
    sides, change = _Sides(one.after, one.before), now - then
    if mix:
        sides = _weighted(mix, [(each.after, each.before) for each in (one, *routes)])
        weighted = sides.totals()
        change = weighted[0].events / after.of - weighted[1].events / before.of
        metric = replace(metric, mix=now - then - change)
    estimate = paired_dispersion(one.pairs, *sides.totals()) if paired else None
    return Question(
        metric,
        sides,
        change >= 0,
        matters=abs(change) >= RATE_DIFFERENCE,
        paired=estimate,
    )


def _p95(one: Traffic, mix: Mix | None, routes: Sequence[Traffic], *, paired: bool) -> Question:
    values = one.whole(0), one.whole(1)
    now, then = one.p95_after, one.p95_before
    metric = _metric(now, then)
    reason = _missing(sum(values[0].values()), sum(values[1].values()), "response times")
    if paired and len(one.times_pairs) < MIN_PAIRS:
        reason = reason or _few_pairs(one.times_pairs)
    if reason or now is None or then is None:
        return Question(replace(metric, reason=reason))
    change = now - then
    if mix:
        whole, parts = values, [[each.whole(side) for each in routes] for side in (0, 1)]
        values = mix.buckets(whole[0], parts[0], 0), mix.buckets(whole[1], parts[1], 1)
        seconds = [_quantile(buckets) for buckets in (*values, *whole)]
        change = seconds[0] - seconds[1]
        metric = replace(metric, mix=seconds[2] - seconds[3] - change)
    shift = P95_MARGIN if change >= 0 else -P95_MARGIN
    if mix:
        edge = slow_edge(*values, shift)
        sides = _weighted(mix, [_slow(each, edge, shift) for each in (one, *routes)])
    else:
        sides = _Sides(*slowest(one.times_after, one.times_before, shift, values))
    estimate = None
    if paired:
        pairs = [
            (pair.after[0], pair.before[0])
            for two in one.times_pairs
            for pair in (slowest(two[:1], two[1:]),)
        ]
        estimate = paired_dispersion(pairs, *sides.totals())
    return Question(
        metric,
        sides,
        change >= 0,
        matters=abs(change) >= max(P95_DIFFERENCE, (_LEAST[1][0] - 1) * min(now, then)),
        paired=estimate,
        values=values,
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


# Answers


def answer_all(traffic: Sequence[Traffic], questions: Sequence[Question]) -> None:
    """Answer the questions about one metric: set `p`, and what follows from it.

    Args:
        questions: one for each of `traffic`.
    """
    routes = [
        question.excesses
        for one, question in zip(traffic, questions, strict=True)
        if one.route is not None and question.excesses
    ]
    # The dispersion of all routes together, for each way to estimate it.
    together = [usual(parts) for parts in zip(*routes, strict=False)] if len(routes) > 1 else []
    for question in questions:
        _answer(question, together)


def _answer(question: Question, together: Sequence[Usual]) -> None:
    if question.metric.reason:
        return
    sides, values = question.sides, question.values
    estimates = [question.paired] if question.paired else []
    for at, excess in enumerate(question.excesses):
        estimates.append(excess.dispersion(together[at] if at < len(together) else Usual()))
    estimates = [sides.scaled(one) for one in estimates]
    after, before = sides.totals()
    result = _test(after, before, estimates, rose=question.rose, margin=1.0)
    dispersion, question.p = result.dispersion, result.p
    if values is None:
        margin = _test(after, before, estimates, rose=question.rose, margin=RATE_MARGIN)
        question.certain = margin.p <= MARGIN_LEVEL
        name, largest = "conditional binomial test", LARGE_RATE
        interval = ratio_interval(after, before, dispersion)
        upper = upper_share(after, dispersion.after, dispersion.freedom)
        question.excluded = upper - (_share(before) or 0.0) <= LARGE_DIFFERENCE
    else:
        name, largest = "conditional test of the slowest 5 %", LARGE_P95
        interval = p95_ratio_interval(*values, dispersion)
    question.excluded |= interval is not None and interval[1] <= largest
    question.metric = _with(question.metric, interval, result.p, f"{name}; {_words(dispersion)}")


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
    if dispersion.block < 0:
        minutes = -dispersion.block * SUM_WIDTH // 60
        return f"{number} by blocks of {minutes} minutes of the hours before"
    plural = "s" if dispersion.block > 1 else ""
    return f"{number} by blocks of {dispersion.block} interval{plural}"


def _share(counts: Counts) -> float | None:
    return counts.events / counts.of if counts.of else None


def _metric(after: float | None, before: float | None) -> VerdictMetric:
    if after is None or before is None:
        return VerdictMetric(TOO_LITTLE, after, before)
    ratio = after / before if before else None
    return VerdictMetric(TOO_LITTLE, after, before, ratio, after - before)
