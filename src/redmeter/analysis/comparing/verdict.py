"""Deploy verdicts: which routes are worse after a deploy, and is the whole?

Each route, and all requests together, have two tests: of the error rate and of p95
(significance.py). Traffic is reported and not judged. A change is reported if it is unlikely to be
chance among all tests of all looks, and large enough to matter:

    looks       a verdict is wanted after 5 minutes, and a better one after 15 and 60. Each of these
                fixed looks gets a part of the error budget of 5 % (Bonferroni), the last one most
    routes      within a look, the tests of all routes and metrics share its part (Holm, 1979)
    noise       how clustered failures are is estimated for each route and for all routes together,
                and from 5-minute sums of up to ten hours before the deploy, where they are kept
    margins     a rise by chance is excluded, and with a confidence of 95 % one of at most a quarter
                (error rate); p95 is tested for a rise of more than two buckets (9 %)
    effects     and the difference itself is at least 0.1 percentage points, or 1 ms
    mix         all requests are compared at the same mix of routes (mix.py)
    earlier     a rise that began before the deploy is not its effect (storms.py)
    storms      such a rise is "worse" if it is no storm (storms.py), and "watching" until then
    too little  a metric is "the same" only if a large change would have been seen: three times the
                error rate (or one percentage point), twice the p95. Else there is too little data

Judged by simulation in benchmarks/verdict.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redmeter.analysis.comparing.significance import holm, total_counts
from redmeter.analysis.comparing.storms import (
    SUM_WIDTH,
    at_once,
    began_before,
    deviance,
    ends,
    five_minutes,
    highest_score,
    lasts,
    worst_share,
)
from redmeter.analysis.comparing.verdict_metrics import (
    Question,
    Traffic,
    answer_all,
    has_history,
    question_of,
)
from redmeter.results.verdict import (
    BETTER,
    NOT_KEPT,
    SAME,
    TOO_LITTLE,
    WATCHING,
    WORSE,
    Judgment,
    VerdictMetric,
    VerdictRow,
    VerdictTraffic,
)


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
        rates = question_of(0, one, routes, lengths, seconds, paired=paired)
        times = (
            Question(VerdictMetric(NOT_KEPT, reason=without_times))
            if without_times
            else question_of(1, one, routes, lengths, seconds, paired=paired)
        )
        rows.append((rates, times))
    for column in zip(*rows, strict=True):
        answer_all(traffic, column)
    questions = [question for row in rows for question in row]
    for rose in (True, False):
        probabilities = holm(
            [None if t.p is None else t.p if t.rose is rose else 1.0 for t in questions]
        )
        for question, adjusted in zip(questions, probabilities, strict=True):
            if question.p is not None and adjusted is not None and question.rose is rose:
                question.metric = _judged(question, adjusted, level)
    if not paired:
        for question in questions:
            _excuse(question, seconds[0])
    if not paired and any(question.metric.verdict == WORSE for question in questions):
        _watch(traffic, rows, seconds[0])
    return [_row(one, *row, seconds) for one, row in zip(traffic, rows, strict=True)]


def count_tests(rows: Sequence[VerdictRow]) -> int:
    """Return how many tests were made."""
    return sum(metric.p is not None for row in rows for metric in (row.error_rate, row.p95))


def _judged(question: Question, adjusted: float, level: float) -> VerdictMetric:
    metric = replace(question.metric, p_adjusted=adjusted)
    if adjusted <= level and not question.matters:
        return replace(metric, verdict=SAME, reason="below the least difference that matters")
    if adjusted <= level and question.certain:
        return replace(metric, verdict=WORSE if question.rose else BETTER)
    if question.excluded:
        return replace(metric, verdict=SAME)
    return replace(metric, verdict=TOO_LITTLE, reason="a large change could not be seen yet")


# Storms


def _excuse(question: Question, seconds: float) -> None:
    """Call a worse metric the same if its rise began before the deploy."""
    after, before = question.sides.after, question.sides.before
    if question.metric.verdict == WORSE and (ago := began_before(after, before)):
        minutes = ago * seconds / len(after) / 60
        reason = f"it began {minutes:,.0f} min before the deploy"
        question.metric = replace(question.metric, verdict=SAME, reason=reason)


def _watch(
    traffic: Sequence[Traffic], rows: Sequence[tuple[Question, Question]], seconds: float
) -> None:
    """Give each worse metric its evidence that it is no storm; watch it if there is none."""
    length = max(int(seconds // SUM_WIDTH), 1)
    highest = max(
        (highest_score(one.history, length) for one in traffic if has_history(one)), default=0.0
    )
    whole = traffic[0]
    worst = worst_share(
        whole.history
        if has_history(whole)
        else five_minutes(whole.before, seconds / max(len(whole.after), 1))
    )
    sudden = whole.route is None and at_once(total_counts(whole.after), worst)
    for one, row in zip(traffic, rows, strict=True):
        for question in row:
            if question.metric.verdict != WORSE:
                continue
            counted = question is row[0]
            evidence = ""
            if lasts(question.sides.after, question.sides.before, seconds):
                evidence = "lasts longer than 8 minutes"
            elif counted and sudden:
                evidence = "more requests fail than in any storm"
            elif counted and has_history(one) and not ends(len(one.after), seconds):
                mine = deviance(total_counts(one.after), total_counts(one.history))
                hours = len(one.history) * SUM_WIDTH / 3600
                if mine > highest:
                    evidence = f"more unusual than all of {hours:.1f} hours of 5-minute sums"
            verdict: Judgment = WORSE if evidence else WATCHING
            reason = evidence or "could be a storm of up to 8 minutes"
            question.metric = replace(question.metric, verdict=verdict, reason=reason)


def _row(one: Traffic, rate: Question, times: Question, seconds: tuple[float, float]) -> VerdictRow:
    after, before = round(total_counts(one.after).of), round(total_counts(one.before).of)
    rates_of = after / seconds[0], before / seconds[1]
    ratio = rates_of[0] / rates_of[1] if before else None
    requests = VerdictTraffic(after, before, *rates_of, ratio)
    metrics = rate.metric, times.metric
    return VerdictRow(one.route, combined(metrics), requests, *metrics)


def ordered(rows: Sequence[VerdictRow]) -> list[VerdictRow]:
    """Return routes, worse ones first, then watched ones, then better ones, then by requests."""
    first: Mapping[str, int] = {WORSE: 0, WATCHING: 1, BETTER: 2}
    return sorted(
        rows, key=lambda row: (first.get(row.verdict, 3), -row.requests.after, row.route or "")
    )


def combined(metrics: Sequence[VerdictMetric]) -> Judgment:
    """Return the judgment of several metrics: worse, watching, unknown, better, same."""
    # A metric that is not recorded at all, neither before nor after, is left out.
    known = [one for one in metrics if one.before is not None or one.after is not None]
    judgments = {metric.verdict for metric in known or metrics}
    order: tuple[Judgment, ...] = (WORSE, WATCHING, NOT_KEPT, TOO_LITTLE, BETTER, SAME)
    return next(judgment for judgment in order if judgment in judgments)
