"""Verdicts of routes: what is judged, what is not, and what is too little."""

import random
from collections.abc import Sequence

import pytest

from redmeter.analysis.comparing.significance import Counts
from redmeter.analysis.comparing.verdict import combined, count_tests, judge, ordered
from redmeter.analysis.comparing.verdict_metrics import Traffic
from redmeter.results.verdict import LEVEL, VerdictRow

Minutes = Sequence[Counts]

#: The probability of a rise and the interval of the ratio, as they were computed first.
GOLDEN_RATE = (0.0001902937751105799, 1.5670741312431553, 3.7617426146824413)
GOLDEN_P95 = (1e-290, 1.4768261459394993, 1.4768261459394993)
GOLDEN_TESTS = (
    "conditional binomial test; dispersion 2.1 by blocks of 1 interval",
    "conditional test of the slowest 5 %; dispersion 1.0 by blocks of 1 interval",
)


def traffic(
    route: str | None,
    rate: float,
    *,
    times: float = 1.0,
    requests: int = 200,
    more: int = 1,
    slower: int = 0,
) -> Traffic:
    """Return an hour before a deploy and 15 minutes after it.

    Args:
        rate: the error rate before; `times` as high afterwards.
        requests: by the minute; `more` times as many afterwards.
        slower: buckets by which response times rise.
    """
    rng = random.Random(f"{route}")

    def minutes(number: int, rate: float, size: int) -> list[Counts]:
        return [Counts(sum(rng.random() < rate for _ in range(size)), size) for _ in range(number)]

    def spread(number: int, shift: int, size: int) -> list[dict[int, int]]:
        found = []
        for _ in range(number):
            buckets: dict[int, int] = {}
            for _ in range(size):
                at = round(rng.gauss(0, 10)) + shift
                buckets[at] = buckets.get(at, 0) + 1
            found.append(buckets)
        return found

    after, before = minutes(15, rate * times, requests * more), minutes(60, rate, requests)
    return Traffic(
        route,
        after,
        before,
        spread(15, slower, requests * more),
        spread(60, 0, requests),
        0.2 * 2 ** (slower / 16),
        0.2,
    )


def judged(*routes: Traffic, without_times: str = "") -> list[VerdictRow]:
    """Return the rows of a look after 15 minutes."""
    seconds = (900.0, 3600.0)
    return judge(
        routes, lengths=(1, 8), seconds=seconds, level=LEVEL / 3, without_times=without_times
    )


def test_a_route_that_fails_more_often_is_worse_and_others_are_the_same() -> None:
    """Each metric for itself."""
    bad, good = judged(traffic("/bad", 0.02, times=4), traffic("/good", 0.02))
    assert (bad.verdict, bad.error_rate.verdict, bad.p95.verdict) == ("worse", "worse", "same")
    assert (good.verdict, good.error_rate.verdict, good.p95.verdict) == ("same", "same", "same")
    assert bad.error_rate.ratio == pytest.approx(4, rel=0.3)
    assert bad.error_rate.low is not None
    assert bad.error_rate.low > 2
    assert bad.error_rate.test.startswith("conditional binomial test; dispersion 1.")


def test_a_route_that_failed_before_the_deploy_is_not_made_worse_by_it() -> None:
    """Nor one that was slow before; the reason has the minutes. A third one is worse."""
    earlier = traffic("/pay", 0.02, times=10)
    earlier.before = [*earlier.before[:56], *earlier.after[:4]]
    slow = traffic("/slow", 0.02, slower=16)
    slow.times_before = [*slow.times_before[:56], *slow.times_after[:4]]
    rows = {row.route: row for row in judged(earlier, slow, traffic("/bad", 0.02, times=5))}
    assert {route: row.verdict for route, row in rows.items()} == {
        "/pay": "same",
        "/slow": "same",
        "/bad": "worse",
    }
    assert rows["/pay"].error_rate.reason == "it began 4 min before the deploy"
    assert rows["/slow"].p95.reason == "it began 4 min before the deploy"


def test_a_slower_and_a_faster_route_are_found() -> None:
    """By twice, and by half."""
    slow, fast = judged(traffic("/slow", 0.01, slower=16), traffic("/fast", 0.01, slower=-16))
    assert (slow.p95.verdict, fast.p95.verdict, fast.verdict) == ("worse", "better", "better")
    assert slow.p95.low is not None
    assert slow.p95.low > 1.5


