"""Storms: a rise of some minutes is watched, and evidence that it is none makes it worse."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.comparing.significance import Counts, total_counts
from redmeter.analysis.comparing.storms import (
    LEAST_SUMS,
    STORM,
    at_once,
    began_before,
    deviance,
    ends,
    five_minutes,
    highest_score,
    lasts,
    worst_share,
)
from redmeter.analysis.comparing.verdict import judge
from redmeter.analysis.comparing.verdict_metrics import Traffic
from redmeter.results.verdict import VerdictMetric, level_of

USUAL, BAD = Counts(2, 200), Counts(60, 200)


@given(
    st.sampled_from([(5, 300), (15, 900), (3, 900), (60, 3600), (12, 3600), (720, 3600)]),
    st.data(),
)
def test_no_rise_of_eight_minutes_lasts(window: tuple[int, int], data: st.DataObject) -> None:
    """Wherever it begins, for any width of the intervals; nothing else fails."""
    number, seconds = window
    width = seconds / number
    length = int(STORM // width)
    begin = data.draw(st.integers(0, max(number - length, 0)))
    after = [Counts(60 * (begin <= at < begin + length), 200) for at in range(number)]
    assert not lasts(after, [USUAL] * 60, seconds)


@pytest.mark.parametrize(
    ("number", "seconds", "end"),
    [
        (5, 300, 0),
        (15, 900, 3),
        (180, 900, 36),
        (3, 900, 0),
        (60, 3600, 20),
        (1, 3600, 0),
        (0, 9, 0),
    ],
)
def test_the_first_and_the_last_part_are_more_than_eight_minutes_apart(
    number: int, seconds: int, end: int
) -> None:
    """And a third of the window at most."""
    assert ends(number, seconds) == end
    if end:
        assert (number - 2 * end) * seconds / number > STORM
    assert lasts([BAD] * number, [USUAL] * 60, seconds) is bool(end)


@pytest.mark.parametrize(
    ("failed", "worst", "sudden"),
    [(50, 1.0, True), (49, 0.2, False), (49, 0.16, True), (21, 0.06, True), (20, 0.0, False)],
)
def test_no_storm_fails_so_many_at_once(failed: int, worst: float, sudden: bool) -> None:
    """Half of all requests; or over 20 %, and over three times the worst 5 minutes."""
    assert at_once(Counts(failed, 100), worst) is sudden
    assert not at_once(Counts(0, 0), worst)


def test_five_minutes_with_few_requests_have_no_worst_share() -> None:
    """One failure of two is no storm."""
    sums = five_minutes(
        [Counts(1, 2), *[Counts(1, 10)] * 4, *[Counts(2, 10)] * 5, Counts(1, 1)], 60
    )
    assert sums == [Counts(5, 42), Counts(10, 50), Counts(1, 1)]
    assert worst_share(sums) == 0.2
    assert worst_share([]) == 0.0


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(20, 99)), min_size=2, max_size=20))
def test_the_highest_score_is_that_of_the_most_unusual_window(sums: list[tuple[int, int]]) -> None:
    """For one, for two and for as many sums as a look has."""
    history = [Counts(*one) for one in sums]
    whole = total_counts(history)
    scores = [
        deviance(total_counts(history[at : at + size]), whole)
        for size in (1, 2)
        for at in range(len(history) - size + 1)
    ]
    assert highest_score(history, 1) == pytest.approx(max(scores))
    assert highest_score(history, 2) == pytest.approx(max(scores))
    assert deviance(Counts(0, 50), whole) == 0.0


def metric(
    minutes: int, *, sums: int = 0, storm: bool = False, rate: Counts = BAD, tested: str = "rate"
) -> VerdictMetric:
    """Return the metric of a route that got worse, at a look.

    Args:
        sums: 5-minute sums before the deploy; with or without a storm in them.
        tested: "rate" or "p95".
    """
    history = [Counts(10, 1000)] * sums
    if storm:
        history[sums // 2] = Counts(450, 3000)
    rng = random.Random(1)
    before = [Counts(sum(rng.random() < 0.01 for _ in range(200)), 200) for _ in range(60)]
    quick, slow = {0: 180, 9: 20}, {16: 180, 25: 20}
    one = Traffic("/", [rate] * minutes, before, [slow] * minutes, [quick] * 60, 2.9, 1.4)
    one.history = history
    (row,) = judge(
        [one], lengths=(1, 5), seconds=(60.0 * minutes, 3600.0), level=level_of(60 * minutes)
    )
    return row.error_rate if tested == "rate" else row.p95


@pytest.mark.parametrize(
    ("minutes", "options", "verdict", "reason"),
    [
        (5, {}, "watching", "could be a storm of up to 8 minutes"),
        (5, {"sums": LEAST_SUMS - 1}, "watching", "could be a storm"),
        (5, {"sums": LEAST_SUMS}, "worse", "more unusual than all of 6.0 hours of 5-minute sums"),
        (5, {"sums": 100, "storm": True, "rate": Counts(30, 200)}, "watching", "could be a storm"),
        (5, {"sums": 100, "tested": "p95"}, "watching", "could be a storm"),
        (15, {}, "worse", "lasts longer than 8 minutes"),
        (15, {"tested": "p95"}, "worse", "lasts longer than 8 minutes"),
    ],
)
def test_a_rise_is_watched_until_it_is_no_storm(
    minutes: int, options: dict[str, object], verdict: str, reason: str
) -> None:
    """By a history of six hours, of error rates only; or by how long it lasts."""
    judged = metric(minutes, **options)  # type: ignore[arg-type]
    assert (judged.verdict, judged.reason[: len(reason)]) == (verdict, reason)


def test_the_noise_of_a_history_is_the_noise_of_the_test() -> None:
    """A storm in it makes the test less certain, and its words name the hours before."""
    calm, stormy = (
        metric(5, sums=100, storm=storm, rate=Counts(20, 200)) for storm in (False, True)
    )
    assert calm.p is not None
    assert stormy.p is not None
    assert stormy.p > 1e6 * calm.p
    assert stormy.test.endswith("minutes of the hours before")


def test_half_of_all_requests_fail_at_once() -> None:
    """All requests are the first row."""
    routes = []
    for name in (None, "/a"):
        before = [Counts(2, 200)] * 60
        routes.append(Traffic(name, [Counts(120, 200)] * 5, before))
    rows = judge(routes, lengths=(1, 5), seconds=(300.0, 3600.0), level=0.005)
    assert {row.verdict for row in rows} == {"worse"}
    assert rows[1].error_rate.reason == "more requests fail than in any storm"


def test_a_rise_that_begins_later_lasts_until_the_end() -> None:
    """In the last twenty minutes of an hour; one that has ended does not."""
    late = [USUAL] * 40 + [BAD] * 20
    assert lasts(late, [USUAL] * 60, 3600)
    assert not lasts(late[::-1], [USUAL] * 60, 3600)


@pytest.mark.parametrize("ago", [2, 4, 20])
@pytest.mark.parametrize("number", [5, 15, 60])
def test_a_rise_before_the_deploy_is_not_its_effect(ago: int, number: int) -> None:
    """For any length of the window; a rise with the deploy is."""
    before = [USUAL] * (60 - ago) + [BAD] * ago
    assert began_before([BAD] * number, before) == ago
    assert began_before([BAD] * number, [USUAL] * 60) == 0
    assert began_before([BAD] * number, [USUAL] * 59 + [BAD]) == 0  # a deploy takes a while


def test_a_deploy_that_makes_an_earlier_rise_worse_is_not_excused() -> None:
    """Nor one after a rise that was over."""
    assert began_before([Counts(120, 200)] * 15, [USUAL] * 50 + [BAD] * 10) == 0
    assert began_before([BAD] * 15, [USUAL] * 40 + [BAD] * 5 + [USUAL] * 15) == 0
    assert began_before([BAD] * 15, []) == 0


@given(st.integers(0, 10_000))
def test_chance_excuses_no_deploy(seed: int) -> None:
    """Noise of the minutes before is no rise."""
    draw = random.Random(seed)
    before = [Counts(sum(draw.random() < 0.02 for _ in range(200)), 200) for _ in range(60)]
    assert began_before([Counts(20, 200)] * 15, before) == 0