def test_traffic_is_reported_and_never_judged() -> None:
    """Three times as many requests are the same."""
    (row,) = judged(traffic("/", 0.02, more=3))
    assert row.verdict == "same"
    assert row.requests.ratio == pytest.approx(3)
    assert row.requests.after_per_second == pytest.approx(10)


def test_too_few_requests_are_too_little_data() -> None:
    """Whatever they show."""
    (row,) = judged(traffic("/", 0.5, times=2, requests=1))
    assert row.verdict == "too little data"
    assert row.error_rate.reason == "only 15 requests after the deploy, of at least 20"
    (row,) = judged(traffic("/", 0.05, requests=2))
    assert row.error_rate.verdict == "too little data"
    assert row.error_rate.reason == "a large change could not be seen yet"


def test_a_significant_change_that_is_too_small_to_matter_is_the_same() -> None:
    """By how much, not only how surely."""
    tiny = traffic("/", 0.0)
    tiny.before = [Counts(1, 100_000)] * 60
    tiny.after = [Counts(10, 100_000)] * 15
    (row,) = judged(tiny)
    assert row.error_rate.p_adjusted is not None
    assert row.error_rate.p_adjusted < 0.001
    assert row.error_rate.verdict == "same"
    assert row.error_rate.reason == "below the least difference that matters"


def test_more_tests_need_more_evidence() -> None:
    """The same route next to others has a higher adjusted probability."""
    bad = traffic("/bad", 0.02, times=1.9)
    (alone,) = judged(bad)
    others = [traffic(f"/{at}", 0.02, requests=20) for at in range(9)]
    beside = judged(bad, *others)
    assert alone.error_rate.p == beside[0].error_rate.p
    assert alone.error_rate.p_adjusted is not None
    assert beside[0].error_rate.p_adjusted is not None
    assert beside[0].error_rate.p_adjusted > 5 * alone.error_rate.p_adjusted
    assert count_tests(beside) == 20


def test_response_times_that_are_not_kept_leave_the_error_rate() -> None:
    """They are not kept, and say why."""
    (row,) = judged(traffic("/", 0.02, times=4), without_times="histograms of 1m do not reach")
    assert (row.verdict, row.p95.verdict) == ("worse", "not kept")
    assert row.p95.reason == "histograms of 1m do not reach"


def test_what_was_never_recorded_does_not_count() -> None:
    """A program without response times is judged by its error rate."""
    one = traffic("/", 0.02)
    one.times_after = one.times_before = ()
    one.p95_after = one.p95_before = None
    (row,) = judged(one)
    assert row.verdict == "same"
    assert combined([row.p95]) == "too little data"


def test_worse_routes_come_first_then_better_ones_then_the_busiest() -> None:
    """As a person on call reads them."""
    rows = judged(
        traffic("/quiet", 0.02, requests=100),
        traffic("/busy", 0.02),
        traffic("/fast", 0.02, slower=-16),
        traffic("/bad", 0.02, times=4, requests=100),
    )
    assert [row.route for row in ordered(rows)] == ["/bad", "/fast", "/busy", "/quiet"]


def test_the_figures_of_a_verdict_stay_as_they_are() -> None:
    """Probabilities, dispersions and intervals of one route, digit by digit."""
    minutes = [Counts(at % 4 + (6 if at % 17 == 5 else 0), 150 + 7 * (at % 5)) for at in range(75)]
    times = [
        {bucket: 30 - abs(bucket) + at % 3 for bucket in range(-20, 21)} | {25: at % 6}
        for at in range(75)
    ]
    worse = [Counts(2 * one.events + 1, one.of) for one in minutes[60:]]
    slower = [{bucket + 9: number for bucket, number in one.items()} for one in times[60:]]
    one = Traffic("/", worse, minutes[:60], slower, times[:60], 0.3, 0.2)
    (row,) = judged(one)
    rate, p95 = row.error_rate, row.p95
    assert (rate.p, rate.low, rate.high) == pytest.approx(GOLDEN_RATE, rel=1e-7)
    assert (p95.p, p95.low, p95.high) == pytest.approx(GOLDEN_P95, rel=1e-5)
    assert (rate.test, p95.test) == GOLDEN_TESTS
    assert (row.error_rate.verdict, row.p95.verdict) == ("worse", "worse")
